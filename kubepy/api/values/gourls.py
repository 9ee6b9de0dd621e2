"""URLs as Go reads them (``net/url`` of Go 1.26, of which a v1.36 API server is built).

:func:`parse_request_uri` takes an absolute URI or an absolute path; :func:`parse` takes relative
references and fragments too. Both raise :class:`GoUrlError` with Go's reason.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import quote as percent_encode
from urllib.parse import unquote_to_bytes

from kubepy.quoting import quote

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.S)
# In a host, an escape stands for a byte that is no ASCII, or for the percent sign of a zone.
_ASCII_ESCAPE = re.compile(r"%(?!25)[0-7][0-9A-Fa-f]")
_NO_HOST_CHARACTER = re.compile(r"[\x00- #/?@\\^`{|}\x7f]")
_NO_USER_CHARACTER = re.compile(r"[^A-Za-z0-9\-._:~!$&'()*+,;=%@]")
_USER_UNESCAPED = "$&+,;=-_.~"
_NO_ENCODED_PATH = re.compile(r"[^A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]")
_PATH_UNESCAPED = "$&+,/:;=@-_.~"
_OPTIONAL_PORT = re.compile(r"(?::[0-9]*)?")


class GoUrlError(ValueError):
    """A text that is no URL, in Go's words: ``parse "a b": invalid URI for request``."""


class GoUrl(NamedTuple):
    """A URL and those of its parts that have readers: escapes of the host are resolved, others are
    not."""

    text: str
    scheme: str
    host: str
    raw_path: str
    raw_query: str
    userinfo: str | None = None  # encoded as Go prints it
    fragment: str = ""  # without its escapes

    @property
    def hostname(self) -> str:
        host, _ = self._host_and_port()
        if host.startswith("[") and host.endswith("]"):
            return host[1:-1]
        return host

    @property
    def port(self) -> str:
        return self._host_and_port()[1]

    @property
    def escaped_path(self) -> str:
        """The path as it was written if it is well encoded, else encoded anew."""
        if not _NO_ENCODED_PATH.search(self.raw_path):
            return self.raw_path
        return percent_encode(unquote_to_bytes(self.raw_path), safe=_PATH_UNESCAPED)

    def query(self) -> dict[str, list[str]]:
        """Return the values of each key; a pair that is malformed is left out."""
        values: dict[str, list[str]] = {}
        for pair in self.raw_query.split("&"):
            if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
                continue
            key, _, value = pair.replace("+", " ").partition("=")
            values.setdefault(_unescaped(key), []).append(_unescaped(value))
        return values

    def _host_and_port(self) -> tuple[str, str]:
        host, colon, port = self.host.rpartition(":")
        if colon and _OPTIONAL_PORT.fullmatch(colon + port):
            return host, port
        return self.host, ""


def parse_request_uri(text: str) -> GoUrl:
    """Parse an absolute URI or an absolute path. A ``#`` begins no fragment."""
    try:
        return _parse(text, via_request=True)
    except ValueError as error:
        raise GoUrlError(f"parse {quote(text)}: {error}") from None


def parse(text: str) -> GoUrl:
    """Parse a URL or a relative reference, with or without a fragment."""
    before, _, fragment = text.partition("#")
    try:
        url = _parse(before, via_request=False)._replace(text=text, fragment=_unescaped(fragment))
    except ValueError as error:
        raise GoUrlError(f"parse {quote(before)}: {error}") from None
    try:
        _check_escapes(fragment)
    except ValueError as error:
        raise GoUrlError(f"parse {quote(text)}: {error}") from None
    return url


def is_request_uri(text: str) -> bool:
    try:
        parse_request_uri(text)
    except GoUrlError:
        return False
    return True


def _parse(text: str, *, via_request: bool) -> GoUrl:
    """Raise ValueError with Go's reason."""
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if not text and via_request:
        raise ValueError("empty url")
    if text == "*":
        return GoUrl(text, "", "", "*", "")
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    scheme = ""
    rest = text
    if match := _SCHEME.match(text):
        scheme = match[1].lower()
        rest = text[match.end() :]
    rest, _, raw_query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return GoUrl(text, scheme, "", "", raw_query)
        _check_rootless(rest, via_request=via_request)
    host = ""
    userinfo = None
    if rest.startswith("//") and (scheme or not (via_request or rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        userinfo, host = _parse_authority(authority)
        rest = slash + path
    _check_escapes(rest)
    return GoUrl(text, scheme, host, rest, raw_query, userinfo)


def _check_rootless(path: str, *, via_request: bool) -> None:
    """Refuse a path without a leading slash where there is no scheme."""
    if via_request:
        raise ValueError("invalid URI for request")
    if ":" in path.partition("/")[0]:
        raise ValueError("first path segment in URL cannot contain colon")


def _parse_authority(authority: str) -> tuple[str | None, str]:
    """Return the userinfo and the host, with its port, of ``[userinfo@]host[:port]``."""
    user, at, host = authority.rpartition("@")
    parsed_host = _parse_host(host)
    if not at:
        return None, parsed_host
    if _NO_USER_CHARACTER.search(user):
        raise ValueError("net/url: invalid userinfo")
    _check_escapes(user)
    name, colon, password = user.partition(":")
    return _encoded_user(name) + colon + _encoded_user(password), parsed_host


def _encoded_user(text: str) -> str:
    return percent_encode(unquote_to_bytes(text), safe=_USER_UNESCAPED)


def _parse_host(host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise ValueError("invalid IP-literal")
    if bracket == 0:
        return _parse_ip_literal(host)
    name, colon, port = host.partition(":")
    _check_port(colon + port)
    return _unescaped_host(name) + colon + port


def _parse_ip_literal(host: str) -> str:
    """Parse ``[address]`` or ``[address%25zone]``, with a port or without."""
    address, bracket, port = host[1:].rpartition("]")
    if not bracket:
        raise ValueError("missing ']' in host")
    _check_port(port)
    number, percent, zone = address.partition("%25")
    plain = _unescaped_host(number)
    if percent:
        plain += "%" + _unescaped_zone(zone)
    _check_ipv6(plain)
    return f"[{plain}]{port}"


def _check_ipv6(address: str) -> None:
    number, percent, zone = address.partition("%")
    if percent and not zone:
        raise ValueError(
            f"invalid host: ParseAddr({quote(address)}): zone must be a non-empty string"
        )
    try:
        parsed = ip_address(number)
    except ValueError:
        raise ValueError(f"invalid host: ParseAddr({quote(address)}): unable to parse IP") from None
    if parsed.version == 4:
        raise ValueError("invalid IP-literal")


def _check_port(port: str) -> None:
    if not _OPTIONAL_PORT.fullmatch(port):
        raise ValueError(f"invalid port {quote(port)} after host")


def _check_escapes(text: str) -> None:
    if bad := _BAD_ESCAPE.search(text):
        raise ValueError(f"invalid URL escape {quote(bad[0])}")


def _unescaped_host(host: str) -> str:
    _check_host_characters(host)
    if ascii_escape := _ASCII_ESCAPE.search(host):
        raise ValueError(f"invalid URL escape {quote(ascii_escape[0])}")
    return _unescaped(host)


def _unescaped_zone(zone: str) -> str:
    """Resolve the escapes of a zone: each stands for what a host may hold, or for a space."""
    _check_host_characters(zone)
    for escape in re.findall("%..", zone):
        character = chr(int(escape[1:], 16))
        if character not in " %" and (character > "\x7f" or _NO_HOST_CHARACTER.match(character)):
            raise ValueError(f"invalid URL escape {quote(escape)}")
    return _unescaped(zone)


def _check_host_characters(text: str) -> None:
    _check_escapes(text)
    if bad := _NO_HOST_CHARACTER.search(text):
        raise ValueError(f"invalid character {quote(bad[0])} in host name")


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text.encode(errors="surrogateescape")).decode("utf-8", "replace")
