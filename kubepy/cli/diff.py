"""``kubepy diff``: the cluster as it is beside what ``apply`` would make of it, shown by diff(1).

Upstream: ``kubectl/pkg/cmd/diff/diff.go``.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
from typing import Any

from kubepy.api.meta import Object
from kubepy.apiserver.request import CreateOptions, DeleteOptions, Patch, PatchOptions
from kubepy.cli.apply.patching import Options, patch_to, warn_if_deleting
from kubepy.cli.apply.prune import Visited, allowed_kinds, leftovers
from kubepy.cli.errors import CliError, SilentExit, guarded, unless_missing
from kubepy.cli.files import create_folder
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import int_flag as integer
from kubepy.cli.runtime.flags import string_array_flag as string_array
from kubepy.cli.runtime.flagsets import (
    CLIENT_SIDE_APPLY,
    SERVER,
    field_manager_flag,
    filename_flags,
    require_files,
    selector_flag,
    server_side_flags,
    server_side_manager,
)
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.objects import without_annotation
from kubepy.cli.runtime.output import without_managers
from kubepy.cli.runtime.verbs import Invocation, find, verb
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api import errors as api_errors

FLAGS = [
    *filename_flags("contains the configuration to diff"),
    selector_flag(),
    *server_side_flags(),
    field_manager_flag(CLIENT_SIDE_APPLY),
    boolean("prune", help="Include resources that would be deleted by pruning: all, or those that -l selects."),
    string_array("prune-allowlist", help="Overwrite the default allowlist with <group/version/kind> for --prune."),
    boolean("show-managed-fields", help="If true, include managed fields in the diff."),
    boolean("show-secrets", help="If true, do not mask secret values in the diff."),
    integer("concurrency", default=1, help="Accepted as kubectl does; objects are read one after the other."),
]
FAILED = 2  # diff(1)'s status for trouble; 1 means that there are differences
MASK, BEFORE, AFTER = "***", "*** (before)", "*** (after)"


@verb("diff", "diff -f FILENAME", flags=FLAGS, failed=FAILED, examples="""
# What apply would change
kubepy diff -f manifests/nginx-ds.yaml

# In colours
KUBECTL_EXTERNAL_DIFF="diff -u --color=always" kubepy diff -f manifests/nginx-ds.yaml
""")
def diff(factory: Factory, given: Invocation) -> None:
    """Show how the cluster would change if configurations were applied.

    The program is "diff -u -N", or KUBECTL_EXTERNAL_DIFF. Exit status: 0 for no differences, 1 for differences, more
    for an error."""
    if status := guarded(lambda: run(factory, given), factory.say, FAILED):
        raise SilentExit(status)


def run(factory: Factory, given: Invocation) -> None:
    """Raises SilentExit(1) for differences; other errors are of any kind that commands raise."""
    if given.args:
        given.usage_error(printable(f"Unexpected args: [{' '.join(given.args)}]"))
    require_files(given)
    if given.force_conflicts and not given.server_side:
        raise CliError("--force-conflicts only works with --server-side")
    allowed = allowed_kinds(factory, given.prune_allowlist) if given.prune else []
    folders = create_folder("LIVE-"), create_folder("MERGED-")
    try:
        visited = _write_both(factory, given, find(factory, given), *folders)
        if given.prune:
            for info in leftovers(factory, visited, allowed, given.selector):
                _write(folders[0], info, factory.client.with_managed_fields(info.content))
        status = run_program(factory, *folders)
    finally:
        for folder in folders:
            shutil.rmtree(folder)
    if status:
        raise SilentExit(status)


def _write_both(factory: Factory, given: Invocation, found: Result, live: str, merged: str) -> Visited:
    """Write what is there, and what would be, of every object. Raises the first error."""
    visited = Visited(factory)
    found.visit_until_error(lambda info: _write_one(factory, given, info, visited, live, merged))
    return visited


def _write_one(factory: Factory, given: Invocation, info: Info, visited: Visited, live: str, merged: str) -> None:
    manifest, current = info.content, unless_missing(info.get, factory)
    visited.add_namespace(info)
    visited.add(current)
    info.object = current
    after: Object | None = would_be(factory, given, info, manifest)
    warn_if_deleting(factory, info)
    before, after = shown(factory, given, current), shown(factory, given, after)
    masks = info.resource.kind == "Secret" and not given.show_secrets
    if masks:
        before, after = masked(before, after)
    _write(live, info, before, null=masks)
    _write(merged, info, after)


def would_be(factory: Factory, given: Invocation, info: Info, manifest: Object) -> Object:
    """The object as apply would leave it: nothing is written."""
    manager = server_side_manager(given)
    if given.server_side:
        return _applied_on_server(factory, given, info, manifest, manager)
    if info.object is None:
        return factory.client.create(info.resource.gvr, manifest, namespace=info.namespace,
                                     options=CreateOptions(dry_run=True, field_validation="Warn"))
    options = Options(SERVER, "Warn", manager, True, False, DeleteOptions(), 0)
    return patch_to(factory, info, info.content, _of_any_version(without_annotation(manifest)), options).object


def _of_any_version(manifest: Object) -> Object:
    """A manifest that may have been read a while ago: kubectl's patch names the version that is there now."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "resourceVersion"}
    return {**manifest, "metadata": metadata}


def _applied_on_server(factory: Factory, given: Invocation, info: Info, manifest: Object, manager: str) -> Object:
    from kubepy.apiserver.request import APPLY_PATCH

    try:
        return factory.client.patch(info.resource.gvr, info.name, Patch(APPLY_PATCH, manifest),
                                    namespace=info.namespace,
                                    options=PatchOptions(dry_run=True, field_manager=manager,
                                                         force=given.force_conflicts))
    except Exception as error:
        if isinstance(error, api_errors.Conflict):  # kubectl takes it for somebody else's write, and tries again
            version = info.resource.api_version if info.resource.group else f"/{info.resource.version}"
            factory.log("diff.go:723", f"Object ({version}, Kind={info.resource.kind}: {info.name}) keeps changing, "
                        "diffing without lock")
        raise


def shown(factory: Factory, given: Invocation, obj: Object | None) -> Object | None:
    """The object with its managers if they are asked for, else without them."""
    if obj is None or not given.show_managed_fields:
        return obj and without_managers(obj)
    return factory.client.with_managed_fields(obj)


def masked(before: Object | None, after: Object | None) -> tuple[Object | None, Object | None]:
    """Both with stars for the values of a Secret; where they differ, the stars say so."""
    old, new = data_of(before), data_of(after)

    def stars(data: dict[str, Any], changed: str) -> dict[str, str]:
        return {key: changed if key in old and key in new and old[key] != new[key] else MASK for key in data}

    return _with_data(before, stars(old, BEFORE)), _with_data(after, stars(new, AFTER))


def data_of(obj: Object | None) -> dict[str, Any]:
    return (obj or {}).get("data") or {}


def _with_data(obj: Object | None, data: dict[str, str]) -> Object | None:
    return {**obj, "data": data} if obj and data else obj


# --- files --------------------------------------------------------------------------------------------------------


def _write(folder: str, info: Info, obj: Object | None, *, null: bool = False) -> None:
    """One object as YAML; one that is not there as an empty file (``null`` for a masked Secret)."""
    from kubepy.storage.yaml import dump

    text = dump(obj) if obj is not None else "null\n" if null else ""
    with open(os.path.join(folder, file_name(info)), "w", encoding="utf-8") as file:
        file.write(text)


def file_name(info: Info) -> str:
    """``apps.v1.DaemonSet.default.nginx``."""
    resource = info.resource
    parts = [resource.version, resource.kind, info.namespace, info.name]
    return ".".join([resource.group, *parts] if resource.group else parts)


def run_program(factory: Factory, before: str, after: str) -> int:
    """Run diff on two folders: 0 the same, 1 different. Raises CliError for any other end."""
    words = command(os.environ.get("KUBECTL_EXTERNAL_DIFF", ""), before, after)
    factory.stdout.flush()
    try:
        done = subprocess.run(words, check=False, stdout=None if _has_file(factory) else subprocess.PIPE)
    except FileNotFoundError:
        raise CliError(f"failed to run {quote(words[0])}: executable file not found in $PATH") from None
    if done.stdout:
        factory.print(done.stdout.decode(), end="")
    if done.returncode > 1:
        raise CliError(f"failed to run {quote(words[0])}: exit status {done.returncode}")
    return done.returncode


def command(external: str, before: str, after: str) -> list[str]:
    """The program, what it compares, and its flags: of KUBECTL_EXTERNAL_DIFF only words of letters, digits, "-" and
    "=" are passed on, behind the rest."""
    if not external:
        return ["diff", "-u", "-N", before, after]
    name, *flags = external.split(" ")
    return [name, before, after, *(flag for flag in flags if re.fullmatch("[a-zA-Z0-9-=]+", flag))]


def _has_file(factory: Factory) -> bool:
    try:
        factory.stdout.fileno()
    except io.UnsupportedOperation:
        return False
    return True
