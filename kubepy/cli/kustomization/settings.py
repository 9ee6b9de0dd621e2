"""Check the fields of a kustomization file, and translate its old fields.

Upstream: ``kustomize/api/types/kustomization.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubepy.api.meta import Object
from kubepy.api.values.goformat import json_type_name
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.files import contents_of
from kubepy.quoting import quote

API = "kustomize.config.k8s.io"
TEXT, TEXTS, MAP, OBJECT, OBJECTS = "string", "list of strings", "map of strings", "map", "list of maps"
FIELDS = {
    "apiVersion": TEXT, "kind": TEXT, "metadata": "", "namePrefix": TEXT, "nameSuffix": TEXT, "namespace": TEXT,
    "commonLabels": MAP, "commonAnnotations": MAP, "labels": OBJECTS, "patches": OBJECTS, "patchesJson6902": OBJECTS,
    "patchesStrategicMerge": TEXTS, "images": OBJECTS, "imageTags": OBJECTS, "replicas": OBJECTS,
    "replacements": OBJECTS, "resources": TEXTS, "bases": TEXTS, "components": TEXTS, "configMapGenerator": OBJECTS,
    "secretGenerator": OBJECTS, "generatorOptions": OBJECT, "sortOptions": OBJECT, "vars": OBJECTS,
    "buildMetadata": TEXTS, "helmGlobals": OBJECT,
}  # fmt: skip
UNSUPPORTED = ("openapi", "crds", "helmCharts", "helmChartInflationGenerator", "configurations",
               "generators", "transformers", "validators")
UNSUPPORTED_METADATA = ("originAnnotations", "transformerAnnotations")
DEPRECATED = {"bases": "resources", "commonLabels": "labels", "imageTags": "images", "patchesJson6902": "patches",
              "patchesStrategicMerge": "patches", "vars": "replacements"}
_ITEM_FIELDS = {
    "labels": ("pairs", "includeSelectors", "includeTemplates", "fields"),
    "patches": ("path", "patch", "target", "options"),
    "patchesJson6902": ("path", "patch", "target", "options"),
    "images": ("name", "newName", "newTag", "tagSuffix", "digest"),
    "replicas": ("name", "count"),
    "replacements": ("path", "source", "sourceValue", "targets"),
    "vars": ("name", "objref", "fieldref"),
    "configMapGenerator": ("name", "namespace", "behavior", "files", "literals", "envs", "env", "options"),
    "secretGenerator": ("name", "namespace", "behavior", "files", "literals", "envs", "env", "options", "type"),
}


_GO_STRUCTS = {
    "labels": "Label", "patches": "Patch", "patchesJson6902": "Patch", "images": "Image", "replicas": "Replica",
    "replacements": "ReplacementField", "vars": "Var", "configMapGenerator": "ConfigMapArgs",
    "secretGenerator": "SecretArgs",
}  # fmt: skip
_SPELLINGS = {name.lower(): name for name in (*FIELDS, *UNSUPPORTED)}  # Go's JSON decoder takes any case
_TEXT_FIELDS = ("name", "namespace", "behavior", "env", "type", "path", "patch", "newName", "newTag", "tagSuffix",
                "digest")


def read_settings(text: str, root: str, warn: Callable[[str], None]) -> Object:
    """Return the settings of a kustomization file, old fields as new ones. Raises CliError."""
    try:
        contents = contents_of(text, old_booleans=True)
    except CliError as error:
        raise CliError(f"invalid Kustomization: {error}") from None
    if contents and not isinstance(contents[0], dict):
        raise CliError("invalid Kustomization: json: cannot unmarshal into Go value of type types.Kustomization")
    fields = contents[0] if contents else {}
    settings = {_SPELLINGS.get(str(name).lower(), str(name)): value for name, value in fields.items()}
    _check_fields(settings)
    for old, new in DEPRECATED.items():
        if settings.get(old) is not None:
            experimental = " [EXPERIMENTAL]" if old == "vars" else ""
            warn(f"# Warning: '{old}' is deprecated. Please use '{new}' instead.{experimental} Run 'kustomize edit "
                 "fix' to update your Kustomization automatically.")
    if not any(value for name, value in settings.items() if name not in ("apiVersion", "kind")):
        raise CliError("kustomization.yaml is empty")
    kind = settings.setdefault("kind", "Kustomization")
    problems = []
    if kind not in ("Kustomization", "Component"):
        problems.append("kind should be Kustomization or Component")
    required = f"{API}/v1alpha1" if kind == "Component" else f"{API}/v1beta1"
    if settings.setdefault("apiVersion", required) not in (required, f"{API}/v1"):
        problems.append(f"apiVersion for {kind} should be {required}")
    if problems:
        raise CliError(f"Failed to read kustomization file under {root}:\n" + "\n".join(problems))
    for name, old in (("resources", "bases"), ("images", "imageTags")):
        settings[name] = [*(settings.get(name) or ()), *(settings.get(old) or ())]
    return settings


def _check_fields(settings: Object) -> None:
    for option in settings.get("buildMetadata") or ():
        if option in UNSUPPORTED_METADATA:
            raise CliError(f"the kustomization option {quote(option)} of buildMetadata is not supported")
    for name, value in settings.items():
        if name in UNSUPPORTED and value:
            raise CliError(f"the kustomization field {quote(name)} is not supported")
        if name not in FIELDS and name not in UNSUPPORTED:
            raise CliError(f"invalid Kustomization: json: unknown field {quote(name)}")
        if value is not None and not _is_of(FIELDS.get(name, ""), value):
            raise CliError(f"invalid Kustomization: {name} must be a {FIELDS[name]}")
        for item in value if name in _ITEM_FIELDS and value else ():
            _check_item(name, item)


def _check_item(name: str, item: Object) -> None:
    for key in item:
        if key not in _ITEM_FIELDS[name]:
            raise CliError(f"invalid Kustomization: json: unknown field {quote(key)}")
        if key in _TEXT_FIELDS and item[key] is not None and not isinstance(item[key], str):
            raise CliError(f"invalid Kustomization: json: cannot unmarshal {json_type_name(item[key])} into Go struct "
                           f"field {_GO_STRUCTS[name]}.{name}.{key} of type string")
    for key in ("files", "literals", "envs"):
        if not _is_of(TEXTS, item.get(key) or []):
            raise CliError(f"invalid Kustomization: {name}.{key} must be a {TEXTS}")
    for key in ("target", "options", "pairs", "source", "objref", "fieldref"):
        if not isinstance(item.get(key) or {}, dict):
            raise CliError(f"invalid Kustomization: {name}.{key} must be an object")


def _is_of(kind: str, value: Any) -> bool:
    """Return whether a value has one of the types above; a field without a type takes any."""
    if kind == TEXT:
        return isinstance(value, str)
    if kind == MAP:
        return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
    if kind == OBJECT:
        return isinstance(value, dict)
    if kind in (TEXTS, OBJECTS):
        item_type = str if kind == TEXTS else dict
        return isinstance(value, list) and all(isinstance(item, item_type) for item in value)
    return True
