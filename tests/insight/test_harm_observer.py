"""Harm as an independent observer of the objects sees it is the harm of the plan.

Random commands on random small clusters; ``HARM_COMMANDS=150 pytest
tests/insight/test_harm_observer.py`` tries so many, others with ``HARM_FIRST=1000``.
"""

from __future__ import annotations

import json
import os
import random
from typing import NamedTuple

import pytest

from kubepy import Cluster
from tests.insight.observer import Observer

FIRST = int(os.environ.get("HARM_FIRST", "0"))
COMMANDS = range(FIRST, FIRST + int(os.environ.get("HARM_COMMANDS", "12")))
NAMES = ("web", "api", "db")
# Judged by `why`, which an observer of objects cannot do.
OF_GOALS = ("never-finishes", "stuck")


class Made(NamedTuple):
    """A random cluster, and a command for it.

    :ivar deleted: what the command itself deletes: ``resource/name``.
    """

    cluster: Cluster
    command: str
    stdin: str
    deleted: tuple[str, ...]


def workload(draw: random.Random, name: str) -> str:
    """Return the manifest of a random workload."""
    kind = draw.choice(["Deployment", "Deployment", "Deployment", "StatefulSet", "DaemonSet"])
    strategy = ""
    if kind == "Deployment" and draw.random() < 0.5:
        away, surge = draw.choice([(1, 0), (0, 1), ("50%", "50%"), (2, 1)])
        strategy = (
            "strategy: {type: RollingUpdate, rollingUpdate: "
            f"{{maxUnavailable: {away}, maxSurge: {surge}}}}}"
        )
    elif kind == "Deployment" and draw.random() < 0.3:
        strategy = "strategy: {type: Recreate}"
    replicas = "" if kind == "DaemonSet" else f"replicas: {draw.randint(1, 5)}"
    return f"""
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}}}
spec:
  {replicas}
  {strategy}
  {"serviceName: " + name if kind == "StatefulSet" else ""}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: c, image: "{name}:1"}}]}}
---
"""


def surroundings(draw: random.Random, name: str) -> str:
    """Return the manifests of a random Service, Ingress and budget of a workload."""
    text = ""
    if draw.random() < 0.7:
        text += f"""
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}
---
"""
        if draw.random() < 0.5:
            text += f"""
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}}}
spec: {{defaultBackend: {{service: {{name: {name}, port: {{number: 80}}}}}}}}
---
"""
    if draw.random() < 0.5:
        rule = draw.choice(
            ["minAvailable: 1", "minAvailable: 2", "maxUnavailable: 1", "maxUnavailable: 50%"]
        )
        text += f"""
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: {name}}}
spec: {{{rule}, selector: {{matchLabels: {{app: {name}}}}}}}
---
"""
    return text


LONELY = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: lonely}
spec:
  containers: [{name: c, image: "lonely:1", volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]
"""


def make(number: int) -> Made:
    """Return the cluster and the command of a number."""
    draw = random.Random(number)
    nodes = draw.randint(2, 4)
    cluster = Cluster.temporary(
        nodes=nodes,
        seed=number,
        clock="2026-01-01T00:00:00Z",
        settings={
            "kubelet": {
                "readyAfter": f"{draw.randint(1, 9)}s",
                "stopsAfter": f"{draw.randint(1, 9)}s",
            }
        },
    )
    names = NAMES[: draw.randint(1, 3)]
    text = "".join(workload(draw, name) + surroundings(draw, name) for name in names) + LONELY
    cluster.run("apply -f -", stdin=text, check=True)
    cluster.advance("5m")
    if draw.random() < 0.25:
        cluster.run(f"cordon node-{nodes}", check=True)
    if draw.random() < 0.2:
        cluster.run("delete pod lonely", check=True)
    cluster.advance("5m")
    command, *deleted = command_of(draw, cluster, draw.choice(names), nodes)
    return Made(cluster, command, text, tuple(deleted))


def command_of(draw: random.Random, cluster: Cluster, name: str, nodes: int) -> list[str]:
    """Return a random command, and what it deletes."""
    resource = next(
        word
        for word in ("deploy", "sts", "ds")
        if not cluster.run(["get", word, name, "-o", "name"]).status
    )
    node = f"node-{draw.randint(1, nodes)}"
    choices = [
        [f"set image {resource}/{name} c={name}:2"],
        [f"rollout restart {resource}/{name}"],
        [f"set image {resource}/{name} c=nginx:no-such-tag"],
        [f"delete pods -l app={name}"],
        ["delete pods --all", "pods/lonely"],
        [f"drain {node} --ignore-daemonsets --force", "pods/lonely"],
        [f"delete {resource} {name}"],
        [f"delete svc {name} --ignore-not-found"],
        [f"delete node {node}"],
        [f"taint node {node} a=b:NoExecute"],
        ["taint nodes --all a=b:NoExecute"],
        [f"cordon {node}"],
        ["delete pvc data --wait=false"],
        ["delete pod lonely --ignore-not-found", "pods/lonely"],
        [f"create pdb more --selector=app={name} --min-available={draw.randint(0, 5)}"],
        [f"label pods -l app={name} app=other --overwrite"],
        ["replace --force -f -", "pods/lonely-not"],
        [f"annotate node {node} kubepy.dev/outcome=not-ready"],
        [f'patch svc {name} -p \'{{"spec":{{"selector":{{"app":"none"}}}}}}\''],
    ]
    if resource != "ds":
        choices += [[f"scale {resource}/{name} --replicas={draw.randint(0, 9)}"]] * 3
    if resource == "deploy":
        recreate = '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'
        choices += [[f"patch deploy {name} -p '{recreate}'"]]
    return draw.choice(choices)


@pytest.mark.parametrize("number", COMMANDS)
def test_harm_is_what_an_observer_of_the_objects_sees(number: int) -> None:
    made = make(number)
    result = made.cluster.run(f"plan -o json {made.command}", stdin=made.stdin)
    if result.status == 1:
        pytest.skip(f"the command fails: {made.command}")
    plan = json.loads(result.stdout)
    planned = {
        f"{harm['kind']} {harm['object']['resource'].partition('.')[0]}/{harm['object']['name']}"
        for harm in plan["harm"]
        if harm["kind"] not in OF_GOALS
    }
    fork = made.cluster.fork()
    observer = Observer(fork)
    fork.run(made.command, stdin=made.stdin)
    fork.settle()
    assert planned == observer.harm(made.deleted), made.command
