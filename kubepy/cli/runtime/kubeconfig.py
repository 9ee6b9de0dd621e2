"""Contexts: the file that keeps them, and the folder and namespace that a command line chooses.

A cluster is a state folder, whose ``server`` is ``file:///path``, or in etcd: ``etcd://…``. One
without such a server (``https://…`` of a script that was written for kubectl) is home. Of users
only impersonation counts. The file is the home folder's own, or the kubeconfig that
``--kubeconfig`` names. Upstream: ``client-go/tools/clientcmd``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.cli.errors import CliError, UnprefixedError, os_error_text
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

if TYPE_CHECKING:
    from kubepy.storage.store import Store

with lazy_imports():
    from kubepy.api.values import goformat
    from kubepy.cli import files
    from kubepy.controlplane import open as openings
    from kubepy.storage import homes, yaml

CONFIG = "config"
FILE = os.path.join(".kubepy", CONFIG)
FIRST = "kubepy"  # the context, cluster and user of a folder in which nothing has been chosen
FOLDER = "file://"
CONTEXTS = "contexts"  # in the meta values of a store in memory

Entry = dict[str, Any]
Entries = dict[str, Entry]


class Kubeconfig(NamedTuple):
    """The entries by their names. ``rest``: the file's other fields, which are kept.

    ``is_chosen``: somebody has set some of them. Else they are made up for the folder, and any
    other name stands for its first context.
    """

    current: str
    clusters: Entries
    contexts: Entries
    users: Entries
    is_chosen: bool = True
    rest: tuple[tuple[str, Any], ...] = ()


class Target(NamedTuple):
    """The place and the namespace that a command works on. ``namespace`` "": the context names
    none.

    ``user``: the context's user, whose impersonation counts.
    """

    place: str
    namespace: str
    user_name: str
    user: Entry


def _ignore(line: str) -> None:
    """Tell nobody."""


class ConfigAccess(NamedTuple):
    """The file of contexts: that of the home folder, or the one that ``--kubeconfig`` names.

    ``store``: that of a cluster in memory, which keeps the contexts in place of a folder. ``warn``:
    tells the user of contexts that do not count.
    """

    home: str
    explicit: str = ""
    store: Store | None = None
    warn: Callable[[str], None] = _ignore

    @property
    def path(self) -> str:
        return self.explicit or os.path.join(self.home, FILE)

    def read(self) -> Kubeconfig:
        """Read the contexts; a kubeconfig that is not there has none. Raises CliError for a file of
        another form."""
        try:
            if self.explicit:
                return decode(parse(files.read_bytes(self.explicit).decode(errors="replace")))
            if self.store:
                text = self.store.meta(CONTEXTS)
                if text:
                    return _of_folder(decode(json.loads(text)))
                return _first()
            return _of_folder(self._read_own())
        except FileNotFoundError:
            if self.explicit:
                return Kubeconfig("", {}, {}, {})
            return _first()
        except (NotADirectoryError, PermissionError) as error:
            if not self.explicit:  # the contexts of another user are not ours
                return _first()
            reason = os_error_text(error)
        except OSError as error:
            reason = f"read {self.path}: {(error.strerror or str(error)).lower()}"
        except ValueError as error:
            reason = str(error)

        raise CliError(f"error loading config file {quote(self.path)}: {reason}") from None

    def _read_own(self) -> Kubeconfig:
        """Read the contexts of the home folder; those that kubepy has not written there do not
        count. Raises OSError, ValueError."""
        content = self._own_content()
        config = decode(json.loads(content))
        if homes.is_own_content(self.home, CONFIG, content):
            return config
        content = self._own_content()  # another process may have been replacing it
        if homes.is_own_content(self.home, CONFIG, content):
            return decode(json.loads(content))
        self.warn(f'{self.path} was not written by kubepy: it is not used ("kubepy trust" uses it)')
        return _first()

    def _own_content(self) -> bytes:
        with open(self.path, "rb") as file:
            return file.read()

    def require_file(self) -> None:
        """Raise CliError where --kubeconfig names a file that is not there."""
        if not self.explicit:
            return
        try:
            os.stat(self.explicit)
        except OSError as error:
            raise CliError(
                f"stat {printable(self.explicit)}: {(error.strerror or str(error)).lower()}"
            ) from None

    def write(self, config: Kubeconfig) -> None:
        """Replace the file, which only its owner may read. Raises CliError when it cannot be
        written, FolderError."""
        content = as_object(config)
        if self.store and not self.explicit:
            self.store.set_values({CONTEXTS: json.dumps(content)})
            return
        path = os.path.realpath(self.path)
        try:
            if self.explicit:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                homes.write_private(path, yaml.dump(content).encode())
            else:
                homes.make_own_folder(self.home)
                homes.write_content(
                    self.home, CONFIG, f"{json.dumps(content, indent=2)}\n".encode()
                )
        except OSError as error:
            raise CliError(f"{path}: {error.strerror}") from None


def _first() -> Kubeconfig:
    """Return the contexts of a folder in which nothing has been chosen."""
    context = {"cluster": FIRST, "user": FIRST}
    return Kubeconfig(FIRST, {FIRST: {}}, {FIRST: context}, {FIRST: {}}, is_chosen=False)


def _of_folder(config: Kubeconfig) -> Kubeconfig:
    """Return the contexts of a folder's own file, in which there may only be other names for the
    first one."""
    first = _first()
    names_alone = config._replace(
        current=FIRST, contexts={FIRST: config.contexts.get(FIRST, {})}, is_chosen=False
    )
    is_same = all(context == first.contexts[FIRST] for context in config.contexts.values())
    return config._replace(is_chosen=not (is_same and names_alone == first))


# --- the file's form ------------------------------------------------------------------------------

# Of each section: the field of an entry, its Go type, and the types of those of its fields that are
# read here.
SECTIONS = {
    "clusters": ("cluster", "Cluster", {"server": "string"}),
    "contexts": (
        "context",
        "Context",
        {"cluster": "string", "user": "string", "namespace": "string"},
    ),
    "users": (
        "user",
        "AuthInfo",
        {
            "as": "string",
            "as-uid": "string",
            "as-groups": "[]string",
            "as-user-extra": "map[string][]string",
        },
    ),
}


def parse(text: str) -> object:
    """Read YAML. Raises ValueError."""
    try:
        documents = yaml.load_all(text)
    except yaml.YamlError as error:
        raise ValueError(str(error).removeprefix("error converting YAML to JSON: ")) from None
    if documents:
        return documents[0].object
    return {}


def decode(content: object) -> Kubeconfig:
    """Read an API object of kind Config. Raises ValueError in Go's words."""
    if not isinstance(content, dict):
        raise ValueError(
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f"{goformat.json_type_name(content)} into Go value of type struct {{ APIVersion string "
            r'"json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
        )

    kind = content.get("kind") or "Config"
    version = content.get("apiVersion") or "v1"
    if (kind, version) != ("Config", "v1"):
        raise ValueError(
            f'no kind "{kind}" is registered for version "{version}" in scheme '
            '"k8s.io/client-go/tools/clientcmd/api/latest/latest.go:50"'
        )

    current = content.get("current-context") or ""
    _check(current, "string", "Config.current-context")
    clusters, contexts, users = (
        decode_entries(content.get(section) or [], section) for section in SECTIONS
    )
    known = {"kind", "apiVersion", "current-context", *SECTIONS}
    return Kubeconfig(
        current,
        clusters,
        contexts,
        users,
        rest=tuple((key, value) for key, value in content.items() if key not in known),
    )


def decode_entries(items: object, section: str) -> Entries:
    """Read the entries of a section. Raises ValueError in Go's words."""
    field, go_type, types = SECTIONS[section]
    _check(items, f"[]v1.Named{go_type}", f"Config.{section}")
    entries: Entries = {}
    for item in items if isinstance(items, list) else []:
        _check(item, f"v1.Named{go_type}", f"Config.{section}")
        name = item.get("name") or ""
        entry = item.get(field) or {}
        _check(name, "string", f"Named{go_type}.{section}.name")
        _check(entry, f"v1.{go_type}", f"Named{go_type}.{section}.{field}")
        for key in types.keys() & entry.keys():
            _check(entry[key], types[key], f"{go_type}.{section}.{field}.{key}")
        if name in entries:
            raise ValueError(
                f"error converting *[]Named{go_type} into *map[string]*api.{go_type}: duplicate "
                f"name "
                f'"{name}" in list'
            )
        entries[name] = dict(entry)

    return entries


def _check(value: object, go_type: str, path: str) -> None:
    """Raise ValueError unless a value may be of a Go type."""
    if go_type.startswith("[]"):
        form: type = list
    else:
        form = str if go_type == "string" else dict

    if value is not None and not isinstance(value, form):
        raise ValueError(
            f"json: cannot unmarshal {goformat.json_type_name(value)} into Go struct field {path} "
            f"of "
            f"type {go_type}"
        )

    if go_type == "[]string":
        for item in value or ():  # type: ignore[attr-defined]
            _check(item, "string", path)
    elif go_type.startswith("map["):
        for item in (value or {}).values():  # type: ignore[attr-defined]
            _check(item, "[]string", path)


def as_object(config: Kubeconfig) -> Entry:
    """Return the API object, its fields in Go's order."""
    return {
        "kind": "Config",
        "apiVersion": "v1",
        "clusters": _listed(config.clusters, "cluster"),
        "users": _listed(config.users, "user"),
        "contexts": _listed(config.contexts, "context"),
        "current-context": config.current,
        **dict(config.rest),
    }


def _listed(entries: Entries, kind: str) -> list[Entry]:
    return [{"name": name, kind: entries[name]} for name in sorted(entries)]


# --- folders --------------------------------------------------------------------------------------


def is_folder(text: str) -> bool:
    """Return whether a word is a state folder: a path, or the name of one in the working
    directory."""
    if not text or "://" in text:
        return False
    return (
        os.sep in text or text in (".", "..") or os.path.exists(os.path.join(text, "kubepy.yaml"))
    )


def server_of(text: str) -> str:
    """Return a folder as the URL of a server; anything else as it is."""
    if is_folder(text):
        return FOLDER + os.path.abspath(text)
    return text


def place_of(server: str, home: str) -> str:
    """Return the folder behind the server of a cluster, or its address in etcd."""
    if server.startswith(FOLDER):
        return server.removeprefix(FOLDER)
    if openings.is_in_etcd(server):
        return server
    return home


def target(
    config: Kubeconfig, home: str, context: str = "", cluster: str = "", user: str = ""
) -> Target:
    """Return the folder and the namespace that a command works on.

    :param context: the context that --context names, if it does. Without a file of contexts it may
        be anything: a script written for kubectl names its own.
    :param cluster: the cluster that --cluster names in place of the context's, or a folder.
    :param user: the user that --user names in place of the context's.
    :raises UnprefixedError: for a context, cluster or user that is not there.
    """
    name = context if context and config.is_chosen else config.current
    if name and name not in config.contexts:
        raise UnprefixedError(
            f"Error in configuration: context was not found for specified context: {name}"
        )

    chosen = config.contexts.get(name, {})
    if config.is_chosen:
        if cluster and cluster not in config.clusters and not is_folder(cluster):
            raise CliError(f"no server found for cluster {quote(cluster)}")
        if user and user not in config.users:
            raise CliError(f"auth info {quote(user)} does not exist")

    server = config.clusters.get(cluster or chosen.get("cluster") or "", {}).get(
        "server"
    ) or server_of(cluster)
    user_name = user or chosen.get("user") or ""
    return Target(
        place_of(server, home),
        chosen.get("namespace") or "",
        user_name,
        config.users.get(user_name, {}),
    )
