"""Stored form of a full manifest of every kind: the defaults of v1.36, the fields set by the
system, the status.

``UPDATE_GOLDEN=1 pytest tests/apiserver/test_stored_objects.py`` writes
``tests/golden/api/stored.yaml`` anew.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from kubepy.api.scheme import BUILT_IN
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import CreateOptions
from kubepy.storage.yaml import dump

Object = dict[str, Any]

GOLDEN = Path(__file__).parents[1] / "golden" / "api"
MANIFESTS, STORED = GOLDEN / "manifests.yaml", GOLDEN / "stored.yaml"
_UNSTORED = ("resourceVersion", "uid")


def manifests() -> list[Object]:
    return list(yaml.safe_load_all(MANIFESTS.read_text()))


def stored(cluster: LocalCluster, manifest: Object) -> Object:
    resource = cluster.scheme.for_kind(manifest["apiVersion"], manifest["kind"])
    assert resource is not None
    made = cluster.client.create(
        resource.key,
        manifest,
        namespace="default",
        options=CreateOptions(field_validation="Strict"),
    )
    metadata = {key: value for key, value in made["metadata"].items() if key not in _UNSTORED}
    return {**made, "metadata": metadata}


def test_manifest_exists_for_every_stored_kind() -> None:
    kinds = {(one["apiVersion"].rpartition("/")[0], one["kind"]) for one in manifests()}
    missing = [
        one.key for one in BUILT_IN if "update" in one.verbs and (one.group, one.kind) not in kinds
    ]
    assert missing == [
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    ]


def test_stored_object_of_every_kind_has_defaults_of_its_version(cluster: LocalCluster) -> None:
    found = "---\n".join(dump(stored(cluster, manifest)) for manifest in manifests())
    if os.environ.get("UPDATE_GOLDEN"):
        STORED.write_text(found)
    assert found == STORED.read_text()
