"""Timelines made by hand, for the tests of the pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from kubepy.insight import Bounds, Course, Numbers, Step, Timeline
from kubepy.storage import Key

START = datetime(2026, 1, 1, tzinfo=UTC)


class Script:
    """Writes a timeline step by step, and counts the pods of its workloads meanwhile."""

    def __init__(self) -> None:
        self.now, self.steps = START, list[Step]()
        self.workloads = dict[Key, Workload]()

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def step(self, action: str, key: Key, **fields: str) -> None:
        self.steps.append(Step(self.now, action, key, **fields))

    def timeline(self, until: float = 0) -> Timeline:
        courses = tuple(
            Course(key, tuple(workload.numbers), tuple(workload.limits))
            for key, workload in sorted(self.workloads.items())
        )
        return Timeline(START, self.now + timedelta(seconds=until), tuple(self.steps), courses)


class Workload:
    """One workload of a script: makes, changes and removes pods."""

    def __init__(
        self,
        script: Script,
        resource: str,
        name: str,
        desired: int,
        bounds: Bounds = Bounds(),  # noqa: B008
        there: Iterable[tuple[str, str]] = (),
        revision: str = "5d4c4ff75b",
    ) -> None:
        self.script, self.key, self.desired, self.bounds = (
            script,
            Key(resource, "default", name),
            desired,
            bounds,
        )
        self.revision = revision
        self.pods = {pod: ["available", node, revision] for pod, node in there}
        self.tally = Counter(
            (state, revision) for state, _, revision in self.pods.values()
        )  # pods, by that
        self.numbers, self.limits = [(0, self.count())], [(0, self.bounds)]
        script.workloads[self.key] = self

    def count(self) -> Numbers:
        tally = {
            key: count for key, count in self.tally.items() if key[0] not in ("failed", "succeeded")
        }

        def having(*states: str) -> int:
            return sum(count for (state, _), count in tally.items() if state in states)

        return Numbers(
            self.desired,
            sum(tally.values()),
            having("ready", "available"),
            having("available"),
            sum(
                count
                for (state, revision), count in tally.items()
                if revision == self.revision and state != "terminating"
            ),
            having("terminating"),
        )

    def own(self, action: str, reason: str = "") -> None:
        """Make a step of the workload itself."""
        self.script.step(action, self.key, reason=reason)
        self._note()

    def pod(self, pod: str, *actions: str, node: str = "", reason: str = "") -> None:
        """Let a pod make steps."""
        for action in actions:
            if action == "created":
                self.pods[pod] = ["created", "", self.revision]
                self.tally["", self.revision] += 1
                self.pods[pod][0] = ""
            state = self.pods[pod]
            if action == "scheduled":
                state[1] = node
            self.tally[state[0], state[2]] -= 1
            state[0] = action
            if action == "deleted":
                del self.pods[pod]
            else:
                self.tally[action, state[2]] += 1
            owner = self.key.name
            resource = self.key.resource
            if resource == "deployments.apps":
                resource, owner = "replicasets.apps", f"{owner}-{state[2]}"
            self.script.step(
                action,
                Key("pods", "default", pod),
                owner=f"{resource}/{owner}",
                node=state[1],
                revision=state[2],
                reason=reason,
            )
            self._note()

    def _note(self) -> None:
        numbers = self.count()
        if numbers != self.numbers[-1][1]:
            self.numbers.append((len(self.script.steps), numbers))
        if self.bounds != self.limits[-1][1]:
            self.limits.append((len(self.script.steps), self.bounds))


UP = ("scheduled", "ready", "available")


def rolling_daemonset(nodes: int = 4, seconds: float = 5) -> Timeline:
    """A DaemonSet whose pods are replaced node by node."""
    script = Script()
    agent = Workload(
        script,
        "daemonsets.apps",
        "agent",
        nodes,
        Bounds(nodes - 1, 1, 0),
        [(f"agent-a{n}", f"node-{n}") for n in range(1, nodes + 1)],
    )
    agent.revision = "7f66b9d8c4"
    agent.own("changed", "spec.template.spec.containers[agent].image: agent:1 to agent:2")
    for n in range(1, nodes + 1):
        agent.pod(f"agent-a{n}", "terminating")
        script.wait(seconds / 5)
        agent.pod(f"agent-a{n}", "deleted")
        agent.pod(f"agent-b{n}", "created")
        agent.pod(f"agent-b{n}", "scheduled", node=f"node-{n}")
        script.wait(seconds)
        agent.pod(f"agent-b{n}", "ready")
        script.wait(seconds / 5)
        agent.pod(f"agent-b{n}", "available")
    return script.timeline()


def rolling_deployment(replicas: int = 4, seconds: float = 5, nodes: int = 3) -> Timeline:
    """A Deployment that surges by one; with 0 seconds all in one moment."""
    script = Script()
    web = Workload(
        script,
        "deployments.apps",
        "web",
        replicas,
        Bounds(replicas - 1, 1, 1),
        [(f"web-5d4c4ff75b-{n:04}", f"node-{n % nodes + 1}") for n in range(replicas)],
    )
    web.revision = "7f66b9d8c4"
    web.own("changed", "image: web:1 to web:2")
    script.step(
        "created",
        Key("replicasets.apps", "default", "web-7f66b9d8c4"),
        owner="deployments.apps/web",
        revision="7f66b9d8c4",
    )
    for n in range(replicas):
        new = f"web-7f66b9d8c4-{n:04}"
        web.pod(new, "created")
        web.pod(new, "scheduled", node=f"node-{n % nodes + 1}")
        script.wait(seconds)
        web.pod(new, "ready", "available")
        web.pod(f"web-5d4c4ff75b-{n:04}", "terminating")
        script.wait(seconds / 4)
        web.pod(f"web-5d4c4ff75b-{n:04}", "deleted")
    return script.timeline()


def crash_loop() -> Timeline:
    """A DaemonSet's rollout that ends in a crash loop on its first node, which then goes down."""
    script = Script()
    agent = Workload(
        script,
        "daemonsets.apps",
        "agent",
        3,
        Bounds(2, 1, 0),
        [(f"agent-a{n}", f"node-{n}") for n in range(1, 4)],
    )
    agent.revision = "7f66b9d8c4"
    agent.own("changed", "image: agent:1 to agent:2")
    agent.pod("agent-a1", "terminating", "deleted")
    agent.pod("agent-b1", "created")
    agent.pod("agent-b1", "scheduled", node="node-1")
    for wait in (10, 20, 40, 80, 160, 300, 300):
        agent.pod("agent-b1", "restarted", reason="Error")
        agent.pod("agent-b1", "waiting", reason="CrashLoopBackOff")
        script.wait(wait)
    script.step("cordoned", Key("nodes", "", "node-3"))
    script.wait(30)
    script.step("not-ready", Key("nodes", "", "node-2"), reason="NodeStatusUnknown")
    agent.pod("agent-a2", "not-ready", "unavailable")
    script.wait(300)
    agent.pod("agent-a2", "terminating", reason="TaintManagerEviction")
    return script.timeline(until=60)


def stateful() -> Timeline:
    """A StatefulSet that is updated from its last pod on: names come back."""
    script = Script()
    db = Workload(
        script,
        "statefulsets.apps",
        "db",
        3,
        Bounds(2, 1, None, "db"),
        [(f"db-{n}", f"node-{n + 1}") for n in range(3)],
        "db-65f8c9d7",
    )
    db.revision = "db-7c9d4b6f"
    for n in (2, 1, 0):
        db.pod(f"db-{n}", "terminating")
        script.wait(3)
        db.pod(f"db-{n}", "deleted", "created")
        db.pod(f"db-{n}", "scheduled", node=f"node-{n + 1}")
        script.wait(7)
        db.pod(f"db-{n}", "ready", "available")
    return script.timeline()


def jobs() -> Timeline:
    """A CronJob's runs: two minutes of work in a day; one pod fails and is replaced."""
    script = Script()
    for run in range(4):
        job = Workload(script, "jobs.batch", f"report-2945448{run}", 1, revision="")
        script.step("created", job.key, owner="cronjobs.batch/report")
        for attempt in range(2 if run == 2 else 1):
            pod = f"{job.key.name}-x{attempt}"
            job.pod(pod, "created")
            job.pod(pod, "scheduled", node="node-1")
            script.wait(20)
            job.pod(
                pod,
                "failed" if run == 2 and not attempt else "succeeded",
                reason="Error" if run == 2 else "",
            )
        script.wait(6 * 3600)
    return script.timeline()


def week() -> Timeline:
    """Twenty CronJobs that run every six hours for a week, and a rollout of 500 pods within."""
    script = Script()
    jobs = [Workload(script, "cronjobs.batch", f"job-{n:02}", 0, revision="") for n in range(20)]
    web = Workload(
        script,
        "deployments.apps",
        "web",
        500,
        Bounds(450, 50, 50),
        [(f"web-a{n}", f"node-{n % 20 + 1}") for n in range(500)],
    )
    for run in range(28):
        if run == 14:
            roll_out(web, "7f66b9d8c4")
        for job in jobs:
            pod = f"{job.key.name}-{run}-x"
            job.pod(pod, "created")
            job.pod(pod, "scheduled", node=f"node-{run % 20 + 1}")
            script.wait(10)
            job.pod(pod, "failed" if run == 3 and job is jobs[0] else "succeeded")
            job.pod(pod, "deleted")
        script.wait(6 * 3600 - 200)
    return script.timeline()


def roll_out(web: Workload, revision: str) -> None:
    """Replace all pods of a workload, 50 at a time, on their nodes."""
    old = dict(web.pods)
    web.revision = revision
    web.own("changed", "web:1 to web:2")
    for number, (pod, (_, node, _)) in enumerate(old.items()):
        web.pod(f"{pod}-new", "created")
        web.pod(f"{pod}-new", "scheduled", node=node)
        web.pod(f"{pod}-new", "ready", "available")
        web.pod(pod, "terminating", "deleted")
        if number % 50 == 49:
            web.script.wait(5)


def large(pods: int = 1000) -> Timeline:
    """A rolling update of many pods on 50 nodes, ten at once."""
    script = Script()
    web = Workload(
        script,
        "deployments.apps",
        "web",
        pods,
        Bounds(pods - 10, 10, 10),
        [(f"web-5d4c4ff75b-{n:05}", f"node-{n % 50 + 1}") for n in range(pods)],
    )
    web.revision = "7f66b9d8c4"
    for first in range(0, pods, 10):
        names = range(first, min(first + 10, pods))
        for n in names:
            web.pod(f"web-7f66b9d8c4-{n:05}", "created")
        for n in names:
            web.pod(f"web-7f66b9d8c4-{n:05}", "scheduled", node=f"node-{n % 50 + 1}")
        for n in names:
            script.wait(0.37)
            web.pod(f"web-7f66b9d8c4-{n:05}", "ready", "available")
        for n in names:
            web.pod(f"web-5d4c4ff75b-{n:05}", "terminating")
        script.wait(2)
        for n in names:
            web.pod(f"web-5d4c4ff75b-{n:05}", "deleted")
    return script.timeline()


ALL = {
    "daemonset": rolling_daemonset,
    "deployment": rolling_deployment,
    "one-moment": lambda: rolling_deployment(seconds=0),
    "crash-loop": crash_loop,
    "statefulset": stateful,
    "jobs": jobs,
}
