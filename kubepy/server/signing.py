"""Signs the CertificateSigningRequests that are approved, with the CA of the server.

Certificates are of real time, as TLS is, also where the cluster has a time of its own. Upstream:
``pkg/controller/certificates/signer``, ``pkg/controller/certificates/authority``.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubepy.api.errors import Conflict, NotFound
from kubepy.api.meta import Object, clone, nested_list, status_of
from kubepy.controlplane.groups import SIGNING
from kubepy.controlplane.users import service_account
from kubepy.server.certificates import pem_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    from kubepy.apiserver.cluster import LocalCluster

ACCOUNT = "certificate-controller"
REQUESTS = "certificatesigningrequests.certificates.k8s.io"
CLIENT, KUBELET_CLIENT, KUBELET_SERVING = (
    "kubernetes.io/kube-apiserver-client",
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
)
SIGNERS = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING)
LONGEST = timedelta(days=365)  # ``--cluster-signing-duration``
SHORTEST = timedelta(minutes=10)
BACKDATE = timedelta(minutes=5)
SHORT = timedelta(hours=8)  # below that the end is not dated back
DIGITAL_SIGNATURE, KEY_ENCIPHERMENT = "digital signature", "key encipherment"
CLIENT_AUTH, SERVER_AUTH = "client auth", "server auth"
NODES, NODE_PREFIX = "system:nodes", "system:node:"


class RefusedRequest(Exception):
    """A request that its signer does not sign, in upstream's words."""


class CertificateSigner:
    """Signs with a CA.

    :param ca, key: the certificate of the CA and its key.
    """

    def __init__(self, ca: x509.Certificate, key: EllipticCurvePrivateKey) -> None:
        self._ca = ca
        self._key = key

    def sign_approved(self, cluster: LocalCluster) -> None:
        """Give a certificate to each approved request without one. What a signer refuses gets the
        condition Failed. Raises Status, StorageError."""
        context = cluster.client.context._replace(user=service_account(ACCOUNT), component=SIGNING)
        client = cluster.client.with_context(context)
        for request in client.list(REQUESTS).items:
            if not is_to_be_signed(request):
                continue
            signed = clone(request)
            status = signed.setdefault("status", {})
            try:
                status["certificate"] = base64.b64encode(self.certificate_for(request)).decode()
            except RefusedRequest as refusal:
                failure = {
                    "type": "Failed",
                    "status": "True",
                    "reason": "SignerValidationFailure",
                    "message": str(refusal),
                    "lastUpdateTime": cluster.clock.timestamp(),
                }
                status["conditions"] = [*nested_list(status, "conditions"), failure]
            try:
                client.update(REQUESTS, signed, subresource="status")
            except (Conflict, NotFound):  # it has changed, which is heard of
                continue

    def certificate_for(self, request: Object) -> bytes:
        """Return the certificate that a request asks for, in PEM. Raises RefusedRequest."""
        spec = request["spec"]
        wanted = _parse(spec.get("request") or "")
        usages = list(spec.get("usages") or ())
        check_request(spec["signerName"], wanted, usages)
        now = datetime.now(UTC)
        life = life_of(spec.get("expirationSeconds"))
        end = now + life if life < SHORT else now + life - BACKDATE
        extended = [_EXTENDED[usage] for usage in usages if usage in _EXTENDED]
        builder = (
            x509.CertificateBuilder()
            .issuer_name(self._ca.subject)
            .subject_name(wanted.subject)
            .public_key(wanted.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATE)
            .not_valid_after(min(end, self._ca.not_valid_after_utc))
            .add_extension(x509.ExtendedKeyUsage(extended), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if DIGITAL_SIGNATURE in usages or KEY_ENCIPHERMENT in usages:
            builder = builder.add_extension(_key_usage(usages), critical=True)
        if names := alternative_names(wanted):
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return pem_of(builder.sign(self._key, hashes.SHA256()))


def is_to_be_signed(request: Object) -> bool:
    """Tell whether a request is approved for one of the signers here, and not done."""
    status = status_of(request)
    types = {
        condition["type"]
        for condition in nested_list(status, "conditions")
        if condition.get("status", "True") == "True"
    }
    if "Approved" not in types or "Denied" in types or "Failed" in types:
        return False
    return not status.get("certificate") and request["spec"].get("signerName") in SIGNERS


def _parse(text: str) -> x509.CertificateSigningRequest:
    try:
        wanted = x509.load_pem_x509_csr(base64.b64decode(text))
        is_own = wanted.is_signature_valid
    except (ValueError, TypeError, binascii.Error, UnsupportedAlgorithm) as error:
        raise RefusedRequest(f"unable to parse csr: {error}") from None
    if not is_own:
        raise RefusedRequest("unable to verify certificate request signature")
    return wanted


def life_of(seconds: int | None) -> timedelta:
    """Return how long a certificate lasts for which somebody asks so many seconds."""
    if seconds is None:
        return LONGEST
    return min(max(timedelta(seconds=seconds), SHORTEST), LONGEST)


def alternative_names(wanted: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """Return the alternative names that a request asks for. Raises RefusedRequest."""
    try:
        extension = wanted.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    except ValueError as error:
        raise RefusedRequest(f"unable to parse csr: {error}") from None
    return list(extension.value)


def check_request(signer: str, wanted: x509.CertificateSigningRequest, usages: list[str]) -> None:
    """Check that a request is one that a signer signs. Raises RefusedRequest."""
    if signer == CLIENT:
        for usage in usages:
            if usage not in (DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, CLIENT_AUTH):
                raise RefusedRequest(f"invalid usage for client certificate: {usage}")
        if CLIENT_AUTH not in usages:
            raise RefusedRequest(f"missing required usage for client certificate: {CLIENT_AUTH}")
        return

    if _subject_values(wanted, NameOID.ORGANIZATION_NAME) != [NODES]:
        raise RefusedRequest("subject organization is not system:nodes")
    _check_names(signer, alternative_names(wanted))
    purpose = SERVER_AUTH if signer == KUBELET_SERVING else CLIENT_AUTH
    required = {DIGITAL_SIGNATURE, purpose}
    if {*usages} not in (required, required | {KEY_ENCIPHERMENT}):
        shown = " ".join(sorted(required | {KEY_ENCIPHERMENT}))
        raise RefusedRequest(f"usages did not match [{shown}]")
    common_names = _subject_values(wanted, NameOID.COMMON_NAME)
    if not common_names or not common_names[-1].startswith(NODE_PREFIX):
        raise RefusedRequest("subject common name does not begin with system:node: ")


def _check_names(signer: str, names: list[x509.GeneralName]) -> None:
    """Check the alternative names of a kubelet's certificate. Raises RefusedRequest."""
    hosts = (x509.DNSName, x509.IPAddress)
    if signer == KUBELET_SERVING and not any(isinstance(name, hosts) for name in names):
        raise RefusedRequest("DNS or IP subjectAltName is required")
    for kind, title in _NAME_KINDS:
        is_allowed = signer == KUBELET_SERVING and kind in hosts
        if not is_allowed and any(isinstance(name, kind) for name in names):
            raise RefusedRequest(f"{title} subjectAltNames are not allowed")


def _subject_values(
    wanted: x509.CertificateSigningRequest, attribute: x509.ObjectIdentifier
) -> list[str]:
    return [str(pair.value) for pair in wanted.subject.get_attributes_for_oid(attribute)]


def _key_usage(usages: list[str]) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=DIGITAL_SIGNATURE in usages,
        key_encipherment=KEY_ENCIPHERMENT in usages,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


_EXTENDED = {
    CLIENT_AUTH: ExtendedKeyUsageOID.CLIENT_AUTH,
    SERVER_AUTH: ExtendedKeyUsageOID.SERVER_AUTH,
}
_NAME_KINDS: tuple[tuple[Any, str], ...] = (
    (x509.DNSName, "DNS"),
    (x509.RFC822Name, "Email"),
    (x509.IPAddress, "IP"),
    (x509.UniformResourceIdentifier, "URI"),
)
