"""What is learned from pods: the rules, whom they are for, and what their comments say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubepy.apiserver.rule_settings import parse_rules
from kubepy.importing.learning import LearnedRule, learned_rules
from kubepy.importing.rulecomments import with_comments
from kubepy.storage import yaml
from tests.importing.conftest import kubepy
from tests.importing.lives import (
    DAY,
    HOUR,
    MINUTE,
    NAMESPACE,
    NOW,
    UNAUTHORIZED,
    DeploymentLife,
    crash_loop,
    ended,
    node,
    pod,
    running,
    terminated,
    uid,
    waiting,
)
from tests.importing.recorded import APP, LIVES, app, deployed, nodes

Object = dict[str, Any]
TEMPLATE = {
    "namespace": NAMESPACE,
    "image": APP,
    "selector": "pod-template-hash=h1",
    "container": "app",
}
WORKLOAD = {"namespace": NAMESPACE, "owner": "Deployment/app"}


def learned(objects: list[Object]) -> list[LearnedRule]:
    """Return what is learned; it can be read as rules."""
    rules = learned_rules(objects, NOW)
    assert len(parse_rules([rule.as_setting() for rule in rules]).rules) == len(rules)
    return rules


def said(objects: list[Object]) -> list[tuple[dict[str, str], dict[str, Any]]]:
    return [(rule.match, rule.values) for rule in learned(objects)]


def test_failure_is_for_image_and_template_and_time_for_the_workload() -> None:
    life = DeploymentLife("app", {"h0": app(), "h1": app()}, replicas=3)
    for name, seconds in (("a", 8), ("b", 21), ("c", 9)):
        life.add_pod(name, {"app": running(DAY)}, "h0", age=DAY + 30, ready_after=seconds)
    last = ended(3, 112, 100)
    life.add_pod("d", {"app": crash_loop("app-h1-d", last, 7, "5m0s")}, age=HOUR)
    failure, times = learned([*nodes(), *life.objects()])
    assert failure.match == TEMPLATE
    assert failure.values == {"runsFor": "12s", "exitCode": 3, "readyAfter": "never"}
    assert failure.comment == "Learned from 1 pod (app-h1-d): ends with exit code 3 after 12s"
    assert (times.match, times.values) == (WORKLOAD, {"readyAfter": "8s..21s"})
    assert times.comment == (
        "Learned from 3 of 4 pods (app-h0-a, app-h0-b, app-h0-c): ready 8s..21s after start"
    )


def test_failure_of_some_pods_of_a_template_is_for_these_alone() -> None:
    life = DeploymentLife("app", {"h1": app()}, replicas=2)
    life.add_pod("a", {"app": running(DAY)}, age=DAY + 30, ready_after=5)
    life.add_pod("b", {"app": crash_loop("app-h1-b", ended(1, 20, 15), 3, "40s")}, age=HOUR)
    failure, times = said([*nodes(), *life.objects()])
    assert failure[0] == {**TEMPLATE, "name": "app-h1-b"}
    assert times == (WORKLOAD, {"readyAfter": "5s"})


def test_failure_of_one_pod_of_a_daemon_set_is_for_its_node() -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "uid": uid("DaemonSet", "agent")},
    }
    labels = {"controller-revision-hash": "r1", "pod-template-generation": "1"}
    well = pod("agent-a", {"app": running(DAY)}, owner=owner, labels=labels, ready_after=0)
    message = UNAUTHORIZED.format(APP)
    ill = pod(
        "agent-b",
        {"app": waiting("ErrImagePull", message)},
        owner=owner,
        labels=labels,
        node="worker-2",
    )
    [(match, values)] = said([*nodes(), well, ill])
    assert match == {
        "namespace": NAMESPACE,
        "image": APP,
        "selector": "controller-revision-hash=r1",
        "owner": "DaemonSet/agent",
        "node": "worker-2",
        "container": "app",
    }
    assert values == {"pull": f"fails: {message}"}


def test_owner_that_the_source_does_not_hold_is_named_as_far_as_it_is_known() -> None:
    objects = deployed({"app": running(DAY)}, ready_after=7)
    alone = [obj for obj in objects if obj["kind"] not in ("ReplicaSet", "Deployment")]
    [(match, values)] = said(alone)
    assert match == {"namespace": NAMESPACE, "owner": "ReplicaSet/app-h1"}
    assert values == {"readyAfter": "7s"}


def test_pod_of_nobody_is_known_by_its_name() -> None:
    lonely = pod("lonely", {"app": crash_loop("lonely", ended(2, 20, 15), 3, "40s")})
    [(match, values)] = said([*nodes(), lonely])
    assert match == {
        "namespace": NAMESPACE,
        "image": APP,
        "name": "lonely",
        "container": "app",
    }
    assert values["exitCode"] == 2


@pytest.mark.parametrize(
    "status",
    [
        running(HOUR, restarts=1, last=ended(1, 2 * HOUR, HOUR + 1)),  # a single crash
        running(2 * DAY, restarts=9, last=ended(1, 2 * DAY + 60, 2 * DAY + 1)),  # long ago
        running(60, restarts=5, last=ended(255, 90, 61, "Unknown")),  # the node was restarted
        running(60, restarts=5, last=ended(137, 90, 61, "ContainerStatusUnknown")),
    ],
)
def test_end_that_says_nothing_of_the_next_one_is_not_learned(status: Object) -> None:
    assert all("exitCode" not in values for _, values in said(deployed({"app": status})))


def test_time_far_from_the_others_is_left_out() -> None:
    life = DeploymentLife("app", {"h1": app()}, replicas=4)
    for name, seconds in (("a", 8), ("b", 9), ("c", 11), ("d", 600)):
        life.add_pod(name, {"app": running(DAY)}, ready_after=seconds)
    [(match, values)] = said([*nodes(), *life.objects()])
    assert (match, values) == (WORKLOAD, {"readyAfter": "8s..11s"})


def test_outage_of_a_ready_pod_is_no_time_that_it_takes() -> None:
    assert said(deployed({"app": running(3 * DAY)}, ready_after=2 * DAY)) == []


def test_pod_that_takes_its_time_is_not_stuck() -> None:
    probe = {"tcpSocket": {"port": 80}}
    life = DeploymentLife("app", {"h1": app(readinessProbe=probe)}, replicas=2)
    life.add_pod("a", {"app": running(DAY)}, ready_after=170)
    life.add_pod("b", {"app": running(150, ready=False)}, age=152)
    assert said([*nodes(), *life.objects()]) == [(WORKLOAD, {"readyAfter": "2m50s"})]


def test_pull_message_comes_from_events_where_the_status_has_none() -> None:
    objects = deployed({"app": waiting("ImagePullBackOff", f'Back-off pulling image "{APP}"')})
    [(_, values)] = said(objects)
    assert values == {"pull": "fails"}
    event = {
        "kind": "Event",
        "metadata": {"name": "e", "namespace": NAMESPACE},
        "involvedObject": {"kind": "Pod", "uid": uid("Pod", "app-h1-p")},
        "reason": "Failed",
        "message": f'Failed to pull image "{APP}": unauthorized',
        "lastTimestamp": "2026-03-01T09:59:00Z",
    }
    [(_, values)] = said([*objects, event])
    assert values == {"pull": "fails: unauthorized"}


def test_probes_that_the_model_would_fail_are_answered() -> None:
    health = {"httpGet": {"path": "/healthz", "port": 8081}}
    containers: list[Object] = [
        {
            "name": "app",
            "image": "nginx:1.27",
            "ports": [{"containerPort": 8080}],
            "readinessProbe": health,
        }
    ]
    rules = said(deployed({"app": running(DAY)}, containers=containers, ready_after=0))
    assert rules == [
        ({**WORKLOAD, "container": "app"}, {"listens": [80, 8081], "http": {"/healthz": 200}})
    ]


def test_program_that_does_too_much_to_be_run_again_counts_as_unknown() -> None:
    loop = ["sh", "-c", "while true; do sleep 1; done"]
    [(match, values)] = said(
        deployed({"app": running(30 * DAY)}, containers=app(command=loop), ready_after=0)
    )
    assert match == {**WORKLOAD, "container": "app", "args": " ".join(loop)}
    assert values == {"program": "unknown"}


def test_patterns_in_names_and_commands_match_themselves_alone() -> None:
    loop = ["sh", "-c", "[ -f /etc/*.conf ] || exit 1"]
    [(match, _)] = said(
        deployed({"app": running(DAY)}, containers=app(command=loop), ready_after=0)
    )
    rule = parse_rules([{"match": match, "program": "unknown"}]).rules[0]
    assert rule.match.args is not None
    assert rule.match.args.matches(" ".join(loop))
    assert not rule.match.args.matches("sh -c [ -f /etc/a.conf ] || exit 1")


def test_time_of_jobs_is_that_of_the_pods_that_have_ended_well() -> None:
    pods = []
    for name, length in (("a", 40), ("b", 95)):
        done = terminated(ended(0, HOUR, HOUR - length))
        pods.append(pod(name, {"app": done}, phase="Succeeded", spec={"restartPolicy": "Never"}))
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "controller": True}
    jobs = []
    for each in pods:
        job_name = f"nightly-{each['metadata']['name']}"
        jobs.append(
            {
                "kind": "Job",
                "metadata": {
                    "name": job_name,
                    "namespace": NAMESPACE,
                    "ownerReferences": [owner],
                },
            }
        )
        each["metadata"]["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": job_name, "controller": True}
        ]
    assert said([*pods, *jobs]) == [
        (
            {"namespace": NAMESPACE, "owner": "CronJob/nightly", "container": "app"},
            {"runsFor": "40s..1m35s", "exitCode": 0},
        )
    ]


def test_what_follows_from_missing_objects_is_not_learned() -> None:
    assert said(LIVES["secret not found"]()) == []
    assert said(LIVES["missing volume"]()) == []
    assert said(LIVES["unschedulable"]()) == []


def test_young_pod_that_is_created_just_now_is_not_stuck() -> None:
    assert said(deployed({"app": waiting("ContainerCreating")}, age=20)) == []


def test_pod_on_a_silent_node_is_left_as_it_is() -> None:
    rules = said(LIVES["terminating on silent node"]())
    assert all("stopsAfter" not in values for _, values in rules)


def test_pod_that_should_have_stopped_never_does() -> None:
    stuck = pod("stuck", {"app": running(DAY)}, ready_after=0)
    stuck["metadata"] |= {
        "deletionTimestamp": "2026-03-01T09:50:00Z",
        "deletionGracePeriodSeconds": 30,
    }
    [rule] = learned([node("worker-1"), stuck])
    assert rule.values == {"stopsAfter": "never"}
    assert rule.comment == "Learned from 1 pod (stuck): it should have stopped 10m0s before"


def test_comments_stand_above_the_rules_and_change_nothing(tmp_path: Path) -> None:
    life = DeploymentLife("app", {"h1": app()})
    message = "a: 'b'\n# c: [\n" * 20
    last = ended(1, 20, 15, message=message)
    life.add_pod("p", {"app": crash_loop("app-h1-p", last, 3, "40s")}, age=5 * MINUTE)
    source = yaml.dump({"apiVersion": "v1", "kind": "List", "items": life.objects()})
    done = kubepy(tmp_path / "new", "import", "-", stdin=source)
    assert "learned from pods: 1 rule in kubepy.yaml" in done.out
    text = (tmp_path / "new" / "kubepy.yaml").read_text()
    comment = "  # Learned from 1 pod (app-h1-p): ends with exit code 1 after 5s\n  - "
    assert comment in text
    settings = yaml.load_all(text)[0].object
    assert settings["kubelet"]["rules"][0]["exitMessage"] == message
    kubepy(tmp_path / "new", "clock", "advance", "1m")
    assert (tmp_path / "new" / "kubepy.yaml").read_text() != ""
    assert comment in (tmp_path / "new" / "kubepy.yaml").read_text()


FLOW = "  # mine\n  rules: [{match: {image: mine-own}, readyAfter: 3s}] # first\n"


@pytest.mark.parametrize(
    "written",
    [
        f"kubelet:\n{FLOW}# end\n",
        "kubelet: {rules: [{match: {image: mine-own}, readyAfter: 3s}]}\n# end\n",
        "kubelet: {\n  rules: [\n    {match: {image: mine-own},\n    readyAfter: 3s},\n]}\n# end\n",
        "kubelet:\n  rules:\n  -\n    match: {image: mine-own}\n    readyAfter: 3s\n# end\n",
        "",
    ],
)
def test_learned_rules_have_comments_beside_rules_of_any_style(
    tmp_path: Path, written: str
) -> None:
    folder, path = tmp_path / "new", tmp_path / "new" / "kubepy.yaml"
    objects = deployed({"app": running(20)}, age=30, ready_after=5)
    dump(folder, "import", objects=objects)
    head = "# begin\nformatVersion: 1\nclock: '2026-03-01T10:00:00Z'\n"
    whole = "{formatVersion: 1, kubelet: {rules: [{match: {image: mine-own}, readyAfter: 3s}]}}\n"
    path.write_text(head + written if written else whole)
    for _ in range(2):
        dump(folder, "import", "--into", str(folder), objects=objects)
        text = path.read_text()
        rules = yaml.load_all(text)[0].object["kubelet"]["rules"]
        assert [rule["readyAfter"] for rule in rules] == ["3s", "5s"]
        assert rules[0] == {"match": {"image": "mine-own"}, "readyAfter": "3s"}
        assert text.count("# Learned from 1 pod (app-h1-p): ready 5s after start\n") == 1
        comments = ("# begin", "# mine", "# first", "# end")
        assert all(text.count(comment) == written.count(comment) for comment in comments[1:])


def test_no_rules_need_no_comments() -> None:
    assert with_comments("kubelet: {}\n", []) == "kubelet: {}\n"


def test_behaviour_none_learns_nothing(tmp_path: Path) -> None:
    objects = deployed({"app": crash_loop("app-h1-p", ended(1, 20, 15), 3, "40s")})
    source = yaml.dump({"apiVersion": "v1", "kind": "List", "items": objects})
    kubepy(tmp_path / "new", "import", "--behaviour=none", "-", stdin=source)
    assert "rules" not in (tmp_path / "new" / "kubepy.yaml").read_text()


def dump(folder: Path, *words: str, objects: list[Object]) -> str:
    source = yaml.dump({"apiVersion": "v1", "kind": "List", "items": objects})
    return kubepy(folder, *words, "-", stdin=source).out


def test_later_state_brings_its_own_rules_and_keeps_those_of_the_user(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    objects = deployed({"app": crash_loop("app-h1-p", ended(1, 20, 15), 3, "40s")})
    dump(folder, "import", objects=objects)
    path = folder / "kubepy.yaml"
    own = "  rules:\n  # mine\n  - match: {image: mine}\n    readyAfter: 3s\n"
    path.write_text(path.read_text().replace("  rules:\n", own))
    later = deployed({"app": running(20)}, age=30, ready_after=5)
    dump(folder, "import", "--into", str(folder), objects=later)
    text = path.read_text()
    assert "exit code" not in text
    assert "  # Learned from 1 pod (app-h1-p): ready 5s after start\n  - match:" in text
    rules = yaml.load_all(text)[0].object["kubelet"]["rules"]
    assert [rule["readyAfter"] for rule in rules] == ["3s", "5s"]
    assert text.index("readyAfter: 3s") < text.index("# Learned")
