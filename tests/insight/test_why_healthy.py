"""A healthy rollout is done or on its way, at every moment in it: `why` never calls it stuck.

`WHY_ROLLOUTS=100 pytest tests/insight/test_why_healthy.py` tries so many generated rollouts.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.insight.why import DONE, PROGRESSING
from kubepy.insight.why.verdict import Question, explain
from kubepy.storage import Key

ROLLOUTS = int(os.environ.get("WHY_ROLLOUTS", "8"))
MOMENTS = 4  # of each rollout
RESOURCES = {
    "Deployment": "deployments.apps",
    "DaemonSet": "daemonsets.apps",
    "StatefulSet": "statefulsets.apps",
}


def strategy_of(kind: str, draw: random.Random) -> dict[str, Any]:
    """Draw a strategy by which a rollout gets on."""
    if kind == "StatefulSet":
        return {
            "podManagementPolicy": draw.choice(("OrderedReady", "Parallel")),
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"partition": draw.choice((0, 0, 1))},
            },
        }
    allowed = draw.choice(
        ((1, 0), (0, 1), ("30%", "50%") if kind == "Deployment" else ("50%", 0), (2, 0))
    )
    rolling = {"maxUnavailable": allowed[0], "maxSurge": allowed[1]}
    if kind == "DaemonSet":
        return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    recreate = {"strategy": {"type": "Recreate"}}
    return draw.choice(
        (recreate, {"strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}})
    )


def template(draw: random.Random, number: int) -> dict[str, Any]:
    """Draw a pod template of which all pods become ready sooner or later."""
    annotations = {
        "kubepy.dev/ready-after": draw.choice(("0s", "5s", "1s..20s", "3m")),
        "kubepy.dev/stops-after": draw.choice(("0s", "4s", "1s..9s")),
        "kubepy.dev/outcome": draw.choice(
            ("ready", "ready", "crash-loop*2, ready", "image-pull-backoff*2, ready")
        ),
    }
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [{"name": "web", "image": f"web:{number}"}]},
    }


def workload(kind: str, draw: random.Random) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(draw, 0),
        "minReadySeconds": draw.choice((0, 0, 7, 45)),
        **strategy_of(kind, draw),
    }
    if kind != "DaemonSet":
        spec["replicas"] = draw.randrange(1, 7)
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec}


def change(cluster: Cluster, obj: dict[str, Any], draw: random.Random, number: int) -> None:
    """Begin a rollout: a new template, another size, a restart, an undo."""
    target = f"{obj['kind'].lower()}/web"
    actions = [
        lambda: cluster.client.patch(target, {"spec": {"template": template(draw, number)}}),
        lambda: cluster.run(f"rollout restart {target}"),
    ]
    if obj["kind"] != "DaemonSet":
        actions.append(
            lambda: cluster.client.patch(target, {"spec": {"replicas": draw.randrange(0, 8)}})
        )
    if number > 1:
        actions.append(lambda: cluster.run(f"rollout undo {target}"))
    draw.choice(actions)()


@pytest.mark.parametrize("seed", range(ROLLOUTS))
def test_healthy_rollout_is_never_stuck(seed: int) -> None:
    draw = random.Random(seed)
    cluster = Cluster.temporary(nodes=draw.randrange(2, 6), seed=seed)
    kind = draw.choice(list(RESOURCES))
    obj = workload(kind, draw)
    cluster.client.create(obj)
    for number in range(1, MOMENTS + 1):
        cluster.advance(draw.choice((0, 1, 3, 8, 20, 60, 200)))
        if draw.random() < 0.5:
            change(cluster, obj, draw, number)
        assert_healthy(cluster, Key(RESOURCES[kind], "default", "web"), kind)
    assert cluster.settle()
    assert_healthy(cluster, Key(RESOURCES[kind], "default", "web"), kind, states=(DONE,))


def assert_healthy(
    cluster: Cluster, key: Key, kind: str, states: tuple[str, ...] = (DONE, PROGRESSING)
) -> None:
    """Assert the state of a workload, of one of its ReplicaSets and of one of its pods that
    stay."""
    with cluster._open() as local:
        answer = explain(Question(local, key))
        assert answer.state in states, answer
        assert answer.remedies == ()
        pods = [
            pod
            for pod in local.client.list("pods").items
            if not pod["metadata"].get("deletionTimestamp")
        ]
        if pods and states == (DONE,):
            answer = explain(Question(local, Key("pods", "default", pods[-1]["metadata"]["name"])))
            assert answer.state == DONE, answer
