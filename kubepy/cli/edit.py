"""``kubepy edit``. Upstream: ``kubectl/pkg/cmd/edit/edit.go``,
``kubectl/pkg/cmd/util/editor/editoptions.go``."""

from __future__ import annotations

from kubepy.api.meta import uid_of, without_managers
from kubepy.api.values.goformat import go_syntax, to_json
from kubepy.apiserver.request import Patch, PatchOptions
from kubepy.cli.errors import CliError, raise_all
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import bringing, command
from kubepy.cli.runtime.editing import Editing, EditingOptions, Round, place
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import annotated, configuration_of, record, two_way_patch
from kubepy.cli.runtime.options import (
    FieldManagerOptions,
    KustomizeOptions,
    RecordOptions,
    SaveConfigOptions,
    SubresourceOptions,
    field_manager_flag,
    filename_flag,
    output_flag,
    subresource_flag,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors


class EditOptions(
    KustomizeOptions,
    EditingOptions,
    FieldManagerOptions,
    SaveConfigOptions,
    SubresourceOptions,
    RecordOptions,
):
    """The flags of ``edit``."""

    filename: list[str] = filename_flag("to use to edit the resource")
    output: str = output_flag("json, yaml")
    output_patch: bool = bool_flag(
        "output-patch", help="Output the patch if the resource is edited."
    )
    field_manager: str = field_manager_flag("kubectl-edit")
    subresource: str = subresource_flag("edit")


CHANGED_IDENTITY = "At least one of apiVersion, kind and name was changed"


@bringing
@command(
    "edit (RESOURCE/NAME | -f FILENAME)",
    EditOptions,
    examples="""
# Open an object in the editor
kubepy edit ds/log-agent

# Change it by another program
EDITOR="sed -i s/fluent-bit:3.0/fluent-bit:3.1/" kubepy edit ds/log-agent

# As JSON, in a version of its API group
kubepy edit jobs.v1.batch/report -o json

# Keep what was saved as the last applied configuration
kubepy edit deploy/web --save-config

# Change the status of an object
kubepy edit deploy/web --subresource=status
""",
)
def edit(factory: Factory, options: EditOptions) -> None:
    """Edit resources in the editor that KUBE_EDITOR or EDITOR names, or else in vi.

    Changes go to the cluster as a patch. If the cluster refuses it, the file is opened again with the error in its
    comments; a file whose changes were refused is kept."""  # noqa: E501
    options.field_validation()
    infos, errors = Builder(factory, options, bare_types=True, latest=True).do().infos()
    raise_all(errors)
    if not infos:
        raise CliError("edit cancelled, no objects found")
    live = {uid_of(info.content): info.content for info in infos}
    for info in infos:
        info.object = without_managers(info.content)

    def change(originals: list[Info], updated: list[Info], current: Round) -> None:
        for info in updated:
            place(factory, info)
        for info in updated:
            obj = info.content
            if (
                options.save_config
            ):  # as in kubectl, the annotation holds the managers of the live object too
                live_obj = live.get(uid_of(obj))
                managers = live_obj and factory.client.with_managed_fields(live_obj)[
                    "metadata"
                ].get("managedFields")
                metadata = (
                    {**obj["metadata"], "managedFields": managers} if managers else obj["metadata"]
                )
                obj["metadata"] = annotated(obj, configuration_of({**obj, "metadata": metadata}))[
                    "metadata"
                ]
            if options.record:
                record(obj, options)

        for info in updated:
            _patch(factory, options, original_of(info, originals), info, current)

    Editing(factory, options, change).edit(infos)


def original_of(info: Info, originals: list[Info]) -> Info:
    """Return the object before it was edited, found by its uid. Raises CliError."""
    for original in originals:
        if uid_of(original.content) == uid_of(info.content):
            return original
    raise CliError(
        "no original object found for &unstructured.Unstructured{Object:"
        f"{go_syntax(info.content)}}}"
    )


def _patch(
    factory: Factory, options: EditOptions, original: Info, info: Info, current: Round
) -> None:
    """Send the changes of an object, and print it; an error goes into the round. Raises
    CliError."""
    before = original.content
    after = info.content
    if before == after:
        printer_for(factory, options, "skipped")(after)
        return
    if (
        any(before.get(key) != after.get(key) for key in ("apiVersion", "kind"))
        or original.name != info.name
    ):
        raise CliError(CHANGED_IDENTITY)

    patch, patch_type = two_way_patch(before, after)
    if options.output_patch:
        factory.print(f"Patch: {to_json(patch)}")
    try:
        obj = factory.client.patch(
            info.resource.gvr,
            info.name,
            Patch(patch_type, patch),
            namespace=info.namespace,
            subresource=options.subresource,
            options=PatchOptions(
                field_manager=options.field_manager, field_validation=options.field_validation()
            ),
        )
    except api_errors.Status as error:
        factory.say(current.add_error(error, info))
        return

    info.refresh(obj)
    printer_for(factory, options, "edited")(obj)
