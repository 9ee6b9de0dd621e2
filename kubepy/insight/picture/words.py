"""The words of a picture: what a revision brought, and what a change was.

What a revision brought comes from the templates that the cluster still has, or else from the steps:
a change of images that is followed by a revision that nobody has seen before brought that revision.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from kubepy.insight import Rollout, Step, Timeline
from kubepy.insight.picture import PODS, TopControllers
from kubepy.insight.revisions import REVISION_RESOURCES, short_image
from kubepy.insight.steps import CREATED, OUTSIDE
from kubepy.storage import Key

CHANGED = "changed"
IMAGES = re.compile(r"(\S+) to ([^\s,]+)")


class Words:
    """What to call the revisions and the changes of a timeline.

    :ivar labels: what each revision of a workload brought, "" where nothing says so.
    """

    def __init__(self, timeline: Timeline, owners: TopControllers) -> None:
        self._rollouts = {
            (rollout.workload, rollout.revision): rollout for rollout in timeline.rollouts
        }
        self._led_to = changes_and_revisions(timeline, owners)
        self.labels = labels_of(timeline.rollouts)
        if any(
            (timeline.steps[number].key, revision) not in self.labels
            for number, revision in self._led_to.items()
        ):
            self.labels = labels_from_steps(timeline, owners, self._led_to) | self.labels

    def of_change(self, number: int, step: Step) -> str:
        """Say in words what a step of a workload was."""
        if step.action != CHANGED:
            return f"{step.action} {step.reason}".rstrip()
        reason = step.reason.removesuffix(OUTSIDE).removesuffix(", ")
        reason = IMAGES.sub(
            lambda images: f"{short_image(images[1])} to {short_image(images[2])}", reason
        )
        rollout = self._rollouts.get((step.key, self._led_to.get(number, "")))
        if rollout is not None and rollout.change:
            change = rollout.change
            reason = re.sub(r"\btemplate\b", lambda _: change, reason)
        words = reason if " to " in reason else f"{reason} changed".strip()
        return f"{words}, {OUTSIDE}" if step.reason.endswith(OUTSIDE) else words


def changes_and_revisions(timeline: Timeline, owners: TopControllers) -> dict[int, str]:
    """Return the revision that each change of a workload led to, by the number of its step."""
    waiting = defaultdict[Key, list[int]](list)
    seen = {(owners.top(pod), pod.revision) for pod in timeline.present}
    led_to: dict[int, str] = {}
    for number, step in enumerate(timeline.steps):
        if step.action == CHANGED and step.key.resource not in (PODS, *REVISION_RESOURCES):
            waiting[step.key].append(number)
        elif step.revision:
            workload = owners.top(step)
            is_new = step.action == CREATED and (workload, step.revision) not in seen
            if is_new or (step.key.resource in REVISION_RESOURCES and brings_back(step)):
                led_to.update(dict.fromkeys(waiting.pop(workload, ()), step.revision))
            seen.add((workload, step.revision))
    return led_to


def brings_back(step: Step) -> bool:
    """Tell whether a step of a revision makes it the newest one again."""
    return step.action == CREATED or step.reason.startswith(("0 to ", "revision "))


def labels_from_steps(
    timeline: Timeline, owners: TopControllers, led_to: dict[int, str]
) -> dict[tuple[Key, str], str]:
    """Return what revisions brought as far as the changes of images say so."""
    labels: dict[tuple[Key, str], str] = {}
    newest = newest_at_first(timeline, owners)
    for number, revision in led_to.items():
        step = timeline.steps[number]
        images = [tuple(map(short_image, pair)) for pair in IMAGES.findall(step.reason)]
        if images:
            before, after = (", ".join(names) for names in zip(*images, strict=True))
            labels.setdefault((step.key, newest.get(step.key, "")), before)
            labels.setdefault((step.key, revision), after)
        newest[step.key] = revision
    return labels


def newest_at_first(timeline: Timeline, owners: TopControllers) -> dict[Key, str]:
    """Return the revision of most pods that each workload has at the beginning."""
    pods = defaultdict[Key, Counter[str]](Counter)
    seen = set[Key]()
    for pod in timeline.present:
        seen.add(pod.key)
        pods[owners.top(pod)][pod.revision] += 1
    for step in timeline.steps:
        if step.key.resource == PODS and step.key not in seen:
            seen.add(step.key)
            if step.action != CREATED:
                pods[owners.top(step)][step.revision] += 1
    return {workload: revisions.most_common(1)[0][0] for workload, revisions in pods.items()}


def labels_of(rollouts: Iterable[Rollout]) -> dict[tuple[Key, str], str]:
    """Return a label for each revision: its images, and what else changed where another revision
    of the workload has the same images."""
    by_workload = defaultdict[Key, list[Rollout]](list)
    for rollout in rollouts:
        by_workload[rollout.workload].append(rollout)
    return {
        (rollout.workload, rollout.revision): label_of(rollout, own)
        for own in by_workload.values()
        for rollout in own
    }


def label_of(rollout: Rollout, of_workload: Sequence[Rollout]) -> str:
    """Return the label of a revision among all of its workload."""
    is_alone = sum(other.images == rollout.images for other in of_workload) == 1
    if is_alone or not rollout.change:
        return rollout.images
    return f"{rollout.images}, {rollout.change}"
