"""Random histories of a cluster: others write while a manager runs all controllers, restarts and
fails.

A point is a history. Writes of another process fall between all that the manager does: before it
reads the change log, before it takes the lock, right after it has let go of it. In the end every
informer must equal the store, every watcher must have been told of every change, and a manager that
knows nothing must find nothing to do.

interleaved  nothing but such writes
processes    the manager's process ends and another one begins; another process runs the controllers meanwhile
failures     a batch is cut off before it is committed, by a crash or by a conflict
files        files are edited and removed by hand, and .kubepy is removed
"""  # noqa: E501

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from kubepy.api.errors import Status
from kubepy.api.meta import controller_of, labels_of, name_of, namespace_of, uid_of
from kubepy.apiserver.request import DeleteOptions, Patch
from kubepy.controlplane import NAMES, new_reconcilers, reconciler_names
from kubepy.controlplane.manager import CheckpointStore, ListWatch, Manager
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.runtime.checkpoint import CHECKPOINT, MEMORIES, identity, load, save
from kubepy.runtime.pacing import Pacing
from kubepy.runtime.reconcile import EVERY_RESOURCE, Context, Handler, Informers, Key, WatchEvent
from kubepy.storage import ConflictError
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.view import RecordedView
from kubepy.storage.yaml import dump, load_all
from tests.stores import fork_of

from .runner import Outcome, Point, Section, outcome

Object = dict[str, Any]

STEPS = 40
ROUNDS = 500
NOW = "2026-11-20T10:00:00Z"
NAMESPACES = ("default", "shop")
NODES = ("n1", "n2", "n3")
NUMBERS = 2  # of names for objects of a kind in a namespace
LABELS = ("a", "b", "c")
LATER = timedelta(minutes=11)  # all quarantines and time limits are over by then
# What another process writes while the manager does something: so often.
BETWEEN = 0.25
UNCHECKED = ("events", "leases.coordination.k8s.io")
THINGS = "things.example.org"
DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": THINGS},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


VOLUME: Object = {
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"},
    }
}


class Crash(BaseException):
    """The death of the manager's process."""


# --- objects --------------------------------------------------------------------------------------


def template(label: str, **spec: Any) -> Object:
    container = {
        "name": "c",
        "image": "i",
        "ports": [{"name": "http", "containerPort": 80}],
        "resources": {"requests": {"cpu": "100m"}},
    }
    return {"metadata": {"labels": {"app": label}}, "spec": {"containers": [container], **spec}}


def workload(label: str, **spec: Any) -> Object:
    return {
        "spec": {"selector": {"matchLabels": {"app": label}}, "template": template(label), **spec}
    }


def job_spec(chance: random.Random) -> Object:
    return {"suspend": chance.random() < 0.3, "template": template("job", restartPolicy="Never")}


def pod(chance: random.Random) -> Object:
    spec: Object = {}
    if chance.random() < 0.3:
        spec["nodeName"] = chance.choice((*NODES, "gone"))
    if chance.random() < 0.3:
        spec["volumes"] = [
            {"name": "v", "persistentVolumeClaim": {"claimName": "persistentvolumeclaims-0"}}
        ]
    made = template(chance.choice(LABELS), **spec)
    return {"metadata": made["metadata"], "spec": made["spec"]}


def quota(chance: random.Random) -> Object:
    names = (
        "pods",
        "requests.cpu",
        "count/pods",
        "count/replicasets.apps",
        "count/configmaps",
        "services",
        "persistentvolumeclaims",
        "count/jobs.batch",
        f"count/{THINGS}",
    )
    return {"spec": {"hard": dict.fromkeys(chance.sample(names, 3), "90")}}


# By resource: makes an object. Labels of workloads of different kinds differ, so that they do not
# fight for pods.
KINDS: Mapping[str, Callable[[random.Random], Object]] = {
    "configmaps": lambda chance: {"data": {"a": str(chance.random())}},
    "cronjobs.batch": lambda chance: {
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job_spec(chance)}}
    },
    "daemonsets.apps": lambda chance: workload("agent"),
    "deployments.apps": lambda chance: workload(
        f"{chance.choice(LABELS)}-d", replicas=chance.randint(0, 2)
    ),
    "endpoints": lambda chance: {
        "subsets": [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 80}]}]
    },
    "horizontalpodautoscalers.autoscaling": lambda chance: {
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": "deployments-0",
            },
        }
    },
    "jobs.batch": lambda chance: {"spec": job_spec(chance)},
    "persistentvolumeclaims": lambda chance: {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        }
    },
    "pods": pod,
    "replicasets.apps": lambda chance: workload(
        chance.choice(LABELS), replicas=chance.randint(0, 2)
    ),
    "resourcequotas": quota,
    "secrets": lambda chance: {
        "type": "kubernetes.io/service-account-token",
        "metadata": {"annotations": {"kubernetes.io/service-account.name": "serviceaccounts-0"}},
    },
    "serviceaccounts": lambda chance: {},
    "services": lambda chance: {
        "spec": {
            "selector": {"app": chance.choice(LABELS)},
            "ports": [{"port": 80, "targetPort": "http"}],
        }
    },
    "statefulsets.apps": lambda chance: workload(
        f"{chance.choice(LABELS)}-s", replicas=chance.randint(0, 2), serviceName="s"
    ),
    THINGS: lambda chance: {"apiVersion": "example.org/v1", "kind": "Thing"},
}
# What is changed and deleted; pods most often, since most controllers watch them.
CHANGED = (*KINDS, "endpointslices.discovery.k8s.io", *["pods"] * 5, *["replicasets.apps"] * 2)


# --- others who write -----------------------------------------------------------------------------


class Others:
    """Another process that writes. What the API refuses has not happened."""

    def __init__(self, folder: Path, chance: random.Random, note: Callable[[str], None]) -> None:
        self._chance, self._note = chance, note
        self.client = open_cluster(folder).client
        self.created: set[str] = set()  # the uids of what was created
        self.uncounted: set[str] = set()  # the uids of DaemonSets, see _create_node

    def write(self) -> None:
        """Do one random thing."""
        act = self._chance.choice(
            (
                self._create,
                self._create,
                self._change,
                self._change,
                self._delete,
                self._delete,
                self._write_to_cluster,
            )
        )
        with suppress(Status):
            act()

    def _create(self) -> None:
        chance = self._chance
        resource = chance.choice(sorted(KINDS))
        namespace = chance.choice(NAMESPACES)
        name = f"{resource.partition('.')[0]}-{chance.randrange(NUMBERS)}"
        obj = KINDS[resource](chance)
        metadata = {**obj.get("metadata", {}), "name": name}
        if chance.random() < 0.2 and (owner := self._chosen("configmaps")) is not None:
            metadata["ownerReferences"] = [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": name_of(owner),
                    "uid": uid_of(owner),
                    "blockOwnerDeletion": chance.random() < 0.5,
                }
            ]
        self._note(f"create {resource} {namespace}/{name}")
        created = self.client.create(resource, {**obj, "metadata": metadata}, namespace=namespace)
        self.created.add(uid_of(created))

    def _chosen(self, resource: str) -> Object | None:
        """Return any object of a resource but those that every cluster has."""
        objects = [obj for obj in self.client.list_stored(resource) if name_of(obj) != "kubernetes"]
        return self._chance.choice(objects) if objects else None

    def _delete(self) -> None:
        resource = self._chance.choice(CHANGED)
        obj = self._chosen(resource)
        if obj is not None:
            options = DeleteOptions(
                propagation_policy=self._chance.choice((None, "Foreground", "Orphan")),
                grace_period_seconds=self._chance.choice((None, 0)),
            )
            self._note(
                f"delete {resource} {namespace_of(obj)}/{name_of(obj)} {options.propagation_policy}"
            )
            self.client.delete(resource, name_of(obj), namespace=namespace_of(obj), options=options)

    def _change(self) -> None:
        """Give an object other labels, owners, finalizers, a pod another phase, or a workload
        another size."""
        chance, resource = self._chance, self._chance.choice(CHANGED)
        obj = self._chosen(resource)
        if obj is None:
            return
        label = chance.choice((*LABELS, "other"))
        changes: list[tuple[Object, str]] = [
            ({"metadata": {"labels": {"app": label}}}, ""),
            ({"metadata": {"ownerReferences": None}}, ""),
            ({"metadata": {"ownerReferences": None, "labels": {"app": label}}}, ""),
            ({"metadata": {"finalizers": chance.choice((None, ["example.org/hold"]))}}, ""),
        ]
        if resource == "pods":
            changes.append(
                ({"status": {"phase": chance.choice(("Succeeded", "Failed"))}}, "status")
            )
        for field, value in (
            ("replicas", chance.randint(0, 3)),
            ("suspend", chance.random() < 0.5),
        ):
            if field in (obj.get("spec") or {}):
                changes.append(({"spec": {field: value}}, ""))
        change, subresource = chance.choice(changes)
        self._note(f"patch {resource} {namespace_of(obj)}/{name_of(obj)} {json.dumps(change)}")
        self.client.patch(
            resource,
            name_of(obj),
            Patch("application/merge-patch+json", change),
            namespace=namespace_of(obj),
            subresource=subresource,
        )

    def _write_to_cluster(self) -> None:
        """Change a node, a volume, a namespace, a definition or an aggregated role."""
        chance, node, volume = (
            self._chance,
            self._chance.choice(NODES),
            f"pv-{self._chance.randrange(NUMBERS)}",
        )
        role, roles = f"role-{chance.randrange(NUMBERS)}", "clusterroles.rbac.authorization.k8s.io"
        zone = {"metadata": {"labels": {"topology.kubernetes.io/zone": chance.choice(("x", "y"))}}}
        selector = {"matchLabels": {"collect": "a"}}
        client, merge, volumes = self.client, "application/merge-patch+json", "persistentvolumes"
        acts: dict[str, Callable[[], object]] = {
            f"create node {node}": lambda: self._create_node(node),
            f"delete node {node}": lambda: client.delete("nodes", node),
            f"move node {node}": lambda: client.patch("nodes", node, Patch(merge, zone)),
            f"create volume {volume}": lambda: client.create(
                volumes, {"metadata": {"name": volume}, **VOLUME}
            ),
            f"delete volume {volume}": lambda: client.delete(volumes, volume),
            "create shop": lambda: client.create("namespaces", {"metadata": {"name": "shop"}}),
            "delete shop": lambda: client.delete("namespaces", "shop"),
            "define things": lambda: client.create(
                "customresourcedefinitions.apiextensions.k8s.io", DEFINITION
            ),
            "undefine things": lambda: client.delete(
                "customresourcedefinitions.apiextensions.k8s.io", THINGS
            ),
            f"create {role}": lambda: client.create(
                roles, {"metadata": {"name": role, "labels": {"collect": "a"}}}
            ),
            f"relabel {role}": lambda: client.patch(
                roles,
                role,
                Patch(merge, {"metadata": {"labels": {"collect": chance.choice("ab")}}}),
            ),
            "collect roles": lambda: client.create(
                roles,
                {
                    "metadata": {"name": "all"},
                    "aggregationRule": {"clusterRoleSelectors": [selector]},
                },
            ),
        }
        act = chance.choice(list(acts))
        self._note(act)
        acts[act]()

    def _create_node(self, name: str) -> None:
        """Create a node. The pods of one of that name that was there before are on it: upstream's
        controller sees no reason to look at their DaemonSets (``syncNodeUpdate``), and leaves their
        counts as they are."""
        self.client.create("nodes", {"metadata": {"name": name}})
        for pod in self.client.list_stored("pods"):
            owner = controller_of(pod)
            if owner is not None and pod["spec"].get("nodeName") == name:
                self.uncounted.add(owner["uid"])


# --- the manager ----------------------------------------------------------------------------------


class Mirror:
    """A reconciler that keeps what it is told: by key, the version of each object."""

    name = "mirror"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self.versions: dict[Key, tuple[str, str]] = {}
        self.deleted: set[str] = set()  # uids
        self.wrong: list[str] = []

    def handlers(self) -> Mapping[str, Handler]:
        return {EVERY_RESOURCE: self._take}

    def _take(self, event: WatchEvent) -> None:
        known = self.versions.get(event.key)
        if (
            event.old is not None
            and event.new is not None
            and known is not None
            and known != _version(event.old)
        ):
            self.wrong.append(
                f"{event.key} was {known}, and is told to change from {_version(event.old)}"
            )
        if event.new is None:
            self.versions.pop(event.key, None)
            self.deleted.add(uid_of(event.old) if event.old is not None else "")
        else:
            self.versions[event.key] = _version(event.new)

    def sync(self, key: Key) -> None:
        raise AssertionError("nothing is ever enqueued")


def _version(obj: Object) -> tuple[str, str]:
    return uid_of(obj), obj["metadata"]["resourceVersion"]


class Process:
    """A process that runs the controllers.

    :param between: is called where another process can write.
    :ivar countdown: so many batches from now on, one fails as it is committed; 0: none does.
    :ivar failure: how it fails.
    """

    def __init__(self, folder: Path, between: Callable[[], None]) -> None:
        self.cluster = open_cluster(folder)
        self._between = between
        self.countdown, self.failure = 0, Exception()
        self._wrap_store()
        cluster, self.informers = self.cluster, Informers()
        context = Context(cluster.client, self.informers, cluster.clock, Pacing(), cluster.scheme)
        self.mirror = Mirror(context)
        checkpoints = CheckpointStore(
            lambda: load(cluster.store),
            lambda text: save(cluster.store, text),
            identity(reconciler_names(cluster.settings), cluster.settings),
        )
        self.manager = Manager(
            context,
            [*new_reconcilers(context, among=NAMES), self.mirror],
            source=ListWatch(RecordedView(cluster.store), cluster.scheme.is_served),
            checkpoints=checkpoints,
        )

    def _wrap_store(self) -> None:
        """Let others write around transactions and looks at the change log, and let commits
        fail."""
        store = self.cluster.store
        assert isinstance(store, FolderStore)
        begin, begin_fresh, look = store.transaction, store.fresh_transaction, store.look

        @contextmanager
        def transaction() -> Iterator[Any]:
            self._between()
            with begin() as changes:
                yield changes
            self._between()

        @contextmanager
        def fresh_transaction(max_age: float = 0.0) -> Iterator[Any]:
            self._between()
            with begin_fresh(max_age) as changes:
                yield changes
                self._end_batch()
            self._between()

        def look_between(*arguments: Any, **options: Any) -> None:
            self._between()
            look(*arguments, **options)

        store.transaction = transaction  # type: ignore[method-assign]
        store.fresh_transaction = fresh_transaction  # type: ignore[method-assign]
        store.look = look_between  # type: ignore[method-assign]

    def _end_batch(self) -> None:
        self.countdown -= 1
        if self.countdown == 0:
            raise self.failure

    def settle(self) -> None:
        self.manager.run_until_settled()


class History:
    """One history. ``log`` has a line for each thing that was done."""

    def __init__(self, scenario: str, folder: Path, seed: str) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        self.log: list[str] = []
        settings: Object = {
            "clock": NOW,
            "bootstrap": "minimal",
            **({"seed": 1} if self.chance.random() < 0.5 else {}),
        }
        cluster = make_cluster(folder, settings)
        for name in NODES[:2]:
            cluster.client.create("nodes", {"metadata": {"name": name}})
        cluster.client.create("namespaces", {"metadata": {"name": "shop"}})
        cluster.client.create("customresourcedefinitions.apiextensions.k8s.io", DEFINITION)
        cluster.close()
        self._others = Others(folder, self.chance, self.log.append)
        self._is_quiet = False
        self.deleted: set[str] = set()  # the uids of which mirrors of earlier processes were told
        self.losses: list[str] = []
        self._has_lost_log = False
        self.process = Process(folder, self._between)
        self._own_steps: Mapping[str, tuple[Callable[[], None], ...]] = {
            "interleaved": (self._poll,),
            "processes": (self._restart, self._run_others, self._poll),
            "failures": (self._fail, self._crash),
            "files": (self._edit_file, self._edit_file, self._remove_index),
        }
        self._steps = self._own_steps[scenario]

    def run(self) -> list[str]:
        """Play the history, and return what was lost in it."""
        self.process.settle()
        for _ in range(STEPS):
            draw = self.chance.random()
            if draw < 0.5:
                self._others.write()
            elif draw < 0.8:
                self.log.append("settle")
                self.process.settle()
            else:
                self.chance.choice(self._steps)()
        self._is_quiet = True
        self.log.append("the end")
        self.process.settle()
        self.process.manager.advance(self.process.cluster.clock.now() + LATER)
        self.losses += self.process.mirror.wrong
        self.losses += self._check_knowledge()
        self.losses += self._check_rest()
        return self.losses

    # --- steps

    def _between(self) -> None:
        while not self._is_quiet and self.chance.random() < BETWEEN:
            self._is_quiet = True  # its own writes have nothing between them
            self.log.append("  between:")
            self._others.write()
            self._is_quiet = False

    def _poll(self) -> None:
        self.log.append("poll")
        if self.process.informers.listings:
            self.process.manager.poll()

    def _restart(self) -> None:
        self.log.append("restart")
        self.losses += self.process.mirror.wrong
        self.deleted |= self.process.mirror.deleted
        self.process.cluster.close()
        self.process = Process(self.folder, self._between)

    def _run_others(self) -> None:
        self.log.append("another process runs the controllers")
        other = Process(self.folder, lambda: None)
        other.settle()
        self.deleted |= other.mirror.deleted
        other.cluster.close()

    def _fail(self) -> None:
        self.log.append("settle, and a batch fails")
        self.process.countdown, self.process.failure = (
            self.chance.randint(1, 3),
            ConflictError("of the test"),
        )
        self.process.settle()
        self.process.countdown = 0

    def _crash(self) -> None:
        self.log.append("settle, and crash")
        self.process.countdown, self.process.failure = self.chance.randint(1, 3), Crash()
        try:
            self.process.settle()
        except Crash:
            self._restart()
        self.process.countdown = 0

    def _edit_file(self) -> None:
        """Remove a file, or give its object other labels or no owners."""
        files = [
            path
            for path in sorted(self.folder.glob("namespaces/*/*/*.yaml"))
            if path.stem != "kubernetes" and path.parent.name != "controllerrevisions.apps"
        ]
        if not files:
            return
        path = self.chance.choice(files)
        draw = self.chance.random()
        self.log.append(f"edit {path.relative_to(self.folder)} {draw}")
        if draw < 0.3:
            path.unlink()
            return
        obj = load_all(path.read_text())[0].object
        if draw < 0.7:
            obj["metadata"]["labels"] = {**labels_of(obj), "app": self.chance.choice(LABELS)}
        else:
            obj["metadata"].pop("ownerReferences", None)
        temporary = path.with_name(f".{path.name}.new")
        temporary.write_text(dump(obj))
        temporary.replace(path)

    def _remove_index(self) -> None:
        self.log.append("rm -r .kubepy")
        shutil.rmtree(self.folder / ".kubepy", ignore_errors=True)
        self._has_lost_log = True  # what was made and deleted before nobody can know

    # --- checks

    def _check_knowledge(self) -> Iterator[str]:
        """Compare what informers and the mirror know with the store."""
        process = self.process
        stored = {
            Key(resource, namespace_of(obj), name_of(obj)): obj
            for resource in process.cluster.resources()
            for obj in process.cluster.client.list_stored(resource)
            if resource not in UNCHECKED
        }
        for key, obj in process.informers.known():
            if key.resource not in UNCHECKED and obj != stored.get(key):
                yield (
                    f"an informer has {key} as {_version(obj)}, it is "
                    f"{stored.get(key, {}).get('metadata')}"
                )
        for key in stored:
            served = process.cluster.scheme.is_served(key.resource)
            if served and process.informers.get(*key) is None:
                yield f"an informer does not have {key}"
        told = self.deleted | process.mirror.deleted
        gone = self._others.created - {uid_of(obj) for obj in stored.values()}
        if not self._has_lost_log and gone - told:
            yield f"nobody was told of the deletion of {sorted(gone - told)}"
        for key, version in process.mirror.versions.items():
            if key.resource not in UNCHECKED and (
                key not in stored or version != _version(stored[key])
            ):
                yield f"{key} is told to be {version}, and is {stored.get(key, {}).get('metadata')}"

    def _check_rest(self) -> Iterator[str]:
        """Let a manager that knows nothing run in a fork: it must find nothing to do."""
        self.process.cluster.close()
        fork = open_cluster(self.folder).fork()
        for name in (CHECKPOINT, MEMORIES):
            fork.store.set_values({name: None})
        before = fork_of(fork.store)
        context = Context(fork.client, Informers(), fork.clock, Pacing(), fork.scheme)
        manager = Manager(
            context,
            new_reconcilers(context),
            source=ListWatch(RecordedView(fork.store), fork.scheme.is_served),
        )
        manager.run_until_settled()
        for change in fork.store.changes(before.revision).changes:
            if change.key.resource in UNCHECKED:
                continue
            old, new = _essence(before.get(change.key)), _essence(fork.store.get(change.key))
            if old is not None and new is not None and uid_of(old) in self._others.uncounted:
                old, new = {**old, "status": None}, {**new, "status": None}
            if old != new:
                yield (
                    f"a new manager finds {change.key} and makes "
                    f"{list(_differences(old, new, ''))} of it"
                )


def _essence(obj: Object | None) -> Object | None:
    """Return an object without its version, and without what upstream leaves as it was as well: the
    words with which the scheduler says how many nodes there are (the loss of a node makes no pod
    fit)."""
    if obj is None:
        return None
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    conditions = [
        condition
        for condition in (obj.get("status") or {}).get("conditions") or ()
        if condition.get("reason") != "Unschedulable"
    ]
    return {
        **obj,
        "metadata": metadata,
        "status": {**(obj.get("status") or {}), "conditions": conditions},
    }


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            yield from _differences(old.get(name), new.get(name), f"{path}.{name}")
    elif old != new:
        yield f"{path}: {old!r} → {new!r}"


# --- the section ----------------------------------------------------------------------------------


SCENARIOS = ("interleaved", "processes", "failures", "files")


def set_up(name: str, place: Path, seed: int) -> list[Point]:
    return [Point(name, str(number)) for number in range(ROUNDS)]


def run(point: Point, place: Path, folder: Path, seed: int) -> Outcome:
    history = History(point.scenario, folder / "state", f"{seed} {point.scenario} {point.name}")
    losses = history.run()
    if losses:
        losses = [f"{losses[0]} after: {'; '.join(history.log)}", *losses[1:]]
    return outcome(point, losses)


SECTION = Section("histories", SCENARIOS, set_up, run, minutes=4)
