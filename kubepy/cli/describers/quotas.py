"""ResourceQuota and LimitRange, on their own and as a namespace shows its own."""

from __future__ import annotations

from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.api.values.quantity import Quantity
from kubepy.cli.describers.writer import Surroundings, Writer

QUOTA_SCOPES = {
    "Terminating": "Matches all pods that have an active deadline. These pods have a limited lifespan on a node before"
                   " being actively terminated by the system.",
    "NotTerminating": "Matches all pods that do not have an active deadline. These pods usually include long running"
                      " pods whose container command is not expected to terminate.",
    "BestEffort": "Matches all pods that do not have resource requirements set. These pods have a best effort quality"
                  " of service.",
    "NotBestEffort": "Matches all pods that have at least one resource requirement set. These pods have a burstable or"
                     " guaranteed quality of service.",
}
_LIMITS = ("min", "max", "defaultRequest", "default", "maxLimitRequestRatio")


def resource_quota(writer: Writer, obj: Object, around: Surroundings) -> None:
    writer.field(0, "Name", name_of(obj))
    writer.field(0, "Namespace", namespace_of(obj))
    _scopes(writer, obj, 0, " * ")
    writer.line(0, "Resource\tUsed\tHard\n--------\t----\t----")
    _amounts(writer, obj, 0)


def quotas_of_namespace(writer: Writer, found: list[Object]) -> None:
    writer.line(0, "")
    writer.line(0, "Resource Quotas" if found else "No resource quota.")
    for quota in found:
        writer.field(1, "Name", name_of(quota))
        _scopes(writer, quota, 1, "* ")
        writer.line(1, "Resource\tUsed\tHard")
        writer.line(1, "--------\t---\t---")
        _amounts(writer, quota, 1)


def _scopes(writer: Writer, quota: Object, level: int, mark: str) -> None:
    if scopes := sorted(quota["spec"].get("scopes") or []):
        writer.field(level, "Scopes", ", ".join(scopes))
        for scope in scopes:
            if scope in QUOTA_SCOPES:
                writer.line(level, f"{mark}{QUOTA_SCOPES[scope]}")


def _amounts(writer: Writer, quota: Object, level: int) -> None:
    status = quota.get("status") or {}
    used = status.get("used") or {}
    for resource, hard in sorted((status.get("hard") or {}).items()):
        writer.line(level, f"{resource}\t{_in_form_of(used.get(resource, '0'), hard)}\t{hard}")


def _in_form_of(used: str, hard: str) -> str:
    """What is used, in the family of units that the limit is in."""
    amount, wanted = Quantity.parse(used), Quantity.parse(hard).format
    return str(amount if amount.format == wanted else Quantity.of(amount.value(), wanted))


def limit_range(writer: Writer, obj: Object, around: Surroundings) -> None:
    writer.field(0, "Name", name_of(obj))
    writer.field(0, "Namespace", namespace_of(obj))
    _limits(writer, [obj], "")


def limits_of_namespace(writer: Writer, found: list[Object]) -> None:
    writer.line(0, "")
    if not found:
        writer.line(0, "No LimitRange resource.")
        return
    writer.line(0, "Resource Limits")
    _limits(writer, found, " ")


def _limits(writer: Writer, found: list[Object], lead: str) -> None:
    writer.line(0, f"{lead}Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax Limit/Request Ratio")
    writer.line(0, f"{lead}----\t--------\t---\t---\t---------------\t-------------\t-----------------------")
    for limit in (one for limits in found for one in (limits.get("spec") or {}).get("limits") or []):
        for resource in sorted({name for column in _LIMITS for name in limit.get(column) or {}}):
            cells = [str((limit.get(column) or {}).get(resource, "-")) for column in _LIMITS]
            writer.line(0, "\t".join([f"{lead}{limit['type']}", resource, *cells]))
