"""What ``label`` and ``annotate`` share: which map of metadata changes how, and the patch that does it.

Upstream: ``kubectl/pkg/cmd/label/label.go``, ``annotate/annotate.go``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.apiserver.request import Patch, PatchOptions
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    SERVER,
    all_namespaces_flag,
    dry_run_flag,
    field_manager_flag,
    field_selector_flag,
    filename_flags,
    local_flag,
    output_flags,
    record_flag,
    selector_flag,
)
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.objects import CHANGE_CAUSE, command_line
from kubepy.cli.runtime.verbs import Invocation, find
from kubepy.quoting import printable


class Changes(NamedTuple):
    """``field`` is ``labels`` or ``annotations``; ``set`` in the order given."""

    field: str
    set: Mapping[str, str]
    remove: Sequence[str]
    dry_run: str


def flags(verb: str, manager: str, what: str) -> list[Flag]:
    return [
        *output_flags(),
        boolean("overwrite", help=f"If true, allow {what} to be overwritten, otherwise reject updates that overwrite "
                f"existing {what}."),
        boolean("list", help=f"If true, display the {what} for a given resource."),
        local_flag(verb),
        selector_flag(),
        field_selector_flag(),
        boolean("all", help="Select all resources, in the namespace of the specified resource types."),
        all_namespaces_flag(),
        string("resource-version", help="If non-empty, the update will only succeed if this is the current "
               "resource-version for the object. Only valid when specifying a single resource."),
        *filename_flags(f"identifying the resource to update the {what}"),
        dry_run_flag(),
        field_manager_flag(manager),
        record_flag(),
    ]


def validate(given: Invocation, resources: Sequence[str], changes: Changes, example: str) -> None:
    """Raise CliError for flags and words that contradict each other or say too little."""
    if given.all and given.selector:
        raise CliError("cannot set --all and --selector at the same time")
    if given.all and given.field_selector:
        raise CliError("cannot set --all and --field-selector at the same time")
    has_files = bool(given.filename or given.kustomize)
    if given.local:
        _validate_local(resources, changes, has_files, example)
    elif not resources and not has_files:
        raise CliError("one or more resources must be specified as <resource> <name> or <resource>/<name>")
    if not changes.set and not changes.remove and not given.list:
        raise CliError(f"at least one {changes.field.removesuffix('s')} update is required")


def _validate_local(resources: Sequence[str], changes: Changes, has_files: bool, example: str) -> None:
    if changes.dry_run == SERVER:
        raise CliError("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")
    if resources:
        raise CliError(f"can only use local files by -f {example}.yaml or --filename={example}.json when --local=true "
                       "is set")
    if not has_files:
        raise CliError(f"one or more files must be specified as -f {example}.yaml or --filename={example}.json")


def found(factory: Factory, given: Invocation, resources: Sequence[str]) -> Result:
    result = find(factory, given, args=resources, bare_types=given.all, latest=not given.local, local=given.local)
    if given.resource_version and not result.single:
        raise CliError("--resource-version may only be used with a single resource")
    return result


def values_of(info: Info, field: str) -> dict[str, str]:
    return info.content["metadata"].get(field) or {}


def changed_values(info: Info, changes: Changes) -> dict[str, str]:
    """The map as it is to be."""
    values = {**values_of(info, changes.field), **changes.set}
    return {key: value for key, value in values.items() if key not in changes.remove}


def with_values(info: Info, changes: Changes) -> Object:
    """A copy of the object with the map as it is to be."""
    meta = {**info.content["metadata"], changes.field: changed_values(info, changes)}
    return {**info.content, "metadata": meta}


def is_local(given: Invocation, changes: Changes) -> bool:
    return bool(given.local or given.list or changes.dry_run == CLIENT)


def send(factory: Factory, given: Invocation, info: Info, changes: Changes) -> Object:
    """Patch the map in the cluster, with the change cause of --record; returns the object as it is then."""
    from kubepy.apiserver.request import MERGE_PATCH

    meta: Object = {"annotations": {CHANGE_CAUSE: command_line(given)}} if given.record else {}
    meta[changes.field] = {**meta.get(changes.field, {}), **changes.set, **dict.fromkeys(changes.remove)}
    if given.resource_version:
        meta["resourceVersion"] = given.resource_version
    return factory.client.patch(info.resource.gvr, info.name, Patch(MERGE_PATCH, {"metadata": meta}),
                                namespace=info.namespace,
                                options=PatchOptions(dry_run=changes.dry_run == SERVER,
                                                     field_manager=given.field_manager))


def print_list(factory: Factory, info: Info, changes: Changes, *, single: bool) -> None:
    indent = "" if single else " "
    if not single:
        subject = printable(f"{info.resource.kind}.{info.resource.group}/{info.name}")
        factory.print(f"Listing {changes.field} for {subject}:")
    values = changed_values(info, changes)
    for key in sorted(values):
        factory.print(f"{indent}{key}={values[key]}")
