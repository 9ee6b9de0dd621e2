"""``set selector``. Upstream: ``kubectl/pkg/cmd/set/set_selector.go``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.options import RecordOptions, local_flag
from kubepy.cli.set.change import SetOptions, Setter
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import selectors
    from kubepy.api.values import goformat


class SetSelectorOptions(SetOptions, RecordOptions):
    """The flags of ``set selector``."""

    recursive: bool = bool_flag(
        "recursive", "R", True, help="Process the directory used in -f, --filename recursively."
    )
    local: bool = local_flag("set selector")
    resource_version: str = string_flag(
        "resource-version",
        help="If non-empty, the selectors update will only succeed "
        "if this is the current resource-version for the object. Only valid when "
        "specifying a single resource.",
    )


@command(
    "selector (-f FILENAME | TYPE NAME) EXPRESSIONS [--resource-version=version]",
    SetSelectorOptions,
    examples="""
    # Point a service to the blue pods
    kubepy set selector svc/web 'app=web,colour=blue'

    # Change a manifest without looking at the cluster
    kubepy set selector -f svc.yaml 'app=web' --local -o yaml
""",
)
def selector(factory: Factory, options: SetSelectorOptions) -> None:
    """Set the selector on a resource. The new selector overwrites the existing one; only services have one to set."""  # noqa: E501
    parsed = parse_selector(options.args[-1]) if options.args else None
    setter = Setter(factory, options, "selector updated")
    if parsed is None:
        raise CliError("one selector is required")
    new_selector = parsed

    def change(obj: Object) -> None:
        if obj["kind"] != "Service":
            raise CliError("setting a selector is only supported for Services")
        obj["spec"]["selector"] = equalities(new_selector)
        if options.resource_version:
            obj["metadata"]["resourceVersion"] = options.resource_version

    def set_selector(info: Info) -> None:
        setter.require_type(info)
        setter.send(info, setter.changed_copy(info, change), always=True)

    setter.find(options.args[:-1]).visit(set_selector)


def parse_selector(text: str) -> Object:
    """Parse a LabelSelector. Raises CliError."""
    try:
        return selectors.parse_to_label_selector(text)
    except selectors.SelectorError as error:
        raise CliError(str(error)) from None


def equalities(selector: Object) -> dict[str, str]:
    """Return the labels of a selector. Raises CliError for one with expressions."""
    if expressions := selector.get("matchExpressions"):
        texts = " ".join(
            f"{{{expression['key']} {expression['operator']} "
            f"{goformat.format_value(expression.get('values', []))}}}"
            for expression in expressions
        )
        raise CliError(f"match expression [{texts}] not supported on this object")
    labels: dict[str, str] = selector.get("matchLabels", {})
    return labels
