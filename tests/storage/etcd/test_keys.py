"""Keys as a kube-apiserver writes them."""

from __future__ import annotations

import pytest

from kubepy.api.scheme import BUILT_IN
from kubepy.storage.etcd.keys import PATHS, EtcdKeys
from kubepy.storage.model import Key

# Listed from the etcd of a real v1.36 server.
REAL = {
    "/registry/pods/default/web-0": Key("pods", "default", "web-0"),
    "/registry/namespaces/default": Key("namespaces", "", "default"),
    "/registry/minions/node-1": Key("nodes", "", "node-1"),
    "/registry/controllers/default/rc": Key("replicationcontrollers", "default", "rc"),
    "/registry/services/specs/default/kubernetes": Key("services", "default", "kubernetes"),
    "/registry/services/endpoints/default/kubernetes": Key("endpoints", "default", "kubernetes"),
    "/registry/events/default/web-0.18a": Key("events", "default", "web-0.18a"),
    "/registry/deployments/infra/sick": Key("deployments.apps", "infra", "sick"),
    "/registry/daemonsets/infra/agent": Key("daemonsets.apps", "infra", "agent"),
    "/registry/controllerrevisions/infra/agent-6d": Key(
        "controllerrevisions.apps", "infra", "agent-6d"
    ),
    "/registry/ingress/default/web": Key("ingresses.networking.k8s.io", "default", "web"),
    "/registry/ingressclasses/nginx": Key("ingressclasses.networking.k8s.io", "", "nginx"),
    "/registry/leases/kube-system/x": Key("leases.coordination.k8s.io", "kube-system", "x"),
    "/registry/ipaddresses/10.0.0.1": Key("ipaddresses.networking.k8s.io", "", "10.0.0.1"),
    "/registry/poddisruptionbudgets/a/b": Key("poddisruptionbudgets.policy", "a", "b"),
    "/registry/clusterroles/system:node": Key(
        "clusterroles.rbac.authorization.k8s.io", "", "system:node"
    ),
    "/registry/horizontalpodautoscalers/a/b": Key("horizontalpodautoscalers.autoscaling", "a", "b"),
    "/registry/priorityclasses/system-node-critical": Key(
        "priorityclasses.scheduling.k8s.io", "", "system-node-critical"
    ),
    "/registry/apiextensions.k8s.io/customresourcedefinitions/crontabs.example.org": Key(
        "customresourcedefinitions.apiextensions.k8s.io", "", "crontabs.example.org"
    ),
    "/registry/apiregistration.k8s.io/apiservices/v1.apps": Key(
        "apiservices.apiregistration.k8s.io", "", "v1.apps"
    ),
    "/registry/example.org/crontabs/default/nightly": Key(
        "crontabs.example.org", "default", "nightly"
    ),
    "/registry/example.org/clusters/one": Key("clusters.example.org", "", "one"),
    # A kind of somebody else in one of Kubernetes' groups
    "/registry/policy.k8s.io/rules/a/b": Key("rules.policy.k8s.io", "a", "b"),
}

FOREIGN = [
    "/registry/masterleases/10.0.0.1",
    "/registry/peerserverleases/x",
    "/registry/ranges/servicenodeports",
    "/registry/storageversions/x",
    "/registry/leasecandidates/a/b",
    "/registry/pods",
    "/registry/pods/",
    "/registry/pods/a/",
    "/registry/pods/a/b/c",
    "/registry/services/a/b",
    "/registry/services/specs",
    "/registry/example.org/crontabs",
    "/registry/",
    "/kubepy/settings",
    "/other",
    "compact_rev_key",
]


@pytest.mark.parametrize(("path", "key"), REAL.items())
def test_key_of_a_real_server_is_read_and_written(path: str, key: Key) -> None:
    keys = EtcdKeys()
    assert keys.parse(path.encode()) == key
    assert keys.of(key) == path.encode()
    start, end = keys.range_of(key.resource, key.namespace or None)
    assert start <= path.encode() < end
    prefixed = EtcdKeys("/a/b")
    assert prefixed.of(key) == f"/a/b{path}".encode()
    assert prefixed.parse(f"/a/b{path}".encode()) == key
    assert prefixed.parse(path.encode()) is None


@pytest.mark.parametrize("path", FOREIGN)
def test_key_of_no_known_object_is_none(path: str) -> None:
    assert EtcdKeys().parse(path.encode()) is None


def test_key_that_is_no_text_is_none() -> None:
    assert EtcdKeys().parse(b"/registry/pods/default/\xff") is None


def test_every_stored_kind_has_a_key_of_its_own() -> None:
    stored = {resource.key for resource in BUILT_IN if resource.is_stored}
    assert set(PATHS) == stored - {"componentstatuses"}
    assert len(set(PATHS.values())) == len(PATHS)


def test_range_of_a_resource_holds_no_other() -> None:
    keys = EtcdKeys()
    start, end = keys.range_of("ingresses.networking.k8s.io")
    assert not start <= keys.of(Key("ingressclasses.networking.k8s.io", "", "a")) < end
    start, end = keys.range_of("services")
    assert not start <= keys.of(Key("endpoints", "a", "b")) < end
    start, end = keys.range_of("pods", "a")
    assert not start <= keys.of(Key("pods", "a-b", "c")) < end
    start, end = keys.everything
    assert start <= keys.of(Key("pods", "a", "b")) < end
    assert not start <= keys.own < end
