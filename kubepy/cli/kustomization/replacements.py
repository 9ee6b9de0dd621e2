"""``replacements``: a value of one object, copied to others. Upstream: ``kustomize/api/filters/replacement``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kubepy.api.meta import Object, clone
from kubepy.api.values.gonumbers import int_or_none
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.files import Folder, parse
from kubepy.cli.kustomization.resources import Resource, Resources, is_selected, is_target
from kubepy.quoting import quote

DEFAULT_PATH = "metadata.name"
# Takes the container, its key or index.
Set = Callable[[Any, Any], None]


def replace_all(resources: Resources, folder: Folder, entries: list[Object]) -> None:
    """Raises CliError."""
    for entry in entries:
        for one in _loaded(folder, entry):
            targets = one.get("targets")
            if not targets or not (one.get("source") or one.get("sourceValue") is not None):
                raise CliError("replacements must specify a source and at least one target")
            value = _source_value(resources, one)
            for target in targets:
                _fill(resources, target, value)


def _loaded(folder: Folder, entry: Object) -> list[Object]:
    if not entry.get("path"):
        return [entry]
    found = parse(folder.read(entry["path"]).decode(errors="replace"))
    return [one for document in found for one in (document if isinstance(document, list) else [document])]


# --- the value ----------------------------------------------------------------------------------------------------


def _source_value(resources: Resources, entry: Object) -> Any:
    if entry.get("sourceValue") is not None:
        return entry["sourceValue"]
    source = entry["source"]
    found = [one for one in resources if _is_source(one, source)]
    if len(found) != 1:
        problem = "multiple matches for selector" if found else "nothing selected by"
        raise CliError(f"{problem} {_told(source)}")
    path = source.get("fieldPath") or DEFAULT_PATH
    values: list[Any] = []
    walk(found[0].object, split(path), lambda holder, key: values.append(holder[key]))
    if not values or values[0] in (None, {}, []):
        raise CliError(f"fieldPath `{path}` is missing for replacement source {_shown(source)}")
    return _part(values[0], source.get("options") or {})


def _is_source(resource: Resource, source: Object) -> bool:
    return any(is_selected(one, source.get("group", ""), source.get("version", ""), source.get("kind", ""))
               and source.get("name", "") in ("", one.name) and source.get("namespace", "") in ("", one.namespace)
               for one in resource.ids)


def _shown(source: Object) -> str:
    return ".".join(str(source.get(key) or f"[no{word}]") for key, word in (
        ("kind", "Kind"), ("version", "Ver"), ("group", "Grp"))) + f"/{source.get('name') or '[noName]'}." + \
        str(source.get("namespace") or "[noNs]")


def _told(source: Object) -> str:
    """The source with its field and the options of that."""
    options = source.get("options") or {}
    parts = [_shown(source), source.get("fieldPath") or ""]
    if options.get("delimiter") or options.get("create"):
        create = str(bool(options.get("create"))).lower()
        parts.append(f"{options.get('delimiter') or ''}({options.get('index', 0)}), create={create}")
    return ":".join(part for part in parts if part)


def _part(value: Any, options: Object) -> Any:
    delimiter, index = options.get("delimiter"), options.get("index", 0)
    if not delimiter:
        return value
    if isinstance(value, dict | list):
        raise CliError("delimiter option can only be used with scalar nodes")
    parts = str(value).split(delimiter)
    if not 0 <= index < len(parts):
        raise CliError(f"options.index {index} is out of bounds for value {value}")
    return parts[index]


# --- the targets --------------------------------------------------------------------------------------------------


def _fill(resources: Resources, target: Object, value: Any) -> None:
    if not target.get("select"):
        raise CliError("target must specify resources to select")
    options = target.get("options") or {}
    for resource in resources:
        if not is_target(resource, target["select"]) or any(is_target(resource, one) for one in _rejected(target)):
            continue
        for path in target.get("fieldPaths") or [DEFAULT_PATH]:
            if not walk(resource.object, split(path), lambda holder, key: _put(holder, key, value, options),
                        create=bool(options.get("create"))):
                found = "find or create" if options.get("create") else "find"
                raise CliError(f"unable to {found} field {quote(path)} in replacement target")


def _rejected(target: Object) -> list[Object]:
    return [one for one in target.get("reject") or () if one]


def _put(holder: Any, key: Any, value: Any, options: Object) -> None:
    old = holder[key] if isinstance(holder, list) else holder.get(key)
    if delimiter := options.get("delimiter"):
        holder[key] = _joined(str("" if old is None else old), str(value), delimiter, options.get("index", 0))
    elif isinstance(old, str) and not isinstance(value, str | dict | list):
        holder[key] = str(value).lower() if isinstance(value, bool) else str(value)
    elif isinstance(old, int) and isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        number = int_or_none(value)
        holder[key] = value if number is None else number
    else:
        holder[key] = clone(value)


def _joined(old: str, value: str, delimiter: str, index: int) -> str:
    parts = old.split(delimiter)
    if index < 0:
        parts.insert(0, value)
    elif index >= len(parts):
        parts.append(value)
    else:
        parts[index] = value
    return delimiter.join(parts)


# --- paths --------------------------------------------------------------------------------------------------------


def split(path: str) -> list[str]:
    r"""``spec.containers.[name=a.b].env.*`` → its parts; ``\.`` and brackets keep dots together."""
    parts = re.findall(r"\[[^\]]*\]|(?:\\\.|[^.\[])+", path)
    return [part.replace("\\.", ".") for part in parts]


def walk(node: Any, parts: list[str], change: Set, *, create: bool = False) -> bool:
    """Call ``change`` where a path ends, at any number of places; whether there was any."""
    part, rest = parts[0], parts[1:]
    if isinstance(node, list):
        return _walk_list(node, part, rest, change, create)
    if not isinstance(node, dict):
        return False
    name = part.removeprefix("[").removesuffix("]") if part.startswith("[") and "=" not in part else part
    if name == "*":
        return _go_on_all(node, list(node), rest, change, create)
    if name not in node:
        if not create:
            return False
        node[name] = {} if rest else None
    return _go_on(node, name, rest, change, create)


def _walk_list(node: list[Any], part: str, rest: list[str], change: Set, create: bool) -> bool:
    chosen = [index for index, item in enumerate(node) if _is_chosen(item, index, part)]
    return _go_on_all(node, chosen, rest, change, create)


def _go_on_all(node: Any, chosen: list[Any], rest: list[str], change: Set, create: bool) -> bool:
    """All of them, also behind the first where there is something."""
    done = [_go_on(node, key, rest, change, create) for key in chosen]
    return any(done)


def _is_chosen(item: Any, index: int, part: str) -> bool:
    if part == "*":
        return True
    if part.startswith("[") and "=" in part:
        key, _, value = part[1:-1].partition("=")
        return str(item.get(key)) == value if isinstance(item, dict) else not key and str(item) == value
    return int_or_none(part) == index


def _go_on(node: Any, key: Any, rest: list[str], change: Set, create: bool) -> bool:
    if rest:
        return walk(node[key], rest, change, create=create)
    change(node, key)
    return True
