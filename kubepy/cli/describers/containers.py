"""The containers of a pod or a pod template."""

from __future__ import annotations

from collections.abc import Callable

from kubepy.api.meta import Object
from kubepy.api.values.goformat import quote
from kubepy.cli.describers.writer import Writer, format_date, go_value

# The value of an env var that comes from a field of the pod; templates have none.
FieldValue = Callable[[str], str]


def containers(writer: Writer, title: str, found: list[Object], *, indent: str = "",
               statuses: list[Object] | None = None, field_value: FieldValue | None = None) -> None:
    """All containers of one sort; ``indent`` is "  " inside a template, whose names stand one further to the right."""
    by_name = {status["name"]: status for status in statuses or []}
    writer.line(0, f"{indent}{title}:" + ("" if found else " <none>"))
    for container in found:
        writer.line(1, f"{' ' if indent else ''}{container['name']}:")
        _container(writer, container, by_name.get(container["name"]), field_value)


def _container(writer: Writer, container: Object, status: Object | None, field_value: FieldValue | None) -> None:
    _image_and_ports(writer, container, status)
    for name, words in (("Command", container.get("command")), ("Args", container.get("args"))):
        if words:
            writer.line(2, f"{name}:")
            for word in words:
                for line in word.split("\n"):
                    writer.line(3, line)
    if status is not None:
        _state(writer, status)
    resources(writer, container.get("resources"), 2)
    for name, key in (("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe")):
        if key in container:
            writer.field(2, name, probe(container[key]))
    _environment_from(writer, container)
    _environment(writer, container, field_value)
    _mounts(writer, container)


def _image_and_ports(writer: Writer, container: Object, status: Object | None) -> None:
    if status is not None:
        writer.field(2, "Container ID", status.get("containerID", ""))
    writer.field(2, "Image", container.get("image", ""))
    if status is not None:
        writer.field(2, "Image ID", status.get("imageID", ""))
    for name, key in (("Port", "containerPort"), ("Host Port", "hostPort")):
        text = ", ".join(_port(port, key) for port in container.get("ports") or [])
        writer.field(2, f"{name}s" if "," in text else name, text or "<none>")
    if profile := container.get("securityContext", {}).get("seccompProfile"):
        writer.field(2, "SeccompProfile", profile["type"])
        if profile["type"] == "Localhost":
            writer.field(3, "LocalhostProfile", profile["localhostProfile"])


def _port(port: Object, key: str) -> str:
    text = f"{port.get(key, 0)}/{port.get('protocol', 'TCP')}"
    return f"{text} ({port['name']})" if port.get("name") else text


def _state(writer: Writer, status: Object) -> None:
    _one_state(writer, "State", status.get("state", {}))
    if "terminated" in status.get("lastState", {}):
        _one_state(writer, "Last State", status["lastState"])
    writer.field(2, "Ready", "True" if status.get("ready") else "False")
    writer.field(2, "Restart Count", status.get("restartCount", 0))


def _one_state(writer: Writer, name: str, state: Object) -> None:
    if running := state.get("running"):
        writer.field(2, name, "Running")
        writer.field(3, "Started", format_date(running.get("startedAt")))
    elif terminated := state.get("terminated"):
        writer.field(2, name, "Terminated")
        _terminated(writer, terminated)
    else:
        writer.field(2, name, "Waiting")
        if reason := state.get("waiting", {}).get("reason"):
            writer.field(3, "Reason", reason)


def _terminated(writer: Writer, state: Object) -> None:
    for name, key in (("Reason", "reason"), ("Message", "message")):
        if state.get(key):
            writer.field(3, name, state[key])
    writer.field(3, "Exit Code", state.get("exitCode", 0))
    if state.get("signal"):
        writer.field(3, "Signal", state["signal"])
    writer.field(3, "Started", format_date(state.get("startedAt")))
    writer.field(3, "Finished", format_date(state.get("finishedAt")))


def resources(writer: Writer, found: Object | None, level: int) -> None:
    for name in ("limits", "requests"):
        amounts = (found or {}).get(name) or {}
        if amounts:
            writer.line(level, f"{name.capitalize()}:")
        for resource, amount in sorted(amounts.items()):
            writer.field(level + 1, resource, amount)


def probe(found: Object) -> str:
    attributes = (f"delay={found.get('initialDelaySeconds', 0)}s timeout={found.get('timeoutSeconds', 0)}s"
                  f" period={found.get('periodSeconds', 0)}s #success={found.get('successThreshold', 0)}"
                  f" #failure={found.get('failureThreshold', 0)}")
    return f"{_probe_action(found)} {attributes}"


def _probe_action(found: Object) -> str:
    if "exec" in found:
        return f"exec {go_value(found['exec'].get('command') or [])}"
    if http := found.get("httpGet"):
        host = http.get("host", "")
        host = f"[{host}]" if ":" in host else host
        path = http.get("path", "")
        slash = "" if path.startswith("/") or not path else "/"
        return f"http-get {http.get('scheme', '').lower()}://{host}:{http['port']}{slash}{path}"
    if tcp := found.get("tcpSocket"):
        return f"tcp-socket {tcp.get('host', '')}:{tcp['port']}"
    if grpc := found.get("grpc"):
        return f"grpc <pod>:{grpc['port']} {grpc.get('service', '')}"
    return "unknown"


def _environment_from(writer: Writer, container: Object) -> None:
    if not container.get("envFrom"):
        return
    writer.line(2, "Environment Variables from:")
    for source in container["envFrom"]:
        kind = "ConfigMap" if "configMapRef" in source else "Secret"
        reference = source.get("configMapRef") or source.get("secretRef") or {}
        prefix = f" with prefix '{source['prefix']}'" if source.get("prefix") else ""
        optional = go_value(bool(reference.get("optional")))
        writer.line(3, f"{reference.get('name', '')}\t{kind}{prefix}\tOptional: {optional}")


def _environment(writer: Writer, container: Object, field_value: FieldValue | None) -> None:
    variables = container.get("env") or []
    writer.line(2, "Environment:" + ("" if variables else "\t<none>"))
    for variable in variables:
        if "valueFrom" in variable:
            writer.field(3, variable["name"], _value_from(variable["valueFrom"], container, field_value))
            continue
        first, *rest = variable.get("value", "").split("\n")
        writer.field(3, variable["name"], first)
        for line in rest:
            writer.line(3, f"\t{line}")


def _value_from(source: Object, container: Object, field_value: FieldValue | None) -> str:
    if field := source.get("fieldRef"):
        value = field_value(field["fieldPath"]) if field_value else ""
        return f"{value} ({field.get('apiVersion', 'v1')}:{field['fieldPath']})"
    if resource := source.get("resourceFieldRef"):
        return f"{_resource_value(resource, container)} ({resource['resource']})"
    for key, words in (("secretKeyRef", "in secret"), ("configMapKeyRef", "of config map")):
        if reference := source.get(key):
            optional = go_value(bool(reference.get("optional")))
            return f"<set to the key '{reference['key']}' {words} '{reference['name']}'>\tOptional: {optional}"
    return ""


def _resource_value(reference: Object, container: Object) -> str:
    """What a resourceFieldRef gives: the container's own amount over the divisor, rounded up; 0 where there is none."""
    from kubepy.api.values.quantity import Quantity

    section, _, name = reference["resource"].partition(".")
    amount = (container.get("resources", {}).get(section) or {}).get(name)
    if amount is None:
        return "node allocatable" if section == "limits" and name in ("cpu", "memory") else "0"
    divisor = Quantity.parse(reference.get("divisor") or "0")
    unit = Quantity.parse("1") if divisor.is_zero() else divisor
    return str(-(-Quantity.parse(amount).nanos // unit.nanos))


def _mounts(writer: Writer, container: Object) -> None:
    mounts = sorted(container.get("volumeMounts") or [], key=lambda mount: mount["mountPath"])
    writer.line(2, "Mounts:" + ("" if mounts else "\t<none>"))
    for mount in mounts:
        flags = ["ro" if mount.get("readOnly") else "rw"]
        if mount.get("subPath"):
            flags.append(f"path={quote(mount['subPath'])}")
        writer.line(3, f"{mount['mountPath']} from {mount['name']} ({','.join(flags)})")
    if devices := container.get("volumeDevices"):
        writer.line(2, "Devices:" + ("" if mounts else "\t<none>"))
        for device in sorted(devices, key=lambda one: one["devicePath"]):
            writer.line(3, f"{device['devicePath']} from {device['name']}")
