"""From the replicas that metrics call for to those that an autoscaler sets: stabilization, limits
and rates.

Upstream: ``normalizeDesiredReplicas`` and ``normalizeDesiredReplicasWithBehaviors`` of
``horizontal.go``. Nothing here writes; a :class:`ScalingHistory` is what an autoscaler remembers
from sync to sync.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.clock import format_micro_time, parse_time
from kubepy.api.meta import AnyObject
from kubepy.api.selectors import parse_labels

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

DOWNSCALE_STABILIZATION = timedelta(minutes=5)
SCALE_UP_FACTOR, SCALE_UP_MINIMUM = 2, 4  # the rate without ``behavior``
MOST, LEAST = 2**31 - 1, -(2**31)


class SizeChange(NamedTuple):
    """A number of replicas with its time: one that was recommended, or one that was added or
    removed."""

    replicas: int
    time: datetime


class DroppedEvents(NamedTuple):
    """The warnings of a round, by reason and message, that come in each further one as well.

    :ivar since: the time of that round.
    """

    since: datetime
    events: list[tuple[str, str]]


class ScalingHistory:
    """What an autoscaler has recommended and done lately, and the selector of its target's pods."""

    def __init__(self) -> None:
        self.recommendations: list[SizeChange] = []
        self.scale_ups: list[SizeChange] = []
        self.scale_downs: list[SizeChange] = []
        self.selector: str | None = None
        self.rests = False  # rounds are left out that would find what the last one has found
        self.dropped: DroppedEvents | None = None  # what they would have told, and nobody heard

    def to_json(self) -> Any:
        changes = (
            [[change.replicas, format_micro_time(change.time)] for change in kept]
            for kept in (self.recommendations, self.scale_ups, self.scale_downs)
        )
        dropped = self.dropped and [format_micro_time(self.dropped.since), self.dropped.events]
        return [*changes, self.selector, self.rests, dropped]

    @classmethod
    def from_json(cls, kept: Any) -> ScalingHistory:
        history = cls()
        *changes, history.selector = kept[:4]
        of_rest = kept[4:]  # an earlier version kept less of it
        history.rests = bool(of_rest) and of_rest[0]
        dropped = of_rest[1] if len(of_rest) > 1 else None
        if dropped:
            since, events = dropped
            history.dropped = DroppedEvents(
                parse_time(since), [(reason, message) for reason, message in events]
            )
        history.recommendations, history.scale_ups, history.scale_downs = (
            [SizeChange(replicas, parse_time(time)) for replicas, time in entries]
            for entries in changes
        )
        return history

    def selects_any(self, pods: Sequence[Pod]) -> bool:
        """Return whether the selector of the target's pods, once it is known, matches one of
        these."""
        if not self.selector:
            return False
        parsed = parse_labels(self.selector)
        return any(parsed.matches(pod["metadata"].get("labels")) for pod in pods)

    def record_initial_recommendation(self, replicas: int, now: datetime) -> None:
        if not self.recommendations:
            self.recommendations = [SizeChange(replicas, now)]

    def begin_rest(self, now: datetime, warnings: list[tuple[str, str]]) -> None:
        """Leave out the rounds that would recommend, and warn of, the same as the one of now."""
        self.rests = bool(self.recommendations) and self.recommendations[-1].time == now
        if warnings:
            self.dropped = DroppedEvents(now, warnings)

    def end_rest(self, now: datetime, period: float) -> None:
        """Record what the last of the rounds that were left out would have recommended: the same as
        the one before.

        ``period``: seconds between two rounds.
        """
        if self.rests and self.recommendations:
            replicas, time = self.recommendations[-1]
            left_out = math.ceil((now - time).total_seconds() / period) - 1
            if left_out > 0:
                self.recommendations.append(
                    SizeChange(replicas, time + timedelta(seconds=left_out * period))
                )
        self.rests = False

    def recommend(self, replicas: int, now: datetime, cutoff: datetime) -> None:
        """Record a recommendation, and forget those before ``cutoff``."""
        self.recommendations = [
            *(change for change in self.recommendations if change.time >= cutoff),
            SizeChange(replicas, now),
        ]

    def store_scale_event(
        self, behavior: AnyObject | None, before: int, after: int, now: datetime
    ) -> None:
        """Record a change of the target's size, for the rates of ``behavior``; without one nothing
        needs it."""
        if behavior is None:
            return
        rules = behavior["scaleUp" if after > before else "scaleDown"]
        longest = max(
            (policy["periodSeconds"] for policy in rules.get("policies") or ()), default=0
        )
        events = self.scale_ups if after > before else self.scale_downs
        events[:] = [
            *(event for event in events if event.time >= now - timedelta(seconds=longest)),
            SizeChange(abs(after - before), now),
        ]


class ReplicaLimits(NamedTuple):
    """The size of a target now, the size that its metrics call for, and those between which it must
    be."""

    current: int
    desired: int
    lowest: int
    highest: int


class Verdict(NamedTuple):
    """A reason and a message for a condition."""

    reason: str
    message: str


class ScalingDecision(NamedTuple):
    """The size to set, and what the conditions AbleToScale and ScalingLimited say about it."""

    replicas: int
    able: Verdict
    limited: Verdict
    is_limited: bool

    @property
    def is_steady(self) -> bool:
        """Tell whether neither a stabilization window nor a rate holds the size back for a time."""
        if self.able is not READY:
            return False
        return self.limited not in (UP_LIMIT, DOWN_LIMIT)


READY = Verdict("ReadyForNewScale", "recommended size matches current size")
WITHIN_RANGE = Verdict("DesiredWithinRange", "the desired count is within the acceptable range")
UP_STABILIZED = Verdict(
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
DOWN_STABILIZED = Verdict(
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the "
    "highest recent recommendation",
)
TOO_FEW = Verdict(
    "TooFewReplicas", "the desired replica count is less than the minimum replica count"
)
TOO_MANY = Verdict(
    "TooManyReplicas", "the desired replica count is more than the maximum replica count"
)
UP_LIMIT = Verdict(
    "ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"
)
DOWN_LIMIT = Verdict(
    "ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"
)


def normalize(
    limits: ReplicaLimits, behavior: AnyObject | None, history: ScalingHistory, now: datetime
) -> ScalingDecision:
    """Decide on the size to set, and record the recommendation."""
    if behavior is None:
        stabilized, able = stabilize_recommendation(limits, history, now)
        replicas, limited = convert_desired_replicas_with_rules(limits._replace(desired=stabilized))
    else:
        stabilized, able = stabilize_recommendation_with_behaviors(limits, behavior, history, now)
        limits_now = limits._replace(desired=stabilized)
        replicas, limited = convert_desired_replicas_with_behavior_rate(
            limits_now, behavior, history, now
        )
    return ScalingDecision(
        replicas, READY if stabilized == limits.desired else able, limited, replicas != stabilized
    )


# --- without behavior -----------------------------------------------------------------------------


def stabilize_recommendation(
    limits: ReplicaLimits, history: ScalingHistory, now: datetime
) -> tuple[int, Verdict]:
    """Return the highest recommendation of the last five minutes."""
    cutoff = now - DOWNSCALE_STABILIZATION
    recent = [change.replicas for change in history.recommendations if change.time >= cutoff]
    history.recommend(limits.desired, now, cutoff)
    return max([limits.desired, *recent]), DOWN_STABILIZED


def convert_desired_replicas_with_rules(limits: ReplicaLimits) -> tuple[int, Verdict]:
    """Bring a size within the limits, and let it grow to the double at most."""
    rate = max(SCALE_UP_FACTOR * limits.current, SCALE_UP_MINIMUM)
    highest, verdict = (rate, UP_LIMIT) if limits.highest > rate else (limits.highest, TOO_MANY)
    if limits.desired < limits.lowest:
        return limits.lowest, TOO_FEW
    if limits.desired > highest:
        return (highest, verdict)
    return (limits.desired, WITHIN_RANGE)


# --- with behavior --------------------------------------------------------------------------------


def stabilize_recommendation_with_behaviors(
    limits: ReplicaLimits, behavior: AnyObject, history: ScalingHistory, now: datetime
) -> tuple[int, Verdict]:
    """Bring the present size between the recommendations of both windows."""
    down_window = behavior["scaleDown"].get("stabilizationWindowSeconds")
    up_cutoff = now - timedelta(seconds=behavior["scaleUp"].get("stabilizationWindowSeconds") or 0)
    down_cutoff = now - (
        DOWNSCALE_STABILIZATION if down_window is None else timedelta(seconds=down_window)
    )
    up = min(
        [
            limits.desired,
            *(change.replicas for change in history.recommendations if change.time > up_cutoff),
        ]
    )
    down = max(
        [
            limits.desired,
            *(change.replicas for change in history.recommendations if change.time > down_cutoff),
        ]
    )
    history.recommend(limits.desired, now, min(up_cutoff, down_cutoff))
    verdict = UP_STABILIZED if limits.desired >= limits.current else DOWN_STABILIZED
    return min(max(limits.current, up), down), verdict


def convert_desired_replicas_with_behavior_rate(
    limits: ReplicaLimits, behavior: AnyObject, history: ScalingHistory, now: datetime
) -> tuple[int, Verdict]:
    """Bring a size within the limits and the rates of the policies."""
    if limits.desired > limits.current:
        allowed = calculate_scale_limit(
            limits.current, behavior["scaleUp"], history, now, grows=True
        )
        rate = max(allowed, limits.current)
        highest, verdict = (rate, UP_LIMIT) if limits.highest > rate else (limits.highest, TOO_MANY)
        if limits.desired > highest:
            return highest, verdict
    elif limits.desired < limits.current:
        allowed = calculate_scale_limit(
            limits.current, behavior["scaleDown"], history, now, grows=False
        )
        rate = min(allowed, limits.current)
        lowest, verdict = (rate, DOWN_LIMIT) if limits.lowest < rate else (limits.lowest, TOO_FEW)
        if limits.desired < lowest:
            return lowest, verdict

    return limits.desired, WITHIN_RANGE


def calculate_scale_limit(
    current: int, rules: Mapping[str, Any], history: ScalingHistory, now: datetime, *, grows: bool
) -> int:
    """Return the size that the policies of one direction allow
    (``calculateScale{Up,Down}Limit…``)."""
    select = rules.get("selectPolicy", "Max")
    if select == "Disabled":
        return current
    sizes = []
    for policy in rules.get("policies") or ():
        cutoff = now - timedelta(seconds=policy["periodSeconds"])
        start = (
            current
            - get_replicas_change_since(cutoff, history.scale_ups)
            + get_replicas_change_since(cutoff, history.scale_downs)
        )
        step = policy["value"] if grows else -policy["value"]
        if policy["type"] == "Pods":
            sizes.append(start + step)
        else:
            size = start * (1 + step / 100)
            sizes.append(min(math.ceil(size), MOST) if grows else int(size))

    # The least change is the lowest size upwards, and the highest one downwards.
    if grows == (select == "Min"):
        return min(sizes, default=MOST)
    return max(sizes, default=LEAST)


def get_replicas_change_since(cutoff: datetime, events: Sequence[SizeChange]) -> int:
    return sum(event.replicas for event in events if event.time > cutoff)
