"""A cluster with a StatefulSet whose invariants are checked after every sync of its controller."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubepy.api.errors import Status
from kubepy.api.meta import Object, controller_of, is_being_deleted, labels_of, name_of, uid_of
from kubepy.api.objects.pods import is_pod_available, is_pod_ready, is_pod_terminal, phase_of
from kubepy.controllers.ref_manager import AdoptionError
from kubepy.controllers.statefulset.pod_control import ClaimError
from kubepy.controlplane import new_reconcilers
from kubepy.runtime.reconcile import Context, Handler, Key, Reconciler
from kubepy.runtime.workqueue import WorkQueue
from tests.controllers.watched_lab import Broken, Crash, Sight, WatchedLab

SETS, CLAIMS, REVISIONS = "statefulsets.apps", "persistentvolumeclaims", "controllerrevisions.apps"
CLAIM_TEMPLATE: Object = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def stateful_set(
    name: str = "db",
    *,
    outcome: str = "",
    claims: bool = False,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    template: Object = {
        "metadata": {"labels": {"app": name, **(labels or {})}},
        "spec": {"containers": [{"name": "c", "image": "db:1"}]},
    }
    if outcome:
        template["metadata"]["annotations"] = {"kubepy.dev/outcome": outcome}
    full = {
        "serviceName": name,
        "replicas": 3,
        "selector": {"matchLabels": {"app": name}},
        "template": template,
        **({"volumeClaimTemplates": [CLAIM_TEMPLATE]} if claims else {}),
        **spec,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": full,
    }


def storage_class(
    name: str = "standard",
    mode: str = "WaitForFirstConsumer",
    *,
    default: bool = True,
    **fields: Any,
) -> Object:
    marked = (
        {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}} if default else {}
    )
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, **marked},
        "provisioner": "kubepy.dev/simulated",
        "volumeBindingMode": mode,
        **fields,
    }


def ordinal(pod: Object) -> int:
    return int(name_of(pod).rpartition("-")[2])


def revision(pod: Object) -> str:
    return labels_of(pod).get("controller-revision-hash", "")


class Step:
    """A sync of a set: the pods of the namespace before and after it."""

    def __init__(
        self, set_: Object, before: Mapping[str, Object], after: Mapping[str, Object], now: Any
    ) -> None:
        self.set, self.now = set_, now
        pods = {
            name: pod for name, pod in before.items() if _is_claimed(set_, pod, after.get(name))
        }
        spec = set_["spec"]
        start = (spec.get("ordinals") or {}).get("start", 0)
        self.range = range(start, start + spec["replicas"])
        self.ordered = spec["podManagementPolicy"] == "OrderedReady"
        self.seconds = spec.get("minReadySeconds", 0)
        self.pods = {ordinal(pod): pod for pod in pods.values()}
        self.new = {
            ordinal(pod): pod
            for name, pod in after.items()
            if is_member(set_, pod) and (name not in before or uid_of(before[name]) != uid_of(pod))
        }
        self.created = sorted(self.new)
        self.deleted = sorted(
            ordinal(pod)
            for name, pod in pods.items()
            if not is_being_deleted(pod) and (name not in after or is_being_deleted(after[name]))
        )

    def is_well(self, number: int) -> bool:
        """Report whether the pod of this ordinal is running, ready, available and not being
        deleted."""
        pod = self.pods.get(number)
        return (
            pod is not None
            and phase_of(pod) == "Running"
            and is_pod_ready(pod)
            and not is_being_deleted(pod)
            and is_pod_available(pod, self.seconds, self.now)
        )

    def is_available(self, number: int) -> bool:
        pod = self.pods.get(number)
        return (
            pod is not None
            and not is_being_deleted(pod)
            and is_pod_available(pod, self.seconds, self.now)
        )


def check_step(step: Step, update_revision: str, current_revision: str) -> None:
    """Check upstream's invariants of one sync (``assertMonotonicInvariants``,
    ``assertBurstInvariants``), and those of updates. Raises Broken."""
    condemned = [number for number in step.deleted if number not in step.range]
    ended = [
        number
        for number in step.deleted
        if number in step.range and is_pod_terminal(step.pods[number])
    ]
    updated = [number for number in step.deleted if number in step.range and number not in ended]
    _check_created(step, update_revision, current_revision)
    if step.ordered:
        _expect(
            len(step.created) + len(step.deleted) <= 1,
            "an ordered set takes one step at a time",
            step,
        )
        for number in condemned:
            _check_condemned(step, number)
    _expect(len(updated) <= 1, "an update takes one pod at a time", step)
    for number in updated:
        _check_updated(step, number, update_revision)


def _check_created(step: Step, update_revision: str, current_revision: str) -> None:
    kept = _kept_at_current(step.set)
    for number in step.created:
        _expect(number in step.range, f"{number} is made though it is out of range", step)
        if step.ordered:
            _expect(
                all(map(step.is_well, range(step.range.start, number))),
                f"{number} is made before its time",
                step,
            )
        wanted = current_revision if number < step.range.start + kept else update_revision
        _expect(
            revision(step.new[number]) == wanted, f"{number} is made at the wrong revision", step
        )


def _kept_at_current(set_: Object) -> int:
    """Return how many of the lowest ordinals are created at the current revision."""
    strategy = set_["spec"]["updateStrategy"]
    if strategy["type"] != "RollingUpdate":
        return 0
    there = (set_.get("status") or {}).get("currentReplicas", 0)
    return int(strategy.get("rollingUpdate", {"partition": there})["partition"])


def _check_condemned(step: Step, number: int) -> None:
    """Check that the highest ordinal goes first, and only while all replicas below are available;
    the only unavailable condemned pod may go as well."""
    beyond = [one for one in step.pods if one not in step.range]
    _expect(number == max(beyond), f"{number} goes before those above it", step)
    _expect(all(map(step.is_well, step.range)), f"{number} goes while members are missing", step)
    others = [one for one in beyond if one != number]
    _expect(
        step.is_well(number) or all(map(step.is_available, others)),
        f"{number} is not the first sick pod",
        step,
    )


def _check_updated(step: Step, number: int, update_revision: str) -> None:
    strategy = step.set["spec"]["updateStrategy"]
    lowest = step.range.start + (strategy.get("rollingUpdate") or {}).get("partition", 0)
    _expect(
        strategy["type"] == "RollingUpdate",
        f"{number} is replaced though nobody asked for it",
        step,
    )
    _expect(
        revision(step.pods[number]) != update_revision,
        f"{number} is replaced though it is up to date",
        step,
    )
    _expect(number >= lowest, f"{number} is replaced though it is below the partition", step)
    above = range(number + 1, step.range.stop)
    _expect(
        all(revision(step.pods[one]) == update_revision for one in above if one in step.pods),
        f"{number} is replaced before those above it",
        step,
    )
    _expect(
        all(map(step.is_available, above)), f"{number} is replaced while another is missing", step
    )
    if step.ordered:
        _expect(
            all(map(step.is_well, step.range)),
            f"{number} is replaced while the set is not whole",
            step,
        )


def check_completion(step: Step, before: Object, after: Object) -> None:
    """Check that the update revision becomes the current one only when all pods are updated and
    ready (``completeRollingUpdate``). Raises Broken."""
    if before.get("currentRevision", after.get("currentRevision")) == after.get("currentRevision"):
        return
    counts = [after.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas")]
    _expect(counts == [len(step.range)] * 3, f"the update is called complete at {counts}", step)
    _expect(
        after["currentRevision"] == after["updateRevision"],
        "another revision is the current one",
        step,
    )


def _expect(holds: bool, what: str, step: Step) -> None:
    if not holds:
        pods = {
            number: (revision(pod)[-4:], phase_of(pod), is_pod_ready(pod), is_being_deleted(pod))
            for number, pod in sorted(step.pods.items())
        }
        raise Broken(
            f"{what}: range {step.range}, pods {pods}, created {step.created}, deleted "
            f"{step.deleted}"
        )


class Witness:
    """The StatefulSet controller with every sync checked; it crashes at sync number
    ``crash_at``."""

    name = "statefulset-controller"

    def __init__(
        self, inner: Reconciler, context: Context, lab: StatefulLab, crash_at: int = 0
    ) -> None:
        self._inner, self._context, self._lab, self._left = inner, context, lab, crash_at

    @property
    def queue(self) -> WorkQueue[Key]:
        return self._inner.queue

    def handlers(self) -> Mapping[str, Handler]:
        return self._inner.handlers()

    def sync(self, key: Key) -> None:
        sight = Sight(self._inner, self._context.client)
        set_ = sight.known.objects[SETS].get(key)
        self._lab.failed = True
        try:
            self._inner.sync(key)
            self._lab.failed = False
        except (Status, ClaimError, AdoptionError):
            raise
        except Exception as error:  # the manager would only log it and try again
            self._lab.broken.append(Broken(f"a sync raises {error!r}"))
            raise
        finally:
            if set_ is not None and not is_being_deleted(set_):
                self._check(set_, sight)
        self._left -= 1
        if self._left == 0 or self._lab.broken:
            raise Crash

    def _check(self, set_: Object, sight: Sight) -> None:
        seen = sight.known_after(sight.now())
        before, after = (
            {name_of(pod): pod for pod in one.list("pods").items} for one in (sight.known, seen)
        )
        found = [one for one in seen.list(SETS).items if uid_of(one) == uid_of(set_)]
        status = found[0].get("status") or {} if found else {}
        revisions = [
            one
            for one in seen.list(REVISIONS).items
            if (controller_of(one) or {}).get("uid") == uid_of(set_)
        ]
        update = name_of(max(revisions, key=lambda one: int(one["revision"]))) if revisions else ""
        current = (set_.get("status") or {}).get("currentRevision") or update
        step = Step(set_, before, after, self._context.clock.now())
        try:
            check_step(step, update, current)
            check_completion(step, set_.get("status") or {}, status)
        except Broken as error:  # kept, since the manager would treat an exception as a failed sync
            self._lab.broken.append(error)


def is_member(set_: Object, pod: Object) -> bool:
    """Report whether the set controls the pod."""
    return (controller_of(pod) or {}).get("uid") == uid_of(set_)


def _is_claimed(set_: Object, before: Object, after: Object | None) -> bool:
    """Report whether the set owned the pod during a sync: all the time, until its deletion, or
    newly adopted."""
    return is_member(set_, before if after is None or uid_of(after) != uid_of(before) else after)


class StatefulLab(WatchedLab):
    """A cluster with a node, whose StatefulSet controller is checked after each sync."""

    def __init__(self, folder: Path, faults: Object | None = None) -> None:
        super().__init__(folder, faults)
        self.failed = False  # whether the last sync raised an error, and so left work undone
        self.node("node-1")
        self.run()

    def witnesses(self, context: Context, crash_at: int) -> list[Reconciler]:
        return [
            Witness(one, context, self, crash_at) if one.name == Witness.name else one
            for one in new_reconcilers(context)
        ]

    def make(self, obj: Object) -> Object:
        return self.create(SETS, obj, "default")

    def set(self, name: str = "db") -> Object:
        return self.client.get(SETS, name, namespace="default")

    def edit(self, **spec: Any) -> None:
        self.change(SETS, "db", lambda obj: obj["spec"].update(spec), "default")

    def retemplate(self, image: str, outcome: str = "ready") -> None:
        def change(obj: Object) -> None:
            template = obj["spec"]["template"]
            template["spec"]["containers"][0]["image"] = image
            template["metadata"]["annotations"] = {"kubepy.dev/outcome": outcome}

        self.change(SETS, "db", change, "default")

    def pods(self, name: str = "db") -> list[Object]:
        """Return the set's pods, by ordinal."""
        set_ = self.set(name)
        return sorted(
            (pod for pod in self.client.list("pods").items if is_member(set_, pod)), key=ordinal
        )

    def images(self, name: str = "db") -> dict[int, str]:
        return {ordinal(pod): pod["spec"]["containers"][0]["image"] for pod in self.pods(name)}

    def messages(self, kind: str, name: str) -> list[str]:
        """Return reason and message of an object's events, in order."""
        events = [
            one
            for one in self.client.list("events").items
            if (one["involvedObject"]["kind"], one["involvedObject"]["name"]) == (kind, name)
        ]
        return [f"{one['reason']}: {one['message']}" for one in events]
