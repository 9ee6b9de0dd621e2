"""The keys of a server, kept in ``.kubepy/`` with mode 0600: its CA and certificate, the
administrator's token, and the key that signs the tokens of ServiceAccounts.

They survive restarts. What is damaged, expired or does not fit is made anew. All keys are of the
curve P-256.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubepy.storage import FolderError, homes

CA, CA_KEY = "ca.crt", "ca.key"
CERTIFICATE, CERTIFICATE_KEY = "apiserver.crt", "apiserver.key"
TOKEN, SIGNING_KEY = "token", "sa.key"
KUBECONFIG = "kubeconfig"  # of a server that may have ended: the token is in it
PUBLIC = (CA, CERTIFICATE)  # what is no secret
TOKEN_BYTES = 32
LOCK, LOCK_SECONDS = "keys.lock", 10.0
CA_LIFE, CERTIFICATE_LIFE = timedelta(days=3650), timedelta(days=365)  # kubeadm's
RENEWED = timedelta(days=30)  # a certificate that expires so soon is made anew
NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
LOOPBACK = ("127.0.0.1", "::1")


class Keys(NamedTuple):
    """The keys of a server.

    :ivar ca: the certificate of the CA, in PEM.
    :ivar certificate, certificate_key: the paths of the server's certificate, with that of its CA,
        and of its key.
    :ivar token: the administrator's bearer token.
    :ivar signing_key: the private key that signs the tokens of ServiceAccounts, in PEM.
    :ivar authority, authority_key: the CA itself, which signs certificates.
    """

    ca: bytes
    certificate: str
    certificate_key: str
    token: str
    signing_key: bytes
    files: KeyFolder
    authority: x509.Certificate
    authority_key: ec.EllipticCurvePrivateKey


def load_keys(
    folder: str, hosts: Iterable[str] = (), say: Callable[[str], None] = lambda line: None
) -> Keys:
    """Read the keys of a state folder; what is missing is made.

    :param hosts: names and addresses under which the server is reached, besides the loopback ones.
    :param say: is told what had to be made anew.

    Raises FolderError, LockTimeoutError.
    """
    homes.make_own_folder(folder)
    files = KeyFolder(folder, say, {})
    lock = homes.lock_of(folder, LOCK)
    lock.acquire(LOCK_SECONDS)  # another server may be starting
    try:
        ca_key, ca = files.certificate_authority()
        files.server_certificate(ca_key, ca, sorted({*NAMES, *LOOPBACK, *hosts}))
        return Keys(
            pem_of(ca),
            files.path(CERTIFICATE),
            files.path(CERTIFICATE_KEY),
            files.token(),
            pem_of_key(files.private_key(SIGNING_KEY)),
            files,
            ca,
            ca_key,
        )
    finally:
        lock.release()


def signing_key(folder: str, say: Callable[[str], None]) -> bytes:
    """Return the key that signs the tokens of ServiceAccounts, in PEM; a cluster without a folder
    gets a new one.

    Raises FolderError, LockTimeoutError.
    """
    if not folder:
        return new_key_pem()
    homes.make_own_folder(folder)
    files = KeyFolder(folder, say, {})
    lock = homes.lock_of(folder, LOCK)
    lock.acquire(LOCK_SECONDS)  # a server may be starting
    try:
        return pem_of_key(files.private_key(SIGNING_KEY))
    finally:
        lock.release()


class KeyFolder(NamedTuple):
    """The files of keys in the ``.kubepy/`` of a state folder.

    :ivar contents: what the files hold that have been read or written, by their names.
    """

    folder: str
    say: Callable[[str], None]
    contents: dict[str, bytes]

    def restore(self) -> None:
        """Put files back that are gone: ``.kubepy/`` may be removed at any time, and clients trust
        its keys."""
        missing = [name for name in self.contents if not os.path.lexists(self.path(name))]
        if missing and os.path.exists(os.path.join(self.folder, "kubepy.yaml")):
            homes.make_own_folder(self.folder)
            for name in missing:
                self.write(name, self.contents[name])

    def path(self, name: str) -> str:
        return homes.own_path(self.folder, name)

    def read(self, name: str) -> bytes:
        """Return what a file holds; nothing if there is none, and it is no news that it is made.
        Raises FolderError."""
        try:
            descriptor = os.open(self.path(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                content = file.read()
                is_public = os.fstat(descriptor).st_mode & 0o077
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise FolderError(f"{self.path(name)}: cannot be read: {error.strerror}") from error

        if is_public and name not in PUBLIC:
            if homes.has_modes(self.path(name)):
                self.say(f"{self.path(name)} could be read by other users: made anew")
                return b""
            self.say(f"{self.path(name)} can be read by other users: its file system has no modes")

        self.contents[name] = content
        return content

    def write(self, name: str, content: bytes) -> None:
        """Put a file in place at once, which only its owner may read. Raises FolderError."""
        try:
            homes.write_content(self.folder, name, content)
            self.contents[name] = content
        except OSError as error:
            raise FolderError(f"{self.path(name)}: cannot be written: {error.strerror}") from error

    def is_own(self, name: str) -> bool:
        """Return whether a file that was read holds what was written to it here; if not, say that
        it is made anew."""
        is_own = homes.is_own_content(self.folder, name, self.contents[name])
        if not is_own:
            self.say(f"{self.path(name)} was not written by kubepy: made anew")
        return is_own

    def is_shown(self, name: str) -> bool:
        """Return whether other users could read a file with the token; if so, say that the token is
        made anew."""
        path = self.path(name)
        try:
            if not os.lstat(path).st_mode & 0o077 or not homes.has_modes(path):
                return False
        except FileNotFoundError:
            return False
        self.say(f"{path} could be read by other users: the token in it is made anew")
        return True

    def token(self) -> str:
        """Return the administrator's token."""
        text = self.read(TOKEN).decode("ascii", "replace").strip()
        is_sound = len(text) == 2 * TOKEN_BYTES and all(
            character in "0123456789abcdef" for character in text
        )
        if is_sound and self.is_own(TOKEN) and not self.is_shown(KUBECONFIG):
            return text
        if TOKEN in self.contents and not is_sound:
            self.say(f"{self.path(TOKEN)} is damaged: made anew")
        text = os.urandom(TOKEN_BYTES).hex()
        self.write(TOKEN, text.encode())
        return text

    def private_key(self, name: str) -> ec.EllipticCurvePrivateKey:
        """Return a private key, made if there is none."""
        key = _parsed_key(self.read(name))
        if key is not None and self.is_own(name):
            return key
        if name in self.contents and key is None:
            self.say(f"{self.path(name)} is damaged: made anew")
        key = ec.generate_private_key(ec.SECP256R1())
        self.write(name, pem_of_key(key))
        return key

    def certificate_authority(self) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        """Return the CA with its key."""
        key = self.private_key(CA_KEY)
        ca = self._certificate(CA, lambda ca: ca.public_key() == key.public_key())
        if ca is None:
            name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
            ca = sign(
                name,
                name,
                key,
                key,
                CA_LIFE,
                [
                    (x509.BasicConstraints(ca=True, path_length=None), True),
                    (
                        x509.KeyUsage(
                            digital_signature=True,
                            key_encipherment=True,
                            key_cert_sign=True,
                            crl_sign=False,
                            content_commitment=False,
                            data_encipherment=False,
                            key_agreement=False,
                            encipher_only=False,
                            decipher_only=False,
                        ),
                        True,
                    ),
                    (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
                    (x509.SubjectAlternativeName([x509.DNSName("kubernetes")]), False),
                ],
            )
            if CA in self.contents:
                self.say(f"{self.path(CA)}: made anew; kubeconfigs with the old one no longer work")
            self.write(CA, pem_of(ca))

        return key, ca

    def server_certificate(
        self, ca_key: ec.EllipticCurvePrivateKey, ca: x509.Certificate, hosts: list[str]
    ) -> None:
        """Make the server's certificate, unless the one that is there is good for these hosts."""
        key = self.private_key(CERTIFICATE_KEY)
        names = [_general_name(host) for host in hosts]

        def is_good(certificate: x509.Certificate) -> bool:
            extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            certificate.verify_directly_issued_by(ca)
            return certificate.public_key() == key.public_key() and set(names) <= set(
                extension.value
            )

        if self._certificate(CERTIFICATE, is_good) is None:
            subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
            certificate = sign(
                subject,
                ca.subject,
                key,
                ca_key,
                CERTIFICATE_LIFE,
                [
                    (x509.BasicConstraints(ca=False, path_length=None), True),
                    (
                        x509.KeyUsage(
                            digital_signature=True,
                            key_encipherment=False,
                            key_cert_sign=False,
                            crl_sign=False,
                            content_commitment=False,
                            data_encipherment=False,
                            key_agreement=False,
                            encipher_only=False,
                            decipher_only=False,
                        ),
                        True,
                    ),
                    (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
                    (
                        x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
                        False,
                    ),
                    (x509.SubjectAlternativeName(names), False),
                ],
            )
            self.write(CERTIFICATE, pem_of(certificate) + pem_of(ca))

    def _certificate(
        self, name: str, is_good: Callable[[x509.Certificate], bool]
    ) -> x509.Certificate | None:
        """Return a certificate that is there and good for a while yet; None where it is to be
        made."""
        content = self.read(name)
        if not content:
            return None
        try:
            certificate = x509.load_pem_x509_certificate(content)
            now = datetime.now(UTC)
            if (
                certificate.not_valid_before_utc > now
                or certificate.not_valid_after_utc < now + RENEWED
            ):
                self.say(f"{self.path(name)} has expired or soon will: made anew")
                return None
            return certificate if is_good(certificate) else None
        except InvalidSignature:  # by a CA that is no more
            return None
        except (ValueError, TypeError, x509.ExtensionNotFound):
            self.say(f"{self.path(name)} is damaged: made anew")
            return None


def _parsed_key(content: bytes) -> ec.EllipticCurvePrivateKey | None:
    """Return the private key in PEM, None where it is none of the curve P-256."""
    try:
        key = serialization.load_pem_private_key(content, None)
    except (ValueError, TypeError):
        return None
    return (
        key
        if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1)
        else None
    )


def sign(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    life: timedelta,
    extensions: list[tuple[x509.ExtensionType, bool]],
) -> x509.Certificate:
    """Make a certificate; each extension comes with whether it is critical."""
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + life)
    )
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, is_critical)
    return builder.sign(signer, hashes.SHA256())


def self_signed(hosts: Iterable[str]) -> tuple[bytes, bytes]:
    """Make a certificate of an API server that is signed by itself; return it and its key, in
    PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    names = [_general_name(host) for host in hosts]
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=True, path_length=None), True),
        (x509.SubjectAlternativeName(names), False),
    ]
    certificate = sign(name, name, key, key, CERTIFICATE_LIFE, extensions)
    return pem_of(certificate), pem_of_key(key)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def pem_of(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def pem_of_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def new_key_pem() -> bytes:
    """Make a private key; return it in PEM."""
    return pem_of_key(ec.generate_private_key(ec.SECP256R1()))


def hosts_of(address: str) -> list[str]:
    """Return the names and addresses under which a server that listens on an address is reached."""
    try:
        if not ipaddress.ip_address(address).is_unspecified:
            return [address]
    except ValueError:
        return [address]
    name = socket.gethostname()
    try:
        found = {info[4][0] for info in socket.getaddrinfo(name, None)}
    except OSError:
        found = set()
    return [name, *sorted(str(host).partition("%")[0] for host in found)]
