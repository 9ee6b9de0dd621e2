"""``kubepy get``: objects as tables or in any output format. Upstream:
``kubectl/pkg/cmd/get/get.go``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.cli.errors import AggregateError, CliError, raise_together
from kubepy.cli.get_flags import GetOptions, style_for
from kubepy.cli.runtime.builder import Builder, objects_of
from kubepy.cli.runtime.command import command, ticking
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.infos import Result
from kubepy.cli.runtime.tables import Style, format_lines, lines
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api import selectors
    from kubepy.cli import get_output, raw, watch
    from kubepy.cli.runtime import sorting

ACCEPT_TABLES = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s."
    "io,"
    "application/json"
)

PRINTED_TOGETHER = 20  # rows that are made at once


class Group(NamedTuple):
    """The objects that a server would answer one request with: those of a type, or one object that
    was named."""

    resource: Resource
    objects: Iterable[Object]  # which is possible once


@ticking
@command(
    "get [(-o|--output=)FORMAT] (TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE/NAME ...) [flags]",
    GetOptions,
    examples="""
# All DaemonSets, with more columns
kubepy get ds -o wide

# The pods of a namespace
kubepy get pods -n kube-system

# The pods of all namespaces, sorted by their nodes
kubepy get pods -A --sort-by=.spec.nodeName

# The pods with a label, and a column for another label
kubepy get pods -l app=web -L pod-template-hash

# Objects of several types
kubepy get deploy,services,configmaps

# Single objects of different types
kubepy get deploy/web service/web cm/settings

# One object as YAML
kubepy get sts store -o yaml

# In a version of its API group
kubepy get deployments.v1.apps web -o json

# One field of one object
kubepy get ds/log-agent -o jsonpath='{.status.numberReady}'

# The same by a Go template
kubepy get pod/task -o go-template='{{.status.phase}}'

# Columns of one's own
kubepy get pods -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[*].image

# The object that a file names, as it is in the cluster
kubepy get -f web.yaml

# The objects of a kustomization
kubepy get -k overlays/production

# A subresource of an object
kubepy get deploy web --subresource=scale

# The pods of a node
kubepy get pods -A --field-selector=spec.nodeName=node-1
""",
)
def get(factory: Factory, options: GetOptions) -> None:
    """Display one or many resources.

    Prints a table of the most important information; -o chooses another format."""
    if options.raw:
        raw.get(factory, options)
        return
    watching = options.watch or options.watch_only
    if not (options.args or options.filename or options.kustomize or watching):
        factory.say(
            'You must specify the type of resource to get. Use "kubepy api-resources" for a '
            "complete list of "
            "supported resources.\n"
        )
        options.usage_error(
            'Required resource not specified.\nUse "kubepy explain <resource>" for a detailed '
            "description of that resource (e.g. kubepy explain pods)."
        )

    if options.show_labels and options.output not in ("", "wide"):
        raise CliError(f"--show-labels option cannot be used with {options.output} printer")
    if options.output_watch_events and not watching:
        raise CliError("--output-watch-events option can only be used with --watch or --watch-only")
    if options.wants_table and options.server_print:
        factory.request_headers = {"Accept": ACCEPT_TABLES}
        factory.request_parameters = {"includeObject": "Object"} if options.sort_by else {}
    if watching:
        watch.watch(factory, options)
        return
    result = Builder(factory, options, bare_types=True, latest=True).do()
    if options.ignore_not_found:
        result.ignore_not_found()
    if options.wants_table:
        _print_tables(factory, options, result)
    else:
        get_output.print_objects(factory, options, result)


# --- tables ---------------------------------------------------------------------------------------


def _print_tables(factory: Factory, options: GetOptions, result: Result) -> None:
    groups, errors = groups_of(
        factory, result, at_once=bool(options.sort_by) or not options.server_print
    )
    if options.selector and (options.filename or options.kustomize):
        # kubectl reads the objects of files as tables, and matches the selector with those, which
        # have no labels.
        groups = groups if selectors.parse_labels(options.selector).matches({}) else []

    if options.sort_by and groups:
        if options.server_print:
            groups = _sorted_tables(factory, options.sort_by, groups)
        # objects that did not come as tables are sorted whatever their types: a group of each
        else:
            single = [
                {**obj, "group": Group(group.resource, [obj])}
                for group in groups
                for obj in group.objects
            ]
            in_order = sorting.sorted_by(options.sort_by, single) if len(single) > 1 else single
            groups = [obj["group"] for obj in in_order]

    style = options.style
    kinds = {
        group.resource.key for group in groups if options.server_print or group.objects
    }  # tables come empty too
    style = style._replace(with_kind=style.with_kind or len(kinds) > 1)
    written = False
    for resource, objects in _by_type(groups):
        style = style_for(resource, options, style)
        if text := _lines(factory, resource, objects, style):
            factory.print(
                ("\n" if written and not options.no_headers else "") + format_lines(text), end=""
            )
            written = True

    if not written and not options.ignore_not_found and not errors:
        namespaced = not options.all_namespaces and all(
            group.resource.namespaced for group in groups
        )
        place = f" in {printable(factory.namespace)} namespace." if namespaced else ""
        factory.say(f"No resources found{place}")

    raise_together(errors)


def groups_of(
    factory: Factory, result: Result, *, at_once: bool
) -> tuple[list[Group], list[Exception]]:
    """Return the objects as a server would answer with them, and the errors. ``at_once``: see
    ``objects_of``."""
    if not result.scopes:
        infos, errors = result.infos()
        return [Group(info.resource, [info.content]) for info in infos], errors
    groups: list[Group] = []
    errors = []
    for scope in result.scopes:
        objects = objects_of(factory, scope, at_once=at_once)
        if isinstance(objects, Exception):
            errors.append(AggregateError([objects]))
        else:
            groups.append(Group(scope.resource, objects))
    return groups, errors


def _lines(
    factory: Factory, resource: Resource, objects: Iterable[Object], style: Style
) -> list[str]:
    """Return the lines of a table; of the objects only a few are in memory at a time."""
    now = factory.cluster.clock.now()
    objects = iter(objects)
    text = lines(resource, list(islice(objects, PRINTED_TOGETHER)), style, now)
    while part := list(islice(objects, PRINTED_TOGETHER)):
        text += lines(resource, part, style._replace(headers=False), now)
    return text


def _by_type(groups: list[Group]) -> list[Group]:
    """Join neighbouring groups of one type."""
    merged: list[Group] = []
    for resource, objects in groups:
        if merged and merged[-1].resource.key == resource.key:
            merged[-1] = Group(resource, chain(merged[-1].objects, objects))
        else:
            merged.append(Group(resource, objects))
    return merged


def _sorted_tables(factory: Factory, field: str, groups: list[Group]) -> list[Group]:
    """Sort groups as kubectl sorts tables.

    Several tables are sorted by the field of the tables themselves, which have kind, apiVersion and
    resourceVersion, and the rows of each by the field of its objects; rows without the field are
    not shown.
    """
    if len(groups) > 1:
        tables = []
        for group in groups:
            objects = list(group.objects)
            version = objects[0]["metadata"].get("resourceVersion") if len(objects) == 1 else None
            meta = {"resourceVersion": version or str(factory.client.revision())}
            tables.append(
                {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "group": group}
            )
        groups = [table["group"] for table in sorting.sorted_by(field, tables)]
    return [_sorted_rows(field, group) for group in groups]


def _sorted_rows(field: str, group: Group) -> Group:
    objects = list(group.objects)
    if len(objects) < 2:
        return group
    try:
        return group._replace(objects=sorting.sorted_by(field, objects))
    except sorting.UnsortableError:
        raise
    except CliError:
        return group._replace(objects=[])
