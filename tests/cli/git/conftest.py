"""A repository that keeps a cluster, made once and cloned for every test; git runs the drivers as
processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubepy.storage.yaml import load_all
from tests.cli.conftest import run

PROGRAM = Path(sys.executable).parent / "kubepy"
CLUSTER = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
      - {name: agent, image: "agent:1", env: [{name: LEVEL, value: info}], ports: [{containerPort: 80}]}
      - {name: proxy, image: "proxy:1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1", ports: [{containerPort: 80}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - {name: db, image: "db:1", volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {team: a}}
data:
  level: info
  app.conf: |
    one = 1
    two = 2
    three = 3
    four = 4
    five = 5
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: cache}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {minReplicas: 1, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "report:1"}]}}}}
"""  # noqa: E501


class Repository:
    """A working copy; ``git`` and ``kubepy`` run a command there and return its output."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"

    def run_git(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {
            **os.environ,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_EDITOR": "true",
            "GIT_AUTHOR_NAME": "x",
            "GIT_AUTHOR_EMAIL": "x@localhost",
            "GIT_COMMITTER_NAME": "x",
            "GIT_COMMITTER_EMAIL": "x@localhost",
        }
        return subprocess.run(
            ["git", "-C", str(self.folder), *words],
            text=True,
            capture_output=True,
            env=env,
            check=False,
        )

    def git(self, *words: str) -> str:
        done = self.run_git(*words)
        assert done.returncode == 0, f"git {' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def kubepy(self, *words: str, stdin: str = "", status: int = 0) -> str:
        done = run("--state", str(self.state), *words, stdin=stdin)
        assert done.status == status, f"kubepy {' '.join(words)}\n{done.out}{done.err}"
        return done.out + done.err

    def play(self, script: str) -> None:
        """Run one command per line; quoted words stay together."""
        import shlex

        for line in filter(None, map(str.strip, script.splitlines())):
            self.kubepy(*shlex.split(line))

    def commit(self, message: str = "change") -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def object(self, path: str) -> Any:
        return load_all((self.state / f"{path}.yaml").read_text())[0].object

    def branch(self, name: str, change: Callable[[], object]) -> None:
        """Commit a change on a new branch that starts at main."""
        self.git("checkout", "-q", "-b", name, "main")
        change()
        self.commit(name)


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository whose branch main holds a settled cluster, with everything in git."""
    repository = Repository(tmp_path_factory.mktemp("origin"))
    repository.kubepy("init", "--nodes=3")
    repository.kubepy("apply", "-f", "-", stdin=CLUSTER)
    repository.kubepy("controller", "--once")
    repository.git("init", "-q", "-b", "main")
    repository.kubepy("git", "setup")
    repository.commit("cluster")
    return repository


@pytest.fixture
def repository(origin: Repository, tmp_path: Path) -> Repository:
    """A clone of ``origin`` in which ``kubepy git setup`` has run; its cluster has no index yet."""
    clone = Repository(tmp_path / "clone")
    origin.git("clone", "-q", str(origin.folder), str(clone.folder))
    clone.kubepy("git", "setup")
    return clone
