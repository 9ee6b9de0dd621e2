"""``apply --prune`` and ``diff --prune``: what was applied once and is in the files no more.

Upstream: ``kubectl/pkg/cmd/apply/prune.go``, ``kubectl/pkg/cmd/diff/prune.go``, ``kubectl/pkg/util/prune/prune.go``.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubepy.api.meta import Object, annotations_of, uid_of
from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.infos import Info, info_of
from kubepy.cli.runtime.objects import LAST_APPLIED
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import errors as api_errors

DEFAULT_KINDS = (
    "configmaps", "endpoints", "persistentvolumeclaims", "pods", "replicationcontrollers", "secrets", "services",
    "jobs.batch", "cronjobs.batch", "ingresses.networking.k8s.io", "daemonsets.apps", "deployments.apps",
    "replicasets.apps", "statefulsets.apps", "namespaces", "persistentvolumes",
)  # fmt: skip
CLUSTER_SCOPE = ("Deprecated: kubectl apply will no longer prune non-namespaced resources by default when used with "
                 "the --namespace flag in a future release. To preserve the current behaviour, list the resources you "
                 "want to target explicitly in the --prune-allowlist flag.")


class Visited:
    """The objects and namespaces that a command has dealt with."""

    def __init__(self, factory: Factory) -> None:
        self.uids: set[str] = set()
        self.namespaces = {factory.namespace} if factory.namespace_given else set()

    def add_namespace(self, info: Info) -> None:
        if info.resource.namespaced:
            self.namespaces.add(info.namespace)

    def add(self, obj: Object | None) -> None:
        self.uids.add(uid_of(obj) if obj else "")


def allowed_kinds(factory: Factory, texts: list[str]) -> list[Resource]:
    """The resources of ``--prune-allowlist``: ``core/v1/ConfigMap``. Raises CliError."""
    found = []
    for text in texts:
        parts = text.split("/")
        if len(parts) != 3:
            raise CliError(f"invalid GroupVersionKind format: {text}, please follow <group/version/kind>")
        group, version, kind = "" if parts[0] == "core" else parts[0], parts[1], parts[2]
        api_version = f"{group}/{version}".lstrip("/")
        resource = factory.scheme.for_kind(api_version, kind)
        if resource is None:
            raise CliError(f"no matches for kind {quote(kind)} in version {quote(api_version)}")
        found.append(resource)
    return found


def leftovers(factory: Factory, visited: Visited, allowed: list[Resource], selector: str) -> Iterator[Info]:
    """What was applied, is selected and was not visited, in the namespaces that were. Raises CliError."""
    if not allowed:
        allowed = [factory.scheme.by_key(key) for key in DEFAULT_KINDS]
        factory.log("prune.go:71", CLUSTER_SCOPE)
    places = [(namespace, one) for namespace in sorted(visited.namespaces) for one in allowed if one.namespaced]
    places += [("", one) for one in allowed if not one.namespaced]
    for namespace, resource in places:
        for obj in _listed(factory, resource, namespace, selector):
            if LAST_APPLIED in annotations_of(obj) and uid_of(obj) not in visited.uids:
                yield info_of(resource, obj)


def _listed(factory: Factory, resource: Resource, namespace: str, selector: str) -> list[Object]:
    try:
        return factory.client.list(resource.key, namespace=namespace or None, label_selector=selector).items
    except api_errors.Status as error:
        scope = "namespaced" if resource.namespaced else "nonNamespaced"
        kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
        raise CliError(f"error pruning {scope} object {kind}: {error}") from None
