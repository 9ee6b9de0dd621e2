"""``kubepy annotate``. Upstream: ``kubectl/pkg/cmd/annotate/annotate.go``."""

from __future__ import annotations

from kubepy.cli.errors import CliError
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
from kubepy.cli.runtime.objects import CHANGE_CAUSE
from kubepy.cli.runtime.options import field_manager_flag, filename_flag, local_flag, split_args
from kubepy.cli.runtime.output import printer_for


class AnnotateOptions(MetadataOptions):
    """The flags of ``annotate``."""

    overwrite: bool = bool_flag(
        "overwrite",
        help="If true, allow annotations to be overwritten, otherwise reject "
        "updates that overwrite existing annotations.",
    )
    list_: bool = bool_flag("list", help="If true, display the annotations for a given resource.")
    local: bool = local_flag("annotate")
    filename: list[str] = filename_flag("identifying the resource to update the annotations")
    field_manager: str = field_manager_flag("kubectl-annotate")


@command(
    "annotate [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N",
    AnnotateOptions,
    examples="""
# Say why a workload was changed: rollout history shows it
kubepy annotate ds/log-agent kubernetes.io/change-cause='fluent-bit 3.1'

# Change an annotation
kubepy annotate deploy/web owner=shop-team --overwrite

# Remove an annotation, if there is one
kubepy annotate deploy/web owner-

# Annotate all pods with a label
kubepy annotate pods -l app=web inspected=yes

# All pods of a namespace
kubepy annotate pods --all inspected=no -n shop

# The object of a file
kubepy annotate -f web.yaml note='made by hand'

# Only if nobody has changed the object since it had this version
kubepy annotate cm settings note=seen --resource-version=1

# List the annotations of an object
kubepy annotate deploy/web --list
""",
)
def annotate(factory: Factory, options: AnnotateOptions) -> None:
    """Update the annotations on a resource.

    KEY=VALUE sets an annotation, KEY- removes it. One that has a value already is only changed with --overwrite."""  # noqa: E501
    strategy = factory.dry_run_strategy(options)
    printer = printer_for(factory, options, "annotated", strategy)
    resources, words = split_args(options.args, "annotation")
    changes = MetadataChanges("annotations", *parse_annotations(words), strategy)
    options.validate(resources, changes, "rsrc")
    both = [key for key in changes.remove if key in changes.set]
    if both:
        raise CliError(
            "can not both modify and remove the following annotation(s) in the same command: "
            f"{', '.join(both)}"
        )

    result = find_objects(factory, options, resources)

    def annotate_one(info: Info) -> None:
        before = values_of(info, "annotations")
        conflicts = [
            f"'{key}' already has a value ({before[key]})"
            for key, value in changes.set.items()
            if key != CHANGE_CAUSE and before.get(key, value) != value
        ]
        if conflicts and not options.overwrite:
            raise CliError(
                "--overwrite is false but found the following declared annotation(s): "
                f"{'; '.join(conflicts)}"
            )

        if options.list_:
            print_list(factory, info, changes, single=result.single)
        elif is_local(options, changes):
            printer(with_values(info, changes))
        else:
            printer(send(factory, options, info, changes))

    result.visit(annotate_one)


def parse_annotations(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the annotations to set, and the keys to remove."""
    pairs = [word for word in words if "=" in word and word[0] != "="]
    return dict(word.split("=", 1) for word in pairs), [
        word[:-1] for word in words if word not in pairs
    ]
