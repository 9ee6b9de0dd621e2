"""Generated clusters with workloads, and commands that change them: what predictions are compared
on.

Each scenario is a function of its number: kinds, strategies, surges, partitions, budgets, faults
and times vary.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

from kubepy import Cluster

Object = dict[str, Any]
OUTCOMES = (
    "",
    "",
    "",
    "",
    "ready",
    "crash-loop*2, ready",
    "crash-loop",
    "image-pull-backoff*1, ready",
    "image-pull-backoff",
    "not-ready",
    "failed",
)


@dataclass
class Scenario:
    """A cluster before a command.

    :ivar before: command lines, and seconds to let pass, that lead there; a line may have standard
        input.
    :ivar command: the command that is planned and then run; no words: only what is under way.
    """

    number: int
    nodes: int
    settings: Object
    before: list[tuple[list[str], str] | float] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    stdin: str = ""

    def cluster(self) -> Cluster:
        """Return a new cluster as it is before the command."""
        cluster = Cluster.temporary(nodes=self.nodes, seed=self.number, settings=self.settings)
        for step in self.before:
            if isinstance(step, float):
                cluster.advance(step)
            else:
                cluster.run(step[0], stdin=step[1])
        return cluster


class Generator:
    """Draws one scenario."""

    def __init__(self, number: int) -> None:
        self.draw = random.Random(number)
        draw = self.draw
        settings: Object = {}
        if draw.random() < 0.4:
            settings["kubelet"] = {"readyAfter": self.time(), "stopsAfter": self.time()}
        if draw.random() < 0.15:
            settings["faults"] = draw.choice(
                [
                    {"conflicts": {"rate": 0.2}},
                    {"restarts": {"rate": 0.05}},
                    {"lateEvents": {"rate": 0.2, "delay": "0s..3s"}},
                    {"nodes": [{"after": "20s..90s", "downFor": "2m"}]},
                    {"pods": [{"rate": 0.2, "outcome": "crash-loop*3, ready"}]},
                ]
            )
        self.scenario = Scenario(number, draw.randint(1, 6), settings)

    def time(self) -> str:
        """Return a duration or a range of them."""
        low = self.draw.randint(0, 9)
        return (
            f"{low}s" if self.draw.random() < 0.5 else f"{low}s..{low + self.draw.randint(1, 20)}s"
        )

    def share(self, most: int) -> int | str:
        return self.draw.choice([0, 1, 1, 2, most, "25%", "34%", "50%", "100%"])

    def run(self, *words: str, stdin: str = "") -> None:
        self.scenario.before.append((list(words), stdin))

    def template(self, revision: int = 1, **spec: Any) -> Object:
        """Return a pod template; annotations say how its pods live."""
        draw, annotations = self.draw, {}
        if draw.random() < 0.6:
            annotations["kubepy.dev/ready-after"] = self.time()
        if draw.random() < 0.4:
            annotations["kubepy.dev/stops-after"] = self.time()
        if draw.random() < 0.2:
            annotations["kubepy.dev/cpu"] = draw.choice(["50m", "100m..900m", "2"])
        if outcome := draw.choice(OUTCOMES if revision > 1 else OUTCOMES[:6]):
            annotations["kubepy.dev/outcome"] = outcome
        container: Object = {"name": "app", "image": f"app:{revision}"}
        if draw.random() < 0.3:
            container["resources"] = {"requests": {"cpu": draw.choice(["100m", "1", "2", "3"])}}
        return {
            "metadata": {"labels": {"app": "app"}, "annotations": annotations},
            "spec": {"containers": [container], **spec},
        }

    def workload(self, kind: str, revision: int = 1) -> Object:
        """Return the manifest of a workload of some kind."""
        draw, replicas = self.draw, self.draw.randint(1, 7)
        spec: Object = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "app"}},
            "template": self.template(revision),
        }
        api_version = "apps/v1"
        if draw.random() < 0.4 and kind != "ReplicationController":
            spec["minReadySeconds"] = draw.randint(1, 12)
        if kind == "Deployment":
            surge, unavailable = self.share(replicas), self.share(replicas)
            if surge in (0, "0%") and unavailable in (0, "0%"):
                unavailable = 1
            spec["strategy"] = draw.choice(
                [
                    {"type": "Recreate"},
                    *[
                        {
                            "type": "RollingUpdate",
                            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
                        }
                    ]
                    * 3,
                ]
            )
            if draw.random() < 0.3:
                spec["progressDeadlineSeconds"] = draw.randint(20, 90)
                spec["minReadySeconds"] = min(spec.get("minReadySeconds", 0), 12)
        elif kind == "DaemonSet":
            del spec["replicas"]
            surge = draw.random() < 0.4
            amount = draw.choice([1, 2, "34%", "100%"])
            spec["updateStrategy"] = draw.choice(
                [
                    {"type": "OnDelete"},
                    *[
                        {
                            "type": "RollingUpdate",
                            "rollingUpdate": {"maxSurge": amount, "maxUnavailable": 0}
                            if surge
                            else {"maxUnavailable": amount},
                        }
                    ]
                    * 4,
                ]
            )
        elif kind == "StatefulSet":
            spec["serviceName"] = "app"
            if draw.random() < 0.3:
                spec["volumeClaimTemplates"] = [
                    {
                        "metadata": {"name": "data"},
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        },
                    }
                ]
            spec["podManagementPolicy"] = draw.choice(["OrderedReady", "Parallel"])
            rolling: Object = {"partition": draw.choice([0, 0, 1, replicas])}
            spec["updateStrategy"] = draw.choice(
                [{"type": "OnDelete"}, *[{"type": "RollingUpdate", "rollingUpdate": rolling}] * 4]
            )
        elif kind == "ReplicationController":
            api_version, spec["selector"] = "v1", {"app": "app"}
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "app"}, "spec": spec}

    def job(self, name: str = "work") -> Object:
        draw = self.draw
        template = self.template(restartPolicy=draw.choice(["Never", "OnFailure"]))
        template["metadata"] = {
            "annotations": {
                "kubepy.dev/runs-for": self.time(),
                "kubepy.dev/exit-code": str(draw.choice([0, 0, 0, 1])),
            }
        }
        spec: Object = {
            "template": template,
            "parallelism": draw.randint(1, 4),
            "completions": draw.randint(1, 6),
            "backoffLimit": draw.randint(0, 3),
        }
        if draw.random() < 0.3:
            spec["activeDeadlineSeconds"] = draw.randint(5, 40)
        if draw.random() < 0.3:
            spec["ttlSecondsAfterFinished"] = draw.randint(0, 100)
        if draw.random() < 0.3:
            spec["completionMode"] = "Indexed"
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}

    def budget(self) -> Object:
        bound = self.draw.choice(
            [
                {"minAvailable": 1},
                {"minAvailable": "50%"},
                {"maxUnavailable": 1},
                {"maxUnavailable": 0},
                {"minAvailable": 4},
            ]
        )
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "app"},
            "spec": {**bound, "selector": {"matchLabels": {"app": "app"}}},
        }

    def apply(self, *objects: Object) -> None:
        self.run("apply", "-f", "-", stdin=text(*objects))

    def make(self) -> Scenario:
        """Draw the workloads, the time before the command, and the command."""
        draw, scenario = self.draw, self.scenario
        kind = draw.choice(
            ["Deployment"] * 4
            + ["DaemonSet"] * 3
            + ["StatefulSet"] * 3
            + ["ReplicaSet", "ReplicationController"]
        )
        if draw.random() < 0.3:
            self.run("annotate", "nodes", "--all", f"kubepy.dev/ready-after={self.time()}")
        self.apply(self.workload(kind))
        if draw.random() < 0.4:
            self.apply(self.budget())
        if draw.random() < 0.2:
            self.apply(self.job("other"))
        if draw.random() < 0.2 and kind in ("Deployment", "StatefulSet"):
            self.run("autoscale", f"{kind.lower()}/app", "--min=1", "--max=5", "--cpu=50%")
        if draw.random() < 0.1:
            self.run("create", "quota", "few", f"--hard=pods={draw.randint(2, 8)}")
        if draw.random() < 0.15:
            self.run("cordon", f"node-{draw.randint(1, scenario.nodes)}")
        if draw.random() < 0.15:
            self.run("run", "alone", "--image=alone")
        scenario.before.append(float(draw.choice([1, 5, 30, 300])))
        if draw.random() < 0.35:  # the command comes amid another rollout
            self.run("set", "image", f"{kind.lower()}/app", "app=app:9")
            scenario.before.append(float(draw.randint(1, 15)))
        scenario.command = self.command(kind)
        return scenario

    def command(self, kind: str) -> list[str]:
        """Draw the command."""
        draw, target, node = (
            self.draw,
            f"{kind.lower()}/app",
            f"node-{self.draw.randint(1, self.scenario.nodes)}",
        )
        size = str(draw.randint(0, 8))
        words: list[list[str]] = [
            ["set", "image", target, "app=app:2"],
            ["set", "image", target, "app=app:2"],
            ["rollout", "restart", target],
            ["rollout", "undo", target],
            ["rollout", "pause", target],
            ["scale", target, f"--replicas={size}"],
            ["apply", "-f", "-"],
            ["apply", "-f", "-"],
            ["create", "-f", "-"],
            ["delete", target, f"--wait={draw.choice(['true', 'false'])}"],
            ["delete", target, "--cascade=orphan"],
            ["delete", "pods", "--all", "--wait=false"],
            ["delete", "node", node],
            ["drain", node, "--ignore-daemonsets", "--force"],
            ["drain", node, "--ignore-daemonsets", "--force", f"--timeout={draw.randint(5, 60)}s"],
            ["cordon", node],
            ["taint", "node", node, f"key=value:{draw.choice(['NoExecute', 'NoSchedule'])}"],
            ["annotate", "node", node, "kubepy.dev/down-until=2026-01-01T00:20:00Z"],
            ["uncordon", node],
            ["annotate", "node", node, "kubepy.dev/outcome=not-ready"],
            ["clock", "advance", "45s"],
            ["create", "cronjob", "often", "--image=often", "--schedule=*/5 * * * *"],
            ["rollout", "resume", target],
            ["wait", target, "--for=jsonpath={.status.readyReplicas}=3", "--timeout=50s"],
            ["rollout", "status", target, "--timeout=20s"],
            [],
            [
                "patch",
                target,
                "--type=merge",
                "-p",
                json.dumps({"spec": {"minReadySeconds": draw.randint(0, 20)}}),
            ],
        ]
        chosen = draw.choice(words)
        if chosen[:1] == ["apply"]:
            self.scenario.stdin = text(self.workload(kind, revision=3))
        elif chosen[:1] == ["create"]:
            self.scenario.stdin = text(self.job())
        return chosen


def text(*objects: Object) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def scenario(number: int) -> Scenario:
    """Return the scenario with this number, always the same."""
    return Generator(number).make()
