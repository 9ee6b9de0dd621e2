"""How this kubepy was installed, and the command that adds an extra to it.

The distribution is ``kubepy-cluster``: on PyPI the name kubepy belongs to another project. An extra
comes from where the installation came from (PEP 610, ``direct_url.json``), through the program that
manages it: pip, pipx or uv.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import kubepy
from kubepy.cli.errors import CliError

DISTRIBUTION = "kubepy-cluster"
# Files in an environment that one of these programs manages as a whole.
PIPX = "pipx_metadata.json"
UV_TOOL = "uv-receipt.toml"
OF_SERVE = ("cryptography", "h11", "uvicorn", "wsproto")


def missing_extra(extra: str) -> str:
    """Return the end of a message: which extra is missing here, and the command that installs
    it."""
    command = command_for(extra)
    return f'the extra "{extra}" of this installation' + (f": {command}" if command else "")


def require_serve(*names: str) -> None:
    """Import modules of packages that the extra ``serve`` brings, without names all of them.
    Raises CliError where one is missing."""
    require_extra("serve", *(names or OF_SERVE))


def require_extra(extra: str, *names: str) -> None:
    """Import modules of packages that an extra brings. Raises CliError where one is missing."""
    try:
        for name in names:
            import_module(name)
    except ImportError:
        raise CliError(f"this command needs {missing_extra(extra)}") from None


def command_for(extra: str) -> str:
    """Return the command that installs an extra, "" where nothing says how kubepy came here."""
    source = _source(extra)
    if source:
        return shlex.join([*_installer(), *source])
    return ""


def _source(extra: str) -> list[str]:
    """Return what is installed with the extra, as words for pip; nothing where that is not
    known."""
    try:
        found = distribution(DISTRIBUTION)
    except PackageNotFoundError:  # run from a clone
        folder = os.path.dirname(os.path.dirname(os.path.abspath(kubepy.__file__)))
        if os.path.exists(os.path.join(folder, "pyproject.toml")):
            return [f"{folder}[{extra}]"]
        return []

    origin = _origin(found)
    if origin is None:  # an index of packages
        return [f"{DISTRIBUTION}[{extra}]"]
    url = str(origin["url"])
    if "dir_info" in origin:
        folder = url2pathname(urlsplit(url).path)
        is_editable = origin["dir_info"].get("editable", False)
        return [*(["--editable"] if is_editable else []), f"{folder}[{extra}]"]

    return [f"{DISTRIBUTION}[{extra}] @ {_full_url(origin, url)}"]


def _origin(found: Distribution) -> Mapping[str, Any] | None:
    """Return where a distribution came from, None for an index."""
    text = found.read_text("direct_url.json")
    origin: Mapping[str, Any] | None = json.loads(text) if text else None
    return origin


def _full_url(origin: Mapping[str, Any], url: str) -> str:
    """Return the URL of an archive or a repository as a requirement names it."""
    if repository := origin.get("vcs_info"):
        url = (
            f"{repository['vcs']}+{url}@"
            f"{repository.get('requested_revision') or repository['commit_id']}"
        )
    if folder := origin.get("subdirectory"):
        url = f"{url}#subdirectory={folder}"
    return url


def _installer() -> list[str]:
    """Return the words of the program that manages this environment, up to what is to be
    installed."""
    if os.path.exists(os.path.join(sys.prefix, PIPX)):
        return ["pipx", "install", "--force"]
    if os.path.exists(os.path.join(sys.prefix, UV_TOOL)):
        return ["uv", "tool", "install", "--force"]
    if find_spec("pip") is None:  # uv makes environments without pip
        return ["uv", "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"]
