"""TLS, client certificates, users and passwords."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import EtcdClient, Put
from kubepy.storage.etcd.errors import AddressError, EtcdError, UnreachableError
from kubepy.storage.etcd.maintenance import names
from tests.etcd import EtcdServer, require_etcd


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
    require_etcd()
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
