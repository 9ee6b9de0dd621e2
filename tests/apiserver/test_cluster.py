from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from kubepy.api.errors import Status
from kubepy.api.meta import Object, name_of
from kubepy.apiserver.client import Client
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.fault_settings import FaultSettings
from kubepy.apiserver.request import CreateOptions
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.storage import FolderError, Key, NoClusterError


def write(tmp_path: Path, path: str, text: str) -> None:
    file = tmp_path / "state" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text))
    os.utime(file, (1_800_000_000, 1_800_000_000))


def test_opening_folder_without_cluster_makes_one_only_when_asked(tmp_path: Path) -> None:
    with pytest.raises(NoClusterError):
        open_cluster(tmp_path / "state")
    assert not (tmp_path / "state").exists()
    cluster = open_cluster(tmp_path / "state", create=True)
    assert cluster.client.get("namespaces", "default")["status"] == {"phase": "Active"}
    again = open_cluster(tmp_path / "state", create=True)
    assert again.client.revision() == cluster.client.revision()


def test_observed_client_tells_of_its_own_writes_only() -> None:
    cluster = make_cluster("memory:")
    written: list[tuple[str, str]] = []

    def note(key: Key, obj: Object | None, user: Object) -> None:
        written.append((name_of(obj or {}), user["username"]))

    observed = cluster.observed(note)
    ann = observed.client.as_user({"username": "ann"})
    with observed.client.joined():
        ann.create("namespaces", {"metadata": {"name": "a"}})
        cluster.client.create("namespaces", {"metadata": {"name": "b"}})
        options = CreateOptions(dry_run=True)
        ann.create("namespaces", {"metadata": {"name": "c"}}, options=options)

    ann.get("namespaces", "a")
    assert written == [("a", "ann")]


def test_faults_are_those_of_whoever_works_with_them() -> None:
    cluster = make_cluster("memory:", {"clock": "2026-01-01T00:00:00Z"})
    faulty = cluster.with_faults(FaultSettings("conflicts", seed=7))
    faults = faulty.client.settings.faults
    assert faults is not None
    assert (faults.seed, faulty.ids.seed, faulty.client.ids.seed) == (7, 7, 7)
    assert cluster.settings.faults is cluster.client.settings.faults is None
    assert cluster.client.ids.seed is None


def test_seed_of_faults_is_drawn_once_for_a_cluster() -> None:
    cluster = make_cluster("memory:")
    first = cluster.with_faults(FaultSettings("conflicts"))
    again = cluster.with_faults(FaultSettings("conflicts"))
    assert first.settings.faults == again.settings.faults
    assert first.settings.faults is not None
    assert first.settings.faults.seed == first.drawn_seed
    assert again.drawn_seed is None


def test_clock_that_is_no_time_is_said_plainly(tmp_path: Path) -> None:
    open_cluster(tmp_path / "state", create=True).close()
    write(tmp_path, "kubepy.yaml", "formatVersion: 1\nclock: noon\n")
    with pytest.raises(FolderError, match=r"kubepy\.yaml: clock: 'noon' is not a time"):
        open_cluster(tmp_path / "state")


def test_manifest_written_into_folder_becomes_complete_object(
    client: Client, tmp_path: Path
) -> None:
    write(
        tmp_path,
        "namespaces/default/daemonsets.apps/ds.yaml",
        """\
        metadata: {name: ds}
        spec:
          selector: {matchLabels: {app: x}}
          template:
            metadata: {labels: {app: x}}
            spec: {containers: [{name: c, image: "c:1"}]}
    """,
    )
    made = client.get("daemonsets.apps", "ds", namespace="default")
    assert (
        made["metadata"].items()
        >= {
            "creationTimestamp": "2026-11-20T10:00:00Z",
            "generation": 1,
            "name": "ds",
            "namespace": "default",
        }.items()
    )
    assert made["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    assert client.get("daemonsets.apps", "ds", namespace="default") == made


def test_edit_of_file_keeps_what_makes_it_that_object(client: Client, tmp_path: Path) -> None:
    made = client.create(
        "configmaps", {"metadata": {"name": "cm"}, "data": {"k": "v"}}, namespace="default"
    )
    file = tmp_path / "state/namespaces/default/configmaps/cm.yaml"
    file.write_text(file.read_text().replace("k: v", "k: edited"))
    edited = client.get("configmaps", "cm", namespace="default")
    assert (edited["data"], edited["metadata"]["uid"]) == ({"k": "edited"}, made["metadata"]["uid"])
    assert int(edited["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        (
            "namespaces/default/configmaps/x.yaml",
            "kind: Secret\nmetadata: {name: x}\n",
            "a Secret is not of the kind of its folder, ConfigMap",
        ),
        (
            "namespaces/default/nodes/x.yaml",
            "kind: Node\nmetadata: {name: x}\n",
            "a Node belongs into no namespace",
        ),
        (
            "cluster/configmaps/x.yaml",
            "kind: ConfigMap\nmetadata: {name: x}\n",
            "a ConfigMap belongs into a namespace",
        ),
        (
            "namespaces/default/configmaps/x.yaml",
            "metadata: {name: x}\ndata: {k: [1]}\n",
            "json: cannot unmarshal array into Go struct field ConfigMap.data of type string",
        ),
    ],
)
def test_file_that_cannot_be_its_object_is_problem(
    tmp_path: Path, path: str, text: str, why: str
) -> None:
    cluster = open_cluster(tmp_path / "state", create=True)
    write(tmp_path, path, text)
    [problem] = cluster.problems()
    assert problem.path == path
    assert why in problem.reason


def test_custom_resource_is_served_as_its_definition_says(
    client: Client, cluster: LocalCluster
) -> None:
    with pytest.raises(Status, match="the server could not find the requested resource"):
        client.list("boats.harbour.example.org")
    assert cluster.scheme.find("bt") is None
    client.create(
        "customresourcedefinitions.apiextensions.k8s.io",
        {
            "metadata": {"name": "boats.harbour.example.org"},
            "spec": {
                "group": "harbour.example.org",
                "scope": "Namespaced",
                "names": {
                    "plural": "boats",
                    "singular": "boat",
                    "kind": "Boat",
                    "shortNames": ["bt"],
                    "categories": ["fleet"],
                    "listKind": "BoatList",
                },
                "versions": [
                    {
                        "name": "v1beta1",
                        "served": True,
                        "storage": False,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    },
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            }
                        },
                    },
                ],
            },
        },
    )
    resource = cluster.scheme.find("bt")
    assert resource is not None
    assert (resource.key, resource.api_version, resource.other_versions, resource.subresources) == (
        "boats.harbour.example.org",
        "harbour.example.org/v1",
        ("v1beta1",),
        ("status",),
    )
    assert [one.key for one in cluster.scheme.in_category("fleet")] == [resource.key]
    made = client.create(
        resource.key, {"metadata": {"name": "ada"}, "spec": {"length": 7}}, namespace="default"
    )
    assert made["metadata"]["generation"] == 1
    definitions = "customresourcedefinitions.apiextensions.k8s.io"
    going = client.delete(definitions, "boats.harbour.example.org")
    assert going["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert cluster.scheme.find("bt") is not None
    client.update(definitions, {**going, "metadata": {**going["metadata"], "finalizers": []}})
    assert cluster.scheme.find("bt") is None


def test_settings_written_by_hand_become_whole_cluster_that_repeats(tmp_path: Path) -> None:
    uids = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kubepy.yaml").write_text(
            "formatVersion: 1\nclock: 2026-01-01T00:00:00Z\nseed: 7\n"
        )
        with pytest.raises(Status):
            open_cluster(tmp_path / name).client.get("namespaces", "default")
        cluster = open_cluster(tmp_path / name, create=True)
        uids.append(cluster.client.get("namespaces", "default")["metadata"]["uid"])
        cluster.close()
    assert uids[0] == uids[1]


def test_kind_that_is_not_its_singular_name_is_known_in_two_cases(
    client: Client, cluster: LocalCluster
) -> None:
    client.create(
        "customresourcedefinitions.apiextensions.k8s.io",
        {
            "metadata": {"name": "boats.harbour.example.org"},
            "spec": {
                "group": "harbour.example.org",
                "scope": "Namespaced",
                "names": {
                    "plural": "boats",
                    "singular": "vessel",
                    "kind": "RowBoat",
                    "listKind": "RowBoatList",
                },
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                ],
            },
        },
    )
    words = (
        "boats",
        "vessel",
        "VESSEL",
        "rowboat",
        "RowBoat.harbour",
        "rowboat.v1.harbour.example.org",
    )
    assert {found.plural for word in words if (found := cluster.scheme.find(word))} == {"boats"}
    assert [cluster.scheme.find(word) for word in ("ROWBOAT", "rowboats")] == [None, None]


def test_seeded_uid_begins_with_milliseconds_of_own_time(tmp_path: Path) -> None:
    cluster = make_cluster(tmp_path / "state", {"clock": "2026-01-01T00:00:00Z", "seed": 7})
    made = cluster.client.create("configmaps", {"metadata": {"name": "a"}}, namespace="default")
    assert made["metadata"]["uid"].startswith("019b76da-a800-7")
    cluster.close()
