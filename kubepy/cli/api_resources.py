"""``kubepy api-resources`` and ``api-versions``. Upstream: ``kubectl/pkg/cmd/apiresources``."""

from __future__ import annotations

from collections.abc import Sequence

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flags import string_slice_flag as strings
from kubepy.cli.runtime.output import format_printer, no_printer
from kubepy.cli.runtime.tables import format_lines
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.quoting import printable

FLAGS = [
    string("api-group", help="Limit to resources in the specified API group."),
    boolean("namespaced", default=True, help="If false, non-namespaced resources will be returned, otherwise returning "
            "namespaced resources."),
    strings("verbs", help="Limit to resources that support the specified verbs."),
    strings("categories", help="Limit to resources that belong to the specified categories."),
    string("sort-by", help="If non-empty, sort list of resources using specified field: 'name' or 'kind'."),
    boolean("no-headers", help="Don't print headers."),
    string("output", "o", help="Output format. One of: (json, yaml, kyaml, name, wide)."),
    boolean("cached", help="Accepted as kubectl does; nothing is cached."),
    boolean("show-managed-fields", help="Accepted as kubectl does; resources have no managers."),
]
FORMATS = ("json", "kyaml", "name", "wide", "yaml")
HEADERS = ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]


@verb("api-resources", "api-resources", flags=FLAGS, examples="""
# The resources of one group
kubepy api-resources --api-group=apps

# With the verbs that they support
kubepy api-resources -o wide
""")
def api_resources(factory: Factory, given: Invocation) -> None:
    """Print the supported API resources."""
    if given.args:
        given.usage_error(printable(f"unexpected arguments: [{' '.join(given.args)}]"))
    if given.output not in ("", *FORMATS):
        raise no_printer(given.output, FORMATS)
    if given.sort_by not in ("", "name", "kind"):
        raise CliError("--sort-by accepts only name or kind")
    resources = ordered([one for one in factory.scheme if is_wanted(given, one)], given.sort_by)
    if given.output == "name":
        for one in resources:
            factory.print(one.key)
    elif given.output in ("", "wide"):
        factory.print(format_lines(_lines(given, resources)), end="")
    else:
        format_printer(factory, given, (given.output, ""), typed=True)(_list(resources))


def is_wanted(given: Invocation, one: Resource) -> bool:
    return ((not given.changed("api-group") or one.group == given.api_group)
            and (not given.changed("namespaced") or one.namespaced == given.namespaced)
            and set(given.verbs) <= set(one.verbs) and set(given.categories) <= set(one.categories))


def ordered(resources: Sequence[Resource], sort_by: str) -> list[Resource]:
    """By group, or as asked, and then by name."""
    field = {"name": "plural", "kind": "kind"}.get(sort_by, "group")
    return sorted(resources, key=lambda one: (getattr(one, field), one.plural))


def _lines(given: Invocation, resources: Sequence[Resource]) -> list[str]:
    wide = given.output == "wide"
    text = [] if given.no_headers else ["\t".join([*HEADERS, *(["VERBS", "CATEGORIES"] if wide else [])])]
    for one in resources:
        cells = [one.plural, ",".join(one.short_names), one.api_version, str(one.namespaced).lower(), one.kind]
        if wide:
            cells += [",".join(one.verbs), ",".join(one.categories)]
        text.append("\t".join(cells))
    return text


def _list(resources: Sequence[Resource]) -> Object:
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "",
            "resources": [_described(one) for one in resources]}


def _described(one: Resource) -> Object:
    """With its fields in the order of Go's type (``metav1.APIResource``)."""
    return {"name": one.plural, "singularName": one.singular_name, "namespaced": one.namespaced,
            **({"group": one.group} if one.group else {}), "version": one.version, "kind": one.kind,
            "verbs": list(one.verbs), **({"shortNames": list(one.short_names)} if one.short_names else {}),
            **({"categories": list(one.categories)} if one.categories else {})}


@verb("api-versions", "api-versions", examples="""
# Every group and version
kubepy api-versions

# Whether there is a version
kubepy api-versions | grep -x apps/v1
""")
def api_versions(factory: Factory, given: Invocation) -> None:
    """Print the supported API versions, in the form of "group/version"."""
    if given.args:
        given.usage_error(printable(f"unexpected arguments: [{' '.join(given.args)}]"))
    versions = {f"{one.group}/{version}".lstrip("/") for one in factory.scheme
                for version in (one.version, *one.other_versions)}
    for version in sorted(versions):
        factory.print(version)
