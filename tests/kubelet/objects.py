"""Pods, nodes, and golden files for the kubelet's tests.

``UPDATE_GOLDEN=1 pytest tests/kubelet`` writes the files in ``tests/golden/kubelet`` anew.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from kubepy.kubelet.stages import Start, next_step
from kubepy.kubelet.statuses import pod_status

GOLDEN = Path(__file__).parents[1] / "golden" / "kubelet"
NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
BOUND = {
    "lastProbeTime": None,
    "lastTransitionTime": "2026-11-20T11:59:59Z",
    "status": "True",
    "type": "PodScheduled",
}

Object = dict[str, Any]


def check_golden(name: str, found: Object) -> None:
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(found))
    assert found == yaml.safe_load(path.read_text())


def new_pod(outcome: str | None = None, **spec: Any) -> Object:
    annotations = {"kubepy.dev/outcome": outcome} if outcome else {}
    meta = {
        "name": "web",
        "namespace": "shop",
        "uid": "0f1e",
        "generation": 1,
        "annotations": annotations,
    }
    containers = [{"name": "c", "image": "c:1"}, {"name": "d", "image": "d:1"}]
    status = {"phase": "Pending", "qosClass": "BestEffort", "conditions": [dict(BOUND)]}
    return {
        "metadata": meta,
        "spec": {"containers": containers, "nodeName": "node-1", **spec},
        "status": status,
    }


def new_node(**annotations: str) -> Object:
    return {"metadata": {"name": "node-1", "annotations": annotations}, "spec": {}}


def played(pod: Object, node: Object | None = None) -> Object:
    """Return the pod after its kubelet has done everything that is due."""
    node = node or new_node()
    step = next_step(pod, node, NOW)
    assert isinstance(step, Start)
    after = {
        **pod,
        "status": pod_status(pod, step.outcome, "192.168.0.1", "10.244.0.1", NOW, step.obstacles),
    }
    assert next_step(after, node, NOW) is None
    return after
