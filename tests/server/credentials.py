"""Certificates, keys and flags of a kube-apiserver, as a test makes them that starts one."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubepy.apiserver import keyfiles
from kubepy.server import certificates

DAY = timedelta(days=1)
LOCAL = ip_address("127.0.0.1")


class Pair(NamedTuple):
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def pem(self) -> bytes:
        return certificates.pem_of(self.certificate)

    def key_pem(self) -> bytes:
        return certificates.pem_of_key(self.key)


def new_pair(
    common_name: str,
    signer: Pair | None = None,
    *,
    groups: tuple[str, ...] = (),
    usage: x509.ObjectIdentifier | None = None,
    life: timedelta = DAY,
) -> Pair:
    """Make a certificate by a CA; without one it is a CA itself, as TinyCA of envtest makes it."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=signer is None, path_length=None), True)
    ]
    if usage is not None:
        extensions.append((x509.ExtendedKeyUsage([usage]), False))
    if usage == ExtendedKeyUsageOID.SERVER_AUTH:
        names_of_host = [x509.DNSName("localhost"), x509.IPAddress(LOCAL)]
        extensions.append((x509.SubjectAlternativeName(names_of_host), False))
    issuer, signing_key = (signer.certificate.subject, signer.key) if signer else (subject, key)
    return Pair(certificates.sign(subject, issuer, key, signing_key, life, extensions), key)


def needed_flags(folder: Path) -> list[str]:
    """Return the flags that an API server cannot do without, with a key in a folder."""
    key = folder / "sa.key"
    key.write_bytes(keyfiles.new_key_pem())
    return [
        "--etcd-servers=http://127.0.0.1:1",
        "--service-account-issuer=https://127.0.0.1/",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--cert-dir={folder}/certs",
    ]
