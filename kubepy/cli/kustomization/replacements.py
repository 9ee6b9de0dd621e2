"""``replacements``: copy a value of one object to others. Upstream:
``kustomize/api/filters/replacement``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kubepy.api.meta import Object, clone, nested_list, nested_map
from kubepy.api.values.gonumbers import int_or_none
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.files import FileLoader, contents_of
from kubepy.cli.kustomization.merges import text_of
from kubepy.cli.kustomization.resources import ResId, ResMap, has_selected_metadata, is_selected
from kubepy.cli.kustomization.settings import REPLACEMENT, REPLACEMENTS, Struct, decode
from kubepy.cli.kustomization.transformers import Transformer
from kubepy.quoting import quote
from kubepy.storage.yaml.scalars import resolve_v3

DEFAULT_PATH = "metadata.name"
# Takes the container, its key or index.
ValueFunction = Callable[[Any, Any], None]


_PLUGIN = Struct("ReplacementTransformerPlugin", replacements=REPLACEMENTS)
_REPLACEMENT = Struct("Replacement", **REPLACEMENT)


def replacement_transformer(loader: FileLoader, config: Object) -> Transformer:
    """Copy values of objects to others."""
    replacements: list[Object] = []
    for entry in nested_list(decode(config, _PLUGIN), "replacements"):
        if not (path := entry.get("path")):
            replacements.append(entry)
            continue
        if entry.get("source") is not None or entry.get("targets"):
            raise CliError("cannot specify both path and inline replacement")
        contents = contents_of(loader.text(path), old_booleans=True)
        content = contents[0] if contents else None
        if not isinstance(content, dict | list):
            kinds = {str: "string", bool: "bool", int: "float64", float: "float64"}
            raise CliError(
                "unsupported replacement type encountered within replacement path: "
                f"{kinds.get(type(content), 'invalid')}"
            )
        replacements += decode(content if isinstance(content, list) else [content], [_REPLACEMENT])

    def transform(resources: ResMap) -> None:
        for replacement in replacements:
            targets = replacement.get("targets")
            value = replacement.get("sourceValue")
            source = replacement.get("source")
            if targets is None or (source is None and value is None):
                raise CliError("replacements must specify a source and at least one target")
            if source is not None and value is not None:
                raise CliError("value and resource selectors are mutually exclusive")
            if value is None:
                value = _source_value(resources, source or {})
            for target in targets:
                _fill_target(resources, target, value)

    return transform


def _source_value(resources: ResMap, source: Object) -> Any:
    """Return the content of the field that a source names, or the part of it that ``options``
    selects."""
    options = nested_map(source, "options")
    path = source.get("fieldPath") or ""
    group, version, kind = (source.get(field, "") for field in ("group", "version", "kind"))
    matching = [
        resource
        for resource in resources
        if any(
            resource_id.is_selected(group, version, kind)
            and source.get("name", "") in ("", resource_id.name)
            and source.get("namespace", "") in ("", resource_id.namespace)
            for resource_id in resource.ids
        )
    ]
    if len(matching) != 1:
        texts = [_source_text(source), path]
        if options.get("delimiter") or options.get("create"):
            create = str(bool(options.get("create"))).lower()
            texts.append(
                f"{options.get('delimiter') or ''}({options.get('index', 0)}), create={create}"
            )
        problem = "multiple matches for selector" if matching else "nothing selected by"
        raise CliError(f"{problem} {':'.join(text for text in texts if text)}")

    path = path or DEFAULT_PATH
    values: list[Any] = []
    walk(matching[0].object, split(path), lambda holder, key: values.append(holder[key]))
    if not values or values[0] in (None, {}, []):
        raise CliError(
            f"fieldPath `{path}` is missing for replacement source {_source_text(source)}"
        )

    value = values[0]
    delimiter = options.get("delimiter")
    index = options.get("index", 0)
    if not delimiter:
        return value
    if isinstance(value, dict | list):
        raise CliError("delimiter option can only be used with scalar nodes")
    parts = str(value).split(delimiter)
    if not 0 <= index < len(parts):
        raise CliError(f"options.index {index} is out of bounds for value {value}")
    return parts[index]


def _source_text(source: Object) -> str:
    """Return a source as messages name it: ``Deployment.v1.apps/web.default``."""
    fields = (("kind", "Kind"), ("version", "Ver"), ("group", "Grp"))
    kind = ".".join(str(source.get(key) or f"[no{missing}]") for key, missing in fields)
    return f"{kind}/{source.get('name') or '[noName]'}.{source.get('namespace') or '[noNs]'}"


def _fill_target(resources: ResMap, target: Object, value: Any) -> None:
    """Write a value into the fields of all objects that a target selects."""
    if (select := target.get("select")) is None:
        raise CliError("target must specify resources to select")
    options = nested_map(target, "options")
    rejected = [selector for selector in nested_list(target, "reject") if selector]
    for resource in resources:
        if not has_selected_metadata(resource, select) or any(
            has_selected_metadata(resource, selector)
            for selector in rejected
            if selector.get("labelSelector") or selector.get("annotationSelector")
        ):
            continue
        if any(
            is_selected(known_id, selector)
            for selector in rejected
            for known_id in resource.ids
            if set(selector) & set(ResId._fields)
        ):
            continue
        if not any(is_selected(known_id, select) for known_id in resource.ids):
            continue
        for path in target.get("fieldPaths") or [DEFAULT_PATH]:
            if not walk(
                resource.object,
                split(path),
                lambda holder, key: _put(holder, key, value, options),
                create=bool(options.get("create")),
            ):
                action = "find or create" if options.get("create") else "find"
                raise CliError(f"unable to {action} field {quote(path)} in replacement target")


def _put(holder: Any, key: Any, value: Any, options: Object) -> None:
    """Write a value in the type of the old one, or as the part of it that ``options`` selects."""
    old = holder[key] if isinstance(holder, list) else holder.get(key)
    if delimiter := options.get("delimiter"):
        parts = str("" if old is None else old).split(delimiter)
        index = options.get("index", 0)
        if index < 0:
            parts.insert(0, str(value))
        elif index >= len(parts):
            parts.append(str(value))
        else:
            parts[index] = str(value)
        holder[key] = delimiter.join(parts)
    elif old is None and not isinstance(value, dict | list):
        holder[key] = resolve_v3(text_of(value))
    elif isinstance(old, str) and not isinstance(value, str | dict | list):
        holder[key] = str(value).lower() if isinstance(value, bool) else str(value)
    elif isinstance(old, int) and isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        number = int_or_none(value)
        holder[key] = value if number is None else number
    else:
        holder[key] = clone(value)


# --- paths ----------------------------------------------------------------------------------------


def split(path: str) -> list[str]:
    r"""Split ``spec.containers.[name=a.b].env.*`` into its parts; ``\.`` and brackets keep dots
    together."""
    parts = re.findall(r"\[[^\]]*\]|(?:\\\.|[^.\[])+", path)
    return [part.replace("\\.", ".") for part in parts]


def walk(node: Any, parts: list[str], change: ValueFunction, *, create: bool = False) -> bool:
    """Call ``change`` where a path ends, at any number of places. Return whether there was one."""
    part = parts[0]
    rest = parts[1:]
    keys: list[Any]
    if isinstance(node, list):
        keys = [index for index, item in enumerate(node) if _selects_item(part, item, index)]
    elif isinstance(node, dict):
        if part.startswith("[") and "=" not in part:
            name = part.removeprefix("[").removesuffix("]")
        else:
            name = part
        keys = list(node) if name == "*" else [name]
        if name != "*" and name not in node:
            if not create:
                return False
            node[name] = {} if rest else None
    else:
        return False

    reached = False
    for key in keys:
        if rest:
            reached = walk(node[key], rest, change, create=create) or reached
        else:
            change(node, key)
            reached = True

    return reached


def _selects_item(part: str, item: Any, index: int) -> bool:
    """Return whether a part of a path (``*``, ``[name=web]``, ``[=web]``, an index) selects an item
    of a list."""
    if part == "*":
        return True
    if part.startswith("[") and "=" in part:
        key, _, value = part[1:-1].partition("=")
        if isinstance(item, dict):
            return str(item.get(key)) == value
        return not key and str(item) == value
    return int_or_none(part) == index
