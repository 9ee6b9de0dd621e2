"""``kubepy create ingress``. Upstream: ``kubectl/pkg/cmd/create/create_ingress.go``."""

from __future__ import annotations

import re
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import int_or_none
from kubepy.cli.create.objects import GeneratorOptions, generator, metadata
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_array_flag, string_flag
from kubepy.quoting import printable

_RULE = re.compile(r"[\w*\-.]*/.*=[\w\-]+:[\w\-]+(,tls=?([\w\-]+)?)?", re.ASCII)


class IngressRule(NamedTuple):
    """A rule of the form ``host/path=service:port,tls=secret``. ``secret`` None: without TLS."""

    host: str
    path: str
    service: str
    secret: str | None


class CreateIngressOptions(GeneratorOptions):
    """The flags of ``create ingress``."""

    class_: str = string_flag("class", help="Ingress Class to be used.")
    rule: list[str] = string_array_flag(
        "rule",
        help="Rule in the format host/path=service:port[,tls[=secretname]]. A "
        "path that ends in * is a prefix.",
    )
    default_backend: str = string_flag(
        "default-backend", help="Default service for backend, in the format service:port."
    )
    annotation: list[str] = string_array_flag(
        "annotation",
        help="Annotation to insert in the ingress object, in the format annotation=value.",
    )
    checks_name = False


@generator(
    "ingress NAME --rule=host/path=service:port[,tls[=secret]]",
    CreateIngressOptions,
    failure="failed to create ingress: ",
    examples="""
# Send requests for one path of a host to a service
kubepy create ingress shop --rule="shop.example.com/cart=cart:8080"

# Send all requests for a host to it, whatever the path
kubepy create ingress start --rule="example.com/*=web:80"

# Name the class of controller that is to serve it
kubepy create ingress inner --class=internal --rule="wiki.example.com/*=wiki:http"

# With TLS, by the certificate in a secret
kubepy create ingress secure --rule="shop.example.com/*=web:443,tls=shop-certificate"

# With TLS, by the controller's own certificate
kubepy create ingress default-tls --rule="shop.example.com/*=web:443,tls"

# Several paths of a host: an exact one, and those below another
kubepy create ingress paths --rule="example.com/status=monitor:9090" --rule="example.com/docs*=docs:80"

# Several hosts
kubepy create ingress hosts --rule="shop.example.com/*=shop:80" --rule="blog.example.com/*=blog:80"

# With annotations for its controller
kubepy create ingress limited --rule="example.com/*=web:80" \\
  --annotation=ingress.example.com/rate=10 --annotation=ingress.example.com/burst=20

# For requests that no rule is about
kubepy create ingress fallback --default-backend=web:80
""",  # noqa: E501
)
def ingress(factory: Factory, options: CreateIngressOptions, name: str) -> Object:
    """Create an ingress with the specified name."""
    _validate(options)
    rules = [_parsed(text) for text in options.rule]
    annotations = dict(sorted(text.split("=", 1) for text in options.annotation))
    fields = {
        "ingressClassName": options.class_,
        "defaultBackend": _backend(options.default_backend) if options.default_backend else None,
        "tls": _tls(rules),
        "rules": _rules(rules),
    }
    return {
        "kind": "Ingress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": metadata(factory, name, annotations=annotations),
        "spec": {key: value for key, value in fields.items() if value},
        "status": {"loadBalancer": {}},
    }


def _validate(options: CreateIngressOptions) -> None:
    if not options.default_backend and not options.rule:
        raise CliError(
            "not enough information provided: every ingress has to either specify a "
            "default-backend (which "
            "catches all traffic) or a list of rules (which catch specific paths)"
        )

    for rule in options.rule:
        if not _RULE.match(rule):
            raise CliError(
                f"rule {printable(rule)} is invalid and should be in format "
                "host/path=svcname:svcport[,tls[=secret]]"
            )

    for annotation in options.annotation:
        if "=" not in annotation:
            raise CliError(
                printable(f"annotation {annotation} is invalid and should be in format key=[value]")
            )

    if options.default_backend and options.default_backend.count(":") != 1:
        raise CliError("default-backend should be in format servicename:serviceport")


def _parsed(text: str) -> IngressRule:
    front, comma, tls = text.partition(",")
    host, _, rest = front.partition("/")
    path, service = rest.split("=")[:2]
    is_tls = bool(comma) and "," not in tls
    return IngressRule(host, f"/{path}", service, "".join(tls.split("=")[1:2]) if is_tls else None)


def _tls(rules: list[IngressRule]) -> list[Object]:
    """Return an entry for each secret; a host has the first secret that its rules name."""
    secrets: dict[str, list[str]] = {}
    hosts_done: set[str] = set()
    for rule in rules:
        if rule.secret is None or rule.host in hosts_done:
            continue
        hosts_done.add(rule.host)
        if rule.secret in secrets:
            secrets[rule.secret].append(rule.host)
        elif rule.secret or rule.host:
            secrets[rule.secret] = [rule.host] if rule.host else []
    return [
        {**({"hosts": hosts} if hosts else {}), **({"secretName": secret} if secret else {})}
        for secret, hosts in secrets.items()
    ]


def _rules(rules: list[IngressRule]) -> list[Object]:
    """Return an entry for each host, with its paths."""
    hosts: dict[str, list[Object]] = {}
    for rule in rules:
        kind = "Prefix" if rule.path.endswith("*") else "Exact"
        path = {
            "path": rule.path.removesuffix("*"),
            "pathType": kind,
            "backend": _backend(rule.service),
        }
        hosts.setdefault(rule.host, []).append(path)
    return [
        {**({"host": host} if host else {}), "http": {"paths": paths}}
        for host, paths in hosts.items()
    ]


def _backend(text: str) -> Object:
    name, port = text.split(":")[:2]
    number = int_or_none(port, 32)
    service_port: Object = {}
    if number is not None:
        service_port = {"number": number}
    elif port:
        service_port = {"name": port}
    return {"service": {"name": name, "port": service_port}}
