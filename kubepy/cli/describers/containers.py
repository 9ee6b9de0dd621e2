"""Describe the containers of a pod or a pod template."""

from __future__ import annotations

from collections.abc import Callable

from kubepy.api.meta import AnyObject, nested_list
from kubepy.api.values.goformat import quote
from kubepy.cli.describers.writer import PrefixWriter, format_date, go_value
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import quantity

# Returns the value of a field of the pod, for environment variables; templates have no such values.
FieldValue = Callable[[str], str]


def containers(
    writer: PrefixWriter,
    title: str,
    containers: list[AnyObject],
    *,
    indent: str = "",
    statuses: list[AnyObject] | None = None,
    field_value: FieldValue | None = None,
) -> None:
    """Write all containers of a sort.

    :param indent: "  " in a template, whose names stand one further to the right.
    """
    status_by_name = {status["name"]: status for status in statuses or []}
    writer.line(0, f"{indent}{title}:" + ("" if containers else " <none>"))
    for container in containers:
        writer.line(1, f"{' ' if indent else ''}{container['name']}:")
        _container(writer, container, status_by_name.get(container["name"]), field_value)


def _container(
    writer: PrefixWriter,
    container: AnyObject,
    status: AnyObject | None,
    field_value: FieldValue | None,
) -> None:
    if status is not None:
        writer.field(2, "Container ID", status.get("containerID", ""))
    writer.field(2, "Image", container.get("image", ""))
    if status is not None:
        writer.field(2, "Image ID", status.get("imageID", ""))
    for name, key in (("Port", "containerPort"), ("Host Port", "hostPort")):
        text = ", ".join(
            f"{port.get(key, 0)}/{port.get('protocol', 'TCP')}"
            + (f" ({port['name']})" if port.get("name") else "")
            for port in nested_list(container, "ports")
        )
        writer.field(2, f"{name}s" if "," in text else name, text or "<none>")

    if profile := container.get("securityContext", {}).get("seccompProfile"):
        writer.field(2, "SeccompProfile", profile["type"])
        if profile["type"] == "Localhost":
            writer.field(3, "LocalhostProfile", profile["localhostProfile"])

    for name, words in (("Command", container.get("command")), ("Args", container.get("args"))):
        if words:
            writer.line(2, f"{name}:")
            for line in (line for word in words for line in word.split("\n")):
                writer.line(3, line)

    if status is not None:
        _state(writer, "State", status.get("state", {}))
        if "terminated" in status.get("lastState", {}):
            _state(writer, "Last State", status["lastState"])
        writer.field(2, "Ready", "True" if status.get("ready") else "False")
        writer.field(2, "Restart Count", status.get("restartCount", 0))

    resources(writer, container.get("resources"), 2)
    for name, key in (
        ("Liveness", "livenessProbe"),
        ("Readiness", "readinessProbe"),
        ("Startup", "startupProbe"),
    ):
        if key in container:
            writer.field(2, name, probe_text(container[key]))

    _environment(writer, container, field_value)
    _mounts(writer, container)


def _state(writer: PrefixWriter, name: str, state: AnyObject) -> None:
    if running := state.get("running"):
        writer.field(2, name, "Running")
        writer.field(3, "Started", format_date(running.get("startedAt")))
    elif terminated := state.get("terminated"):
        writer.field(2, name, "Terminated")
        for label, key in (("Reason", "reason"), ("Message", "message")):
            if terminated.get(key):
                writer.field(3, label, terminated[key])
        writer.field(3, "Exit Code", terminated.get("exitCode", 0))
        if terminated.get("signal"):
            writer.field(3, "Signal", terminated["signal"])
        writer.field(3, "Started", format_date(terminated.get("startedAt")))
        writer.field(3, "Finished", format_date(terminated.get("finishedAt")))
    else:
        writer.field(2, name, "Waiting")
        if reason := state.get("waiting", {}).get("reason"):
            writer.field(3, "Reason", reason)


def resources(writer: PrefixWriter, requirements: AnyObject | None, level: int) -> None:
    for name in ("limits", "requests"):
        amounts = (requirements or {}).get(name) or {}
        if amounts:
            writer.line(level, f"{name.capitalize()}:")
        for resource, amount in sorted(amounts.items()):
            writer.field(level + 1, resource, amount)


def probe_text(probe: AnyObject) -> str:
    """Format a probe (``DescribeProbe``)."""
    if "exec" in probe:
        action = f"exec {go_value(probe['exec'].get('command') or [])}"
    elif http := probe.get("httpGet"):
        host = http.get("host", "")
        path = http.get("path", "")
        host = f"[{host}]" if ":" in host else host
        slash = "" if path.startswith("/") or not path else "/"
        action = f"http-get {http.get('scheme', '').lower()}://{host}:{http['port']}{slash}{path}"
    elif tcp := probe.get("tcpSocket"):
        action = f"tcp-socket {tcp.get('host', '')}:{tcp['port']}"
    elif grpc := probe.get("grpc"):
        action = f"grpc <pod>:{grpc['port']} {grpc.get('service', '')}"
    else:
        action = "unknown"

    return (
        f"{action} delay={probe.get('initialDelaySeconds', 0)}s "
        f"timeout={probe.get('timeoutSeconds', 0)}s"
        f" period={probe.get('periodSeconds', 0)}s #success={probe.get('successThreshold', 0)}"
        f" #failure={probe.get('failureThreshold', 0)}"
    )


def _environment(
    writer: PrefixWriter, container: AnyObject, field_value: FieldValue | None
) -> None:
    if container.get("envFrom"):
        writer.line(2, "Environment Variables from:")
    for source in nested_list(container, "envFrom"):
        kind = "ConfigMap" if "configMapRef" in source else "Secret"
        reference = source.get("configMapRef") or source.get("secretRef") or {}
        prefix = f" with prefix '{source['prefix']}'" if source.get("prefix") else ""
        optional = go_value(bool(reference.get("optional")))
        writer.line(3, f"{reference.get('name', '')}\t{kind}{prefix}\tOptional: {optional}")

    variables = nested_list(container, "env")
    writer.line(2, "Environment:" + ("" if variables else "\t<none>"))
    for variable in variables:
        if "valueFrom" in variable:
            writer.field(
                3, variable["name"], _value_from(variable["valueFrom"], container, field_value)
            )
            continue
        first, *rest = variable.get("value", "").split("\n")
        writer.field(3, variable["name"], first)
        for line in rest:
            writer.line(3, f"\t{line}")


def _value_from(source: AnyObject, container: AnyObject, field_value: FieldValue | None) -> str:
    if field := source.get("fieldRef"):
        value = field_value(field["fieldPath"]) if field_value else ""
        return f"{value} ({field.get('apiVersion', 'v1')}:{field['fieldPath']})"
    if resource := source.get("resourceFieldRef"):
        section, _, name = resource["resource"].partition(".")
        amount = (container.get("resources", {}).get(section) or {}).get(name)
        if amount is None:
            number = (
                "node allocatable" if section == "limits" and name in ("cpu", "memory") else "0"
            )
        else:  # in units of the divisor, rounded up
            divisor = quantity.Quantity.parse(resource.get("divisor") or "0")
            unit = quantity.Quantity.parse("1") if divisor.is_zero() else divisor
            number = str(-(-quantity.Quantity.parse(amount).nanos // unit.nanos))
        return f"{number} ({resource['resource']})"

    for key, preposition in (("secretKeyRef", "in secret"), ("configMapKeyRef", "of config map")):
        if reference := source.get(key):
            optional = go_value(bool(reference.get("optional")))
            return (
                f"<set to the key '{reference['key']}' {preposition} "
                f"'{reference['name']}'>\tOptional: {optional}"
            )

    return ""


def _mounts(writer: PrefixWriter, container: AnyObject) -> None:
    mounts = sorted(nested_list(container, "volumeMounts"), key=lambda mount: mount["mountPath"])
    writer.line(2, "Mounts:" + ("" if mounts else "\t<none>"))
    for mount in mounts:
        flags = ["ro" if mount.get("readOnly") else "rw"]
        if mount.get("subPath"):
            flags.append(f"path={quote(mount['subPath'])}")
        writer.line(3, f"{mount['mountPath']} from {mount['name']} ({','.join(flags)})")
    if devices := container.get("volumeDevices"):
        writer.line(2, "Devices:" + ("" if mounts else "\t<none>"))
        for device in sorted(devices, key=lambda device: device["devicePath"]):
            writer.line(3, f"{device['devicePath']} from {device['name']}")
