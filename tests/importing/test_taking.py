"""What a cluster takes of a source, and what it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubepy.importing.errors import SourceError
from kubepy.importing.making import ImportOptions, make_cluster
from kubepy.importing.taking import LARGEST_OBJECT, RefusedObject
from kubepy.storage import Key
from kubepy.storage.folder.files import MAX_SIZE
from tests.importing.conftest import fields, file_of, import_objects, pod, read

THINGS = Key("things.example.org", "shop", "t")


def definition(**conversion: Any) -> dict[str, Any]:
    """Return a CustomResourceDefinition of v1, which is stored, and v2."""
    schema = {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
        }
    }
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema}
        for name in ("v1", "v2")
    ]
    spec = {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {
            "plural": "things",
            "singular": "thing",
            "kind": "Thing",
            "listKind": "ThingList",
        },
        "versions": versions,
        **conversion,
    }
    return fields(
        "CustomResourceDefinition",
        "things.example.org",
        apiVersion="apiextensions.k8s.io/v1",
        spec=spec,
    )


def thing(version: str = "v1") -> dict[str, Any]:
    return fields(
        "Thing", "t", "shop", apiVersion=f"example.org/{version}", spec={"size": 3, "odd": 1}
    )


def test_custom_resource_is_taken_whatever_the_order() -> None:
    imported = import_objects([thing(), definition()])
    stored = imported.cluster.store.get(THINGS)
    assert stored is not None
    assert stored["spec"] == {"size": 3}
    assert stored["metadata"]["uid"] == "uid-of-Thing-t"
    assert imported.taken.unknown_fields == {("Thing.example.org", "spec.odd"): 1}


def test_custom_resource_without_conversion_gets_the_stored_version() -> None:
    imported = import_objects([thing("v2"), definition()])
    stored = imported.cluster.store.get(THINGS)
    assert stored is not None
    assert stored["apiVersion"] == "example.org/v1"


def test_custom_resource_that_only_a_webhook_converts_is_refused() -> None:
    client = {"url": "https://127.0.0.1:1/convert"}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    imported = import_objects(
        [thing("v2"), definition(conversion={"strategy": "Webhook", "webhook": webhook})]
    )
    (refused,) = imported.taken.refused
    assert "only a webhook can convert it" in refused.reason


def test_kind_without_a_definition_is_refused_with_its_reason() -> None:
    imported = import_objects([thing(), pod("a")])
    assert imported.taken.refused == [
        RefusedObject("Thing.example.org", "shop/t", "the source holds no definition of this kind")
    ]
    assert imported.cluster.store.get(THINGS) is None


@pytest.mark.parametrize(
    ("obj", "reason"),
    [
        ({"kind": "Pod"}, "it has no metadata"),
        ({"kind": "Pod", "metadata": {}}, "it has no name"),
        ({"kind": "Pod", "metadata": {"name": "a/b", "uid": "u"}}, "its name is invalid: "),
        ({"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "A"}}, "of its namespace"),
        ({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": 1}, "cannot be handled"),
        ({"kind": "Pod", "metadata": {"name": "a", "uid": "u"}, "spec": {}}, "Required value"),
        ({"kind": "ComponentStatus", "metadata": {"name": "a"}}, "a server computes it"),
        (
            {
                "kind": "PodSecurityPolicy",
                "apiVersion": "policy/v1beta1",
                "metadata": {"name": "a"},
            },
            "v1.36 does not have this kind",
        ),
    ],
)
def test_object_that_cannot_be_one_is_refused(obj: dict[str, Any], reason: str) -> None:
    imported = import_objects([obj, pod("kept")])
    (refused,) = imported.taken.refused
    assert reason in refused.reason
    assert imported.cluster.store.get(Key("pods", "shop", "kept")) is not None


def test_source_of_which_nothing_can_be_taken_is_an_error_with_the_first_reason() -> None:
    with pytest.raises(SourceError, match=r"Thing.example.org shop/t: the source holds no defin"):
        import_objects([thing()])


@pytest.mark.parametrize("versions", [("7", "9"), ("9", "7")])
def test_newest_state_of_an_object_counts(versions: tuple[str, str]) -> None:
    states = [
        fields("ConfigMap", "a", "shop", metadata={"resourceVersion": version}, data={"v": version})
        for version in versions
    ]
    imported = import_objects(states)
    stored = imported.cluster.store.get(Key("configmaps", "shop", "a"))
    assert stored is not None
    assert (stored["data"], stored["metadata"]["resourceVersion"]) == ({"v": "9"}, "9")


def test_resource_versions_stay_and_shared_ones_follow_in_order_of_creation() -> None:
    late, early = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"
    given = [("a", "50", late), ("b", "7", late), ("c", "7", early), ("d", "", early)]
    imported = import_objects(
        fields(
            "ConfigMap",
            name,
            "shop",
            metadata={"resourceVersion": version, "creationTimestamp": created},
        )
        for name, version, created in given
    )
    found = {name: imported.cluster.store.get(Key("configmaps", "shop", name)) for name in "abcd"}
    versions = {name: int(obj["metadata"]["resourceVersion"]) for name, obj in found.items() if obj}
    assert versions == {"a": 50, "c": 51, "d": 52, "b": 53}


def test_manifest_is_created_as_by_a_client() -> None:
    manifest = {"kind": "Service", "metadata": {"name": "web", "namespace": "shop"}}
    spec = {"ports": [{"port": 80}]}
    imported = import_objects([{**manifest, "spec": spec}])
    service = imported.cluster.store.get(Key("services", "shop", "web"))
    assert service is not None
    assert service["spec"]["clusterIP"].startswith("10.")
    assert service["metadata"]["uid"]


def test_manifest_that_is_refused_is_listed() -> None:
    manifest = {"kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": -1}]}}
    imported = import_objects([manifest, pod("a")])
    (refused,) = imported.taken.refused
    assert (refused.kind, refused.name) == ("Service", "default/web")


@pytest.mark.parametrize("keeps", [False, True])
def test_values_of_secrets_are_replaced_unless_they_are_kept(keeps: bool) -> None:
    applied = '{"kind":"Secret","data":{"a":"c2VjcmV0"},"stringData":{"b":"secret"}}'
    secret = fields(
        "Secret",
        "login",
        "shop",
        metadata={"annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}},
        data={"a": "c2VjcmV0", "b": "c2VjcmV0"},
    )
    imported = import_objects([secret], ImportOptions(keeps_secrets=keeps))
    stored = imported.cluster.store.get(Key("secrets", "shop", "login"))
    assert stored is not None
    assert list(stored["data"]) == ["a", "b"]
    assert ("c2VjcmV0" in str(stored), "secret" in str(stored["metadata"])) == (keeps, keeps)
    assert imported.replaced == (0 if keeps else 1)


def test_values_of_a_secret_that_was_emptied_are_replaced_in_what_was_applied_last() -> None:
    applied = '{"kind":"Secret","data":{"a":"c2VjcmV0"}}'
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": applied}
    secret = fields("Secret", "login", "shop", metadata={"annotations": annotations})
    imported = import_objects([secret])
    stored = imported.cluster.store.get(Key("secrets", "shop", "login"))
    assert "c2VjcmV0" not in str(stored)
    assert imported.replaced == 1


def test_object_that_no_folder_takes_is_listed() -> None:
    huge = fields("ConfigMap", "huge", "shop", data={"a": "x" * LARGEST_OBJECT})
    imported = import_objects([huge, fields("ConfigMap", "small", "shop")])
    reason = "it is larger than 3 MiB in YAML"
    assert imported.taken.refused == [RefusedObject("ConfigMap", "shop/huge", reason)]
    assert imported.cluster.store.get(Key("configmaps", "shop", "small")) is not None
    assert LARGEST_OBJECT == MAX_SIZE


def test_of_objects_with_one_uid_the_newest_is_taken() -> None:
    maps = [
        fields("ConfigMap", name, "shop", metadata={"uid": "same", "resourceVersion": revision})
        for name, revision in (("a", "10"), ("b", "12"), ("c", "11"))
    ]
    imported = import_objects(maps)
    reason = "it has the uid of ConfigMap shop/b, which is taken"
    assert imported.taken.refused == [
        RefusedObject("ConfigMap", "shop/a", reason),
        RefusedObject("ConfigMap", "shop/c", reason),
    ]
    assert imported.cluster.store.get(Key("configmaps", "shop", "b")) is not None
    assert imported.cluster.store.get(Key("configmaps", "shop", "a")) is None


def test_sources_of_two_clusters_are_refused() -> None:
    systems = [
        json.dumps(
            {"apiVersion": "v1", **fields("Namespace", "kube-system", metadata={"uid": uid})}
        )
        for uid in ("one", "two")
    ]
    content = read(file_of(systems[0], "a.json"), file_of(systems[1], "b.json"))
    message = r"^b\.json: is of another cluster than a\.json: its namespace kube-system has another"
    with pytest.raises(SourceError, match=message):
        make_cluster(content, ImportOptions(), lambda activity, number: None)
    content = read(file_of(systems[0], "a.json"), file_of(systems[0], "b.json"))
    make_cluster(content, ImportOptions(), lambda activity, number: None)
