"""Sessions with the processes of containers: who may feed the first one, and how long."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from kubepy.kubelet.sessions import AttachSession, attach_to, exec_in
from tests.kubelet.modelledcluster import START, ModelledCluster

READS = ["sh", "-c", "while read x; do echo got $x; done; echo end"]


@pytest.fixture
def cluster(tmp_path: Path) -> ModelledCluster:
    cluster = ModelledCluster(tmp_path / "state")
    cluster.node("n")
    return cluster


def attached(
    cluster: ModelledCluster, *, feeds: bool = True, is_once: bool = False
) -> AttachSession:
    """Make a pod whose container reads lines, unless there is one, and attach to it."""
    names = [pod["metadata"]["name"] for pod in cluster.client.list("pods").items]
    if not names:
        container: dict[str, Any] = {"name": "c", "image": "busybox", "stdin": True}
        container["command"] = READS
        if is_once:
            container["stdinOnce"] = True
        spec = {"restartPolicy": "Never", "containers": [container]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        cluster.client.create("pods", pod, namespace="default")
        cluster.settle()
    return attach_to(cluster.client, pod_of(cluster), "c", stdin=feeds)


def pod_of(cluster: ModelledCluster) -> Any:
    return cluster.client.get("pods", "p", namespace="default")


def output(cluster: ModelledCluster, session: AttachSession) -> str:
    result = session.step(cluster.client)
    cluster.settle()
    return b"".join(data for _, data in result.output).decode()


def phase(cluster: ModelledCluster) -> str:
    cluster.settle_until(cluster.cluster.clock.now() + timedelta(seconds=1))
    return cast("str", pod_of(cluster)["status"]["phase"])


def test_stdin_once_ends_with_first_session(cluster: ModelledCluster) -> None:
    session = attached(cluster, is_once=True)
    assert phase(cluster) == "Running"
    session.write(cluster.client, b"one\n")
    session.write(cluster.client, None)
    assert phase(cluster) == "Succeeded"
    assert output(cluster, session) == "got one\nend\n"


def test_stdin_once_ends_when_first_session_is_left(cluster: ModelledCluster) -> None:
    session = attached(cluster, is_once=True)
    session.leave(cluster.client)
    assert phase(cluster) == "Succeeded"


def test_stdin_stays_open_for_next_session(cluster: ModelledCluster) -> None:
    first = attached(cluster)
    first.write(cluster.client, b"one\n")
    first.write(cluster.client, None)
    first.leave(cluster.client)
    assert phase(cluster) == "Running"
    second = attached(cluster)
    second.write(cluster.client, b"two\n")
    assert output(cluster, second) == "got two\n"
    assert phase(cluster) == "Running"


def test_session_that_does_not_feed_leaves_stdin_alone(cluster: ModelledCluster) -> None:
    session = attached(cluster, feeds=False, is_once=True)
    session.write(cluster.client, b"one\n")
    session.leave(cluster.client)
    assert phase(cluster) == "Running"


def test_exec_that_is_left_has_its_input_closed(cluster: ModelledCluster) -> None:
    attached(cluster)
    session = exec_in(
        cluster.client, pod_of(cluster), "c", ["sh", "-c", "cat; echo bye"], stdin=True
    )
    assert session.step(cluster.client).exit_code is None
    session.leave(cluster.client)
    result = session.step(cluster.client)
    assert (result.exit_code, result.output[0][1]) == (0, b"bye\n")


def test_exec_with_terminal_that_is_left_is_hung_up(cluster: ModelledCluster) -> None:
    attached(cluster)
    words = ["sh", "-c", "sleep 100"]
    session = exec_in(cluster.client, pod_of(cluster), "c", words, stdin=True, tty=True)
    session.leave(cluster.client)
    assert session.step(cluster.client).exit_code == 129
    assert cluster.cluster.clock.now() == START


@pytest.mark.parametrize("part_of_second", [0.0, 0.3, 0.7])
def test_pod_that_just_ran_ends_at_once_after_a_command_was_run_in_it(
    cluster: ModelledCluster, part_of_second: float
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    }
    cluster.client.create("pods", pod, namespace="default")
    cluster.settle()
    cluster.settle_until(START + timedelta(seconds=5 + part_of_second))
    session = exec_in(cluster.client, pod_of(cluster), "c", ["echo", "out"])
    assert output(cluster, session) == "out\n"
    cluster.settle_until(cluster.cluster.clock.now() + timedelta(seconds=part_of_second))
    cluster.client.delete("pods", "p", namespace="default")
    cluster.settle()
    assert cluster.client.list("pods").items == []
