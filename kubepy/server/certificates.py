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

from kubepy import system
from kubepy.apiserver.keyfiles import SIGNING_KEY, KeyFiles, keys_lock, pem_of_key
from kubepy.storage import homes

CA, CA_KEY = "ca.crt", "ca.key"
CERTIFICATE, CERTIFICATE_KEY = "apiserver.crt", "apiserver.key"
TOKEN = "token"
KUBECONFIG = "kubeconfig"  # of a server that may have ended: the token is in it
PUBLIC = (CA, CERTIFICATE)  # what is no secret
TOKEN_BYTES = 32
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
    files = KeyFolder(folder, say)
    with keys_lock(folder):
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


class KeyFolder(KeyFiles):
    """The files of a server's keys in the ``.kubepy/`` of a state folder."""

    public = PUBLIC

    def is_shown(self, name: str) -> bool:
        """Return whether other users could read a file with the token; if so, say that the token is
        made anew."""
        path = self.path(name)
        try:
            if not system.is_open_to_others(os.lstat(path).st_mode) or not homes.has_modes(path):
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
