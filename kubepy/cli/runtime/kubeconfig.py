"""The contexts of a folder: the file that keeps them, and the folder and namespace that a command line chooses.

A cluster is a state folder: its ``server`` is ``file:///path``. One without such a server (``https://…`` of a script
that was written for kubectl) is home. Users are kept and mean nothing.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from kubepy.cli.errors import CliError, UnprefixedError
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.storage.folder import index

FILE = os.path.join(".kubepy", "config")
FIRST = "kubepy"  # the context, cluster and user of a folder in which nothing has been chosen
FOLDER = "file://"

Entry = dict[str, Any]
Entries = dict[str, Entry]


class Kubeconfig(NamedTuple):
    """The entries by their names. ``is_chosen``: they were read from a file, and are not made up for the folder."""

    current: str
    clusters: Entries
    contexts: Entries
    users: Entries
    is_chosen: bool = True


class Target(NamedTuple):
    """The folder and the namespace that a command works on. ``namespace`` "": the context names none."""

    folder: str
    namespace: str


def read(home: str) -> Kubeconfig:
    """Read the contexts. Raises CliError for a file of another form."""
    path = os.path.join(home, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        current = _text(content["current-context"])
        clusters, contexts, users = ({_text(entry["name"]): dict(entry[kind]) for entry in content[f"{kind}s"]}
                                     for kind in ("cluster", "context", "user"))
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


def write(home: str, config: Kubeconfig) -> None:
    """Replace the file, which only its owner may read. Raises CliError when it cannot be written, FolderError."""
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
    """Return the API object, its fields in Go's order."""
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
    """Return whether a word is a state folder: a path, or the name of one in the working directory."""
    if not text or "://" in text:
        return False
    return os.sep in text or text in (".", "..") or os.path.exists(os.path.join(text, "kubepy.yaml"))


def server_of(text: str) -> str:
    """Return a folder as the URL of a server; anything else as it is."""
    return FOLDER + os.path.abspath(text) if is_folder(text) else text


def folder_of(server: str, home: str) -> str:
    """Return the folder behind the server of a cluster."""
    return server.removeprefix(FOLDER) if server.startswith(FOLDER) else home


def target(config: Kubeconfig, home: str, context: str = "", cluster: str = "", user: str = "") -> Target:
    """Return the folder and the namespace that a command works on.

    :param context: the context that --context names, if it does. Without a file of contexts it may be
        anything: a script written for kubectl names its own.
    :param cluster: the cluster that --cluster names in place of the context's, or a folder.
    :param user: the user that --user names; it changes nothing.
    :raises UnprefixedError: for a context, cluster or user that is not there.
    """
    name = context if context and config.is_chosen else config.current
    if name and name not in config.contexts:
        raise UnprefixedError(f"Error in configuration: context was not found for specified context: {name}")
    chosen = config.contexts.get(name, {})
    if config.is_chosen:
        if cluster and cluster not in config.clusters and not is_folder(cluster):
            raise CliError(f"no server found for cluster {quote(cluster)}")
        if user and user not in config.users:
            raise CliError(f"auth info {quote(user)} does not exist")
    server = config.clusters.get(cluster or chosen.get("cluster", ""), {}).get("server") or server_of(cluster)
    return Target(folder_of(server, home), chosen.get("namespace", ""))
