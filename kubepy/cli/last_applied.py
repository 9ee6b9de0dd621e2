"""``kubepy apply view-last-applied|set-last-applied|edit-last-applied``.

Upstream: ``kubectl/pkg/cmd/apply/apply_{view,set,edit}_last_applied.go``.
"""

from __future__ import annotations

from kubepy.api.meta import Object, annotations_of
from kubepy.apiserver.request import MERGE_PATCH, Patch, PatchOptions
from kubepy.cli.errors import CliError, prefixed
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.editing import (
    LAST_APPLIED_HEADER,
    Editing,
    EditingOptions,
    Round,
    place,
    without_comments,
)
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag, string_slice_flag
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.objects import (
    LAST_APPLIED,
    original_configuration,
    serialized,
    without_annotation,
)
from kubepy.cli.runtime.options import (
    CLIENT,
    CLIENT_SIDE_APPLY,
    SERVER,
    UNNAMED,
    DryRunOptions,
    FieldManagerOptions,
    FilenameOptions,
    KustomizeOptions,
    PrintFlags,
    RecordOptions,
    SelectorOptions,
    field_manager_flag,
    filename_flag,
    output_flag,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.cli.runtime import manifests
    from kubepy.storage import yaml


class ViewLastAppliedOptions(SelectorOptions, KustomizeOptions):
    """The flags of ``view-last-applied``."""

    output: str = string_flag(
        "output", "o", default="yaml", help="Output format. Must be one of (yaml, json)."
    )
    all: bool = bool_flag(
        "all", help="Select all resources in the namespace of the specified resource types."
    )
    filename: list[str] = filename_flag("that contains the last-applied-configuration annotations")


@command(
    "view-last-applied (TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)",
    ViewLastAppliedOptions,
    examples="""
# View the configuration that was applied last
kubepy apply view-last-applied ds/log-agent

# As JSON
kubepy apply view-last-applied deploy/web -o json
""",
)
def view(factory: Factory, options: ViewLastAppliedOptions) -> None:
    """View the latest last-applied-configuration annotations by type/name or file."""
    configurations: list[str] = []

    def collect(info: Info) -> None:
        original = original_configuration(info.content)
        if original is not None:
            configurations.append(original)
        elif info.source:
            raise CliError(
                "error when no last-applied-configuration annotation found on resource: "
                f"{info.name}\n {quote(info.source)}: <nil>"
            )

    result = Builder(
        factory, options, bare_types=factory.namespace_given, latest=True, everything=options.all
    ).do()
    result.visit_until_error(collect)
    for configuration in configurations:
        if options.output not in ("yaml", "json"):
            options.usage_error(
                f"Unexpected -o output mode: {options.output}, the flag 'output' must be one of "
                "yaml|json"
            )
        try:
            if options.output == "json":
                text = yaml.indented_json(configuration) + "\n"
            else:
                text = yaml.dump(
                    next((document.object for document in yaml.load_all(configuration)), None)
                )
        except yaml.YamlError as error:
            raise CliError(str(error).removeprefix("error converting YAML to JSON: ")) from None
        factory.print(text, end="")


# --- set ------------------------------------------------------------------------------------------


class SetLastAppliedOptions(FilenameOptions, PrintFlags, DryRunOptions):
    """The flags of ``set-last-applied``."""

    filename: list[str] = string_slice_flag(
        "filename",
        "f",
        help="Filename or directory of files that contain what is to count as applied last.",
    )
    create_annotation: bool = bool_flag(
        "create-annotation", help="Create the annotation on objects that do not have it."
    )


@command(
    "set-last-applied -f FILENAME",
    SetLastAppliedOptions,
    examples="""
# Say that a file is what was applied last
kubepy apply set-last-applied -f web.yaml

# Also for objects that were never applied
kubepy apply set-last-applied -f web.yaml --create-annotation

# For all files of a folder
kubepy apply set-last-applied -f manifests/ --create-annotation
""",
)
def set_(factory: Factory, options: SetLastAppliedOptions) -> None:
    """Set the latest last-applied-configuration annotations by setting it to match the contents of a file.

    Nothing else of the object changes."""  # noqa: E501
    strategy = factory.dry_run_strategy(options)
    printer = printer_for(factory, options, "configured", strategy)
    planned: list[tuple[Info, str]] = []

    def plan(info: Info) -> None:
        manifest = info.content
        if LAST_APPLIED in annotations_of(manifest):
            manifest = without_annotation(manifest)
        configuration = serialized(manifest)
        action = (
            f"error when retrieving current configuration of:\n{info}\nfrom server for: "
            f"{quote(info.source)}: "
        )
        try:
            current = info.get(factory)
        except api_errors.NotFound:
            raise
        except Exception as error:
            raise prefixed(error, action) from None

        original = original_configuration(current)
        if original is None and not options.create_annotation:
            raise CliError(
                f"no last-applied-configuration annotation found on resource: {info.name}, to "
                f"create the "
                "annotation, run the command with --create-annotation"
            )

        if without_comments(original or "") == without_comments(configuration):
            factory.print(printable(f"set-last-applied {info.name}: no changes required."))
        else:
            planned.append((info, configuration))

    Builder(factory, options, args=[]).do().visit_until_error(plan)
    for info, configuration in planned:
        printer(
            info.content
            if strategy == CLIENT
            else _annotate(factory, info, configuration, dry_run=strategy == SERVER)
        )


def _annotate(
    factory: Factory,
    info: Info,
    configuration: str,
    *,
    dry_run: bool = False,
    manager: str = UNNAMED,
) -> Object:
    patch = {"metadata": {"annotations": {LAST_APPLIED: configuration}}}
    return factory.client.patch(
        info.resource.gvr,
        info.name,
        Patch(MERGE_PATCH, patch),
        namespace=info.namespace,
        options=PatchOptions(dry_run=dry_run, field_manager=manager),
    )


# --- edit -----------------------------------------------------------------------------------------


class EditLastAppliedOptions(KustomizeOptions, EditingOptions, FieldManagerOptions, RecordOptions):
    """The flags of ``edit-last-applied``."""

    filename: list[str] = filename_flag("to use to edit the resource")
    output: str = output_flag("json, yaml")
    field_manager: str = field_manager_flag(CLIENT_SIDE_APPLY)


NO_ANNOTATIONS = (
    "no last-applied-configuration annotation found on resources, to create the annotation, use "
    "command "
    "`kubepy apply set-last-applied --create-annotation`"
)


@command(
    "edit-last-applied (TYPE/NAME | -f FILENAME)",
    EditLastAppliedOptions,
    examples="""
# Edit the configuration that was applied last, with $EDITOR
kubepy apply edit-last-applied ds/log-agent

# As JSON
kubepy apply edit-last-applied deploy/web -o json
""",
)
def edit(factory: Factory, options: EditLastAppliedOptions) -> None:
    """Edit the latest last-applied-configuration annotations of resources from the default editor.

    Nothing else of the resources changes."""
    options.field_validation()
    infos = Builder(factory, options, bare_types=True, latest=True).do().all_infos()
    configurations: list[Info] = []
    for info in infos:
        read = manifests.read_stream(
            factory, original_configuration(info.content) or "", "edited-file"
        )
        configurations += Result(
            entry for manifest in read for entry in manifest.entries
        ).all_infos()

    if not configurations:
        raise CliError(NO_ANNOTATIONS)

    def change(originals: list[Info], updated: list[Info], current: Round) -> None:
        for info in updated:
            place(factory, info)
        for info in updated:
            same = any(
                original.name == info.name and original.content == info.content
                for original in originals
            )
            if not same:
                _annotate(factory, info, serialized(info.content), manager=options.field_manager)
            printer_for(factory, options, "skipped" if same else "edited")(info.content)

    Editing(factory, options, change, LAST_APPLIED_HEADER).edit(configurations)
