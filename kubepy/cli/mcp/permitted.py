"""The commands, flags and files that a caller of the tools may ask for.

Everything that is not on these lists is refused, so that a command or a flag that is added
elsewhere must be added here before anybody can call it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kubepy.cli.errors import CliError
from kubepy.cli.names import KUBECTL, KUBEPY
from kubepy.cli.runtime.command import Command
from kubepy.cli.runtime.dispatch import Line, line_of
from kubepy.cli.runtime.flags import Flag, FlagSyntaxError, HelpRequested, Parsed
from kubepy.quoting import printable, quote

# Commands that show what is there.
READING = frozenset(
    {
        "api-resources",
        "api-versions",
        "apply view-last-applied",
        "auth can-i",
        "auth whoami",
        "clock",
        "describe",
        "events",
        "explain",
        "get",
        "logs",
        "rollout diff",
        "rollout history",
        "rollout status",
        "timeline",
        "top node",
        "top pod",
        "version",
        "why",
    }
)
# Commands that change the cluster, or let its time go on.
CHANGING = frozenset(
    {
        "annotate",
        "apply",
        "apply set-last-applied",
        "auth reconcile",
        "autoscale",
        "certificate approve",
        "certificate deny",
        "clock advance",
        "clock set",
        "controller",
        "cordon",
        "create",
        "create clusterrole",
        "create clusterrolebinding",
        "create configmap",
        "create cronjob",
        "create deployment",
        "create ingress",
        "create job",
        "create namespace",
        "create poddisruptionbudget",
        "create priorityclass",
        "create quota",
        "create role",
        "create rolebinding",
        "create secret docker-registry",
        "create secret generic",
        "create service clusterip",
        "create service externalname",
        "create service loadbalancer",
        "create service nodeport",
        "create serviceaccount",
        "debug",
        "delete",
        "drain",
        "exec",
        "expose",
        "label",
        "patch",
        "replace",
        "rollout pause",
        "rollout restart",
        "rollout resume",
        "rollout undo",
        "run",
        "scale",
        "set env",
        "set image",
        "set resources",
        "set selector",
        "set serviceaccount",
        "set subject",
        "taint",
        "uncordon",
        "wait",
    }
)
# The flags of these commands that mean the same, and no harm, wherever they stand.
FLAGS = frozenset(
    {
        "aggregation-rule", "all", "all-containers", "all-namespaces", "all-pods",
        "allow-missing-template-keys", "annotation", "annotations", "api-group", "api-version",
        "append-hash", "arguments-only", "ascii", "behaviour", "cascade", "categories",
        "chunk-size", "class", "client", "cluster-ip", "clusterip", "clusterrole", "command",
        "container", "containers", "copy-to", "cpu", "cpu-percent", "create-annotation",
        "current-replicas", "default-backend", "delete-emptydir-data", "description",
        "disable-eviction", "docker-email", "docker-password", "docker-server", "docker-username",
        "dry-run", "env", "expose", "external-ip", "external-name", "field-manager",
        "field-selector", "filename", "for", "force", "force-conflicts", "from", "from-literal",
        "from-revision", "global-default", "grace-period", "group", "hard", "ignore-daemonsets",
        "ignore-errors", "ignore-not-found", "image", "image-pull-policy",
        "insecure-skip-tls-verify-backend", "keep-annotations", "keep-init-containers",
        "keep-labels", "keep-liveness", "keep-readiness", "keep-startup", "keys", "kustomize",
        "label-columns", "labels", "limit-bytes", "limits", "list", "load-balancer-ip", "local",
        "max", "max-log-requests", "max-unavailable", "memory", "min", "min-available", "name",
        "namespace", "namespaced", "no-headers", "node-port", "non-resource-url", "now", "once",
        "openapi-patch", "output", "override-type", "overrides", "overwrite", "patch",
        "patch-file", "pod-running-timeout", "pod-selector", "port", "preemption-policy",
        "prefix", "previous", "privileged", "protocol", "prune", "prune-allowlist", "quiet",
        "quiet-for", "record", "recursive", "remove-extra-permissions",
        "remove-extra-subjects", "replace", "replicas", "requests", "resolve", "resource",
        "resource-name", "resource-version", "restart", "revision", "role", "rule",
        "same-node", "save-config", "schedule", "scopes", "selector", "server-print",
        "server-side", "serviceaccount", "session-affinity", "set-image", "share-processes",
        "show-capacity", "show-events", "show-kind", "show-labels", "show-managed-fields",
        "show-swap", "since", "since-time", "skip-wait-for-delete-timeout", "sort-by",
        "subresource", "sum", "tail", "target", "target-port", "tcp", "timeout",
        "timestamps", "to-revision", "type", "types", "until", "until-settled",
        "use-protocol-buffers", "validate", "value", "verb", "verbs", "wait",
        "warnings-as-errors",
    }
)  # fmt: skip
# More flags of single commands.
MORE_FLAGS: Mapping[str, frozenset[str]] = {
    "auth can-i": frozenset({"as", "as-group", "as-uid", "as-user-extra"}),
    "auth whoami": frozenset({"as", "as-group", "as-uid", "as-user-extra"}),
    # Flags that hide a global one of the same name.
    "create clusterrolebinding": frozenset({"user"}),  # a subject
    "create rolebinding": frozenset({"user"}),
    "debug": frozenset({"profile"}),  # the name of one
    "rollout status": frozenset({"watch"}),
    "set subject": frozenset({"user"}),
}
# Flags whose value names a file or a folder, which must be one of those that came with the call.
FILES = frozenset({"filename", "kustomize", "patch-file"})
STDIN = "-"
# The formats of -o, up to a "=": none of them names a file.
FORMATS = frozenset(
    {
        "custom-columns", "go-template", "json", "jsonpath", "jsonpath-as-json", "kyaml",
        "markdown", "name", "plaintext", "plaintext-openapiv2", "template", "text", "wide",
        "yaml",
    }
)  # fmt: skip

# --- why a command is refused ---------------------------------------------------------------------

_FILES_OF_MACHINE = "it is about files of this machine"
_PORT = "it opens a port"
_PROGRAM = "it starts a program"
_OWN_TOOL = "it is a tool of its own"
_FOLDER = "it makes or checks a state folder"
COMMAND_REASONS = {
    "apply edit-last-applied": "it starts an editor",
    "attach": "it goes on until it is interrupted",
    "cluster-info": _FILES_OF_MACHINE,
    "cluster-info dump": _FILES_OF_MACHINE,
    "completion": "it is for shells",
    "config": _FILES_OF_MACHINE,
    "cp": "it reads or writes files of this machine",
    "create secret tls": "it reads files of this machine: apply a manifest",
    "create token": "a token is a key to a server of this cluster",
    "diff": "it starts a program: plan says what changes",
    "edit": "it starts an editor: patch or apply",
    "envtest-assets": _FILES_OF_MACHINE,
    "fork": _FOLDER,
    "fsck": _FOLDER,
    "git": _FOLDER,
    "import": "it reads files of this machine",
    "init": _FOLDER,
    "kuberc": _FILES_OF_MACHINE,
    "kustomize": "it reads files of this machine: give them as files, for apply -k",
    "mcp": "this is one",
    "plan": _OWN_TOOL,
    "plugin": _PROGRAM,
    "port-forward": _PORT,
    "proxy": _PORT,
    "serve": _PORT,
    "trust": _FOLDER,
}
_ANOTHER_CLUSTER = "the cluster is the one that this server was started with"
_ANOTHER_USER = "requests are made as the user that this server was started with"
_READS_FILE = "it reads a file of this machine"
_WRITES_FILES = "it writes files"
_ENDLESS = "it goes on until it is interrupted"
_NO_INPUT = "nobody is there to type"
FLAG_REASONS = {
    "as": _ANOTHER_USER,
    "as-group": _ANOTHER_USER,
    "as-uid": _ANOTHER_USER,
    "as-user-extra": _ANOTHER_USER,
    "attach": _NO_INPUT,
    "cache-dir": _WRITES_FILES,
    "cert": _READS_FILE,
    "certificate-authority": _READS_FILE,
    "client-certificate": _READS_FILE,
    "client-key": _READS_FILE,
    "cluster": _ANOTHER_CLUSTER,
    "context": _ANOTHER_CLUSTER,
    "custom": _READS_FILE,
    "edit": "it starts an editor",
    "faults": _READS_FILE,
    "follow": _ENDLESS,
    "from-env-file": f"{_READS_FILE}: use --from-literal, or apply a manifest",
    "from-file": f"{_READS_FILE}: use --from-literal, or apply a manifest",
    "interactive": _NO_INPUT,
    "key": _READS_FILE,
    "kubeconfig": _ANOTHER_CLUSTER,
    "kuberc": _READS_FILE,
    "output-directory": _WRITES_FILES,
    "profile-output": _WRITES_FILES,
    "raw": "it is a request of any kind",
    "server": _ANOTHER_CLUSTER,
    "state": _ANOTHER_CLUSTER,
    "stdin": _NO_INPUT,
    "template": "it may name a file: write -o go-template=TEMPLATE",
    "token": _ANOTHER_USER,
    "trust": _ANOTHER_CLUSTER,
    "tty": _NO_INPUT,
    "user": _ANOTHER_USER,
    "watch": _ENDLESS,
    "watch-only": _ENDLESS,
}
OPERATORS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>", "2>&1"})
MAX_SHOWN = 200  # characters of a value in a message


class RefusedError(CliError):
    """A command line that may not be asked for; nothing of the call has been done."""


class PermittedCommand(NamedTuple):
    """A command line that may run.

    :ivar line: the command that it names.
    :ivar parsed: its words, read; None: it asks for the help of the command.
    """

    line: Line
    parsed: Parsed | None


# --- commands -------------------------------------------------------------------------------------


def words_of(command: str | Sequence[str]) -> list[str]:
    """Return the words of a command line, without the program's name. Raises RefusedError."""
    if isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise RefusedError(f"cannot read {_shown(command)}: {str(error).lower()}") from None
    else:
        words = list(command)
    if any("\0" in word for word in words):
        raise RefusedError("a command line holds no NUL characters")
    if words[:1] in ([KUBEPY], [KUBECTL]):
        return words[1:]
    return words


def permit(
    root: Command, command: str | Sequence[str], allowed: Collection[str], files: Collection[str]
) -> PermittedCommand:
    """Return a command line that may run.

    :param root: ``kubepy`` itself.
    :param allowed: the commands that the tool takes (``rollout undo``).
    :param files: the names of those that came with the call.

    Raises RefusedError, which says what may not be asked for.
    """
    words = words_of(command)
    _check_operators(words)
    line = line_of(root, words)
    path = " ".join(line.path)
    if path not in allowed:
        raise RefusedError(_reason_against(line, allowed))
    try:
        parsed = read_flags(line)
    except HelpRequested:
        return PermittedCommand(line, None)
    for name, value in parsed.flags_set:
        _check_flag(path, name, value)
    for flag in line.command.flags:
        if flag.long in FILES:
            _check_files(path, flag, parsed.values[flag.name], files)
    if path == "rollout status" and parsed.values["watch"]:
        _check_waiting(allowed)
    return PermittedCommand(line, parsed)


def read_flags(line: Line) -> Parsed:
    """Return the words of a line behind its command, read. Raises RefusedError, HelpRequested."""
    try:
        return line.command.parser().parse(line.rest)
    except FlagSyntaxError as error:
        message = line.command.options_class.explain(str(error))
        raise RefusedError(f"{' '.join(line.path)}: {message}") from None


def _check_operators(words: Sequence[str]) -> None:
    """Raise RefusedError for words that would mean something to a shell."""
    end = words.index("--") if "--" in words else len(words)
    for word in words[:end]:
        if word in OPERATORS:
            raise RefusedError(f"{quote(word)}: this is one command line, and no shell reads it")


def _check_waiting(allowed: Collection[str]) -> None:
    """Raise RefusedError where a tool only reads, and a command waits."""
    if "wait" not in allowed:
        raise RefusedError(
            "rollout status: it waits: add --watch=false, ask why, or run it on a fork"
        )


def _check_flag(path: str, flag: str, value: str) -> None:
    """Raise RefusedError for a flag, or its value, that may not be given."""
    if flag not in FLAGS and flag not in MORE_FLAGS.get(path, ()):
        reason = FLAG_REASONS.get(flag, "this server does not take it")
        raise RefusedError(f"{path} --{flag}: {reason}")
    if flag == "output" and value.partition("=")[0] not in FORMATS:
        raise RefusedError(
            f"{path} --output={_shown(value)}: this server takes {', '.join(sorted(FORMATS))}"
        )


def _check_files(path: str, flag: Flag, value: str | list[str], files: Collection[str]) -> None:
    """Raise RefusedError unless a flag names files that came with the call."""
    names = value if isinstance(value, list) else [value]
    for name in names:
        is_stdin = name == STDIN and flag.long == "filename"
        if name and not is_stdin and not is_given(name, files):
            raise RefusedError(
                f"{path} --{flag.long}={_shown(name)}: it is none of the files that came with "
                "this call, and no other can be read"
            )


def is_given(path: str, files: Collection[str]) -> bool:
    """Return whether a path names one of these files, or a folder that one of them lies in."""
    name = os.path.normpath(path)
    folder = "" if name == os.curdir else f"{name}/"
    return name in files or any(file.startswith(folder) for file in files)


def _reason_against(line: Line, allowed: Collection[str]) -> str:
    """Return the message for a command that the tool does not take."""
    if not line.path:
        word = next((word for word in line.rest if not word.startswith("-")), "")
        if not word:
            return f"name a command: {', '.join(sorted(allowed))}"
        return f"unknown command {_shown(word)}"
    path = " ".join(line.path)
    if path in CHANGING:
        return f"{path}: this tool only reads: plan it, or run it on a fork"
    reason = COMMAND_REASONS.get(path) or COMMAND_REASONS.get(line.path[0])
    if reason is None and line.command.entries:
        names = ", ".join(sorted(line.command.entries))
        return f"{path}: name one of its commands: {names}"
    return f"{path}: {reason or 'this server does not take it'}"


def _shown(text: str) -> str:
    """Return a text of a caller for a message, in one line of limited length."""
    shown = quote(printable(text[:MAX_SHOWN]))
    if len(text) > MAX_SHOWN:
        return f"{shown}…"
    return shown
