"""Decode kustomization files and configurations of plugins as Go decodes them, and translate old
fields.

A shape says what a value is decoded into: the name of a basic type of Go, a list of a shape, a map
(``{"*": shape}``) or a Struct. Upstream: ``kustomize/api/types``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubepy.api.meta import Object, nested_list
from kubepy.api.values.goformat import format_value, json_type_name
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.files import contents_of
from kubepy.quoting import quote

API = "kustomize.config.k8s.io"


class Struct:
    """A struct of Go: its name and the shapes of its fields, by their names in JSON."""

    def __init__(self, name: str, /, **fields: Any) -> None:
        self.name = name
        self.fields = fields
        self.spellings = {
            field.lower(): field for field in fields
        }  # Go's JSON decoder takes any case


_BASIC = {"string": str, "bool": bool, "int": int, "int64": int}
TEXTS = ["string"]
PAIRS = {"*": "string"}
_GVK = {"group": "string", "version": "string", "kind": "string"}
_ID = {**_GVK, "name": "string", "namespace": "string"}
FIELD_SPECS = [Struct("FieldSpec", **_GVK, path="string", create="bool")]
SELECTOR = Struct("Selector", **_ID, annotationSelector="string", labelSelector="string")
META = Struct("ObjectMeta", name="string", namespace="string", labels=PAIRS, annotations=PAIRS)
PATCH = {
    "path": "string",
    "patch": "string",
    "target": SELECTOR,
    "options": Struct("PatchArgs", allowNameChange="bool", allowKindChange="bool"),
}
IMAGE = Struct(
    "Image", name="string", newName="string", tagSuffix="string", newTag="string", digest="string"
)
REPLICA = Struct("Replica", name="string", count="int64")
_OPTIONS = Struct("FieldOptions", delimiter="string", index="int", encoding="string", create="bool")
REPLACEMENT = {
    "source": Struct("SourceSelector", **_ID, fieldPath="string", options=_OPTIONS),
    "sourceValue": "string",
    "targets": [
        Struct(
            "TargetSelector", select=SELECTOR, reject=[SELECTOR], fieldPaths=TEXTS, options=_OPTIONS
        )
    ],
}
REPLACEMENTS = [Struct("ReplacementField", path="string", **REPLACEMENT)]
_GENERATOR_OPTIONS = Struct(
    "GeneratorOptions",
    labels=PAIRS,
    annotations=PAIRS,
    disableNameSuffixHash="bool",
    immutable="bool",
)
CONFIG_MAP = {
    "name": "string",
    "namespace": "string",
    "behavior": "string",
    "files": TEXTS,
    "literals": TEXTS,
    "envs": TEXTS,
    "env": "string",
    "options": _GENERATOR_OPTIONS,
}
SECRET = {**CONFIG_MAP, "type": "string"}
_VAR = Struct(
    "Var",
    name="string",
    fieldref=Struct("FieldSelector", fieldPath="string"),
    objref=Struct("Target", apiVersion="string", **_ID),
)
_SORT = Struct(
    "SortOptions",
    order="string",
    legacySortOptions=Struct("LegacySortOptions", orderFirst=TEXTS, orderLast=TEXTS),
)
_LABEL = Struct(
    "Label", pairs=PAIRS, includeSelectors="bool", includeTemplates="bool", fields=FIELD_SPECS
)
KUSTOMIZATION = Struct(
    "Kustomization",
    apiVersion="string",
    kind="string",
    metadata=META,
    openapi=PAIRS,
    namePrefix="string",
    nameSuffix="string",
    namespace="string",
    commonLabels=PAIRS,
    labels=[_LABEL],
    commonAnnotations=PAIRS,
    patchesStrategicMerge=TEXTS,
    patchesJson6902=[Struct("Patch", **PATCH)],
    patches=[Struct("Patch", **PATCH)],
    images=[IMAGE],
    imageTags=[IMAGE],
    replacements=REPLACEMENTS,
    replicas=[REPLICA],
    vars=[_VAR],
    sortOptions=_SORT,
    resources=TEXTS,
    components=TEXTS,
    crds=TEXTS,
    bases=TEXTS,
    configMapGenerator=[Struct("ConfigMapArgs", **CONFIG_MAP)],
    secretGenerator=[Struct("SecretArgs", **SECRET)],
    helmGlobals=None,
    helmCharts=None,
    helmChartInflationGenerator=None,
    generatorOptions=_GENERATOR_OPTIONS,
    configurations=TEXTS,
    generators=TEXTS,
    transformers=TEXTS,
    validators=TEXTS,
    buildMetadata=TEXTS,
)
UNSUPPORTED = ("helmCharts", "helmChartInflationGenerator")
DEPRECATED = {
    "bases": "resources",
    "commonLabels": "labels",
    "imageTags": "images",
    "patchesJson6902": "patches",
    "patchesStrategicMerge": "patches",
    "vars": "replacements",
}


# --- decoding -------------------------------------------------------------------------------------


def decode(
    value: Any, shape: Any, *, strict: bool = False, as_text: bool = True, field: str = ""
) -> Any:
    """Return a value with the fields of its shape in their spelling, without fields that are null.

    :param strict: other fields are errors.
    :param as_text: numbers and booleans become texts where the shape has a text.
    :param field: the struct and the path that lead to the value, for messages:
        ``Patch.patches.path``.
    :raises CliError: for a value of another type.
    """
    if value is None or shape is None:
        return value
    if isinstance(shape, str):
        kind = _BASIC[shape]
        if as_text and kind is str and isinstance(value, bool | int | float):
            if isinstance(value, bool):
                return str(value).lower()
            return format_value(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise _mismatch(value, shape, field)
        return value

    if isinstance(shape, list):
        if not isinstance(value, list):
            raise _mismatch(value, shape, field)
        return [
            _zero(shape[0])
            if item is None
            else decode(item, shape[0], strict=strict, as_text=as_text, field=field)
            for item in value
        ]

    if not isinstance(value, dict):
        raise _mismatch(value, shape, field)
    if isinstance(shape, dict):
        return {
            str(key): _zero(shape["*"])
            if item is None
            else decode(item, shape["*"], strict=strict, as_text=as_text, field=field)
            for key, item in value.items()
        }

    decoded: Object = {}
    _, _, path = field.partition(".")
    for key in sorted(value, key=str):
        name = shape.spellings.get(str(key).lower())
        if name is None and strict:
            raise CliError(f"json: unknown field {quote(str(key))}")
        if name is not None and value[key] is not None:
            inner = f"{shape.name}.{path}.{name}" if path else f"{shape.name}.{name}"
            decoded[name] = decode(
                value[key], shape.fields[name], strict=strict, as_text=as_text, field=inner
            )

    return decoded


def _zero(shape: Any) -> Any:
    """Return what null is decoded into as an item of a list or map."""
    if isinstance(shape, str):
        return _BASIC[shape]()
    if shape is None:
        return None
    if isinstance(shape, list | dict):
        return type(shape)()
    return {}


def _mismatch(value: Any, shape: Any, field: str) -> CliError:
    kind = json_type_name(value)
    if kind == "number" and shape in ("int", "int64"):
        kind = f"number {value}"
    where = f"Go struct field {field}" if field else "Go value"
    return CliError(f"json: cannot unmarshal {kind} into {where} of type {_go_type(shape)}")


def _go_type(shape: Any) -> str:
    if isinstance(shape, list):
        return f"[]{_go_type(shape[0])}"
    if isinstance(shape, dict):
        return f"map[string]{_go_type(shape['*'])}"
    if isinstance(shape, str):
        return shape
    if shape is None:
        return "interface {}"
    return f"types.{shape.name}"


def read_settings(text: str, root: str, warn: Callable[[str], None]) -> Object:
    """Return the settings of a kustomization file, old fields as new ones. Raises CliError."""
    try:
        contents = contents_of(text, old_booleans=True)
        settings: Object = (
            decode(contents[0] if contents else {}, KUSTOMIZATION, strict=True, as_text=False) or {}
        )
    except CliError as error:
        raise CliError(f"invalid Kustomization: {error}") from None

    for name in UNSUPPORTED:
        if settings.get(name):
            raise CliError(f"the kustomization field {quote(name)} is not supported")
    for old, new in DEPRECATED.items():
        if old in settings:
            experimental = " [EXPERIMENTAL]" if old == "vars" else ""
            warn(
                f"# Warning: '{old}' is deprecated. Please use '{new}' instead.{experimental} Run "
                f"'kustomize edit "
                "fix' to update your Kustomization automatically."
            )

    if not any(
        value or isinstance(value, dict | list)
        for name, value in settings.items()
        if name not in ("apiVersion", "kind")
    ):
        raise CliError("kustomization.yaml is empty")

    kind = settings["kind"] = settings.get("kind") or "Kustomization"
    problems = []
    if kind not in ("Kustomization", "Component"):
        problems.append("kind should be Kustomization or Component")
    required = f"{API}/v1alpha1" if kind == "Component" else f"{API}/v1beta1"
    version = settings["apiVersion"] = settings.get("apiVersion") or required
    if version != required:
        problems.append(f"apiVersion for {kind} should be {required}")
    if problems:
        raise CliError(f"Failed to read kustomization file under {root}:\n" + "\n".join(problems))
    for name, old in (("resources", "bases"), ("images", "imageTags")):
        settings[name] = [*(settings.get(name) or ()), *(settings.get(old) or ())]
    for args in (
        *nested_list(settings, "configMapGenerator"),
        *nested_list(settings, "secretGenerator"),
    ):
        if source := args.pop("env", ""):
            args["envs"] = [*nested_list(args, "envs"), source]

    return settings
