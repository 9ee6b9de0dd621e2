"""The contexts of a folder: what they are, the file that keeps them, and what a command line makes of them.

A cluster is a state folder: its ``server`` is ``file:///path``. One without such a server (``https://…`` of a script
that was written for kubectl) is home. Users are kept and mean nothing.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from kubepy.cli.errors import CliError, UnprefixedError
from kubepy.quoting import quote

FILE = os.path.join(".kubepy", "config")
FIRST = "kubepy"  # the context, cluster and user of a folder in which nothing has been chosen
FOLDER = "file://"

Entry = dict[str, Any]
Entries = dict[str, Entry]


class Kubeconfig(NamedTuple):
    """Each entry by its name. ``is_chosen``: whether somebody wrote it, or it only stands for the folder as it is."""

    current: str
    clusters: Entries
    contexts: Entries
    users: Entries
    is_chosen: bool = True


class Target(NamedTuple):
    """Where a command works. ``namespace`` "": the context says none."""

    folder: str
    namespace: str


def read(home: str) -> Kubeconfig:
    """Raises CliError for a file that is not of this form."""
    path = os.path.join(home, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        current = _text(found["current-context"])
        clusters, contexts, users = (_entries(found[f"{kind}s"], kind) for kind in ("cluster", "context", "user"))
        return Kubeconfig(current, clusters, contexts, users)
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # the contexts of another user are not ours
        context = {"cluster": FIRST, "user": FIRST}
        return Kubeconfig(FIRST, {FIRST: {}}, {FIRST: context}, {FIRST: {}}, is_chosen=False)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from None
    except KeyError as error:
        raise CliError(f"{path}: {error} is missing") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise CliError(f"{path}: {error}") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _entries(found: list[Entry], kind: str) -> Entries:
    return {_text(one["name"]): dict(one[kind]) for one in found}


def write(home: str, config: Kubeconfig) -> None:
    """Replace the file, which only its owner may read. Raises CliError when it cannot be written, FolderError."""
    from kubepy.storage.folder import index

    path = os.path.join(home, FILE)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        index.make_own_folder(home)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with open(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(as_object(config), file, indent=2)
            file.write("\n")
        os.replace(temporary, path)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from None


def as_object(config: Kubeconfig) -> Entry:
    """The API object, its fields in Go's order."""
    return {
        "kind": "Config",
        "apiVersion": "v1",
        "clusters": _listed(config.clusters, "cluster"),
        "users": _listed(config.users, "user"),
        "contexts": _listed(config.contexts, "context"),
        "current-context": config.current,
    }


def _listed(entries: Entries, kind: str) -> list[Entry]:
    return [{"name": name, kind: entries[name]} for name in sorted(entries)]


# --- folders ------------------------------------------------------------------------------------------------------


def is_folder(text: str) -> bool:
    """Whether a word is a state folder: a path, or the name of one that is here."""
    if not text or "://" in text:
        return False
    return os.sep in text or text in (".", "..") or os.path.exists(os.path.join(text, "kubepy.yaml"))


def server_of(text: str) -> str:
    """A folder as the URL of a server; anything else as it is."""
    return FOLDER + os.path.abspath(text) if is_folder(text) else text


def folder_of(server: str, home: str) -> str:
    """The folder behind the server of a cluster."""
    return server.removeprefix(FOLDER) if server.startswith(FOLDER) else home


def _expect_named(config: Kubeconfig, cluster: str, user: str) -> None:
    if cluster and cluster not in config.clusters and not is_folder(cluster):
        raise CliError(f"no server found for cluster {quote(cluster)}")
    if user and user not in config.users:
        raise CliError(f"auth info {quote(user)} does not exist")


def target(config: Kubeconfig, home: str, context: str = "", cluster: str = "", user: str = "") -> Target:
    """Where a command works.

    :param context: the context that --context names, if it does. Where nobody has chosen any contexts it may be
        anything: a script written for kubectl names its own.
    :param cluster: the cluster that --cluster names in its place, or a folder.
    :param user: the user that --user names, who changes nothing.
    :raises UnprefixedError: for a context, cluster or user that is not there.
    """
    name = context if context and config.is_chosen else config.current
    if name and name not in config.contexts:
        raise UnprefixedError(f"Error in configuration: context was not found for specified context: {name}")
    chosen = config.contexts.get(name, {})
    if config.is_chosen:
        _expect_named(config, cluster, user)
    server = config.clusters.get(cluster or chosen.get("cluster", ""), {}).get("server") or server_of(cluster)
    return Target(folder_of(server, home), chosen.get("namespace", ""))
