"""What the words and the flags of each command can be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from kubepy.cli.completion import objects
from kubepy.cli.runtime.command import Entry, root_command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag
from kubepy.cli.runtime.verbs import Invocation

Path = tuple[str, ...]
# The candidates for a word behind others. The word itself may be begun: ``ds/ag``.
Words = Callable[[Factory, Invocation, str], Iterable[str]]

WORKLOADS = ("daemonsets", "deployments", "statefulsets")
SCALABLE = ("deployments", "replicasets", "replicationcontrollers", "statefulsets")
TEMPLATED = (*WORKLOADS, "cronjobs", "jobs", "pods", "replicasets", "replicationcontrollers")
BINDINGS = ("clusterrolebindings", "rolebindings")

# --- words --------------------------------------------------------------------------------------------------------


def positional(factory: Factory, path: Path, given: Invocation, word: str) -> Iterable[str]:
    """What the next word of a command could be."""
    return WORDS.get(path, any_object if path and path[0] in TAKES_OBJECTS else nothing)(factory, given, word)


def nothing(factory: Factory, given: Invocation, word: str) -> Iterable[str]:
    return ()


def any_object(factory: Factory, given: Invocation, word: str) -> Iterable[str]:
    """Types, and the names of a type's objects: ``TYPE NAME`` or ``TYPE/NAME``."""
    return typed(None)(factory, given, word)


def typed(kinds: Sequence[str] | None, then: Words = nothing) -> Words:
    """The same of these types only (None: of all); ``then``: what may follow one object."""

    def complete(factory: Factory, given: Invocation, word: str) -> Iterable[str]:
        args = given.args
        found = list(then(factory, given, word)) if objects.named(given) else []
        if args and "/" not in args[0]:
            names = (name for kind in args[0].split(",") for name in objects.names(factory, kind))
            return [*found, *(name for name in names if name not in args[1:])]
        kind, slash, _ = word.partition("/")
        if slash:
            return [one for one in (f"{kind}/{name}" for name in objects.names(factory, kind)) if one not in args]
        if args:
            return [*found, *(f"{one}/" for one in kinds or ())]
        before, comma, _ = word.rpartition(",")
        return [before + comma + one for one in kinds or [*(one.plural for one in factory.scheme), "all"]]

    return complete


def names_of(kind: str) -> Words:
    """Names of objects of one type, each once."""
    return lambda factory, given, word: [one for one in objects.names(factory, kind) if one not in given.args]


def once(values: Callable[[Factory], Iterable[str]]) -> Words:
    """Values for the first word."""
    return lambda factory, given, word: () if given.args else values(factory)


def _types(factory: Factory) -> Iterable[str]:
    return [resource.plural for resource in factory.scheme]


def _images(factory: Factory, given: Invocation, word: str) -> Iterable[str]:
    return [f"{name}=" for name in objects.containers(factory, given)]


def _variables(factory: Factory, given: Invocation, word: str) -> Iterable[str]:
    return [f"{name}{end}" for name in objects.variables(factory, given) for end in "=-"]


def _labels(factory: Factory, given: Invocation, word: str) -> Iterable[str]:
    return [f"{key}-" for key in objects.metadata_keys(factory, given, "labels")]


def _annotations(factory: Factory, given: Invocation, word: str) -> Iterable[str]:
    return [f"{key}-" for key in objects.metadata_keys(factory, given, "annotations")]


def _accounts(factory: Factory, given: Invocation, word: str) -> Iterable[str]:
    return objects.names(factory, "serviceaccounts")


def _actions(factory: Factory, given: Invocation, word: str) -> Iterable[str]:
    from kubepy.cli.auth.access import VERBS

    return [one for one in VERBS if one.isalpha()] if not given.args else _types(factory)


def _shells(factory: Factory) -> Iterable[str]:
    from kubepy.cli.completion.scripts import SCRIPTS

    return SCRIPTS


def _commands(factory: Factory, given: Invocation, word: str) -> Iterable[str]:
    entries: Mapping[str, Entry] = root_command().entries
    for one in given.args:
        entry = entries.get(one)
        entries = entry.commands if entry else {}
    return [name for name in entries if not name.startswith("_")]


def _properties(factory: Factory) -> Iterable[str]:
    from kubepy.cli.config.properties import CURRENT, FIELDS

    config = factory.kubeconfig
    named = {"clusters": config.clusters, "contexts": config.contexts, "users": config.users}
    return [CURRENT, *(f"{section}.{name}.{field}" for section, entries in named.items() for name in entries
                       for field in FIELDS[section])]


def _contexts(factory: Factory) -> Iterable[str]:
    return factory.kubeconfig.contexts


def _clusters(factory: Factory) -> Iterable[str]:
    return factory.kubeconfig.clusters


def _users(factory: Factory) -> Iterable[str]:
    return factory.kubeconfig.users


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
    ("config", "get-contexts"): lambda factory, given, word: [one for one in _contexts(factory)
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
LOOKED_UP: Mapping[str, Callable[[Factory, Invocation], Iterable[str]]] = {
    "namespace": lambda factory, given: objects.names(factory, "namespaces"),
    "namespaces": lambda factory, given: objects.names(factory, "namespaces"),
    "context": lambda factory, given: _contexts(factory),
    "cluster": lambda factory, given: _clusters(factory),
    "user": lambda factory, given: _users(factory),
    "containers": lambda factory, given: objects.containers(factory, given),
    "to-revision": lambda factory, given: objects.revisions(factory, given),
    "revision": lambda factory, given: objects.revisions(factory, given),
    "resource": lambda factory, given: _types(factory),
    "clusterrole": lambda factory, given: objects.names(factory, "clusterroles"),
    "role": lambda factory, given: objects.names(factory, "roles"),
    "serviceaccount": lambda factory, given: objects.accounts(factory),
    "class": lambda factory, given: objects.names(factory, "ingressclasses"),
}


def flag_values(factory: Factory, path: Path, flag: Flag, given: Invocation) -> Iterable[str]:
    """What a flag of a command could be set to."""
    if flag.long == "output":
        return _formats(flag)
    if flag.long == "from":
        kinds = ("configmap", "secret") if path == ("set", "env") else ("cronjob",)
        return [f"{kind}/{name}" for kind in kinds for name in objects.names(factory, kind)]
    if flag.long == "verb":
        from kubepy.cli.auth.access import VERBS

        return [one for one in VERBS if one.isalpha()]
    if flag.no_value == "true":
        return ("true", "false")
    if found := OWN_VALUES.get((path, flag.long)) or VALUES.get(flag.long):
        return found
    return LOOKED_UP[flag.long](factory, given) if flag.long in LOOKED_UP else ()


def _formats(flag: Flag) -> list[str]:
    """The formats that the flag's help names; some of them take an argument."""
    listed = re.search(r"One of: \(([^)]*)\)", flag.help)
    names = listed[1].split(", ") if listed else re.findall(r"'(\w+)'", flag.help)
    return [f"{name}=" if re.match("jsonpath|go-template|template|custom-columns", name) else name for name in names]
