"""Where a variable's value comes from (``valueFrom``), in words and as the value that it has now.

Upstream: ``kubectl/pkg/cmd/set/env/env_resolve.go``.
"""

from __future__ import annotations

import re
from base64 import b64decode

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.quoting import quote


def reference_text(source: Object) -> str:
    """``configmap conf, key mode``."""
    if reference := source.get("configMapKeyRef"):
        return f"configmap {reference['name']}, key {reference['key']}"
    if reference := source.get("secretKeyRef"):
        return f"secret {reference['name']}, key {reference['key']}"
    if reference := source.get("fieldRef"):
        return f"field path {reference['fieldPath']}"
    if reference := source.get("resourceFieldRef"):
        prefix = f"{reference['containerName']}/" if reference.get("containerName") else ""
        return f"resource field {prefix}{reference['resource']}"
    return "invalid valueFrom"


def resolved(factory: Factory, obj: Object, container: Object, source: Object) -> str:
    """The value that a reference has in the cluster. Raises CliError, NotFound."""
    if reference := source.get("secretKeyRef"):
        encoded = _value(factory, "secrets", "secret", reference)
        return b64decode(encoded).decode(errors="replace")
    if reference := source.get("configMapKeyRef"):
        return _value(factory, "configmaps", "config map", reference)
    if reference := source.get("fieldRef"):
        return _field(obj["metadata"], reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        return _resource(container.get("resources") or {}, reference)
    raise CliError("invalid valueFrom")


def _value(factory: Factory, resource: str, words: str, reference: Object) -> str:
    found = factory.client.get(resource, reference["name"], namespace=factory.namespace)
    data: dict[str, str] = found.get("data") or {}
    if reference["key"] not in data:
        raise CliError(f"key {reference['key']} not found in {words} {reference['name']}")
    return data[reference["key"]]


def _field(metadata: Object, path: str) -> str:
    if match := re.fullmatch(r"(.+?)\['(.*)'\]", path):
        field = match[1].removeprefix("metadata.")
        if match[1] not in ("metadata.annotations", "metadata.labels"):
            raise CliError(f"fieldPath {quote(match[1])} does not support subscript")
        return str((metadata.get(field) or {}).get(match[2], ""))
    field = path.removeprefix("metadata.")
    if path in ("metadata.annotations", "metadata.labels"):
        return _lines(metadata.get(field) or {})
    if path in ("metadata.name", "metadata.namespace", "metadata.uid"):
        return str(metadata.get(field, ""))
    raise CliError(f"unsupported fieldPath: {path}")


def _lines(values: dict[str, str]) -> str:
    from kubepy.api.values.goformat import quote

    return "\n".join(f"{key}={quote(values[key])}" for key in sorted(values))


def _resource(resources: Object, reference: Object) -> str:
    """An amount in units of the divisor, rounded up."""
    from kubepy.api.values.quantity import Quantity

    side, _, name = reference["resource"].partition(".")
    if side not in ("limits", "requests") or not re.fullmatch(r"cpu|memory|ephemeral-storage|hugepages-.*", name):
        raise CliError(f"Unsupported container resource : {reference['resource']}")
    amount = Quantity.parse((resources.get(side) or {}).get(name, "0"))
    divisor = Quantity.parse(reference.get("divisor") or "1")
    divisor = Quantity.of(1) if divisor.is_zero() else divisor
    if name == "cpu":
        return str(-(-amount.milli_value() // divisor.milli_value()))
    return str(-(-amount.value() // divisor.value()))
