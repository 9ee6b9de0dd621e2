"""``kubepy certificate``: approve and deny certificate signing requests. A server signs what is
approved.

Upstream: ``kubectl/pkg/cmd/certificates/certificates.go``.
"""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.meta import Object, nested_list, status_of
from kubepy.apiserver.request import UpdateOptions
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.dispatch import show_help
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.options import UNNAMED, KustomizeOptions, Options, PrintFlags, filename_flag
from kubepy.cli.runtime.output import printer_for
from kubepy.quoting import quote

RESOURCE = "certificatesigningrequests.certificates.k8s.io"


class RequestCondition(NamedTuple):
    """A condition of a request.

    :ivar opposite: the type of the condition that excludes it.
    """

    type: str
    opposite: str
    reason: str
    message: str


APPROVAL = RequestCondition(
    "Approved", "Denied", "KubectlApprove", "This CSR was approved by kubectl certificate approve."
)
DENIAL = RequestCondition(
    "Denied", "Approved", "KubectlDeny", "This CSR was denied by kubectl certificate deny."
)


class CertificateOptions(PrintFlags, KustomizeOptions):
    """The flags of ``certificate approve`` and ``certificate deny``."""

    force: bool = bool_flag(
        "force", help="Update the CSR even if it is already approved or denied."
    )
    filename: list[str] = filename_flag("identifying the resource to update")


@command(
    "certificate COMMAND",
    Options,
    examples="""
# Approve a request
kubepy certificate approve web

# Deny another one
kubepy certificate deny intruder
""",
)
def certificate(factory: Factory, options: Options) -> None:
    """Approve and deny certificate signing requests. A server (kubepy serve) signs those that are approved."""  # noqa: E501
    show_help(factory, options)


@command(
    "approve (-f FILENAME | NAME)",
    CertificateOptions,
    examples="""
# Approve a request
kubepy certificate approve web

# Approve all requests of a file
kubepy certificate approve -f requests.yaml
""",
)
def approve(factory: Factory, options: CertificateOptions) -> None:
    """Approve a certificate signing request."""
    _modify_conditions(factory, options, APPROVAL)


@command(
    "deny (-f FILENAME | NAME)",
    CertificateOptions,
    examples="""
# Deny a request
kubepy certificate deny web

# Deny all requests of a file
kubepy certificate deny -f requests.yaml
""",
)
def deny(factory: Factory, options: CertificateOptions) -> None:
    """Deny a certificate signing request."""
    _modify_conditions(factory, options, DENIAL)


def _modify_conditions(
    factory: Factory, options: CertificateOptions, condition: RequestCondition
) -> None:
    printer = printer_for(factory, options, condition.type.lower())
    if not options.args and not options.filename and not options.kustomize:
        raise CliError("one or more CSRs must be specified as <name> or -f <filename>")
    count = 0

    def modify(info: Info) -> None:
        nonlocal count
        if info.resource.key != RESOURCE:
            raise CliError(
                "can only handle CertificateSigningRequest.certificates.k8s.io objects, got "
                f"{info.resource.qualified_kind}"
            )
        printer(add_condition_if_needed(factory, info, condition, force=options.force))
        count += 1

    names = [f"{RESOURCE}/{name}" for name in options.args]
    Builder(factory, options, args=names, latest=True).do().visit(modify)
    if not count:
        factory.print("No resources found")


def add_condition_if_needed(
    factory: Factory, info: Info, condition: RequestCondition, *, force: bool
) -> Object:
    """Add the condition to a request that does not have it (``addConditionIfNeeded``), and return
    the request.

    With ``force`` a request that has it is written again. Raises CliError for a request with the
    opposite condition.
    """
    with factory.client.joined():
        request = factory.client.get(RESOURCE, info.name)
        conditions = nested_list(request, "status", "conditions")
        types = [present["type"] for present in conditions]
        if condition.opposite in types:
            raise CliError(
                f"certificate signing request {quote(info.name)} is already {condition.opposite}"
            )
        if condition.type in types and not force:
            return request
        if condition.type not in types:
            conditions = [
                *conditions,
                {
                    "type": condition.type,
                    "status": "True",
                    "reason": condition.reason,
                    "message": condition.message,
                    "lastUpdateTime": factory.cluster.clock.timestamp(),
                    "lastTransitionTime": None,
                },
            ]
        changed = {**request, "status": {**status_of(request), "conditions": conditions}}
        return factory.client.update(
            RESOURCE, changed, subresource="approval", options=UpdateOptions(field_manager=UNNAMED)
        )
