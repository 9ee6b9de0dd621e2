"""A cluster: an open store with its scheme, clock, ids and Client, and the objects that a new one
has."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.clock import Clock, Ids, draw_seed
from kubepy.api.errors import AlreadyExists, Forbidden, NotFound
from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.api.scheme import Resource, Scheme
from kubepy.apiserver.client import CRDS, Client
from kubepy.apiserver.kinds import new_strategy
from kubepy.apiserver.server import Server
from kubepy.apiserver.settings import FULL, ClusterSettings, parse_settings
from kubepy.apiserver.strategy import Strategy
from kubepy.lazy import NamedTuple, lazy_imports
from kubepy.storage import FolderError, Key, NoClusterError, Problem
from kubepy.storage.folder.paths import encode, path_of
from kubepy.storage.folder.store import FolderStore

if TYPE_CHECKING:
    from pathlib import Path  # three milliseconds that opening a cluster does not need

    from kubepy.apiserver.fault_settings import FaultSettings
    from kubepy.apiserver.request import Warn
    from kubepy.klog import Logger
    from kubepy.storage.interfaces import Store
    from kubepy.storage.timeline import TimelineRecorder

with lazy_imports():
    from kubepy.api.objects import rbac
    from kubepy.api.schema import customresources
    from kubepy.api.values import goformat
    from kubepy.apiserver import bootstrap, edit_admission, unserved, views
    from kubepy.apiserver.requests import handwritten, other_objects
    from kubepy.storage import links, memory, timeline
    from kubepy.storage.folder import copying, shared

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


class Claim(NamedTuple):
    """An object whose file says that its controller has observed it, which is not taken for true.

    :param admitted: the object as it counts: with a generation that nothing has observed.
    :param as_filed: the object as its file has it, and as it would count if nothing were known of
        it.
    """

    admitted: Object
    as_filed: Object


class LocalCluster:
    """An open store, whichever it is. Made by :meth:`open` from a state folder, or
    by :meth:`in_memory`; everything is lazy, so that opening costs next to nothing."""

    def __init__(self, store: Store) -> None:
        self.store = store  # outside this package only for fsck and the composition root
        self.keeps_timeline = False  # all of it, however long it gets
        self.claims: dict[Key, Claim] = {}  # of edits that were seen since the last look at them
        self._edits: dict[
            Key, edit_admission.EditedObject
        ] = {}  # that were seen, and that nobody has judged yet
        store.connect(self._admit, self._removed, self._now, self._new_recorder, object_links)
        settings = parse_settings(store.settings())
        self.clock = Clock(settings.clock)
        self.ids = Ids(settings.seed, self.clock)
        self.scheme = Scheme(self._custom_resources)
        self._server = Server(self.scheme, self.clock, self._new_strategy, settings)
        if isinstance(store, FolderStore):
            self._server.network_refusal = store.network_refusal
        self.client = self._own_client = Client(self.store, self._server, self.ids)
        self.controller_client = self.client
        self.logger: Logger | None = None  # of the work of the controllers (-v)

    @property
    def settings(self) -> ClusterSettings:
        return self._server.settings

    def share(self) -> LocalCluster:
        """Return this open cluster for one more caller, who may give it clients and a logger of
        their own; everything else is one."""
        shared = object.__new__(LocalCluster)
        shared.__dict__.update(self.__dict__)
        return shared

    def apart(self) -> LocalCluster:
        """Return this open cluster for another thread: its clients share no batch with those of
        others. Only the store of :meth:`open_shared` lets several threads in."""
        shared = self.share()
        shared.client = shared.controller_client = self.client.apart()
        shared._own_client = self._own_client.apart()
        return shared

    def for_requests_of(self, user: Object, warn: Warn) -> LocalCluster:
        """Return this open cluster with a client for the requests of a user, whose warnings go to
        a function."""
        shared = self.share()
        shared.client = self.client.with_context(self.client.context._replace(user=user, warn=warn))
        return shared

    @classmethod
    def open(
        cls, folder: Path | str, *, create: bool = False, lock_timeout: float = 30.0
    ) -> LocalCluster:
        """Open a state folder.

        :param create: make the cluster if there is none, around the files that are there, or only
            settings written by hand. It is to be furnished with a node then, and :meth:`finished
            <finish>`.

        Raises NoClusterError, FolderError.
        """
        is_new = False
        try:
            cluster = cls(_folder_store(folder, lock_timeout))
        except NoClusterError:
            if not create:
                raise
            is_new = True
            FolderStore.initialize(folder, {})
            cluster = cls(_folder_store(folder, lock_timeout))
        if create and cluster.has_no_default_namespace() and (is_new or cluster.is_unfinished()):
            cluster.store.set_meta(UNFINISHED, "yes")
            cluster.bootstrap()
        return cluster

    @classmethod
    def open_shared(cls, folder: str, *, lock_timeout: float = 30.0) -> LocalCluster:
        """Open a state folder for several threads (:meth:`apart`). Raises NoClusterError,
        FolderError."""
        store = shared.SharedFolderStore(folder, volatile=VOLATILE, lock_timeout=lock_timeout)
        return cls(store)

    @classmethod
    def make(
        cls, folder: Path | str, settings: dict[str, Any], *, lock_timeout: float = 30.0
    ) -> LocalCluster:
        """Make a cluster with these settings (``clock``, ``seed``) and its first objects. Raises
        FolderError."""
        FolderStore.initialize(folder, settings)
        cluster = cls(_folder_store(folder, lock_timeout))
        cluster.bootstrap()
        return cluster

    @classmethod
    def in_memory(cls, settings: Mapping[str, Any] = NO_SETTINGS) -> LocalCluster:
        """Make a cluster that is gone with its process, with its first objects. Raises FolderError
        for settings that ``kubepy.yaml`` could not have."""
        cluster = cls(memory.MemoryStore(settings, volatile=VOLATILE))
        cluster.bootstrap()
        return cluster

    def fork(
        self, settings: Mapping[str, Any] = NO_SETTINGS, *, is_prediction: bool = False
    ) -> LocalCluster:
        """Return an independent cluster in memory that goes on from what is committed here: objects
        with their revisions, clock, ids, change log, events, and the memory of the controllers.
        Raises FolderError.

        :param settings: replace those of ``kubepy.yaml``.
        :param is_prediction: admission webhooks are called as for a dry run, and all of the
            timeline is kept.
        """
        store = self.store.fork()
        if settings:
            store.set_settings(settings)
        fork = LocalCluster(store)
        fork._server.silent = self._server.silent
        fork._server.network_refusal = self._server.network_refusal
        context = fork.client.context._replace(is_prediction=is_prediction)
        fork.client = fork.controller_client = fork.client.with_context(context)
        fork.keeps_timeline = is_prediction or self.keeps_timeline
        return fork

    @classmethod
    def begin(cls, folder: Path | str, settings: Mapping[str, str | int]) -> None:
        """Make a cluster, or go on with one that is not yet :meth:`finished <finish>`.

        :param settings: for ``kubepy.yaml``; one that is there gets those that it lacks.

        Raises FolderError, also where ``kubepy.yaml`` says something else.
        """
        path = os.path.join(folder, "kubepy.yaml")
        if not os.path.exists(path):
            FolderStore.initialize(folder, settings)
        store = FolderStore(folder)
        present = store.settings()
        for name, value in settings.items():
            if present.get(name, value) != value:
                raise FolderError(f"kubepy.yaml: {name}: is {present[name]} already, not {value}")
        if missing := {name: value for name, value in settings.items() if name not in present}:
            store.set_settings(missing)
        store.set_meta(UNFINISHED, "yes")
        store.close()

    def copy_to(self, folder: Path | str) -> None:
        """Make an independent cluster in a new state folder that goes on from what is committed
        here, as :meth:`fork` does; of a state folder every file is copied as it is. Raises
        FolderError, LockTimeoutError."""
        if isinstance(self.store, FolderStore):
            self.store.copy_to(os.fspath(folder))
        else:
            copying.write_state(self.store.fork().state(), os.fspath(folder))

    def is_unfinished(self) -> bool:
        """Tell whether the process that began to make this cluster died before it was done."""
        return self.is_bare() or self.store.meta(UNFINISHED) is not None

    def finish(self) -> None:
        self.store.set_meta(UNFINISHED, None)

    def is_bare(self) -> bool:
        """Tell whether the folder has nothing but settings so far."""
        try:
            return self.has_no_default_namespace() and not self.store.resources()
        except FolderError:  # something is there, though it can't be read
            return False

    def has_no_default_namespace(self) -> bool:
        """Tell whether the first of the objects that every cluster has is missing. A namespace that
        cannot be read is there."""
        try:
            return self.store.get(Key("namespaces", "", "default")) is None
        except FolderError:
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
            objects += bootstrap.first_objects(self.settings.networking.service_subnet, today)
        with self.client.joined():
            for resource, obj in objects:
                with suppress(AlreadyExists):
                    self.client.create(resource, obj)

    def start(self) -> None:
        """Do what an API server does once when it starts: bring back or complete bootstrap roles
        and bindings."""
        if self.settings.bootstrap == FULL:
            reconcile_rbac(self._own_client)
        else:
            self._own_client.forget_deletions()

    def use_faults(self, faults: FaultSettings | None) -> int | None:
        """Let these faults happen. Where they have no seed, the cluster's decides, or one that is
        drawn once for all; returns a seed that has been drawn now. In its own time a cluster
        without a seed takes that of the faults meanwhile, so that the objects they are drawn for
        have the same names in another run."""
        drawn: int | None = None
        if faults is not None and faults.seed is None:
            seed: int | str | None = self.settings.seed
            if seed is None:
                kept = self.store.meta(FAULTS_SEED)
                seed = int(kept) if kept else (drawn := draw_seed())
                if not kept:
                    with suppress(FolderError):  # a folder that nobody may write has no faults
                        self.store.set_meta(FAULTS_SEED, str(seed))
            faults = faults._replace(seed=seed)

        self._server.settings = self.settings._replace(faults=faults)
        self.ids.seed = self.settings.seed
        if self.ids.seed is None and faults is not None and self.clock.own:
            self.ids.seed = faults.seed
        return drawn

    def problems(self, *, look: bool = True) -> list[Problem]:
        """Return the files that cannot be objects, and those that nothing reads, by path. ``look``:
        as for :meth:`Store.problems`."""
        if not isinstance(self.store, FolderStore):
            return []
        problems = [
            unserved.with_place(self.scheme, problem) for problem in self.store.problems(look=look)
        ]
        return sorted(
            [
                *problems,
                *(
                    problem
                    for folder in unserved.unserved_folders(self.store, self.scheme)
                    for problem in folder.problems()
                ),
            ]
        )

    def known_problems(self) -> dict[str, str]:
        """Return the problems that are recorded, without a look at files that have none: by the
        path of a file, or of a folder that nothing reads, a line for a warning."""
        store = self.store
        if not isinstance(store, FolderStore):
            return {}
        lines = {
            problem.path: store.describe(unserved.with_place(self.scheme, problem))
            for problem in store.known_problems()
        }
        resources = map(self.scheme.built_in, store.recorded_resources())
        if any(resource is None or not resource.is_stored for resource in resources):
            lines |= {
                folder.path: f"{store.folder}/{folder}"
                for folder in unserved.unserved_folders(store, self.scheme)
            }
        return lines

    def problem_of(self, key: Key) -> str:
        """Return a line about the file because of which an object counts as it last was, "" where
        there is none."""
        _, problem = self.store.find(key)
        return self.store.describe(problem) if problem is not None else ""

    def folders_without_namespace(self) -> list[Problem]:
        """Return the folders of objects whose namespace is missing, as a clone or a merge can leave
        them."""
        if not self.store.folder:
            return []
        quote = goformat.quote
        listed = self.store.list("namespaces")
        unreadable = {problem.path for problem in listed.problems}
        known = {namespace["metadata"]["name"] for namespace in listed.objects}
        missing = [
            name
            for name in self.store.namespaces()
            if name not in known and path_of(Key("namespaces", "", name)) not in unreadable
        ]
        return [
            Problem(
                f"namespaces/{encode(name)}",
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
        if (old is not None or is_manifest) and cast("FolderStore", self.store).knows_files():
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
        fork, folder = self.fork(), cast("FolderStore", self.store).folder
        try:
            return [
                f"{os.path.join(folder, path_of(key))}: counts, though a server would have "
                f"refused it: {refusal}"
                for key, refusal in edit_admission.refusals(fork.store, fork.client, edits)
            ]
        finally:
            if isinstance(fork.store, memory.MemoryStore):
                fork.store.release()  # so that the index can be shortened, and closed

    @cached_property
    def _others(self) -> other_objects.OtherObjects:
        """The objects by which edited files are checked: only a folder has such."""
        store = cast("FolderStore", self.store)
        return other_objects.OtherObjects(store.object_of_file, store.recorded, store.warn_of_file)

    def _removed(self, key: Key, obj: Object, now: float) -> Object | None:
        return handwritten.removed(key, obj, now)

    def _new_recorder(self) -> TimelineRecorder:
        keep = math.inf if self.keeps_timeline else self.settings.timeline.keep
        lookers: list[views.Looker] = []

        def look(key: Key, old: Object | None, new: Object | None) -> Any:
            if not lookers:
                lookers.append(views.Looker())  # imports what most commands do not need
            return lookers[0].look(key, old, new)

        return timeline.TimelineRecorder(
            ON_TIMELINE if keep else frozenset(), look, keep, self._edit_time
        )

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


def _folder_store(folder: Path | str, lock_timeout: float) -> FolderStore:
    return FolderStore(folder, volatile=VOLATILE, lock_timeout=lock_timeout)


def object_links() -> tuple[links.Lookup, ...]:
    """Return what controllers look objects up by (``kubepy.runtime.informers``)."""
    events, pods = ("events",), ("pods",)
    claimed = (
        "controllerrevisions.apps",
        "jobs.batch",
        "pods",
        "replicasets.apps",
    )  # owners adopt such objects
    link, presence = links.Lookup, links.LinkKind.PRESENCE
    return (
        link("uid", "metadata.uid", others=events),
        link("owner", "metadata.ownerReferences[0].uid", others=events),
        link("owned_twice", "metadata.ownerReferences[1].uid", others=events, kind=presence),
        link(
            "orphan", "metadata.ownerReferences[0].controller", claimed, kind=links.LinkKind.ABSENCE
        ),
        link("node", "spec.nodeName", pods),
        link("phase", "status.phase", pods, usual="Running"),
        link("address", "status.podIP", pods),
        link("affinity", "spec.affinity.podAffinity", pods, kind=presence),
        link("anti_affinity", "spec.affinity.podAntiAffinity", pods, kind=presence),
        link("nominated", "status.nominatedNodeName", pods, kind=presence),
        link("waiting", "waiting", pods, kind=links.LinkKind.MENTION),  # a container that waits
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
                    with suppress(NotFound, Forbidden):  # its namespace is gone or going
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
