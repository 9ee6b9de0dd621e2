"""The parts that ``label`` and ``annotate`` share: which map of metadata changes, and the patch
that changes it.

Upstream: ``kubectl/pkg/cmd/label/label.go``, ``annotate/annotate.go``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.apiserver.request import MERGE_PATCH, Patch, PatchOptions
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.objects import CHANGE_CAUSE, command_line
from kubepy.cli.runtime.options import (
    CLIENT,
    SERVER,
    AllNamespacesOptions,
    DryRunOptions,
    FieldManagerOptions,
    FieldSelectorOptions,
    KustomizeOptions,
    LocalOptions,
    PrintFlags,
    RecordOptions,
    SelectorOptions,
)
from kubepy.quoting import printable


class MetadataOptions(
    PrintFlags,
    LocalOptions,
    SelectorOptions,
    FieldSelectorOptions,
    AllNamespacesOptions,
    KustomizeOptions,
    DryRunOptions,
    FieldManagerOptions,
    RecordOptions,
):
    """The flags of ``label`` and ``annotate``, which add texts of their own."""

    overwrite: bool = bool_flag("overwrite")
    list_: bool = bool_flag("list")
    all: bool = bool_flag(
        "all", help="Select all resources, in the namespace of the specified resource types."
    )
    resource_version: str = string_flag(
        "resource-version",
        help="If non-empty, the update will only succeed if this "
        "is the current resource-version for the object. Only valid when specifying "
        "a single resource.",
    )

    def validate(self, resources: Sequence[str], changes: MetadataChanges, example: str) -> None:
        """Raise CliError for flags and words that contradict each other or say too little."""
        if self.all and self.selector:
            raise CliError("cannot set --all and --selector at the same time")
        if self.all and self.field_selector:
            raise CliError("cannot set --all and --field-selector at the same time")
        has_files = bool(self.filename or self.kustomize)
        if self.local:
            if changes.dry_run == SERVER:
                raise CliError(
                    "cannot specify --local and --dry-run=server - did you mean --dry-run=client?"
                )
            if resources:
                raise CliError(
                    f"can only use local files by -f {example}.yaml or --filename={example}.json "
                    f"when "
                    "--local=true is set"
                )
            if not has_files:
                raise CliError(
                    f"one or more files must be specified as -f {example}.yaml or "
                    f"--filename={example}.json"
                )
        elif not resources and not has_files:
            raise CliError(
                "one or more resources must be specified as <resource> <name> or <resource>/<name>"
            )

        if not changes.set and not changes.remove and not self.list_:
            raise CliError(f"at least one {changes.field.removesuffix('s')} update is required")


class MetadataChanges(NamedTuple):
    """The keys to set, in the order of the words, and to remove in ``field`` (``labels`` or
    ``annotations``)."""

    field: str
    set: Mapping[str, str]
    remove: Sequence[str]
    dry_run: str


def find_objects(factory: Factory, options: MetadataOptions, resources: Sequence[str]) -> Result:
    """Find the objects to change. Raises CliError for --resource-version with several."""
    result = Builder(
        factory,
        options,
        args=resources,
        bare_types=options.all,
        latest=not options.local,
        local=options.local,
    ).do()
    if options.resource_version and not result.single:
        raise CliError("--resource-version may only be used with a single resource")
    return result


def values_of(info: Info, field: str) -> dict[str, str]:
    return info.content["metadata"].get(field) or {}


def changed_values(info: Info, changes: MetadataChanges) -> dict[str, str]:
    """Return the map with the changes."""
    values = {**values_of(info, changes.field), **changes.set}
    return {key: value for key, value in values.items() if key not in changes.remove}


def with_values(info: Info, changes: MetadataChanges) -> Object:
    """Return a copy of the object with the changes."""
    meta = {**info.content["metadata"], changes.field: changed_values(info, changes)}
    return {**info.content, "metadata": meta}


def is_local(options: MetadataOptions, changes: MetadataChanges) -> bool:
    return bool(options.local or options.list_ or changes.dry_run == CLIENT)


def send(
    factory: Factory, options: MetadataOptions, info: Info, changes: MetadataChanges
) -> Object:
    """Patch the map in the cluster, with the change cause of --record; returns the patched
    object."""
    meta: Object = {"annotations": {CHANGE_CAUSE: command_line(options)}} if options.record else {}
    meta[changes.field] = {
        **meta.get(changes.field, {}),
        **changes.set,
        **dict.fromkeys(changes.remove),
    }
    if options.resource_version:
        meta["resourceVersion"] = options.resource_version
    return factory.client.patch(
        info.resource.gvr,
        info.name,
        Patch(MERGE_PATCH, {"metadata": meta}),
        namespace=info.namespace,
        options=PatchOptions(
            dry_run=changes.dry_run == SERVER, field_manager=options.field_manager
        ),
    )


def print_list(factory: Factory, info: Info, changes: MetadataChanges, *, single: bool) -> None:
    """Print the map with the changes (``--list``); a heading names the object, unless it is the
    only one."""
    indent = "" if single else " "
    if not single:
        subject = printable(f"{info.resource.kind}.{info.resource.group}/{info.name}")
        factory.print(f"Listing {changes.field} for {subject}:")
    values = changed_values(info, changes)
    for key in sorted(values):
        factory.print(f"{indent}{key}={values[key]}")
