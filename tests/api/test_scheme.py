"""The order of resources in discovery, and the resource that a word names
(``client-go/restmapper``)."""

from __future__ import annotations

import pytest

from kubepy.api.scheme import BUILT_IN, Resource, Scheme

FOO = Resource("foos", "Foo", "bar.com", short_names=("exmp", "f"), custom=True)
EXAMPLE = Resource("examples", "Example", "test.com", short_names=("exmp",), custom=True)
POND = Resource("ponds", "Pond", "acme.com", singular="po", short_names=("pn",), custom=True)
DEPLOYMENT = Resource("deployments", "Deployment", "acme.com", short_names=("deploy",), custom=True)
NET = Resource("ingresses", "Ingress", "net", custom=True)


def test_groups_are_in_order_of_priority() -> None:
    groups = list(dict.fromkeys(resource.group for resource in BUILT_IN))
    assert groups[:4] == ["", "apiregistration.k8s.io", "apps", "events.k8s.io"]
    assert groups[12:] == [
        "storage.k8s.io",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "scheduling.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "discovery.k8s.io",
        "resource.k8s.io",
        "flowcontrol.apiserver.k8s.io",
    ]
    assert len(groups) == len({*groups}) == 21


@pytest.mark.parametrize(
    ("word", "key", "others"),
    [
        ("exmp", "foos.bar.com", ["examples.test.com"]),
        ("exmp.test.com", "examples.test.com", []),
        ("exmp.test", "examples.test.com", []),
        ("f", "foos.bar.com", []),
        ("Example", "examples.test.com", []),
        ("po", "ponds.acme.com", []),  # a whole name goes before a short one
        ("pods", "pods", []),
        ("deploy", "deployments.apps", ["deployments.acme.com"]),
        ("deployment", "deployments.apps", []),
        ("deploy.acme.com", "deployments.acme.com", []),
        ("deployments.v1.acme.com", "deployments.acme.com", []),
        ("ev", "events", ["events.events.k8s.io"]),
        (
            "ingresses.net",
            "ingresses.net",
            [],
        ),  # an exact group goes before the beginning of another
        ("ingresses.netw", "ingresses.networking.k8s.io", []),
    ],
)
def test_word_names_resource_of_highest_priority(word: str, key: str, others: list[str]) -> None:
    scheme = Scheme(lambda: [EXAMPLE, DEPLOYMENT, NET, POND, FOO])
    resource = scheme.find(word)
    assert resource is not None
    assert resource.key == key
    assert [other.key for other in scheme.also_short_named(word)] == others
