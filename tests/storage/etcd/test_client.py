"""The client against a real etcd: ranges, transactions, watches, leases, and what goes wrong."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubepy.storage.errors import CompactedError
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import (
    Compare,
    Delete,
    DeleteResult,
    EtcdClient,
    Get,
    Put,
    PutResult,
    RangeResult,
    prefix_end,
)
from kubepy.storage.etcd.errors import (
    EtcdCompactedError,
    EtcdError,
    LeaseLostError,
    UncertainError,
    UnreachableError,
)
from tests.etcd import (
    EtcdCluster,
    EtcdServer,
    free_ports,
    fresh_prefix,
    require_long_tests,
)

KeyOf = Callable[[str], bytes]


@pytest.fixture
def client(etcd_server: EtcdServer) -> Iterator[EtcdClient]:
    client = etcd_server.client()
    yield client
    client.close()


@pytest.fixture
def own_client(own_etcd: EtcdServer) -> Iterator[EtcdClient]:
    client = own_etcd.client(3.0)
    yield client
    client.close()


@pytest.fixture
def key() -> KeyOf:
    prefix = fresh_prefix().encode()
    return lambda name: prefix + b"/" + name.encode()


@contextmanager
def soon(action: Callable[[], None]) -> Iterator[None]:
    """Do something while the block runs, and have it done at its end."""
    timer = threading.Timer(0.3, action)
    timer.start()
    yield
    timer.join()


def put(client: EtcdClient, key: bytes, value: bytes = b"1") -> int:
    return client.txn([], [Put(key, value)]).revision


# --- keys -----------------------------------------------------------------------------------------


def test_get_missing_key_returns_none_and_the_revision(client: EtcdClient, key: KeyOf) -> None:
    revision = put(client, key("other"))
    assert client.get(key("a")) == (None, revision)


def test_get_returns_value_and_revisions(client: EtcdClient, key: KeyOf) -> None:
    first = put(client, key("a"), b"x\0\xff")
    second = put(client, key("a"), b"")
    kv, revision = client.get(key("a"))
    assert kv is not None
    assert kv[:5] == (key("a"), b"", first, second, 2)
    assert revision == second
    old, _ = client.get(key("a"), first)
    assert old is not None
    assert old.value == b"x\0\xff"


def test_get_future_revision_raises(client: EtcdClient, key: KeyOf) -> None:
    revision = put(client, key("a"))
    with pytest.raises(EtcdError, match=r"^etcd at 127\.0\.0\.1:\d+: mvcc: required revision is"):
        client.get(key("a"), revision + 100)


def test_range_limit_tells_total_and_more(client: EtcdClient, key: KeyOf) -> None:
    for name in ("a", "b", "c"):
        put(client, key(name))
    result = client.range(key(""), prefix_end(key("")), limit=2)
    assert [kv.key for kv in result.kvs] == [key("a"), key("b")]
    assert (result.total, result.more) == (3, True)
    counted = client.range(key(""), prefix_end(key("")), count_only=True)
    assert (counted.kvs, counted.total) == ([], 3)
    keys = client.range(key(""), prefix_end(key("")), keys_only=True)
    assert [kv.value for kv in keys.kvs] == [b""] * 3


def test_pages_are_of_one_revision(client: EtcdClient, key: KeyOf) -> None:
    for number in range(5):
        revision = put(client, key(str(number)))
    pages = client.pages(key(""), prefix_end(key("")), page=2)
    found = [next(pages)]
    client.txn([], [Delete(key("3")), Put(key("9"), b"")])
    found += pages
    assert [[kv.key for kv in page.kvs] for page in found] == [
        [key("0"), key("1")],
        [key("2"), key("3")],
        [key("4")],
    ]
    assert {page.revision for page in found} == {revision}


def test_pages_of_an_empty_range_give_its_revision(client: EtcdClient, key: KeyOf) -> None:
    revision = put(client, key("a"))
    [page] = client.pages(key("b"), key("c"))
    assert (page.kvs, page.revision) == ([], revision)


@pytest.mark.parametrize(
    ("prefix", "end"),
    [(b"/a/", b"/a0"), (b"a\xff", b"b"), (b"\xff", b"\0"), (b"", b"\0")],
)
def test_prefix_end_is_the_first_key_after(prefix: bytes, end: bytes) -> None:
    assert prefix_end(prefix) == end


def test_large_values_pass_in_both_directions(client: EtcdClient, key: KeyOf) -> None:
    value = bytes(range(256)) * 5_000
    for number in range(12):
        put(client, key(str(number)), value)
    result = client.range(key(""), prefix_end(key("")))
    assert [kv.value for kv in result.kvs] == [value] * 12


def test_request_over_etcds_limit_raises(client: EtcdClient, key: KeyOf) -> None:
    with pytest.raises(EtcdError, match="request is too large") as raised:
        put(client, key("a"), bytes(1_600_000))
    assert raised.value.code == 3
    with pytest.raises(EtcdError):
        put(client, key("a"), bytes(5_000_000))
    assert put(client, key("a")) > 0


# --- transactions ---------------------------------------------------------------------------------


def test_txn_compare_holds_does_success(client: EtcdClient, key: KeyOf) -> None:
    first = put(client, key("a"), b"old")
    result = client.txn(
        [Compare(key("a"), first), Compare(key("b"), 0)],
        [Put(key("a"), b"new", prev_kv=True), Delete(key("b"), prev_kv=True), Get(key("a"))],
    )
    assert result.succeeded
    written, removed, read = result.responses
    assert isinstance(written, PutResult)
    assert written.prev_kv is not None
    assert written.prev_kv.value == b"old"
    assert removed == DeleteResult(0, [])
    assert isinstance(read, RangeResult)
    assert read.kvs[0].mod_revision == result.revision == first + 1


def test_txn_compare_fails_does_failure(client: EtcdClient, key: KeyOf) -> None:
    revision = put(client, key("a"), b"old")
    result = client.txn([Compare(key("a"), 0)], [Delete(key("a"))], [Get(key("a"))])
    assert not result.succeeded
    assert result.revision == revision
    [read] = result.responses
    assert isinstance(read, RangeResult)
    assert read.kvs[0].value == b"old"


@pytest.mark.parametrize(
    ("compare", "holds"),
    [
        (("version", 1, "="), True),
        (("version", 1, ">"), False),
        (("create_revision", 1, ">"), True),
        (("mod_revision", 1, "<"), False),
        (("value", b"1", "="), True),
        (("value", b"", "="), False),
        (("value", b"2", "!="), True),
        (("lease", 0, "="), True),
    ],
)
def test_compare_of_each_target(
    client: EtcdClient, key: KeyOf, compare: tuple[str, int | bytes, str], holds: bool
) -> None:
    put(client, key("a"))
    target, value, result = compare
    answer = client.txn([Compare(key("a"), value, target, result)], [])
    assert answer.succeeded is holds


def test_submitted_transactions_are_all_done(client: EtcdClient, key: KeyOf) -> None:
    before = put(client, key("a"))
    pending = [client.submit([], [Put(key(str(number)), b"")]) for number in range(200)]
    revisions = [transaction.result().revision for transaction in pending]
    assert sorted(revisions) == list(range(before + 1, before + 201))
    assert [transaction.result().revision for transaction in pending] == revisions


def test_deleted_range_returns_what_was_there(client: EtcdClient, key: KeyOf) -> None:
    for name in ("a", "b"):
        put(client, key(name))
    [result] = client.txn([], [Delete(key(""), prefix_end(key("")), prev_kv=True)]).responses
    assert isinstance(result, DeleteResult)
    assert (result.deleted, [kv.key for kv in result.prev_kvs]) == (2, [key("a"), key("b")])


def test_threads_share_a_client(client: EtcdClient, key: KeyOf) -> None:
    put(client, key("counter"), b"0")

    def count() -> None:
        for _ in range(25):
            while True:
                kv, _ = client.get(key("counter"))
                assert kv is not None
                value = str(int(kv.value) + 1).encode()
                compare = Compare(kv.key, kv.mod_revision)
                if client.txn([compare], [Put(kv.key, value)]).succeeded:
                    break

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kv, _ = client.get(key("counter"))
    assert kv is not None
    assert kv.value == b"200"


# --- watches --------------------------------------------------------------------------------------


def test_watch_gives_changes_from_a_revision(client: EtcdClient, key: KeyOf) -> None:
    first = put(client, key("a"), b"1")
    put(client, key("a"), b"2")
    client.txn([], [Delete(key("a")), Put(key("b"), b"3")])
    watch = client.watch(key(""), prefix_end(key("")), start_revision=first, prev_kv=True)
    events = []
    while len(events) < 4:
        batch = watch.next_batch(5)
        assert batch is not None
        events += [
            (event.is_delete, event.kv.key, event.kv.value, event.prev_kv and event.prev_kv.value)
            for event in batch.events
        ]
    assert events == [
        (False, key("a"), b"1", None),
        (False, key("a"), b"2", b"1"),
        (True, key("a"), b"", b"2"),
        (False, key("b"), b"3", None),
    ]
    assert batch.revision == watch.revision == first + 2
    watch.close()


def test_watch_without_revision_begins_now(client: EtcdClient, key: KeyOf) -> None:
    put(client, key("a"))
    watch = client.watch(key("a"))
    revision = put(client, key("a"), b"2")
    batch = watch.next_batch(5)
    assert batch is not None
    assert [event.kv.mod_revision for event in batch.events] == [revision]


def test_watch_next_batch_times_out(client: EtcdClient, key: KeyOf) -> None:
    watch = client.watch(key("a"))
    begin = time.monotonic()
    assert watch.next_batch(0.1) is None
    assert 0.05 < time.monotonic() - begin < 2
    assert not watch.is_closed


def test_watch_closed_by_another_thread_ends(client: EtcdClient, key: KeyOf) -> None:
    watch = client.watch(key("a"))
    threading.Timer(0.1, watch.close).start()
    assert list(watch) == []
    assert watch.is_closed
    assert watch.next_batch() is None


def test_watch_slow_reader_gets_everything(client: EtcdClient, key: KeyOf) -> None:
    watch = client.watch(key(""), prefix_end(key("")))
    value = bytes(500_000)
    for number in range(30):  # three times the window of a stream
        put(client, key(str(number)), value)
    events = []
    while len(events) < 30:
        batch = watch.next_batch(10)
        assert batch is not None
        events += batch.events
    assert [event.kv.key for event in events] == [key(str(number)) for number in range(30)]


# --- compaction -----------------------------------------------------------------------------------


def test_compacted_revision_raises(own_client: EtcdClient) -> None:
    for _ in range(5):
        revision = put(own_client, b"a")
    own_client.compact(revision)
    with pytest.raises(CompactedError, match="required revision has been compacted"):
        own_client.get(b"a", revision - 2)
    with pytest.raises(CompactedError):
        own_client.range(b"a", b"b", revision=2)
    with pytest.raises(EtcdCompactedError) as raised:
        own_client.watch(b"a", start_revision=2).next_batch(5)
    assert raised.value.compact_revision == revision
    assert own_client.get(b"a")[1] == revision


# --- leases ---------------------------------------------------------------------------------------


def test_lease_ends_with_its_keys(client: EtcdClient, key: KeyOf) -> None:
    lease = client.grant_lease(60)
    client.txn([], [Put(key("a"), b"", lease)])
    kv, _ = client.get(key("a"))
    assert kv is not None
    assert kv.lease == lease
    assert client.keep_alive(lease) == 60
    assert 0 < client.lease_state(lease).ttl <= 60
    client.revoke_lease(lease)
    assert client.get(key("a"))[0] is None
    assert client.lease_state(lease).ttl == -1


def test_lease_that_is_over_raises(client: EtcdClient, key: KeyOf) -> None:
    with pytest.raises(LeaseLostError):
        client.keep_alive(4711)
    with pytest.raises(LeaseLostError):
        client.revoke_lease(4711)
    with pytest.raises(LeaseLostError):
        client.txn([], [Put(key("a"), b"", 4711)])


def test_lease_expires(client: EtcdClient, key: KeyOf) -> None:
    lease = client.grant_lease(1)
    client.txn([], [Put(key("a"), b"", lease)])
    watch = client.watch(key("a"))
    batch = watch.next_batch(15)
    assert batch is not None
    assert batch.events[0].is_delete


def test_status_tells_version(client: EtcdClient) -> None:
    status = client.status()
    assert status.version.startswith("3.")
    assert status.leader == status.member
    assert status.size > 0


# --- what goes wrong ------------------------------------------------------------------------------


def test_unreachable_etcd_is_one_line_with_endpoints() -> None:
    first, second = free_ports(2)
    client = EtcdClient(parse_address(f"etcd://127.0.0.1:{first},127.0.0.1:{second}", {}))
    begin = time.monotonic()
    with pytest.raises(UnreachableError) as raised:
        client.get(b"a")
    assert str(raised.value) == (
        f"etcd at 127.0.0.1:{first},127.0.0.1:{second} cannot be reached: 127.0.0.1:{first}: "
        f"connection refused, 127.0.0.1:{second}: connection refused"
    )
    assert time.monotonic() - begin < 2


def test_unreachable_single_endpoint_is_named_once() -> None:
    [port] = free_ports(1)
    client = EtcdClient(parse_address(f"etcd://127.0.0.1:{port}", {}))
    with pytest.raises(UnreachableError) as raised:
        client.txn([], [])
    assert str(raised.value) == (f"etcd at 127.0.0.1:{port} cannot be reached: connection refused")


def answering(text: bytes) -> tuple[socket.socket, int]:
    """A server that answers every connection with a text and closes it."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connection.recv(1000)
            connection.sendall(text)
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    return server, server.getsockname()[1]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks HTTP/1.1, not gRPC"),
        (b"\x15\x03\x01\0\x02\x02\x46", "speaks TLS: etcds://"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP/2"),
        (b"", "closed the connection at once: does it want TLS"),
    ],
)
def test_foreign_server_is_named(text: bytes, hint: str) -> None:
    server, port = answering(text)
    client = EtcdClient(parse_address(f"etcd://127.0.0.1:{port}", {}))
    with pytest.raises(UnreachableError, match=hint):
        client.get(b"a")
    server.close()


def test_silent_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = EtcdClient(parse_address(f"etcd://127.0.0.1:{server.getsockname()[1]}", {}), 0.5)
        begin = time.monotonic()
        with pytest.raises(UnreachableError, match="does not answer"):
            client.get(b"a")
        assert time.monotonic() - begin < 3


def test_second_endpoint_answers_for_the_first(etcd_server: EtcdServer, key: KeyOf) -> None:
    [port] = free_ports(1)
    address = parse_address(f"etcd://127.0.0.1:{port},{etcd_server.endpoint}", {})
    client = EtcdClient(address)
    assert put(client, key("a")) == client.get(key("a"))[1]
    client.close()


def test_restarted_etcd_is_found_again(own_etcd: EtcdServer, own_client: EtcdClient) -> None:
    revision = put(own_client, b"a")
    own_etcd.restart()
    assert own_client.get(b"a")[1] == revision
    assert put(own_client, b"a") == revision + 1
    own_etcd.restart()
    assert put(own_client, b"a") == revision + 2


def test_read_waits_for_etcd_to_come_back(own_etcd: EtcdServer, own_client: EtcdClient) -> None:
    revision = put(own_client, b"a")
    own_etcd.kill()
    with soon(own_etcd.start):
        assert own_client.get(b"a")[1] == revision


def test_etcd_that_stays_away_is_unreachable(own_etcd: EtcdServer) -> None:
    client = own_etcd.client(1.0)
    put(client, b"a")
    own_etcd.kill()
    begin = time.monotonic()
    with pytest.raises(UnreachableError):
        client.get(b"a")
    assert time.monotonic() - begin < 3


def test_watch_goes_on_after_a_restart(own_etcd: EtcdServer, own_client: EtcdClient) -> None:
    watch = own_client.watch(b"a", b"b")
    seen = []
    for number in range(4):
        if number % 2:
            own_etcd.restart()
        own_client.txn([], [Put(b"a%d" % number, b""), Put(b"a", b"%d" % number)])
        batch = watch.next_batch(5)
        assert batch is not None
        seen += [event.kv.key for event in batch.events]
    assert seen == [b"a0", b"a", b"a1", b"a", b"a2", b"a", b"a3", b"a"]


def test_watch_gives_none_while_etcd_is_away(own_etcd: EtcdServer, own_client: EtcdClient) -> None:
    watch = own_client.watch(b"a")
    revision = put(own_client, b"a")
    assert watch.next_batch(5) is not None
    own_etcd.kill()
    for timeout in (0, 0.05, 0.2):
        begin = time.monotonic()
        assert watch.next_batch(timeout) is None
        assert time.monotonic() - begin < 1
    own_etcd.start()
    assert put(own_client, b"a") == revision + 1
    batch = watch.next_batch(5)
    assert batch is not None
    assert batch.revision == revision + 1


def test_watch_closed_while_etcd_is_away_ends_at_once(
    own_etcd: EtcdServer, own_client: EtcdClient
) -> None:
    watch = own_client.watch(b"a")
    own_etcd.kill()
    begin = time.monotonic()
    threading.Timer(0.2, watch.close).start()
    assert watch.next_batch() is None
    assert time.monotonic() - begin < 1


def test_watch_of_an_etcd_that_stays_away_is_unreachable(own_etcd: EtcdServer) -> None:
    client = own_etcd.client(1.0)
    watch = client.watch(b"a")
    own_etcd.kill()
    with pytest.raises(UnreachableError):
        watch.next_batch(10)


def test_watch_that_was_given_up_is_as_patient_when_it_is_asked_again(
    own_etcd: EtcdServer,
) -> None:
    client = own_etcd.client(1.0)
    watch = client.watch(b"a")
    own_etcd.kill()
    with pytest.raises(UnreachableError):
        watch.next_batch(10)
    own_etcd.start()
    put(client, b"a")
    own_etcd.pause()
    threading.Timer(0.4, own_etcd.resume).start()
    batch = watch.next_batch(5)
    assert batch is not None
    assert [event.kv.key for event in batch.events] == [b"a"]


def test_frozen_etcd_times_out(own_etcd: EtcdServer) -> None:
    client = own_etcd.client(1.0)
    put(client, b"a")
    own_etcd.pause()
    with pytest.raises(UnreachableError):
        client.get(b"a")
    with pytest.raises(EtcdError):
        put(client, b"a")
    own_etcd.resume()
    assert client.get(b"a")[0] is not None


def test_large_write_to_a_frozen_etcd_ends_in_time(own_etcd: EtcdServer) -> None:
    client = own_etcd.client(1.0)
    put(client, b"a")
    own_etcd.pause()
    begin = time.monotonic()
    with pytest.raises(UnreachableError):
        put(client, b"a", bytes(1_000_000))
    assert time.monotonic() - begin < 4
    own_etcd.resume()
    assert put(client, b"a", bytes(1_000_000)) > 0


def test_reading_transaction_is_sent_again(own_etcd: EtcdServer, own_client: EtcdClient) -> None:
    put(own_client, b"a")
    pending = own_client.submit([], [Get(b"a")])
    pending.result()
    own_etcd.pause()
    with soon(own_etcd.restart):
        result = own_client.txn([], [Get(b"a")])
    assert isinstance(result.responses[0], RangeResult)
    assert result.responses[0].total == 1


def test_write_whose_answer_is_lost_is_uncertain(own_etcd: EtcdServer) -> None:
    client = own_etcd.client(1.0)
    put(client, b"a")
    own_etcd.pause()
    pending = client.submit([], [Put(b"a", b"2")])
    with pytest.raises(TimeoutError):
        pending.result(0.1)
    with pytest.raises(UncertainError, match="it is not known whether a write was done"):
        pending.result()
    own_etcd.resume()


def test_closed_client_ends_everything(etcd_server: EtcdServer, key: KeyOf) -> None:
    client = etcd_server.client()
    watch = client.watch(key("a"))
    threading.Timer(0.1, client.close).start()
    with pytest.raises(UnreachableError, match="closed"):
        watch.next_batch(10)
    with pytest.raises(UnreachableError, match="closed"):
        client.get(key("a"))


# --- several members ------------------------------------------------------------------------------


def test_member_that_dies_is_replaced_by_another(tmp_path: Path) -> None:
    require_long_tests()
    with EtcdCluster(tmp_path) as cluster:
        client = cluster.client(10.0)
        watch = client.watch(b"a", b"b")
        put(client, b"a0")
        cluster.leader().kill()
        done = 0
        while done < 3:
            try:
                put(client, b"a1")
            except UncertainError:
                continue
            done += 1
        seen: list[int] = []
        _, revision = client.get(b"a1")
        while not seen or seen[-1] < revision:
            batch = watch.next_batch(10)
            assert batch is not None
            seen += [event.kv.mod_revision for event in batch.events]
        assert seen == list(range(2, revision + 1))
        client.close()


def test_member_without_a_leader_is_left(tmp_path: Path) -> None:
    require_long_tests()
    with EtcdCluster(tmp_path) as cluster:
        # The client has the first member; the others vanish for it, and it for them
        client = cluster.client(15.0)
        watch = client.watch(b"a", b"b")
        put(client, b"a0")
        for member in cluster.members[1:]:
            member.kill()
        with pytest.raises(EtcdError):
            put(client, b"a1")
        for member in cluster.members[1:]:
            member.start(wait=False)
        kv, _ = client.get(b"a0")
        assert kv is not None
        batch = watch.next_batch(15)
        assert batch is not None
        assert batch.events[0].kv.key == b"a0"
        client.close()
