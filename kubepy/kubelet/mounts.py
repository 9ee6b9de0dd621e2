"""The file system of a container: its own layer, and over it the volumes and files that kubelet and
runtime mount.

Upstream: ``makeMounts`` in ``pkg/kubelet/kubelet_pods.go``, ``pkg/volume/util/subpath``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kubepy.api.meta import AnyObject, nested_map
from kubepy.apiserver.podtokens import PodToken
from kubepy.kubelet.containerfiles import (
    CLUSTER_DNS,
    TERMINATION_LOG,
    image_tree,
    written_files,
)
from kubepy.kubelet.environment import ContainerConfigError, ReadFile
from kubepy.kubelet.expansion import expand
from kubepy.kubelet.payloads import is_projection
from kubepy.kubelet.volumes import is_in_memory
from kubepy.quoting import quote
from kubepy.shell.files import REGULAR, FileError, FileSystem, Mount, Node, Tree

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Pod
    from kubepy.api.typed import Node as ClusterNode


class ContainerFiles:
    """Makes the file system of a container, which shares the trees of the pod's volumes.

    :param trees: by the names of volumes.
    :param variables: those that the kubelet hands to the runtime, for ``subPathExpr``.
    """

    def __init__(
        self,
        pod: Pod,
        container: Container,
        node: ClusterNode,
        trees: Mapping[str, Tree],
        variables: Mapping[str, str],
    ) -> None:
        self._pod = pod
        self._container = container
        self._node = node
        self._trees = trees
        self._variables = variables
        self._mounts: Sequence[AnyObject] = container.get("volumeMounts") or ()
        volumes: Sequence[AnyObject] = pod["spec"].get("volumes") or ()
        self._volumes = {volume["name"]: volume for volume in volumes}

    def new(self, image: Mapping[str, str], now: datetime, dns: str = CLUSTER_DNS) -> FileSystem:
        """Return the file system of a container that is created now. Raises ContainerConfigError.

        :param image: the files that rules give the image, by path.
        :param dns: the address of the cluster's DNS.
        """
        root = image_tree(
            self._pod,
            self._container,
            image,
            now,
        )
        for mount in self._mounts:
            self._prepare(mount, root, now)
        files = self.again(root, dns)
        directory = self._container.get("workingDir")
        if directory and not files.exists(directory):
            files.make_dir(directory, now=now, parents=True)
        return files

    def check(self) -> None:
        """Raise ContainerConfigError where a part of a volume is to be mounted that cannot be."""
        for mount in self._mounts:
            sub_path = self._sub_path(mount)
            if sub_path and _leads_through_file(self._tree(mount), sub_path):
                raise self._no_directory(mount)

    def _no_directory(self, mount: AnyObject) -> ContainerConfigError:
        return ContainerConfigError(
            f"failed to create subPath directory for volumeMount {quote(mount['name'])} of "
            f"container {quote(self._container['name'])}"
        )

    def again(self, root: Tree, dns: str = CLUSTER_DNS) -> FileSystem:
        """Return the file system of a container that was created before, with its own layer.
        Raises ContainerConfigError."""
        mounts: list[Mount] = []
        context = nested_map(self._container, "securityContext")
        if context.get("readOnlyRootFilesystem"):
            mounts.extend(self._read_only_layer(root))
        own_paths = {_path_of(mount) for mount in self._mounts}
        texts = written_files(self._pod, self._node, dns)
        for path, text in texts.items():
            if path in own_paths:
                continue
            data = text.encode()
            file = Node(REGULAR, 0o644, data=data)
            mounts.append(Mount(path, Tree(file)))
        for mount in self._mounts:
            mounts.append(self._mounted(mount, root))
        return FileSystem(root, mounts)

    def _read_only_layer(self, root: Tree) -> Iterator[Mount]:
        """Yield a container's own layer, in which devices and the termination message can be
        written all the same: these are mounts of the runtime."""
        yield Mount("/", root, read_only=True)
        message_path = self._container.get("terminationMessagePath")
        writable_paths = ("/dev", message_path or TERMINATION_LOG)
        for path in writable_paths:
            node = _node_at(root, path)
            if node is not None:
                yield Mount(path, Tree(node))

    def _prepare(self, mount: AnyObject, root: Tree, now: datetime) -> None:
        """Make the part of a volume that is mounted, where it is not there.

        Of a volume that shows objects the part is copied into the container's layer: what the
        volume shows later does not reach it. Raises ContainerConfigError.
        """
        sub_path = self._sub_path(mount)
        if not sub_path:
            return
        tree = self._tree(mount)
        files = FileSystem(tree)
        try:
            if not files.exists(f"/{sub_path}"):
                files.make_dir(f"/{sub_path}", now=now, parents=True, mode=tree.root.mode)
        except FileError:
            raise self._no_directory(mount) from None
        node = _node_at(tree, sub_path)
        if node is not None and self._is_shown(mount):
            copy = Node.from_json(node.to_json())
            _fix_tokens(copy)
            root.put(_path_of(mount), copy)

    def _mounted(self, mount: AnyObject, root: Tree) -> Mount:
        path = _path_of(mount)
        tree = self._tree(mount)
        read_only = bool(mount.get("readOnly")) or self._is_read_only(mount)
        is_in_memory = self._is_in_memory(mount)
        sub_path = self._sub_path(mount)
        if sub_path and self._is_shown(mount):
            copy = _node_at(root, path)
            tree = tree if copy is None else Tree(copy)
            return Mount(path, tree, read_only=True, is_in_memory=is_in_memory)
        if not sub_path:
            return Mount(path, tree, read_only=read_only, is_in_memory=is_in_memory)
        try:
            real_path = FileSystem(tree).real_path(f"/{sub_path}")
        except FileError:
            real_path = f"/{sub_path}"  # somebody has removed what was mounted
        return Mount(
            path,
            tree,
            real_path.lstrip("/"),
            read_only,
            is_in_memory,
        )

    def _sub_path(self, mount: AnyObject) -> str:
        """Return the part of the volume that is mounted, "" for all of it
        (``ExpandContainerVolumeMounts``). Raises ContainerConfigError."""
        expression = mount.get("subPathExpr")
        if not expression:
            return mount.get("subPath") or ""
        missing = set()

        def value_of(name: str) -> str:
            value = self._variables.get(name, "")
            if not value:
                missing.add(name)
            return value

        sub_path = expand(expression, value_of)
        if missing:
            raise ContainerConfigError(f"missing value for {', '.join(sorted(missing))}")
        if sub_path.startswith("/"):
            raise ContainerConfigError(f"error SubPath `{sub_path}` must not be an absolute path")
        if ".." in sub_path.split("/"):
            raise ContainerConfigError(
                f"unable to provision SubPath `{sub_path}`: must not contain '..'"
            )
        return sub_path

    def _tree(self, mount: AnyObject) -> Tree:
        """Return the tree of a volume. Raises ContainerConfigError."""
        tree = self._trees.get(mount["name"])
        if tree is None:
            raise ContainerConfigError(
                f"cannot find volume {quote(mount['name'])} to mount into container "
                f"{quote(self._container['name'])}"
            )
        return tree

    def _is_shown(self, mount: AnyObject) -> bool:
        name = mount["name"]
        volume = self._volumes.get(name, {})
        return is_projection(volume)

    def _is_in_memory(self, mount: AnyObject) -> bool:
        volume = self._volumes.get(mount["name"], {})
        return is_in_memory(volume)

    def _is_read_only(self, mount: AnyObject) -> bool:
        """Tell whether nobody can write to the volume, however it is mounted."""
        volume = self._volumes.get(mount["name"], {})
        if is_projection(volume) or volume.get("image") is not None:
            return True
        return any(
            isinstance(source, Mapping) and source.get("readOnly") for source in volume.values()
        )


def _leads_through_file(tree: Tree, sub_path: str) -> bool:
    """Tell whether a path would lie below a file."""
    files = FileSystem(tree)
    folder = posixpath.dirname(f"/{sub_path}".rstrip("/"))
    while folder != "/":
        if files.is_file(folder):
            return True
        folder = posixpath.dirname(folder)
    return False


def _fix_tokens(node: Node) -> None:
    """Let the tokens among copied files stay what they are: the kubelet renews those of a volume
    alone."""
    if node.is_draft:
        node.data = PodToken.from_bytes(node.data)._replace(is_renewed=False).to_bytes()
    for child in node.children.values():
        _fix_tokens(child)


def file_reader(trees: Mapping[str, Tree]) -> ReadFile:
    """Return a function that reads files of volumes, for variables with ``fileKeyRef``."""

    def read(volume: str, path: str) -> bytes | None:
        tree = trees.get(volume)
        if tree is None:
            return None
        node = _node_at(tree, path)
        if node is None or node.kind != REGULAR:
            return None
        return node.data

    return read


def _path_of(mount: AnyObject) -> str:
    """Return the absolute path at which a volume is mounted."""
    path = mount["mountPath"]
    absolute_path = posixpath.join("/", path)
    return posixpath.normpath(absolute_path)


def _node_at(tree: Tree, path: str) -> Node | None:
    """Return what a path of a tree leads to, links followed; None where there is nothing."""
    try:
        real_path = FileSystem(tree).real_path(posixpath.join("/", path))
    except FileError:
        return None
    node: Node | None = tree.root
    for name in real_path.split("/"):
        if name and node is not None:
            node = node.children.get(name)
    return node
