"""Manifests: paths to files, files to documents, documents to objects with their types.

A file is YAML or JSON, one document or many; a List is taken apart. Errors name the file, in
kubectl's words. Upstream: ``cli-runtime/pkg/resource/{builder,visitor,mapper}.go``,
``apimachinery/pkg/util/yaml/decoder.go``.
"""

from __future__ import annotations

import codecs
import glob
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.api.values.goformat import json_type_name, printable, quote, to_json
from kubepy.cli.errors import CliError
from kubepy.cli.files import MAX_MANIFESTS, read_bytes, read_standard_input
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.infos import Info, InfoOrError
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import types as go_types
    from kubepy.cli import urls
    from kubepy.cli.kustomization import target as kustomize_target
    from kubepy.cli.runtime import validation as manifest_validation
    from kubepy.storage import yaml
    from kubepy.storage.yaml import loader as yaml_loader

EXTENSIONS = (".json", ".yaml", ".yml")
STDIN = "STDIN"
STDIN_MULTI_USE = "standard input cannot be used for multiple arguments"


# --- paths ----------------------------------------------------------------------------------------


def expand_paths(names: list[str], recursive: bool, errors: list[Exception]) -> list[str]:
    """Return the files of ``-f``, in order: ``-``, addresses, files, the manifests of folders,
    those of patterns."""
    paths: list[str] = []
    for name in names:
        try:
            matches = [name] if name == "-" else _matches(name)
            paths += [file for path in matches for file in _files(path, recursive)]
        except CliError as error:
            errors.append(error)
            continue
        if not paths and not errors:
            errors.append(
                CliError(
                    f"error reading [{' '.join(matches)}]: recognized file extensions are "
                    f"[{' '.join(EXTENSIONS)}]"
                )
            )

    if paths.count("-") > 1:
        errors.append(CliError(STDIN_MULTI_USE))
    return paths


def _matches(name: str) -> list[str]:
    """Return an address, a path that exists, or the paths that match a pattern. Raises CliError."""
    if name.startswith(("http://", "https://")):
        try:
            urls.parse_url(name)
        except ValueError as error:
            raise CliError(
                f"the URL passed to filename {quote(name)} is not valid: {error}"
            ) from None
        return [name]

    if os.path.exists(name):
        return [name]
    if _is_bad_pattern(name):
        raise CliError(f"pattern {quote(name)} is not valid: syntax error in pattern")
    if not (paths := sorted(glob.glob(name, include_hidden=True))):
        raise CliError(f"the path {quote(name)} does not exist")
    return [os.path.normpath(path) for path in paths]


def _is_bad_pattern(pattern: str) -> bool:
    """Return whether a bracket is not closed."""
    opened = pattern.find("[")
    while opened >= 0:
        closed = pattern.find("]", opened + 2)
        if closed < 0:
            return True
        opened = pattern.find("[", closed)
    return False


def _files(path: str, recursive: bool) -> list[str]:
    """Return a file itself, or the manifests of a folder, with ``recursive`` those below, in the
    order of Go's Walk.

    A link to a folder is no folder.
    """
    if not _is_folder(path):
        return [path]
    files: list[str] = []
    for entry in sorted(os.listdir(path)):
        inner = os.path.normpath(os.path.join(path, entry))
        if _is_folder(inner):
            files += _files(inner, recursive) if recursive else []
        elif inner.endswith(EXTENSIONS):
            files.append(inner)
    return files


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


# --- documents ------------------------------------------------------------------------------------


class Manifest(NamedTuple):
    """The object of one document of a file, or the objects of a List, whose errors are raised as
    one."""

    entries: Iterable[InfoOrError]
    is_list: bool = False


def read(
    factory: Factory, path: str, validation: str, *, local: bool = False
) -> Iterator[Manifest]:
    """Yield the documents of one file (``-``: standard input). An error of the file comes last."""
    try:
        text = read_text(factory, path)
    except CliError as error:
        yield Manifest([error])
        return
    yield from read_stream(factory, text, STDIN if path == "-" else path, validation, local=local)


def read_stream(
    factory: Factory, text: str, source: str, validation: str = "Ignore", *, local: bool = False
) -> Iterator[Manifest]:
    """Yield the documents of a text. An error of the text comes last."""
    try:
        for document in yaml.load_each(text):
            manifest_validation.validate(factory, document.object, source, validation)
            yield manifest_of(factory, document.object, source, local=local)
    except yaml.NumberRangeError as error:
        yield Manifest([CliError(f"unable to decode {quote(source)}: {error}")])
    except yaml.YamlError as error:
        yield Manifest([CliError(f"error parsing {printable(source)}: {error}")])
    except RecursionError:
        yield Manifest([CliError(f"error parsing {printable(source)}: {yaml_loader.TOO_DEEP}")])
    except CliError as error:
        yield Manifest([error])


def read_kustomization(
    factory: Factory, path: str, validation: str, *, local: bool = False
) -> Iterator[Manifest]:
    """Yield the objects of a kustomization folder. Raises CliError."""
    for obj in kustomize_target.build(path, factory.say):
        manifest_validation.validate(factory, obj, path, validation)
        yield manifest_of(factory, obj, path, local=local)


def read_text(factory: Factory, path: str) -> str:
    """Return the text of a file or of an address, by its byte order mark, else UTF-8. Raises
    CliError."""
    if path == "-":
        return decoded(read_standard_input(factory.stdin, MAX_MANIFESTS))
    if path.startswith(("http://", "https://")):
        return decoded(urls.read_url(path))
    try:
        return decoded(read_bytes(path, MAX_MANIFESTS))
    except IsADirectoryError:
        raise CliError(
            f"error parsing {printable(path)}: read {printable(path)}: is a directory"
        ) from None
    except OSError as error:
        raise CliError(
            f"open {printable(path)}: {(error.strerror or str(error)).lower()}"
        ) from None


def decoded(data: bytes) -> str:
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace")
    return data.decode(errors="replace")


# --- objects --------------------------------------------------------------------------------------


def manifest_of(factory: Factory, content: Any, source: str, *, local: bool = False) -> Manifest:
    """Return the object of a document, or the objects of a List in it (``infoForData``,
    ``FlattenListVisitor``)."""
    if problem := shape_problem(content):
        return Manifest([CliError(f"unable to decode {quote(source)}: {problem}")])
    info = _info(factory, content, source, local)
    if not is_list(content) or isinstance(info, Exception):
        return Manifest([info])
    if any(isinstance(item.get("items"), list) for item in content["items"] or ()):
        return Manifest(
            [CliError("*unstructured.Unstructured is not a list: no Items field in this object")]
        )

    # The items of a typed list (ConfigMapList) may leave out kind and apiVersion.
    types = {
        "apiVersion": content.get("apiVersion", ""),
        "kind": content["kind"].removesuffix("List"),
    }
    items = (
        item if item.get("kind") or item.get("apiVersion") else {**item, **types}
        for item in content["items"] or ()
    )
    return Manifest((_item_info(factory, item, source, local) for item in items), is_list=True)


def is_list(content: Object) -> bool:
    return "items" in content


def shape_problem(content: Any) -> str:
    """Return the reason why a document cannot be an object, in Go's words; "" if it can."""
    if not isinstance(content, dict):
        return (
            f"json: cannot unmarshal {json_type_name(content)} into Go value of type "
            f"unstructured.detector"
        )

    items = content.get("items")
    if not isinstance(items, list | None):
        return _unmarshal(items, "decodeList.items", "[]json.RawMessage")
    for item in items or ():
        if not isinstance(item, dict):
            return (
                f"json: cannot unmarshal {json_type_name(item)} into Go value of type "
                f"map[string]interface {{}}"
            )

    version = content.get("apiVersion") or ""
    if (
        not isinstance(content.get("kind"), str)
        or not content["kind"]
        or str(version).count("/") > 1
    ):
        return f"Object 'Kind' is missing in '{to_json(content)}'"

    if not isinstance(version, str):
        return _unmarshal(version, "metadataOnlyObject.TypeMeta.apiVersion", "string")
    return _metadata_problem(content)


def _metadata_problem(content: Object) -> str:
    """Return the reason why ``metadata`` is no ObjectMeta (``metadataValidatingDecoder``), "" if it
    is.

    An object without metadata gets empty metadata.
    """
    metadata = content.get("metadata")
    if metadata is None:
        content["metadata"] = {}
        return ""
    if not isinstance(metadata, dict):
        return _unmarshal(metadata, "metadataOnlyObject.metadata", "v1.ObjectMeta")
    try:
        go_types.decode_metadata(metadata)
    except go_types.DecodeError as error:
        return str(error)
    return ""


def _unmarshal(value: Any, field: str, go_type: str) -> str:
    return (
        f"json: cannot unmarshal {json_type_name(value)} into Go struct field {field} of type "
        f"{go_type}"
    )


def _item_info(factory: Factory, content: Object, source: str, local: bool) -> InfoOrError:
    """Return an item of a List (``infoForObject``)."""
    for name, words in (
        ("kind", "'Kind' is missing in 'object has no kind field '"),
        ("apiVersion", "'apiVersion' is missing in 'object has no apiVersion field'"),
    ):
        if not content.get(name):
            return CliError(
                f'unable to get type info from the object "*unstructured.Unstructured": Object '
                f"{words}"
            )

    content.setdefault("metadata", {})
    metadata = content["metadata"]
    # The labels of an item are left to the server to refuse.
    if isinstance(metadata, dict):
        metadata = {**metadata, "labels": None}
    if problem := _metadata_problem({"metadata": metadata}):
        return CliError(f"unable to decode {quote(source)}: {problem}")
    info = _info(factory, content, source, local)
    if isinstance(info, NoKindMatchError):
        return CliError(f"unable to recognize {info.reason}")
    return info


def _info(factory: Factory, content: Object, source: str, local: bool) -> Info | NoKindMatchError:
    meta = content["metadata"]
    name = meta.get("name") or ""
    namespace = meta.get("namespace") or ""
    api_version = content.get("apiVersion") or ""
    kind = content["kind"]
    resource = resource_for(factory, api_version, kind)
    if resource is None:
        if not local:
            return NoKindMatchError(name, namespace, source, kind, api_version)
        resource = _guessed(api_version, kind)
    version = api_version.rpartition("/")[2]
    resource = resource.at(version) if version in resource.other_versions else resource
    return Info(resource, namespace, name, object=content, source=source)


def resource_for(factory: Factory, api_version: str, kind: str) -> Resource | None:
    """Return the resource that discovery maps a kind to, None for an unknown kind.

    Lists of anything and of each kind are mapped too, and kinds in lower case, which the server
    refuses.
    """
    scheme = factory.scheme
    resource = scheme.for_kind(api_version, kind) or scheme.for_lowercase_kind(api_version, kind)
    if resource is not None or not kind.endswith("List"):
        return resource
    if (
        scheme.serves(api_version)
        if kind == "List"
        else scheme.for_kind(api_version, kind.removesuffix("List"))
    ):
        return _guessed(api_version, kind)._replace(namespaced=False)
    return None


def _guessed(api_version: str, kind: str) -> Resource:
    """Return the resource of a kind, guessed from its name."""
    group, _, version = api_version.rpartition("/")
    return Resource(kind.lower() + "s", kind, group, version)


class NoKindMatchError(CliError):
    """A kind that is not served. ``reason`` is the message without the object."""

    def __init__(self, name: str, namespace: str, source: str, kind: str, api_version: str) -> None:
        self.reason = f"no matches for kind {quote(kind)} in version {quote(api_version)}"
        super().__init__(
            f"resource mapping not found for name: {quote(name)} namespace: {quote(namespace)} "
            f"from "
            f"{quote(source)}: {self.reason}\nensure CRDs are installed first"
        )
