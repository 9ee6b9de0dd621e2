"""The check that a certificate and a private key belong together. Upstream: Go's
``tls.X509KeyPair``."""

from __future__ import annotations

import re

from kubepy.cli.errors import CliError

_BLOCK = re.compile(
    rb"^-----BEGIN ([^\n]*?)-----\s*$.*?^-----END \1-----\s*$", re.MULTILINE | re.DOTALL
)
_MISMATCHES = {
    "KEY_VALUES_MISMATCH": "tls: private key does not match public key",
    "KEY_TYPE_MISMATCH": "tls: private key type does not match public key type",
}


def check_pair(certificate: bytes, key: bytes) -> None:
    """Raise CliError unless the contents are a certificate and its key."""
    _check_certificate(_blocks(certificate))
    _check_key(_blocks(key))
    _check_match(certificate, key)


def _blocks(content: bytes) -> list[str]:
    """Return the types of the PEM blocks."""
    return [match[1].decode(errors="replace") for match in _BLOCK.finditer(content)]


def _check_certificate(blocks: list[str]) -> None:
    if "CERTIFICATE" in blocks:
        return
    if not blocks:
        raise CliError("tls: failed to find any PEM data in certificate input")
    if len(blocks) == 1 and blocks[0].endswith("PRIVATE KEY"):
        raise CliError(
            "tls: failed to find certificate PEM data in certificate input, but did find a "
            "private key; PEM "
            "inputs may have been switched"
        )

    raise CliError(
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM '
        "blocks of the "
        f"following types: [{' '.join(blocks)}]"
    )


def _check_key(blocks: list[str]) -> None:
    if any(f" {block}".endswith(" PRIVATE KEY") for block in blocks):
        return
    if not blocks:
        raise CliError("tls: failed to find any PEM data in key input")
    if blocks == ["CERTIFICATE"]:
        raise CliError("tls: found a certificate rather than a key in the PEM for the private key")
    raise CliError(
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after '
        "skipping PEM "
        f"blocks of the following types: [{' '.join(blocks)}]"
    )


def _check_match(certificate: bytes, key: bytes) -> None:
    """Raise CliError unless the key is the certificate's.

    ssl reads files only, and the user's may be pipes, which can be read once: so the contents go to
    temporary files.
    """
    import ssl
    import tempfile

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")  # weak keys are accepted
    with tempfile.NamedTemporaryFile() as first, tempfile.NamedTemporaryFile() as second:
        for file, content in ((first, certificate), (second, key)):
            file.write(content)
            file.flush()
        try:
            context.load_cert_chain(
                first.name, second.name, password=""
            )  # an encrypted key must not ask for one
        except ssl.SSLError as error:
            raise CliError(
                _MISMATCHES.get(error.reason or "", f"tls: {error.reason or error}")
            ) from None
