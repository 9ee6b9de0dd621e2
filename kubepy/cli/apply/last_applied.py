"""``kubepy apply view-last-applied|set-last-applied|edit-last-applied``.

Upstream: ``kubectl/pkg/cmd/apply/apply_{view,set,edit}_last_applied.go``.
"""

from __future__ import annotations

from kubepy.api.meta import Object, annotations_of
from kubepy.apiserver.request import Patch, PatchOptions
from kubepy.cli.errors import CliError, prefixed
from kubepy.cli.runtime.editing import without_comments
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flags import string_slice_flag as strings
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    CLIENT_SIDE_APPLY,
    SERVER,
    UNNAMED,
    dry_run,
    dry_run_flag,
    field_manager_flag,
    field_validation,
    filename_flags,
    output_flags,
    record_flag,
    selector_flag,
    validate_flag,
    windows_line_endings_flag,
)
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.objects import LAST_APPLIED, original_configuration, serialized
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import Invocation, find, verb
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api import errors as api_errors

VIEW_FLAGS = [
    string("output", "o", default="yaml", help="Output format. Must be one of (yaml, json)."),
    boolean("all", help="Select all resources in the namespace of the specified resource types."),
    selector_flag(),
    *filename_flags("that contains the last-applied-configuration annotations"),
]


@verb("view-last-applied", "view-last-applied (TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)",
      flags=VIEW_FLAGS, examples="""
# What was applied last
kubepy apply view-last-applied ds/nginx-ds

# As JSON
kubepy apply view-last-applied deploy/web -o json
""")
def view(factory: Factory, given: Invocation) -> None:
    """View the latest last-applied-configuration annotations by type/name or file."""
    configurations: list[str] = []

    def take(info: Info) -> None:
        original = original_configuration(info.content)
        if original is not None:
            configurations.append(original)
        elif info.source:
            raise CliError("error when no last-applied-configuration annotation found on resource: "
                           f"{info.name}\n {quote(info.source)}: <nil>")

    find(factory, given, bare_types=factory.namespace_given, latest=True, everything=given.all).visit_until_error(take)
    for configuration in configurations:
        factory.print(_formatted(given, configuration), end="")


def _formatted(given: Invocation, configuration: str) -> str:
    """Raises CliError for what is no YAML, or no JSON, and UsageError for another format."""
    if given.output not in ("yaml", "json"):
        given.usage_error(f"Unexpected -o output mode: {given.output}, the flag 'output' must be one of yaml|json")
    from kubepy.storage.yaml import YamlError, dump, indented_json, load_all

    try:
        if given.output == "json":
            return indented_json(configuration) + "\n"
        return dump(next((document.object for document in load_all(configuration)), None))
    except YamlError as error:
        raise CliError(str(error).removeprefix("error converting YAML to JSON: ")) from None


# --- set ----------------------------------------------------------------------------------------------------------


SET_FLAGS = [
    strings("filename", "f", help="Filename or directory of files that contain what is to count as applied last."),
    boolean("create-annotation", help="Create the annotation on objects that do not have it."),
    *output_flags(),
    dry_run_flag(),
]


@verb("set-last-applied", "set-last-applied -f FILENAME", flags=SET_FLAGS, examples="""
# Let the next apply compare with this file
kubepy apply set-last-applied -f manifests/nginx-ds.yaml

# Also of an object that was never applied
kubepy apply set-last-applied -f web.yaml --create-annotation
""")
def set_(factory: Factory, given: Invocation) -> None:
    """Set the latest last-applied-configuration annotations by setting it to match the contents of a file.

    Nothing else of the object changes."""
    strategy = dry_run(factory, given)
    printer = printer_for(factory, given, "configured", strategy)
    planned: list[tuple[Info, str]] = []
    find(factory, given, args=[]).visit_until_error(lambda info: _plan(factory, given, info, planned))
    for info, configuration in planned:
        printer(info.content if strategy == CLIENT
                else _annotate(factory, info, configuration, dry_run=strategy == SERVER))


def _plan(factory: Factory, given: Invocation, info: Info, planned: list[tuple[Info, str]]) -> None:
    configuration = serialized(_without_annotation(info.content))
    action = f"error when retrieving current configuration of:\n{info}\nfrom server for: {quote(info.source)}: "
    try:
        current = info.get(factory)
    except Exception as error:
        raise error if isinstance(error, api_errors.NotFound) else prefixed(error, action) from None
    original = original_configuration(current)
    if original is None and not given.create_annotation:
        raise CliError(f"no last-applied-configuration annotation found on resource: {info.name}, to create the "
                       "annotation, run the command with --create-annotation")
    if without_comments(original or "") == without_comments(configuration):
        factory.print(printable(f"set-last-applied {info.name}: no changes required."))
    else:
        planned.append((info, configuration))


def _without_annotation(obj: Object) -> Object:
    annotations = annotations_of(obj)
    if LAST_APPLIED not in annotations:
        return obj
    kept = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return {**obj, "metadata": {**obj["metadata"], "annotations": kept}}


def _annotate(factory: Factory, info: Info, configuration: str, *, dry_run: bool = False,
              manager: str = UNNAMED) -> Object:
    from kubepy.apiserver.request import MERGE_PATCH

    patch = {"metadata": {"annotations": {LAST_APPLIED: configuration}}}
    return factory.client.patch(info.resource.gvr, info.name, Patch(MERGE_PATCH, patch), namespace=info.namespace,
                                options=PatchOptions(dry_run=dry_run, field_manager=manager))


# --- edit ---------------------------------------------------------------------------------------------------------


EDIT_FLAGS = [
    *filename_flags("to use to edit the resource"),
    *output_flags("json|yaml"),
    validate_flag(),
    windows_line_endings_flag(),
    field_manager_flag(CLIENT_SIDE_APPLY),
    record_flag(),
]
NO_ANNOTATIONS = ("no last-applied-configuration annotation found on resources, to create the annotation, use command "
                  "`kubepy apply set-last-applied --create-annotation`")


@verb("edit-last-applied", "edit-last-applied (TYPE/NAME | -f FILENAME)", flags=EDIT_FLAGS, examples="""
# Change what counts as applied last, with $EDITOR
kubepy apply edit-last-applied ds/nginx-ds

# As JSON
kubepy apply edit-last-applied deploy/web -o json
""")
def edit(factory: Factory, given: Invocation) -> None:
    """Edit the latest last-applied-configuration annotations of resources from the default editor.

    Nothing else of the resources changes."""
    field_validation(given)
    infos = find(factory, given, bare_types=True, latest=True).all_infos()
    configurations = [one for info in infos for one in _configured(factory, info)]
    if not configurations:
        raise CliError(NO_ANNOTATIONS)
    _edit_all(factory, given, configurations)


def _configured(factory: Factory, info: Info) -> list[Info]:
    """What was applied last, as an object; none if nothing was. Raises CliError for what is no object."""
    from kubepy.cli.runtime.manifests import read_stream

    text = original_configuration(info.content) or ""
    return Result(one for manifest in read_stream(factory, text, "edited-file") for one in manifest.found).all_infos()


def _edit_all(factory: Factory, given: Invocation, configurations: list[Info]) -> None:
    from kubepy.cli.runtime.editing import LAST_APPLIED_HEADER, Editing, Round, place

    def change(originals: list[Info], updated: list[Info], current: Round) -> None:
        for info in updated:
            place(factory, info)
        for info in updated:
            same = any(one.name == info.name and one.content == info.content for one in originals)
            if not same:
                _annotate(factory, info, serialized(info.content), manager=given.field_manager)
            printer_for(factory, given, "skipped" if same else "edited")(info.content)

    Editing(factory, given, change, LAST_APPLIED_HEADER).edit(configurations)
