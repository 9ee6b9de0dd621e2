"""``kubepy api-resources`` and ``api-versions``. Upstream: ``kubectl/pkg/cmd/apiresources``."""

from __future__ import annotations

from collections.abc import Sequence

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag, string_slice_flag
from kubepy.cli.runtime.options import Options
from kubepy.cli.runtime.output import document, no_printer
from kubepy.cli.runtime.tables import format_lines
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.server import discovery


class ApiResourcesOptions(Options):
    """The flags of ``api-resources``."""

    api_group: str = string_flag("api-group", help="Limit to resources in the specified API group.")
    namespaced: bool = bool_flag(
        "namespaced",
        default=True,
        help="If false, non-namespaced resources will be "
        "returned, otherwise returning namespaced resources.",
    )
    verbs: list[str] = string_slice_flag(
        "verbs", help="Limit to resources that support the specified verbs."
    )
    categories: list[str] = string_slice_flag(
        "categories", help="Limit to resources that belong to the specified categories."
    )
    sort_by: str = string_flag(
        "sort-by",
        help="If non-empty, sort list of resources using specified field: 'name' or 'kind'.",
    )
    no_headers: bool = bool_flag("no-headers", help="Don't print headers.")
    output: str = string_flag(
        "output", "o", help="Output format. One of: (json, yaml, kyaml, name, wide)."
    )
    cached: bool = bool_flag("cached", help="Accepted as kubectl does; nothing is cached.")
    show_managed_fields: bool = bool_flag(
        "show-managed-fields", help="Accepted as kubectl does; resources have no managers."
    )


FORMATS = ("json", "kyaml", "name", "wide", "yaml")
HEADERS = ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]


@command(
    "api-resources",
    ApiResourcesOptions,
    examples="""
# All kinds that there are, with their short names
kubepy api-resources

# With their verbs and categories
kubepy api-resources -o wide

# Those of one API group
kubepy api-resources --api-group=apps

# Those without a namespace
kubepy api-resources --namespaced=false

# Those that can be listed, by their names only
kubepy api-resources --namespaced --verbs=list -o name

# In the order of their kinds
kubepy api-resources --sort-by=kind
""",
)
def api_resources(factory: Factory, options: ApiResourcesOptions) -> None:
    """Print the supported API resources."""
    if options.args:
        options.usage_error(printable(f"unexpected arguments: [{' '.join(options.args)}]"))
    if options.output not in ("", *FORMATS):
        raise no_printer(options.output, FORMATS)
    if options.sort_by not in ("", "name", "kind"):
        raise CliError("--sort-by accepts only name or kind")
    field = {"name": "plural", "kind": "kind"}.get(options.sort_by, "group")
    resources = sorted(
        (resource for resource in factory.scheme if is_selected(options, resource)),
        key=lambda resource: (getattr(resource, field), resource.plural),
    )
    if options.output == "name":
        for resource in resources:
            factory.print(resource.key)
    elif options.output in ("", "wide"):
        factory.print(format_lines(_lines(options, resources)), end="")
    else:
        listed = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": "",
            "resources": [_api_resource(resource) for resource in resources],
        }
        factory.print(document(options.output, listed, typed=True), end="")


def is_selected(options: ApiResourcesOptions, resource: Resource) -> bool:
    return (
        (not options.changed("api-group") or resource.group == options.api_group)
        and (not options.changed("namespaced") or resource.namespaced == options.namespaced)
        and set(options.verbs) <= set(resource.listed_verbs)
        and set(options.categories) <= set(resource.categories)
    )


def _lines(options: ApiResourcesOptions, resources: Sequence[Resource]) -> list[str]:
    wide = options.output == "wide"
    if options.no_headers:
        text = []
    else:
        text = ["\t".join([*HEADERS, *(["VERBS", "CATEGORIES"] if wide else [])])]

    for resource in resources:
        cells = [
            resource.plural,
            ",".join(resource.short_names),
            resource.api_version,
            str(resource.namespaced).lower(),
            resource.kind,
        ]
        if wide:
            cells += [",".join(resource.listed_verbs), ",".join(resource.categories)]
        text.append("\t".join(cells))

    return text


def _api_resource(resource: Resource) -> Object:
    """Return a ``metav1.APIResource``, its fields in the order of Go's type."""
    optional = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    return {
        "name": resource.plural,
        "singularName": discovery.singular_name(resource),
        "namespaced": resource.namespaced,
        **({"group": resource.group} if resource.group else {}),
        "version": resource.version,
        "kind": resource.kind,
        "verbs": list(resource.listed_verbs),
        **{field: names for field, names in optional.items() if names},
    }


@command(
    "api-versions",
    Options,
    examples="""
# Every group and version
kubepy api-versions

# Whether there is a version
kubepy api-versions | grep -x apps/v1
""",
)
def api_versions(factory: Factory, options: Options) -> None:
    """Print the supported API versions, in the form of "group/version"."""
    if options.args:
        options.usage_error(printable(f"unexpected arguments: [{' '.join(options.args)}]"))
    versions = {
        f"{resource.group}/{version}".lstrip("/")
        for resource in factory.scheme
        for version in (resource.version, *resource.other_versions)
    }
    for version in sorted(versions):
        factory.print(version)
