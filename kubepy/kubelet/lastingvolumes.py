"""Volumes that outlive pods: claims, and paths of nodes.

Their trees are small values of the cluster. That of a claim is ``volume/NAME``, by its
PersistentVolume, which a state folder keeps as files (``docs/state-folder.md``); that of all host
paths of a node is ``host/NODE``. Upstream: ``pkg/volume/hostpath``, ``getPVCExtractPV`` in
``pkg/kubelet/volumemanager/populator``.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.meta import AnyObject, name_of, namespace_of, nested_map, status_of
from kubepy.api.objects.references import Find
from kubepy.api.objects.volumes import capacity
from kubepy.kubelet.containerfiles import HOSTS, node_hosts_file
from kubepy.kubelet.payloads import MountError, fs_group_of
from kubepy.kubelet.volumes import ON_DISK_MODE, give_to_group
from kubepy.quoting import quote
from kubepy.shell.files import FOLDER, REGULAR, Node, Tree

if TYPE_CHECKING:
    from kubepy.api.typed import Node as ClusterNode
    from kubepy.api.typed import Pod

VOLUME_VALUE, HOST_VALUE = "volume/", "host/"  # the first is known to stores
MOST_BYTES = 1 << 20  # that a volume holds, whatever its capacity: an etcd takes no larger value
CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
NODE_DIRECTORIES = (
    "bin",
    "boot",
    "dev",
    "etc",
    "etc/kubernetes",
    "etc/ssl/certs",
    "home",
    "lib",
    "lib/modules",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "tmp",
    "usr",
    "usr/share/ca-certificates",
    "var/lib/kubelet/pods",
    "var/log/containers",
    "var/log/pods",
    "var/run",
)
# The model has no sockets and devices: what a manifest names is taken to be there, as a file.
TYPES_OF_FILES = ("FileOrCreate", "Socket", "CharDevice", "BlockDevice")

Value = Callable[[str], "str | None"]
SetValues = Callable[[Mapping[str, "str | None"]], None]


class LastingPlace(NamedTuple):
    """The place where a volume is kept.

    :ivar value: the name of the small value.
    :ivar path: of a node, the path in its file system.
    :ivar type: of a host path, what must be there.
    :ivar limit: the most bytes that it holds.
    """

    value: str
    path: str = ""
    type: str = ""
    limit: int = MOST_BYTES


class LastingVolumes:
    """Loads and saves the volumes that outlive pods.

    :param value: returns a small value of the cluster.
    :param set_values: sets some; None removes one.
    :param find: looks up claims and volumes.
    """

    def __init__(self, value: Value, set_values: SetValues, find: Find) -> None:
        self._value = value
        self._set_values = set_values
        self._find = find

    def holds(self, volume: AnyObject) -> bool:
        """Tell whether a volume of a pod outlives it."""
        return any(
            volume.get(field) is not None
            for field in ("persistentVolumeClaim", "ephemeral", "hostPath")
        )

    def load(self, pod: Pod, volume: AnyObject, now: datetime) -> Tree:
        """Return the files of a volume. Raises MountError."""
        place = place_of(pod, volume, self._find)
        if place.path:
            return self._load_path(place, now)
        text = self._value(place.value)
        if text is None:
            tree = Tree(Node(FOLDER, ON_DISK_MODE, now))
        else:
            tree = Tree.from_json(json.loads(text))
        tree.limit = place.limit
        if fs_group_of(pod) is not None:
            give_to_group(tree, pod)
        return tree

    def save(self, pod: Pod, volume: AnyObject, tree: Tree) -> None:
        """Keep the files of a volume. Raises MountError where it is not there any more."""
        place = place_of(pod, volume, self._find)
        if place.path == "/":
            tree = Tree(tree.root)
        elif place.path:
            host = self._host(place.value)
            host.put(place.path, tree.root)
            tree = host
        self._set_values({place.value: json.dumps(tree.to_json())})

    def _host(self, value: str) -> Tree:
        """Return the file system of a node."""
        text = self._value(value)
        if text is not None:
            return Tree.from_json(json.loads(text))
        host = Tree()
        for directory in NODE_DIRECTORIES:
            host.put(directory, Node(FOLDER, 0o755))
        node = self._find("nodes", "", value.removeprefix(HOST_VALUE))
        if node is not None:
            data = node_hosts_file(cast("ClusterNode", node)).encode()
            host.put(HOSTS, Node(REGULAR, 0o644, data=data))
        return host

    def _load_path(self, place: LastingPlace, now: datetime) -> Tree:
        """Return what is at a path of a node, made where it may be. Raises MountError."""
        host = self._host(place.value)
        node = _node_at(host, place.path)
        check_host_path(place.path, place.type, node)
        if node is None:
            if place.type in TYPES_OF_FILES:
                node = Node(REGULAR, 0o644, now)
            else:
                node = Node(FOLDER, 0o755, now)
            host.put(place.path, node)
            value = json.dumps(host.to_json())
            self._set_values({place.value: value})
        tree = Tree(node)
        tree.limit = place.limit - host.size + tree.size  # the paths of a node are one value
        return tree


def place_of(pod: Pod, volume: AnyObject, find: Find) -> LastingPlace:
    """Return where a volume of a pod is kept. Raises MountError for one that is not there, or not
    bound."""
    source = volume.get("hostPath")
    if source is not None:
        return _place_on_node(pod, source)
    persistent_volume = volume_of_claim(pod, volume, find)
    spec = persistent_volume["spec"]
    for field in ("hostPath", "local"):
        if spec.get(field) is not None:
            return _place_on_node(pod, spec[field])
    size = capacity(persistent_volume).value()
    name = name_of(persistent_volume)
    return LastingPlace(f"{VOLUME_VALUE}{name}", limit=min(size, MOST_BYTES))


def _place_on_node(pod: Pod, source: AnyObject) -> LastingPlace:
    path = posixpath.join("/", source["path"])
    node = pod["spec"].get("nodeName") or ""
    return LastingPlace(
        f"{HOST_VALUE}{node}",
        posixpath.normpath(path),
        source.get("type") or "",
    )


def claim_name(pod: Pod, volume: AnyObject) -> str:
    """Return the name of the claim that a volume of a pod uses, "" for another kind of volume."""
    if volume.get("ephemeral") is not None:
        return f"{name_of(pod)}-{volume['name']}"
    return nested_map(volume, "persistentVolumeClaim").get("claimName") or ""


def volume_of_claim(pod: Pod, volume: AnyObject, find: Find) -> AnyObject:
    """Return the PersistentVolume behind a volume of a pod. Raises MountError
    (``getPVCExtractPV``)."""
    name = claim_name(pod, volume)
    namespace = namespace_of(pod)
    claim = find(CLAIMS, namespace, name)
    problem = ""
    volume_name = ""
    if claim is None:
        problem = (
            f"failed to fetch PVC from API server: persistentvolumeclaims {quote(name)} not found"
        )
    else:
        volume_name = claim["spec"].get("volumeName") or ""
        if status_of(claim).get("phase") != "Bound" or not volume_name:
            problem = "PVC is not bound"
    persistent_volume = find(VOLUMES, "", volume_name) if not problem else None
    if persistent_volume is None:
        problem = problem or (
            f"failed to fetch PV {volume_name} from API server: persistentvolumes "
            f"{quote(volume_name)} not found"
        )
        raise MountError(f"error processing PVC {namespace}/{name}: {problem}")
    return persistent_volume


def unprocessed_claims(pod: Pod, find: Find) -> str:
    """Return what a kubelet says of claims that it cannot mount, as the message of a
    ``FailedMount``; "" where there is none."""
    volumes = []
    problems = []
    for volume in pod["spec"].get("volumes") or ():
        if not claim_name(pod, volume):
            continue
        try:
            volume_of_claim(pod, volume, find)
        except MountError as error:
            volumes.append(volume["name"])
            problems.append(str(error))
    if not volumes:
        return ""
    names = f"[{' '.join(sorted(volumes))}]"
    return (
        f"Unable to attach or mount volumes: unmounted volumes={names}, unattached volumes=[], "
        f"failed to process volumes={names}: {'; '.join(problems)}"
    )


def check_host_path(path: str, type: str, node: Node | None) -> None:
    """Check that what is at a path of a node is what a volume wants. Raises MountError
    (``checkTypeInternal``)."""
    kind = node.kind if node is not None else ""
    wanted = {"Directory": (FOLDER, "a directory"), "File": (REGULAR, "a file")}.get(
        type.removesuffix("OrCreate")
    )
    if wanted is None or (not kind and type.endswith("OrCreate")):
        return
    if kind != wanted[0]:
        raise MountError(f"hostPath type check failed: {path} is not {wanted[1]}")


def _node_at(tree: Tree, path: str) -> Node | None:
    node: Node | None = tree.root
    for name in path.split("/"):
        if name and node is not None:
            node = node.children.get(name)
    return node
