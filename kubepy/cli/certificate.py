"""``kubepy certificate``: what an administrator says to a request. Nothing here issues certificates.

Upstream: ``kubectl/pkg/cmd/certificates/certificates.go``.
"""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.apiserver.request import UpdateOptions
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import show_help
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flagsets import UNNAMED, filename_flags, output_flags
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import Invocation, find, verb
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
FLAGS = [
    *output_flags(),
    boolean("force", help="Update the CSR even if that has been said already."),
    *filename_flags("identifying the resource to update"),
]


@verb("certificate", "certificate COMMAND", examples="""
# Say yes to a request
kubepy certificate approve web

# Say no to another one
kubepy certificate deny intruder
""")
def certificate(factory: Factory, given: Invocation) -> None:
    """Approve and deny certificate signing requests. Nothing here issues certificates."""
    show_help(factory)


@verb("approve", "approve (-f FILENAME | NAME)", flags=FLAGS, examples="""
# Say yes to a request
kubepy certificate approve web

# Say yes to all requests of a file
kubepy certificate approve -f requests.yaml
""")
def approve(factory: Factory, given: Invocation) -> None:
    """Approve a certificate signing request."""
    _judge(factory, given, APPROVAL)


@verb("deny", "deny (-f FILENAME | NAME)", flags=FLAGS, examples="""
# Say no to a request
kubepy certificate deny web

# All requests of a file
kubepy certificate deny -f requests.yaml
""")
def deny(factory: Factory, given: Invocation) -> None:
    """Deny a certificate signing request."""
    _judge(factory, given, DENIAL)


def _judge(factory: Factory, given: Invocation, verdict: Verdict) -> None:
    printer = printer_for(factory, given, verdict.condition.lower())
    if not given.args and not given.filename and not given.kustomize:
        raise CliError("one or more CSRs must be specified as <name> or -f <filename>")
    seen = 0

    def judge_one(info: Info) -> None:
        nonlocal seen
        if info.resource.key != RESOURCE:
            raise CliError("can only handle CertificateSigningRequest.certificates.k8s.io objects, got "
                           f"{info.resource.qualified_kind}")
        printer(judged(factory, info, verdict, force=given.force))
        seen += 1

    names = [f"{RESOURCE}/{name}" for name in given.args]
    find(factory, given, args=names, latest=True).visit(judge_one)
    if not seen:
        factory.print("No resources found")


def judged(factory: Factory, info: Info, verdict: Verdict, *, force: bool) -> Object:
    """The request with the verdict, which is written unless it is there. Raises CliError for the opposite one."""
    with factory.client.joined():
        request = factory.client.get(RESOURCE, info.name)
        conditions = (request.get("status") or {}).get("conditions") or []
        said = [one["type"] for one in conditions]
        if verdict.opposite in said:
            raise CliError(f"certificate signing request {quote(info.name)} is already {verdict.opposite}")
        if verdict.condition in said and not force:
            return request
        if verdict.condition not in said:
            conditions = [*conditions, _condition(factory, verdict)]
        changed = {**request, "status": {**(request.get("status") or {}), "conditions": conditions}}
        return factory.client.update(RESOURCE, changed, subresource="approval",
                                     options=UpdateOptions(field_manager=UNNAMED))


def _condition(factory: Factory, verdict: Verdict) -> Object:
    return {"type": verdict.condition, "status": "True", "reason": verdict.reason, "message": verdict.message,
            "lastUpdateTime": factory.cluster.clock.timestamp(), "lastTransitionTime": None}
