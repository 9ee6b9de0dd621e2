"""Kustomizations in git repositories: addresses as kustomize reads them, and clones by the ``git``
on the PATH.

Upstream: ``kustomize/api/internal/git``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import parse_qsl

from kubepy.api.values.goformat import format_duration, parse_duration
from kubepy.cli.errors import CliError
from kubepy.cli.files import create_folder
from kubepy.quoting import printable, printable_lines, quote

TIMEOUT = 27.0  # seconds that each git command may take
_SCHEMES = ("ssh://", "https://", "http://", "file://")
_FORCED_GIT = (
    "Warning: Forcing the git protocol using the 'git::' URL prefix is not supported. Kustomize "
    "currently "
    "strips this invalid prefix, but will stop doing so in a future release. Please remove the "
    "'git::' "
    "prefix from your configuration."
)


class RepoSpec(NamedTuple):
    """A folder in a repository.

    :param raw: the address as it was written.
    :param clone_spec: what git fetches from.
    :param path: the folder in the repository.
    """

    raw: str
    clone_spec: str
    path: str
    ref: str = ""
    timeout: float = TIMEOUT
    submodules: bool = True


def parse_repository(
    address: str, warn: Callable[[str], None] = lambda text: None
) -> RepoSpec | None:
    """Return the repository that an address names, None for an address that names none (a path)."""
    if os.path.isabs(address):
        return None
    location, _, query = address.partition("?")
    if location[:5].lower() == "git::":
        warn(_FORCED_GIT)
        location = location[5:]
    scheme = next((scheme for scheme in _SCHEMES if location.lower().startswith(scheme)), "")
    rest = location[len(scheme) :]
    user = match[0] if (match := re.match(r"[a-zA-Z][a-zA-Z0-9-]*@", rest)) else ""
    rest = rest[len(user) :]
    is_github = rest.lower().startswith(("github.com/", "github.com:"))
    is_scp = not scheme and bool(user or is_github)
    if not scheme and not is_scp:
        return None
    if scheme == "file://":
        host = scheme
        rest = user + rest
    else:
        end = _host_end(rest, is_scp)
        host = rest[:end]
        rest = rest[end:]
        if is_github:
            is_ssh = scheme == "ssh://" or user
            scheme, host = ("", "github.com:") if is_ssh else ("https://", "github.com/")
            user = user if is_ssh else ""
        if not host:
            return None
        host = scheme + user + host

    parts = split_repository_path(rest, host)
    if (
        parts is None
        or not parts[0]
        or os.path.normpath(parts[1].removeprefix("/")).split("/")[0] == ".."
    ):
        return None

    ref, timeout, submodules = parse_query(query)
    return RepoSpec(address, host + parts[0], parts[1].removeprefix("/"), ref, timeout, submodules)


def _host_end(rest: str, is_scp: bool) -> int:
    """Return where the host ends, with its slash, or the colon of ``user@host:path``."""
    end = rest.find("/")
    if is_scp and (end < 0 or 0 < rest.find(":") < end):
        end = rest.find(":")
    if end < 0:
        return len(rest)
    return end + 1


def split_repository_path(path: str, host: str) -> tuple[str, str] | None:
    """Split the path of the repository from the one in it: at ``_git/NAME``, ``//``, ``.git``, or
    after two parts."""
    if (start := path.find("_git/")) >= 0:
        name, _, inner = path[start + 5 :].partition("/")
        return path[: start + 5] + name, inner
    if (start := path.find("//")) >= 0:
        return path[:start], path[start + 2 :]
    if (start := path.find(".git")) >= 0:
        return path[: start + 4], path[start + 4 :]
    if host.startswith("file://"):
        return path, ""
    parts = path.split("/")
    if len(parts) >= 2:
        return ("/".join(parts[:2]), "/".join(parts[2:]))
    return None


def parse_query(query: str) -> tuple[str, float, bool]:
    """Return the ref, the time limit and whether submodules are cloned."""
    values: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        values.setdefault(name, value)
    timeout = TIMEOUT
    text = values.get("timeout", "")
    if re.fullmatch(r"[+-]?\d{1,9}", text):
        timeout = float(text) if int(text) > 0 else TIMEOUT
    elif text:
        with suppress(ValueError):
            timeout = duration if (duration := parse_duration(text)) > 0 else TIMEOUT
    submodules = values.get("submodules", "") not in ("0", "f", "F", "false", "False", "FALSE")
    return values.get("ref") or values.get("version", ""), timeout, submodules


def clone(spec: RepoSpec) -> str:
    """Return a new folder with the files of a repository. Raises CliError; then there is no
    folder."""
    program = shutil.which("git")
    if program is None:
        raise CliError(
            "no 'git' program on path: exec: \"git\": executable file not found in $PATH"
        )

    if spec.ref.startswith("-"):
        raise CliError(
            f"the ref {quote(spec.ref)} of '{printable(spec.raw)}' would be an option of git"
        )

    folder = os.path.realpath(create_folder("kustomize-"))
    try:
        for args in (
            ["init"],
            ["remote", "add", "origin", spec.clone_spec],
            ["fetch", "--depth=1", spec.clone_spec, spec.ref or "HEAD"],
            ["checkout", "FETCH_HEAD"],
            *([["submodule", "update", "--init", "--recursive"]] if spec.submodules else []),
        ):
            _run([program, *args], folder, spec.timeout)
    except BaseException:
        remove(folder)
        raise

    return folder


def _run(command: list[str], folder: str, timeout: float) -> None:
    """Run git in a folder. Raises CliError."""
    line = printable(" ".join(command))
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CliError(f"hit {format_duration(timeout)} timeout running '{line}'") from None

    if done.returncode:
        output = printable_lines(done.stdout.decode(errors="replace"))
        raise CliError(f"failed to run '{line}': {output}: exit status {done.returncode}")


def remove(folder: str) -> None:
    """Remove a clone."""
    shutil.rmtree(folder, ignore_errors=True)
