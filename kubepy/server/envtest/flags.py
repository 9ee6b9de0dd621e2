"""The flags of the program ``kube-apiserver``: those that mean something here, by upstream's names.

Others are accepted, and the log says that they do nothing. Upstream:
``cmd/kube-apiserver/app/options``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from kubepy.quoting import printable, quote

STRING, BOOL, INT = "string", "", "int"
WIDTH = 80
FLAGS: dict[str, tuple[str, str]] = {
    "allow-privileged": (BOOL, "Privileged containers are allowed, whatever this says."),
    "api-audiences": (STRING, "The audiences of the server's own tokens; the issuers if not set."),
    "authorization-mode": (STRING, "AlwaysAllow, or RBAC (with Node or without)."),
    "bind-address": (STRING, "The address to listen on; 0.0.0.0 if not set."),
    "cert-dir": (STRING, "The folder of apiserver.crt and apiserver.key."),
    "client-ca-file": (STRING, "The CAs of the certificates of users: CN is the name, O a group."),
    "disable-admission-plugins": (STRING, "Admission plugins that do not run."),
    "enable-admission-plugins": (STRING, "Admission plugins that run; all here run anyway."),
    "etcd-servers": (
        STRING,
        "Must be given, and means nothing: the cluster is in the memory of this process.",
    ),
    "feature-gates": (STRING, "Checked as by kube-apiserver v1.36; they change nothing."),
    "runtime-config": (STRING, "Means nothing: the APIs are those of v1.36 by default."),
    "secure-port": (INT, "The port to listen on; 6443 if not set."),
    "service-account-issuer": (STRING, "The issuer of tokens; the first of several issues them."),
    "service-account-key-file": (STRING, "Keys by which tokens may be signed."),
    "service-account-signing-key-file": (STRING, "The key that signs tokens."),
    "service-cluster-ip-range": (STRING, "The network of the addresses of Services."),
    "tls-cert-file": (STRING, "The serving certificate, in place of the one in --cert-dir."),
    "tls-private-key-file": (STRING, "The key of --tls-cert-file."),
    "v": (INT, "The verbosity of the log."),
}


class ServerFlagError(ValueError):
    """A command line that kube-apiserver refuses."""


class ServerArguments(NamedTuple):
    """The flags of a command line.

    :ivar values: by the names of the known flags, each value that was given.
    :ivar unknown: the other flags, as they were given.
    """

    values: dict[str, list[str]]
    unknown: list[str]

    def last(self, name: str, default: str = "") -> str:
        """Return the value that counts where a flag is given several times."""
        return self.values.get(name, [default])[-1]

    def items(self, name: str) -> list[str]:
        """Return what a flag lists: values separated by commas, of each time it is given."""
        words = ",".join(self.values.get(name, ())).split(",")
        return [word for word in map(str.strip, words) if word]


def parse_arguments(words: Sequence[str]) -> ServerArguments:
    """Read a command line as pflag does. Raises ServerFlagError."""
    values: dict[str, list[str]] = {}
    unknown: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            raise ServerFlagError(f'unknown command {quote(printable(word))} for "kube-apiserver"')
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if not equals:
            value = _following_value(name, rest)
        if name in FLAGS:
            values.setdefault(name, []).append(value)
        else:
            unknown.append(word)
    return ServerArguments(values, unknown)


def _following_value(name: str, rest: list[str]) -> str:
    """Take the value of a flag that has none behind ``=`` from the words that follow."""
    kind, _ = FLAGS.get(name, (None, ""))
    if kind == BOOL:
        return "true"
    if rest and (kind is not None or not rest[0].startswith("-")):
        return rest.pop(0)
    if kind is not None:
        raise ServerFlagError(f"flag needs an argument: --{name}")
    return "true"


def help_text() -> str:
    """Return the answer to ``--help``; envtest looks there for the flags that there are."""
    lines = [
        "The Kubernetes API of kubepy, with the flags of kube-apiserver that mean",
        "something here. Other flags are accepted, and the log says so.",
        "",
        "Usage:",
        "  kube-apiserver [flags]",
        "",
        "Flags:",
    ]
    for name, (kind, meaning) in FLAGS.items():
        lines.append(f"      --{name} {kind}".rstrip())
        lines += textwrap.wrap(meaning, WIDTH, initial_indent=" " * 16, subsequent_indent=" " * 16)
    return "\n".join(lines) + "\n"
