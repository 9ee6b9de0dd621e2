"""Objects in protobuf: what Go writes is read as Go's JSON has it, and written as Go writes it."""

from __future__ import annotations

import contextlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubepy.api import errors, protobuf, types
from kubepy.api.types import table

# A checkout of k8s.io/api (and others): each kind with every field, in JSON and as Go encodes it.
TESTDATA = [
    Path(folder) for folder in os.environ.get("KUBERNETES_TESTDATA", "").split(":") if folder
]


def varint(number: int) -> bytes:
    return bytes((number,)) if number < 128 else bytes((number & 127 | 128,)) + varint(number >> 7)


def field(number: int, data: bytes) -> bytes:
    """Return a delimited field."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(raw: bytes, api_version: str = "v1", kind: str = "ConfigMap") -> bytes:
    meta = field(1, api_version.encode()) + field(2, kind.encode())
    return protobuf.MAGIC + field(1, meta) + field(2, raw) + field(3, b"") + field(4, b"")


# --- Kubernetes' own data -------------------------------------------------------------------------


def upstream_cases() -> list[Any]:
    files = [
        file
        for folder in TESTDATA
        for file in sorted(folder.glob("*.pb"))
        if "after_roundtrip" not in file.name
    ]
    return [
        pytest.param(file, id=f"{file.parent.name}/{file.stem}")
        for file in files
        if has_message(file)
    ]


def has_message(file: Path) -> bool:
    want = json.loads(file.with_suffix(".json").read_bytes())
    return protobuf.has_message(want.get("apiVersion", ""), want.get("kind", ""))


@pytest.mark.skipif(
    not TESTDATA, reason="KUBERNETES_TESTDATA names no folders of Kubernetes' round-trip data"
)
@pytest.mark.parametrize("file", upstream_cases())
def test_upstream_object_decodes_as_its_json_and_encodes_to_the_same_bytes(file: Path) -> None:
    round_trip = file.with_suffix(
        ".after_roundtrip.json"
    )  # without the fields that v1.36 does not have any more
    want = json.loads(
        (round_trip if round_trip.exists() else file.with_suffix(".json")).read_bytes()
    )
    wire = file.with_suffix(".after_roundtrip.pb")
    decoded = protobuf.decode(file.read_bytes())
    assert decoded == (types.decode(want).object if types.type_of(want) else want)
    assert protobuf.encode(decoded) == (wire if wire.exists() else file).read_bytes()


# --- bodies written by hand -----------------------------------------------------------------------


def test_config_map_is_read_and_written_byte_by_byte() -> None:
    metadata = b"".join(
        (
            field(1, b"web"),
            field(2, b""),
            field(3, b""),
            field(4, b""),
            field(5, b""),
            field(6, b""),
            b"\x38\0",
            field(8, b""),
        )
    )
    entries = field(2, field(1, b"a") + field(2, b"1")) + field(2, field(1, b"b") + field(2, b""))
    binary = field(3, field(1, b"raw") + field(2, b"\xff\0"))
    data = body(field(1, metadata) + entries + binary + b"\x20\1")
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web"},
        "data": {"a": "1", "b": ""},
        "binaryData": {"raw": "/wA="},
        "immutable": True,
    }
    assert protobuf.decode(data) == obj
    assert protobuf.encode(obj) == data


def decoded(raw: bytes, kind: str = "ConfigMap", api_version: str = "v1") -> Any:
    return protobuf.decode(body(raw, api_version, kind))


def test_repeated_message_is_merged_and_the_last_scalar_wins() -> None:
    first, second = field(1, field(1, b"a") + field(3, b"shop")), field(1, field(1, b"b"))
    assert decoded(first + second)["metadata"] == {"name": "b", "namespace": "shop"}


def test_negative_numbers_and_packed_lists_are_read() -> None:
    security = field(14, b"\x20\1\x22\3\2\xac\2")
    pod = decoded(field(2, security + b"\x28" + b"\xfe" + b"\xff" * 8 + b"\1"), "Pod")
    assert pod["spec"]["securityContext"]["supplementalGroups"] == [1, 2, 300]
    assert pod["spec"]["activeDeadlineSeconds"] == -2


def test_unknown_fields_of_every_wire_type_are_skipped() -> None:
    number = 500 << 3
    tags = [varint(number | wire) for wire in range(6)]
    group = tags[3] + tags[0] + b"\5" + tags[3] + tags[4] + tags[4]
    raw = tags[0] + b"\x80\1" + tags[1] + bytes(8) + tags[2] + b"\2ab" + group + tags[5] + bytes(4)
    assert decoded(raw + field(2, field(1, b"a")))["data"] == {"a": ""}


def test_bytes_that_are_no_utf8_become_replacement_characters_one_by_one() -> None:
    assert decoded(field(2, field(1, b"a") + field(2, b"\xe2\x82x\xed\xa0\x80")))["data"] == {
        "a": "\ufffd\ufffdx\ufffd\ufffd\ufffd"
    }


def test_time_zero_is_null_and_time_beyond_rfc3339_is_refused() -> None:
    def event(time: bytes) -> Any:
        return decoded(field(6, time), "Event")["firstTimestamp"]

    assert event(b"") is None
    assert event(b"\x08\0\x10\0") == "1970-01-01T00:00:00Z"
    assert event(b"\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\1") is None  # the year 1
    with pytest.raises(protobuf.ProtobufError, match="year outside of range"):
        event(b"\x08" + b"\xff" * 8 + b"\x7f")


def test_micro_time_keeps_microseconds() -> None:
    lease = decoded(
        field(2, field(3, b"\x08\1\x10\xc7\x8a\x94\x9d\3")), "Lease", "coordination.k8s.io/v1"
    )
    assert lease["spec"] == {"acquireTime": "1970-01-01T00:00:01.866452Z"}


def test_options_are_decoded_in_any_version_and_defaults_name_what_the_body_does_not() -> None:
    options = decoded(b"\x08\0" + field(5, b"All"), "DeleteOptions", "stable.example.com/v1")
    assert options == {
        "apiVersion": "stable.example.com/v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "dryRun": ["All"],
    }
    config_map = protobuf.decode(body(b"", "", ""), "v1", "ConfigMap")
    assert config_map == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}


def test_watch_event_is_a_frame_with_its_length() -> None:
    encoded = protobuf.encode({"apiVersion": "v1", "kind": "ConfigMap"})
    event = field(1, b"ADDED") + field(2, field(1, encoded))
    assert protobuf.encode_watch_event("ADDED", encoded) == struct.pack(">I", len(event)) + event


@pytest.mark.parametrize(("version", "order"), [("v1", [1, 2]), ("v1beta1", [2, 1])])
def test_partial_object_metadata_list_has_the_numbers_of_its_version(
    version: str, order: list[int]
) -> None:
    partial = {
        "apiVersion": f"meta.k8s.io/{version}",
        "kind": "PartialObjectMetadataList",
        "metadata": {},
        "items": [{"metadata": {"name": "web"}}],
    }
    encoded = protobuf.encode(partial)
    assert protobuf.decode(encoded) == partial
    metadata = field(order[0], b"".join(field(number, b"") for number in (1, 2, 3)))
    assert metadata in encoded


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("stable.example.com/v1", "CronTab"),
        ("meta.k8s.io/v1", "Table"),
        ("v1", "PodSpec"),
        ("", ""),
        ("v1", "Nonsense"),
    ],
)
def test_kind_without_protobuf_is_not_acceptable(api_version: str, kind: str) -> None:
    assert not protobuf.has_message(api_version, kind)
    with pytest.raises(errors.NotAcceptable, match="cannot be encoded to a protobuf message"):
        protobuf.encode({"apiVersion": api_version, "kind": kind})


# --- rubbish --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty data"),
        (b"k8s\0", "empty body"),
        (
            b'{"kind": ""}',
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 "
            "0]",
        ),
        (b"k8s\0\x0a\xff", "unexpected EOF"),
        (b"k8s\0\x0a" + b"\xff" * 20, "proto: integer overflow"),
        (b"k8s\0\x12" + b"\xff" * 9 + b"\1", "proto: negative length found during unmarshaling"),
        (b"k8s\0\x12\xff\xff\xff\xff\7", "unexpected EOF"),
        (b"k8s\0\0\0", "proto: Unknown: illegal tag 0 (wire type 0)"),
        (b"k8s\0\x0c", "proto: Unknown: wiretype end group for non-group"),
        (b"k8s\0\x0f", "proto: wrong wireType = 7 for field TypeMeta"),
        (b"k8s\0\x2f", "proto: illegal wireType 7"),
        (b"k8s\0" + b"\x2b" * 100_000, "unexpected EOF"),
        (body(field(1, b"\x08\1")), "proto: wrong wireType = 0 for field Name"),
        (body(b"\x0a\5ab"), "unexpected EOF"),
        (
            body(b"", "v1", "Nonsense"),
            'no kind "Nonsense" is registered for version "v1" in scheme '
            '"pkg/api/legacyscheme/scheme.go:30"',
        ),
        (
            body(field(1, field(1, b"\1") + field(2, b"")), "apps/v1", "ControllerRevision")[:-1],
            "unexpected EOF",
        ),
        (
            body(field(2, field(1, b"{")), "apps/v1", "ControllerRevision"),
            "error calling MarshalJSON",
        ),
        (
            body(field(2, field(1, b"[" * 1_000_000)), "apps/v1", "ControllerRevision"),
            "exceeded max depth",
        ),
    ],
)
def test_rubbish_is_an_error_that_says_what_is_wrong(data: bytes, message: str) -> None:
    with pytest.raises(protobuf.ProtobufError) as caught:
        protobuf.decode(data, "v1", "ConfigMap")
    assert message in str(caught.value)


def test_deep_nesting_is_an_error() -> None:
    schema = b""
    for _ in range(5_000):
        schema = field(26, schema)  # `not`
    version = field(7, field(4, field(1, schema)))
    with pytest.raises(protobuf.ProtobufError, match="exceeded max depth"):
        decoded(field(2, version), "CustomResourceDefinition", "apiextensions.k8s.io/v1")


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["Pod", "ConfigMap", "Status", "PodList", "Node"]))
def test_random_bytes_are_an_object_or_an_error(raw: bytes, kind: str) -> None:
    for data in (raw, protobuf.MAGIC + raw, body(raw, "v1", kind)):
        with contextlib.suppress(protobuf.ProtobufError):
            protobuf.encode(protobuf.decode(data, "v1", kind))


# --- round trips ----------------------------------------------------------------------------------

TEXTS = st.text(max_size=5)
SCALARS = {
    "string": TEXTS,
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "[]byte": st.sampled_from(["", "YQ==", "//79"]),
    "meta/v1.Time": st.sampled_from(
        ["2026-11-20T10:13:48Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z"]
    ),
    "meta/v1.MicroTime": st.sampled_from(
        ["2026-11-20T10:13:48.000001Z", "1969-12-31T23:59:59.999999Z"]
    ),
    "meta/v1.Duration": st.sampled_from(["30s", "1m0.5s", "0s"]),
    "meta/v1.FieldsV1": st.just({"f:spec": {".": {}}}),
    "runtime.RawExtension": st.just({"kind": "A", "n": [1, None]}),
    "resource.Quantity": st.sampled_from(["1", "100m", "1536Mi", "0"]),
    "intstr.IntOrString": st.integers(-(2**31), 2**31 - 1) | TEXTS,
}
for package in ("apiextensions/v1", "apiextensions/v1beta1"):
    SCALARS |= {
        f"{package}.JSON": st.sampled_from([1, "a", {"a": [1.5]}, False]),
        f"{package}.JSONSchemaPropsOrBool": st.booleans() | st.just({"type": "string"}),
        f"{package}.JSONSchemaPropsOrArray": st.sampled_from(
            [{"type": "string"}, [{"type": "string"}, {}]]
        ),
        f"{package}.JSONSchemaPropsOrStringArray": st.sampled_from(
            [{"type": "string"}, ["a", "b"]]
        ),
    }


def values(type_name: str, depth: int) -> st.SearchStrategy[Any]:
    """Return values of a Go type in JSON, structs with some of their fields."""
    type_name = type_name.removeprefix("*")
    if type_name in SCALARS:
        return SCALARS[type_name]
    if type_name.startswith("[]"):
        return st.lists(values(type_name[2:], depth), max_size=2)
    if type_name.startswith("map["):
        return st.dictionaries(TEXTS, values(table.map_parts(type_name)[1], depth), max_size=2)
    if (under := table.underlying(type_name)) is not None:
        return values(under, depth)
    if depth > 6 or not table.is_struct(type_name):  # a struct without fields has no table
        return st.just({})
    return st.deferred(lambda: structs(type_name, depth + 1))


def structs(type_name: str, depth: int) -> st.SearchStrategy[Any]:
    fields = [
        inner
        for field in table.fields(type_name)
        if field.number
        for inner in (table.flat_fields(field.type) if field.inline else [field])
    ]
    return st.lists(st.sampled_from(fields), max_size=4).flatmap(
        lambda chosen: st.fixed_dictionaries(
            {field.json: values(field.type, depth) for field in chosen}
        )
    )


def kinds() -> list[tuple[str, str]]:
    """Return the apiVersion and name of each kind in the tables."""
    data = Path(table.__file__).parent / "data"
    packages = {
        version: data / f"{package.replace('/', '_')}.json"
        for version, package in json.loads((data / "index.json").read_bytes()).items()
        if "/" in package
    }
    return [
        (version, kind)
        for version, file in packages.items()
        if file.exists()
        for kind in json.loads(file.read_bytes())["structs"]
        if protobuf.has_message(version, kind)
    ]


@settings(deadline=None, max_examples=10)
@given(st.data())
@pytest.mark.parametrize(("api_version", "kind"), kinds())
def test_every_kind_survives_the_round_trip(
    api_version: str, kind: str, data: st.DataObject
) -> None:
    type_name = f"{table.package_of(api_version)}.{kind}"
    obj = types.decode_as(type_name, data.draw(structs(type_name, 0))).object
    obj = {"apiVersion": api_version, "kind": kind} | obj
    assert protobuf.decode(protobuf.encode(obj)) == obj
