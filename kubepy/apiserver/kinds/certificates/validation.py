"""CertificateSigningRequests (``pkg/apis/certificates/validation``)."""

from __future__ import annotations

import re
from base64 import b64decode

from kubepy.api.errors import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from kubepy.api.meta import Object, nested_list
from kubepy.api.values.names import NameRule, dns1123_label, dns1123_subdomain
from kubepy.apiserver.validation.fields import Errors
from kubepy.quoting import quote

# --- certificate signing requests (pkg/apis/certificates/validation); signatures are not checked --


USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
TEN_MINUTES = 600
_PEM = re.compile(rb"-----BEGIN (.+?)-----\s.*-----END \1-----", re.DOTALL)


def validate_request(request: Object) -> list[FieldError]:
    errors: Errors = []
    spec = request["spec"]

    encoded = spec.get("request")
    block = _PEM.search(b64decode(encoded or ""))
    if block is None or block[1] != b"CERTIFICATE REQUEST":
        errors.append(
            invalid_value("spec.request", encoded, "PEM block type must be CERTIFICATE REQUEST")
        )

    if not spec.get("usages"):
        errors.append(required("spec.usages"))

    for index, usage in enumerate(nested_list(spec, "usages")):
        if usage not in USAGES:
            errors.append(not_supported(f"spec.usages[{index}]", usage, USAGES))
        if usage in spec["usages"][:index]:
            errors.append(duplicate(f"spec.usages[{index}]", usage))

    _validate_signer(spec.get("signerName", ""), errors)

    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < TEN_MINUTES:
        errors.append(
            invalid_value(
                "spec.expirationSeconds",
                seconds,
                "may not specify a duration less than 600 seconds (10 minutes)",
            )
        )

    return errors


def _validate_signer(name: str, errors: Errors) -> None:
    """Validate a domain and a path, as in ``example.com/my-signer`` (``ValidateSignerName``)."""
    path = "spec.signerName"
    domain, _, rest = name.partition("/")
    if not name:
        errors.append(required(path))
        return

    if name.count("/") != 1:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errors.append(invalid_value(path, name, detail))
        return

    if len(domain) > 253:
        errors.append(too_long(path, 253))
    _validate_labels(domain, dns1123_label, path, errors)

    if "." not in domain:
        errors.append(
            invalid_value(
                path, domain, "should be a domain with at least two segments separated by dots"
            )
        )

    _validate_labels(rest, dns1123_subdomain, path, errors)
    if len(name) > 571:
        errors.append(too_long(path, 571))


def _validate_labels(text: str, rule: NameRule, path: str, errors: Errors) -> None:
    """Add the errors of the first part between dots that has some."""
    for label in text.split("."):
        if details := rule(label):
            errors.extend(
                invalid_value(path, text, f"validating label {quote(label)}: {detail}")
                for detail in details
            )
            return
