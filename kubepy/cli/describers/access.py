"""Describe Roles, ClusterRoles, their bindings, and CertificateSigningRequests."""

from __future__ import annotations

from base64 import b64decode

from kubepy.api.meta import AnyObject, nested_list, status_of
from kubepy.api.selectors import format_labels
from kubepy.apiserver.kinds.certificates.printers import request_status
from kubepy.apiserver.printers import human_duration
from kubepy.cli.describers.writer import (
    DescribeContext,
    PrefixWriter,
    events,
    format_date,
    heading,
    labels_and_annotations,
)
from kubepy.cli.errors import CliError
from kubepy.lazy import lazy_imports


def role(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    writer.line(0, "PolicyRule:")
    rows = auth.rule_rows(nested_list(obj, "rules"))
    writer.table(1, "Resources\tNon-Resource URLs\tResource Names\tVerbs", rows)


with lazy_imports():
    from kubepy.api.values import x509
    from kubepy.cli import auth


def role_binding(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    writer.line(0, "Role:")
    writer.field(1, "Kind", obj["roleRef"].get("kind", ""))
    writer.field(1, "Name", obj["roleRef"].get("name", ""))
    writer.line(0, "Subjects:")
    writer.table(
        1,
        "Kind\tName\tNamespace",
        [
            [subject.get("kind", ""), subject.get("name", ""), subject.get("namespace", "")]
            for subject in nested_list(obj, "subjects")
        ],
    )


def certificate_signing_request(
    writer: PrefixWriter, obj: AnyObject, context: DescribeContext
) -> None:
    spec = obj["spec"]
    status = status_of(obj)
    try:
        request = x509.parse_request(b64decode(spec.get("request", "")))
    except x509.CertificateError as error:
        raise CliError(f"Error parsing CSR: {error}") from None

    heading(writer, obj, namespaced=False)
    writer.field(0, "Labels", format_labels(obj["metadata"].get("labels")))
    writer.field(0, "Annotations", format_labels(obj["metadata"].get("annotations")))
    writer.field(0, "CreationTimestamp", format_date(obj["metadata"].get("creationTimestamp")))
    writer.field(0, "Requesting User", spec.get("username", ""))
    if spec.get("signerName"):
        writer.field(0, "Signer", spec["signerName"])
    if "expirationSeconds" in spec:
        writer.field(0, "Requested Duration", human_duration(spec["expirationSeconds"]))
    writer.field(0, "Status", request_status(status))
    writer.line(0, "Subject:")
    for name in ("Common Name", "Serial Number"):
        writer.field(0, f"\t{name}", request.subject.get(name, [""])[-1])
    for name in (
        "Organization",
        "Organizational Unit",
        "Country",
        "Locality",
        "Province",
        "StreetAddress",
        "PostalCode",
    ):
        _values(writer, name, request.subject.get(name, []))

    if any(request.names.values()):
        writer.line(0, "Subject Alternative Names:")
        for name, values in request.names.items():
            _values(writer, name, values)

    events(writer, context)


def _values(writer: PrefixWriter, name: str, values: list[str]) -> None:
    for index, value in enumerate(values):
        writer.line(0, f"\t{name}:\t{value}" if index == 0 else f"\t\t{value}")
