"""``kubepy label``. Upstream: ``kubectl/pkg/cmd/label/label.go``."""

from __future__ import annotations

from kubepy.cli.errors import CliError, raise_all
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.metadata_changes import (
    MetadataChanges,
    MetadataOptions,
    find_objects,
    is_local,
    print_list,
    send,
    values_of,
    with_values,
)
from kubepy.cli.runtime.objects import record
from kubepy.cli.runtime.options import field_manager_flag, filename_flag, local_flag, split_args
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api.values import names


class LabelOptions(MetadataOptions):
    """The flags of ``label``."""

    overwrite: bool = bool_flag(
        "overwrite",
        help="If true, allow labels to be overwritten, otherwise reject updates "
        "that overwrite existing labels.",
    )
    list_: bool = bool_flag("list", help="If true, display the labels for a given resource.")
    local: bool = local_flag("label")
    filename: list[str] = filename_flag("identifying the resource to update the labels")
    field_manager: str = field_manager_flag("kubectl-label")


@command(
    "label [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N",
    LabelOptions,
    examples="""
# Label a node
kubepy label node node-1 disk=ssd

# Change a label, and remove another
kubepy label node node-1 disk=nvme zone- --overwrite

# Several labels at once
kubepy label deploy web tier=front team=shop

# All pods of a namespace
kubepy label pods --all checked=yes -n shop

# The object of a file
kubepy label -f web.yaml stage=test

# Only if nobody has changed the object since it had this version
kubepy label cm settings stage=test --resource-version=1

# List the labels of an object
kubepy label node node-1 --list
""",
)
def label(factory: Factory, options: LabelOptions) -> None:
    """Update the labels on a resource.

    KEY=VALUE sets a label, KEY- removes it. A label that has a value already is only changed with --overwrite."""  # noqa: E501
    strategy = factory.dry_run_strategy(options)
    resources, words = split_args(options.args, "label")
    changes = MetadataChanges("labels", *parse_labels(words), strategy)
    if options.list_ and options.output:
        raise CliError("--list and --output may not be specified together")
    options.validate(resources, changes, "pod")
    result = find_objects(factory, options, resources)
    result.visit(lambda info: label_one(factory, options, info, changes, single=result.single))


def parse_labels(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the labels to set, and the keys to remove. Raises CliError."""
    values: dict[str, str] = {}
    remove: list[str] = []
    for word in words:
        if "=" in word:
            key, _, value = word.partition("=")
            if "=" in value:
                raise CliError(f"invalid label spec: {word}")
            if problems := names.label_value(value):
                raise CliError(f"invalid label value: {quote(word)}: {';'.join(problems)}")
            values[key] = value
        else:
            remove.append(word[:-1])

    if any(key in values for key in remove):
        raise CliError("can not both modify and remove a label in the same command")
    return values, remove


def label_one(
    factory: Factory, options: LabelOptions, info: Info, changes: MetadataChanges, *, single: bool
) -> None:
    before = values_of(info, "labels")
    if not is_local(options, changes):
        for key in changes.remove:
            if key not in before:
                factory.print(f"label {quote(key)} not found.")

    if not options.overwrite:
        raise_all(
            [
                CliError(f"'{key}' already has a value ({before[key]}), and --overwrite is false")
                for key, value in changes.set.items()
                if before.get(key, value) != value
            ]
        )

    if options.list_:
        print_list(factory, info, changes, single=single)
        return
    added = any(before.get(key) != value for key, value in changes.set.items())
    removed = any(key in before for key in changes.remove)
    if (added or removed) and not is_local(options, changes):
        send(factory, options, info, changes)
    obj = with_values(info, changes)
    if options.record and not is_local(options, changes):
        record(obj, options)
    operation = {
        (True, True): "modified",
        (True, False): "labeled",
        (False, True): "unlabeled",
        (False, False): "not labeled",
    }[added, removed]
    printer_for(factory, options, operation, changes.dry_run)(obj)
