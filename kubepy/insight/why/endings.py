"""The finding about a stuck object: of the scene of now, or of the end to which the controllers
bring it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.insight import Finding, Link
from kubepy.insight.why import workloads
from kubepy.insight.why.scene import Scene, value_at
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.insight.why.question import Question


def at_end(scene: Scene, key: Key, at_first: Finding | None) -> tuple[Finding | None, bool]:
    """Return the finding about an object that is stuck, and whether the cluster shows it now, not
    only in the end.

    :param scene: that of the end.
    :param at_first: the finding of now.
    """
    scene.is_stuck = True
    obj = scene.get(*key)
    found = scene.diagnose(obj) if obj is not None else None
    if found is None or at_first is None:
        return at_first or found, at_first is not None
    is_same = at_first.cause == found.cause
    # A Job that misses its deadline may do so because its pods do not run.
    is_root = found.cause == "job-deadline" and at_first.cause not in (
        *workloads.WEAK,
        "job-running",
    )
    # The way may have ended too early at first, at an object that had yet to be made or to fail.
    is_whole = len({link.key for link in at_first.chain}) >= len(
        {link.key for link in found.chain}
    ) and (len(at_first.remedies) >= len(found.remedies))
    return (at_first if is_root or (is_same and is_whole) else found), is_same or is_root


def as_of_now(scene: Scene, finding: Finding) -> Finding:
    """Mark the links that show what will be, and not what is, unless they say when that is."""

    def is_shown(link: Link) -> bool:
        obj = scene.get(*link.key)
        if link.field:
            return bool(value_at(obj, link.field) == link.value)
        return obj is not None or not link.value

    return finding._replace(
        chain=tuple(
            link if is_shown(link) or link.says_when else link._replace(text=f"{link.text} (later)")
            for link in finding.chain
        )
    )


def finding_between(question: Question, end: LocalCluster) -> Finding | None:
    """Return the finding about the object of a question that never gets there.

    :param end: the cluster of the question as it is in the end.
    """
    scene = question.scene()
    scene.is_stuck = True
    obj = scene.get(*question.key)
    at_first = scene.diagnose(obj) if obj is not None else None
    return at_end(question.scene(end), question.key, at_first)[0]
