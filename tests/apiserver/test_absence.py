"""The settings about what an imported source does not hold."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.apiserver.absence import AbsentObject
from kubepy.apiserver.settings import parse_settings
from kubepy.storage import FolderError

OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "namespace": "shop",
    "name": "web",
    "uid": "u",
}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "settings"}


def test_absent_objects_are_found_by_what_names_them() -> None:
    absent = parse_settings({"absent": [OWNER, MAP]}).absent
    assert absent is not None
    assert absent.owner({**OWNER, "controller": True}) == AbsentObject(
        "apps/v1", "ReplicaSet", "web", "shop", "u"
    )
    assert absent.owner({**OWNER, "uid": "other"}) is None
    assert absent.owner({**OWNER, "name": "other"}) is None
    assert absent.has("ConfigMap", "shop", "settings")
    assert not absent.has("ConfigMap", "other", "settings")
    assert not absent.has("ReplicaSet", "shop", "web")


def test_entries_are_written_as_they_are_read() -> None:
    absent = parse_settings({"absent": [OWNER, MAP]}).absent
    assert absent is not None
    assert [entry.as_setting() for entry in absent.objects] == [OWNER, MAP]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "absent: must be a list of objects that are named and not held"),
        ([1], r"absent\[0\]: must be a map of apiVersion, kind, namespace, name, uid"),
        ([{**OWNER, "colour": 1}], r"absent\[0\].colour: unknown field"),
        ([{"kind": "Pod", "name": "a"}], r"absent\[0\].apiVersion: is required"),
        ([{**OWNER, "uid": 5}], r"absent\[0\].uid: must be a string"),
    ],
)
def test_wrong_entry_is_an_error_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(FolderError, match=f"kubepy.yaml: {message}"):
        parse_settings({"absent": value})


@pytest.mark.parametrize("value", ["n", [1], {"n": True}])
def test_silent_nodes_are_names(value: Any) -> None:
    with pytest.raises(FolderError, match="silentNodes: must be a list of names of nodes"):
        parse_settings({"kubelet": {"silentNodes": value}})
