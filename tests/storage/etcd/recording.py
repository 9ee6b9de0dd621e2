"""A recording of the etcd of a real control plane: its keys and values, and the objects as its
server printed them.

    KUBE_APISERVER=… KUBE_CONTROLLER_MANAGER=… KUBE_SCHEDULER=… \\
        python -m tests.storage.etcd.recording tests/storage/etcd/recorded/control-plane.jsonl.gz

makes one: a cluster with two nodes and without kubelets, of some manifests of the conformance cases
and of all bundles. Run it on a machine whose name anybody may know. Each line is a key of etcd, in
the order of the revisions.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.messages import KeyValue
from kubepy.storage.model import Key
from tests.etcd import EtcdServer
from tests.kubeapiserver import KubeApiServer

Object = dict[str, Any]
RECORDED = Path(__file__).parent / "recorded" / "control-plane.jsonl.gz"
KEYS = EtcdKeys()
MAX_OBJECTS = 10  # of a resource


class RecordedKey(NamedTuple):
    """A key of etcd.

    :ivar object: what the server printed for it; None for what is no object to clients.
    """

    key: bytes
    value: bytes
    revision: int
    object: Object | None


def read_recording(path: Path = RECORDED) -> Iterator[RecordedKey]:
    with gzip.open(path, "rt") as file:
        for line in file:
            fields = json.loads(line)
            yield RecordedKey(
                fields["key"].encode(),
                fields["value"].encode("latin-1"),
                fields["revision"],
                fields["object"],
            )


def write_recording(path: Path, keys: list[RecordedKey]) -> None:
    lines = []
    for key in sorted(keys, key=lambda key: key.revision):
        fields = {
            "key": key.key.decode(),
            "value": key.value.decode("latin-1"),
            "revision": key.revision,
            "object": key.object,
        }
        lines.append(json.dumps(fields, separators=(",", ":")))
    text = "".join(f"{line}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def record(server: KubeApiServer, etcd: EtcdServer, paths: dict[str, str]) -> list[RecordedKey]:
    """Return the first keys of each resource as they are at one revision.

    :param paths: of the lists of resources.
    """
    with closing(etcd.client()) as client:
        everything = client.range(*KEYS.everything)
    exact = f"resourceVersion={everything.revision}&resourceVersionMatch=Exact"
    objects: dict[Key, Object] = {}
    for resource, path in paths.items():
        answer = server.get(f"{path}?{exact}")
        kind = {"apiVersion": answer["apiVersion"], "kind": answer["kind"].removesuffix("List")}
        for item in answer["items"]:
            metadata = item["metadata"]
            key = Key(resource, metadata.get("namespace", ""), metadata["name"])
            objects[key] = {**kind, **item}
    numbers: Counter[str] = Counter()
    keys = []
    for kv in everything.kvs:
        recorded = recorded_key(kv, objects)
        resource = recorded.object["kind"] if recorded.object else ""
        numbers[resource] += 1
        if numbers[resource] <= MAX_OBJECTS:
            keys.append(recorded)
    return keys


def recorded_key(kv: KeyValue, objects: dict[Key, Object]) -> RecordedKey:
    key = KEYS.parse(kv.key)
    obj = objects.get(key) if key is not None else None
    return RecordedKey(kv.key, kv.value, kv.mod_revision, obj)


def main() -> int:
    from tests.benchmarks.control_plane import component, kubeconfig_of, node

    from .manifests import bundled_manifests, recorded_manifests
    from .test_interop import STORED, create_all, create_there, path_of

    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        etcd = stack.enter_context(EtcdServer(folder / "etcd"))
        server = stack.enter_context(KubeApiServer(folder / "kube-apiserver", etcd))
        config = f"--kubeconfig={kubeconfig_of(server)}"
        key = f"--service-account-private-key-file={server.folder / 'serviceaccounts.key'}"
        for number in range(2):
            server.send("POST", "/api/v1/nodes", node(number))
        stack.enter_context(component("kube-controller-manager", folder, config, key))
        stack.enter_context(component("kube-scheduler", folder, config))
        create_all(create_there(server), recorded_manifests(step=12))
        create_all(create_there(server), bundled_manifests())
        time.sleep(20)
        paths = {resource.key: path_of(resource) for resource in STORED}
        definitions = server.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        for definition in definitions["items"]:
            spec = definition["spec"]
            [version] = [version["name"] for version in spec["versions"] if version["storage"]]
            names = f"{spec['group']}/{version}/{spec['names']['plural']}"
            paths[definition["metadata"]["name"]] = f"/apis/{names}"
        keys = record(server, etcd, paths)
    path = Path(sys.argv[1])
    write_recording(path, keys)
    number = sum(key.object is not None for key in keys)
    print(f"{len(keys)} keys, {number} objects, {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
