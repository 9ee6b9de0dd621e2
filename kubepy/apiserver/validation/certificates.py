"""CertificateSigningRequests (``pkg/apis/certificates/validation``), less the signature of what they carry."""

from __future__ import annotations

import re
from base64 import b64decode

from kubepy.api.errors import FieldError, duplicate, invalid_value, not_supported, required
from kubepy.api.meta import Object
from kubepy.apiserver.validation.fields import Errors

USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping")  # fmt: skip
TEN_MINUTES = 600
_PEM = re.compile(rb"-----BEGIN (.+?)-----\s.*-----END \1-----", re.DOTALL)


def validate_request(request: Object) -> list[FieldError]:
    errors: Errors = []
    spec = request["spec"]
    _validate_pem(spec.get("request"), errors)
    if not spec.get("usages"):
        errors.append(required("spec.usages"))
    for index, usage in enumerate(spec.get("usages") or ()):
        if usage not in USAGES:
            errors.append(not_supported(f"spec.usages[{index}]", usage, USAGES))
        if usage in spec["usages"][:index]:
            errors.append(duplicate(f"spec.usages[{index}]", usage))
    _validate_signer(spec.get("signerName", ""), errors)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < TEN_MINUTES:
        errors.append(invalid_value("spec.expirationSeconds", seconds,
                                    "may not specify a duration less than 600 seconds (10 minutes)"))
    return errors


def _validate_pem(encoded: str | None, errors: Errors) -> None:
    found = _PEM.search(b64decode(encoded or ""))
    if found is None or found[1] != b"CERTIFICATE REQUEST":
        errors.append(invalid_value("spec.request", encoded, "PEM block type must be CERTIFICATE REQUEST"))


def _validate_signer(name: str, errors: Errors) -> None:
    """A domain and a path, as in ``example.com/my-signer``."""
    from kubepy.api.values.names import dns1123_subdomain

    if not name:
        errors.append(required("spec.signerName"))
        return
    domain, _, path = name.partition("/")
    if not path:
        errors.append(invalid_value("spec.signerName", name, 'must be a fully qualified domain and path of the form '
                                                             '"example.com/signer-name"'))
        return
    if "." not in domain:
        errors.append(invalid_value("spec.signerName", domain,
                                    "should be a domain with at least two segments separated by dots"))
    errors.extend(invalid_value("spec.signerName", name, f"validating label {part}: {why}")
                  for part in (domain, *path.split(".")) for why in dns1123_subdomain(part))
