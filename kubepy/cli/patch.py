"""``kubepy patch``. Upstream: ``kubectl/pkg/cmd/patch/patch.go``."""

from __future__ import annotations

from typing import Any

from kubepy.cli.runtime.command import Invocation, verb
from kubepy.cli.runtime.errors import CliError, is_status
from kubepy.cli.runtime.flags import boolean, string
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    SERVER,
    dry_run,
    dry_run_flag,
    field_manager_flag,
    filename_flags,
    output_flags,
    record_flag,
    subresource_flag,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.resources import Info, find
from kubepy.cli.runtime.session import Session
from kubepy.cluster.objects.meta import Object

TYPES = {"json": "application/json-patch+json", "merge": "application/merge-patch+json",
         "strategic": "application/strategic-merge-patch+json"}
FLAGS = [
    string("patch", "p", help="The patch to be applied to the resource, as JSON or YAML."),
    string("patch-file", help="A file containing a patch to be applied to the resource."),
    string("type", default="strategic", help="The type of patch being provided; one of [json merge strategic]"),
    *filename_flags("identifying the resource to update"),
    boolean("local", help="If true, patch will operate on the content of the file, not on the cluster."),
    subresource_flag("patch"),
    *output_flags(),
    dry_run_flag(),
    field_manager_flag("kubectl-patch"),
    record_flag(),
]


@verb("patch", "patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE]", flags=FLAGS, examples="""
# Update two nodes at a time
kubepy patch ds nginx-ds -p '{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":2}}}}'

# Replace one image by its place
kubepy patch ds nginx-ds --type=json \\
  -p '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nginx:1.26"}]'
""")
def patch(session: Session, given: Invocation) -> None:
    """Update fields of a resource using strategic merge patch, a JSON merge patch, or a JSON patch.

    JSON and YAML formats are accepted."""
    strategy = dry_run(session, given)
    validate(given, strategy)
    content = read_patch(session, given)
    patch_type = TYPES[given.type.lower()]
    seen = 0

    def patch_one(info: Info) -> None:
        nonlocal seen
        seen += 1
        if given.local or strategy == CLIENT:
            patched = patched_locally(info, content, patch_type)
        else:
            patched = send(session, given, info, content, patch_type, strategy)
        # Upstream sets the operation after it has added "(dry run)" to it, so that a dry run does not say so.
        operation = "patched (no change)" if patched == info.object else "patched"
        printer_for(session, given, operation)(patched)

    printer_for(session, given)  # a wrong format is told before anything is written
    find(session, given, local=given.local).visit(patch_one)
    if not seen:
        raise CliError("no objects passed to patch")


def validate(given: Invocation, strategy: str) -> None:
    if given.patch and given.patch_file:
        raise CliError("cannot specify --patch and --patch-file together")
    if not given.patch and not given.patch_file:
        raise CliError("must specify --patch or --patch-file containing the contents of the patch")
    if given.local and given.args:
        raise CliError("cannot specify --local and server resources")
    if given.local and strategy == SERVER:
        raise CliError("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")
    if given.type.lower() not in TYPES:
        raise CliError(f'--type must be one of [json merge strategic], not "{given.type}"')


def read_patch(session: Session, given: Invocation) -> Any:
    """The patch: JSON when it begins with ``{``, else YAML. Raises CliError, and Status as the server would."""
    text = given.patch
    if given.patch_file:
        try:
            with open(given.patch_file, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise CliError(f"unable to read patch file: open {given.patch_file}: "
                           f"{(error.strerror or str(error)).lower()}") from None
    return _json(text) if text.lstrip().startswith("{") else _yaml(given, text)


def _json(text: str) -> Any:
    from kubepy.cluster.errors import bad_request
    from kubepy.storage.yaml import YamlError, read_json

    try:
        return read_json(text)
    except YamlError as error:
        raise bad_request(str(error)) from None


def _yaml(given: Invocation, text: str) -> Any:
    from kubepy.storage.yaml import YamlError, load_all

    try:
        return next((document.object for document in load_all(text)), None)
    except YamlError as error:
        why = str(error).removeprefix("error converting YAML to JSON: ")
        raise CliError(f'unable to parse "{given.patch}": {why}') from None


def send(session: Session, given: Invocation, info: Info, content: Any, patch_type: str, strategy: str) -> Object:
    try:
        return session.client.patch(info.resource.key, info.name, content, patch_type, namespace=info.namespace,
                                    subresource=given.subresource, dry_run=strategy == SERVER,
                                    field_manager=given.field_manager, field_validation="Warn")
    except Exception as error:
        if not is_status(error, "UnsupportedMediaType"):
            raise
        kind = f"{info.resource.api_version}, Kind={info.resource.kind}"
        raise CliError(f"{patch_type} is not supported by {kind}: {error}") from None


def patched_locally(info: Info, content: Any, patch_type: str) -> Object:
    """The object with the patch applied, without the cluster."""
    from kubepy.cluster.patches import documents as patches
    from kubepy.cluster.schema.openapi import schema_for

    if patch_type == TYPES["json"]:
        return patches.json_patch(info.content, content)
    if patch_type == TYPES["merge"]:
        return patches.merge_patch(info.content, content)
    schema = schema_for(info.resource.api_version, info.resource.kind)
    if schema is None:
        raise CliError(f"strategic merge patch is not supported for {info.resource.api_version}, "
                       f"Kind={info.resource.kind} locally, try --type merge")
    return patches.strategic_merge_patch(info.content, content, schema)
