"""What containers do by annotations, rules, defaults and well-known images: who says it first."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.objects.outcomes import READY_AFTER
from kubepy.apiserver.rule_settings import Length, RuleFile, RuleSettings, parse_rules
from kubepy.kubelet import behaviours as behaviours_module
from kubepy.kubelet.behaviours import (
    Behaviour,
    Behaviours,
    answer_to,
    expanded,
    schedule_of,
    unknown_notes,
)

DEPLOYMENT = {"kind": "Deployment", "name": "web", "controller": True}


def new_pod(
    image: str = "shop:1", *, owner: str = "", annotations: Mapping[str, str] = {}, **spec: Any
) -> Any:
    kind, _, name = owner.partition("/")
    references = [{"kind": kind, "name": name, "controller": True}] if owner else []
    container = {"name": "main", "image": image}
    for field in ("command", "args", "env", "envFrom"):
        if field in spec:
            container[field] = spec.pop(field)
    return {
        "metadata": {
            "name": "web-1",
            "namespace": "shop",
            "labels": {"app": "web", "tier": "front"},
            "annotations": dict(annotations),
            "ownerReferences": references,
        },
        "spec": {"containers": [container], "nodeName": "node-1", **spec},
    }


def new_node(**annotations: str) -> Any:
    texts = {f"kubepy.dev/{name}": text for name, text in annotations.items()}
    return {"metadata": {"name": "node-1", "annotations": texts}}


def find(resource: str, namespace: str, name: str) -> Any:
    if (resource, namespace, name) == ("replicasets.apps", "shop", "web-5d9"):
        return {"metadata": {"name": name, "ownerReferences": [DEPLOYMENT]}}
    return None


def rules_of(*rules: Any) -> RuleSettings:
    return parse_rules(list(rules))


def behaviour_of(pod: Any, *rules: Any, node: Any = None, **settings: Any) -> Behaviour:
    known = Behaviours(rules_of(*rules), find=find, **settings)
    return known.of(pod, pod["spec"]["containers"][0], node)


@pytest.mark.parametrize(
    ("match", "holds"),
    [
        ({"image": "shop*"}, True),
        ({"image": "*/shop:1"}, True),
        ({"image": "docker.io/library/shop:1"}, True),
        ({"image": "shop"}, False),
        ({"image": "*/shop:2"}, False),
        ({"namespace": "sh*"}, True),
        ({"namespace": "default"}, False),
        ({"name": "web-?"}, True),
        ({"name": "web"}, False),
        ({"selector": "app=web,tier!=back"}, True),
        ({"selector": "app=web,color"}, False),
        ({"container": "m*"}, True),
        ({"container": "side*"}, False),
        ({"owner": "ReplicaSet/*"}, True),
        ({"owner": "Deployment/web"}, True),
        ({"owner": "Deployment/other"}, False),
        ({"owner": "Job/*"}, False),
        ({"node": "node-[1-3]"}, True),
        ({"node": "node-2"}, False),
        ({"args": "serve *--fast"}, True),
        ({"args": "serve"}, False),
        ({"cel": "pod.metadata.namespace == 'shop' && container.name == 'main'"}, True),
        ({"cel": "pod.metadata.labels.color == 'red'"}, False),
        ({"cel": "pod.spec.nodeName == 'node-2'"}, False),
        ({"image": "shop*", "namespace": "default"}, False),
    ],
)
def test_rule_matches_containers_for_which_all_conditions_hold(match: Any, holds: bool) -> None:
    pod = new_pod(owner="ReplicaSet/web-5d9", command=["serve"], args=["a", "--fast"])
    behaviour = behaviour_of(pod, {"match": match, "exitCode": 7})
    assert (behaviour.exit_code == 7) is holds
    assert behaviour.is_known is holds


def test_first_rule_sets_a_field_and_later_ones_others() -> None:
    behaviour = behaviour_of(
        new_pod(),
        {"match": {"image": "shop:1"}, "exitCode": 1, "readyAfter": "1s"},
        {"match": {"image": "shop*"}, "exitCode": 2, "cpu": "80m"},
    )
    assert behaviour.exit_code == 1
    assert behaviour.cpu == Decimal("0.08")
    assert behaviour.sources["exit_code"] == "rule kubepy.yaml: kubelet.rules[0]"
    assert behaviour.sources["cpu"] == "rule kubepy.yaml: kubelet.rules[1]"


def test_annotation_comes_before_node_rule_and_default() -> None:
    rule = {"match": {"image": "shop*"}, "readyAfter": "3s"}
    defaults = {READY_AFTER: "4s"}
    node = new_node(**{"ready-after": "2s"})
    annotated = new_pod(annotations={READY_AFTER: "1s"})

    def said(pod: Any, *rules: Any, node: Any = None) -> tuple[Any, str]:
        behaviour = behaviour_of(pod, *rules, node=node, defaults=defaults)
        return behaviour.ready_after, behaviour.sources["ready_after"]

    assert said(annotated, rule, node=node) == (
        Length(1.0, 1.0),
        "annotation kubepy.dev/ready-after of the pod",
    )
    assert said(new_pod(), rule, node=node) == (
        Length(2.0, 2.0),
        "annotation kubepy.dev/ready-after of node node-1",
    )
    assert said(new_pod(), rule) == (Length(3.0, 3.0), "rule kubepy.yaml: kubelet.rules[0]")
    assert said(new_pod()) == (Length(4.0, 4.0), "kubepy.yaml: kubelet.readyAfter")


def test_rule_comes_before_the_well_known_image() -> None:
    assert behaviour_of(new_pod("nginx")).listens == (80,)
    behaviour = behaviour_of(new_pod("nginx"), {"match": {"image": "nginx*"}, "listens": [8080]})
    assert behaviour.listens == (8080,)
    assert behaviour.command == ("nginx", "-g", "daemon off;")


def test_exit_code_of_a_node_counts_for_jobs_only() -> None:
    node = new_node(**{"exit-code": "3"})
    assert behaviour_of(new_pod(), node=node).exit_code is None
    assert behaviour_of(new_pod(owner="Job/sums"), node=node).exit_code == 3


def test_container_with_another_command_does_not_run_the_program_of_its_image() -> None:
    listens = behaviour_of(new_pod("nginx", command=["nginx", "-g", "daemon off;"])).listens
    assert listens == (80,)
    sleeper = behaviour_of(new_pod("nginx", command=["sleep", "3600"]))
    assert sleeper.listens is None
    assert sleeper.is_known


def test_pods_of_one_template_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[str] = []
    original = Behaviours._evaluated

    def counted(self: Any, pod: Any, *rest: Any) -> Behaviour:
        evaluated.append(pod["metadata"]["name"])
        return original(self, pod, *rest)

    monkeypatch.setattr(behaviours_module.Behaviours, "_evaluated", counted)
    known = Behaviours(rules_of({"match": {"image": "shop*"}, "cpu": 1}), find=find)
    for number in range(50):
        pod = new_pod()
        pod["metadata"]["name"] = f"web-{number}"
        pod["metadata"]["labels"]["pod-index"] = str(number)
        known.of(pod, pod["spec"]["containers"][0])
    assert evaluated == ["web-0"]


def test_changed_file_of_rules_is_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("- {match: {image: 'shop*'}, exitCode: 1}\n")
    file = RuleFile(str(tmp_path), RuleSettings(), lambda: "rules.yaml")
    known = Behaviours(file)
    pod = new_pod()
    container = pod["spec"]["containers"][0]
    assert known.of(pod, container).exit_code == 1
    assert not known.refresh()
    path.write_text("- {match: {image: 'shop*'}, exitCode: 22}\n")
    assert known.refresh()
    assert known.of(pod, container).exit_code == 22
    path.write_text("- {match: {image: 'shop*'}, exit: 22}\n")
    assert not known.refresh()
    assert known.problem.startswith("rules.yaml[0].exit: unknown field")
    assert known.of(pod, container).exit_code == 22


def test_label_that_a_selector_names_tells_pods_apart() -> None:
    known = Behaviours(rules_of({"match": {"selector": "app=web"}, "exitCode": 1}))
    web = new_pod()
    api = new_pod()
    api["metadata"]["labels"]["app"] = "api"
    codes = [known.of(pod, pod["spec"]["containers"][0]).exit_code for pod in (web, api, web)]
    assert codes == [1, None, 1]


def test_answers_are_found_by_path_and_command_line() -> None:
    behaviour = behaviour_of(
        new_pod(),
        {
            "match": {"image": "shop*"},
            "http": {"/*": 404, "/": 200, "/healthz": 500},
            "exec": {"psql *": "1 row\n", "*": {"stderr": "no such program\n", "exitCode": 127}},
        },
    )

    def status(path: str) -> int:
        schedule = schedule_of(behaviour, path)
        assert schedule is not None
        return schedule.at(0.0).status

    assert [status(path) for path in ("/", "/healthz", "/a/b")] == [200, 500, 404]
    assert answer_to(behaviour, ["psql", "-c", "select 1"]).stdout == "1 row\n"  # type: ignore[union-attr]
    assert answer_to(behaviour, ["ls"]).exit_code == 127  # type: ignore[union-attr]
    assert answer_to(behaviour_of(new_pod()), ["ls"]) is None
    assert schedule_of(behaviour_of(new_pod()), "/") is None


def test_variables_of_a_body_are_replaced_where_they_are_known() -> None:
    assert expanded("$(HOSTNAME): $(OTHER)\n", {"HOSTNAME": "web-1"}) == "web-1: $(OTHER)\n"


def test_unknown_images_and_programs_are_named_once() -> None:
    pod = new_pod("shop:1")
    known = Behaviours()
    assert unknown_notes(pod, known.of_pod(pod)) == [
        'container "main": the image "shop:1" is not known: it runs until it is stopped'
    ]
    job_pod = new_pod("shop:1", owner="Job/sums", command=["./sums"])
    assert unknown_notes(job_pod, known.of_pod(job_pod), {"main": ["./sums"]}) == [
        'container "main": "./sums" is not known: it ends with 0 after a moment'
    ]
    ruled = Behaviours(rules_of({"match": {"image": "shop*"}, "listens": [80]}))
    assert unknown_notes(pod, ruled.of_pod(pod)) == []
    assert unknown_notes(new_pod("nginx"), known.of_pod(new_pod("nginx"))) == []
