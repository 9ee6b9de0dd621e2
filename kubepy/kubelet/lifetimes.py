"""A pod's life by its annotations: what becomes of each run of its containers, how long each
thing takes.

The pods of Jobs end by themselves, and those that wait for a client; all others only where an
annotation says so. An annotation of the pod comes before one of its node, and that before a default
of ``kubepy.yaml``. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.clock import format_micro_time, format_time, parse_time
from kubepy.api.meta import annotations_of, controller_of, uid_of
from kubepy.api.objects.outcomes import (
    CRASH_LOOP,
    CRASHES,
    EXIT_CODE,
    IMAGE_PULL_BACKOFF,
    NO_INIT_CONTAINER,
    OOM_KILLED,
    OUTCOME,
    POD_OUTCOME,
    READY_AFTER,
    REFERENCES,
    RUNS_FOR,
    STOPS_AFTER,
    OutcomeSequence,
    parse_exit_code,
    parse_length,
    parse_outcomes,
    parse_references,
)
from kubepy.api.objects.pods import is_restartable_init_container
from kubepy.api.objects.references import Find
from kubepy.api.objects.usage import AnnotationError, check_usage
from kubepy.kubelet.outcomes import COMPLETED, OUT_OF_MEMORY, OUTCOMES, PodOutcome

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod

PACE = (OUTCOME, EXIT_CODE, RUNS_FOR, READY_AFTER, STOPS_AFTER, REFERENCES)
OF_NODES = {*PACE, POD_OUTCOME}
FOR_JOBS = (RUNS_FOR, EXIT_CODE)  # those of nodes and kubepy.yaml count for the pods of Jobs only
FAILED = OUTCOMES["failed"]
Draw = Callable[
    ["Pod", str, float, float], float
]  # a number in a range that is a function of seed, pod and purpose


class Rules(NamedTuple):
    """The things that the kubelets go by beside pods and nodes.

    :param draw: draws a number of seconds from a range, for a pod and a purpose.
    :param defaults: values of annotations that neither pod nor node has.
    :param moment: the exact moment that a timestamp of the pod stands for; timestamps are whole
        seconds.
    :param find: looks up a ConfigMap or a Secret.
    """

    draw: Draw = lambda pod, purpose, low, high: low
    defaults: Mapping[str, str] = {}
    moment: Callable[[Pod, str], datetime] = lambda pod, text: parse_time(text)
    find: Find = lambda resource, namespace, name: None


NO_RULES = Rules()


class Attempt(NamedTuple):
    """The next thing that happens to a pod's containers.

    :param failed_pulls: how often the image cannot be pulled before the run.
    :param outcome: the outcome of the run, or image-pull-backoff for ever.
    :param is_last: nothing else follows.
    """

    failed_pulls: int
    outcome: str
    is_last: bool


class Lifetime(NamedTuple):
    """``outcome``: that of a pod which does not end by itself, or the one that it has while it
    runs.

    :param runs_for: how long a run takes, in seconds; None: it does not end.
    :param end: the outcome of a run's end.
    :param restarts: the containers start again when they have ended.
    :param before: the outcomes that come before, and how often each.
    :param crash: the outcome of the end of a run that crashes.
    :param crash_restarts: the containers start again when they have crashed.
    :param init: the lifetime of the init container that an outcome speaks of; None: init containers
        complete at once.
    :param needs_references: the ConfigMaps and Secrets that the pod reads must be there before it
        starts.
    """

    outcome: str
    runs_for: float | None = None
    end: PodOutcome = COMPLETED
    restarts: bool = False
    before: tuple[tuple[str, int], ...] = ()
    crash: PodOutcome = FAILED
    crash_restarts: bool = True
    ready_after: float = 0.0
    stops_after: float = 0.0
    init: Lifetime | None = None
    needs_references: bool = False

    def attempt(self, runs: int) -> Attempt:
        """Return what comes after so many runs that have ended."""
        failed_pulls = 0
        for name, count in self.before:
            if name == IMAGE_PULL_BACKOFF:
                if runs == 0:
                    failed_pulls += count
            elif runs < count:
                return Attempt(failed_pulls, name, is_last=False)
            else:
                runs -= count
        return Attempt(failed_pulls, self.outcome, is_last=True)

    def run_length(self, outcome: str) -> float | None:
        """Return after how many seconds a run with this outcome ends; None: it does not."""
        if outcome in CRASHES:
            return 0.0
        if outcome in ("ready", "not-ready"):
            return self.runs_for
        return None

    def end_of(self, outcome: str) -> tuple[PodOutcome, bool]:
        """Return how a run with this outcome ends, and whether the containers start again then."""
        if outcome not in CRASHES:
            return self.end, self.restarts
        if outcome == OOM_KILLED:
            return OUT_OF_MEMORY, self.crash_restarts
        return self.crash, self.crash_restarts

    def running(self, outcome: str) -> PodOutcome:
        """Return the outcome of containers that have just been started."""
        if self.ready_after:
            return OUTCOMES["not-ready"]
        return OUTCOMES[outcome]


# Pods without annotations, other than those of Jobs.
PLAIN = Lifetime("ready")
PLAIN_NEVER = Lifetime("ready", crash_restarts=False)
COMPLETES = Lifetime("ready", 0.0)  # an init container that no outcome speaks of


def lifetime_of(pod: Pod, node: Node, rules: Rules = NO_RULES) -> Lifetime:
    """Read the annotations of a pod and its node. Raises AnnotationError, UnknownOutcomeError."""
    is_job_pod = (controller_of(pod) or {}).get("kind") == "Job"
    annotations = _annotations_in_force(pod, node, rules, is_job_pod)
    policy = pod["spec"].get("restartPolicy")
    ends_by_itself = is_job_pod or (policy == "Never" and _waits_for_client(pod))
    if not ends_by_itself and not annotations:
        check_usage(pod)
        if policy == "Never":
            return PLAIN_NEVER
        return PLAIN

    def text_of(name: str) -> str:
        return annotations.get(name, "")

    def length_of(name: str) -> float | None:
        text = text_of(name)
        if not text:
            return None
        low, high = parse_length(name, text)
        if low < high:
            return rules.draw(pod, name, low, high)
        return low

    sequence = parse_outcomes(OUTCOME, text_of(OUTCOME) or "ready")
    needs_references = False
    if text_of(REFERENCES):
        needs_references = parse_references(REFERENCES, text_of(REFERENCES))
    outcome = sequence.of_containers
    check_usage(pod)
    ends = OUTCOMES[outcome.last] if outcome.last in ("succeeded", "failed") else None
    code_text = text_of(EXIT_CODE)
    if code_text:
        code = parse_exit_code(EXIT_CODE, code_text)
    elif ends:
        code = ends.exit_code
    else:
        code = 0

    runs_for = length_of(RUNS_FOR)
    if runs_for is None and (
        ends or (ends_by_itself and (not text_of(OUTCOME) or sequence.last != outcome.last))
    ):
        runs_for = 0.0

    restarts = policy in (None, "Always") or (policy == "OnFailure" and code != 0)
    return Lifetime(
        "ready" if ends else outcome.last,
        runs_for if ends or outcome.last in ("ready", "not-ready") else None,
        _end(code),
        runs_for is not None and restarts and not ends,
        outcome.before,
        _end(code or 1),
        policy != "Never",
        length_of(READY_AFTER) or 0.0,
        length_of(STOPS_AFTER) or 0.0,
        _init_lifetime(pod, sequence, code),
        needs_references,
    )


def first_init_container(pod: Pod) -> str:
    """Return the name of the init container that outcomes speak of, the first one that is no
    sidecar; "" for none."""
    containers = pod["spec"].get("initContainers") or ()
    return next(
        (
            container["name"]
            for container in containers
            if not is_restartable_init_container(container)
        ),
        "",
    )


def _init_lifetime(pod: Pod, sequence: OutcomeSequence, code: int) -> Lifetime | None:
    """Return how the init container lives of which a sequence speaks; None where there is none."""
    if not sequence.names_init_container:
        return None
    if not first_init_container(pod):
        text = annotations_of(pod).get(OUTCOME)
        if text:
            raise AnnotationError(OUTCOME, text, NO_INIT_CONTAINER)
        return None  # the outcome is chosen for many pods, by a node or kubepy.yaml

    before, last = sequence.of_init_container
    crash = _end(code or 1)
    restarts = pod["spec"].get("restartPolicy") != "Never"
    if last == CRASH_LOOP:
        return Lifetime(CRASH_LOOP, None, before=before, crash=crash, crash_restarts=restarts)
    return Lifetime(
        "ready", 0.0, crash if last == "failed" else COMPLETED, False, before, crash, restarts
    )


def _waits_for_client(pod: Pod) -> bool:
    """Tell whether a pod is there for a client that attaches to it
    (``kubectl run -it --restart=Never``). Nobody can attach, so it ends as one whose client has
    gone."""
    containers = pod["spec"]["containers"]
    return any(container.get("stdinOnce") for container in containers)


def _annotations_in_force(pod: Pod, node: Node, rules: Rules, is_job_pod: bool) -> dict[str, str]:
    """Return the annotations about a pod's life: its own, else its node's, else those of
    ``kubepy.yaml``."""
    own = annotations_of(pod)
    of_node = annotations_of(node)
    in_force: dict[str, str] = {}
    if not own and not rules.defaults and not (of_node.keys() & OF_NODES):
        return in_force
    for name in PACE:
        text = own.get(name)
        if not text and (is_job_pod or name not in FOR_JOBS):
            name_on_node = POD_OUTCOME if name == OUTCOME else name
            text = of_node.get(name_on_node) or rules.defaults.get(name)
        if text:
            in_force[name] = text
    return in_force


def _end(code: int) -> PodOutcome:
    if code:
        return FAILED._replace(exit_code=code)
    return COMPLETED


class Moments:
    """The exact moments behind the timestamps of pods, which are whole seconds, so that nothing
    happens too early.

    Where a moment is not known, the second's begin counts.
    """

    MOST = 4  # of one pod: its start, the end of its last run, its deletion …

    def __init__(self) -> None:
        self._by_uid: dict[str, dict[str, datetime]] = {}  # by timestamp

    def note(self, pod: Pod, moment: datetime) -> None:
        """Remember a moment of a pod, unless it is a whole second."""
        if moment.microsecond:
            moments = self._by_uid.setdefault(uid_of(pod), {})
            moments[format_time(moment)] = moment
            for text in list(moments)[: -self.MOST]:
                del moments[text]

    def forget(self, pod: Pod) -> None:
        self._by_uid.pop(uid_of(pod), None)

    def is_known(self, pod: Pod, text: str) -> bool:
        return text in self._by_uid.get(uid_of(pod), {})

    def exact(self, pod: Pod, text: str) -> datetime:
        """Return the moment that a timestamp of the pod stands for."""
        moment = self._by_uid.get(uid_of(pod), {}).get(text)
        if moment is not None:
            return moment
        return parse_time(text)

    def remember(self) -> Any:
        """Return the moments as JSON, for the next process."""
        return {
            uid: [format_micro_time(moment) for moment in moments.values()]
            for uid, moments in sorted(self._by_uid.items())
        }

    def recall(self, memory: Any) -> None:
        """Take over the moments from the JSON of :meth:`remember`."""
        for uid, texts in memory.items():
            moments = map(parse_time, texts)
            self._by_uid.setdefault(uid, {format_time(moment): moment for moment in moments})
