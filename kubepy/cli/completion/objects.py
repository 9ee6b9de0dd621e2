"""What the state folder has: names of objects, their containers, labels and revisions."""

from __future__ import annotations

from collections.abc import Iterable

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError, unless_missing
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.verbs import Invocation


def names(factory: Factory, kind: str) -> list[str]:
    """The names of a type's objects, in the namespace that counts."""
    resource = factory.scheme.find(kind)
    if resource is None or not factory.has_cluster:
        return []
    namespace = factory.namespace if resource.namespaced else None
    return [one["metadata"]["name"] for one in factory.client.list(resource.key, namespace=namespace).items]


def accounts(factory: Factory) -> list[str]:
    """Service accounts of all namespaces, as ``<namespace>:<name>``."""
    if not factory.has_cluster:
        return []
    found = factory.client.list("serviceaccounts").items
    return [f"{one['metadata']['namespace']}:{one['metadata']['name']}" for one in found]


def named(given: Invocation) -> tuple[str, str] | None:
    """The type and the name of the object that the words begin with."""
    if given.args and "/" in given.args[0]:
        kind, _, name = given.args[0].partition("/")
        return kind, name
    return (given.args[0], given.args[1]) if len(given.args) > 1 else None


def _found(factory: Factory, given: Invocation) -> tuple[Resource, Object] | None:
    found = named(given)
    resource = factory.scheme.find(found[0]) if found else None
    if found is None or resource is None or not factory.has_cluster:
        return None
    obj = unless_missing(factory.client.get, resource.key, found[1], namespace=factory.namespace)
    return None if obj is None else (resource, obj)


def _containers(factory: Factory, given: Invocation) -> Iterable[Object]:
    from kubepy.cli.set.pod_specs import all_containers, pod_spec_of

    found = _found(factory, given)
    if found is None:
        return []
    try:
        return list(all_containers(pod_spec_of(found[1])))
    except CliError:
        return []  # a kind without containers


def containers(factory: Factory, given: Invocation) -> list[str]:
    """The names of the containers of the object that the words begin with."""
    return [one["name"] for one in _containers(factory, given)]


def variables(factory: Factory, given: Invocation) -> list[str]:
    """The names of the variables that its containers have."""
    return list(dict.fromkeys(one["name"] for container in _containers(factory, given)
                              for one in container.get("env") or ()))


def metadata_keys(factory: Factory, given: Invocation, field: str) -> list[str]:
    """The keys of its labels or annotations."""
    found = _found(factory, given)
    return sorted(found[1]["metadata"].get(field) or {}) if found else []


def revisions(factory: Factory, given: Invocation) -> list[str]:
    """The numbers of its revisions."""
    from kubepy.cli.rollout.history import KEEPERS, revisions_of

    found = _found(factory, given)
    if found is None or found[0].key not in KEEPERS:
        return []
    return [str(one.number) for one in revisions_of(factory.client, *found)]
