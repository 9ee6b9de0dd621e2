"""Programs that ask for names and connect: nslookup, getent, dig, host, ping, nc."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from kubepy.shell.files import FileError
from kubepy.shell.surroundings import HttpAnswer, NetworkError, NetworkRequest
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, Failure, complain, program
from kubepy.shell.utility import Delay, Execution, Unknown

RESOLVER_FILE = "/etc/resolv.conf"
USUAL_SERVER = "10.96.0.10"
SERVER_NAME = "kube-dns.kube-system.svc.cluster.local"
CONNECT_SECONDS = 130.0
RESOLVE_SECONDS = 10.0
NO_SERVER = ";; connection timed out; no servers could be reached\n"
ECHO_PORT = 7
PING_TIME = "0.050"
REQUEST_LINE = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.[01]\r?\n")


def _resolver(call: Execution) -> tuple[str, list[str]]:
    """Return the DNS server and the search domains of a container."""
    try:
        text = call.files.read(RESOLVER_FILE).decode("utf-8", "replace")
    except FileError:
        return USUAL_SERVER, []
    server = USUAL_SERVER
    domains: list[str] = []
    for line in text.splitlines():
        keyword, *values = line.split() or [""]
        if keyword == "nameserver" and values:
            server = values[0]
        elif keyword == "search":
            domains = values
    return server, domains


def _addresses(call: Execution, name: str, *, status: int = 1, message: str = "") -> Sequence[str]:
    """Return the addresses of a name, none if it has none.

    Where no server answers, the program ends after a while with a status and a message.
    """
    try:
        return call.surroundings.resolve(name, call.now)
    except NetworkError as error:
        if error.kind == "no such host":
            return ()
        seconds = error.seconds or RESOLVE_SECONDS
        raise Delay(seconds, status, err=message.encode()) from error


def _full_name(call: Execution, name: str, addresses: Sequence[str]) -> str:
    """Return the name with the search domain that leads to the same addresses."""
    for domain in _resolver(call)[1]:
        candidate = f"{name}.{domain}"
        if list(_addresses(call, f"{candidate}.")) == list(addresses):
            return candidate
    return name


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@program("-type=TYPE", "-query=TYPE")
def nslookup(call: Execution, options: Arguments) -> int:
    """Ask for the addresses of a name, in the words of busybox 1.28."""
    call.reads_network()
    names = options.operands
    if not names or len(names) > 2:
        raise Unknown("nslookup with these operands")
    name = names[0]
    asked_kind = options.get("type") or options.get("query")
    kind = (asked_kind or "a").lower()
    is_known_kind = kind in ("a", "aaaa")
    if not is_known_kind or _is_address(name):
        raise Unknown(f"nslookup of {kind} {name}")
    server, _ = _resolver(call)
    if len(names) > 1:
        server = names[1]
    failure = f"nslookup: can't resolve '{name}'\n"
    addresses = _addresses(call, name, message=failure)
    server_name = ""
    if server in _addresses(call, f"{SERVER_NAME}."):
        server_name = SERVER_NAME
    shown = f"{server} {server_name}".rstrip()
    text = f"Server:    {server}\nAddress 1: {shown}\n\n"
    call.out(text)
    if not addresses:
        raise Failure(f"can't resolve '{name}'")
    full = _full_name(call, name, addresses)
    call.out(f"Name:      {name}\n")
    for number, address in enumerate(addresses, 1):
        shown = address
        if full != name or "." in name:
            shown = f"{address} {full}"
        line = f"Address {number}: {shown}\n"
        call.out(line)
    return 0


@program(style=ArgumentStyle(is_permuted=False))
def getent(call: Execution, options: Arguments) -> int:
    """Look up hosts; other databases are not known."""
    if len(options.operands) < 2 or options.operands[0] not in ("hosts", "ahostsv4"):
        raise Unknown("getent of another database")
    call.reads_network()
    database, *names = options.operands
    if database != "hosts":
        raise Unknown(f"getent {database}")
    status = 0
    for name in names:
        addresses = _addresses(call, name, status=2)
        if not addresses:
            status = 2
        full = name
        if addresses:
            full = _full_name(call, name, addresses)
        for address in addresses:
            line = f"{address:<15s} {full}\n"
            call.out(line)
    return status


@program("+short", "+search", "+nosearch", "@SERVER", style=ArgumentStyle(is_raw=True))
def dig(call: Execution, options: Arguments) -> int:
    """Ask for the addresses of a name; known is ``+short``."""
    call.reads_network()
    names: list[str] = []
    is_short = False
    searches = False
    for argument in options.operands:
        if argument == "+short":
            is_short = True
        elif argument in ("+search", "+nosearch"):
            searches = argument == "+search"
        elif argument.startswith(("+", "-")):
            raise Unknown(f"dig {argument}")
        elif not argument.startswith("@") and argument.upper() not in ("A", "IN"):
            names.append(argument)
    if not is_short or len(names) != 1:
        raise Unknown("dig with these operands")
    name = names[0]
    if name.upper() in ("AAAA", "SRV", "ANY", "PTR", "TXT"):
        raise Unknown("dig with these operands")
    if not searches and not name.endswith("."):
        name = f"{name}."
    for address in _addresses(call, name, status=9, message=NO_SERVER):
        call.out(f"{address}\n")
    return 0


@program("-t=TYPE")
def host(call: Execution, options: Arguments) -> int:
    """Ask for the addresses of a name."""
    call.reads_network()
    kind = options.get("t", "A").upper()
    if len(options.operands) != 1 or kind != "A":
        raise Unknown("host with these operands")
    name = options.operands[0]
    if _is_address(name):
        raise Unknown("host of an address")
    addresses = _addresses(call, name, message=NO_SERVER)
    if not addresses:
        call.out(f"Host {name} not found: 3(NXDOMAIN)\n")
        return 1
    full = _full_name(call, name, addresses)
    for address in addresses:
        line = f"{full} has address {address}\n"
        call.out(line)
    return 0


@program("-c=COUNT", "-i=SECONDS", "-n", "-q", "-W=SECONDS", "-4")
def ping(call: Execution, options: Arguments) -> int:
    """Send echo requests, in busybox's words; without ``-c`` it would not end."""
    call.reads_network()
    if not options.has("c") or len(options.operands) != 1:
        raise Unknown("ping without -c")
    name = options.operands[0]
    count = int(options.get("c"))
    interval = float(options.get("i", "1"))
    failure = f"{call.name}: bad address '{name}'\n"
    addresses = _addresses(call, name, message=failure)
    if not addresses:
        raise Failure(f"bad address '{name}'")
    address = addresses[0]
    is_answered = _answers(call, address)
    lines = [f"PING {name} ({address}): 56 data bytes"]
    if is_answered and not options.has("q"):
        lines += [
            f"64 bytes from {address}: seq={number} ttl=64 time={PING_TIME} ms"
            for number in range(count)
        ]
    received = 0
    if is_answered:
        received = count
    lost = 100
    if is_answered:
        lost = 0
    totals = f"{count} packets transmitted, {received} packets received, {lost}% packet loss"
    lines += ["", f"--- {name} ping statistics ---", totals]
    if is_answered:
        lines.append(f"round-trip min/avg/max = {PING_TIME}/{PING_TIME}/{PING_TIME} ms")
    wait = 0.0
    if not is_answered:
        wait = float(options.get("W", "10"))
    seconds = (count - 1) * interval + wait
    text = "".join(f"{line}\n" for line in lines)
    status = 1
    if is_answered:
        status = 0
    if seconds <= 0:
        call.out(text)
        return status
    raise Delay(seconds, status, out=text.encode())


def _answers(call: Execution, address: str) -> bool:
    """Tell whether a host is there: it accepts or refuses a connection."""
    try:
        call.surroundings.connect(address, ECHO_PORT, call.now)
    except NetworkError as error:
        return error.kind in ("refused", "reset")
    return True


@program("-z", "-v", "-n", "-t", "-w=SECONDS", "-4", "-6", "-q=SECONDS", "-N")
def nc(call: Execution, options: Arguments) -> int:
    """Connect to a port, in busybox's words; listening is not known."""
    call.reads_network()
    if len(options.operands) != 2 or not options.operands[1].isdigit():
        raise Unknown("nc with these operands")
    name = options.operands[0]
    port = int(options.operands[1])
    failure = f"{call.name}: bad address '{name}'\n"
    addresses = _addresses(call, name, message=failure)
    if not addresses:
        raise Failure(f"bad address '{name}'")
    place = f"{name} ({addresses[0]}:{port})"
    try:
        call.surroundings.connect(name, port, call.now)
    except NetworkError as error:
        return _not_connected(call, options, place, error)
    if options.has("v"):
        call.err(f"{place} open\n")
    if not options.has("z"):
        _talk(call, name, port)
    return 0


def _not_connected(call: Execution, options: Arguments, place: str, error: NetworkError) -> int:
    problems = {
        "refused": "Connection refused",
        "unreachable": "No route to host",
        "reset": "Connection reset by peer",
        "timeout": "Connection timed out",
    }
    problem = problems.get(error.kind, "Connection timed out")
    seconds = error.seconds
    if error.kind == "timeout":
        seconds = float(options.get("w", "0")) or CONNECT_SECONDS
    message = ""
    if options.has("v"):
        message = f"nc: {place}: {problem}\n"
    if seconds > 0:
        raise Delay(seconds, 1, err=message.encode())
    call.err(message)
    return 1


def _talk(call: Execution, name: str, port: int) -> None:
    """Send standard input, and print the answer of a server over HTTP."""
    data = call.stdin  # it is there once
    match = REQUEST_LINE.match(data)
    if match is None:
        _talk_nonsense(call, name, port, data)
        return
    content = data.replace(b"\r\n", b"\n")
    head, _, body = content.partition(b"\n\n")
    headers: list[tuple[str, str]] = []
    head_lines = head.decode("latin-1").split("\n")
    for line in head_lines[1:]:
        key, _, value = line.partition(":")
        headers.append((key.strip(), value.strip()))
    method = match[1].decode()
    target = match[2].decode("latin-1")
    url = f"http://{name}:{port}{target}"
    request = NetworkRequest(method, url, tuple(headers), body)
    try:
        answer = call.surroundings.http(request, call.now)
    except NetworkError:
        complain(call, "read error: Connection reset by peer")
        return
    _print_answer(call, answer)


def _talk_nonsense(call: Execution, name: str, port: int, data: bytes) -> None:
    """Send what is no request over HTTP: servers of other protocols have an answer that is not
    known."""
    if not data:
        return
    request = NetworkRequest("", f"http://{name}:{port}/", (), data)
    try:
        answer = call.surroundings.http(request, call.now)
    except NetworkError:
        return
    _print_answer(call, answer)


def _print_answer(call: Execution, answer: HttpAnswer) -> None:
    status_line = f"HTTP/1.1 {answer.status} {answer.reason}\r\n"
    call.out(status_line)
    for key, value in answer.headers:
        header_line = f"{key}: {value}\r\n"
        call.out(header_line)
    call.out(b"\r\n" + answer.body)
