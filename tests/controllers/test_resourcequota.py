"""Status of quotas after objects are created and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from kubepy.apiserver.cluster import LocalCluster
from kubepy.controllers.resourcequota import ResourceQuotaController
from kubepy.controlplane.manager import ListWatch, Manager
from kubepy.controlplane.open import open_cluster
from kubepy.runtime.pacing import Pacing
from kubepy.runtime.reconcile import Context, Informers
from kubepy.storage.view import RecordedView
from tests.stores import disagreements

Object = dict[str, Any]


def pod(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [
                {"name": "c", "image": "web:1", "resources": {"requests": {"cpu": "250m"}}}
            ]
        },
    }


def test_quota_counts_what_is_there_and_forgets_what_has_gone(tmp_path: Path) -> None:
    cluster = open_cluster(tmp_path / "state", create=True)
    client, informers = cluster.client, Informers()
    context = Context(client, informers, cluster.clock, Pacing(), cluster.scheme)
    own = [ResourceQuotaController(context)]
    manager = Manager(
        context,
        own,
        source=ListWatch(RecordedView(cluster.store)),
    )

    def used() -> Object:
        assert manager.run_until_settled().failures == []
        status: Object = client.get("resourcequotas", "q", namespace="default")["status"]
        return status["used"]

    for name in ("a", "b", "c"):
        client.create("pods", pod(name), namespace="default")
    hard = {
        "pods": "5",
        "requests.cpu": "2",
        "count/deployments.apps": "1",
        "count/unheard.of": "1",
    }
    client.create(
        "resourcequotas",
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q"},
            "spec": {"hard": hard},
        },
        namespace="default",
    )
    assert used() == {"count/deployments.apps": "0", "pods": "3", "requests.cpu": "750m"}
    client.delete("pods", "a", namespace="default")
    ended = client.get("pods", "b", namespace="default")
    client.update(
        "pods",
        {**ended, "status": {**ended["status"], "phase": "Succeeded"}},
        namespace="default",
        subresource="status",
    )
    assert used() == {"count/deployments.apps": "0", "pods": "1", "requests.cpu": "250m"}
    assert disagreements(cluster.store) == []
    cluster.close()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    cluster = open_cluster(tmp_path / "state", create=True)
    client, informers = cluster.client, Informers()
    context = Context(client, informers, cluster.clock, Pacing(), cluster.scheme)
    own = [ResourceQuotaController(context)]
    yield Lab(
        cluster,
        Manager(
            context,
            own,
            source=ListWatch(RecordedView(cluster.store)),
        ),
    )
    cluster.close()


class Lab(NamedTuple):
    """A cluster, and a manager of the quota controller alone."""

    cluster: LocalCluster
    manager: Manager

    def make_quota(self, **hard: str) -> None:
        self.cluster.client.create(
            "resourcequotas",
            {"metadata": {"name": "q"}, "spec": {"hard": hard}},
            namespace="default",
        )
        assert self.manager.run_until_settled().failures == []

    def used(self) -> Object:
        """Return what is used after the controller has done what is due."""
        return cast(Object, self.status()["used"])

    def status(self) -> Object:
        """Return the status of the quota after the controller has done what is due."""
        assert self.manager.run_until_settled().failures == []
        quota = self.cluster.client.get("resourcequotas", "q", namespace="default")
        return cast(Object, quota["status"])


def test_object_that_goes_before_the_controller_has_heard_of_it_does_not_stay_charged(
    lab: Lab,
) -> None:
    lab.make_quota(**{"count/configmaps": "5"})
    before = lab.used()
    lab.cluster.client.create("configmaps", {"metadata": {"name": "a"}}, namespace="default")
    charged = lab.cluster.client.get("resourcequotas", "q", namespace="default")["status"]["used"]
    assert charged != before
    lab.cluster.client.delete("configmaps", "a", namespace="default")
    assert lab.used() == before


def test_pod_that_ends_before_the_controller_has_heard_of_it_does_not_stay_charged(
    lab: Lab,
) -> None:
    lab.make_quota(pods="5")
    made = lab.cluster.client.create("pods", pod("a"), namespace="default")
    lab.cluster.client.update(
        "pods",
        {**made, "status": {**made["status"], "phase": "Failed"}},
        namespace="default",
        subresource="status",
    )
    assert lab.used() == {"pods": "0"}


def test_service_that_changes_its_type_frees_what_it_used(lab: Lab) -> None:
    lab.make_quota(**{"services.nodeports": "5"})
    service = lab.cluster.client.create(
        "services",
        {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}},
        namespace="default",
    )
    assert lab.used() == {"services.nodeports": "1"}
    ports = [{"port": 80}]
    lab.cluster.client.update(
        "services",
        {**service, "spec": {**service["spec"], "type": "ClusterIP", "ports": ports}},
        namespace="default",
    )
    assert lab.used() == {"services.nodeports": "0"}


def test_quota_of_objects_that_are_served_from_now_on_gets_their_count(lab: Lab) -> None:
    lab.make_quota(**{"count/boats.example.org": "5"})
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    lab.cluster.client.create(
        "customresourcedefinitions.apiextensions.k8s.io",
        {
            "metadata": {"name": "boats.example.org"},
            "spec": {
                "group": "example.org",
                "scope": "Namespaced",
                "versions": [version],
                "names": {"plural": "boats", "kind": "Boat"},
            },
        },
    )
    assert lab.used() == {"count/boats.example.org": "0"}


@pytest.mark.parametrize("written", [
    {"hard": {"pods": "9"}, "used": {"pods": "1"}},
    {"hard": {"pods": "5"}, "used": {"pods": "0"}},
    {"hard": {"pods": "5"}},
])  # fmt: skip
def test_status_that_others_have_written_lasts_until_all_quotas_are_calculated(
    lab: Lab, written: Object
) -> None:
    lab.cluster.clock.own = datetime(2026, 1, 1, tzinfo=UTC)
    lab.make_quota(pods="5")
    lab.cluster.client.create("pods", pod("a"), namespace="default")
    before = lab.status()
    quota = lab.cluster.client.get("resourcequotas", "q", namespace="default")
    lab.cluster.client.update(
        "resourcequotas",
        {**quota, "status": written},
        namespace="default",
        subresource="status",
    )
    for seconds, expected in ((0, written), (299, written), (300, before)):
        lab.cluster.clock.own = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        assert lab.status() == expected


def test_controller_looks_at_no_quota_again_that_it_has_written_itself(lab: Lab) -> None:
    lab.make_quota(pods="5")
    lab.cluster.client.create("pods", pod("a"), namespace="default")
    lab.cluster.client.delete("pods", "a", namespace="default")
    assert lab.used() == {"pods": "0"}
    assert lab.manager.queues.all_due() == []
