"""The modelled pods of all nodes: their records, and one look at a pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.clock import EPOCH, parse_time
from kubepy.api.meta import annotations_of, is_being_deleted, name_of, namespace_of, uid_of
from kubepy.api.objects.outcomes import TERMINATION
from kubepy.api.objects.references import references_of
from kubepy.kubelet.modelled.adoption import record_of_status
from kubepy.kubelet.modelled.choice import is_left_to_outcome, is_modelled
from kubepy.kubelet.modelled.host import NodeAgent, PodHost
from kubepy.kubelet.modelled.life import NORMAL, PodEvent, PodLife
from kubepy.kubelet.modelled.records import RECORD, PodRecord, load_record
from kubepy.kubelet.modelled.starting import note_image, note_start
from kubepy.kubelet.modelled.worker import Foreseen, PodWorker
from kubepy.kubelet.payloads import shows_changing_fields
from kubepy.kubelet.volumes import update_due
from kubepy.runtime.reconcile import Key

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod


class Look(NamedTuple):
    """The result of a look at a pod.

    :ivar record: the pod as it is now.
    :ivar events: those that have happened since the last look.
    :ivar is_changed: the status may be another one.
    :ivar is_removed: the pod has ended and is being deleted: it can go.
    :ivar next: when something happens next by itself.
    """

    record: PodRecord
    events: list[PodEvent]
    is_changed: bool
    is_removed: bool
    next: Foreseen | None

    def stopping_for_resize(self, pod: Pod) -> tuple[str, ...]:
        """Return the containers that stop to be started with the resources that the pod asks for
        now."""
        generation = pod["metadata"].get("generation")
        names: list[str] = []
        for name, container in self.record.containers.items():
            is_stopping = container.is_running and container.is_replaced
            if is_stopping and container.resized == generation:
                names.append(name)
        return tuple(names)


class ModelledPods:
    """Looks at pods, and keeps their records among the small values of the cluster.

    :param value: returns a small value by its name.
    :param set_values: sets some; None removes one.
    """

    def __init__(
        self,
        agent: NodeAgent,
        value: Callable[[str], str | None],
        set_values: Callable[[Mapping[str, str | None]], object],
        defaults: Mapping[str, str],
    ) -> None:
        self.agent = agent
        self._networked: set[Key] = set()  # pods whose processes ask the network
        self._readers: dict[Key, set[Key]] = {}  # by ConfigMap or Secret, pods that mount it
        self._value = value
        self._set_values = set_values
        self._defaults = defaults

    def lives(self, pod: Pod, node: Node) -> bool:
        """Tell whether a pod on its node is modelled: it does more than run, or a command was run
        in it. Where its outcome is chosen, that command must have ended a main process."""
        if is_modelled(
            pod,
            node,
            self.agent.behaviours,
            self._defaults,
        ):
            return True
        if (pod.get("status") or {}).get("phase") != "Running":
            return False
        record = load_record(self._value(f"{RECORD}{uid_of(pod)}"))
        if record is None:
            return False
        return record.has_ended_inside or not is_left_to_outcome(pod, node, self._defaults)

    # --- what the kubelet keeps in mind

    def remember(self) -> dict[str, Any]:
        """Return what outlives the process, as JSON."""
        memory = {
            "networked": [list(key) for key in sorted(self._networked)],
            "readers": {
                "/".join(read): [list(key) for key in sorted(keys)]
                for read, keys in self._readers.items()
            },
            "images": {node: sorted(images) for node, images in self.agent.images.items()},
        }
        return {name: value for name, value in memory.items() if value}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Take over what :meth:`remember` gave in another process."""
        self._networked.update(Key(*key) for key in memory.get("networked", ()))
        for read, keys in memory.get("readers", {}).items():
            resource, namespace, name = read.split("/")
            self._readers[Key(resource, namespace, name)] = {Key(*key) for key in keys}
        for node, images in memory.get("images", {}).items():
            self.agent.images[node] = dict.fromkeys(images, True)

    def network_users(self) -> list[Key]:
        """Return the pods whose processes ask the network."""
        return sorted(self._networked)

    def readers(self, key: Key) -> list[Key]:
        """Return the pods whose volumes show an object."""
        return sorted(self._readers.get(key, ()))

    def plan_refresh(self, pod: Pod, now: datetime) -> datetime:
        """Return when the volumes of a pod show what has changed now."""
        record = self.record(pod, now)
        started = (pod.get("status") or {}).get("startTime")
        due = update_due(parse_time(started) if started else now, now)
        record.refreshes = due
        self.keep(pod, record)
        return due

    def _note_uses(self, pod: Pod, record: PodRecord) -> None:
        """Note what changes of the cluster a pod must be looked at for."""
        key = Key("pods", namespace_of(pod), name_of(pod))
        if record.uses_network and not record.is_over:
            self._networked.add(key)
        else:
            self._networked.discard(key)
        for reference in references_of(pod["spec"]):
            if reference.volume:
                read = Key(reference.resource, namespace_of(pod), reference.name)
                self._readers.setdefault(read, set()).add(key)

    def _forget_uses(self, pod: Pod) -> None:
        key = Key("pods", namespace_of(pod), name_of(pod))
        self._networked.discard(key)
        if not self._readers:
            return
        for reference in references_of(pod["spec"]):
            read = Key(reference.resource, namespace_of(pod), reference.name)
            readers = self._readers.get(read)
            if readers is not None:
                readers.discard(key)
                if not readers:
                    del self._readers[read]

    # --- looks

    def record(self, pod: Pod, now: datetime) -> PodRecord:
        """Return the record of a pod; one that has none yet is made from the status."""
        record = load_record(self._value(f"{RECORD}{uid_of(pod)}"))
        if record is not None:
            return record
        return record_of_status(pod, now)

    def look(self, pod: Pod, node: Node, now: datetime, restarts: Sequence[str] = ()) -> Look:
        """Let a pod live on up to now, and keep its record.

        :param restarts: the containers that are started again for other resources.
        """
        record = self.record(pod, now)
        run_pod = self.agent.pod_to_run(pod, node)
        host = PodHost(self.agent, run_pod, node)
        worker = PodWorker(run_pod, record, host)
        moment = max(now, record.at)
        worker.advance(moment)
        if record.volumes and shows_changing_fields(run_pod):
            host.refresh_volumes(record, moment)
        if worker.restart(restarts):
            worker.advance(moment)
        is_stuck = annotations_of(pod).get(TERMINATION) == "stuck"
        is_removed = is_being_deleted(pod) and record.is_over and not is_stuck
        self.keep(pod, record)
        self._note_uses(pod, record)
        return Look(
            record,
            worker.life.events,
            worker.life.is_changed,
            is_removed,
            worker.foresee(),
        )

    def start_events(self, pod: Pod, node: Node) -> list[PodEvent]:
        """Return the events of a pod that just runs from now on."""
        life = PodLife(pod, PodRecord(at=EPOCH), PodHost(self.agent, pod, node))
        for container in pod["spec"]["containers"]:
            note_image(life, container)
            note_start(life, container)
        return life.events

    def stop_events(self, pod: Pod) -> list[PodEvent]:
        """Return the events of a pod that just ran, and is stopped now."""
        events: list[PodEvent] = []
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            name = status["name"]
            if "running" in (status.get("state") or {}):
                message = f"Stopping container {name}"
                path = f"spec.containers{{{name}}}"
                events.append(PodEvent(NORMAL, "Killing", message, path))
        return events

    def keep(self, pod: Pod, record: PodRecord) -> None:
        """Keep the record of a pod."""
        name = f"{RECORD}{uid_of(pod)}"
        text = record.dump()
        if text != self._value(name):
            self._set_values({name: text})

    def _forget_imported_logs(self, pod: Pod) -> None:
        """Remove the logs of a pod that just ran, and was imported with them."""
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            restarts = status.get("restartCount", 0)
            for run in range(max(restarts, 1), restarts + 2):
                self.agent.logs.remove(uid_of(pod), status["name"], run)

    def forget(self, pod: Pod) -> None:
        """Remove what is known of a pod that is gone."""
        uid = uid_of(pod)
        self._forget_uses(pod)
        name = f"{RECORD}{uid}"
        record = load_record(self._value(name))
        if record is None:
            self._forget_imported_logs(pod)
            return
        for container in record.containers.values():
            for run in (container.runs, container.runs - 1):
                self.agent.logs.remove(uid, container.name, run)
        self._set_values({name: None})
