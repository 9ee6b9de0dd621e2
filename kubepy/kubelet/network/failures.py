"""The ways in which a connection fails, and how long it takes to find out."""

from __future__ import annotations

from kubepy.shell.surroundings import NetworkError

# Linux gives up the beginning of a connection after so many seconds (tcp_syn_retries), unless the
# program did before.
CONNECT_LIMIT = 127.0
LOOKUP_LIMIT = 10.0  # of a resolver with one server: two attempts of five seconds


def refused() -> NetworkError:
    return NetworkError("refused", 0.0)


def timeout() -> NetworkError:
    return NetworkError("timeout", CONNECT_LIMIT)


def no_such_host() -> NetworkError:
    return NetworkError("no such host", 0.0)


def no_name_server() -> NetworkError:
    """Return the failure of a lookup that no server answers."""
    return NetworkError("no such host", LOOKUP_LIMIT)
