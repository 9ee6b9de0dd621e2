"""``create``, ``replace`` and ``delete --raw``: the response of an API server to a write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Done, Kubepy

MAPS = "/api/v1/namespaces/default/configmaps"
NOT_ALLOWED = (
    "Error from server (MethodNotAllowed): the server does not allow this method on the "
    "requested resource\n"
)


def send(kubepy: Kubepy, verb: str, path: str, body: Any) -> Any:
    done = kubepy(verb, "--raw", path, "-f", "-", stdin=json.dumps(body))
    assert (done.err, done.status) == ("", 0)
    return json.loads(done.out)


def test_post_to_collection_creates_object_of_its_kind(kubepy: Kubepy) -> None:
    made = send(kubepy, "create", MAPS, {"metadata": {"name": "paint"}, "data": {"colour": "red"}})
    assert (made["kind"], made["metadata"]["managedFields"][0]["manager"]) == (
        "ConfigMap",
        "kubectl",
    )
    assert kubepy("get", "cm", "paint", "-o", "jsonpath={.data}").out == '{"colour":"red"}'


def test_put_replaces_object_of_its_path(paint: Kubepy) -> None:
    named = {"metadata": {"name": "paint"}, "data": {"colour": "blue"}}
    assert send(paint, "replace", f"{MAPS}/paint", named)["data"] == {"colour": "blue"}
    assert paint("get", "cm", "paint", "-o", "jsonpath={.data.colour}").out == "blue"


def test_put_without_name_is_refused(paint: Kubepy) -> None:
    done = paint("replace", "--raw", f"{MAPS}/paint", "-f", "-", stdin='{"data": {}}')
    assert done.err == (
        "Error from server (BadRequest): the name of the object (paint based on URL) was "
        "undeterminable: name must be provided\n"
    )


def test_namespace_is_finalized_through_its_subresource(kubepy: Kubepy) -> None:
    namespace = json.loads(kubepy("create", "ns", "old", "-o", "json").out)
    namespace["spec"] = {"finalizers": []}
    assert send(kubepy, "replace", "/api/v1/namespaces/old/finalize", namespace)["spec"] == {}


def test_pod_is_bound_and_evicted_through_its_subresources(kubepy: Kubepy) -> None:
    kubepy("run", "web", "--image=nginx")
    pod, done = (
        "/api/v1/namespaces/default/pods/web",
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201},
    )
    named = {"metadata": {"name": "web"}}
    assert (
        send(
            kubepy,
            "create",
            f"{pod}/binding",
            {**named, "target": {"kind": "Node", "name": "node-1"}},
        )
        == done
    )
    assert kubepy("get", "pod", "web", "-o", "jsonpath={.spec.nodeName}").out == "node-1"
    assert (
        send(
            kubepy,
            "create",
            f"{pod}/eviction",
            {**named, "deleteOptions": {"gracePeriodSeconds": 0}},
        )
        == done
    )
    assert kubepy("get", "pods", "-o", "name") == Done("", "", 0)


@pytest.mark.parametrize("kind", ["Eviction", "Binding"])
def test_raw_pod_request_prints_its_name(kubepy: Kubepy, kind: str) -> None:
    kubepy("run", "web", "--image=nginx")
    path = f"/api/v1/namespaces/default/pods/web/{kind.lower()}"
    assert kubepy(
        "create", "--raw", path, "-f", "-", stdin='{"metadata":{"name":"other"}}'
    ) == Done(
        "", f"Error from server (BadRequest): name in URL does not match name in {kind} object\n", 1
    )


def test_deletion_answers_with_storage_class_that_is_gone(kubepy: Kubepy) -> None:
    path = "/apis/storage.k8s.io/v1/storageclasses"
    send(
        kubepy,
        "create",
        path,
        {"metadata": {"name": "slow"}, "provisioner": "kubepy.dev/simulated"},
    )
    assert json.loads(kubepy("delete", "--raw", f"{path}/slow").out)["kind"] == "StorageClass"


def test_deletion_answers_with_status_or_with_what_is_left(paint: Kubepy) -> None:
    uid = paint("get", "cm", "paint", "-o", "jsonpath={.metadata.uid}").out
    assert json.loads(paint("delete", "--raw", f"{MAPS}/paint").out) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "paint", "kind": "configmaps", "uid": uid},
    }
    paint("create", "ns", "old")
    left = json.loads(paint("delete", "--raw", "/api/v1/namespaces/old").out)
    assert (left["kind"], left["status"]["phase"]) == ("Namespace", "Terminating")


def test_deletion_keeps_to_options_of_its_body_and_of_its_query(paint: Kubepy) -> None:
    conflict = send_failing(paint, f"{MAPS}/paint", {"preconditions": {"uid": "another"}})
    assert conflict.startswith("Error from server (Conflict): ")
    assert paint("delete", "--raw", f"{MAPS}/paint?dryRun=All").status == 0
    assert paint("get", "cm", "paint", "-o", "name").out == "configmap/paint\n"


def send_failing(kubepy: Kubepy, path: str, body: Any) -> str:
    done = kubepy("delete", "--raw", path, "-f", "-", stdin=json.dumps(body))
    assert (done.out, done.status) == ("", 1)
    return done.err


def test_collection_is_deleted_by_its_path_and_labels(kubepy: Kubepy) -> None:
    for name in ("a", "b"):
        kubepy("create", "cm", name)
    kubepy("label", "cm", "a", "old=yes")
    gone = json.loads(kubepy("delete", "--raw", f"{MAPS}?labelSelector=old%3Dyes").out)
    assert (gone["kind"], [one["metadata"]["name"] for one in gone["items"]]) == (
        "ConfigMapList",
        ["a"],
    )
    assert kubepy("get", "cm", "-o", "name").out == "configmap/b\n"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "kind: Pod\nmetadata:\n  name: some-name\n",
            "invalid character 'k' looking for beginning of value "
            "(6b696e643a20506f640a6d657461646174613a0a20206e616d653a20736f ...)",
        ),
        ('{"kind": ', 'unexpected end of JSON input ({"kind": )'),
        ("", "unexpected end of JSON input (<empty>)"),
    ],
)
def test_body_that_is_not_json_is_shown(kubepy: Kubepy, body: str, why: str) -> None:
    assert kubepy("create", "--raw", MAPS, "-f", "-", stdin=body) == Done(
        "",
        "Error from server (BadRequest): the object provided is unrecognized (must be of type "
        "ConfigMap): couldn't "
        f"get version/kind; json parse error: {why}\n",
        1,
    )


def test_methods_that_path_does_not_know(paint: Kubepy) -> None:
    for verb, path in (
        ("create", f"{MAPS}/paint"),
        ("replace", MAPS),
        ("create", "/api/v1/nodes/a/status"),
    ):
        assert paint(verb, "--raw", path, "-f", "-", stdin="{}") == Done("", NOT_ALLOWED, 1)
    assert paint("delete", "--raw", "/api/v1/configmaps") == Done("", NOT_ALLOWED, 1)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("create --edit -f a", "--raw and --edit are mutually exclusive"),
        ("create -l a=b -f a", "--raw and --selector (-l) are mutually exclusive"),
        ("create -f a -f b", "--raw can only use a single local file or stdin"),
        ("create -f https://a", "--raw cannot read from a url"),
        ("replace -R -f a", "--raw and --recursive are mutually exclusive"),
        ("replace -o yaml -f a", "--raw and --output are mutually exclusive"),
        ("delete -i", "--interactive can not be used with --raw"),
        ("delete -f a -f b", "--raw can only use a single local file or stdin"),
    ],
)
def test_flags_that_do_not_go_with_it(kubepy: Kubepy, words: str, error: str) -> None:
    assert kubepy(*words.split(), "--raw", MAPS) == Done("", f"error: {error}\n", 1)


def test_file_that_is_not_there(kubepy: Kubepy, folder: Path) -> None:
    assert kubepy("create", "--raw", MAPS, "-f", "no.json") == Done(
        "", "error: open no.json: no such file or directory\n", 1
    )
