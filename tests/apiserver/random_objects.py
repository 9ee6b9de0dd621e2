"""Random objects as hypothesis strategies: shaped by the types of the API, with meaningful and
meaningless words, and now and then a value of the wrong type."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kubepy.api.types import table

# Words that validation expects, words that it refuses, and amounts, times, ports, names and labels
# of both sorts.
WORDS = (
    "",
    "a",
    "web",
    "a-b.c",
    "Upper_Case",
    "-x",
    "1",
    "0",
    "-1",
    "80",
    "100%",
    "101%",
    "1Gi",
    "500m",
    "1e3",
    "x" * 64,
    "x" * 260,
    "/a/b",
    "a/../b",
    "../a",
    "example.com/a",
    "kubernetes.io/a",
    "10.0.0.1",
    "fd00::1",
    "10.0.0.0/8",
    "None",
    "2026-11-20T10:00:00Z",
    "YWJj",
    "a=b",
    "*",
    "*.example.com",
    "http",
    "é\n\x00",
    "Always",
    "Never",
    "Exists",
    "In",
    "Equal",
    "NotIn",
    "NoSchedule",
    "NoExecute",
    "ClusterIP",
    "ExternalName",
    "NodePort",
    "LoadBalancer",
    "TCP",
    "RollingUpdate",
    "Recreate",
    "OnDelete",
    "cpu",
    "memory",
    "requests.cpu",
    "pods",
    "Container",
    "Pod",
    "string",
    "object",
    "array",
    "integer",
    "Namespaced",
    "v1",
    "* * * * *",
    "@hourly",
    "Indexed",
    "Retain",
    "ReadWriteOnce",
    "metadata.name",
    "limits.cpu",
    "Resource",
    "Utilization",
    "ContainerResource",
    "IPv4",
    "Exact",
    "Prefix",
    "Linux",
)
TEXT = st.sampled_from(WORDS)
INTEGERS = st.sampled_from(
    (0, 1, 2, -1, 5, 80, 443, 1000, 65536, 2**31 - 1, 2**31, -(2**31), 2**63 - 1)
)
ANYTHING: SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.just(1.5) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
MOSTLY = 24  # one value in this many is of any type

_SPECIAL = {
    "meta/v1.Time": TEXT,
    "meta/v1.MicroTime": TEXT,
    "resource.Quantity": TEXT | INTEGERS,
    "intstr.IntOrString": TEXT | INTEGERS,
    "apiextensions/v1.JSON": ANYTHING,
    "runtime.RawExtension": ANYTHING,
    "meta/v1.FieldsV1": ANYTHING,
    "apiextensions/v1.JSONSchemaPropsOrBool": ANYTHING,
    "apiextensions/v1.JSONSchemaPropsOrArray": ANYTHING,
    "apiextensions/v1.JSONSchemaPropsOrStringArray": ANYTHING,
}


def objects(type_name: str) -> SearchStrategy[dict[str, Any]]:
    """Return a strategy for objects of a type such as ``core/v1.Pod``, from complete and valid to
    far from it."""
    return _struct(type_name)


@cache
def _values(type_name: str) -> SearchStrategy[Any]:
    right = _of_type(type_name)
    return st.integers(0, MOSTLY).flatmap(lambda roll: ANYTHING if roll == 0 else right)


def _of_type(type_name: str) -> SearchStrategy[Any]:
    if type_name in _SPECIAL:
        return _SPECIAL[type_name]
    if type_name.startswith("*"):
        return _of_type(type_name[1:])
    if type_name in ("[]byte", "[]uint8"):
        return TEXT
    if type_name.startswith("[]"):
        return st.lists(st.deferred(lambda: _values(type_name[2:])), min_size=0, max_size=3)
    if type_name.startswith("map["):
        return st.dictionaries(
            TEXT, st.deferred(lambda: _values(table.map_parts(type_name)[1])), max_size=2
        )
    if table.is_struct(type_name):
        return st.deferred(lambda: _struct(type_name))
    under = table.underlying(type_name)
    return _scalar(type_name) if under is None else _of_type(under)


def _scalar(type_name: str) -> SearchStrategy[Any]:
    match type_name:
        case "bool":
            return st.booleans()
        case "string":
            return TEXT
    return INTEGERS


@cache
def _struct(type_name: str) -> SearchStrategy[dict[str, Any]]:
    """Return a strategy for structs with some of their fields, required ones always included."""
    fields = {field.json: field for field in table.flat_fields(type_name)}
    always = [
        name
        for name, field in fields.items()
        if not field.omit_empty or name in ("metadata", "spec", "name")
    ]
    names = (
        st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True)
        if fields
        else st.just([])
    )
    return names.flatmap(
        lambda some: st.fixed_dictionaries(
            {
                name: st.deferred(lambda field=fields[name]: _values(field.type))  # type: ignore[misc]
                for name in sorted({*some, *always})
            }
        )
    )
