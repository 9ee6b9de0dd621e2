"""The kinds of the group certificates.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import CHECK_APPROVAL, CHECK_SIGNING, CHECK_SUBJECT, ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.certificates import printers, strategy

KINDS: dict[str, ServedKind] = {
    "certificatesigningrequests": ServedKind(
        lambda: strategy.CertificateSigningRequestStrategy,
        lambda: printers.print_certificate_request,
        validating=(CHECK_APPROVAL, CHECK_SIGNING, CHECK_SUBJECT),
    ),
}
