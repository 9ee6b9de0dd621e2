"""``kubepy create ingress``. Upstream: ``kubectl/pkg/cmd/create/create_ingress.go``."""

from __future__ import annotations

import re
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import int_or_none
from kubepy.cli.create.objects import generator, metadata
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_array_flag as string_array
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.verbs import Invocation
from kubepy.quoting import printable

_RULE = re.compile(r"[\w*\-.]*/.*=[\w\-]+:[\w\-]+(,tls=?([\w\-]+)?)?", re.ASCII)


class Rule(NamedTuple):
    """``host/path=service:port,tls=secret``. ``secret`` None: without TLS."""

    host: str
    path: str
    service: str
    secret: str | None


@generator("ingress", "ingress NAME --rule=host/path=service:port[,tls[=secret]]", checks_name=False, flags=[
    string("class", help="Ingress Class to be used."),
    string_array("rule", help="Rule in the format host/path=service:port[,tls[=secretname]]. A path that ends in * is "
                 "a prefix."),
    string("default-backend", help="Default service for backend, in the format service:port."),
    string_array("annotation", help="Annotation to insert in the ingress object, in the format annotation=value."),
], failure="failed to create ingress: ", examples="""
# One host, everything below a path
kubepy create ingress web --rule='shop.example.com/cart*=cart:80'

# With TLS, and a service for all other requests
kubepy create ingress web --rule='shop.example.com/=shop:http,tls=shop-cert' --default-backend=missing:80
""")
def ingress(factory: Factory, given: Invocation, name: str) -> Object:
    """Create an ingress with the specified name."""
    _validate(given)
    rules = [_parsed(text) for text in given.rule]
    annotations = dict(sorted(text.split("=", 1) for text in given.annotation))
    fields = {
        "ingressClassName": given.flag("class"),
        "defaultBackend": _backend(given.default_backend) if given.default_backend else None,
        "tls": _tls(rules),
        "rules": _rules(rules),
    }
    return {"kind": "Ingress", "apiVersion": "networking.k8s.io/v1",
            "metadata": metadata(factory, name, annotations=annotations),
            "spec": {key: value for key, value in fields.items() if value}, "status": {"loadBalancer": {}}}


def _validate(given: Invocation) -> None:
    if not given.default_backend and not given.rule:
        raise CliError("not enough information provided: every ingress has to either specify a default-backend (which "
                       "catches all traffic) or a list of rules (which catch specific paths)")
    for rule in given.rule:
        if not _RULE.match(rule):
            raise CliError(f"rule {printable(rule)} is invalid and should be in format "
                           "host/path=svcname:svcport[,tls[=secret]]")
    for annotation in given.annotation:
        if "=" not in annotation:
            raise CliError(printable(f"annotation {annotation} is invalid and should be in format key=[value]"))
    if given.default_backend and given.default_backend.count(":") != 1:
        raise CliError("default-backend should be in format servicename:serviceport")


def _parsed(text: str) -> Rule:
    front, comma, tls = text.partition(",")
    host, _, rest = front.partition("/")
    path, service = rest.split("=")[:2]
    is_tls = bool(comma) and "," not in tls
    return Rule(host, f"/{path}", service, "".join(tls.split("=")[1:2]) if is_tls else None)


def _tls(rules: list[Rule]) -> list[Object]:
    """An entry for each secret; the first one that a host names is its own."""
    secrets: dict[str, list[str]] = {}
    seen: set[str] = set()
    for rule in rules:
        if rule.secret is None or rule.host in seen:
            continue
        seen.add(rule.host)
        if rule.secret in secrets:
            secrets[rule.secret].append(rule.host)
        elif rule.secret or rule.host:
            secrets[rule.secret] = [rule.host] if rule.host else []
    return [{**({"hosts": hosts} if hosts else {}), **({"secretName": secret} if secret else {})}
            for secret, hosts in secrets.items()]


def _rules(rules: list[Rule]) -> list[Object]:
    """The paths of each host."""
    hosts: dict[str, list[Object]] = {}
    for rule in rules:
        hosts.setdefault(rule.host, []).append(_path(rule))
    return [{**({"host": host} if host else {}), "http": {"paths": paths}} for host, paths in hosts.items()]


def _path(rule: Rule) -> Object:
    kind = "Prefix" if rule.path.endswith("*") else "Exact"
    return {"path": rule.path.removesuffix("*"), "pathType": kind, "backend": _backend(rule.service)}


def _backend(text: str) -> Object:
    name, port = text.split(":")[:2]
    number = int_or_none(port, 32)
    shown = {"number": number} if number is not None else {"name": port} if port else {}
    return {"service": {"name": name, "port": shown}}
