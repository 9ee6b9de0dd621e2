"""``kubepy annotate``. Upstream: ``kubectl/pkg/cmd/annotate/annotate.go``."""

from __future__ import annotations

from kubepy.cli.errors import CliError
from kubepy.cli.runtime import metadata_changes
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flagsets import dry_run, pairs_from
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.metadata_changes import Changes, is_local, print_list, send, values_of, with_values
from kubepy.cli.runtime.objects import CHANGE_CAUSE
from kubepy.cli.runtime.output import Printer, printer_for
from kubepy.cli.runtime.verbs import Invocation, verb


@verb("annotate", "annotate [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N",
      flags=metadata_changes.flags("annotate", "kubectl-annotate", "annotations"), examples="""
# Say why the next revision comes
kubepy annotate ds/nginx-ds kubernetes.io/change-cause='nginx 1.26'

# Make the pods of a node fail
kubepy annotate node node-2 kubepy.dev/pod-outcome=crash-loop

# Remove an annotation
kubepy annotate node node-2 kubepy.dev/pod-outcome-
""")
def annotate(factory: Factory, given: Invocation) -> None:
    """Update the annotations on a resource.

    KEY=VALUE sets an annotation, KEY- removes it. One that has a value already is only changed with --overwrite."""
    strategy = dry_run(factory, given)
    printer = printer_for(factory, given, "annotated", strategy)
    resources, words = pairs_from(given.args, "annotation")
    changes = Changes("annotations", *parse_annotations(words), strategy)
    metadata_changes.validate(given, resources, changes, "rsrc")
    both = [key for key in changes.remove if key in changes.set]
    if both:
        raise CliError("can not both modify and remove the following annotation(s) in the same command: "
                       f"{', '.join(both)}")
    result = metadata_changes.found(factory, given, resources)
    result.visit(lambda info: annotate_one(factory, given, info, changes, printer, single=result.single))


def parse_annotations(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The annotations to set and to remove."""
    wanted = dict(word.split("=", 1) for word in words if "=" in word and word[0] != "=")
    return wanted, [word[:-1] for word in words if not ("=" in word and word[0] != "=")]


def annotate_one(factory: Factory, given: Invocation, info: Info, changes: Changes, printer: Printer, *,
                 single: bool) -> None:
    _check_overwrites(given, info, changes)
    if given.list:
        print_list(factory, info, changes, single=single)
    elif is_local(given, changes):
        printer(with_values(info, changes))
    else:
        printer(send(factory, given, info, changes))


def _check_overwrites(given: Invocation, info: Info, changes: Changes) -> None:
    if given.overwrite:
        return
    before = values_of(info, "annotations")
    found = [f"'{key}' already has a value ({before[key]})" for key, value in changes.set.items()
             if key != CHANGE_CAUSE and before.get(key, value) != value]
    if found:
        raise CliError(f"--overwrite is false but found the following declared annotation(s): {'; '.join(found)}")
