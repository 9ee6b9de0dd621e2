"""``kubepy label``. Upstream: ``kubectl/pkg/cmd/label/label.go``."""

from __future__ import annotations

from kubepy.cli.errors import CliError, raise_all
from kubepy.cli.runtime import metadata_changes
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flagsets import dry_run, pairs_from
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.metadata_changes import Changes, is_local, print_list, send, values_of, with_values
from kubepy.cli.runtime.objects import record
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.quoting import quote


@verb("label", "label [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N",
      flags=metadata_changes.flags("label", "kubectl-label", "labels"), examples="""
# Give a node a label
kubepy label node node-1 disk=ssd

# Change it, and take another away
kubepy label node node-1 disk=nvme zone- --overwrite

# Label all pods of a namespace
kubepy label pods --all checked=yes -n edge
""")
def label(factory: Factory, given: Invocation) -> None:
    """Update the labels on a resource.

    KEY=VALUE sets a label, KEY- removes it. A label that has a value already is only changed with --overwrite."""
    strategy = dry_run(factory, given)
    resources, words = pairs_from(given.args, "label")
    changes = Changes("labels", *parse_labels(words), strategy)
    if given.list and given.output:
        raise CliError("--list and --output may not be specified together")
    metadata_changes.validate(given, resources, changes, "pod")
    result = metadata_changes.found(factory, given, resources)
    result.visit(lambda info: label_one(factory, given, info, changes, single=result.single))


def parse_labels(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The labels to set and to remove. Raises CliError."""
    wanted: dict[str, str] = {}
    remove: list[str] = []
    for word in words:
        if "=" in word:
            key, _, value = word.partition("=")
            if "=" in value:
                raise CliError(f"invalid label spec: {word}")
            _check_value(word, value)
            wanted[key] = value
        else:
            remove.append(word[:-1])
    if any(key in wanted for key in remove):
        raise CliError("can not both modify and remove a label in the same command")
    return wanted, remove


def _check_value(word: str, value: str) -> None:
    from kubepy.api.values.names import label_value

    problems = label_value(value)
    if problems:
        raise CliError(f'invalid label value: {quote(word)}: {";".join(problems)}')


def label_one(factory: Factory, given: Invocation, info: Info, changes: Changes, *, single: bool) -> None:
    if given.list:
        _check_overwrites(given, info, changes)
        print_list(factory, info, changes, single=single)
        return
    before = values_of(info, "labels")
    if not is_local(given, changes):
        for key in changes.remove:
            if key not in before:
                factory.print(f"label {quote(key)} not found.")
    _check_overwrites(given, info, changes)
    added = any(before.get(key) != value for key, value in changes.set.items())
    removed = any(key in before for key in changes.remove)
    if (added or removed) and not is_local(given, changes):
        send(factory, given, info, changes)
    obj = with_values(info, changes)
    if given.record and not is_local(given, changes):
        record(obj, given)
    printer_for(factory, given, _operation(added, removed), changes.dry_run)(obj)


def _check_overwrites(given: Invocation, info: Info, changes: Changes) -> None:
    if given.overwrite:
        return
    before = values_of(info, "labels")
    raise_all([CliError(f"'{key}' already has a value ({before[key]}), and --overwrite is false")
               for key, value in changes.set.items() if before.get(key, value) != value])


def _operation(added: bool, removed: bool) -> str:
    if added and removed:
        return "modified"
    if added:
        return "labeled"
    return "unlabeled" if removed else "not labeled"
