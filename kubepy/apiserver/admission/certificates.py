"""Who may ask for a certificate, approve and sign it: the admission plugins of
CertificateSigningRequests.

``CertificateApproval`` and ``CertificateSigning`` ask the authorizer: approving a request is a
right of its own, beside that to update the object, and given for signers (``approve`` and ``sign``
of ``signers``). Upstream: ``plugin/pkg/admission/certificates``, ``pkg/certauthorization``.
"""

from __future__ import annotations

import binascii
from base64 import b64decode

from kubepy.api.meta import Object
from kubepy.api.values import x509
from kubepy.apiserver.authorization import PRIVILEGED_GROUP, AttributesRecord
from kubepy.apiserver.server import Attributes
from kubepy.quoting import quote

GROUP = "certificates.k8s.io"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


def check_approval(attributes: Attributes) -> None:
    """Refuse an approval or denial by a user who may not approve requests for the signer. Raises
    Forbidden."""
    signer = _signer_of(attributes.old or {})
    if not _is_authorized(attributes, "approve", signer):
        raise attributes.forbidden(
            f"user not permitted to approve requests with signerName {quote(signer)}"
        )


def check_signing(attributes: Attributes) -> None:
    """Refuse a new certificate or condition by a user who may not sign for the signer. Raises
    Forbidden."""
    old = attributes.old or {}
    signer = _signer_of(attributes.old or {})
    statuses = [obj.get("status") or {} for obj in (attributes.obj, old)]
    fields = [(status.get("certificate"), status.get("conditions") or []) for status in statuses]
    if fields[0] != fields[1] and not _is_authorized(attributes, "sign", signer):
        raise attributes.forbidden(
            f"user not permitted to sign requests with signerName {quote(signer)}"
        )


def check_subject(attributes: Attributes) -> None:
    """Refuse a client certificate with which one could do everything. Raises Forbidden."""
    spec = attributes.obj.get("spec") or {}
    if spec.get("signerName") != CLIENT_SIGNER:
        return
    try:
        subject = x509.parse_request(b64decode(spec.get("request") or "")).subject
    except (x509.CertificateError, binascii.Error) as error:
        raise attributes.forbidden(f"failed to parse CSR: {error}") from None
    if PRIVILEGED_GROUP in subject.get("Organization", ()):
        raise attributes.forbidden(
            f"use of {CLIENT_SIGNER} signer with {PRIVILEGED_GROUP} group is not allowed"
        )


def _signer_of(request: Object) -> str:
    return str((request.get("spec") or {}).get("signerName", ""))


def _is_authorized(attributes: Attributes, verb: str, signer: str) -> bool:
    """Tell whether the user may do something for a signer, or for all signers of its domain."""
    authorizer = attributes.server.authorizer
    user = attributes.context.user
    domain = signer.partition("/")[0]
    return any(
        authorizer.authorize(AttributesRecord(user, verb, GROUP, "signers", name=name)).allowed
        for name in (signer, f"{domain}/*")
    )
