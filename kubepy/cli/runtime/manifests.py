"""Manifests: paths to files, files to documents, documents to objects with their types.

A file is YAML or JSON, one document or many; a List is taken apart. Errors name the file, in kubectl's words.
Upstream: ``cli-runtime/pkg/resource/{visitor,mapper}.go``, ``apimachinery/pkg/util/yaml/decoder.go``.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from kubepy.cli.runtime.errors import CliError
from kubepy.cli.runtime.resources import Info
from kubepy.cli.runtime.session import Session
from kubepy.cluster.objects.meta import Object
from kubepy.cluster.scheme import Resource

Read = Info | Exception
EXTENSIONS = (".json", ".yaml", ".yml")
STDIN = "STDIN"
STOP_VALIDATE = "if you choose to ignore these errors, turn validation off with --validate=false"


# --- paths --------------------------------------------------------------------------------------------------------


def expand_paths(names: list[str], recursive: bool, errors: list[Exception]) -> list[str]:
    """The files that ``-f`` names mean, in order: ``-``, files, the manifests of folders, glob patterns."""
    paths: list[str] = []
    for name in names:
        try:
            paths += ["-"] if name == "-" else _expand(name, recursive)
        except CliError as error:
            errors.append(error)
    if paths.count("-") > 1:
        errors.append(CliError("standard input cannot be used for multiple arguments"))
    return paths


def _expand(name: str, recursive: bool) -> list[str]:
    if name.startswith(("http://", "https://")):
        raise CliError(f'reading manifests from a URL is not supported: download "{name}" and give the file')
    paths = [name] if os.path.exists(name) else sorted(glob.glob(name))
    if not paths:
        raise CliError(f'the path "{name}" does not exist')
    files = [file for path in paths for file in _files(path, recursive)]
    if not files:
        raise CliError(f"error reading [{' '.join(paths)}]: recognized file extensions are "
                       f"[{' '.join(EXTENSIONS)}]")
    return files


def _files(path: str, recursive: bool) -> list[str]:
    """A file itself; of a folder its manifests, and with ``recursive`` those below, in the order of Go's Walk."""
    if not os.path.isdir(path):
        return [path]
    files: list[str] = []
    for entry in sorted(os.listdir(path)):
        inner = os.path.normpath(os.path.join(path, entry))
        if os.path.isdir(inner):
            files += _files(inner, recursive) if recursive else []
        elif inner.endswith(EXTENSIONS):
            files.append(inner)
    return files


# --- documents ----------------------------------------------------------------------------------------------------


class Manifest(NamedTuple):
    """One document of a file; ``line`` is where it starts."""

    content: Any
    line: int


def read(session: Session, path: str, validation: str, *, local: bool = False) -> Iterator[Read]:
    """The objects of one file (``-``: standard input), and the errors; one that breaks the stream comes last."""
    source = STDIN if path == "-" else path
    try:
        for manifest in documents(read_text(session, path), source):
            if manifest.content is None:
                continue
            if validation != "Ignore":
                check_type(manifest.content, source)
            yield from infos_of(session, manifest.content, source, manifest.line, local=local)
    except CliError as error:
        yield error


def read_kustomization(session: Session, path: str, validation: str, *, local: bool = False) -> Iterator[Read]:
    """The objects of a kustomization folder. Raises CliError."""
    from kubepy.cli.kustomize.target import build

    for obj in build(path, session.say):
        if validation != "Ignore":
            check_type(obj, path)
        yield from infos_of(session, obj, path, 0, local=local)


def read_text(session: Session, path: str) -> str:
    """Raises CliError."""
    if path == "-":
        return session.stdin.read()
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except OSError as error:
        raise CliError(f"open {path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise CliError(f"error parsing {path}: error converting YAML to JSON: yaml: invalid UTF-8") from None


def documents(text: str, source: str) -> Iterator[Manifest]:
    """The documents of a text: JSON when it begins with ``{`` (and is JSON), else YAML. Raises CliError."""
    if text.lstrip().startswith("{"):
        values, error = json_stream(text)
        if not error:
            yield from values
            return
        try:
            yield from list(yaml_documents(text))
            return
        except CliError:
            yield from values
            raise CliError(f"error parsing {source}: {error}") from None
    try:
        yield from yaml_documents(text)
    except CliError as error:
        raise CliError(f"error parsing {source}: {error}") from None


def yaml_documents(text: str) -> Iterator[Manifest]:
    from kubepy.storage.yaml import YamlError, load_all

    try:
        for document in load_all(text):
            yield Manifest(document.object, document.line)
    except YamlError as error:
        raise CliError(str(error)) from None


def json_stream(text: str) -> tuple[list[Manifest], str]:
    """The values of a text of JSON values one after another, and what ended them ("": nothing)."""
    decoder = json.JSONDecoder()
    values: list[Manifest] = []
    position = _skip_space(text, 0)
    while position < len(text):
        try:
            value, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            return values, json_error_text(text, error)
        values.append(Manifest(value, text.count("\n", 0, position) + 1))
        position = _skip_space(text, end)
    return values, ""


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def json_error_text(text: str, error: json.JSONDecodeError) -> str:
    """Go's ``encoding/json`` words for a syntax error."""
    rest = text[error.pos:].lstrip()
    if not rest or error.msg.startswith("Unterminated string"):
        return "unexpected EOF"
    place = {"Expecting ',' delimiter": "after object key:value pair", "Expecting ':' delimiter": "after object key",
             "Expecting property name enclosed in double quotes": "looking for beginning of object key string"}
    return f"invalid character {rest[0]!r} {place.get(error.msg, 'looking for beginning of value')}"


def check_type(content: Any, source: str) -> None:
    """Raise unless a document says what it is (``kubectl/pkg/validation``)."""
    problems = _type_problems(content)
    if not problems and (content["apiVersion"], content["kind"]) == ("v1", "List"):
        problems = [problem for item in content.get("items") or () for problem in _type_problems(item)]
    if problems:
        raise _invalid(source, problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]")


def _type_problems(content: Any) -> list[str]:
    if not isinstance(content, dict):
        return ["invalid object to validate"]
    problems = []
    for name in ("apiVersion", "kind"):
        if not content.get(name):
            problems.append(f"{name} not set")
        elif not isinstance(content[name], str):
            problems.append(f"{name} isn't string type")
    return problems


def _invalid(source: str, why: str) -> CliError:
    return CliError(f'error validating "{source}": error validating data: {why}; {STOP_VALIDATE}')


# --- objects ------------------------------------------------------------------------------------------------------


def infos_of(session: Session, content: Any, source: str, line: int, *, local: bool = False) -> Iterator[Read]:
    """The object of a document, or the objects of a List in it."""
    problem = _shape_problem(content)
    if problem:
        yield CliError(f'unable to decode "{source}": {problem}')
    elif is_list(content):
        for item in _items(content):
            yield from infos_of(session, item, source, line, local=local)
    else:
        yield _info(session, content, source, line, local)


def is_list(content: Object) -> bool:
    return isinstance(content.get("items"), list)


def _items(content: Object) -> list[Any]:
    """The items of a List; those of a typed list (``ConfigMapList``) may leave out what they are."""
    if content["kind"] == "List" or not content["kind"].endswith("List"):
        return list(content["items"])
    kind, version = content["kind"].removesuffix("List"), content["apiVersion"]
    return [{"apiVersion": version, "kind": kind, **item} if isinstance(item, dict) else item
            for item in content["items"]]


def _shape_problem(content: Any) -> str:
    """Why a document cannot be an object, in Go's words; "" if it can."""
    if not isinstance(content, dict):
        name = go_type_name(content)
        return f'json: cannot unmarshal {name} into Go value of type map[string]interface {{}}'
    for name, label in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not isinstance(content.get(name), str) or not content[name]:
            if name == "apiVersion":
                continue
            return f"Object '{label}' is missing in '{json.dumps(content, separators=(',', ':'))}'"
    return _metadata_problem(content)


def _metadata_problem(content: Object) -> str:
    """What keeps ``metadata`` from being ObjectMeta (``metadataValidatingDecoder``)."""
    meta = content.get("metadata")
    if meta is None:
        content["metadata"] = {}
        return ""
    if not isinstance(meta, dict):
        return (f"json: cannot unmarshal {go_type_name(meta)} into Go struct field metadataOnlyObject.metadata of type "
                "v1.ObjectMeta")
    for name in ("name", "namespace", "generateName", "uid", "resourceVersion"):
        if meta.get(name) is not None and not isinstance(meta[name], str):
            return _unmarshal(meta[name], name, "string")
    for name in ("labels", "annotations"):
        values = meta.get(name)
        if values is not None and not isinstance(values, dict):
            return _unmarshal(values, name, "map[string]string")
        for value in (values or {}).values():
            if value is not None and not isinstance(value, str):
                return _unmarshal(value, name, "string")
    return ""


def _unmarshal(value: Any, name: str, wanted: str) -> str:
    return (f"json: cannot unmarshal {go_type_name(value)} into Go struct field ObjectMeta.metadata.{name} of type "
            f"{wanted}")


def go_type_name(value: Any) -> str:
    """How Go's JSON decoder names a value: ``bool``, ``number``, ``string``, ``array``, ``object``."""
    if isinstance(value, bool):
        return "bool"
    names = {str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _info(session: Session, content: Object, source: str, line: int, local: bool) -> Read:
    meta = content["metadata"]
    name, namespace = meta.get("name") or "", meta.get("namespace") or ""
    api_version, kind = content.get("apiVersion", ""), content["kind"]
    resource = session.scheme.for_kind(api_version, kind)
    if resource is None:
        if local:
            group, _, version = api_version.rpartition("/")
            resource = Resource(kind.lower() + "s", kind, group, version)
        else:
            return NoKindMatchError(name, namespace, source, kind, api_version)
    return Info(resource, namespace, name, object=content, source=source, line=line)


class NoKindMatchError(CliError):
    """A kind that is not served."""

    def __init__(self, name: str, namespace: str, source: str, kind: str, api_version: str) -> None:
        super().__init__(f'resource mapping not found for name: "{name}" namespace: "{namespace}" from "{source}": '
                         f'no matches for kind "{kind}" in version "{api_version}"\nensure CRDs are installed first')
