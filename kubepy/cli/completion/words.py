"""What the words and the flags of each command can be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from kubepy.cli.completion import objects
from kubepy.cli.runtime.command import Invocation
from kubepy.cli.runtime.flags import Flag
from kubepy.cli.runtime.session import Session

Path = tuple[str, ...]
# The candidates for a word behind others. The word itself may be begun: ``ds/ag``.
Words = Callable[[Session, Invocation, str], Iterable[str]]

WORKLOADS = ("daemonsets", "deployments", "statefulsets")
SCALABLE = ("deployments", "replicasets", "replicationcontrollers", "statefulsets")
TEMPLATED = (*WORKLOADS, "cronjobs", "jobs", "pods", "replicasets", "replicationcontrollers")
BINDINGS = ("clusterrolebindings", "rolebindings")

# --- words --------------------------------------------------------------------------------------------------------


def positional(session: Session, path: Path, given: Invocation, word: str) -> Iterable[str]:
    """What the next word of a command could be."""
    return WORDS.get(path, any_object if path and path[0] in TAKES_OBJECTS else nothing)(session, given, word)


def nothing(session: Session, given: Invocation, word: str) -> Iterable[str]:
    return ()


def any_object(session: Session, given: Invocation, word: str) -> Iterable[str]:
    """Types, and the names of a type's objects: ``TYPE NAME`` or ``TYPE/NAME``."""
    return typed(None)(session, given, word)


def typed(kinds: Sequence[str] | None, then: Words = nothing) -> Words:
    """The same of these types only (None: of all); ``then``: what may follow one object."""

    def complete(session: Session, given: Invocation, word: str) -> Iterable[str]:
        args = given.args
        found = list(then(session, given, word)) if objects.named(given) else []
        if args and "/" not in args[0]:
            names = (name for kind in args[0].split(",") for name in objects.names(session, kind))
            return [*found, *(name for name in names if name not in args[1:])]
        kind, slash, _ = word.partition("/")
        if slash:
            return [one for one in (f"{kind}/{name}" for name in objects.names(session, kind)) if one not in args]
        if args:
            return [*found, *(f"{one}/" for one in kinds or ())]
        before, comma, _ = word.rpartition(",")
        return [before + comma + one for one in kinds or [*(one.plural for one in session.scheme), "all"]]

    return complete


def names_of(kind: str) -> Words:
    """Names of objects of one type, each once."""
    return lambda session, given, word: [one for one in objects.names(session, kind) if one not in given.args]


def once(values: Callable[[Session], Iterable[str]]) -> Words:
    """Values for the first word."""
    return lambda session, given, word: () if given.args else values(session)


def _types(session: Session) -> Iterable[str]:
    return [resource.plural for resource in session.scheme]


def _images(session: Session, given: Invocation, word: str) -> Iterable[str]:
    return [f"{name}=" for name in objects.containers(session, given)]


def _variables(session: Session, given: Invocation, word: str) -> Iterable[str]:
    return [f"{name}{end}" for name in objects.variables(session, given) for end in "=-"]


def _labels(session: Session, given: Invocation, word: str) -> Iterable[str]:
    return [f"{key}-" for key in objects.metadata_keys(session, given, "labels")]


def _annotations(session: Session, given: Invocation, word: str) -> Iterable[str]:
    return [f"{key}-" for key in objects.metadata_keys(session, given, "annotations")]


def _accounts(session: Session, given: Invocation, word: str) -> Iterable[str]:
    return objects.names(session, "serviceaccounts")


def _actions(session: Session, given: Invocation, word: str) -> Iterable[str]:
    from kubepy.cli.auth.access import VERBS

    return [one for one in VERBS if one.isalpha()] if not given.args else _types(session)


def _shells(session: Session) -> Iterable[str]:
    from kubepy.cli.completion.scripts import SCRIPTS

    return SCRIPTS


def _commands(session: Session, given: Invocation, word: str) -> Iterable[str]:
    from kubepy.cli.commands import COMMANDS

    entries: Mapping[str, object] = COMMANDS
    for one in given.args:
        entry = COMMANDS.get(one)
        entries = entry.commands if entry else {}
    return [name for name in entries if not name.startswith("_")]


def _properties(session: Session) -> Iterable[str]:
    from kubepy.cli.config.properties import CURRENT, FIELDS

    config = session.kubeconfig
    named = {"clusters": config.clusters, "contexts": config.contexts, "users": config.users}
    return [CURRENT, *(f"{section}.{name}.{field}" for section, entries in named.items() for name in entries
                       for field in FIELDS[section])]


def _contexts(session: Session) -> Iterable[str]:
    return session.kubeconfig.contexts


def _clusters(session: Session) -> Iterable[str]:
    return session.kubeconfig.clusters


def _users(session: Session) -> Iterable[str]:
    return session.kubeconfig.users


TAKES_OBJECTS = ("get", "describe", "delete", "edit", "patch", "wait", "apply")
WORDS: Mapping[Path, Words] = {
    **{("rollout", name): typed(WORKLOADS) for name in ("history", "pause", "resume", "undo", "status", "restart")},
    ("apply",): nothing,
    ("apply", "set-last-applied"): nothing,
    ("scale",): typed(SCALABLE),
    ("autoscale",): typed(SCALABLE),
    ("expose",): typed(("deployments", "pods", "replicasets", "replicationcontrollers", "services")),
    ("set", "image"): typed(TEMPLATED, _images),
    ("set", "env"): typed(TEMPLATED, _variables),
    ("set", "resources"): typed(TEMPLATED),
    ("set", "serviceaccount"): typed(TEMPLATED, _accounts),
    ("set", "selector"): typed(("services",)),
    ("set", "subject"): typed(BINDINGS),
    ("label",): typed(None, _labels),
    ("annotate",): typed(None, _annotations),
    ("taint",): typed(("nodes",)),
    ("cordon",): names_of("nodes"),
    ("uncordon",): names_of("nodes"),
    ("drain",): names_of("nodes"),
    ("explain",): once(_types),
    ("events",): nothing,
    ("auth", "can-i"): _actions,
    ("certificate", "approve"): names_of("certificatesigningrequests"),
    ("certificate", "deny"): names_of("certificatesigningrequests"),
    ("completion",): once(_shells),
    ("help",): _commands,
    ("config", "use-context"): once(_contexts),
    ("config", "set-context"): once(_contexts),
    ("config", "rename-context"): once(_contexts),
    ("config", "delete-context"): once(_contexts),
    ("config", "get-contexts"): lambda session, given, word: [one for one in _contexts(session)
                                                              if one not in given.args],
    ("config", "set-cluster"): once(_clusters),
    ("config", "delete-cluster"): once(_clusters),
    ("config", "set-credentials"): once(_users),
    ("config", "delete-user"): once(_users),
    ("config", "set"): once(_properties),
    ("config", "unset"): once(_properties),
}

# --- values of flags ----------------------------------------------------------------------------------------------

# Of any command, and of single ones where a flag means something else.
VALUES: Mapping[str, Sequence[str]] = {
    "dry-run": ("none", "client", "server"),
    "cascade": ("background", "foreground", "orphan"),
    "validate": ("strict", "warn", "ignore"),
    "reconcile": ("auto", "never"),
    "subresource": ("status", "scale"),
    "override-type": ("json", "merge", "strategic"),
    "protocol": ("TCP", "UDP", "SCTP"),
    "session-affinity": ("None", "ClientIP"),
    "image-pull-policy": ("Always", "IfNotPresent", "Never"),
    "preemption-policy": ("Never", "PreemptLowerPriority"),
    "profile": ("none",),
    "load-restrictor": ("LoadRestrictionsNone", "LoadRestrictionsRootOnly"),
    "sort-by": (".metadata.creationTimestamp", ".metadata.name"),
}
OWN_VALUES: Mapping[tuple[Path, str], Sequence[str]] = {
    (("patch",), "type"): ("json", "merge", "strategic"),
    (("expose",), "type"): ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
    (("events",), "types"): ("Normal", "Warning"),
    (("run",), "restart"): ("Always", "Never", "OnFailure"),
    (("create", "cronjob"), "restart"): ("Never", "OnFailure"),
    (("wait",), "for"): ("condition=", "create", "delete", "jsonpath="),
}
LOOKED_UP: Mapping[str, Callable[[Session, Invocation], Iterable[str]]] = {
    "namespace": lambda session, given: objects.names(session, "namespaces"),
    "namespaces": lambda session, given: objects.names(session, "namespaces"),
    "context": lambda session, given: _contexts(session),
    "cluster": lambda session, given: _clusters(session),
    "user": lambda session, given: _users(session),
    "containers": lambda session, given: objects.containers(session, given),
    "to-revision": lambda session, given: objects.revisions(session, given),
    "revision": lambda session, given: objects.revisions(session, given),
    "resource": lambda session, given: _types(session),
    "clusterrole": lambda session, given: objects.names(session, "clusterroles"),
    "role": lambda session, given: objects.names(session, "roles"),
    "serviceaccount": lambda session, given: objects.accounts(session),
    "class": lambda session, given: objects.names(session, "ingressclasses"),
}


def flag_values(session: Session, path: Path, flag: Flag, given: Invocation) -> Iterable[str]:
    """What a flag of a command could be set to."""
    if flag.name == "output":
        return _formats(flag)
    if flag.name == "from":
        kinds = ("configmap", "secret") if path == ("set", "env") else ("cronjob",)
        return [f"{kind}/{name}" for kind in kinds for name in objects.names(session, kind)]
    if flag.name == "verb":
        from kubepy.cli.auth.access import VERBS

        return [one for one in VERBS if one.isalpha()]
    if flag.no_value == "true":
        return ("true", "false")
    if found := OWN_VALUES.get((path, flag.name)) or VALUES.get(flag.name):
        return found
    return LOOKED_UP[flag.name](session, given) if flag.name in LOOKED_UP else ()


def _formats(flag: Flag) -> list[str]:
    """The formats that the flag's help names; some of them take an argument."""
    listed = re.search(r"One of: \(([^)]*)\)", flag.help)
    names = listed[1].split(", ") if listed else re.findall(r"'(\w+)'", flag.help)
    return [f"{name}=" if re.match("jsonpath|go-template|template|custom-columns", name) else name for name in names]
