"""Hosts outside of the cluster: what a pod of a cluster with a way to the internet would find.

Every name that could be a public host's has an address, and a web server that answers with one
page.
Names that are set aside for documentation and tests (RFC 2606) are no hosts.
"""

from __future__ import annotations

from datetime import datetime
from ipaddress import IPv4Address, IPv4Network, ip_address

from kubepy.lazy import blake2b
from kubepy.shell.surroundings import HttpAnswer, NetworkRequest

# Addresses that no host has (RFC 2544); those of names outside are taken from them.
ADDRESSES = IPv4Network("198.18.0.0/15")
PORTS = (80, 443)
RESERVED = ("example.com", "example.net", "example.org")  # names that are set aside
# The last parts of names of public hosts. Another one may be a Service or a namespace, as in
# ``web.shop``.
GENERIC = "app biz cloud com dev edu gov info int mil net org run tech website"
COUNTRIES = """
ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw
by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et
eu fi fj fk fm fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie
il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv
ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr
nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sk sl
sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz
va vc ve vg vi vn vu wf ws ye yt za zm zw
"""
PUBLIC = frozenset((*GENERIC.split(), *COUNTRIES.split()))
PAGE = (
    "<html><head><title>http://{host}</title></head>"
    "<body>{host} is outside of the cluster.</body></html>\n"
)


def outside_address(name: str) -> str:
    """Return the address of a public host; "" for a name that is none."""
    name = name.rstrip(".").lower()
    host, _, last = name.rpartition(".")
    if not host or last not in PUBLIC:
        return ""
    if any(name == suffix or name.endswith(f".{suffix}") for suffix in RESERVED):
        return ""
    digest = blake2b(name.encode(), 4)
    place = 1 + int.from_bytes(digest, "big") % (ADDRESSES.num_addresses - 2)
    return str(ADDRESSES[place])


def is_outside_address(address: str) -> bool:
    """Tell whether an address is that of a name outside."""
    parsed = ip_address(address)
    return isinstance(parsed, IPv4Address) and parsed in ADDRESSES


def answer(request: NetworkRequest, now: datetime) -> HttpAnswer:
    """Return the page of a host outside."""
    _, _, rest = request.url.rpartition("://")
    host = rest.partition("/")[0].partition(":")[0]
    for name, value in request.headers:
        if name.lower() == "host":
            host = value
    page = PAGE.format(host=host).encode()
    headers = (("Content-Type", "text/html"), ("Content-Length", str(len(page))))
    body = page
    if request.method == "HEAD":
        body = b""
    return HttpAnswer(200, "OK", headers, body)
