"""Sets the replicas of scale targets by the metrics of their pods, between a lowest and a highest
number.

A sync reads the target's Scale, asks :mod:`metrics` how many replicas each metric calls for
(:mod:`replica_calculator` has the arithmetic), has :mod:`normalization` make a size of the highest
answer, and writes the Scale and the autoscaler's status. This module alone writes. Upstream:
``pkg/controller/podautoscaler``.

An autoscaler is looked at every 15 seconds. Who does not watch time pass need not wait for the
first time, nor for the first one after a change of its spec. A round repeats for ever if the one
before found nothing that will change by itself, and nothing that it read has changed since. Where
it has not written anything either, it is not run before something changes: it would do as little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kubepy.api.clock import format_time
from kubepy.api.errors import Status
from kubepy.api.meta import AnyObject, Object, namespace_of
from kubepy.api.scheme import Resource
from kubepy.api.selectors import LabelSelector, SelectorError, parse_labels
from kubepy.api.values.goformat import quote
from kubepy.api.values.quantity import Quantity
from kubepy.controllers.podautoscaler.metrics import (
    MetricFailure,
    MetricProposal,
    MetricTarget,
    compute_metric,
)
from kubepy.controllers.podautoscaler.normalization import (
    ReplicaLimits,
    ScalingDecision,
    ScalingHistory,
    normalize,
)
from kubepy.controllers.podautoscaler.replica_calculator import Tolerances, is_usage_changing
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import PODS, ResourceClient, TypedResource
from kubepy.runtime.reconcile import (
    EVERY_RESOURCE,
    Context,
    Handler,
    Key,
    UnfinishedSync,
    WatchEvent,
)

if TYPE_CHECKING:
    from kubepy.api.typed import HorizontalPodAutoscaler, Pod

AUTOSCALERS: TypedResource[HorizontalPodAutoscaler] = TypedResource(
    "horizontalpodautoscalers.autoscaling"
)
SYNC_PERIOD = 15.0  # seconds: --horizontal-pod-autoscaler-sync-period
TOLERANCE = 0.1
NO_SCALE = "the HPA controller was unable to get the target's current scale: {}"


class ReconcileError(UnfinishedSync):
    """An autoscaler can do nothing now; its status says why."""


class Scaled(NamedTuple):
    """The target of an autoscaler: its resource, and its Scale."""

    resource: Resource
    scale: Object

    @property
    def replicas(self) -> int:
        return int(self.scale["spec"].get("replicas", 0))


class Wanted(NamedTuple):
    """The size that a target is to have. ``reason``: why it is another one than now, if it is."""

    replicas: int
    reason: str = ""


class HorizontalController:
    """Reconciles HorizontalPodAutoscalers."""

    name = "horizontal-pod-autoscaler-controller"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._client = context.client
        self._clock = context.clock
        self._scheme = context.scheme
        self._autoscalers = context.informers.lister(AUTOSCALERS)
        self._pods = context.informers.lister(PODS)
        self._autoscaler_client = ResourceClient(context.client, AUTOSCALERS)
        self._recorder = Recorder(context.client, "horizontal-pod-autoscaler")
        self._histories: dict[tuple[str, str], ScalingHistory] = {}  # by namespace and name

    def remember(self) -> Any:
        return [[*key, *history.to_json()] for key, history in sorted(self._histories.items())]

    def recall(self, memory: Any) -> None:
        for namespace, name, *history in memory:
            self._histories.setdefault((namespace, name), ScalingHistory.from_json(history))

    def handlers(self) -> Mapping[str, Handler]:
        return {AUTOSCALERS: self._autoscaler_changed, EVERY_RESOURCE: self._object_changed}

    def _autoscaler_changed(self, event: WatchEvent) -> None:
        if event.new is None:
            self.queue.cancel(event.key)
            history = self._histories.pop((event.key.namespace, event.key.name), None)
            if history and history.selector:
                self._selector_changed(event.key.namespace, history.selector)
        elif event.old is None or event.old["spec"] != event.new["spec"]:
            self.queue.add_after(event.key, SYNC_PERIOD, skippable=True)

    def _object_changed(self, event: WatchEvent) -> None:
        """Let the next rounds count that will find another pod or target than the last ones."""
        if event.key.resource == PODS:
            pods = [cast("Pod", pod) for pod in (event.old, event.new) if pod]
            self._expect_rounds(
                event.key.namespace, lambda autoscaler, history: history.selects_any(pods)
            )
            return

        def is_target(autoscaler: HorizontalPodAutoscaler, _: ScalingHistory) -> bool:
            reference = autoscaler["spec"]["scaleTargetRef"]
            if reference["name"] != event.key.name:
                return False
            resource = self._resource_of(reference)
            if resource is None:
                return False
            return resource.key == event.key.resource

        self._expect_rounds(event.key.namespace, is_target)

    def _selector_changed(self, namespace: str, selector: str) -> None:
        """Let the next rounds count of autoscalers with pods that another one has, or had, as
        well."""
        parsed = parse_labels(selector)
        pods = [
            pod
            for pod in self._pods.list(namespace)
            if parsed.matches(pod["metadata"].get("labels"))
        ]
        self._expect_rounds(namespace, lambda autoscaler, history: history.selects_any(pods))

    def _expect_rounds(
        self, namespace: str, reads: Callable[[HorizontalPodAutoscaler, ScalingHistory], bool]
    ) -> None:
        """Let the next rounds in a namespace not count as repeating if the autoscalers read what
        has changed."""
        for (place, name), history in self._histories.items():
            if place != namespace or not self.queue.is_repeating(
                key := Key(AUTOSCALERS, namespace, name)
            ):
                continue
            autoscaler = self._autoscalers.get(namespace, name)
            if autoscaler is not None and reads(autoscaler, history):
                self.queue.add_after(key, SYNC_PERIOD)

    def sync(self, key: Key) -> None:
        autoscaler = self._autoscalers.get(key.namespace, key.name)
        if autoscaler is None:
            return
        history = self._histories.setdefault((key.namespace, key.name), ScalingHistory())
        history.end_rest(self._clock.now(), SYNC_PERIOD)
        self._count_dropped(autoscaler, history)
        reconciliation = Reconciliation(autoscaler, history, self._clock.now(), self._recorder)
        try:
            self._reconcile(reconciliation)
        except ReconcileError:
            # its status and events have the reason; upstream logs it, and tries again after the
            # period
            pass
        finally:
            status = reconciliation.status
            if status != (autoscaler.get("status") or {}):
                self._autoscaler_client.update_status(autoscaler, status)
                reconciliation.is_silent = False
            periods = self._periods_of_rest(reconciliation)
            if periods > 1:
                self.queue.rest(key, SYNC_PERIOD, periods)
                history.begin_rest(reconciliation.now, reconciliation.warnings)
            else:
                self.queue.add_after(key, SYNC_PERIOD, repeating=reconciliation.is_steady)

    def _periods_of_rest(self, run: Reconciliation) -> float:
        """Return after how many periods the next round would find, write or say something else than
        this one."""
        if not run.is_steady or not run.is_silent:
            return 1
        if not run.warnings:
            return math.inf
        return 1 + self._recorder.silent_rounds(run.autoscaler, "Warning", SYNC_PERIOD)

    def _count_dropped(self, autoscaler: HorizontalPodAutoscaler, history: ScalingHistory) -> None:
        """Count the events of the rounds that were left out since the last one."""
        dropped = history.dropped
        history.dropped = None
        if dropped is None:
            return
        passed = (self._clock.now() - dropped.since).total_seconds()
        left_out = math.ceil(passed / SYNC_PERIOD) - 1
        if left_out > 0:
            self._recorder.drop(autoscaler, "Warning", dropped.events, left_out, SYNC_PERIOD)

    def _reconcile(self, run: Reconciliation) -> None:
        """Bring the target to the size that it is to have (``reconcileAutoscaler``). Raises
        ReconcileError."""
        target = self._scale_target(run)
        run.set_condition(
            "AbleToScale",
            "True",
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        )
        run.history.record_initial_recommendation(target.replicas, run.now)
        wanted = self._wanted(run, target)
        if wanted.replicas != target.replicas:
            self._rescale(run, target, wanted)
        run.set_sizes(target.replicas, wanted.replicas)

    def _scale_target(self, run: Reconciliation) -> Scaled:
        """Read the Scale of the target. Raises ReconcileError."""
        reference = run.spec["scaleTargetRef"]
        resource = self._resource_of(reference)
        if resource is None:
            raise run.failed_get_scale(
                f"no matches for kind {quote(reference['kind'])} in group "
                f"{quote(group_of(reference))}"
            )
        try:
            scale = self._client.get(
                resource.key, reference["name"], namespace=run.namespace, subresource="scale"
            )
        except Status as error:
            raise run.failed_get_scale(str(error)) from None
        return Scaled(resource, scale)

    def _resource_of(self, reference: AnyObject) -> Resource | None:
        wanted = group_of(reference), reference["kind"]
        return next((one for one in self._scheme if (one.group, one.kind) == wanted), None)

    def _wanted(self, run: Reconciliation, target: Scaled) -> Wanted:
        """Decide on the size of the target. Raises ReconcileError."""
        lowest = run.spec.get("minReplicas", 1)
        highest = run.spec["maxReplicas"]
        if target.replicas == 0:
            run.set_condition(
                "ScalingActive",
                "False",
                "ScalingDisabled",
                "scaling is disabled since the replica count of the target is zero",
            )
            run.metrics = None
            return Wanted(0)

        if target.replicas > highest:
            return Wanted(highest, "Current number of replicas above Spec.MaxReplicas")
        if target.replicas < lowest:
            return Wanted(lowest, "Current number of replicas below Spec.MinReplicas")
        proposal = self._compute_replicas(run, target)
        if proposal.replicas > target.replicas:
            reason = f"{proposal.name} above target"
        else:
            reason = "All metrics below target"

        limits = ReplicaLimits(target.replicas, proposal.replicas, lowest, highest)
        decision = normalize(limits, run.spec.get("behavior"), run.history, run.now)
        run.set_decision(decision)
        return Wanted(decision.replicas, "" if proposal.replicas == target.replicas else reason)

    def _compute_replicas(self, run: Reconciliation, target: Scaled) -> MetricProposal:
        """Return the highest answer of all metrics (``computeReplicasForMetrics``). Raises
        ReconcileError."""
        specs = run.spec.get("metrics") or []
        try:
            selector = self._selector(run, target)
        except ReconcileError as error:
            run.is_silent = False
            raise run.failed_compute(str(error), target.replicas, None) from None

        pods = [
            pod
            for pod in self._pods.list(run.namespace)
            if selector.matches(pod["metadata"].get("labels"))
        ]
        run.is_steady = not any(is_usage_changing(pod, run.now) for pod in pods)
        about = MetricTarget(
            run.namespace,
            target.replicas,
            pods,
            run.now,
            tolerances_for(run.spec),
            self._client.known_usage(),
        )
        statuses: list[Object] = []
        proposals: list[MetricProposal] = []
        failures: list[MetricFailure] = []
        for spec in specs:
            try:
                proposals.append(compute_metric(spec, about))
                statuses.append(proposals[-1].status)
            except MetricFailure as failure:
                run.warn_again(failure.reason, failure.cause)
                failures.append(failure)
                statuses.append({"type": ""})

        run.metrics = statuses
        highest = max(proposals, key=lambda proposal: proposal.replicas, default=None)
        if highest is None or (failures and highest.replicas < target.replicas):
            first = failures[0]
            run.set_condition(
                "ScalingActive",
                "False",
                first.reason,
                f"the HPA was unable to compute the replica count: {first.cause}",
            )
            invalid = (
                f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first "
                f"error is: {first}"
            )
            raise run.failed_compute(invalid, target.replicas, statuses)

        run.set_condition(
            "ScalingActive",
            "True",
            "ValidMetricFound",
            f"the HPA was able to successfully calculate a replica count from {highest.name}",
        )
        return highest

    def _selector(self, run: Reconciliation, target: Scaled) -> LabelSelector:
        """Return the selector of the target's pods (``validateAndParseSelector``). Raises
        ReconcileError."""
        text = target.scale["status"].get("selector", "")
        if not text:
            raise run.invalid_selector(
                "SelectorRequired",
                "selector is required",
                "the HPA target's scale is missing a selector",
            )

        try:
            selector = parse_labels(text)
        except SelectorError as error:
            message = (
                f"couldn't convert selector into a corresponding internal selector object: {error}"
            )
            raise run.invalid_selector("InvalidSelector", message, message) from None

        if run.history.selector != text:
            run.history.selector = text
            self._selector_changed(run.namespace, text)
        pods = [
            pod
            for pod in self._pods.list(run.namespace)
            if selector.matches(pod["metadata"].get("labels"))
        ]
        names = [
            f"{namespace}/{name}"
            for (namespace, name), history in sorted(self._histories.items())
            if namespace == run.namespace and history.selects_any(pods)
        ]
        if len(names) > 1:
            message = (
                f"pods by selector {text} are controlled by multiple HPAs: [{' '.join(names)}]"
            )
            raise run.invalid_selector("AmbiguousSelector", message, message, "AmbiguousSelector")

        return selector

    def _rescale(self, run: Reconciliation, target: Scaled, wanted: Wanted) -> None:
        """Set the size of the target. Raises ReconcileError."""
        scale = {**target.scale, "spec": {"replicas": wanted.replicas} if wanted.replicas else {}}
        told = f"New size: {wanted.replicas}; reason: {wanted.reason}"
        try:
            self._client.update(
                target.resource.key, scale, namespace=run.namespace, subresource="scale"
            )
        except Status as error:
            run.warn("FailedRescale", f"{told}; error: {error}")
            run.set_condition(
                "AbleToScale",
                "False",
                "FailedUpdateScale",
                f"the HPA controller was unable to update the target scale: {error}",
            )
            run.set_sizes(target.replicas, None)
            raise ReconcileError(str(error)) from None

        run.set_condition(
            "AbleToScale",
            "True",
            "SucceededRescale",
            f"the HPA controller was able to update the target scale to {wanted.replicas}",
        )
        self._recorder.event(run.autoscaler, "Normal", "SuccessfulRescale", told)
        run.history.store_scale_event(
            run.spec.get("behavior"), target.replicas, wanted.replicas, run.now
        )
        run.status["lastScaleTime"] = format_time(run.now)
        run.is_steady = False


class Reconciliation:
    """One look at an autoscaler: its object, what it remembers, and the status that it is getting.

    :ivar metrics: the ``currentMetrics`` of this look.
    :ivar is_steady: the next looks will find the same unless something changes: no time is waited
        for.
    :ivar is_silent: nothing was written, and no event told but ``warnings``.
    :ivar warnings: the reasons and messages of warnings that come in each round until something
        changes that this one has read.
    """

    def __init__(
        self,
        autoscaler: HorizontalPodAutoscaler,
        history: ScalingHistory,
        now: datetime,
        recorder: Recorder,
    ) -> None:
        self.autoscaler = autoscaler
        self.history = history
        self.now = now
        self.metrics: list[Object] | None = None
        self.is_steady = self.is_silent = True
        self.warnings: list[tuple[str, str]] = []
        self.status: Object = {**cast(Object, autoscaler.get("status") or {})}
        self._recorder = recorder

    @property
    def spec(self) -> Object:
        return cast(Object, self.autoscaler["spec"])

    @property
    def namespace(self) -> str:
        return namespace_of(self.autoscaler)

    def set_condition(self, kind: str, status: str, reason: str, message: str) -> None:
        """Set a condition in its place in the list (``setConditionInList``)."""
        conditions: list[Object] = list(self.status.get("conditions") or ())
        index = next(
            (index for index, one in enumerate(conditions) if one.get("type") == kind),
            len(conditions),
        )
        before = conditions[index] if index < len(conditions) else {}
        since = before.get("lastTransitionTime") if before.get("status") == status else None
        conditions[index : index + 1] = [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": since or format_time(self.now),
            }
        ]
        self.status["conditions"] = conditions

    def set_decision(self, decision: ScalingDecision) -> None:
        self.is_steady &= decision.is_steady
        self.set_condition("AbleToScale", "True", *decision.able)
        self.set_condition("ScalingLimited", str(decision.is_limited), *decision.limited)

    def set_sizes(self, current: int, desired: int | None) -> None:
        """Write the status anew with the conditions and the time of the last change
        (``setStatus``)."""
        kept: Object = {
            key: self.status[key] for key in ("conditions", "lastScaleTime") if key in self.status
        }
        counts: Object = {"currentReplicas": current} if current else {}
        self.status = {
            **counts,
            "currentMetrics": self.metrics,
            **kept,
            "desiredReplicas": self.status.get("desiredReplicas", 0)
            if desired is None
            else desired,
        }

    def warn(self, reason: str, message: str) -> None:
        self.is_silent = False
        self._recorder.event(self.autoscaler, "Warning", reason, message)

    def warn_again(self, reason: str, message: str) -> None:
        """Warn of what each further round will warn of, until something changes."""
        self.warnings.append((reason, message))
        self._recorder.event(self.autoscaler, "Warning", reason, message)

    def failed_get_scale(self, message: str) -> ReconcileError:
        self.warn("FailedGetScale", message)
        self.set_condition("AbleToScale", "False", "FailedGetScale", NO_SCALE.format(message))
        return ReconcileError(message)

    def invalid_selector(
        self, event: str, message: str, condition: str, reason: str = "InvalidSelector"
    ) -> ReconcileError:
        self.warn(event, message)
        self.set_condition("ScalingActive", "False", reason, condition)
        return ReconcileError(message)

    def failed_compute(
        self, message: str, current: int, metrics: list[Object] | None
    ) -> ReconcileError:
        self.metrics = metrics
        self.set_sizes(current, None)
        self.warn_again("FailedComputeMetricsReplicas", message)
        return ReconcileError(message)


def tolerances_for(spec: Object) -> Tolerances:
    rules = (
        ((spec.get("behavior") or {}).get(direction) or {}).get("tolerance")
        for direction in ("scaleDown", "scaleUp")
    )
    return Tolerances(
        *(TOLERANCE if text is None else Quantity.parse(text).nanos / 1e9 for text in rules)
    )


def group_of(reference: AnyObject) -> str:
    """Return the API group of a reference's apiVersion."""
    return str(reference.get("apiVersion", "")).rpartition("/")[0]
