"""The revisions of StatefulSets: numbers, limits, collisions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubepy.cluster.meta import labels_of, name_of
from tests.controllers.statefulset_objects import REVISIONS, SETS, StatefulLab, stateful_set


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[StatefulLab]:
    made = StatefulLab(tmp_path / "state")
    yield made
    assert made.cluster.store.check() == []
    made.cluster.close()


def numbers(lab: StatefulLab) -> dict[str, int]:
    return {one["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: one["revision"]
            for one in lab.client.list(REVISIONS, namespace="default").items}


def test_going_back_gives_the_old_revision_the_newest_number(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=1, outcome="ready"))
    lab.run()
    for image in ("db:2", "db:3", "db:1"):
        lab.retemplate(image)
        lab.run()
    assert numbers(lab) == {"db:2": 2, "db:3": 3, "db:1": 4}


def test_history_is_cut_to_its_limit_but_keeps_what_a_pod_uses(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=2, outcome="ready", revisionHistoryLimit=1,
                          updateStrategy={"rollingUpdate": {"partition": 1}}))
    lab.run()
    for image in ("db:2", "db:3", "db:4", "db:5"):
        lab.retemplate(image)
        lab.run()
    assert lab.images() == {0: "db:1", 1: "db:5"}
    assert sorted(numbers(lab)) == ["db:1", "db:4", "db:5"]


def test_a_revision_that_only_a_pod_uses_is_kept(lab: StatefulLab) -> None:
    lab.make(stateful_set(outcome="ready", revisionHistoryLimit=0, updateStrategy={"rollingUpdate": {"partition": 1}}))
    lab.run()
    lab.retemplate("db:2")
    lab.run()
    lab.edit(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    lab.retemplate("db:3")
    lab.run()
    assert lab.images() == {0: "db:1", 1: "db:2", 2: "db:3"}
    assert numbers(lab) == {"db:1": 1, "db:2": 2, "db:3": 3}


def test_a_limit_below_zero_keeps_all_history(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=1, outcome="ready", revisionHistoryLimit=-1))
    for image in ("db:1", "db:2", "db:3"):
        lab.retemplate(image)
        lab.run()
    assert numbers(lab) == {"db:1": 1, "db:2": 2, "db:3": 3}


def test_another_revision_of_that_name_raises_the_collision_count(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=1))
    lab.run()
    [taken] = lab.client.list(REVISIONS, namespace="default").items
    lab.client.delete(SETS, "db", namespace="default")
    lab.run()
    metadata = {"name": name_of(taken), "labels": {"app": "other"}}
    lab.create(REVISIONS, {**taken, "metadata": metadata, "data": {"spec": {}}}, "default")
    lab.make(stateful_set(replicas=1))
    lab.run()
    status = lab.set()["status"]
    assert (status["collisionCount"], status["currentRevision"] == name_of(taken)) == (1, False)
    made = lab.client.get(REVISIONS, status["currentRevision"], namespace="default")
    hashed = name_of(taken).removeprefix("db-")  # the label tells the hash before the collision
    assert labels_of(made) == {"app": "db", "controller.kubernetes.io/hash": hashed}
