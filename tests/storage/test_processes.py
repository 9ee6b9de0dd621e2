"""Several processes work in one folder and are killed at any time, while somebody edits its
files."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml import dump

from .conftest import config_map, create, file_of, key

# Increments two objects in one transaction, and prints each number that has been committed.
COUNTING = """
import sys
from kubepy.storage import ConflictError, Key
from kubepy.storage.folder.store import FolderStore

store, name, said = FolderStore(sys.argv[1]), sys.argv[2], int(sys.argv[3])
while True:
    try:
        with store.transaction() as transaction:
            for suffix in ("-a", "-b"):
                one = Key("configmaps", "default", name + suffix)
                obj = transaction.get(one)
                count = int(obj["data"]["a"]) + 1
                transaction.update(one, {**obj, "metadata": dict(obj["metadata"]), "data": {"a": str(count)}})
    except ConflictError:  # somebody edited a file meanwhile
        continue
    print(count, flush=True)
"""  # noqa: E501
COUNTERS = ("one", "two", "three")


class Counter:
    """A process that counts, and the last number that it printed."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name, self.acknowledged = folder, name, 0
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", COUNTING, str(self.folder), self.name, "0"],
            stdout=subprocess.PIPE,
            text=True,
        )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        assert self.process.stdout is not None
        said = self.process.stdout.read().split()
        self.process.stdout.close()
        assert self.process.wait() == -signal.SIGKILL
        self.acknowledged = max([self.acknowledged, *map(int, said)])


@contextmanager
def counting(folder: Path) -> Iterator[list[Counter]]:
    counters = [Counter(folder, name) for name in COUNTERS]
    try:
        yield counters
    finally:
        for one in counters:
            if one.process.poll() is None:
                one.kill()


def pairs(store: FolderStore) -> dict[str, set[int]]:
    """Return the numbers of each counter's two objects in one snapshot."""
    found: dict[str, set[int]] = {}
    for obj in store.list("configmaps", "default").objects:
        name, _, _ = obj["metadata"]["name"].rpartition("-")
        found.setdefault(name, set()).add(int(obj["data"]["a"]))
    return found


def test_killed_processes_lose_nothing_acknowledged(folder: Path) -> None:
    store = FolderStore(folder)
    create(
        store, *(config_map(f"{name}{suffix}", "0") for name in COUNTERS for suffix in ("-a", "-b"))
    )
    chance = random.Random(5)
    with counting(folder) as counters:
        for _ in range(12):
            time.sleep(chance.uniform(0.1, 0.5))
            assert all(len(numbers) == 1 for numbers in pairs(store).values()), pairs(store)
            victim = chance.choice(counters)
            victim.kill()
            victim.start()
        while sum(max(numbers) for numbers in pairs(store).values()) <= 20:  # on a busy machine
            time.sleep(0.1)
    final = pairs(store)
    for counter in counters:
        (number,) = final[counter.name]
        assert counter.acknowledged <= number <= counter.acknowledged + len(counters)
    store.close()


def test_edits_beside_commits_of_another_process_are_all_seen(folder: Path) -> None:
    """Set a counter's files to 1000000 while its process counts: it counts on from there, or a
    later commit wins."""
    store = FolderStore(folder)
    create(
        store, *(config_map(f"{name}{suffix}", "0") for name in COUNTERS for suffix in ("-a", "-b"))
    )
    with counting(folder):
        for round in range(1, 6):
            time.sleep(0.2)
            for suffix in ("-a", "-b"):
                path = file_of(folder, f"one{suffix}")
                temporary = path.with_suffix(".editor")
                edited = config_map(f"one{suffix}", str(round * 1_000_000), uid="kept")
                temporary.write_text(dump(edited))
                os.replace(temporary, path)
            assert store.get(key("one-a")) is not None
    assert {obj["metadata"]["name"] for obj in store.list("configmaps").objects} == {
        f"{name}{suffix}" for name in COUNTERS for suffix in ("-a", "-b")
    }
    assert max(pairs(store)["one"]) >= 1_000_000
    store.close()
