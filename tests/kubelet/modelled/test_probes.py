"""The probes of modelled pods: their numbers, what they find, what follows."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.kubelet.modelled.pods import ModelledPods

from .clusters import Object, PodsCluster, shell

HEALTHY = "touch /tmp/healthy; sleep 30; rm /tmp/healthy; sleep 1000"


@pytest.fixture
def pods() -> PodsCluster:
    return PodsCluster()


def command(*words: str, **numbers: Any) -> dict[str, Any]:
    return {"exec": {"command": list(words)}, **numbers}


def get(path: str, port: int | str = 8080, **numbers: Any) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": port}, **numbers}


def test_liveness_probe_restarts_the_container_at_its_threshold(pods: PodsCluster) -> None:
    probe = command("cat", "/tmp/healthy", initialDelaySeconds=5, periodSeconds=5)
    pods.create("p", shell(HEALTHY, livenessProbe=probe))
    pods.advance(44)
    assert pods.shown("p") == "1/1 Running 0"
    unhealthy = [event for event in pods.events("p") if event[0] == "Unhealthy"]
    problem = "Liveness probe failed: cat: can't open '/tmp/healthy': No such file or directory\n"
    assert [(message, count) for _, message, count in unhealthy] == [(problem, 2)]
    pods.advance(1)
    assert pods.status("p")["restartCount"] == 1
    killing = ("Killing", "Container c failed liveness probe, will be restarted", 1)
    assert killing in pods.events("p")


def test_liveness_probe_of_a_pod_that_never_restarts_ends_it(pods: PodsCluster) -> None:
    probe = command("false", periodSeconds=1, failureThreshold=2)
    pods.create("p", shell("sleep 1000", livenessProbe=probe), restartPolicy="Never")
    pods.advance(5)
    assert pods.pod("p")["status"]["phase"] == "Failed"


def test_grace_period_of_a_probe_counts_before_that_of_the_pod(pods: PodsCluster) -> None:
    probe = command("false", periodSeconds=1, failureThreshold=1, terminationGracePeriodSeconds=3)
    stubborn = "trap '' TERM; while :; do sleep 1; done"
    pods.create("p", shell(stubborn, livenessProbe=probe), restartPolicy="Never")
    pods.advance(3)
    assert "running" in pods.state("p")
    pods.advance(2)
    assert pods.state("p")["terminated"]["exitCode"] == 137


def test_readiness_probe_decides_over_readiness(pods: PodsCluster) -> None:
    probe = command("test", "-e", "/ready", periodSeconds=5)
    pods.create("p", shell("sleep 12; touch /ready; sleep 1000", readinessProbe=probe))
    assert pods.shown("p") == "0/1 Running 0"
    pods.advance(14)
    assert pods.shown("p") == "0/1 Running 0"
    pods.advance(1)
    assert pods.shown("p") == "1/1 Running 0"
    pods.run("exec", "p", "--", "rm", "/ready")
    pods.advance(16)
    assert pods.shown("p") == "0/1 Running 0"


def test_success_threshold_asks_for_several_successes(pods: PodsCluster) -> None:
    probe = command("true", periodSeconds=5, successThreshold=3)
    pods.create("p", shell("sleep 1000", readinessProbe=probe))
    pods.advance(9)
    assert pods.shown("p") == "0/1 Running 0"
    pods.advance(1)
    assert pods.shown("p") == "1/1 Running 0"


def test_startup_probe_holds_the_other_probes_back(pods: PodsCluster) -> None:
    container = shell(
        "sleep 22; touch /started; sleep 1000",
        startupProbe=command("test", "-e", "/started", periodSeconds=5, failureThreshold=10),
        livenessProbe=command("test", "-e", "/started", periodSeconds=1, failureThreshold=1),
    )
    pods.create("p", container)
    pods.advance(24)
    assert pods.status("p")["started"] is False
    pods.advance(60)
    assert pods.status("p")["started"] is True
    assert pods.shown("p") == "1/1 Running 0"


def test_startup_probe_that_fails_restarts_the_container(pods: PodsCluster) -> None:
    probe = command("false", periodSeconds=5, failureThreshold=2)
    pods.create("p", shell("sleep 1000", startupProbe=probe))
    pods.advance(6)
    assert pods.status("p")["restartCount"] == 1
    assert "Container c failed startup probe, will be restarted" in [
        message for _, message, _ in pods.events("p")
    ]


def test_command_of_a_probe_that_takes_too_long_fails(pods: PodsCluster) -> None:
    probe = command("sleep", "5", periodSeconds=10, timeoutSeconds=2)
    pods.create("p", shell("sleep 1000", readinessProbe=probe))
    pods.advance(3)
    problem = 'Readiness probe failed: command timed out: "sleep 5" timed out after 2s'
    assert ("Unhealthy", problem, 1) in pods.events("p")


def test_request_of_a_probe_is_answered_as_a_rule_says() -> None:
    rule = {"match": {"image": "web*"}, "listens": [8080]}
    rule["http"] = {"/healthz": "200 for 10s, then 500"}
    pods = PodsCluster([rule])
    probe = get("/healthz", periodSeconds=3, failureThreshold=1)
    pods.create("p", {"name": "c", "image": "web:1", "livenessProbe": probe})
    pods.advance(11)
    assert pods.shown("p") == "1/1 Running 0"
    pods.advance(2)
    assert pods.status("p")["restartCount"] == 1
    problem = "Liveness probe failed: HTTP probe failed with statuscode: 500"
    assert problem in [message for _, message, _ in pods.events("p")]


def test_well_known_server_has_no_other_paths(pods: PodsCluster) -> None:
    probe = get("/nowhere", port=80, periodSeconds=1)
    pods.create("p", {"name": "c", "image": "nginx", "readinessProbe": probe})
    pods.create("q", {"name": "c", "image": "nginx", "readinessProbe": get("/", port=80)})
    assert pods.shown("p") == "0/1 Running 0"
    assert pods.shown("q") == "1/1 Running 0"


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ({"tcpSocket": {"port": "web"}}, 'strconv.Atoi: parsing "web": invalid syntax'),
        ({"httpGet": {"port": "web"}}, 'strconv.Atoi: parsing "web": invalid syntax'),
        ({"exec": {"command": ["/tmp/check"]}}, "stat /tmp/check: no such file or directory"),
    ],
)
def test_probe_that_cannot_be_made_has_no_result(
    pods: PodsCluster, check: Object, problem: str
) -> None:
    probe = {**check, "periodSeconds": 5, "failureThreshold": 2}
    pods.create("p", shell("sleep 1000", livenessProbe=probe))
    pods.create("r", shell("sleep 1000", readinessProbe=probe))
    pods.advance(60)
    assert pods.shown("p") == "1/1 Running 0"
    assert pods.shown("r") == "0/1 Running 0"
    reason, message, count = pods.events("p")[-1]
    assert reason == "Unhealthy"
    assert message.startswith("Liveness probe errored and resulted in unknown state: ")
    assert problem in message
    assert count > 10


def test_connection_to_a_port_where_nothing_listens_is_refused(pods: PodsCluster) -> None:
    probe = {"tcpSocket": {"port": 9999}, "periodSeconds": 1}
    pods.create("p", {"name": "c", "image": "nginx", "readinessProbe": probe})
    address = pods.pod("p")["status"]["podIP"]
    problem = f"Readiness probe failed: dial tcp {address}:9999: connect: connection refused"
    assert problem in [message for _, message, _ in pods.events("p")]


def test_probes_that_go_on_succeeding_are_not_made_again(pods: PodsCluster) -> None:
    probe = command("true", periodSeconds=1)
    pods.create("p", shell("sleep infinity", livenessProbe=probe, readinessProbe=probe))
    before = pods.pod("p")["metadata"]["resourceVersion"]
    pods.advance(86_400)
    assert pods.pod("p")["metadata"]["resourceVersion"] == before
    assert pods.shown("p") == "1/1 Running 0"


def test_timeline_draws_a_container_that_runs_again_at_once_as_available(
    pods: PodsCluster,
) -> None:
    probe = command("cat", "/tmp/x", periodSeconds=5, failureThreshold=2)
    pods.create("p", shell("sleep 1000", livenessProbe=probe))
    pods.advance(22)
    picture = pods.run("timeline", "pod/p")
    assert "10s pods/p restarted: Error" in picture
    row = next(line for line in picture.splitlines() if line.startswith("  p "))
    assert ":" not in row.partition("!")[0]


def test_process_that_sleeps_for_days_is_hardly_looked_at(
    pods: PodsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    look = ModelledPods.look

    def counted(*args: Any, **kwargs: Any) -> Any:
        looks.append(args)
        return look(*args, **kwargs)

    monkeypatch.setattr(ModelledPods, "look", counted)
    probe = command("cat", "/tmp/x", periodSeconds=5)
    pods.create("p", shell("touch /tmp/x; sleep 1000000; exit 3", livenessProbe=probe))
    pods.advance(86400)
    assert pods.shown("p") == "1/1 Running 0"
    assert len(looks) < 10
    pods.advance(1000000 - 86400)
    assert pods.status("p")["lastState"]["terminated"]["exitCode"] == 3
