"""The client while etcd is killed: every increment counts once, and a watch has no gap."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from kubepy.storage.etcd.client import Compare, EtcdClient, KeyValue, Put
from kubepy.storage.etcd.errors import UncertainError, UnreachableError
from tests.etcd import EtcdServer, require_flag, require_long_tests

THREADS = 4
INCREMENTS = 150  # of each thread
COUNTER = b"counter"


def counter(client: EtcdClient) -> KeyValue:
    while True:
        try:
            kv, _ = client.get(COUNTER)
        except UnreachableError:
            continue
        assert kv is not None
        return kv


def increment(client: EtcdClient, author: str) -> None:
    """Increment the counter once. The value names its author, so that one whose answer was lost
    can be recognized: nobody else writes over it before it is known."""
    while True:
        kv = counter(client)
        value = f"{int(kv.value.split()[0]) + 1} {author}".encode()
        compare = Compare(COUNTER, kv.mod_revision)
        mark = Compare(author.encode(), 0)
        try:
            result = client.txn([compare, mark], [Put(COUNTER, value), Put(author.encode(), b"")])
            if result.succeeded:
                return
        except UnreachableError:
            continue
        except UncertainError:
            pass
        if is_done(client, author):
            return


def is_done(client: EtcdClient, author: str) -> bool:
    while True:
        try:
            return client.get(author.encode())[0] is not None
        except UnreachableError:
            continue


def test_increments_are_exact_and_watch_has_no_gap_while_etcd_is_killed(tmp_path: Path) -> None:
    require_long_tests()
    require_flag("-heartbeat-interval")
    with EtcdServer(tmp_path / "etcd", flags=["--heartbeat-interval=50"]) as server:
        client = server.client(3.0)
        client.txn([], [Put(COUNTER, b"0 nobody")])
        watch = client.watch(COUNTER, start_revision=2)
        seen: list[int] = []

        def follow() -> None:
            while not seen or seen[-1] < THREADS * INCREMENTS:
                try:
                    batch = watch.next_batch(1)
                except UnreachableError:
                    continue
                for event in batch.events if batch is not None else ():
                    seen.append(int(event.kv.value.split()[0]))

        def count(thread: int) -> None:
            own = server.client(3.0) if thread % 2 else client
            for number in range(INCREMENTS):
                increment(own, f"{thread}-{number}")

        threads = [threading.Thread(target=count, args=(number,)) for number in range(THREADS)]
        threads.append(threading.Thread(target=follow))
        for thread in threads:
            thread.start()
        kills = 0
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.4)
            if kills < 12:
                if kills % 3 == 2:
                    server.pause()
                    time.sleep(0.5)
                server.restart()
                kills += 1
        for thread in threads:
            thread.join()
        assert seen == list(range(THREADS * INCREMENTS + 1))
        assert counter(client).value.startswith(b"%d " % (THREADS * INCREMENTS))
        client.close()
