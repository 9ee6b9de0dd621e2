"""A cluster: an open store with its scheme, clock, ids and Client, and the objects that a new one
has."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kubepy.api.clock import Clock, Ids, draw_seed
from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.api.scheme import Resource, Scheme
from kubepy.apiserver.accountkeys import AccountKeys, no_folder
from kubepy.apiserver.client import CRDS, Client
from kubepy.apiserver.kinds import new_strategy
from kubepy.apiserver.request import WriteOptions
from kubepy.apiserver.server import Server
from kubepy.apiserver.settings import (
    FULL,
    IMPLIED,
    IMPLIED_ALWAYS,
    ClusterSettings,
    parse_settings,
)
from kubepy.lazy import lazy_imports
from kubepy.storage import Key, Problem, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubepy.apiserver.fault_settings import FaultSettings
    from kubepy.apiserver.request import OnWrite, Warn
    from kubepy.apiserver.server import UsageSource
    from kubepy.apiserver.strategy import Strategy
    from kubepy.klog import Logger
    from kubepy.storage.state import State
    from kubepy.storage.store import Store
    from kubepy.storage.timeline import TimelineEntry, TimelineRecorder
    from kubepy.storage.worktree import WorkTree

with lazy_imports():
    from kubepy.api import errors
    from kubepy.api.objects import rbac
    from kubepy.api.schema import customresources
    from kubepy.api.values import goformat
    from kubepy.apiserver import bootstrap, edit_admission, rule_settings, unserved, views
    from kubepy.apiserver.requests import decoding, handwritten, other_objects
    from kubepy.storage import indexes, manifests, timeline

FAULTS_SEED = (
    "faults.seed"  # in the store's meta values: the seed of faults for which nobody has chosen one
)
# The resources of the objects whose steps the timeline has (``kubepy.apiserver.views``).
ON_TIMELINE = frozenset(
    (
        "controllerrevisions.apps",
        "cronjobs.batch",
        "daemonsets.apps",
        "deployments.apps",
        "jobs.batch",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "poddisruptionbudgets.policy",
        "pods",
        "replicasets.apps",
        "replicationcontrollers",
        "statefulsets.apps",
    )
)
UNFINISHED = "unfinished"  # in the store's meta values: the cluster is being made
FOREVER = 1e10  # seconds
# Without this plugin pods have no token, and CoreDNS could not ask for Services.
SERVICE_ACCOUNT_PLUGIN = "ServiceAccount"
# Resources that are kept in the index alone, and are gone after so many seconds of cluster time:
# what changes all the time would wear out the folder and fill the history of git.
VOLATILE = {"events": 3600.0, "leases.coordination.k8s.io": FOREVER}
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})
# Every cluster has these (``registry/scheduling``).
PRIORITY_CLASSES = (
    (
        "system-cluster-critical",
        2000000000,
        "Used for system critical pods that must run in the cluster, but can be "
        "moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2000001000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
)


class AddedControllers(Protocol):
    """The controllers that a program has added to a cluster (``kubepy.controlplane.functions``)."""

    def for_fork(self) -> AddedControllers:
        """Return those of a fork of the cluster."""
        ...


class Claim(NamedTuple):
    """An object whose file says that its controller has observed it, which is not taken for true.

    :param admitted: the object as it counts: with a generation that nothing has observed.
    :param as_filed: the object as its file has it, and as it would count if nothing were known of
        it.
    """

    admitted: Object
    as_filed: Object


class LocalCluster:
    """An open store, whichever it is, made by :mod:`kubepy.controlplane.open`. Everything is lazy,
    so that opening costs next to nothing.

    :param new_store: makes a store in memory that goes on from a state, for forks.
    :param usage_source: tells what containers use where no annotation does.
    :param rules_folder: where a file of rules is looked up that the settings name; default: in the
        folder of the work tree.
    :param private_folder: returns the folder of what is this machine's own; "" for none.
    :ivar worktree: what the store has if it keeps its objects as files; None for others.
    :ivar unread_values: returns what a store without files has left out, as it cannot be read: by
        its key, what is wrong.
    :ivar added: the controllers that a program has added; they run beside the others, in forks
        too.
    :ivar drawn_seed: that of the faults, if it has been drawn for :meth:`with_faults`.
    """

    def __init__(
        self,
        store: Store,
        new_store: Callable[[State], Store],
        worktree: WorkTree | None = None,
        rules_folder: str = "",
        usage_source: UsageSource | None = None,
        private_folder: Callable[[], str] = no_folder,
    ) -> None:
        self.store = store
        self.worktree = worktree
        self.unread_values: Callable[[], Mapping[str, str]] = dict
        self._new_store = new_store
        self._origin: State | None = None  # what this fork, and no other cluster, has opened
        self.keeps_timeline = False  # all of it, however long it gets
        self.claims: dict[Key, Claim] = {}  # of edits that were seen since the last look at them
        self._edits: dict[
            Key, edit_admission.EditedObject
        ] = {}  # that were seen, and that nobody has judged yet
        store.connect(self._now, self._new_recorder, object_indexes)
        if worktree is not None:
            worktree.admit_edits(self._admit, self._removed)
        self._rules_folder = rules_folder or self.folder
        settings = parse_settings(store.settings(), self._rules_folder)
        self.clock = Clock(settings.clock)
        self.ids = Ids(settings.seed, self.clock)
        self.scheme = Scheme(self._custom_resources)
        self._server = Server(self.scheme, self.clock, self._new_strategy, settings)
        self._server.account_keys = AccountKeys(private_folder, settings.seed)
        self._server.open_rules = self._open_rules
        self.client = self._own_client = Client(
            self.store, self._server, self.ids, self._copied, worktree
        )
        if worktree is not None:
            self._server.network_refusal = worktree.network_refusal
        if usage_source is not None:
            self._server.usage_source = usage_source
        self.controller_client = self.client
        self.drawn_seed: int | None = None
        self.added: AddedControllers | None = None
        self.logger: Logger | None = None  # of the work of the controllers (-v)

    @property
    def settings(self) -> ClusterSettings:
        return self._own_client.settings

    def share(self) -> LocalCluster:
        """Return this open cluster for one more caller, who may give it clients and a logger of
        their own; everything else is one."""
        shared = object.__new__(LocalCluster)
        shared.__dict__.update(self.__dict__)
        return shared

    def apart(self) -> LocalCluster:
        """Return this open cluster for another thread: its clients share no batch with those of
        others. Only a store that is shared lets several threads in
        (``kubepy.controlplane.open.open_shared``)."""
        shared = self.share()
        shared.client = shared.controller_client = self.client.apart()
        shared._own_client = self._own_client.apart()
        return shared

    def refuse_network(self, reason: str) -> None:
        """Call no webhook any more, from this cluster or from forks of it that are made from now
        on. The reason is what a call of one fails with."""
        self._server.network_refusal = lambda: reason

    def for_requests_of(self, user: Object, warn: Warn) -> LocalCluster:
        """Return this open cluster with a client for the requests of a user, whose warnings go to
        a function."""
        shared = self.share()
        shared.client = self.client.with_context(self.client.context._replace(user=user, warn=warn))
        return shared

    def observed(self, *observers: OnWrite) -> LocalCluster:
        """Return this open cluster with clients that tell functions of each request that has
        written, whoever among commands and controllers makes it."""
        shared = self.share()
        shared.client = self.client.observed(*observers)
        shared.controller_client = self.controller_client.observed(*observers)
        shared._own_client = self._own_client.observed(*observers)
        return shared

    def fork(
        self,
        settings: Mapping[str, Any] = NO_SETTINGS,
        *,
        is_prediction: bool = False,
        in_full: bool = False,
    ) -> LocalCluster:
        """Return an independent cluster in memory that goes on from what is committed here: objects
        with their revisions, clock, ids, change log, events, and the memory of the controllers.
        Raises FolderError.

        :param settings: replace those of ``kubepy.yaml``.
        :param is_prediction: admission webhooks are called as for a dry run, and all of the
            timeline is kept.
        :param in_full: all of it is read now, so that any thread may use it, and files need not
            stay open for it.
        """
        state = self._newest_state()
        origin = state if self.worktree is not None else None
        if in_full:
            state = state.in_full()
            if origin is not None:
                origin.close()
                origin = None
        store = self._new_store(state)
        if settings:
            store.set_values(settings=settings)
        fork = LocalCluster(store, self._new_store, rules_folder=self._rules_folder)
        fork._origin = origin
        fork.added = self.added and self.added.for_fork()
        fork._server.silent = self._server.silent
        fork._server.account_keys = self._server.account_keys.of_fork(fork.settings.seed)
        fork._server.usage_source = self._server.usage_source
        fork._server.network_refusal = self._server.network_refusal
        context = fork.client.context._replace(is_prediction=is_prediction)
        fork.client = fork.controller_client = fork.client.with_context(context)
        fork.keeps_timeline = is_prediction or self.keeps_timeline
        return fork

    @contextmanager
    def _copied(self) -> Iterator[Store]:
        """Open a store in memory that goes on from what is stored now, edits of files included."""
        state = self._newest_state()
        try:
            store = self._new_store(state)
            store.connect(self._now, None, object_indexes)
            yield store
        finally:
            if self.worktree is not None:
                state.close()

    def release(self) -> None:
        """Let go of the files that this fork has opened: neither it nor a fork of it can be read
        any more. A fork of a fork has opened none."""
        if self._origin is not None:
            self._origin.close()

    def _open_rules(self) -> rule_settings.RuleFile:
        rules = self.settings.kubelet.rules or rule_settings.NO_RULES
        return rule_settings.RuleFile(self._rules_folder, rules, self._rules_setting)

    def _rules_setting(self) -> Any:
        """Return the value of ``kubelet.rules`` as it is now. Raises StorageError."""
        kubelet = self.store.settings().get("kubelet")
        if not isinstance(kubelet, dict):
            return None
        return kubelet.get("rules")

    def _newest_state(self) -> State:
        """Return everything as it is now, edits of files included."""
        return self.worktree.newest_state() if self.worktree is not None else self.store.state()

    @property
    def folder(self) -> str:
        """The folder that keeps the objects as files, "" where none does."""
        return self.worktree.folder if self.worktree is not None else ""

    def recorded_state(self) -> State:
        """Return everything at the newest revision, edits of files included as far as they can be
        recorded: the state from which the change log goes on."""
        self.look()
        return self.store.state()

    def look(self, max_age: float = 0.0) -> None:
        """Record edits of files, where there are files. ``max_age``: see
        :mod:`kubepy.storage.worktree`."""
        if self.worktree is not None:
            self.worktree.look(max_age)

    def resources(self) -> list[str]:
        """Return the resources of which there are objects, sorted."""
        state = self._newest_state()
        try:
            return state.resources(self._now())
        finally:
            state.close()

    def timeline(self, *, since: int | None = None, after: int = 0) -> list[TimelineEntry]:
        """Return the entries of the timeline that are kept, in the order of the writes.

        :param since: a time in microseconds; what comes before the last older entry, and that
            entry, is left out.
        :param after: leave out the writes up to this revision.
        """
        keep = self._timeline_keep()
        first = timeline.microseconds(self._now() - keep)
        first = first if since is None else max(first, since)
        state = self.recorded_state()
        try:
            return state.timeline_since(first, keep, after)
        finally:
            state.close()

    def decoded(self, resource: Resource, obj: Object, unknown_fields: list[str]) -> Object:
        """Return an object as its type in the stored version, with the defaults of its kind. Raises
        BadRequest.

        :param unknown_fields: takes the paths of the fields that the kind does not have, which are
            left out.
        """
        options = WriteOptions(field_validation="Ignore")
        return decoding.decode(
            self._server, resource, obj, options, lambda warning: None, unknown_fields
        )

    def name_problems(self, resource: Resource, name: str) -> list[str]:
        """Return what is wrong with the name of an object, in upstream's words."""
        return self._server.strategy(resource).validate_name(name)

    def missing_fields(self, resource: Resource, obj: Object) -> list[str]:
        """Return what an object lacks that its kind must have, in upstream's words."""
        problems = self._server.strategy(resource).validate(obj)
        return [str(problem) for problem in problems if problem.reason == "FieldValueRequired"]

    def is_unfinished(self) -> bool:
        """Tell whether the process that began to make this cluster died before it was done."""
        return self.is_bare() or self.store.meta(UNFINISHED) is not None

    def finish(self) -> None:
        self.store.set_values({UNFINISHED: None})

    def is_bare(self) -> bool:
        """Tell whether the folder has nothing but settings so far."""
        try:
            return self.has_no_default_namespace() and not self.resources()
        except StorageError:  # something is there, though it can't be read
            return False

    def has_no_default_namespace(self) -> bool:
        """Tell whether the first of the objects that every cluster has is missing. A namespace that
        cannot be read is there."""
        try:
            return self.store.get(Key("namespaces", "", "default")) is None
        except StorageError:
            return False

    def bootstrap(self) -> None:
        """Create the objects that every cluster has, in one transaction, except those that
        exist."""
        objects: list[tuple[str, Object]] = [
            ("namespaces", {"metadata": {"name": name}}) for name in bootstrap.SYSTEM_NAMESPACES
        ]
        objects += [
            (
                "priorityclasses.scheduling.k8s.io",
                {"description": description, "metadata": {"name": name}, "value": value},
            )
            for name, value, description in PRIORITY_CLASSES
        ]
        if self.settings.bootstrap == FULL:
            today = self.clock.timestamp().partition("T")[0]
            subnet = self.settings.networking.service_subnet
            objects += bootstrap.first_objects(subnet, today)
            if SERVICE_ACCOUNT_PLUGIN not in self.settings.admission.disable_plugins:
                objects += bootstrap.kube_dns_objects(subnet).items()
        with self.client.joined():
            for resource, obj in objects:
                with suppress(errors.AlreadyExists):
                    self.client.create(resource, obj)

    def implied_objects(self) -> list[tuple[Key, Object]]:
        """Return the objects that this cluster has without storing them, and others with
        ``bootstrap: full`` store."""
        objects: list[tuple[Key, Object]] = []
        for resource in sorted(IMPLIED - IMPLIED_ALWAYS):
            for obj in self._own_client.list_implied(resource):
                metadata = {**obj["metadata"]}
                del metadata["resourceVersion"]
                key = Key(resource, namespace_of(obj), name_of(obj))
                objects.append((key, {**obj, "metadata": metadata}))
        return objects

    def start(self) -> None:
        """Do what an API server does once when it starts: bring back or complete bootstrap roles
        and bindings, and bring back its APIServices."""
        if self.settings.bootstrap == FULL:
            reconcile_rbac(self._own_client)
        self._own_client.forget_deletions()

    def with_faults(self, faults: FaultSettings | None) -> LocalCluster:
        """Return this open cluster with other faults for whoever works with what is returned.

        Where they have no seed, the cluster's decides, or one that is drawn once for all. In its
        own time a cluster without a seed takes that of the faults, so that the objects they are
        drawn for have the same names in another run.
        """
        drawn: int | None = None
        if faults is not None and faults.seed is None:
            seed: int | str | None = self.settings.seed
            if seed is None:
                kept = self.store.meta(FAULTS_SEED)
                seed = int(kept) if kept else (drawn := draw_seed())
                if not kept:
                    with suppress(StorageError):  # a folder that nobody may write has no faults
                        self.store.set_values({FAULTS_SEED: str(seed)})
            faults = faults._replace(seed=seed)

        seed_of_ids = self.settings.seed
        if seed_of_ids is None and faults is not None and self.clock.own:
            seed_of_ids = faults.seed
        shared = self.share()
        shared.drawn_seed = drawn
        shared.ids = Ids(seed_of_ids, self.clock)
        shared.client = self.client.with_faults(faults, shared.ids)
        shared.controller_client = self.controller_client.with_faults(faults, shared.ids)
        shared._own_client = self._own_client.with_faults(faults, shared.ids)
        return shared

    def problems(self, max_age: float = 0.0) -> list[Problem]:
        """Return the files that cannot be objects, and those that nothing reads, by path.
        ``max_age``: see :mod:`kubepy.storage.worktree`."""
        worktree = self.worktree
        if worktree is None:
            return []
        problems = [
            unserved.with_place(self.scheme, problem) for problem in worktree.problems(max_age)
        ]
        for folder in unserved.unserved_folders(worktree, self.scheme):
            problems += folder.problems()
        return sorted(problems)

    def known_problems(self) -> dict[str, str]:
        """Return the problems that are recorded, without a look at files that have none: by the
        path of a file, or of a folder that nothing reads, a line for a warning. Without files the
        same of the values that were met and hold no object that can be read."""
        worktree = self.worktree
        if worktree is None:
            return {
                key: f"{problem}: it is left out" for key, problem in self.unread_values().items()
            }
        lines = {
            problem.path: worktree.describe(unserved.with_place(self.scheme, problem))
            for problem in worktree.known_problems()
        }
        resources = map(self.scheme.built_in, worktree.recorded_resources())
        if any(resource is None or not resource.is_stored for resource in resources):
            lines |= {
                folder.path: f"{worktree.folder}/{folder}"
                for folder in unserved.unserved_folders(worktree, self.scheme)
            }
        return lines

    def problem_of(self, key: Key) -> str:
        """Return a line about the file because of which an object counts as it last was, "" where
        there is none."""
        if self.worktree is None:
            return ""
        _, problem = self.worktree.find(key)
        return self.worktree.describe(problem) if problem is not None else ""

    def folders_without_namespace(self) -> list[Problem]:
        """Return the folders of objects whose namespace is missing, as a clone or a merge can leave
        them."""
        if self.worktree is None:
            return []
        quote = goformat.quote
        listed = self.store.list("namespaces")
        unreadable = {problem.path for problem in listed.problems}
        known = {namespace["metadata"]["name"] for namespace in listed.objects}
        missing = [
            name
            for name in self.worktree.namespaces()
            if name not in known
            and manifests.path_of(Key("namespaces", "", name)) not in unreadable
        ]
        return [
            Problem(
                f"namespaces/{manifests.encode(name)}",
                0,
                f"holds objects, but there is no namespace {quote(name)}: run "
                f"'kubepy create namespace {name}', bring its file back, or remove this folder",
            )
            for name in missing
        ]

    def close(self) -> None:
        self.store.close()

    def _now(self) -> float:
        return self.clock.now().timestamp()

    def _admit(self, key: Key, obj: Object, modified: float, old: Object | None) -> Object:
        admitted = handwritten.complete(self._server, key, obj, modified, old, self._others)
        self.claims.pop(key, None)
        self._note_edit(key, obj, old, admitted)
        if old is not None and handwritten.claims_observation(self._server, key, obj, old):
            as_filed = handwritten.complete(self._server, key, obj, modified, None, self._others)
            if as_filed != admitted:
                self.claims[key] = Claim(admitted, as_filed)
        return admitted

    def _note_edit(self, key: Key, obj: Object, old: Object | None, admitted: Object) -> None:
        """Keep an edit for admission to judge: of a known object, or the first file of one that no
        server has made."""
        is_manifest = not (obj.get("metadata") or {}).get("uid")
        if (old is not None or is_manifest) and self._files.knows_files():
            earlier = self._edits.get(key)
            edit = edit_admission.EditedObject(
                earlier.old if earlier is not None else old, admitted
            )
            self._edits[key] = edit

    def edit_warnings(self) -> list[str]:
        """Return a line for each edit that admission would have refused, of those that were seen
        since the last call. Raises StorageError."""
        edits = {key: edit for key, edit in self._edits.items() if not edit.is_of_status_alone()}
        self._edits.clear()
        if not edits:
            return []
        fork = self.fork()
        lines: list[str] = []
        try:
            for key, refusal in edit_admission.refusals(fork.store, fork.client, edits):
                path = os.path.join(self.folder, manifests.path_of(key))
                lines.append(f"{path}: counts, though a server would have refused it: {refusal}")
        finally:
            fork.release()  # so that the index can be shortened, and closed
        return lines

    @cached_property
    def _others(self) -> other_objects.OtherObjects:
        """The objects by which edited files are checked: only a folder has such."""
        files = self._files
        return other_objects.OtherObjects(files.object_of_file, files.recorded, files.warn_of_file)

    @property
    def _files(self) -> WorkTree:
        """The work tree whose files were edited."""
        assert self.worktree is not None
        return self.worktree

    def _removed(self, key: Key, obj: Object, now: float) -> Object | None:
        return handwritten.removed(key, obj, now)

    def _new_recorder(self) -> TimelineRecorder:
        keep = self._timeline_keep()
        lookers: list[views.Looker] = []

        def look(key: Key, old: Object | None, new: Object | None) -> Any:
            if not lookers:
                lookers.append(views.Looker())  # imports what most commands do not need
            return lookers[0].look(key, old, new)

        return timeline.TimelineRecorder(
            ON_TIMELINE if keep else frozenset(), look, keep, self._edit_time
        )

    def _timeline_keep(self) -> float:
        """Return for how many seconds the timeline is kept."""
        return math.inf if self.keeps_timeline else self.settings.timeline.keep

    def _edit_time(self) -> float:
        """Return the time by the settings as they are now, which this cluster may not have taken
        over yet."""
        clock = parse_settings({"clock": self.store.settings().get("clock")}).clock
        return Clock(clock).now().timestamp()

    def _new_strategy(self, resource: Resource) -> Strategy:
        strategy = new_strategy(resource, lambda resource: self._own_client.get(CRDS, resource.key))
        strategy.settings = self.settings
        return strategy

    def _custom_resources(self) -> Iterator[Resource]:
        for definition in self._own_client.list(CRDS).items:
            yield from customresources.resources_of(definition)


@cache
def object_indexes() -> tuple[indexes.FieldIndex, ...]:
    """Return what controllers find objects by (``kubepy.runtime.informers``)."""
    events, pods = ("events",), ("pods",)
    claimed = (
        "controllerrevisions.apps",
        "jobs.batch",
        "pods",
        "replicasets.apps",
    )  # owners adopt such objects
    index, text, presence = indexes.FieldIndex, indexes.TextAt, indexes.Presence
    owners = "metadata.ownerReferences"
    return (
        index("uid", text("metadata.uid"), others=events),
        index("owner", text(f"{owners}[0].uid"), others=events),
        index("owned_twice", presence(f"{owners}[1].uid"), others=events),
        index("orphan", indexes.Untruth(f"{owners}[0].controller"), claimed),
        index("node", text("spec.nodeName"), pods),
        index("phase", text("status.phase", usual="Running"), pods),
        index("address", text("status.podIP"), pods),
        index("affinity", presence("spec.affinity.podAffinity"), pods),
        index("anti_affinity", presence("spec.affinity.podAntiAffinity"), pods),
        index("nominated", presence("status.nominatedNodeName"), pods),
        index("waiting", indexes.Mention("waiting"), pods),  # a container that waits
    )


def reconcile_rbac(client: Client) -> None:
    """Make the bootstrap roles and bindings what they should be, as an API server does when it
    starts.

    Missing rules and subjects are added, further ones stay; an object annotated
    ``autoupdate: false`` stays as it is.
    """
    with client.joined():
        for resource in bootstrap.RBAC_KINDS:
            existing = {
                (namespace_of(obj), name_of(obj)): obj for obj in client.list_stored(resource)
            }
            for expected in bootstrap.rbac_objects(resource):
                namespace = namespace_of(expected)
                present = existing.get((namespace, name_of(expected)))
                if present is None:
                    with suppress(
                        errors.NotFound, errors.Forbidden
                    ):  # its namespace is gone or going
                        client.create(resource, expected, namespace=namespace)
                    continue
                is_role = resource in (rbac.CLUSTER_ROLES, rbac.ROLES)
                reconcile = rbac.reconcile_role if is_role else rbac.reconcile_binding
                result = reconcile(present, expected, removes=False)
                if result.is_protected or not result.operation:
                    continue
                if result.operation == rbac.RECREATE:
                    client.delete(resource, name_of(expected), namespace=namespace)
                    client.create(resource, expected, namespace=namespace)
                else:
                    client.update(resource, result.object, namespace=namespace)
