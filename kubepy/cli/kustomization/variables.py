"""``vars``: fields of objects that take the place of ``$(NAME)`` in others.

Upstream: ``kustomize/api/internal/accumulator/resaccumulator.go``, ``api/filters/refvar``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubepy.api.meta import Object, nested_list, nested_map
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.fieldspecs import FieldSpec, apply
from kubepy.cli.kustomization.replacements import walk
from kubepy.cli.kustomization.resources import ResId, ResMap, Var, gvk_text

DEFAULT_PATH = "metadata.name"
# An escaped dollar, a reference, or a dollar that is just one.
_REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


def variables_of(settings: Object) -> list[Var]:
    """Return the variables that a kustomization declares."""
    variables = []
    for entry in nested_list(settings, "vars"):
        reference = nested_map(entry, "objref")
        group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
        target = ResId(
            reference.get("group") or group,
            reference.get("version") or version,
            reference.get("kind") or "",
            reference.get("name") or "",
            reference.get("namespace") or "",
        )
        path = nested_map(entry, "fieldref").get("fieldPath") or DEFAULT_PATH
        variables.append(Var(entry.get("name") or "", target, path))
    return variables


def written(entry: Object) -> str:
    """Return an entry of ``vars`` as messages list it."""
    reference = nested_map(entry, "objref")
    kind = gvk_text(*(reference.get(part) or "" for part in ("group", "version", "kind")))
    return (
        f"{{{entry.get('name') or ''} {kind} "
        f"{{{(entry.get('fieldref') or {}).get('fieldPath') or DEFAULT_PATH}}}}}"
    )


def declare(resources: ResMap, variables: Iterable[Var]) -> None:
    """Note with each object which variables read it. Raises CliError for a name that is taken."""
    for variable in variables:
        matching = [
            resource
            for resource in resources
            if any(variable.refers_to(known_id) for known_id in resource.ids)
        ]
        if len(matching) > 1:
            raise CliError(
                f"found {len(matching)} resId matches for var {variable} (unable to disambiguate)"
            )
        for resource in matching:
            resource.variables.append(variable.name)
        resources.declare(variable)


def resolve(resources: ResMap, specs: list[FieldSpec], warn: Callable[[str], None]) -> None:
    """Replace all references to variables by their values. Raises CliError."""
    values = {
        name: _value(resources, resources.variables[name]) for name in sorted(resources.variables)
    }
    if not values:
        return
    used: set[str] = set()

    def fill(holder: Any, name: Any) -> None:
        holder[name] = _filled(holder[name], values, used)

    for resource in resources:
        apply(resource, specs, fill)
    if unused := [name for name in values if name not in used]:
        warn(f"well-defined vars that were never replaced: {','.join(unused)}")


def _value(resources: ResMap, variable: Var) -> Any:
    """Return the content of the field that a variable names."""
    resource = next(
        (resource for resource in resources if variable.name in resource.variables), None
    )
    if resource is None:
        raise CliError(
            f"var '{variable}' cannot be mapped to a field in the set of known resources"
        )

    values: list[Any] = []
    parts = re.findall(r"(?:\\\.|[^.\[\]])+", variable.path)
    walk(
        resource.object,
        [part.replace("\\.", ".") for part in parts],
        lambda holder, key: values.append(holder[key]),
    )
    if not values:
        raise CliError(f"field specified in var '{variable}' not found in corresponding resource")
    return values[0]


def _filled(value: Any, values: Mapping[str, Any], used: set[str]) -> Any:
    """Replace the references in a text, or in the texts of a list or map."""
    if isinstance(value, str):
        return expanded(value, values, used)
    if isinstance(value, dict):
        return {
            key: expanded(text, values, used) if isinstance(text, str) else text
            for key, text in value.items()
        }
    if isinstance(value, list):
        if not all(isinstance(text, str) for text in value):
            raise CliError("invalid value type expect a string")
        return [expanded(text, values, used) for text in value]
    return value


def expanded(text: str, values: Mapping[str, Any], used: set[str]) -> Any:
    """Replace the references in a text, and add the variables to ``used``.

    A text that is only a reference becomes the value itself: a number stays a number. ``$$`` is a
    dollar. References to unknown variables, or to lists and maps, stay.
    """
    whole = re.fullmatch(r"\$\(([^)]*)\)", text)
    if whole and _is_scalar(values.get(whole[1])):
        used.add(whole[1])
        return values[whole[1]]

    def replace(match: re.Match[str]) -> str:
        escaped, name = match.groups()
        if escaped:
            return "$"
        value = values.get(name)
        if not _is_scalar(value):
            return match[0]
        used.add(name)
        if isinstance(value, bool):
            return str(value).lower()
        return str(value)

    return _REFERENCE.sub(replace, text)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)
