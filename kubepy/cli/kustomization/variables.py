"""``vars``: fields of objects that take the place of ``$(NAME)`` in others.

Upstream: ``kustomize/api/internal/accumulator/resaccumulator.go``, ``api/filters/refvar``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.fieldspecs import VARIABLES, apply
from kubepy.cli.kustomization.replacements import walk
from kubepy.cli.kustomization.resources import Id, Resource, Resources, Variable

DEFAULT_PATH = "metadata.name"
# An escaped dollar, a reference, or a dollar that is just one.
_REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


def variables_of(settings: Object) -> list[Variable]:
    """The variables that a kustomization declares."""
    return [_variable(entry) for entry in settings.get("vars") or ()]


def _variable(entry: Object) -> Variable:
    reference = entry.get("objref") or {}
    group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
    target = Id(reference.get("group") or group, reference.get("version") or version, reference.get("kind") or "",
                reference.get("name") or "", reference.get("namespace") or "")
    return Variable(entry.get("name") or "", target, (entry.get("fieldref") or {}).get("fieldpath") or DEFAULT_PATH)


def declare(resources: Resources, variables: Iterable[Variable]) -> None:
    """Remember with each object which variables read it. Raises CliError for a name that is taken."""
    for variable in variables:
        found = [one for one in resources if any(_is_meant(variable.target, one_id) for one_id in one.ids)]
        if len(found) > 1:
            raise CliError(f"found {len(found)} resId matches for var {variable} (unable to disambiguate)")
        for one in found:
            one.variables.append(variable.name)
        resources.declare(variable)


def _is_meant(target: Id, found: Id) -> bool:
    """Without a namespace a target is meant in any."""
    if target.namespace or target.is_cluster_scoped:
        return target.is_same(found)
    return target._replace(namespace="") == found._replace(namespace="")


def resolve(resources: Resources, warn: Callable[[str], None]) -> None:
    """Put the values of all variables in the place of their references. Raises CliError."""
    values = {name: _value(resources, resources.variables[name]) for name in sorted(resources.variables)}
    if not values:
        return
    used: set[str] = set()

    def fill(holder: dict[str, Any], name: str) -> None:
        holder[name] = _filled(holder[name], values, used)

    for resource in resources:
        apply(resource, VARIABLES, fill)
    if unused := [name for name in values if name not in used]:
        warn(f"well-defined vars that were never replaced: {','.join(unused)}")


def _value(resources: Resources, variable: Variable) -> Any:
    for resource in resources:
        if variable.name in resource.variables:
            return _field(resource, variable)
    raise CliError(f"var '{variable}' cannot be mapped to a field in the set of known resources")


def _field(resource: Resource, variable: Variable) -> Any:
    found: list[Any] = []
    parts = re.findall(r"(?:\\\.|[^.\[\]])+", variable.path)
    walk(resource.object, [part.replace("\\.", ".") for part in parts],
         lambda holder, key: found.append(holder[key]))
    if not found:
        raise CliError(f"field specified in var '{variable}' not found in corresponding resource")
    return found[0]


def _filled(value: Any, values: Mapping[str, Any], used: set[str]) -> Any:
    """Texts, also those of a list or map, with their references replaced."""
    if isinstance(value, str):
        return expanded(value, values, used)
    if isinstance(value, dict):
        return {key: expanded(one, values, used) if isinstance(one, str) else one for key, one in value.items()}
    if isinstance(value, list):
        if not all(isinstance(one, str) for one in value):
            raise CliError("invalid value type expect a string")
        return [expanded(one, values, used) for one in value]
    return value


def expanded(text: str, values: Mapping[str, Any], used: set[str]) -> Any:
    """A text with its references replaced; one that is nothing but a reference becomes the value, a number stays one.

    ``$$`` is a dollar; what names no variable, or one that is a list or map, stays.
    """
    whole = re.fullmatch(r"\$\(([^)]*)\)", text)
    if whole and _is_usable(whole[1], values):
        used.add(whole[1])
        return values[whole[1]]

    def replace(found: re.Match[str]) -> str:
        escaped, name = found.groups()
        if escaped:
            return "$"
        if not _is_usable(name, values):
            return found[0]
        used.add(name)
        return _text(values[name])

    return _REFERENCE.sub(replace, text)


def _is_usable(name: str, values: Mapping[str, Any]) -> bool:
    return isinstance(values.get(name), str | int | float)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
