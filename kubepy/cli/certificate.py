"""``kubepy certificate``: what an administrator says to a request. Nothing here issues certificates.

Upstream: ``kubectl/pkg/cmd/certificates/certificates.go``.
"""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.apiserver.request import UpdateOptions
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command, show_help
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.options import UNNAMED, KustomizeOptions, Options, PrintFlags, filename_flag
from kubepy.cli.runtime.output import printer_for
from kubepy.quoting import quote

RESOURCE = "certificatesigningrequests.certificates.k8s.io"


class Verdict(NamedTuple):
    """A condition, and the one that excludes it."""

    condition: str
    opposite: str
    reason: str
    message: str


APPROVAL = Verdict("Approved", "Denied", "KubectlApprove", "This CSR was approved by kubectl certificate approve.")
DENIAL = Verdict("Denied", "Approved", "KubectlDeny", "This CSR was denied by kubectl certificate deny.")


class CertificateOptions(PrintFlags, KustomizeOptions):
    """The flags of ``certificate approve`` and ``certificate deny``."""

    force: bool = bool_flag("force", help="Update the CSR even if that has been said already.")
    filename: list[str] = filename_flag("identifying the resource to update")


@command("certificate COMMAND", Options, examples="""
# Say yes to a request
kubepy certificate approve web

# Say no to another one
kubepy certificate deny intruder
""")
def certificate(factory: Factory, options: Options) -> None:
    """Approve and deny certificate signing requests. Nothing here issues certificates."""
    show_help(factory)


@command("approve (-f FILENAME | NAME)", CertificateOptions, examples="""
# Say yes to a request
kubepy certificate approve web

# Say yes to all requests of a file
kubepy certificate approve -f requests.yaml
""")
def approve(factory: Factory, options: CertificateOptions) -> None:
    """Approve a certificate signing request."""
    _judge(factory, options, APPROVAL)


@command("deny (-f FILENAME | NAME)", CertificateOptions, examples="""
# Say no to a request
kubepy certificate deny web

# All requests of a file
kubepy certificate deny -f requests.yaml
""")
def deny(factory: Factory, options: CertificateOptions) -> None:
    """Deny a certificate signing request."""
    _judge(factory, options, DENIAL)


def _judge(factory: Factory, options: CertificateOptions, verdict: Verdict) -> None:
    printer = printer_for(factory, options, verdict.condition.lower())
    if not options.args and not options.filename and not options.kustomize:
        raise CliError("one or more CSRs must be specified as <name> or -f <filename>")
    count = 0

    def judge_one(info: Info) -> None:
        nonlocal count
        if info.resource.key != RESOURCE:
            raise CliError("can only handle CertificateSigningRequest.certificates.k8s.io objects, got "
                           f"{info.resource.qualified_kind}")
        printer(judged(factory, info, verdict, force=options.force))
        count += 1

    names = [f"{RESOURCE}/{name}" for name in options.args]
    Builder(factory, options, args=names, latest=True).do().visit(judge_one)
    if not count:
        factory.print("No resources found")


def judged(factory: Factory, info: Info, verdict: Verdict, *, force: bool) -> Object:
    """Add the verdict to a request, unless it has it; returns the request. Raises CliError for the opposite verdict."""
    with factory.client.joined():
        request = factory.client.get(RESOURCE, info.name)
        conditions = (request.get("status") or {}).get("conditions") or []
        types = [condition["type"] for condition in conditions]
        if verdict.opposite in types:
            raise CliError(f"certificate signing request {quote(info.name)} is already {verdict.opposite}")
        if verdict.condition in types and not force:
            return request
        if verdict.condition not in types:
            conditions = [*conditions, {
                "type": verdict.condition, "status": "True", "reason": verdict.reason, "message": verdict.message,
                "lastUpdateTime": factory.cluster.clock.timestamp(), "lastTransitionTime": None}]
        changed = {**request, "status": {**(request.get("status") or {}), "conditions": conditions}}
        return factory.client.update(RESOURCE, changed, subresource="approval",
                                     options=UpdateOptions(field_manager=UNNAMED))
