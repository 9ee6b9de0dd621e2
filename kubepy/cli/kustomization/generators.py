"""configMapGenerator and secretGenerator. Upstream: ``kustomize/api/internal/generators``, ``api/kv``."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.files import Folder
from kubepy.cli.kustomization.resources import Resource
from kubepy.quoting import quote

LINE_LENGTH = 70  # of base64 in a Secret


def generated(folder: Folder, settings: Object) -> Iterator[Resource]:
    """The Secrets' and ConfigMaps' resources of a kustomization. Raises CliError."""
    for args in settings.get("configMapGenerator") or ():
        yield _resource(folder, settings, args, config_map(folder, args))
    for args in settings.get("secretGenerator") or ():
        yield _resource(folder, settings, args, secret(folder, args))


def config_map(folder: Folder, args: Object) -> Object:
    data: dict[str, str] = {}
    binary: dict[str, str] = {}
    for key, value in sorted(_values(folder, args).items()):
        try:
            data[key] = value.decode()
        except UnicodeDecodeError:
            binary[key] = _encoded(value)
    content = {**({"data": data} if data else {}), **({"binaryData": binary} if binary else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(args), **content}


def secret(folder: Folder, args: Object) -> Object:
    data = {key: _encoded(value) for key, value in sorted(_values(folder, args).items())}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": _metadata(args), "type": args.get("type") or "Opaque",
            "data": data}


def _metadata(args: Object) -> Object:
    if not args.get("name"):
        raise CliError("a configmap must have a name")
    return {key: args[key] for key in ("name", "namespace") if args.get(key)}


def _resource(folder: Folder, settings: Object, args: Object, obj: Object) -> Resource:
    options = _options(settings.get("generatorOptions") or {}, args.get("options") or {})
    for name in ("labels", "annotations"):
        if options.get(name):
            obj["metadata"][name] = dict(options[name])
    if options.get("immutable"):
        obj["immutable"] = True
    return Resource(obj, behavior=args.get("behavior", ""), needs_hash=not options.get("disableNameSuffixHash"))


def _options(general: Object, own: Object) -> Object:
    """A generator's options over those of all generators."""
    maps = {name: {**(general.get(name) or {}), **(own.get(name) or {})} for name in ("labels", "annotations")}
    flags = {name: bool(general.get(name) or own.get(name)) for name in ("disableNameSuffixHash", "immutable")}
    return {**maps, **flags}


def _encoded(value: bytes) -> str:
    """Base64, in lines if it is long."""
    text = base64.b64encode(value).decode()
    if len(text) < LINE_LENGTH:
        return text
    return "".join(f"{text[start:start + LINE_LENGTH]}\n" for start in range(0, len(text), LINE_LENGTH))


# --- sources ------------------------------------------------------------------------------------------------------


def _values(folder: Folder, args: Object) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for key, value in _pairs(folder, args):
        if not re.fullmatch(r"[-._a-zA-Z0-9]+", key):
            raise CliError(f"{quote(key)} is not a valid key name")
        if key in found:
            raise CliError(f"configmap {args.get('name')} illegally repeats the key `{key}`")
        found[key] = value
    return found


def _pairs(folder: Folder, args: Object) -> Iterator[tuple[str, bytes]]:
    envs = [*(args.get("envs") or ()), *([args["env"]] if args.get("env") else [])]
    for path in envs:
        yield from _env_pairs(_read(folder, path, "env source files", envs))
    for literal in args.get("literals") or ():
        key, equals, value = literal.partition("=")
        if not key or not equals:
            raise CliError(f"loading KV pairs: literal sources {_shown(args['literals'])}: invalid literal source "
                           f"{literal}, expected key=value")
        yield key, _unquoted(value).encode()
    for source in args.get("files") or ():
        key, path = file_source(source)
        yield key, _read(folder, path, "file sources", args["files"])


def _read(folder: Folder, path: str, what: str, all_of_them: list[str]) -> bytes:
    try:
        return folder.read(path)
    except CliError as error:
        raise CliError(f"loading KV pairs: {what}: {_shown(all_of_them)}: {error}") from None


def _shown(values: list[Any]) -> str:
    return f"[{' '.join(map(str, values))}]"


def file_source(source: str) -> tuple[str, str]:
    """``name=path`` or ``path``, whose last part is the name. Raises CliError."""
    first, equals, rest = source.partition("=")
    if not equals:
        return source.rpartition("/")[2], source
    if "=" in rest:
        raise CliError(f"source {quote(source)} key name or file path contains '='")
    if not first:
        raise CliError(f"missing key name for file path {quote(rest)} in source {quote(source)}")
    if not rest:
        raise CliError(f"missing file path for key name {quote(first)} in source {quote(source)}")
    return first, rest


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _env_pairs(content: bytes) -> Iterator[tuple[str, bytes]]:
    for line in content.decode(errors="replace").removeprefix("\ufeff").splitlines():
        text = line.lstrip()
        if text and not text.startswith("#"):
            key, _, value = text.partition("=")
            yield key, value.encode()
