"""The rules by which the pods of a source go on doing what they have done (docs/rules.md).

A failure is learned for the image and the template that it was seen with, so that a changed
template is free of it; where other pods of the template do well, for the one pod, or its node. How
long things take is learned for the workload. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from kubepy.api.meta import Object, name_of, nested_map
from kubepy.apiserver.rule_settings import NEVER, UNKNOWN
from kubepy.importing.durations import (
    length_text,
    ready_seconds,
    run_seconds,
    stop_seconds,
    usual,
)
from kubepy.importing.evidence import (
    INIT,
    MAIN,
    SIDECAR,
    ContainerEvidence,
    SourceObjects,
    Workload,
    is_terminating,
    run_length,
    seconds_between,
    time_of,
)
from kubepy.importing.failures import ContainerFailure, crash, failure_of, is_lost, merged, names_of
from kubepy.importing.measured import measured_usages
from kubepy.importing.replay import Model, ReplayedRun, escaped

MOST_NAMES = 3  # of pods in a comment
ALIKE = 0.2  # the share by which two lengths of runs may differ and be the same
SHORTEST_DIFFERENCE = 2.0  # seconds that count as no difference
OVERDUE = 60.0  # seconds after its deadline, when a deleted pod counts as stuck

Place = tuple[Workload, tuple[str, str], str, str]  # workload, revision, container, image


class LearnedRule(NamedTuple):
    """A rule, and what it was learned from.

    :ivar match: its conditions, as ``kubepy.yaml`` has them.
    :ivar values: what it sets.
    :ivar comment: the line above it.
    """

    match: dict[str, str]
    values: dict[str, Any]
    comment: str

    def as_setting(self) -> dict[str, Any]:
        """Return the rule as ``kubepy.yaml`` has it."""
        return {"match": dict(self.match), **self.values}


def learned_rules(objects: Sequence[Object], now: datetime) -> list[LearnedRule]:
    """Return the rules by which the pods of a source go on doing what they did.

    :param objects: all of the source, of any kind and in any order.
    :param now: the moment of the source.
    """
    source = SourceObjects(objects, now)
    model = Model(source)
    evidences = [*source.evidence()]
    workloads: dict[Workload, list[ContainerEvidence]] = {}
    for evidence in evidences:
        workloads.setdefault(evidence.workload, []).append(evidence)
    rules: list[LearnedRule] = []
    for workload in sorted(workloads):
        rules += _rules_of_workload(
            workload,
            workloads[workload],
            source,
            model,
        )
    return [*rules, *_usages(objects, workloads)]


def _rules_of_workload(
    workload: Workload, evidences: list[ContainerEvidence], source: SourceObjects, model: Model
) -> Iterator[LearnedRule]:
    """Yield the failures of a workload first: what comes first counts."""
    longest = max(_ready_times(evidences), default=0.0)
    templates: dict[Place, list[ContainerEvidence]] = {}
    for evidence in evidences:
        place = (workload, evidence.revision, evidence.name, evidence.image)
        templates.setdefault(place, []).append(evidence)
    for place in templates:
        yield from _failures(
            place,
            templates[place],
            source,
            model,
            longest,
        )
    yield from _terminating(evidences, source)
    names = dict.fromkeys(evidence.name for evidence in evidences)
    for name in names:
        of_container = [evidence for evidence in evidences if evidence.name == name]
        yield from _runs(workload, of_container)
        yield from _contradictions(
            workload,
            of_container,
            source,
            model,
        )
    yield from _times(workload, evidences)


# --- failures -------------------------------------------------------------------------------------


def _failures(
    place: Place,
    evidences: list[ContainerEvidence],
    source: SourceObjects,
    model: Model,
    longest: float,
) -> Iterator[LearnedRule]:
    """Yield the rules for the failures of one container of one template.

    :param longest: the seconds after which the slowest pod of the workload was ready.
    """
    live = [evidence for evidence in evidences if not evidence.pod_has_ended]
    failing: list[tuple[ContainerEvidence, ContainerFailure]] = []
    healthy: list[ContainerEvidence] = []
    for evidence in live:
        failure = failure_of(evidence, source)
        if failure is not None and not _may_get_ready(
            evidence,
            failure,
            source,
            longest,
        ):
            failing.append((evidence, failure))
        elif evidence.is_ready or evidence.running_since is not None:
            healthy.append(evidence)
    if not failing:
        return
    if healthy and place[0].owner:
        for evidence, failure in failing:
            where = _of_one(evidence)
            comment = f"Learned from 1 of {len(live)} pods ({name_of(evidence.pod)}): it "
            yield from _failure_rule(
                where,
                [evidence],
                failure,
                comment,
                model,
            )
        return
    for failure, _ in merged([failure for _, failure in failing]):
        alike = [evidence for evidence, other in failing if other.words == failure.words]
        comment = f"{_learned_from(alike, len(live))}: "
        yield from _failure_rule(
            _of_template(place),
            alike,
            failure,
            comment,
            model,
        )


def _may_get_ready(
    evidence: ContainerEvidence, failure: ContainerFailure, source: SourceObjects, longest: float
) -> bool:
    """Tell whether a container that is not ready may only take its time, as others of its workload
    did."""
    if failure.field != "readyAfter":
        return False
    age = seconds_between(evidence.running_since, source.now)
    return age is not None and age < 2 * longest


def _failure_rule(
    match: dict[str, str],
    evidences: list[ContainerEvidence],
    failure: ContainerFailure,
    comment: str,
    model: Model,
) -> Iterator[LearnedRule]:
    values: dict[str, Any] = {}
    if failure.field == "runsFor":
        lengths = usual(failure.lengths) or [0.0]
        replay = model.replay(evidences[0], max(lengths) + SHORTEST_DIFFERENCE)
        if _is_expected(
            replay,
            failure,
            lengths,
        ):
            return
        if not model.is_opaque(evidences[0]):
            values["program"] = UNKNOWN
        values["runsFor"] = length_text(lengths)
        comment += f"{failure.words} after {length_text(lengths)}"
    else:
        comment += failure.words
    yield LearnedRule(
        match,
        {**values, **failure.values},
        comment,
    )


def _is_expected(
    replay: ReplayedRun | None, failure: ContainerFailure, lengths: Sequence[float]
) -> bool:
    """Tell whether the model itself ends a container as it did."""
    if replay is None or replay.code != failure.values.get("exitCode"):
        return False
    if not failure.values.keys() <= {"exitCode", "exitMessage"}:
        return False
    allowed = max(SHORTEST_DIFFERENCE, ALIKE * max(lengths))
    return min(lengths) - allowed <= replay.seconds <= max(lengths) + allowed


def _of_template(place: Place) -> dict[str, str]:
    """Return the conditions of a rule about a container of a template."""
    workload, revision, container, image = place
    match = {"namespace": workload.namespace, "image": escaped(image)}
    if revision[0]:
        match["selector"] = f"{revision[0]}={revision[1]}"
    elif workload.owner:
        match["owner"] = workload.owner
    else:
        match["name"] = workload.pod
    match["container"] = container
    return match


def _of_one(evidence: ContainerEvidence) -> dict[str, str]:
    """Return the conditions of a rule about what one pod of several does: it does so by itself, or
    on its node where there is one pod to a node."""
    workload = evidence.workload
    match = {"namespace": workload.namespace, "image": escaped(evidence.image)}
    if evidence.revision[0]:
        match["selector"] = f"{evidence.revision[0]}={evidence.revision[1]}"
    if workload.kind == "DaemonSet":
        match["owner"] = workload.owner
        match["node"] = nested_map(evidence.pod, "spec").get("nodeName") or ""
    else:
        match["name"] = name_of(evidence.pod)
    match["container"] = evidence.name
    return match


def _terminating(
    evidences: Iterable[ContainerEvidence], source: SourceObjects
) -> Iterator[LearnedRule]:
    """Yield how long the containers still take that are being stopped."""
    seen: set[str] = set()
    for evidence in evidences:
        name = name_of(evidence.pod)
        if name in seen or not is_terminating(evidence) or source.is_silent(evidence.pod):
            continue
        seen.add(name)
        metadata = evidence.pod["metadata"]
        deadline = time_of(metadata, "deletionTimestamp")
        overdue = seconds_between(deadline, source.now)
        match = {"namespace": evidence.workload.namespace, "name": name}
        if overdue is not None and overdue >= OVERDUE:
            late = length_text([overdue])
            comment = f"Learned from 1 pod ({name}): it should have stopped {late} before"
            yield LearnedRule(match, {"stopsAfter": NEVER}, comment)
            continue
        grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
        yield LearnedRule(
            match,
            {"stopsAfter": length_text([grace])},
            f"Learned from 1 pod ({name}): it was being deleted, and ran still",
        )


# --- runs that end --------------------------------------------------------------------------------


def _runs(workload: Workload, evidences: list[ContainerEvidence]) -> Iterator[LearnedRule]:
    """Yield how long the runs of a container take that is to end, and how they end: those of init
    containers, Jobs and pods that do not start again."""
    if evidences[0].kind == SIDECAR:
        return
    is_init = evidences[0].kind == INIT
    ended = [
        evidence
        for evidence in evidences
        if nested_map(
            evidence.status,
            "state",
            "terminated",
        )
        and not is_lost(evidence.end)
        and (is_init or evidence.pod_has_ended)
    ]
    if not is_init and not workload.makes_jobs and workload.owner:
        return  # the pods of others are replaced, whatever has ended them
    well = [evidence for evidence in ended if not evidence.end.get("exitCode")]
    match = _of_container(workload, evidences[0])
    lengths = usual(run_seconds(well))
    if well and (is_init or _ends_well(ended)):
        if max(lengths, default=0.0) > 0:
            comment = f"{_learned_from(well, len(evidences))}: ends after {length_text(lengths)}"
            yield LearnedRule(
                match,
                {"runsFor": length_text(lengths), "exitCode": 0},
                comment,
            )
        return
    if is_init:
        return
    failures = [failure for each in ended if (failure := crash(each, each.end)) is not None]
    for failure, count in merged([each for each in failures if each.values.get("exitCode")])[:1]:
        lengths = usual(failure.lengths) or [0.0]
        values = {"runsFor": length_text(lengths), **failure.values}
        values.pop("readyAfter", None)
        comment = (
            f"Learned from {count} of {len(evidences)} pods: {failure.words} after "
            f"{length_text(lengths)}"
        )
        yield LearnedRule(
            {**match, "image": escaped(evidences[0].image)},
            values,
            comment,
        )


def _ends_well(ended: Iterable[ContainerEvidence]) -> bool:
    """Tell whether the run that has ended last has ended well."""
    last = max(ended, key=lambda evidence: evidence.end.get("finishedAt") or "")
    return not last.end.get("exitCode")


def _of_container(workload: Workload, evidence: ContainerEvidence) -> dict[str, str]:
    return {**_of_workload(workload), "container": evidence.name}


def _of_workload(workload: Workload) -> dict[str, str]:
    if workload.owner:
        return {"namespace": workload.namespace, "owner": workload.owner}
    return {"namespace": workload.namespace, "name": workload.pod}


# --- what the model would do otherwise ------------------------------------------------------------


def _contradictions(
    workload: Workload, evidences: list[ContainerEvidence], source: SourceObjects, model: Model
) -> Iterator[LearnedRule]:
    """Yield what the model must be told so that it lets a container do what it did: run on, answer
    its probes, complete."""
    seen: set[str] = set()
    for evidence in evidences:
        template = _template_of(evidence)
        if template in seen or evidence.pod_has_ended:
            continue
        if evidence.kind == INIT:
            runs = _replay_of_init(evidence, model)
        else:
            runs = _replay_of_run(
                evidence,
                source,
                model,
            )
        if runs is None:
            continue
        seen.add(template)
        if runs:
            yield _unknown_program(workload, evidence)
        if evidence.kind != INIT and evidence.is_ready:
            values = model.failing_answers(evidence)
            if values:
                match = _of_container(workload, evidence)
                alike = [other for other in evidences if _template_of(other) == template]
                comment = f"{_learned_from(alike, len(names_of(alike)))}: the probes succeed"
                yield LearnedRule(
                    match,
                    values,
                    comment,
                )


def _template_of(evidence: ContainerEvidence) -> str:
    """Return what the containers of one template have in common. The mount of a pod's token has a
    name of its own in each pod."""
    container = {**evidence.container}
    container.pop("volumeMounts", None)
    return repr((container, evidence.revision))


def _replay_of_init(evidence: ContainerEvidence, model: Model) -> bool | None:
    """Tell whether the model does something else with an init container that has completed; None
    where nothing can be said."""
    ended = nested_map(
        evidence.status,
        "state",
        "terminated",
    )
    if not ended or ended.get("exitCode"):
        return None
    length = run_length(ended) or 0.0
    replay = model.replay(evidence, length + SHORTEST_DIFFERENCE)
    return replay is not None and replay.code != 0


def _replay_of_run(evidence: ContainerEvidence, source: SourceObjects, model: Model) -> bool | None:
    """Tell whether the model has ended a container that runs; None where nothing can be said."""
    age = seconds_between(evidence.running_since, source.now)
    if age is None:
        return None
    if failure_of(evidence, source) is not None:
        return None
    replay = model.replay(evidence, age)
    return replay is not None and (replay.code is not None or replay.is_costly)


def _unknown_program(workload: Workload, evidence: ContainerEvidence) -> LearnedRule:
    """Return the rule that what a container runs is not known."""
    match = _of_container(workload, evidence)
    words = [*(evidence.container.get("command") or ()), *(evidence.container.get("args") or ())]
    if words:
        match["args"] = escaped(" ".join(words))
    else:
        match["image"] = escaped(evidence.image)
    does = "completes" if evidence.kind == INIT else "runs"
    comment = f"{_learned_from([evidence], 1)}: {does}, where the model would not"
    return LearnedRule(
        match,
        {"program": UNKNOWN},
        comment,
    )


# --- times ----------------------------------------------------------------------------------------


def _times(workload: Workload, evidences: list[ContainerEvidence]) -> Iterator[LearnedRule]:
    """Yield how long the pods of a workload take to get ready and to stop."""
    main = [evidence for evidence in evidences if evidence.kind == MAIN]
    total = len({name_of(evidence.pod) for evidence in evidences})
    match = _of_workload(workload)
    times = usual(_ready_times(main))
    if times and max(times) > 0 and not workload.makes_jobs:
        text = length_text(times)
        measured = [each for each in main if ready_seconds(each.pod) is not None]
        comment = f"{_learned_from(measured, total)}: ready {text} after start"
        yield LearnedRule(match, {"readyAfter": text}, comment)

    stopped: list[ContainerEvidence] = []
    stops: list[float] = []
    for evidence in main:
        seconds = stop_seconds(evidence)
        if seconds is not None:
            stopped.append(evidence)
            stops.append(seconds)
    if stops and max(stops) > 0:
        text = length_text(stops)
        comment = f"{_learned_from(stopped, total)}: stopped after {text}"
        yield LearnedRule(match, {"stopsAfter": text}, comment)


def _ready_times(evidences: Iterable[ContainerEvidence]) -> list[float]:
    """Return after how many seconds the pods of some containers were ready, each pod once."""
    times: dict[str, float] = {}
    for evidence in evidences:
        seconds = ready_seconds(evidence.pod)
        if seconds is not None:
            times[name_of(evidence.pod)] = seconds
    return [*times.values()]


def _usages(
    objects: Iterable[Object], workloads: dict[Workload, list[ContainerEvidence]]
) -> Iterator[LearnedRule]:
    """Yield what the containers of a workload use, as far as an autoscaler has measured it."""
    for usage in measured_usages(objects):
        workload = Workload(usage.namespace, usage.owner)
        evidences = workloads.get(workload, ())
        names = {each.name for each in evidences if each.kind != INIT}
        if not names:
            continue
        values = usage.shares(len(names))
        comment = f"Learned from HorizontalPodAutoscaler/{usage.autoscaler}: what it has measured"
        yield LearnedRule(
            _of_workload(workload),
            values,
            comment,
        )


# --- comments -------------------------------------------------------------------------------------


def _learned_from(evidences: Sequence[ContainerEvidence], total: int) -> str:
    """Return from how many pods something was learned, and from which."""
    names = names_of(evidences)
    shown = ", ".join(names[:MOST_NAMES])
    if len(names) > MOST_NAMES:
        shown += ", …"
    count = _pods_text(total) if len(names) == total else f"{len(names)} of {_pods_text(total)}"
    return f"Learned from {count} ({shown})"


def _pods_text(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
