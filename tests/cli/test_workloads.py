"""ReplicationControllers, CronJobs and stuck Deployments on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

CONTROLLER = """
apiVersion: v1
kind: ReplicationController
metadata: {name: web}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "web:1"}]}
"""


def test_replication_controller_is_described_with_its_pods(bare: Kubepy) -> None:
    bare("init", "--nodes=1")
    bare("apply", "-f", "-", stdin=CONTROLLER)
    bare("controller", "--once")
    lines = bare("describe", "rc", "web").out.splitlines()
    assert lines[:8] == [
        "Name:         web",
        "Namespace:    default",
        "Selector:     app=web",
        "Labels:       app=web",
        "Annotations:  <none>",
        "Replicas:     2 current / 2 desired",
        "Pods Status:  2 Running / 0 Waiting / 0 Succeeded / 0 Failed",
        "Pod Template:",
    ]
    assert (
        sum("SuccessfulCreate" in line and "replication-controller" in line for line in lines) == 2
    )


def test_cron_job_tells_what_runs_and_what_is_due(bare: Kubepy) -> None:
    bare("init", "--nodes=1")
    bare("create", "cronjob", "hello", "--image=busybox", "--schedule=0 0 1 1 *")
    assert "due at" in (said := bare("controller", "--once").err)
    assert said.split()[-4:] == ["cronjob-controller", "cronjobs.batch/hello", "in", "default"]
    bare("create", "job", "now", "--from=cronjob/hello")
    bare("controller", "--once")
    table = bare("get", "cronjob", "hello").out.split("\n")[1].split()
    assert table[:1] + table[6:-1] == ["hello", "<none>", "False", "0", "<none>"]
    assert "UnexpectedJob" in bare("describe", "cronjob", "hello").out


STUCK = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  progressDeadlineSeconds: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {kubepy.dev/outcome: not-ready}}
    spec: {containers: [{name: c, image: "web:1"}]}
"""
LATE = 'error: deployment "web" exceeded its progress deadline\n'
WAITING = (
    'Waiting for deployment "web" rollout to finish: 0 of 2 updated replicas are available...\n'
)


@pytest.fixture
def stuck(bare: Kubepy) -> Kubepy:
    """A function that runs a command in a cluster with a Deployment whose first rollout never
    becomes available."""
    bare("init", "--nodes=1")
    assert bare("create", "-f", "-", stdin=STUCK).status == 0
    return bare


def test_rollout_status_of_first_rollout_that_is_stuck_ends_at_its_deadline(stuck: Kubepy) -> None:
    done = stuck("rollout", "status", "deploy/web", "--timeout=20s")
    assert done == Done("Waiting for deployment spec update to be observed...\n" + WAITING, LATE, 1)
    assert stuck("rollout", "status", "deploy/web") == Done("", LATE, 1)
    assert stuck("rollout", "status", "deploy/web", "--watch=false") == Done("", LATE, 1)


def test_wait_for_first_rollout_that_is_stuck_ends_at_its_deadline(stuck: Kubepy) -> None:
    done = stuck("wait", "deploy/web", "--for=condition=Progressing=false", "--timeout=20s")
    assert done == Done("deployment.apps/web condition met\n", "", 0)


def set_clock(folder: Path, time: str) -> None:
    """Fix the cluster's clock at a time."""
    (folder / "state/kubepy.yaml").write_text(f'formatVersion: 1\nclock: "{time}"\n')


@pytest.mark.parametrize(
    ("time", "status"),
    [
        ("2026-01-01T00:00:01Z", "True ReplicaSetUpdated"),
        ("2026-01-01T00:00:02Z", "False ProgressDeadlineExceeded"),
        ("2026-01-01T00:10:00Z", "False ProgressDeadlineExceeded"),
    ],
)
def test_once_after_deadline_finds_first_rollout_stuck(
    stuck: Kubepy, folder: Path, time: str, status: str
) -> None:
    set_clock(folder, "2026-01-01T00:00:00Z")
    first = stuck("controller", "--once", "-q")
    assert first.err == (
        "due at 2026-01-01T00:00:02Z  in 2s  deployment-controller  deployments.apps/web in "
        "default\n"
    )
    set_clock(folder, time)
    assert stuck("controller", "--once", "-q").status == 0
    progressing = '{range .status.conditions[?(@.type=="Progressing")]}{.status} {.reason}{end}'
    assert stuck("get", "deploy", "web", "-o", f"jsonpath={progressing}").out == status
