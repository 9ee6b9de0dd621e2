"""A node, the pods on it and what they request."""

from __future__ import annotations

from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.api.objects.pods import pod_limits, pod_requests
from kubepy.api.values.quantity import Quantity
from kubepy.cli.describers.writer import (
    Surroundings,
    Writer,
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
    ("Machine ID", "machineID"), ("System UUID", "systemUUID"), ("Boot ID", "bootID"),
    ("Kernel Version", "kernelVersion"), ("OS Image", "osImage"), ("Operating System", "operatingSystem"),
    ("Architecture", "architecture"), ("Container Runtime Version", "containerRuntimeVersion"),
    ("Kubelet Version", "kubeletVersion"),
)
ZERO = Quantity.parse("0")
MOST_POOLS = 10


def node(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    heading(writer, obj, namespaced=False)
    writer.field(0, "Roles", ",".join(roles(obj)) or "<none>")
    labels_and_annotations(writer, obj)
    writer.field(0, "CreationTimestamp", format_date(obj["metadata"].get("creationTimestamp")))
    taints = sorted(spec.get("taints") or [], key=lambda taint: f"{taint['effect']},{taint['key']}")
    writer.several(0, "Taints", (format_taint(taint) for taint in taints))
    writer.field(0, "Unschedulable", "true" if spec.get("unschedulable") else "false")
    _lease(writer, obj, around)
    _conditions(writer, status.get("conditions"))
    writer.line(0, "Addresses:")
    for address in status.get("addresses") or []:
        writer.field(1, address["type"], address["address"])
    for name in ("capacity", "allocatable"):
        if amounts := status.get(name):
            writer.line(0, f"{name.capitalize()}:")
            for resource, amount in sorted(amounts.items()):
                writer.field(1, resource, amount)
    _slices(writer, obj, around)
    writer.line(0, "System Info:")
    for title, key in SYSTEM_INFO:
        writer.field(1, title, status.get("nodeInfo", {}).get(key, ""))
    _network(writer, spec)
    _resources(writer, obj, around)
    events(writer, around)


def _slices(writer: Writer, obj: Object, around: Surroundings) -> None:
    """What each pool of devices of the node alone has, the first ten of them."""
    pools: dict[tuple[str, str], list[Object]] = {}
    for one in around.list("resourceslices.resource.k8s.io", None):
        if one["spec"].get("nodeName") == name_of(obj):
            pools.setdefault((one["spec"]["driver"], one["spec"]["pool"]["name"]), []).append(one)
    if not pools:
        return
    shown = sorted(pools, key="/".join)
    writer.line(0, "Node-Local ResourceSlices:")
    writer.table(1, "Driver\tPool\tSlices\tDevices", (
        [*pool, len(pools[pool]), sum(len(one["spec"].get("devices") or []) for one in pools[pool])]
        for pool in shown[:MOST_POOLS]))
    if len(shown) > MOST_POOLS:
        writer.line(1, f"...and {len(shown) - MOST_POOLS} more pools")


def roles(obj: Object) -> list[str]:
    found = obj["metadata"].get("labels") or {}
    named = {key.removeprefix(ROLE_PREFIX) for key in found if key.startswith(ROLE_PREFIX)}
    return sorted({*named, found.get(ROLE_LABEL, "")} - {""})


def format_taint(taint: Object) -> str:
    """``key=value:effect``; parts that are empty leave no sign (upstream ``Taint.ToString``)."""
    text = taint["key"]
    if taint.get("value"):
        text += f"={taint['value']}"
    return f"{text}:{taint['effect']}" if taint.get("effect") else text


def _lease(writer: Writer, obj: Object, around: Surroundings) -> None:
    leases = around.list("leases.coordination.k8s.io", "kube-node-lease")
    lease = next((one for one in leases if name_of(one) == name_of(obj)), None)
    if lease is None:
        writer.field(0, "Lease", f"Failed to get lease: leases.coordination.k8s.io {quote(name_of(obj))} not found")
        return
    spec = lease.get("spec", {})
    writer.line(0, "Lease:")
    writer.field(1, "HolderIdentity", spec.get("holderIdentity", "<unset>"))
    for title, key in (("AcquireTime", "acquireTime"), ("RenewTime", "renewTime")):
        writer.field(1, title, format_date(spec[key]) if key in spec else "<unset>")


def _conditions(writer: Writer, conditions: list[Object] | None) -> None:
    if not conditions:
        return
    writer.line(0, "Conditions:\n  Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage")
    writer.line(1, "----\t------\t-----------------\t------------------\t------\t-------")
    for one in conditions:
        times = [format_date(one.get("lastHeartbeatTime")), format_date(one.get("lastTransitionTime"))]
        writer.line(1, " \t".join([one["type"], one["status"], *times, one.get("reason", ""), one.get("message", "")]))


def _network(writer: Writer, spec: Object) -> None:
    for title, key in (("PodCIDR", "podCIDR"), ("ProviderID", "providerID")):
        if spec.get(key):
            writer.field(0, title, spec[key])
        if key == "podCIDR" and spec.get("podCIDRs"):
            writer.field(0, "PodCIDRs", ",".join(spec["podCIDRs"]))


def _resources(writer: Writer, obj: Object, around: Surroundings) -> None:
    pods = [pod for pod in around.list("pods", None) if pod["spec"].get("nodeName") == name_of(obj)
            and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
    status = obj.get("status", {})
    amounts = status.get("allocatable") or status.get("capacity") or {}
    allocatable = {resource: Quantity.parse(amount) for resource, amount in amounts.items()}
    writer.line(0, f"Non-terminated Pods:\t({len(pods)} in total)")
    writer.line(1, "Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge")
    writer.line(1, "---------\t----\t\t------------\t----------\t---------------\t-------------\t---")
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    for pod in pods:
        requested, limited = pod_requests(pod), pod_limits(pod)
        _add(requests, requested)
        _add(limits, limited)
        shares = [_share(resource, one.get(resource, ZERO), allocatable.get(resource, ZERO), NO_PERCENTAGE)
                  for resource in ("cpu", "memory") for one in (requested, limited)]
        age = since(pod["metadata"].get("creationTimestamp"), around.now)
        writer.line(1, "\t".join([namespace_of(pod), name_of(pod), "", *shares, age]))
    _allocated(writer, requests, limits, allocatable)


def _add(total: dict[str, Quantity], more: dict[str, Quantity]) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, ZERO) + amount


NO_PERCENTAGE = -(1 << 63)  # what a machine of x86 makes an integer of that no integer can be, as of 0/0


def _share(resource: str, amount: Quantity, whole: Quantity, none: int = 0) -> str:
    """``100m (2%)``: the percentage is cut, not rounded; ``none``: what it is of nothing."""
    has, all_ = (one.milli_value() if resource == "cpu" else one.value() for one in (amount, whole))
    return f"{amount} ({int(has / all_ * 100) if all_ else none}%)"


def _allocated(writer: Writer, requests: dict[str, Quantity], limits: dict[str, Quantity],
               allocatable: dict[str, Quantity]) -> None:
    writer.line(0, "Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)")
    writer.line(1, "Resource\tRequests\tLimits")
    writer.line(1, "--------\t--------\t------")
    huge = sorted(one for one in allocatable if one.startswith("hugepages-"))
    for resource in ("cpu", "memory", "ephemeral-storage", *huge):
        whole = allocatable.get(resource, ZERO)
        shares = [_share(resource, one.get(resource, ZERO), whole) for one in (requests, limits)]
        writer.line(1, "\t".join([resource, *shares]))
    for resource in sorted(set(allocatable) - {"cpu", "memory", "ephemeral-storage", "pods", *huge}):
        writer.line(1, f"{resource}\t{requests.get(resource, ZERO)}\t{limits.get(resource, ZERO)}")
