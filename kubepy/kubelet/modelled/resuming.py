"""The runs that are under way in a pod of which only the status was known: what rules say of them,
and the probes that they wait for.

The status wins. A run that has lasted longer than a rule says goes on until somebody ends it; a
container that is ready stays so and is probed again from its next run on; one that is not ready is
probed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kubepy.api.clock import parse_time
from kubepy.kubelet.modelled.probing import LIVENESS, STARTUP, probes_of, tick
from kubepy.kubelet.modelled.records import ContainerRecord, ProbeRecord, Stopping
from kubepy.kubelet.modelled.starting import set_ruled_times
from kubepy.kubelet.modelled.stopping import ruled_stop

if TYPE_CHECKING:
    from kubepy.api.typed import Container
    from kubepy.kubelet.modelled.life import PodLife

A_MOMENT = timedelta(microseconds=1)
TIMESTAMP_PRECISION = timedelta(seconds=1)  # of deletionTimestamp


def resume(life: PodLife) -> None:
    """Let the runs go on that were under way when the pod was taken over."""
    for container in (*life.init_containers, *life.containers):
        record = life.record_of(container)
        if not record.runs:
            continue
        if _is_observed(life):
            record.image = container["image"]
        if not life.has_other_image(container):
            life.host.takes_image(container)
    for container, record in life.running():
        _resume_run(
            life,
            container,
            record,
        )
    if life.record.was_being_deleted:
        _resume_stopping(life)


def _is_observed(life: PodLife) -> bool:
    """Tell whether the kubelet has seen the pod as it is now: its containers run the images that it
    names, even where the runtime knows these by other names."""
    observed = (life.pod.get("status") or {}).get("observedGeneration")
    return observed is None or observed >= life.pod["metadata"].get("generation", 0)


def _resume_run(life: PodLife, container: Container, record: ContainerRecord) -> None:
    if record.started is None:
        return
    set_ruled_times(
        life,
        container,
        record,
        record.started,
    )
    if record.ends is not None and record.ends <= life.now:
        record.ends = None
    if record.is_ready or (record.gets_ready is not None and record.gets_ready <= life.now):
        record.gets_ready = None
    if record.is_ready:
        return
    for probe_type, probe in probes_of(container):
        if probe_type == LIVENESS or (probe_type == STARTUP and record.has_started):
            continue
        state = ProbeRecord(phase=record.started)
        delay = timedelta(seconds=probe.get("initialDelaySeconds") or 0)
        state.due = tick(
            probe,
            state,
            max(record.started + delay, life.now + A_MOMENT),
        )
        record.probes[probe_type] = state


def _resume_stopping(life: PodLife) -> None:
    """Go on stopping the containers of a pod that is being deleted: they have been sent TERM, and
    run still."""
    metadata = life.pod["metadata"]
    seconds = max(metadata.get("deletionGracePeriodSeconds") or 0, 1)
    deadline = parse_time(metadata["deletionTimestamp"])
    asked = deadline - timedelta(seconds=seconds)
    if asked > life.now - TIMESTAMP_PRECISION:
        return
    life.record.grace = seconds
    for container, record in life.running():
        record.stopping = Stopping(
            asked=asked,
            deadline=deadline,
            grace=seconds,
            ends_pod=True,
            is_signalled=True,
            stops=_stop_time(
                life,
                container,
                asked,
                deadline,
            ),
        )


def _stop_time(
    life: PodLife, container: Container, asked: datetime, deadline: datetime
) -> datetime | None:
    """Return when a container has stopped by the rules; None: at the deadline."""
    stops = ruled_stop(life, container, asked)
    if stops is None or stops <= life.now:
        return None
    return min(stops, deadline)
