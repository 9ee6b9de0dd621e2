"""ReplicationControllers and CronJobs as they are typed."""

from __future__ import annotations

from tests.cli.conftest import Kubepy

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


def test_a_replication_controller_is_described_with_its_pods(bare: Kubepy) -> None:
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
    assert sum("SuccessfulCreate" in line and "replication-controller" in line for line in lines) == 2


def test_a_cron_job_tells_what_runs_and_what_is_due(bare: Kubepy) -> None:
    bare("init", "--nodes=1")
    bare("create", "cronjob", "hello", "--image=busybox", "--schedule=0 0 1 1 *")
    assert "due at" in (said := bare("controller", "--once").err)
    assert said.split()[-4:] == ["cronjob-controller", "cronjobs.batch/hello", "in", "default"]
    bare("create", "job", "now", "--from=cronjob/hello")
    bare("controller", "--once")
    table = bare("get", "cronjob", "hello").out.split("\n")[1].split()
    assert table[:1] + table[6:-1] == ["hello", "<none>", "False", "0", "<none>"]
    assert "UnexpectedJob" in bare("describe", "cronjob", "hello").out
