"""``kubepy diff``: the live objects and those that ``apply`` would make of them, compared by
diff(1).

Upstream: ``kubectl/pkg/cmd/diff/diff.go``.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
from typing import IO, Any

from kubepy.api.meta import Object, nested_map, without_managers
from kubepy.apiserver.request import APPLY_PATCH, CreateOptions, DeleteOptions, Patch, PatchOptions
from kubepy.cli.apply import Visited, allowed_kinds, prunable
from kubepy.cli.apply_patching import ApplyRequest, patch_to, warn_if_deleting
from kubepy.cli.errors import CliError, SilentExit, guarded, unless_missing
from kubepy.cli.files import create_folder
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, int_flag, string_array_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import without_annotation
from kubepy.cli.runtime.options import (
    CLIENT_SIDE_APPLY,
    SERVER,
    KustomizeOptions,
    SelectorOptions,
    ServerSideOptions,
    field_manager_flag,
    filename_flag,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.storage import yaml


class DiffFlags(KustomizeOptions, SelectorOptions, ServerSideOptions):
    """The flags of ``diff``."""

    filename: list[str] = filename_flag("contains the configuration to diff")
    field_manager: str = field_manager_flag(CLIENT_SIDE_APPLY)
    prune: bool = bool_flag(
        "prune",
        help="Include resources that would be deleted by pruning: all, or those that -l selects.",
    )
    prune_allowlist: list[str] = string_array_flag(
        "prune-allowlist",
        help="Overwrite the default allowlist with <group/version/kind> for --prune.",
    )
    show_managed_fields: bool = bool_flag(
        "show-managed-fields", help="If true, include managed fields in the diff."
    )
    show_secrets: bool = bool_flag(
        "show-secrets", help="If true, do not mask secret values in the diff."
    )
    concurrency: int = int_flag(
        "concurrency",
        default=1,
        help="Accepted as kubectl does; objects are read one after the other.",
    )


FAILED = 2  # diff(1)'s status for trouble; 1 means that there are differences
MASK = "***"
BEFORE = "*** (before)"
AFTER = "*** (after)"


@command(
    "diff -f FILENAME",
    DiffFlags,
    flag_error_status=FAILED,
    examples="""
# Show what apply would change
kubepy diff -f manifests/nginx-ds.yaml

# In colours
KUBECTL_EXTERNAL_DIFF="diff -u --color=always" kubepy diff -f manifests/nginx-ds.yaml
""",
)
def diff(factory: Factory, options: DiffFlags) -> None:
    """Show how the cluster would change if configurations were applied.

    The program is "diff -u -N", or KUBECTL_EXTERNAL_DIFF. Exit status: 0 for no differences, 1 for differences, more
    for an error."""  # noqa: E501
    if status := guarded(lambda: run(factory, options), factory.say, FAILED):
        raise SilentExit(status)


def run(factory: Factory, options: DiffFlags) -> None:
    """Compare the objects. Raises SilentExit(1) for differences; other errors are of any kind that
    commands raise."""
    factory.catches_up = False
    options.require_no_args()
    options.require_files()
    if options.force_conflicts and not options.server_side:
        raise CliError("--force-conflicts only works with --server-side")
    allowed = allowed_kinds(factory, options.prune_allowlist) if options.prune else []
    live = create_folder("LIVE-")
    merged = create_folder("MERGED-")
    visited = Visited(factory)

    def write_both(info: Info) -> None:
        manifest = info.content
        current = unless_missing(info.get, factory)
        visited.add_namespace(info)
        visited.add(current)
        info.object = current
        after: Object | None = would_be(factory, options, info, manifest)
        warn_if_deleting(factory, info)
        before = shown(factory, options, current)
        after = shown(factory, options, after)
        masks = info.resource.kind == "Secret" and not options.show_secrets
        if masks:
            before, after = masked(before, after)
        _write(live, info, before, null=masks)
        _write(merged, info, after)

    try:
        Builder(factory, options).do().visit_until_error(write_both)
        if options.prune:
            for info in prunable(factory, visited, allowed, options.selector):
                _write(live, info, factory.client.with_managed_fields(info.content))
        status = run_program(factory, live, merged)
    finally:
        for folder in (live, merged):
            shutil.rmtree(folder)

    if status:
        raise SilentExit(status)


def would_be(factory: Factory, options: DiffFlags, info: Info, manifest: Object) -> Object:
    """Return the object as apply would leave it; nothing is written."""
    manager = options.apply_manager()
    if options.server_side:
        try:
            return factory.client.patch(
                info.resource.gvr,
                info.name,
                Patch(APPLY_PATCH, manifest),
                namespace=info.namespace,
                options=PatchOptions(
                    dry_run=True, field_manager=manager, force=options.force_conflicts
                ),
            )
        except (
            api_errors.Conflict
        ):  # kubectl takes it for a write of another client, and tries again
            version = (
                info.resource.api_version if info.resource.group else f"/{info.resource.version}"
            )
            factory.log(
                "diff.go:723",
                f"Object ({version}, Kind={info.resource.kind}: {info.name}) keeps changing, "
                "diffing without lock",
            )
            raise

    if info.object is None:
        return factory.client.create(
            info.resource.gvr,
            manifest,
            namespace=info.namespace,
            options=CreateOptions(dry_run=True, field_validation="Warn"),
        )

    request = ApplyRequest(SERVER, "Warn", manager, True, False, DeleteOptions(), 0)
    # A manifest may have been read from the cluster a while ago: kubectl's patch names the version
    # that is there now.
    modified = without_annotation(manifest)
    modified["metadata"].pop("resourceVersion", None)
    return patch_to(factory, info, info.content, modified, request).object


def shown(factory: Factory, options: DiffFlags, obj: Object | None) -> Object | None:
    """Return the object with its managers if they are asked for, else without them."""
    if obj is None or not options.show_managed_fields:
        return obj and without_managers(obj)
    return factory.client.with_managed_fields(obj)


def masked(before: Object | None, after: Object | None) -> tuple[Object | None, Object | None]:
    """Return both Secrets with stars for their values; of values that differ, the stars say which
    is which."""
    old = data_of(before)
    new = data_of(after)

    def stars(data: dict[str, Any], changed: str) -> dict[str, str]:
        return {
            key: changed if key in old and key in new and old[key] != new[key] else MASK
            for key in data
        }

    return _with_data(before, stars(old, BEFORE)), _with_data(after, stars(new, AFTER))


def data_of(obj: Object | None) -> dict[str, Any]:
    return nested_map(obj or {}, "data")


def _with_data(obj: Object | None, data: dict[str, str]) -> Object | None:
    if obj and data:
        return {**obj, "data": data}
    return obj


# --- files ----------------------------------------------------------------------------------------


def _write(folder: str, info: Info, obj: Object | None, *, null: bool = False) -> None:
    """Write an object as YAML; None becomes an empty file (``null`` for a masked Secret)."""
    text = ""
    if obj is not None:
        text = yaml.dump(obj)
    elif null:
        text = "null\n"
    with open(os.path.join(folder, file_name(info)), "w", encoding="utf-8") as file:
        file.write(text)


def file_name(info: Info) -> str:
    """Return ``apps.v1.DaemonSet.default.nginx``."""
    resource = info.resource
    parts = [resource.version, resource.kind, info.namespace, info.name]
    return ".".join([resource.group, *parts] if resource.group else parts)


def run_program(factory: Factory, before: str, after: str) -> int:
    """Run diff on two folders; returns 0 for the same, 1 for different. Raises CliError for any
    other end."""
    external = os.environ.get("KUBECTL_EXTERNAL_DIFF", "")
    words = command_words(external, before, after)
    factory.stdout.flush()
    is_guarded = (
        factory.stdout.isatty() and not external
    )  # a program of the user's own may use colours
    try:
        process = subprocess.run(
            words,
            check=False,
            stdout=None if has_file(factory.stdout) and not is_guarded else subprocess.PIPE,
        )
    except FileNotFoundError:
        raise CliError(
            f"failed to run {quote(words[0])}: executable file not found in $PATH"
        ) from None

    if process.stdout:
        factory.print(process.stdout.decode(errors="replace"), end="")
    if process.returncode > 1:
        raise CliError(f"failed to run {quote(words[0])}: exit status {process.returncode}")
    return process.returncode


def has_file(stream: IO[str]) -> bool:
    """Return whether another program can write to a stream: those of Python programs may be in
    memory."""
    try:
        stream.fileno()
    except io.UnsupportedOperation:
        return False
    return True


def command_words(external: str, before: str, after: str) -> list[str]:
    """Return the program, the folders that it compares, and its flags.

    Of KUBECTL_EXTERNAL_DIFF only words of letters, digits, "-" and "=" are passed on, behind the
    rest.
    """
    if not external:
        return ["diff", "-u", "-N", before, after]
    name, *flags = external.split(" ")
    return [name, before, after, *(flag for flag in flags if re.fullmatch("[a-zA-Z0-9-=]+", flag))]
