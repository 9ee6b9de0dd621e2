"""Files whose folder is that of no resource: nothing shows their objects, and nothing acts on them.

Most come of a misspelt folder (``configmap``, ``deployment.apps``). They are objects to storage,
which knows no kinds, so that those of a definition that comes later are there then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource, Scheme
from kubepy.quoting import quote
from kubepy.storage import Key, Problem
from kubepy.storage.manifests import folder_of, not_read, path_of
from kubepy.storage.worktree import WorkTree

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class UnservedFolder(NamedTuple):
    """A folder that is read by nobody: its path, the reason, and the paths of its files."""

    path: str
    reason: str
    files: list[str]

    def problems(self) -> list[Problem]:
        return [Problem(path, 0, self.reason) for path in self.files]

    def __str__(self) -> str:
        count = (
            f"{len(self.files)} files" if len(self.files) > 1 else self.files[0].rpartition("/")[2]
        )
        return f"{self.path}: {self.reason} ({count})"


def unserved_folders(worktree: WorkTree, scheme: Scheme) -> Iterator[UnservedFolder]:
    """Yield the folders in which objects are recorded that no resource has, in order."""
    for name in worktree.recorded_resources():
        resource = scheme.built_in(name)
        if (resource is not None and resource.is_stored) or worktree.is_recorded(
            Key(DEFINITIONS, "", name)
        ):
            continue
        by_namespace: dict[str, list[Object]] = {}
        for obj in worktree.recorded(name):
            by_namespace.setdefault(obj["metadata"].get("namespace") or "", []).append(obj)
        for namespace, objects in sorted(by_namespace.items()):
            files = [path_of(Key(name, namespace, obj["metadata"]["name"])) for obj in objects]
            yield UnservedFolder(
                folder_of(name, namespace), _reason(scheme, name, namespace, objects[0]), files
            )


def with_place(scheme: Scheme, problem: Problem) -> Problem:
    """Return a problem with the name that its folder should have, where that is the problem and it
    is clear."""
    parent, *names = problem.path.split("/")
    depth = 2 if parent == "namespaces" else 1
    if len(names) <= depth or problem.reason != not_read(
        names[depth - 1], parent if depth == 1 else f"{parent}/x"
    ):
        return problem
    resource = scheme.find(names[depth - 1])
    if resource is None:
        return problem
    place = _place(resource, names[0] if depth == 2 else "", {})
    return problem._replace(reason=f"{problem.reason}: its place is {place}/")


def _reason(scheme: Scheme, name: str, namespace: str, obj: Object) -> str:
    """Say why the files of a folder are not read, and where they belong if that is clear: by the
    kind of an object in it, else by the folder's name."""
    resource = None
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if isinstance(api_version, str) and isinstance(kind, str):
        resource = scheme.for_kind(api_version, kind)
    resource = resource or scheme.find(name)
    if resource is not None and resource.is_stored and resource.key != name:
        return f"{not_read(name, namespace)}: its place is {_place(resource, namespace, obj)}/"
    if "." in name and scheme.built_in(name) is None:
        return f"is not read: there is no CustomResourceDefinition {quote(name)}"
    return not_read(name, namespace)


def _place(resource: Resource, namespace: str, obj: Object) -> str:
    """Return the folder of a resource for an object in a namespace, as far as it is known."""
    if not resource.namespaced:
        return folder_of(resource.key, "")
    chosen = namespace or (obj.get("metadata") or {}).get("namespace")
    return folder_of(resource.key, chosen) if chosen else f"namespaces/NAMESPACE/{resource.key}"
