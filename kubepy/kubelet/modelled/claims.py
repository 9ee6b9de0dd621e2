"""The files of volumes that outlive pods: claims and directories of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubepy.api.meta import AnyObject
    from kubepy.api.objects.references import Find
    from kubepy.api.typed import Node, Pod
    from kubepy.shell.files import Tree


class ClaimFiles:
    """Loads and saves the files of volumes.

    :param find: looks up a claim or a volume.
    :param load: returns the files of a volume by its key, None where there are none.
    :param save: keeps them.
    """

    def __init__(
        self,
        find: Find,
        load: Callable[[str], Tree | None],
        save: Callable[[str, Tree], object],
    ) -> None:
        self._find = find
        self._load = load
        self._save = save

    def holds(self, volume: AnyObject) -> bool:
        """Tell whether the files of a volume outlive the pod."""
        return any(volume.get(name) for name in ("persistentVolumeClaim", "hostPath", "ephemeral"))

    def load(self, pod: Pod, volume: AnyObject, node: Node) -> Tree | None:
        """Return the files of a volume of a pod; None where it has none yet."""
        key = self.key(pod, volume, node)
        return self._load(key) if key else None

    def save(self, pod: Pod, volume: AnyObject, node: Node, tree: Tree) -> None:
        """Keep the files of a volume of a pod."""
        key = self.key(pod, volume, node)
        if key:
            self._save(key, tree)

    def key(self, pod: Pod, volume: AnyObject, node: Node) -> str:
        """Return the key of the files of a volume: that of a PersistentVolume, or of a directory of
        a node; "" for none."""
        namespace = pod["metadata"].get("namespace") or "default"
        host_path = volume.get("hostPath")
        if host_path:
            return f"hostpath/{node['metadata']['name']}{host_path.get('path', '')}"
        claim = volume.get("persistentVolumeClaim") or {}
        name = claim.get("claimName") or f"{pod['metadata'].get('name')}-{volume['name']}"
        bound = self._find("persistentvolumeclaims", namespace, name)
        if bound is None:
            return ""
        return f"pv/{(bound.get('spec') or {}).get('volumeName') or ''}"
