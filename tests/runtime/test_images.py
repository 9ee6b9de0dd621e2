"""A cluster opened from an image is the same cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubepy import Cluster
from kubepy.controlplane.images import image_of, open_image
from kubepy.controlplane.open import open_cluster

LINE = "create deployment more --image=web:1 --replicas=3"
PODS = "get pods -o name"


@pytest.mark.parametrize("in_memory", [False, True])
def test_opened_image_goes_on_like_its_cluster(tmp_path: Path, in_memory: bool) -> None:
    settings = {"nodes": 2, "clock": "2026-01-01T00:00:00Z", "seed": 7}
    if in_memory:
        cluster = Cluster.temporary(**settings)
    else:
        cluster = Cluster.create(tmp_path / "state", **settings)
    cluster.run("create deployment web --image=web:1 --replicas=3", check=True)
    cluster.settle()
    with cluster._open() as local:
        image = image_of(local)
        copies = [Cluster(open_image(image)) for _ in range(2)]
    events = cluster.run("get events -o name", check=True).stdout
    assert events
    for copy in copies:
        assert copy.run("get events -o name", check=True).stdout == events
    before = cluster.run(PODS, check=True).stdout
    for each in (*copies, cluster):
        each.run(LINE, check=True)
        each.settle()
    names = [each.run(PODS, check=True).stdout for each in (*copies, cluster)]
    assert names[0] != before
    assert names == [names[0]] * 3


def test_images_of_one_cluster_have_the_same_digest(tmp_path: Path) -> None:
    cluster = Cluster.create(tmp_path / "state", nodes=1)
    cluster.close()
    opened = open_cluster(tmp_path / "state")
    first = image_of(opened)
    assert image_of(opened).digest == first.digest
    Cluster(opened).run("create configmap a", check=True)
    assert image_of(opened).digest != first.digest
