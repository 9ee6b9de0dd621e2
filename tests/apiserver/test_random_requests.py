"""Random requests of any kind: each is stored soundly or refused with a status, and none ends in a
traceback.

``RANDOM_REQUESTS=2000 pytest tests/apiserver/test_random_requests.py`` tries more objects.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubepy.api.errors import Status
from kubepy.api.scheme import BUILT_IN, Resource
from kubepy.api.types import table
from kubepy.api.types.decoder import type_of
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import MERGE_PATCH, CreateOptions, Patch
from kubepy.controlplane.open import make_cluster
from tests.apiserver.conftest import NOW
from tests.apiserver.random_objects import ANYTHING, TEXT, objects
from tests.apiserver.test_stored_objects import manifests
from tests.stores import disagreements

Object = dict[str, Any]

EXAMPLES = int(os.environ.get("RANDOM_REQUESTS", "40"))
SOME = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
TYPES = {
    resource: f"{table.package_of(resource.api_version)}.{resource.kind}"
    for resource in BUILT_IN
    if "update" in resource.verbs and table.package_of(resource.api_version)
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    made = make_cluster(tmp_path_factory.mktemp("random") / "state", {"clock": NOW, "seed": 1})
    yield made
    assert disagreements(made.store) == []
    made.close()


def play(cluster: LocalCluster, resource: Resource, obj: Object, other: Object) -> None:
    """Create, replace, patch, write the status, delete; each request may be refused."""
    client, key = cluster.client, resource.key
    try:
        name = client.create(
            key, obj, namespace="default", options=CreateOptions(field_validation="Warn")
        )["metadata"]["name"]
    except Status:
        return
    content = {field: value for field, value in other.items() if field != "metadata"}
    renamed = {**content, "metadata": {"name": name}}
    for subresource in ("", *(one for one in ("status", "resize") if one in resource.subresources)):
        change(cluster, resource, renamed, subresource)
    try:
        client.delete(key, name, namespace="default")
        stuck = client.get(key, name, namespace="default")
        client.update(
            key, {**stuck, "metadata": {**stuck["metadata"], "finalizers": []}}, namespace="default"
        )
    except Status:
        return


def change(cluster: LocalCluster, resource: Resource, obj: Object, subresource: str) -> None:
    """Replace and patch an object with the same content."""
    client, name = cluster.client, obj["metadata"]["name"]
    patch = {field: value for field, value in obj.items() if field != "metadata"}
    with suppress(Status):
        client.update(resource.key, obj, namespace="default", subresource=subresource)
    with suppress(Status):
        client.patch(
            resource.key,
            name,
            Patch(MERGE_PATCH, patch),
            namespace="default",
            subresource=subresource,
        )


@st.composite
def random_requests(draw: st.DrawFn) -> tuple[Resource, Object, Object]:
    resource = draw(st.sampled_from(sorted(TYPES, key=lambda one: one.key)))
    first, second = draw(objects(TYPES[resource])), draw(objects(TYPES[resource]))
    first.pop("apiVersion", None)
    first.pop("kind", None)
    return resource, first, second


@SOME
@given(request=random_requests())
def test_random_objects_are_stored_or_refused(
    cluster: LocalCluster, request: tuple[Resource, Object, Object]
) -> None:
    play(cluster, *request)


@st.composite
def changed_manifests(draw: st.DrawFn) -> tuple[Object, Object]:
    manifest = draw(st.sampled_from(manifests()))
    return _changed(draw, manifest), _changed(draw, manifest)


def _changed(draw: st.DrawFn, manifest: Object) -> Object:
    """Return a manifest with other values at up to three random places."""
    made = copy.deepcopy(manifest)
    for _ in range(draw(st.integers(0, 3))):
        place: Any = made
        while True:
            keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if key in ("apiVersion", "kind") and place is made:
                continue
            if not isinstance(place[key], dict | list) or draw(st.integers(0, 3)) == 0:
                place[key] = draw(TEXT | ANYTHING)
                break
            place = place[key]
    return made


@SOME
@given(pair=changed_manifests())
def test_manifests_with_wrong_values_are_stored_or_refused(
    cluster: LocalCluster, pair: tuple[Object, Object]
) -> None:
    resource = cluster.scheme.for_kind(pair[0]["apiVersion"], pair[0]["kind"])
    assert resource is not None
    play(cluster, resource, *pair)


@st.composite
def random_statuses(draw: st.DrawFn) -> tuple[Object, Object]:
    """Return a valid manifest of a kind with a status, and a status for it."""
    manifest, type_name = draw(st.sampled_from(sorted(_with_status(), key=lambda one: one[1])))
    return copy.deepcopy(manifest), draw(objects(type_name))


def _with_status() -> Iterator[tuple[Object, str]]:
    """Return valid manifests, and the types of their statuses."""
    for manifest in manifests():
        kind = type_of(manifest)
        types = (
            [field.type for field in table.flat_fields(kind) if field.json == "status"]
            if kind
            else []
        )
        if types:
            yield manifest, types[0].removeprefix("*")


@SOME
@given(pair=random_statuses())
def test_random_status_is_stored_or_refused(
    cluster: LocalCluster, pair: tuple[Object, Object]
) -> None:
    manifest, status = pair
    resource = cluster.scheme.for_kind(manifest["apiVersion"], manifest["kind"])
    assert resource is not None
    play(cluster, resource, manifest, {**manifest, "status": status})


def test_kind_that_is_no_text_is_refused(cluster: LocalCluster) -> None:
    with pytest.raises(Status) as error:
        cluster.client.create(
            "configmaps", {"kind": {"a": "b"}, "metadata": {"name": "a"}}, namespace="default"
        )
    assert error.value.code == 400
    assert "Go struct field .kind of type string" in error.value.message
