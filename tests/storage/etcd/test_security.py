"""TLS, client certificates, users and passwords."""

from __future__ import annotations

import datetime
import ipaddress
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubepy.apiserver.cluster import object_indexes
from kubepy.cli.main import main
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import EtcdClient, Put, prefix_end
from kubepy.storage.etcd.errors import AddressError, EtcdError, UnreachableError, WatchDeniedError
from kubepy.storage.etcd.maintenance import names
from kubepy.storage.etcd.store import EtcdStore
from kubepy.storage.etcd.wire import bytes_field, message_field, number_field
from kubepy.storage.model import in_full
from tests.etcd import EtcdServer, require_flag
from tests.server.conftest import ServerProcess

from ..conftest import config_map, create, event, key
from ..conftest import names as names_of


class Authority:
    """A certificate authority, and the certificates that it has made, as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
        self._certificate = self._sign(self._name, self._key, is_authority=True)
        self.path = self._write("ca.pem", self._certificate)

    def issue(self, name: str) -> tuple[Path, Path]:
        """Make a certificate for 127.0.0.1; return its file, and that of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        path = self._write(f"{name}.pem", self._sign(subject, key))
        key_path = self.folder / f"{name}.key"
        key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        return path, key_path

    def _write(self, name: str, certificate: x509.Certificate) -> Path:
        path = self.folder / name
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool = False
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        )
        if not is_authority:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        return builder.sign(self._key, hashes.SHA256())


class SecuredEtcd:
    """An etcd with TLS that wants certificates of its clients, and what they need."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "ca")
        cert, key = self.authority.issue("server")
        self.cert, self.key = self.authority.issue("client")
        self.server = EtcdServer(
            folder / "etcd",
            scheme="https",
            flags=[
                f"--cert-file={cert}",
                f"--key-file={key}",
                f"--trusted-ca-file={self.authority.path}",
                "--client-cert-auth",
            ],
        )

    def client(self, options: str) -> EtcdClient:
        return EtcdClient(parse_address(f"etcds://{self.server.endpoint}{options}", {}), 5.0)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredEtcd]:
    require_flag("-client-cert-auth")
    etcd = SecuredEtcd(tmp_path_factory.mktemp("secured"))
    with etcd.server:
        yield etcd


def test_tls_with_a_client_certificate(secured: SecuredEtcd) -> None:
    files = f"?ca={secured.authority.path}&cert={secured.cert}&key={secured.key}"
    client = secured.client(files)
    value = bytes(700_000)
    revision = client.txn([], [Put(b"a", value)]).revision
    kv, _ = client.get(b"a")
    assert kv is not None
    assert kv.value == value
    watch = client.watch(b"a", start_revision=revision)
    batch = watch.next_batch(5)
    assert batch is not None
    client.close()


def test_many_transactions_through_tls(secured: SecuredEtcd) -> None:
    files = f"?ca={secured.authority.path}&cert={secured.cert}&key={secured.key}"
    client = secured.client(files)
    pending = [client.submit([], [Put(b"n%d" % number, b"x" * 5000)]) for number in range(200)]
    assert len({transaction.result().revision for transaction in pending}) == 200
    client.close()


def test_client_without_certificate_is_unreachable(secured: SecuredEtcd) -> None:
    client = secured.client(f"?ca={secured.authority.path}")
    with pytest.raises(UnreachableError, match="certificate"):
        client.get(b"a")


def test_server_of_an_unknown_authority_is_unreachable(
    secured: SecuredEtcd, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other")
    with pytest.raises(UnreachableError, match=r"verify failed|issuer certificate"):
        secured.client(f"?ca={other.path}").get(b"a")
    with pytest.raises(UnreachableError, match=r"self-signed|issuer certificate|verify failed"):
        secured.client("").get(b"a")


def test_server_name_is_compared(secured: SecuredEtcd) -> None:
    files = f"?ca={secured.authority.path}&cert={secured.cert}&key={secured.key}"
    with pytest.raises(UnreachableError, match=r"is not valid for 'etcd\.example\.org'"):
        secured.client(f"{files}&server-name=etcd.example.org").get(b"a")


def test_plain_client_of_a_tls_server_is_told(secured: SecuredEtcd) -> None:
    client = EtcdClient(parse_address(f"etcd://{secured.server.endpoint}", {}))
    with pytest.raises(UnreachableError, match="etcds://"):
        client.get(b"a")


def test_tls_client_of_a_plain_server_is_told(etcd_server: EtcdServer) -> None:
    client = EtcdClient(parse_address(f"etcds://{etcd_server.endpoint}", {}))
    with pytest.raises(UnreachableError) as raised:
        client.get(b"a")
    assert "\n" not in str(raised.value)


def test_missing_file_names_its_option(tmp_path: Path) -> None:
    path = tmp_path / "none.pem"
    with pytest.raises(AddressError) as raised:
        EtcdClient(parse_address(f"etcds://h?ca={path}", {}))
    assert str(raised.value) == (f"etcds://h:2379?ca={path}: ca={path}: no such file or directory")
    with pytest.raises(AddressError, match=r": cert=.*none\.pem: no such file"):
        EtcdClient(parse_address(f"etcds://h?cert={path}", {}))


# --- users ----------------------------------------------------------------------------------------


def call(client: EtcdClient, path: str, request: bytes) -> None:
    client._session.ask(path, request, bytes, is_read=False)


@pytest.fixture
def guarded(own_etcd: EtcdServer) -> EtcdServer:
    """An etcd that wants a user: root with the password s3cret."""
    client = own_etcd.client()
    call(client, "/etcdserverpb.Auth/UserAdd", names("root", "s3cret"))
    call(client, "/etcdserverpb.Auth/RoleAdd", names("root"))
    call(client, "/etcdserverpb.Auth/UserGrantRole", names("root", "root"))
    call(client, "/etcdserverpb.Auth/AuthEnable", b"")
    client.close()
    return own_etcd


def guarded_client(server: EtcdServer, user: str) -> EtcdClient:
    return EtcdClient(parse_address(f"etcd://{user}{server.endpoint}", {}), 5.0)


def test_user_with_password_reads_and_writes(guarded: EtcdServer) -> None:
    client = guarded_client(guarded, "root:s3cret@")
    revision = client.txn([], [Put(b"a", b"1")]).revision
    watch = client.watch(b"a", start_revision=revision)
    assert client.get(b"a")[1] == revision
    batch = watch.next_batch(5)
    assert batch is not None
    assert client.keep_alive(client.grant_lease(30)) == 30


def test_wrong_password_is_one_line(guarded: EtcdServer) -> None:
    with pytest.raises(EtcdError) as raised:
        guarded_client(guarded, "root:wr0ng@").get(b"a")
    assert str(raised.value) == (
        f"etcd at {guarded.endpoint}: authentication failed, invalid user ID or password"
    )


def test_missing_user_is_told(guarded: EtcdServer) -> None:
    with pytest.raises(EtcdError) as raised:
        guarded_client(guarded, "").get(b"a")
    assert str(raised.value) == f"etcd at {guarded.endpoint} wants a user: user=NAME"
    with pytest.raises(EtcdError):
        guarded_client(guarded, "").watch(b"a")


def test_token_of_a_restarted_server_is_made_anew(guarded: EtcdServer) -> None:
    client = guarded_client(guarded, "root:s3cret@")
    watch = client.watch(b"a")
    client.txn([], [Put(b"a", b"1")])
    guarded.restart()
    client.txn([], [Put(b"a", b"2")])
    seen: list[bytes] = []
    while len(seen) < 2:
        batch = watch.next_batch(5)
        assert batch is not None
        seen += [event.kv.value for event in batch.events]
    assert seen == [b"1", b"2"]


def test_token_of_a_changed_user_is_made_anew(guarded: EtcdServer) -> None:
    client = guarded_client(guarded, "root:s3cret@")
    client.get(b"a")
    other = guarded_client(guarded, "root:s3cret@")
    call(other, "/etcdserverpb.Auth/UserAdd", names("more", "x"))
    assert client.txn([], [Put(b"a", b"1")]).succeeded
    assert client.get(b"a")[0] is not None


# --- a user who may read and write the keys of one cluster alone ----------------------------------

READ_AND_WRITE = 2
EVENTS = {"events": 3600.0}


def grant_keys_of_a_cluster(server: EtcdServer, prefix: str) -> None:
    """Let the user ci, with the password pw, read and write the keys of one cluster."""
    client = guarded_client(server, "root:s3cret@")
    call(client, "/etcdserverpb.Auth/UserAdd", names("ci", "pw"))
    call(client, "/etcdserverpb.Auth/RoleAdd", names("ci"))
    for part in ("registry", "kubepy"):
        start = f"{prefix}/{part}/".encode()
        permission = (
            number_field(1, READ_AND_WRITE)
            + bytes_field(2, start)
            + bytes_field(3, prefix_end(start))
        )
        request = bytes_field(1, b"ci") + message_field(2, permission)
        call(client, "/etcdserverpb.Auth/RoleGrantPermission", request)
    call(client, "/etcdserverpb.Auth/UserGrantRole", names("ci", "ci"))
    client.close()


@pytest.fixture(params=["", "/teams/a"])
def prefix(request: pytest.FixtureRequest, guarded: EtcdServer) -> str:
    """The keys of a cluster, which the user ci may read and write."""
    prefix: str = request.param
    grant_keys_of_a_cluster(guarded, prefix)
    return prefix


@pytest.fixture
def restricted(guarded: EtcdServer, prefix: str) -> str:
    """The address of a cluster for the user ci."""
    return f"etcd://ci:pw@{guarded.endpoint}{prefix}"


def open_store(address: str, *, is_followed: bool = False) -> EtcdStore:
    store = EtcdStore(parse_address(address, {}), volatile=EVENTS, now=time.time)
    if is_followed:
        store.connect(time.time, indexes=object_indexes)
        store.state().found("uid", ["none"])
    return store


def test_user_of_one_cluster_may_not_watch_or_write_others(
    guarded: EtcdServer, restricted: str
) -> None:
    client = guarded_client(guarded, "ci:pw@")
    with pytest.raises(WatchDeniedError, match="permission denied"):
        client.watch(b"\0", b"\0")
    with pytest.raises(EtcdError, match="permission denied"):
        client.txn([], [Put(b"/other/registry/a", b"")])
    client.close()


def test_restricted_follower_is_as_far_as_etcd_whoever_writes(
    guarded: EtcdServer, restricted: str
) -> None:
    follower = open_store(restricted, is_followed=True)
    writer = open_store(restricted)
    root = guarded_client(guarded, "root:s3cret@")
    base = follower.revision
    for number in range(4):
        name = f"n{number}"
        create(writer, config_map(name))
        assert follower.state().get(key(name)) is not None
        root.txn([], [Put(b"/others/key", name.encode())])
        writer.set_values({"count": name}, settings={"seed": number})
        state = follower.state()
        assert state.meta_value("count") == name
        assert state.all_meta() == {"count": name}
        assert state.settings["seed"] == number
        assert state.revision >= writer.revision - 1
        create(writer, event(name), resource="events")
        assert len(names_of(follower.list("events").objects)) == number + 1
    with writer.transaction() as transaction:
        transaction.delete(key("n0"))
    root.txn([], [Put(b"/others/key", b"last")])
    assert names_of(follower.list("configmaps").objects) == ["n1", "n2", "n3"]
    for store in (follower, open_store(restricted)):
        changes = in_full(store.changes, base).changes
        told = [change.key.name for change in changes if change.key.resource == "configmaps"]
        assert told == ["n1", "n2", "n3", "n0"]
        store.close()
    writer.close()
    root.close()


@pytest.mark.parametrize("is_followed", [False, True])
def test_restricted_watcher_that_is_cut_after_any_event_loses_and_doubles_nothing(
    guarded: EtcdServer, restricted: str, is_followed: bool
) -> None:
    store, other = open_store(restricted), open_store(restricted, is_followed=is_followed)
    root = guarded_client(guarded, "root:s3cret@")
    base = store.revision
    create(store, *(config_map(name) for name in "ab"))
    root.txn([], [Put(b"/others/key", b"1")])
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))
        transaction.delete(key("b"))
        transaction.create(key("b"), config_map("b", "2"))
    root.txn([], [Put(b"/others/key", b"2")])
    newest = store.revision
    free = open_store(f"etcd://root:s3cret@{guarded.endpoint}{store.address.prefix}")
    told = [(change.type, change.key.name) for change in in_full(other.changes, base).changes]
    assert told == [("ADDED", "a"), ("DELETED", "b"), ("ADDED", "b")]
    for revision in range(base, newest + 1):
        assert other.changes(revision).changes == free.changes(revision).changes
    for opened in (store, other, free):
        opened.close()
    root.close()


def test_restricted_followers_do_not_wake_each_other(restricted: str) -> None:
    waiting = open_store(restricted, is_followed=True)
    other = open_store(restricted, is_followed=True)
    assert waiting.wait_for_change(0.0)
    ticks = threading.Timer(0.1, other._keyspace.tick)
    begun = time.monotonic()
    ticks.start()
    assert waiting.wait_for_change(1.0)
    assert time.monotonic() - begun >= 1.0
    writes = threading.Timer(0.1, lambda: create(other, config_map("a")))
    writes.start()
    assert waiting.wait_for_change(60.0)
    assert time.monotonic() - begun < 60.0
    for timer in (ticks, writes):
        timer.join()
    for store in (waiting, other):
        store.close()


def test_volatile_objects_end_for_a_restricted_follower(restricted: str) -> None:
    moment = time.time()
    writer = open_store(restricted)
    follower = open_store(restricted, is_followed=True)
    create(writer, event("a"), resource="events")
    assert names_of(follower.list("events").objects) == ["a"]
    follower.connect(lambda: moment + 4000.0, indexes=object_indexes)
    assert follower.list("events").objects == []
    writer.close()
    follower.close()


def test_every_kind_of_command_works_for_a_restricted_user(
    restricted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> str:
        assert main(["--state", restricted, *words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    run("init", "--clock=2026-01-01T00:00:00Z")
    run("create", "deployment", "web", "--image=nginx", "--replicas=3")
    run("rollout", "status", "deployment/web")
    assert run("get", "pods", "-o", "name").count("pod/web-") == 3
    assert "web" in run("plan", "set", "image", "deployment/web", "nginx=nginx:2")
    assert run("why", "deployment/web")
    assert run("timeline", "deployment/web")
    run("clock", "advance", "2h")
    assert run("get", "events", "-o", "name") == ""
    run("controller", "--once", "-q")
    run("scale", "deployment/web", "--replicas=1")
    run("wait", "--for=jsonpath={.status.replicas}=1", "deployment/web")
    run("config", "set-context", "--current", "--namespace=default")
    run("delete", "deployment", "web")
    run("fork", str(tmp_path / "copy"))
    assert main(["--state", str(tmp_path / "copy"), "get", "nodes"]) == 0


def test_server_and_controllers_of_a_restricted_user_hear_of_others(
    restricted: str, tmp_path: Path
) -> None:
    assert main(["--state", restricted, "init"]) == 0
    server = ServerProcess(tmp_path / "home", state=restricted)
    pods = "/api/v1/namespaces/default/pods"
    try:
        create_words = ["create", "deployment", "web", "--image=nginx"]
        assert main(["--state", restricted, *create_words]) == 0
        wait_words = ["wait", "--for=condition=Available", "deployment/web", "--timeout=60s"]
        assert main(["--state", restricted, *wait_words]) == 0
        listed = server.request("GET", pods).json()
        assert [pod["status"]["phase"] for pod in listed["items"]] == ["Running"]
        connection = server.connect()
        version = listed["metadata"]["resourceVersion"]
        path = f"{pods}?watch=true&resourceVersion={version}"
        connection.request("GET", path, headers={"Authorization": f"Bearer {server.token}"})
        assert main(["--state", restricted, "run", "x", "--image=nginx"]) == 0
        first = json.loads(connection.getresponse().readline())
        assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "x")
        connection.close()
    finally:
        server.stop()
