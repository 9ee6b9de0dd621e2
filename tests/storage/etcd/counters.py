"""A process that increments a counter in etcd, in one of the ways in which programs write.

    python -m tests.storage.etcd.counters ADDRESS AUTHOR NUMBER WAY

The counter is a ConfigMap with the sum, and with the number of increments of each author. So an
author whose answer was lost sees whether its increment was done: one that was not, and is written
later, meets a conflict if the author has tried again meanwhile. The process prints, as JSON, what
it has met.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from kubepy.api.errors import Conflict
from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.storage import ConflictError, Key, StorageError
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import EtcdClient
from kubepy.storage.etcd.errors import UncertainError
from kubepy.storage.etcd.keys import EtcdKeys

Object = dict[str, Any]
Change = Callable[[Object], Object]
Write = Callable[[Change], object]
PROJECT = Path(__file__).parents[3]
COUNTER = Key("configmaps", "default", "counter")
SUM = "sum"
PAUSE = 0.02  # the longest before another try


class CountedError(Exception):
    """An increment whose answer was lost is done."""


class Author:
    """Writes the increments of one process.

    :ivar done: how many increments it knows to be done.
    :ivar met: how often it has met a conflict, an etcd that did not answer, a lost answer.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.done = 0
        self.met = {"conflicts": 0, "unreachable": 0, "uncertain": 0, "found": 0}

    def change(self, counter: Object) -> Object:
        """Return the counter after one more increment. Raises CountedError."""
        data = counter["data"]
        own = int(data.get(self.name, "0"))
        if own > self.done:
            self.done = own
            raise CountedError
        changed = {SUM: str(int(data[SUM]) + 1), self.name: str(own + 1)}
        return {**counter, "data": {**data, **changed}}

    def count(self, write: Write, number: int) -> None:
        """Increment the counter so many times."""
        while self.done < number:
            try:
                write(self.change)
                self.done += 1
            except CountedError:
                self.met["found"] += 1
            except (ConflictError, Conflict):
                self.met["conflicts"] += 1
                time.sleep(random.uniform(0.0, PAUSE))
            except UncertainError:
                self.met["uncertain"] += 1
            except StorageError:
                self.met["unreachable"] += 1
                time.sleep(PAUSE)


def in_store(address: str) -> Write:
    """Read and write in one transaction of the store."""
    store = open_cluster(address).store

    def write(change: Change) -> None:
        with store.transaction() as transaction:
            counter = transaction.get(COUNTER)
            assert counter is not None
            transaction.update(COUNTER, change(counter))

    return write


def by_client(address: str) -> Write:
    """Read and write in two requests, the second of which names the version that was read."""
    client = open_cluster(address).client

    def write(change: Change) -> None:
        counter = client.get(COUNTER.resource, COUNTER.name, namespace=COUNTER.namespace)
        client.update(COUNTER.resource, change(counter), namespace=COUNTER.namespace)

    return write


WAYS: Mapping[str, Callable[[str], Write]] = {"store": in_store, "client": by_client}


def main(words: Sequence[str]) -> None:
    address, name, number, way = words
    author = Author(name)
    author.count(WAYS[way](address), int(number))
    print(json.dumps(author.met))


# --- for tests


class Counted(NamedTuple):
    """A counter after all processes have ended.

    :ivar sums: the sum at each revision, in order, as etcd remembers them.
    :ivar met: what all processes together have met.
    """

    data: dict[str, str]
    sums: list[int]
    met: dict[str, int]


def make_counter(address: str) -> LocalCluster:
    """Make a cluster with a counter that is 0."""
    cluster = make_cluster(address, {"bootstrap": "minimal"})
    body = {"metadata": {"name": COUNTER.name}, "data": {SUM: "0"}}
    cluster.client.create(COUNTER.resource, body, namespace=COUNTER.namespace)
    return cluster


def start_authors(address: str, processes: int, number: int) -> list[subprocess.Popen[str]]:
    """Start processes, each of which increments the counter so many times, in all ways."""
    ways = list(WAYS)
    return [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.storage.etcd.counters",
                address,
                f"author-{process}",
                str(number),
                ways[process % len(ways)],
            ],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(processes)
    ]


def wait_for_authors(authors: Sequence[subprocess.Popen[str]], seconds: float) -> dict[str, int]:
    """Wait for processes, and return what they have met, in sum."""
    end = time.monotonic() + seconds
    met: dict[str, int] = {}
    try:
        for author in authors:
            out, err = author.communicate(timeout=max(0.1, end - time.monotonic()))
            assert (author.returncode, err) == (0, ""), err
            for name, number in json.loads(out).items():
                met[name] = met.get(name, 0) + number
    finally:
        for author in authors:
            author.kill()
            author.wait()
    return met


def read_counter(address: str, met: dict[str, int]) -> Counted:
    """Read a counter, and all that it has been."""
    parsed = parse_address(address, {})
    key = EtcdKeys(parsed.prefix).of(COUNTER)
    with closing(EtcdClient(parsed)) as client:
        kv, _ = client.get(key)
        assert kv is not None
        watch = client.watch(key, start_revision=kv.create_revision)
        values: list[Object] = []
        while len(values) < kv.version:
            batch = watch.next_batch(parsed.timeout)
            assert batch is not None
            values += [json.loads(event.kv.value)["data"] for event in batch.events]
        watch.close()
    return Counted(values[-1], [int(value[SUM]) for value in values], met)


if __name__ == "__main__":
    main(sys.argv[1:])
