"""Generated names in a cluster with a seed: they follow from the prefix and from how many names it
has been given."""

from __future__ import annotations

import pytest

from kubepy.api.errors import Forbidden
from kubepy.api.meta import Object, name_of
from kubepy.apiserver.client import Client
from kubepy.apiserver.request import CreateOptions
from kubepy.controlplane.open import make_cluster

SETTINGS = {"clock": "2026-01-01T00:00:00Z", "seed": 7}


def config_map(prefix: str = "note-") -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": prefix}}


def generated(
    client: Client, prefix: str = "note-", namespace: str = "default", *, dry_run: bool = False
) -> str:
    return name_of(
        client.create(
            "configmaps",
            config_map(prefix),
            namespace=namespace,
            options=CreateOptions(dry_run=dry_run),
        )
    )


@pytest.fixture
def client() -> Client:
    return make_cluster("memory:", SETTINGS).client


def test_names_do_not_depend_on_other_writes(client: Client) -> None:
    other = make_cluster("memory:", SETTINGS).client
    names = []
    for number in range(3):
        other.create("configmaps", {"metadata": {"name": f"other-{number}"}}, namespace="default")
        generated(other, "else-")
        names.append(generated(other))
    assert names == [generated(client) for _ in range(3)]
    assert len(set(names)) == 3


def test_name_of_deleted_object_is_not_given_again(client: Client) -> None:
    names = []
    for _ in range(5):
        names.append(generated(client))
        client.delete("configmaps", names[-1], namespace="default")
    assert len(set(names)) == 5


def test_dry_run_and_refused_request_use_no_name(client: Client) -> None:
    fork = make_cluster("memory:", SETTINGS).client
    expected = [generated(fork) for _ in range(2)]
    assert generated(client, dry_run=True) == expected[0]
    assert generated(client) == expected[0]
    client.create(
        "resourcequotas",
        {"metadata": {"name": "none"}, "spec": {"hard": {"count/configmaps": "0"}}},
        namespace="default",
    )
    with pytest.raises(Forbidden):
        generated(client)
    client.delete("resourcequotas", "none", namespace="default")
    assert generated(client) == expected[1]


def test_prefixes_and_namespaces_have_names_of_their_own(client: Client) -> None:
    client.create("namespaces", {"metadata": {"name": "other"}})
    suffixes = {
        generated(client)[-5:],
        generated(client, "task-")[-5:],
        generated(client, namespace="other")[-5:],
    }
    assert len(suffixes) == 3
