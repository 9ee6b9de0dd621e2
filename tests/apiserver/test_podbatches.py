"""Requests about pods in a batch give the same, the short way and the long one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.api.meta import Object
from kubepy.apiserver.client import Client
from kubepy.apiserver.request import CreateOptions
from kubepy.apiserver.requests import creation, podbatches
from kubepy.controlplane.open import make_cluster
from kubepy.storage import frozen

NOW = "2026-11-20T10:00:00Z"
CONTAINER = {"name": "c", "image": "agent:1"}
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "name": "agent",
    "uid": "u",
    "controller": True,
}
SPECS: dict[str, Object] = {
    "plain": {},
    "resources": {
        "containers": [
            {
                **CONTAINER,
                "resources": {"limits": {"cpu": "1500m", "memory": "0.5Gi"}},
                "ports": [{"containerPort": 80}],
                "env": [{"name": "A", "value": ""}],
            }
        ]
    },
    "host network": {
        "hostNetwork": True,
        "containers": [{**CONTAINER, "ports": [{"containerPort": 80}]}],
    },
    "volumes": {
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "s"}}]
    },
    "init": {
        "initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always"}],
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
    },
    "preferred affinity": {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                    }
                ]
            }
        }
    },
    "unknown field": {"unknown": {"a": 1.0}, "dnsPolicy": ""},
    "gated": {"schedulingGates": [{"name": "example.com/gate"}]},
    "invalid": {"restartPolicy": "Sometimes"},
    "of another type": {"containers": {"name": "c"}},
    "no priority class": {"priorityClassName": "absent"},
}


def pod(spec: Object, node: str | None, **metadata: Any) -> Object:
    spec = {"containers": [dict(CONTAINER)], **spec}
    if node is not None:
        affinity = spec.get("affinity") or {}
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
        required = {
            **(affinity.get("nodeAffinity") or {}),
            podbatches.REQUIRED: {"nodeSelectorTerms": terms},
        }
        spec["affinity"] = {**affinity, "nodeAffinity": required}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": spec,
        "metadata": {
            "generateName": "agent-",
            "labels": {"app": "a"},
            "ownerReferences": [OWNER],
            **metadata,
        },
    }


def outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except Status as error:
        return str(error)


def outcomes(
    monkeypatch: pytest.MonkeyPatch,
    script: Callable[[Client], list[Any]],
    *,
    short: bool,
    expect_short: bool | None = None,
) -> list[Any]:
    """Play a script in a batch of a new cluster; return what it gives, warnings, and the pods in
    the end."""
    made, create_alike = [], podbatches.create_alike

    def count(*arguments: Any) -> Object | None:
        made.append(stored := create_alike(*arguments))
        return stored

    with monkeypatch.context() as patch:
        patch.setattr(podbatches, "create_alike", count)
        if not short:
            patch.setattr(podbatches, "memory_of", lambda scope: None)
        cluster = make_cluster("memory:", {"clock": NOW, "seed": 1})
        warnings: list[str] = []
        client = cluster.client.with_warn(warnings.append)
        with client.batch():
            results = script(client)
    if expect_short is not None and short:
        assert any(stored is not None for stored in made) == expect_short
    return [results, warnings, cluster.client.list("pods").items, cluster.store.revision]


def assert_same(
    monkeypatch: pytest.MonkeyPatch,
    script: Callable[[Client], list[Any]],
    expect_short: bool | None = None,
) -> list[Any]:
    long = outcomes(monkeypatch, script, short=False)
    assert outcomes(monkeypatch, script, short=True, expect_short=expect_short) == long
    return long


def creator(client: Client) -> Callable[..., Any]:
    return lambda body, **options: outcome(
        lambda: client.create("pods", body, namespace="default", **options)
    )


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize(
    "nodes", [(None, None, None), ("a", "b", "c"), ("a", "NO NAME", "b"), ("a", None, "a")]
)
def test_pods_of_one_template_are_as_if_each_was_made_alone(
    monkeypatch: pytest.MonkeyPatch, name: str, nodes: tuple[str | None, ...]
) -> None:
    def script(client: Client) -> list[Any]:
        return [creator(client)(pod(SPECS[name], node)) for node in nodes]

    is_usual = name in ("plain", "resources", "volumes", "preferred affinity") and nodes == (
        "a",
        "b",
        "c",
    )
    assert_same(monkeypatch, script, True if is_usual else None)


@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {"a": "b"}},
        {"ownerReferences": [OWNER, OWNER]},
        {"labels": {"a": "not valid!"}},
        {"generateName": "x" * 70 + "-"},
        {"generateName": "Not-A-Name-"},
        {"name": "fixed"},
        {"finalizers": ["a/b", "a/b"]},
        {"namespace": "other"},
        {"managedFields": []},
        {"labels": {"a": 1}},
        {"annotations": None},
    ],
    ids=str,
)
def test_unusual_metadata_is_as_if_each_was_made_alone(
    monkeypatch: pytest.MonkeyPatch, metadata: Object
) -> None:
    assert_same(
        monkeypatch, lambda client: [creator(client)(pod({}, node, **metadata)) for node in "abc"]
    )


def test_later_pod_follows_limits_written_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {
        "metadata": {"name": "limits"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
    }

    def script(client: Client) -> list[Any]:
        before = [creator(client)(pod({}, node)) for node in "ab"]
        client.create("limitranges", limits, namespace="default")
        return [*before, *(creator(client)(pod({}, node)) for node in "cd")]

    results = assert_same(monkeypatch, script, True)[0]
    cpus = [
        made["spec"]["containers"][0]["resources"].get("limits", {}).get("cpu") for made in results
    ]
    assert cpus == [None, None, "1", "1"]


@pytest.mark.parametrize(
    ("resource", "obj"),
    [
        ("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}),
        (
            "limitranges",
            {
                "metadata": {"name": "l"},
                "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
            },
        ),
    ],
)
def test_rules_of_namespace_hold_for_each_pod(
    monkeypatch: pytest.MonkeyPatch, resource: str, obj: Object
) -> None:
    def script(client: Client) -> list[Any]:
        client.create(resource, obj, namespace="default")
        return [creator(client)(pod({}, node)) for node in "abc"]

    assert_same(monkeypatch, script)


def test_field_manager_and_field_validation_go_the_long_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = [
        CreateOptions(),
        CreateOptions(field_manager="me"),
        CreateOptions(field_validation="Strict"),
        CreateOptions(field_validation="Warn"),
        CreateOptions(dry_run=True),
        CreateOptions(),
    ]
    assert_same(
        monkeypatch,
        lambda client: [
            creator(client)(pod({"unknown": 1}, "a"), options=each) for each in options
        ],
    )


def status_of(made: Object, **fields: Any) -> Object:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": NOW, "message": ""}
    return {
        **made["status"],
        "phase": "Running",
        "conditions": [condition],
        "podIPs": [{"ip": "10.0.0.1"}],
        "podIP": "10.0.0.1",
        "containerStatuses": [
            {"name": "c", "state": {"running": {}}, "lastState": {}, "image": "i", "imageID": ""}
        ],
        **fields,
    }


STATUSES: list[Object] = [
    {},
    {"phase": "Failed", "message": ""},
    {"conditions": [{"type": "not a key!", "status": "True"}]},
    {"podIPs": [{"ip": "x"}]},
    {"unknown": 1},
    {"conditions": {}},
    {"qosClass": "Guaranteed"},
    {"startTime": "never"},
    {"conditions": [{"type": "Ready", "observedGeneration": -1, "unknown": 1}]},
    {"podIPs": []},
]


def bind_and_start(client: Client, node: str, fields: Object) -> list[Any]:
    """Make a pod, bind it twice, and give it a status, a valid one, and one with other labels."""
    made = creator(client)(pod({}, node))
    name = made["metadata"]["name"]
    client.bind(name, node, namespace="default")
    bound = client.get("pods", name, namespace="default")

    def update(body: Object) -> Any:
        return outcome(
            lambda: client.update("pods", body, namespace="default", subresource="status")
        )

    return [
        update({**bound, "status": status_of(bound, **fields)}),
        update({**bound, "status": {"phase": "Failed"}}),
        update({**bound, "metadata": {**bound["metadata"], "labels": {"b": "!"}}, "status": {}}),
        outcome(lambda: client.bind(name, node, namespace="default")),
    ]


@pytest.mark.parametrize("fields", STATUSES, ids=str)
def test_binding_and_status_are_as_the_long_way_makes_them(
    monkeypatch: pytest.MonkeyPatch, fields: Object
) -> None:
    def script(client: Client) -> list[Any]:
        return [result for node in "ab" for result in bind_and_start(client, node, fields)]

    assert_same(monkeypatch, script)


def test_status_of_pod_that_batch_stored_is_not_decoded_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frozen, "is_on", False)  # frozen objects are copied
    cluster = make_cluster("memory:", {"clock": NOW, "seed": 1})
    with cluster.client.batch():
        made = creator(cluster.client)(pod({}, "a"))
        monkeypatch.setattr("kubepy.apiserver.requests.updating.decode_request", None)
        stored = cluster.client.update(
            "pods", {**made, "status": status_of(made)}, namespace="default", subresource="status"
        )
    assert stored["status"]["phase"] == "Running"
    assert stored["spec"] is made["spec"]


def test_pods_of_one_template_share_what_they_have_in_common(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frozen, "is_on", False)  # frozen objects are copied
    cluster = make_cluster("memory:", {"clock": NOW, "seed": 1})
    with cluster.client.batch():
        first, second = (creator(cluster.client)(pod({}, node)) for node in "ab")
    assert first["spec"]["containers"] is second["spec"]["containers"]
    assert [podbatches.node_of(made["spec"]) for made in (first, second)] == ["a", "b"]


def test_name_that_is_taken_is_tried_again_as_the_long_way_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(creation, "NAME_ATTEMPTS", 2)
    monkeypatch.setattr(
        "kubepy.api.clock.Ids.suffix", lambda self, *subject, number, attempt=0: f"b{attempt}"
    )
    assert_same(monkeypatch, lambda client: [creator(client)(pod({}, node)) for node in "abc"])
