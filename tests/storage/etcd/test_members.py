"""Writers and watchers on an etcd of three members that are killed, hand over their lead and come
back: the counts are exact, and no event is lost or told twice."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kubepy.storage.errors import StorageError
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import EtcdClient
from kubepy.storage.etcd.errors import UnreachableError
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.store import EtcdStore
from tests.etcd import EtcdCluster, require_long_tests

from .counters import COUNTER, SUM, make_counter, read_counter, start_authors, wait_for_authors

PROCESSES = 8
NUMBER = 150  # of increments of each
SECONDS = 300.0
KINDS = 5  # of faults
BETWEEN = 1.0  # seconds from one fault to the next
CATCH_UP = 20.0


class CounterWatch(threading.Thread):
    """Notes each value of the counter that one watch of etcd tells of."""

    def __init__(self, address: str, revision: int, last: int) -> None:
        super().__init__(daemon=True)
        self._address = parse_address(address, {})
        self._revision = revision
        self._last = last
        self.seen: list[int] = []

    def run(self) -> None:
        client = EtcdClient(self._address)
        key = EtcdKeys(self._address.prefix).of(COUNTER)
        watch = client.watch(key, start_revision=self._revision)
        while self._last not in self.seen:
            try:
                batch = watch.next_batch()
            except UnreachableError:
                continue
            if batch is not None:
                values = [json.loads(event.kv.value) for event in batch.events]
                self.seen += [int(value["data"][SUM]) for value in values]
        client.close()


class CounterChanges(threading.Thread):
    """Notes each value of the counter that a store tells of which follows etcd."""

    def __init__(self, address: str, last: int) -> None:
        super().__init__(daemon=True)
        self._address = parse_address(address, {})
        self._last = last
        self.seen: list[int] = []

    def run(self) -> None:
        store = EtcdStore(self._address)
        revision = store.revision
        while self._last not in self.seen:
            store.wait_for_change(0.5)
            try:
                told = store.changes(revision)
            except StorageError:
                continue
            changes = [change for change in told.changes if change.key == COUNTER]
            self.seen += [int(change.object["data"][SUM]) for change in changes]
            revision = told.revision
        store.close()


@contextmanager
def disturbed(cluster: EtcdCluster) -> Iterator[list[str]]:
    """Disturb the members one way after the other until the block ends; yield what was done."""
    faults = {
        "leader killed": lambda: cluster.leader().restart(),
        "lead handed over": cluster.move_leader,
        "all killed": cluster.restart,
        "others killed": lambda: restart_followers(cluster),
        "leader stopped": lambda: hang(cluster),
    }
    done: list[str] = []
    is_over = threading.Event()

    def disturb() -> None:
        while True:
            for name, act in faults.items():
                if is_over.wait(BETWEEN):
                    return
                act()
                done.append(name)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        yield done
    finally:
        is_over.set()
        thread.join()


def restart_followers(cluster: EtcdCluster) -> None:
    """Restart all members but the leader, one after the other."""
    leader = cluster.leader()
    for member in cluster.members:
        if member is not leader:
            member.restart()


def hang(cluster: EtcdCluster) -> None:
    """Let the leader answer nothing for longer than an election takes."""
    leader = cluster.leader()
    leader.pause()
    time.sleep(2.5)
    leader.resume()


def test_counts_and_watches_are_exact_while_members_come_and_go(tmp_path: Path) -> None:
    require_long_tests()
    total = PROCESSES * NUMBER
    with EtcdCluster(tmp_path / "etcd") as cluster:
        address = cluster.address("/members")
        with closing(make_counter(address)) as made:
            counter = made.store.get(COUNTER)
        assert counter is not None
        watch = CounterWatch(address, int(counter["metadata"]["resourceVersion"]), total)
        changes = CounterChanges(address, total)
        watch.start()
        changes.start()
        begun = time.monotonic()
        with disturbed(cluster) as faults:
            met = wait_for_authors(start_authors(address, PROCESSES, NUMBER), SECONDS)
        seconds = time.monotonic() - begun
        counted = read_counter(address, met)
        for thread in (watch, changes):
            thread.join(CATCH_UP)
    print(f"{total} increments in {seconds:.0f} s, {faults}, {met}")  # for -s
    own = {f"author-{process}": str(NUMBER) for process in range(PROCESSES)}
    assert counted.data == {SUM: str(total), **own}
    assert counted.sums == watch.seen == list(range(total + 1))
    assert changes.seen == sorted(set(changes.seen))
    assert changes.seen[-1] == total
    assert len(set(faults)) == KINDS
