"""The trees of a pod's volumes: those that show objects, as the kubelet's atomic writer lays them
out, and empty ones.

Upstream: ``pkg/volume/util/atomic_writer.go``, ``pkg/volume/volume_linux.go``,
``pkg/volume/emptydir``. Nothing here reads or writes outside of a tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from math import floor
from typing import TYPE_CHECKING
from zlib import crc32

from kubepy.api.clock import format_micro_time
from kubepy.api.meta import AnyObject, nested_map, uid_of
from kubepy.api.values.quantity import Quantity
from kubepy.kubelet.images import files_of
from kubepy.kubelet.payloads import (
    FileProjection,
    Payload,
    VolumeSources,
    fs_group_of,
    fs_user_of,
    is_projection,
    payload_of,
)
from kubepy.shell.files import FOLDER, LINK, REGULAR, Node, Tree

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

DATA = "..data"
SYNC_SECONDS = 60  # a kubelet looks at each pod so often (``syncFrequency``)
ON_DISK_MODE, IN_MEMORY_MODE = 0o777, 0o1777
MEMORY = "Memory"
SET_GROUP = 0o2000
READABLE, WRITABLE, SEARCHABLE = 0o440, 0o660, 0o110  # what a pod's group may do


def is_in_memory(volume: AnyObject) -> bool:
    """Tell whether the files of a volume are on a file system in memory: those that show objects,
    but for ConfigMaps, and an ``emptyDir`` that says so."""
    if is_projection(volume):
        return volume.get("configMap") is None
    return nested_map(volume, "emptyDir").get("medium") == MEMORY


# --- volumes that show objects --------------------------------------------------------------------


def volume_tree(pod: Pod, volume: AnyObject, sources: VolumeSources, now: datetime) -> Tree | None:
    """Return the files of a volume that shows objects of the cluster; None for any other volume,
    whose files last. Raises MountError."""
    if not is_projection(volume):
        return None
    payload = payload_of(
        pod,
        volume,
        sources,
        now,
    )
    mode = IN_MEMORY_MODE if is_in_memory(volume) else ON_DISK_MODE
    root = Node(FOLDER, mode, now)
    group = fs_group_of(pod)
    _give_to_group(root, group, READABLE)
    tree = Tree(root)
    _write(
        tree,
        payload,
        pod,
        volume,
        now,
    )
    return tree


def refresh(tree: Tree, pod: Pod, volume: AnyObject, sources: VolumeSources, now: datetime) -> bool:
    """Bring the files of a volume that shows objects up to date; return whether they have changed.
    Raises MountError, and leaves the files as they were."""
    before = payload_in(tree)
    payload = payload_of(
        pod,
        volume,
        sources,
        now,
        before,
    )
    if _contents(payload) == _contents(before):
        return False
    _write(
        tree,
        payload,
        pod,
        volume,
        now,
    )
    return True


def update_due(started: datetime, changed: datetime) -> datetime:
    """Return when a volume shows a change of a ConfigMap or Secret: at the next look of the kubelet
    at the pod, which comes every minute after its start. (What changes in the pod itself is a
    reason to look at once.)"""
    if changed < started:
        return started
    period = timedelta(seconds=SYNC_SECONDS)
    age = changed - started
    looks = floor(age / period)
    return started + (looks + 1) * period


def payload_in(tree: Tree) -> Payload:
    """Return the files that a volume shows."""
    entries = tree.root.children
    link = entries.get(DATA)
    payload: Payload = {}
    if link is None:
        return payload
    directory = entries[link.target]
    _collect(directory, "", payload)
    return payload


def _collect(folder: Node, prefix: str, payload: Payload) -> None:
    for name, node in folder.children.items():
        path = f"{prefix}{name}"
        if node.kind == FOLDER:
            _collect(node, f"{path}/", payload)
        else:
            file = FileProjection(node.data, node.mode, is_token=node.is_draft)
            payload[path] = file


def _contents(payload: Mapping[str, FileProjection]) -> dict[str, bytes]:
    """Return what the atomic writer compares: paths and contents, not modes."""
    contents = {}
    for path, file in payload.items():
        contents[path] = file.data
    return contents


def _write(tree: Tree, payload: Payload, pod: Pod, volume: AnyObject, now: datetime) -> None:
    """Write files in the manner of the atomic writer: into a new directory, to which ``..data``
    leads; every name of the volume is a link through it."""
    directory = Node(FOLDER, 0o755, now)
    written = Tree(directory)
    user = fs_user_of(pod)
    for path, file in sorted(payload.items()):
        node = Node(
            REGULAR,
            file.mode,
            now,
            data=file.data,
        )
        node.is_draft = file.is_token
        if file.is_owned and user is not None:
            node.user = user
        written.put(path, node)
    group = fs_group_of(pod)
    _give_to_group(directory, group, READABLE)

    uid = uid_of(pod)
    name = volume["name"]
    own_name = _directory_name(f"{uid}/{name}", now)
    entries = {own_name: directory}
    entries[DATA] = Node(
        LINK,
        0o777,
        now,
        target=own_name,
    )
    for name in directory.children:
        link = tree.root.children.get(name)  # it leads to the new file, and is as old as it was
        if link is None:
            link = Node(LINK, 0o777, now, target=f"{DATA}/{name}")
        entries[name] = link
    tree.root.children = entries
    tree.root.modified = now
    tree.version += 1


def _directory_name(volume: str, now: datetime) -> str:
    """Return a name like those of the atomic writer: with its time, and a number that is random at
    a kubelet."""
    time = format_micro_time(now)
    subject = f"{volume} {time}"
    number = crc32(subject.encode())
    prefix = now.strftime("..%Y_%m_%d_%H_%M_%S")
    return f"{prefix}.{number:010}"


# --- volumes that a pod writes to -----------------------------------------------------------------


def empty_tree(pod: Pod, volume: AnyObject, now: datetime) -> Tree:
    """Return a new volume: an ``emptyDir``, or one of which nothing is known; one that is an image
    has the files that are known of it.

    Its limit is that of a file system in memory; one on the disk may grow beyond ``sizeLimit``,
    for which the kubelet evicts the pod.
    """
    image = nested_map(volume, "image").get("reference")
    if image:
        return Tree.of(files_of(image), modified=now)
    source = nested_map(volume, "emptyDir")
    is_small = is_in_memory(volume)
    mode = IN_MEMORY_MODE if is_small else ON_DISK_MODE
    root = Node(FOLDER, mode, now)
    tree = Tree(root)
    limit = source.get("sizeLimit")
    if is_small and limit is not None:
        size = Quantity.parse(limit)
        tree.limit = size.value() or None
    give_to_group(tree, pod)
    return tree


def give_to_group(tree: Tree, pod: Pod) -> None:
    """Let the pod's group own a volume that it writes to (``SetVolumeOwnership``)."""
    _give_to_group(tree.root, fs_group_of(pod), WRITABLE)


def _give_to_group(node: Node, group: int | None, mask: int) -> None:
    if group is None or node.kind == LINK:
        return
    node.group = group
    node.mode |= mask
    if node.kind == FOLDER:
        node.mode |= SET_GROUP | SEARCHABLE
    for child in node.children.values():
        _give_to_group(child, group, mask)
