"""Pods of the current template, recognized by hash and by template generation."""

from __future__ import annotations

import pytest

from kubepy.api.meta import Object
from kubepy.controllers.daemonset.pods import (
    GENERATION_ANNOTATION,
    is_generation_reused,
    read_daemon_pod,
    template_generation,
)
from tests.controllers.daemonset_objects import HASH, OLD_HASH, daemon_set, pod, state_of


def made(obj: Object, time: str, uid: str, generation: int) -> Object:
    metadata = {
        **obj.get("metadata", {}),
        "creationTimestamp": time,
        "uid": uid,
        "annotations": {GENERATION_ANNOTATION: str(generation)},
    }
    return {**obj, "metadata": metadata}


OWNER = made(daemon_set(), "2026-11-20T10:00:00Z", "b", 2)


@pytest.mark.parametrize(
    ("time", "uid", "generation", "reused"),
    [
        pytest.param(
            "2026-11-20T10:00:01Z", "a", 2, True, id="another template under the same number"
        ),
        pytest.param("2026-11-20T10:00:00Z", "c", 2, True, id="in the second of its creation"),
        pytest.param("2026-11-20T10:00:01Z", "a", 1, False, id="a number of its own"),
        pytest.param("2026-11-20T09:59:59Z", "c", 2, False, id="adopted from a DaemonSet before"),
        pytest.param(
            "2026-11-20T10:00:00Z", "a", 2, False, id="adopted in the second of its creation"
        ),
    ],
)
def test_generation_is_reused_by_old_revision_of_its_own(
    time: str, uid: str, generation: int, reused: bool
) -> None:
    assert is_generation_reused(OWNER, [made({}, time, uid, generation)]) is reused


def test_generation_without_old_revisions_is_not_reused() -> None:
    assert not is_generation_reused(OWNER, [])


def test_pod_of_reused_generation_is_judged_by_its_hash() -> None:
    state = state_of(OWNER, [], {})
    old, new = (pod("a", "n-1", hash_=hash_) for hash_ in (OLD_HASH, HASH))
    for one in (old, new):
        one["metadata"]["labels"]["pod-template-generation"] = "2"
    pods = [read_daemon_pod(one) for one in (old, new)]
    criteria = state.criteria
    assert criteria.template_generation == template_generation(OWNER)
    assert [criteria.is_updated(one) for one in pods] == [True, True]
    of_hash_alone = criteria._replace(template_generation=None)
    assert [of_hash_alone.is_updated(one) for one in pods] == [False, True]
