"""``kubepy apply view-last-applied|set-last-applied|edit-last-applied``.

Upstream: ``kubectl/pkg/cmd/apply/apply_{view,set,edit}_last_applied.go``.
"""

from __future__ import annotations

import json

from kubepy.cli.command import Invocation, verb
from kubepy.cli.errors import CliError, SilentExit, is_status, prefixed
from kubepy.cli.flags import boolean, string, strings
from kubepy.cli.flagsets import (
    CLIENT,
    SERVER,
    dry_run,
    dry_run_flag,
    filename_flags,
    output_flags,
    require_files,
    selector_flag,
)
from kubepy.cli.last_applied import ANNOTATION, original_configuration, serialized
from kubepy.cli.output import printer_for
from kubepy.cli.resources import Info, find
from kubepy.cli.session import Session
from kubepy.cluster.meta import Object, annotations_of

VIEW_FLAGS = [
    string("output", "o", default="yaml", help="Output format. Must be one of (yaml, json)."),
    boolean("all", help="Select all resources in the namespace of the specified resource types."),
    selector_flag(),
    *filename_flags("that contains the last-applied-configuration annotations"),
]


@verb("view-last-applied", "apply view-last-applied (TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)",
      flags=VIEW_FLAGS, examples="""
# What was applied last, as JSON
kubepy apply view-last-applied ds/nginx-ds -o json
""")
def view(session: Session, given: Invocation) -> None:
    """View the latest last-applied-configuration annotations by type/name or file."""
    configurations: list[Object] = []

    def take(info: Info) -> None:
        original = original_configuration(info.content)
        if original is not None:
            configurations.append(original)

    find(session, given, bare_types=session.namespace_given, latest=True).visit(take)
    for configuration in configurations:
        session.print(_formatted(given, configuration), end="")


def _formatted(given: Invocation, configuration: Object) -> str:
    if given.output not in ("yaml", "json"):
        given.usage_error(f"Unexpected -o output mode: {given.output}, the flag 'output' must be one of yaml|json")
    if given.output == "yaml":
        from kubepy.storage.yaml import dump

        return dump(configuration)
    from kubepy.cluster.goformat import to_json

    return to_json(configuration, indent=2) + "\n"


# --- set ----------------------------------------------------------------------------------------------------------


SET_FLAGS = [
    strings("filename", "f", help="Filename or directory of files that contain what is to count as applied last."),
    boolean("create-annotation", help="Create the annotation on objects that do not have it."),
    *output_flags(),
    dry_run_flag(),
]


@verb("set-last-applied", "apply set-last-applied -f FILENAME", flags=SET_FLAGS, examples="""
# Let the next apply compare with this file
kubepy apply set-last-applied -f manifests/nginx-ds.yaml --create-annotation
""")
def set_(session: Session, given: Invocation) -> None:
    """Set the latest last-applied-configuration annotations by setting it to match the contents of a file.

    Nothing else of the object changes."""
    strategy = dry_run(session, given)
    printer = printer_for(session, given, "configured", strategy)
    planned: list[tuple[Info, str]] = []
    find(session, given, args=[]).visit(lambda info: _plan(session, given, info, planned))
    for info, configuration in planned:
        printer(info.content if strategy == CLIENT
                else _annotate(session, info, configuration, dry_run=strategy == SERVER))


def _plan(session: Session, given: Invocation, info: Info, planned: list[tuple[Info, str]]) -> None:
    configuration = serialized(_without_annotation(info.content))
    action = f"error when retrieving current configuration of:\n{info}\nfrom server for: \"{info.source}\": "
    try:
        current = info.get(session)
    except Exception as error:
        raise error if is_status(error, "NotFound") else prefixed(error, action) from None
    original = original_configuration(current)
    if original is None and not given.create_annotation:
        raise CliError(f"no last-applied-configuration annotation found on resource: {info.name}, to create the "
                       "annotation, run the command with --create-annotation")
    if original == json.loads(configuration):
        session.print(f"set-last-applied {info.name}: no changes required.")
    else:
        planned.append((info, configuration))


def _without_annotation(obj: Object) -> Object:
    annotations = annotations_of(obj)
    if ANNOTATION not in annotations:
        return obj
    kept = {key: value for key, value in annotations.items() if key != ANNOTATION}
    return {**obj, "metadata": {**obj["metadata"], "annotations": kept}}


def _annotate(session: Session, info: Info, configuration: str, *, dry_run: bool = False) -> Object:
    from kubepy.cluster.client import MERGE_PATCH

    patch = {"metadata": {"annotations": {ANNOTATION: configuration}}}
    return session.client.patch(info.resource.key, info.name, patch, MERGE_PATCH, namespace=info.namespace,
                                dry_run=dry_run)


# --- edit ---------------------------------------------------------------------------------------------------------


EDIT_FLAGS = [*filename_flags("to use to edit the resource"), *output_flags()]


@verb("edit-last-applied", "apply edit-last-applied (TYPE/NAME | -f FILENAME)", flags=EDIT_FLAGS, examples="""
# Change what counts as applied last, with $EDITOR
kubepy apply edit-last-applied ds/nginx-ds
""")
def edit(session: Session, given: Invocation) -> None:
    """Edit the latest last-applied-configuration annotations of resources from the default editor."""
    if not given.args:
        require_files(given)
    printer = printer_for(session, given, "edited")

    def edit_one(info: Info) -> None:
        original = original_configuration(info.content)
        if original is None:
            raise CliError(f"no last-applied-configuration annotation found on resource: {info.name}")
        edited = _edited(session, original)
        if edited == original:
            session.say("Edit cancelled, no changes made.")
        else:
            printer(_annotate(session, info, serialized(edited)))

    find(session, given, latest=True).visit(edit_one)


def _edited(session: Session, configuration: Object) -> Object:
    """What the user makes of the configuration in an editor."""
    import os
    import shlex
    import subprocess
    import tempfile

    from kubepy.cli.manifests import yaml_documents
    from kubepy.storage.yaml import dump

    editor = os.environ.get("KUBE_EDITOR") or os.environ.get("EDITOR") or "vi"
    session.stdout.flush()
    with tempfile.NamedTemporaryFile("w+", suffix=".yaml", prefix="kubepy-edit-", delete=False) as file:
        file.write(dump(configuration))
    try:
        if subprocess.run(f"{editor} {shlex.quote(file.name)}", shell=True, check=False).returncode:
            session.say(f"error: there was a problem with the editor \"{editor}\"")
            raise SilentExit(1)
        with open(file.name, encoding="utf-8") as changed:
            content = next((document.content for document in yaml_documents(changed.read())), None)
    finally:
        os.unlink(file.name)
    if not isinstance(content, dict):
        raise CliError("the edited file is not an object")
    return content
