"""Client certificates: the user that a certificate stands for, once TLS has verified it.

Upstream: ``apiserver/pkg/authentication/request/x509/x509.go`` (``CommonNameUserConversion``).
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterable, Mapping
from typing import Any

from kubepy.api.meta import Object
from kubepy.apiserver.authorization import ALL_AUTHENTICATED, new_user

CERTIFICATE_USER = "certificate_user"  # in the state of an ASGI scope
COMMON_NAME, ORGANIZATION = "commonName", "organizationName"  # as OpenSSL names them
UID = "1.3.6.1.4.1.57683.2"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


def user_of(certificate: Mapping[str, Any], der: bytes) -> Object | None:
    """Return the UserInfo of a verified certificate; None where it names no user.

    :param certificate: what ``SSLSocket.getpeercert`` tells of it.
    :param der: the certificate itself.
    """
    attributes = [pair for names in certificate.get("subject", ()) for pair in names]
    common_names = values_of(attributes, COMMON_NAME)
    uids = values_of(attributes, UID)
    if not common_names or not common_names[-1]:
        return None
    if len(uids) > 1 or "" in uids:  # an error upstream: a token may still name the user
        return None
    return new_user(
        common_names[-1],
        [*values_of(attributes, ORGANIZATION), ALL_AUTHENTICATED],
        "".join(uids),
        {CREDENTIAL_ID: [f"X509SHA256={hashlib.sha256(der).hexdigest()}"]},
    )


def certificates_of(content: bytes) -> str:
    """Return the certificates of a file of CAs, in PEM. Raises ValueError where it holds none, or
    what is no certificate."""
    try:
        text = content.decode()
        if "-----BEGIN CERTIFICATE-----" not in text:
            raise ValueError("data does not contain any valid certificates")
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=text)
    except (UnicodeDecodeError, ssl.SSLError):
        raise ValueError("data does not contain any valid certificates") from None
    return text


def values_of(attributes: Iterable[tuple[str, str]], name: str) -> list[str]:
    """Return the values of one attribute of a subject, in their order."""
    return [value for attribute, value in attributes if attribute == name]
