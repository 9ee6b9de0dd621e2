"""Describe a node, the pods on it and their resource requests."""

from __future__ import annotations

from kubepy.api.meta import AnyObject, labels_of, name_of, namespace_of, nested_list
from kubepy.api.objects.pods import TERMINAL_PHASES, pod_limits, pod_requests
from kubepy.api.values.quantity import Quantity
from kubepy.cli.describers.writer import (
    DescribeContext,
    PrefixWriter,
    events,
    format_date,
    heading,
    labels_and_annotations,
    since,
)
from kubepy.quoting import quote

ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE_LABEL = "kubernetes.io/role"
SYSTEM_INFO = (
    ("Machine ID", "machineID"),
    ("System UUID", "systemUUID"),
    ("Boot ID", "bootID"),
    ("Kernel Version", "kernelVersion"),
    ("OS Image", "osImage"),
    ("Operating System", "operatingSystem"),
    ("Architecture", "architecture"),
    ("Container Runtime Version", "containerRuntimeVersion"),
    ("Kubelet Version", "kubeletVersion"),
)
ZERO = Quantity.parse("0")
MAX_POOLS = 10


def node(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = obj.get("spec", {})
    status = obj.get("status", {})
    heading(writer, obj, namespaced=False)
    writer.field(0, "Roles", ",".join(roles(obj)) or "<none>")
    labels_and_annotations(writer, obj)
    writer.field(0, "CreationTimestamp", format_date(obj["metadata"].get("creationTimestamp")))
    taints = sorted(
        nested_list(spec, "taints"), key=lambda taint: f"{taint['effect']},{taint['key']}"
    )
    writer.several(0, "Taints", (format_taint(taint) for taint in taints))
    writer.field(0, "Unschedulable", "true" if spec.get("unschedulable") else "false")
    _lease(writer, obj, context)
    _conditions(writer, status.get("conditions"))
    writer.line(0, "Addresses:")
    for address in nested_list(status, "addresses"):
        writer.field(1, address["type"], address["address"])
    for name in ("capacity", "allocatable"):
        if amounts := status.get(name):
            writer.line(0, f"{name.capitalize()}:")
            for resource, amount in sorted(amounts.items()):
                writer.field(1, resource, amount)

    _resource_slices(writer, obj, context)
    writer.line(0, "System Info:")
    for title, key in SYSTEM_INFO:
        writer.field(1, title, status.get("nodeInfo", {}).get(key, ""))
    for title, value in (
        ("PodCIDR", spec.get("podCIDR")),
        ("PodCIDRs", ",".join(nested_list(spec, "podCIDRs"))),
        ("ProviderID", spec.get("providerID")),
    ):
        if value:
            writer.field(0, title, value)

    _resources(writer, obj, context)
    events(writer, context)


def _resource_slices(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    """Write the slices and devices of each pool that only this node has, for the first ten
    pools."""
    pools: dict[tuple[str, str], list[AnyObject]] = {}
    for resource_slice in context.list("resourceslices.resource.k8s.io", None):
        spec = resource_slice["spec"]
        if spec.get("nodeName") == name_of(obj):
            pools.setdefault((spec["driver"], spec["pool"]["name"]), []).append(spec)

    if not pools:
        return
    in_order = sorted(pools, key="/".join)
    writer.line(0, "Node-Local ResourceSlices:")
    writer.table(
        1,
        "Driver\tPool\tSlices\tDevices",
        (
            [
                *pool,
                len(pools[pool]),
                sum(len(nested_list(spec, "devices")) for spec in pools[pool]),
            ]
            for pool in in_order[:MAX_POOLS]
        ),
    )
    if len(in_order) > MAX_POOLS:
        writer.line(1, f"...and {len(in_order) - MAX_POOLS} more pools")


def roles(obj: AnyObject) -> list[str]:
    labels = labels_of(obj)
    from_keys = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    return sorted({*from_keys, labels.get(ROLE_LABEL, "")} - {""})


def format_taint(taint: AnyObject) -> str:
    """Format a taint as ``key=value:effect``, without its empty parts (upstream
    ``Taint.ToString``)."""
    text: str = taint["key"]
    if taint.get("value"):
        text += f"={taint['value']}"
    if taint.get("effect"):
        return f"{text}:{taint['effect']}"
    return text


def _lease(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    leases = context.list("leases.coordination.k8s.io", "kube-node-lease")
    lease = next((lease for lease in leases if name_of(lease) == name_of(obj)), None)
    if lease is None:
        writer.field(
            0,
            "Lease",
            f"Failed to get lease: leases.coordination.k8s.io {quote(name_of(obj))} not found",
        )
        return
    spec = lease.get("spec", {})
    writer.line(0, "Lease:")
    writer.field(1, "HolderIdentity", spec.get("holderIdentity", "<unset>"))
    for title, key in (("AcquireTime", "acquireTime"), ("RenewTime", "renewTime")):
        writer.field(1, title, format_date(spec[key]) if key in spec else "<unset>")


def _conditions(writer: PrefixWriter, conditions: list[AnyObject] | None) -> None:
    if not conditions:
        return
    writer.line(
        0, "Conditions:\n  Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage"
    )
    writer.line(1, "----\t------\t-----------------\t------------------\t------\t-------")
    for condition in conditions:
        times = [
            format_date(condition.get("lastHeartbeatTime")),
            format_date(condition.get("lastTransitionTime")),
        ]
        writer.line(
            1,
            " \t".join(
                [
                    condition["type"],
                    condition["status"],
                    *times,
                    condition.get("reason", ""),
                    condition.get("message", ""),
                ]
            ),
        )


def _resources(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    pods = [
        pod
        for pod in context.list("pods", None)
        if pod["spec"].get("nodeName") == name_of(obj)
        and pod.get("status", {}).get("phase") not in TERMINAL_PHASES
    ]
    status = obj.get("status", {})
    amounts = status.get("allocatable") or status.get("capacity") or {}
    allocatable = {resource: Quantity.parse(amount) for resource, amount in amounts.items()}
    writer.line(0, f"Non-terminated Pods:\t({len(pods)} in total)")
    writer.line(
        1, "Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge"
    )
    writer.line(
        1, "---------\t----\t\t------------\t----------\t---------------\t-------------\t---"
    )
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    for pod in pods:
        per_pod = pod_requests(pod), pod_limits(pod)
        for total, pod_amounts in zip((requests, limits), per_pod, strict=True):
            for resource, amount in pod_amounts.items():
                total[resource] = total.get(resource, ZERO) + amount
        shares = [
            _share(
                resource,
                pod_amounts.get(resource, ZERO),
                allocatable.get(resource, ZERO),
                NO_PERCENTAGE,
            )
            for resource in ("cpu", "memory")
            for pod_amounts in per_pod
        ]
        age = since(pod["metadata"].get("creationTimestamp"), context.now)
        writer.line(1, "\t".join([namespace_of(pod), name_of(pod), "", *shares, age]))

    writer.line(
        0, "Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)"
    )
    writer.line(1, "Resource\tRequests\tLimits")
    writer.line(1, "--------\t--------\t------")
    huge_pages = sorted(resource for resource in allocatable if resource.startswith("hugepages-"))
    for resource in ("cpu", "memory", "ephemeral-storage", *huge_pages):
        whole = allocatable.get(resource, ZERO)
        shares = [
            _share(resource, totals.get(resource, ZERO), whole) for totals in (requests, limits)
        ]
        writer.line(1, "\t".join([resource, *shares]))

    for resource in sorted(
        set(allocatable) - {"cpu", "memory", "ephemeral-storage", "pods", *huge_pages}
    ):
        writer.line(1, f"{resource}\t{requests.get(resource, ZERO)}\t{limits.get(resource, ZERO)}")


NO_PERCENTAGE = -(1 << 63)  # Go's int64(NaN), the percentage of nothing, on x86


def _share(resource: str, amount: Quantity, whole: Quantity, none: int = 0) -> str:
    """Return ``100m (2%)``; the percentage is truncated.

    :param none: the percentage when the whole is zero.
    """
    part, total = (
        quantity.milli_value() if resource == "cpu" else quantity.value()
        for quantity in (amount, whole)
    )
    return f"{amount} ({int(part / total * 100) if total else none}%)"
