"""``set selector``."""

from __future__ import annotations

from kubepy.cli.runtime.command import Invocation, verb
from kubepy.cli.runtime.errors import CliError
from kubepy.cli.runtime.flags import string
from kubepy.cli.runtime.session import Session
from kubepy.cli.set.change import change_each, common_flags, infos_for
from kubepy.cluster.objects.meta import Object

EXAMPLES = """
    # Point a service to the blue pods
    kubepy set selector svc/web 'app=web,colour=blue'
"""

FLAGS = [
    *common_flags("selector"),
    string("resource-version", help="If non-empty, the selectors update will only succeed if this is the current "
           "resource-version for the object. Only valid when specifying a single resource."),
]


@verb("selector", "selector (-f FILENAME | TYPE NAME) EXPRESSIONS [--resource-version=version]", flags=FLAGS,
      examples=EXAMPLES)
def selector(session: Session, given: Invocation) -> None:
    """Set the selector on a resource. The new selector overwrites the existing one; only services have one to set."""
    if not given.args:
        raise CliError("one selector is required")
    labels = parse_selector(given.args[-1])

    def change(obj: Object) -> None:
        if obj["kind"] != "Service":
            raise CliError("setting a selector is only supported for Services")
        obj["spec"]["selector"] = labels
        if given.resource_version:
            obj["metadata"]["resourceVersion"] = given.resource_version

    change_each(session, given, infos_for(session, given, given.args[:-1]), change, done="selector updated", failed="",
                always=True, named=False)


def parse_selector(text: str) -> dict[str, str]:
    """A selector of equalities as labels. Raises CliError for any other."""
    from kubepy.cluster.selectors.labels import EQUALS, SelectorError, parse_labels

    try:
        requirements = parse_labels(text).requirements
    except SelectorError as error:
        raise CliError(f'couldn\'t parse the selector string "{text}": {error}') from None
    others = [one for one in requirements if one.operator not in (EQUALS, "in") or len(one.values) != 1]
    if others:
        raise CliError(f"match expression [{' '.join(map(str, others))}] not supported on this object")
    return {one.key: one.values[0] for one in requirements}
