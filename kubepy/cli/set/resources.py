"""``set resources``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flagsets import selector_flag
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.cli.set.change import change_each, common_flags, infos_for, refuse_contradictions, reply_of
from kubepy.cli.set.pod_specs import pod_spec_of, select_containers
from kubepy.quoting import printable

EXAMPLES = """
    # Limit one container of a DaemonSet
    kubepy set resources ds/log-agent -c agent --limits=cpu=200m,memory=128Mi --requests=cpu=50m

    # Take the requests away again
    kubepy set resources ds/log-agent --requests=cpu=0,memory=0
"""

FLAGS = [
    *common_flags("resources"),
    selector_flag(),
    string("containers", "c", "*", help="The names of containers in the selected pod templates to change - may use "
           "wildcards."),
    string("limits", help="The resource limits for this container. For example, 'cpu=100m,memory=256Mi'."),
    string("requests", help="The resource requests for this container. For example, 'cpu=100m,memory=256Mi'."),
]


@verb("resources", "resources (-f FILENAME | TYPE NAME) ([--limits=LIMITS & --requests=REQUESTS])", flags=FLAGS,
      examples=EXAMPLES)
def resources(factory: Factory, given: Invocation) -> None:
    """Specify compute resource requirements (CPU, memory) for any resource that defines a pod template."""
    reply = reply_of(factory, given, "resource requirements updated")
    infos = infos_for(factory, given, given.args)
    refuse_contradictions(given, reply)
    if not given.limits and not given.requests:
        raise CliError("you must specify an update to requests or limits (in the form of --requests/--limits)")
    wanted = {"limits": parse_amounts(given.limits), "requests": parse_amounts(given.requests)}
    errors: list[Exception] = []

    def change(obj: Object) -> None:
        found = select_containers(pod_spec_of(obj), given.containers)
        if not found:
            errors.append(CliError(f"error: unable to find container named {given.containers}"))
        for container in found:
            set_amounts(container, wanted)

    change_each(factory, given, infos, change, reply, errors=errors,
                failed="failed to patch resources update to pod template ")


def parse_amounts(text: str) -> Object:
    """``cpu=100m,memory=256Mi`` as a resource list of canonical quantities. Raises CliError."""
    from kubepy.api.values.quantity import Quantity

    found: Object = {}
    for part in text.split(",") if text else []:
        name, equals, amount = part.partition("=")
        if not equals or "=" in amount:
            raise CliError(printable(f"Invalid argument syntax {part}, expected <resource>=<value>"))
        try:
            found[name] = str(Quantity.parse(amount))
        except ValueError as error:
            raise CliError(str(error)) from None
    return found


def set_amounts(container: Object, wanted: dict[str, Object]) -> None:
    for kind, amounts in wanted.items():
        if amounts:
            container.setdefault("resources", {}).setdefault(kind, {}).update(amounts)
