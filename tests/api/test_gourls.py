"""Go's ``net/url``: the answers are those of its own tests and of its documented rules."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.cel.interpreter import evaluate
from kubepy.api.cel.parser import parse
from kubepy.api.cel.values import CelError
from kubepy.api.schema import formats
from kubepy.api.values import gourls

VALID = [
    "http://foo.com",
    "http://foo.com/",
    "http://foo.com/path",
    "/",
    "/healthz?verbose",
    "//not.a.user@not.a.host/just/a/path",
    "//not.a.user@%66%6f%6f.com/just/a/path/also",
    "*",
    "http://192.168.0.1/",
    "http://192.168.0.1:8080/",
    "http://[fe80::1]/",
    "http://[fe80::1]:8080/",
    "http://[fe80::1%25en0]/",
    "http://[fe80::1%25%65%6e%301-._~]:8080/",
    "tcp://[2020::2020:20:2020:2020%25Windows%20Loves%20Spaces]:2020",
    "http://[::ffff:192.0.2.1]/",
    "http://user:pa%20ss@foo.com/",
    "http://j@ne:password@google.com/p@th?q=@go",
    "http://foo.com:/",
    "http://foo.com:99999/",
    "http://-._~!$&'()*+,;=:80/",
    'http://<">/',
    "http://h%E2%98%83/",
    "http://ジェーピーニック.jp/",
    "http:///path",
    "https://",
    "http:",
    "http:opaque",
    "mailto:?subject=hi",
    "mailto:a b@example.com",
    "magnet:?xt=urn:btih:c12f&dn",
    "urn:x%zz",
    "x+y-z.1:a",
    "foo.com:80",
    "/two words",
    "/path#fragment",
    "http://foo.com/?a=%zz",
]
INVALID = {
    "": "empty url",
    "foo.html": "invalid URI for request",
    "../dir/": "invalid URI for request",
    " http://foo.com": "invalid URI for request",
    "1http://foo.com": "invalid URI for request",
    "ht_tp://foo.com": "invalid URI for request",
    "?q=1": "invalid URI for request",
    "#fragment": "invalid URI for request",
    ":": "missing protocol scheme",
    "://foo.com": "missing protocol scheme",
    "http://foo.com/\n": "net/url: invalid control character in URL",
    "/del\x7f": "net/url: invalid control character in URL",
    "http://192.168.0.%31/": 'invalid URL escape "%31"',
    "http://[fe80::%31%25en0]:8080/": 'invalid URL escape "%31"',
    "http://[fe80::1%en0]/": 'invalid URL escape "%en"',
    "http://a b.com/": 'invalid character " " in host name',
    "http://foo.com#fragment": 'invalid character "#" in host name',
    "http://a\\b/": 'invalid character "\\\\" in host name',
    "http://a{b}/": 'invalid character "{" in host name',
    "http://foo.com:port/": 'invalid port ":port" after host',
    "http://[::1]:port/": 'invalid port ":port" after host',
    "http://[::1]80/": 'invalid port "80" after host',
    "http://::1:80/": 'invalid port "::1:80" after host',
    "http://foo:80:80/": 'invalid port ":80:80" after host',
    "http://[::1/": "missing ']' in host",
    "http://a[::1]/": "invalid IP-literal",
    "http://[192.0.2.1]/": "invalid IP-literal",
    "http://[foo]/": 'invalid host: ParseAddr("foo"): unable to parse IP',
    "http://[]/": 'invalid host: ParseAddr(""): unable to parse IP',
    "http://u ser@foo.com/": "net/url: invalid userinfo",
    "http://u%zz@foo.com/": 'invalid URL escape "%zz"',
    "http://foo.com/%": 'invalid URL escape "%"',
    "http://foo.com/%a": 'invalid URL escape "%a"',
    "/%zz/more": 'invalid URL escape "%zz"',
}


def _value(expression: str, text: str) -> Any:
    return evaluate(parse(expression), {"text": text})


@pytest.mark.parametrize("text", VALID)
def test_request_uri_that_go_accepts_is_url(text: str) -> None:
    gourls.parse_request_uri(text)
    assert _value("isURL(text)", text) is True
    assert formats.fits("uri", text)


@pytest.mark.parametrize(("text", "reason"), INVALID.items())
def test_request_uri_that_go_refuses_is_no_url(text: str, reason: str) -> None:
    with pytest.raises(gourls.GoUrlError) as error:
        gourls.parse_request_uri(text)
    assert str(error.value).endswith(f": {reason}")
    assert _value("isURL(text)", text) is False
    assert not formats.fits("uri", text)


def test_url_of_bad_text_gives_the_reason_of_go() -> None:
    with pytest.raises(CelError) as error:
        _value("url(text)", "http://foo:80:80/")
    assert str(error.value) == (
        "URL parse error during conversion from string: "
        'parse "http://foo:80:80/": invalid port ":80:80" after host'
    )
    reasons = _value("format.uri().validate(text).value()", "a b")
    assert reasons == ['parse "a b": invalid URI for request']


def test_url_that_only_a_request_may_have_is_an_error() -> None:
    """The second reading, with fragments, takes ``//`` for the start of a host."""
    with pytest.raises(CelError) as error:
        _value("url(text)", "//not.a.user@%66%6f%6f.com/path")
    assert 'invalid URL escape "%66"' in str(error.value)


@pytest.mark.parametrize(
    ("text", "expression", "expected"),
    [
        ("HTTPS://u:p@A.example.com:80/x", "url(text).getScheme()", "https"),
        ("https://u:p@A.example.com:80/x", "url(text).getHost()", "A.example.com:80"),
        ("https://u:p@A.example.com:80/x", "url(text).getHostname()", "A.example.com"),
        ("https://[fe80::1%25en0]:080/x", "url(text).getHost()", "[fe80::1%en0]:080"),
        ("https://[fe80::1%25en0]:080/x", "url(text).getHostname()", "fe80::1%en0"),
        ("https://[fe80::1%25en0]:080/x", "url(text).getPort()", "080"),
        ("https://a:/x", "url(text).getPort()", ""),
        ("mailto:a@b?c=d", "url(text).getHost() + url(text).getEscapedPath()", ""),
        ("/a b/%2F|é#f", "url(text).getEscapedPath()", "/a%20b//%7C%C3%A9"),
        ("/a%2Fb'!#f", "url(text).getEscapedPath()", "/a%2Fb'!"),
        ("*", "url(text).getEscapedPath()", "*"),
        (
            "/p?a=1&b=%zz&a=2+3&c;d&&e#f",
            "url(text).getQuery()",
            {"a": ["1", "2 3"], "e": [""]},
        ),
        ("/p?", "url(text).getQuery()", {}),
    ],
)
def test_part_of_url_is_read_as_go_reads_it(text: str, expression: str, expected: Any) -> None:
    assert _value(expression, text) == expected
