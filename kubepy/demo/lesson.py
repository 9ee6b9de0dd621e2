"""The lesson: a rollout, the decisions in it, one that fails, what helps, a week, a fork.

Each line that it shows can be typed. What is said about the cluster is what ``plan``, ``why`` and
``timeline`` say of it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

from kubepy.demo.decisions import decisions_of
from kubepy.demo.stage import STATE, STATE_VARIABLE, LessonStage, Quit

UNDO = ["rollout", "undo"]
MANIFEST = "web.yaml"
WITH_SETTINGS = "web-settings.yaml"  # needs a ConfigMap that nobody has made
OLD, NEW = "nginx:1.28", "nginx:1.29"


class LessonWorkload(NamedTuple):
    """The kind of workload that the lesson is about.

    :ivar words: what is said of it when it is made.
    """

    kind: str
    words: str
    replicas: str = "  replicas: 3\n"

    @property
    def name(self) -> str:
        """As commands name it: ``deployment/web``."""
        return f"{self.kind.lower()}/web"

    def manifest(self, image: str, *, with_settings: bool = False) -> str:
        """Return the manifest; with settings its container reads the ConfigMap ``settings``."""
        settings = "\n        envFrom: [{configMapRef: {name: settings}}]" * with_settings
        return (
            f"apiVersion: apps/v1\nkind: {self.kind}\nmetadata: {{name: web}}\nspec:\n"
            f"{self.replicas}"
            "  selector: {matchLabels: {app: web}}\n"
            "  template:\n"
            "    metadata: {labels: {app: web}}\n"
            "    spec:\n"
            "      containers:\n"
            f'      - name: web\n        image: "{image}"{settings}\n'
        )


WORKLOADS = {
    "deployment": LessonWorkload("Deployment", "A Deployment of three pods"),
    "daemonset": LessonWorkload("DaemonSet", "A DaemonSet, with a pod on each node", replicas=""),
    "statefulset": LessonWorkload("StatefulSet", "A StatefulSet of three pods"),
}


class Lesson:
    """A lesson about one workload, in a cluster of its own."""

    def __init__(self, stage: LessonStage, workload: LessonWorkload) -> None:
        self._stage = stage
        self._workload = workload
        self._name = workload.name

    def play(self) -> None:
        """Show all steps, or those until somebody has seen enough."""
        steps: tuple[Callable[[], None], ...] = (
            self._make_cluster,
            self._make_workload,
            self._plan_update,
            self._update,
            self._fail,
            self._remedy,
            self._undo,
            self._week,
            self._fork,
        )
        try:
            for number, step in enumerate(steps):
                if number:
                    self._stage.pause()
                step()
        except Quit:
            self._end()

    def _make_cluster(self) -> None:
        stage = self._stage
        stage.title("A cluster in a folder")
        stage.say(
            "The cluster is a folder of YAML files. It has a time of its own, which stands until a "
            "command moves it, and everything random in it follows from a seed: what you see here, "
            "you get by typing the same lines. Pods take five seconds to become ready, and two to "
            "end."
        )
        stage.note_line(f"cd {shlex.quote(stage.folder)}")
        stage.note_line(f"export {STATE_VARIABLE}={STATE}")
        stage.run("kubepy init --nodes=3 --clock=2026-01-01T00:00:00Z --seed=7")
        stage.run("kubepy annotate nodes --all kubepy.dev/ready-after=5s kubepy.dev/stops-after=2s")

    def _make_workload(self) -> None:
        stage, workload = self._stage, self._workload
        stage.title(workload.words)
        stage.write_file(MANIFEST, workload.manifest(OLD))
        stage.show_file(MANIFEST)
        stage.run(f"kubepy apply -f {MANIFEST}")
        stage.run(f"kubepy rollout status {self._name}")
        stage.run("kubepy get pods")

    def _plan_update(self) -> None:
        stage = self._stage
        stage.title("What would an update do?")
        stage.say(
            "plan runs the command on a fork of the cluster, and lets the controllers work there "
            "until nothing is left to do. The cluster itself is not changed."
        )
        line = f"set image {self._name} web={NEW}"
        stage.run(f"kubepy plan {line}")
        stage.say("What the controllers decide about pods, and the numbers that let them:")
        document = stage.document(f"kubepy plan -o json {line}")
        lines = [text for decision in decisions_of(document) for text in decision.lines()]
        stage.list(lines)

    def _update(self) -> None:
        stage = self._stage
        stage.title("The update itself")
        stage.run(f"kubepy set image {self._name} web={NEW}")
        stage.run(f"kubepy rollout status {self._name}")
        stage.say("What has happened is what was planned, pod by pod:")
        stage.run(f"kubepy timeline {self._name}")

    def _fail(self) -> None:
        stage = self._stage
        stage.title("A rollout that fails")
        stage.say(
            "Now the container is to read its variables from the ConfigMap settings, which nobody "
            "has made."
        )
        stage.write_file(WITH_SETTINGS, self._workload.manifest(NEW, with_settings=True))
        stage.show_file(WITH_SETTINGS)
        stage.run(f"kubepy apply -f {WITH_SETTINGS}")
        stage.run(f"kubepy rollout status {self._name} --timeout=1m")
        stage.run("kubepy get pods")
        stage.say(
            "why follows it down to what is to blame, and tries on forks which command would help:"
        )
        stage.run(f"kubepy why {self._name}")

    def _remedy(self) -> None:
        stage = self._stage
        stage.title("What helps")
        document = stage.document(f"kubepy why {self._name} -o json")
        command = remedy_of(document)
        stage.say("A remedy that is proven, and keeps the new revision:")
        stage.run(shlex.join(command))
        stage.run(f"kubepy rollout status {self._name}")
        stage.run(f"kubepy why {self._name}")

    def _undo(self) -> None:
        stage = self._stage
        stage.title("Back again")
        stage.run(f"kubepy rollout history {self._name}")
        stage.run(f"kubepy rollout diff {self._name}")
        stage.run(f"kubepy rollout undo {self._name}")
        stage.run(f"kubepy rollout status {self._name}")
        stage.run(f"kubepy timeline {self._name} --since=30s")

    def _week(self) -> None:
        stage = self._stage
        stage.title("A week of a CronJob")
        stage.say("Everything that falls due in the week happens at its own moment.")
        stage.run("kubepy create cronjob backup --image=busybox --schedule='0 3 * * *' -- sleep 90")
        stage.run("kubepy clock advance 7d")
        stage.run("kubepy get cronjobs")
        stage.run("kubepy get jobs")
        stage.say("What is due next:")
        stage.run("kubepy clock")

    def _fork(self) -> None:
        stage = self._stage
        stage.title("A fork")
        stage.say("A fork is a cluster that goes on from here. What happens in it, happens there:")
        stage.run("kubepy fork what-if")
        stage.run("kubepy --state what-if drain node-1 --ignore-daemonsets")
        stage.run("kubepy --state what-if get nodes")
        stage.run("kubepy get nodes")
        self._end()

    def _end(self) -> None:
        self._stage.say(
            f"The cluster stays in {self._stage.folder}: go on there, or remove it. "
            '"kubepy demo challenge" has broken ones to repair.'
        )


def remedy_of(answer: Any) -> list[str]:
    """Return the first remedy of ``kubepy why -o json`` that is proven and goes forward; where none
    does, the first that is proven."""
    proven = [
        remedy["command"]
        for remedy in answer["remedies"]
        if remedy["proven"] and remedy["kind"] == "real"
    ]
    forward = [command for command in proven if command[1:3] != UNDO]
    chosen: list[str] = (forward or proven)[0]
    return chosen
