"""``set selector``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.verbs import Invocation, changed_flag, verb
from kubepy.cli.set.change import as_typed, changed_copy, common_flags, found_for, reply_of, send

EXAMPLES = """
    # Point a service to the blue pods
    kubepy set selector svc/web 'app=web,colour=blue'

    # Change a manifest without looking at the cluster
    kubepy set selector -f svc.yaml 'app=web' --local -o yaml
"""

FLAGS = [
    *(changed_flag(flag, default=True) if flag.long == "recursive" else flag for flag in common_flags("selector")
      if flag.long != "kustomize"),
    string("resource-version", help="If non-empty, the selectors update will only succeed if this is the current "
           "resource-version for the object. Only valid when specifying a single resource."),
]


@verb("selector", "selector (-f FILENAME | TYPE NAME) EXPRESSIONS [--resource-version=version]", flags=FLAGS,
      examples=EXAMPLES)
def selector(factory: Factory, given: Invocation) -> None:
    """Set the selector on a resource. The new selector overwrites the existing one; only services have one to set."""
    wanted = parse_selector(given.args[-1]) if given.args else None
    reply = reply_of(factory, given, "selector updated")
    if wanted is None:
        raise CliError("one selector is required")
    labels = wanted

    def change(obj: Object) -> None:
        if obj["kind"] != "Service":
            raise CliError("setting a selector is only supported for Services")
        obj["spec"]["selector"] = equalities(labels)
        if given.resource_version:
            obj["metadata"]["resourceVersion"] = given.resource_version

    def set_selector(info: Info) -> None:
        as_typed(given, info)
        send(factory, given, info, changed_copy(given, info, change), reply, always=True)

    found_for(factory, given, given.args[:-1]).visit(set_selector)


def parse_selector(text: str) -> Object:
    """A LabelSelector. Raises CliError."""
    from kubepy.api.selectors import SelectorError, parse_to_label_selector

    try:
        return parse_to_label_selector(text)
    except SelectorError as error:
        raise CliError(str(error)) from None


def equalities(selector: Object) -> dict[str, str]:
    """The labels of a selector that has no expressions. Raises CliError for one that has."""
    from kubepy.api.values.goformat import format_value

    if expressions := selector.get("matchExpressions"):
        shown = " ".join(f"{{{one['key']} {one['operator']} {format_value(one.get('values', []))}}}"
                         for one in expressions)
        raise CliError(f"match expression [{shown}] not supported on this object")
    labels: dict[str, str] = selector.get("matchLabels", {})
    return labels
