"""``kubepy get``: objects as tables or in any output format. Upstream: ``kubectl/pkg/cmd/get/get.go``."""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError, raise_all, raise_together
from kubepy.cli.runtime.command import Invocation, verb
from kubepy.cli.runtime.flags import boolean, string, strings
from kubepy.cli.runtime.flagsets import (
    all_namespaces_flag,
    chunk_size_flag,
    field_selector_flag,
    filename_flags,
    output_flags,
    selector_flag,
    subresource_flag,
)
from kubepy.cli.runtime.getting import for_type, is_table, object_printer, style_of
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.resources import find, listed
from kubepy.cli.runtime.session import Session
from kubepy.cli.runtime.tables import format_lines, lines
from kubepy.quoting import printable

FLAGS = [
    boolean("watch", "w", help="After listing/getting the requested object, watch for changes."),
    boolean("watch-only", help="Watch for changes to the requested object(s), without listing/getting first."),
    boolean("output-watch-events", help="Output watch event objects when --watch or --watch-only is used."),
    boolean("ignore-not-found", help="Suppress NotFound errors for objects that were named."),
    all_namespaces_flag(),
    selector_flag(),
    field_selector_flag(),
    *filename_flags("identifying the resource to get from the cluster."),
    chunk_size_flag(),
    subresource_flag("get"),
    *output_flags("json|yaml|kyaml|name|go-template|go-template-file|template|templatefile|jsonpath|jsonpath-as-json|"
                  "jsonpath-file|custom-columns|custom-columns-file|wide"),
    boolean("no-headers", help="When using the default or custom-column output format, don't print headers."),
    boolean("show-labels", help="When printing, show all labels as the last column."),
    strings("label-columns", "L", help="Labels that are going to be presented as columns."),
    boolean("show-kind", help="If present, list the resource type for the requested object(s)."),
    string("sort-by", help="If non-empty, sort list types using this field specification, a JSONPath expression "
           "(e.g. '{.metadata.name}')."),
    boolean("server-print", default=True, help="If false, tables show names and ages only."),
    string("raw", help="The path of a request, e.g. /api/v1/nodes or /readyz: print what a server would answer."),
]


class Group(NamedTuple):
    """The objects of one type, or one object that was named: what a server would answer one request with."""

    resource: Resource
    objects: list[Object]


@verb("get", "get [(-o|--output=)FORMAT] (TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE/NAME ...) [flags]",
      flags=FLAGS, examples="""
# All DaemonSets, with more columns
kubepy get ds -o wide

# The pods of a DaemonSet in the order of their nodes
kubepy get pods -l app=nginx-ds --sort-by=.spec.nodeName

# One field of one object
kubepy get ds/nginx-ds -o jsonpath='{.status.numberReady}'
""")
def get(session: Session, given: Invocation) -> None:
    """Display one or many resources.

    Prints a table of the most important information; -o chooses another format."""
    if given.raw:
        from kubepy.cli import raw

        raw.validate(given)
        session.print(raw.answer(session, given.raw), end="")
        return
    complete(session, given)
    validate(given)
    if given.watch or given.watch_only:
        from kubepy.cli.watch import watch

        watch(session, given)
        return
    result = find(session, given, bare_types=True, latest=True)
    if given.ignore_not_found:
        result.ignore_not_found()
    if is_table(given):
        _print_tables(session, given, result)
    else:
        _print_objects(session, given, result)


def complete(session: Session, given: Invocation) -> None:
    watching = given.watch or given.watch_only
    if not given.args and not given.filename and not given.kustomize and not watching:
        session.say('You must specify the type of resource to get. Use "kubepy api-resources" for a complete list of '
                    "supported resources.\n")
        given.usage_error('Required resource not specified.\nUse "kubepy explain <resource>" for a detailed '
                          "description of that resource (e.g. kubepy explain pods).")


def validate(given: Invocation) -> None:
    if given.show_labels and given.output not in ("", "wide"):
        raise CliError(f"--show-labels option cannot be used with {given.output} printer")
    if given.output_watch_events and not (given.watch or given.watch_only):
        raise CliError("--output-watch-events option can only be used with --watch or --watch-only")


# --- tables -------------------------------------------------------------------------------------------------------


def _print_tables(session: Session, given: Invocation, result: Result) -> None:
    groups, errors = groups_of(session, result)
    if not _selects_tables(given):
        groups = []
    if given.sort_by and groups:
        groups = (_sorted_groups(session, given.sort_by, groups) if given.server_print
                  else _sorted_objects(given.sort_by, groups))
    style = style_of(given)
    kinds = {group.resource.key for group in groups if given.server_print or group.objects}  # tables come empty too
    style = style._replace(with_kind=style.with_kind or len(kinds) > 1)
    written = False
    for resource, objects in _by_type(groups):
        style = for_type(style, given, resource)
        text = lines(resource, objects, style, session.cluster.clock.now())
        if text:
            session.print(("\n" if written and not given.no_headers else "") + format_lines(text), end="")
            written = True
    if not written and not given.ignore_not_found and not errors:
        namespaced = not given.all_namespaces and all(group.resource.namespaced for group in groups)
        place = f" in {printable(session.namespace)} namespace." if namespaced else ""
        session.say(f"No resources found{place}")
    raise_together(errors)


def _selects_tables(given: Invocation) -> bool:
    """kubectl gets what files name as tables, and holds the selector against these, which have no labels."""
    if not given.selector or not (given.filename or given.kustomize):
        return True
    from kubepy.api.selectors import parse_labels

    return parse_labels(given.selector).matches({})


def groups_of(session: Session, result: Result) -> tuple[list[Group], list[Exception]]:
    if not result.scopes:
        infos, errors = result.infos()
        return [Group(info.resource, [info.content]) for info in infos], errors
    groups: list[Group] = []
    errors = []
    for scope in result.scopes:
        infos, failed = Result(listed(session, scope)).infos()
        errors += failed
        if not failed:
            groups.append(Group(scope.resource, [info.content for info in infos]))
    return groups, errors


def _by_type(groups: list[Group]) -> list[Group]:
    """Neighbouring groups of one type as one."""
    merged: list[Group] = []
    for resource, objects in groups:
        if merged and merged[-1].resource.key == resource.key:
            merged[-1] = Group(resource, merged[-1].objects + objects)
        else:
            merged.append(Group(resource, objects))
    return merged


def _sorted_groups(session: Session, field: str, groups: list[Group]) -> list[Group]:
    """As kubectl sorts tables: several of them by the field of the tables themselves, which have kind, apiVersion and
    resourceVersion, and the rows of each by the field of its objects; rows that have no such field are not shown."""
    from kubepy.cli.runtime.sorting import sorted_by

    if len(groups) > 1:
        tables = [{**_table(session, group), "group": group} for group in groups]
        groups = [one["group"] for one in sorted_by(field, tables)]
    return [_sorted_rows(field, group) for group in groups]


def _sorted_objects(field: str, groups: list[Group]) -> list[Group]:
    """Objects that did not come as tables, sorted whatever they are: a group of each."""
    from kubepy.cli.runtime.sorting import sorted_by

    single = [{**obj, "group": Group(group.resource, [obj])} for group in groups for obj in group.objects]
    return [one["group"] for one in (sorted_by(field, single) if len(single) > 1 else single)]


def _table(session: Session, group: Group) -> Object:
    """What a sorted table has beside its columns and rows."""
    version = group.objects[0]["metadata"].get("resourceVersion") if len(group.objects) == 1 else None
    return {"kind": "Table", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": version or str(session.client.revision())}}


def _sorted_rows(field: str, group: Group) -> Group:
    from kubepy.cli.runtime.sorting import UnsortableError, sorted_by

    if len(group.objects) < 2:
        return group
    try:
        return group._replace(objects=sorted_by(field, group.objects))
    except UnsortableError:
        raise
    except CliError:
        return group._replace(objects=[])


# --- other formats ------------------------------------------------------------------------------------------------


def _print_objects(session: Session, given: Invocation, result: Result) -> None:
    infos, errors = result.infos()
    if errors and result.single:
        raise_all(errors)
    if not infos and given.ignore_not_found:
        raise_together(errors)
        return
    printer = object_printer(session, given)
    if result.single and len(infos) == 1:
        printer(_sorted_list(given, infos[0].content))
    else:
        printer(_sorted_list(given, list_of(infos)))
    raise_together(errors)


def list_of(infos: list[Info]) -> Object:
    return {"apiVersion": "v1", "items": [info.content for info in infos], "kind": "List",
            "metadata": {"resourceVersion": ""}}


def _sorted_list(given: Invocation, obj: Object) -> Object:
    if not given.sort_by or not isinstance(obj.get("items"), list):
        return obj
    from kubepy.cli.runtime.sorting import sorted_by

    return {**obj, "items": sorted_by(given.sort_by, obj["items"])}
