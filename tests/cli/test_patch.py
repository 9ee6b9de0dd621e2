"""patch: errors of patches that cannot be parsed or applied, by the client and by the server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

MANIFEST = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 0}\n"
CUSTOM = "apiVersion: sea.example/v1\nkind: Boat\nmetadata: {name: kite}\n"


@pytest.fixture
def plain(kubepy: Kubepy) -> Kubepy:
    kubepy("create", "cm", "plain", "--from-literal=a=b")
    return kubepy


def patch(kubepy: Kubepy, content: str, *words: str) -> Done:
    return kubepy("patch", "cm", "plain", "-p", content, *words)


@pytest.mark.parametrize(
    ("content", "kind", "why"),
    [
        ('{"data":', "strategic", "unexpected end of JSON input"),
        ('{"data":', "merge", "error decoding patch: unexpected end of JSON input"),
        (
            '{"data":{,}}',
            "strategic",
            "invalid character ',' looking for beginning of object key string",
        ),
        (
            '{"data":{}} x',
            "merge",
            "error decoding patch: invalid character 'x' after top-level value",
        ),
        (
            "[]",
            "strategic",
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            "[]",
            "merge",
            "error decoding patch: json: cannot unmarshal array into Go value of type "
            "map[string]interface {}",
        ),
        ("null", "merge", "Invalid JSON Patch"),
        (
            '{"op":"add"}',
            "json",
            "error decoding patch: json: cannot unmarshal object into Go value of type "
            "[]handlers.jsonPatchOp",
        ),
    ],
)
def test_server_refuses_what_is_no_patch(plain: Kubepy, content: str, kind: str, why: str) -> None:
    assert patch(plain, content, f"--type={kind}") == Done(
        "", f"Error from server (BadRequest): {why}\n", 1
    )


@pytest.mark.parametrize("kind", ["json", "strategic"])
def test_patch_that_is_null_changes_nothing(plain: Kubepy, kind: str) -> None:
    assert patch(plain, "null", f"--type={kind}") == Done(
        "configmap/plain patched (no change)\n", "", 0
    )


def test_yaml_that_cannot_be_read_is_shown_quoted(plain: Kubepy) -> None:
    assert patch(plain, '[{"op":') == Done(
        "",
        'error: unable to parse "[{\\"op\\":": yaml: line 1: did not find expected node content\n',
        1,
    )


def test_keys_that_are_there_twice_and_fields_that_are_not_known_are_warned_of(
    plain: Kubepy,
) -> None:
    twice = '{"data":{"a":"1","a":"2"},"metadata":{"labels":{"x":"1","x":"2"}},"dta":1}'
    assert patch(plain, twice) == Done(
        "configmap/plain patched\n",
        'Warning: duplicate field "data.a"\nWarning: duplicate field "metadata.labels.x"\n'
        'Warning: unknown field "dta"\n',
        0,
    )
    operation = '[{"op":"add","path":"/data/a","value":"3","why":"so"}]'
    assert patch(plain, operation, "--type=json") == Done(
        "configmap/plain patched\n", 'Warning: json patch unknown field "[0].why"\n', 0
    )


def test_patch_type_defaults_to_strategic(plain: Kubepy) -> None:
    assert patch(plain, "{}", "--type=").out == "configmap/plain patched (no change)\n"


@pytest.mark.parametrize(
    ("content", "kind", "why"),
    [
        (
            '[{"op":"remove","path":"/x"}]',
            "json",
            "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            '[{"op":"replace","path":"/spec/x/y","value":1}]',
            "json",
            "replace operation does not apply: doc is missing path: /spec/x/y: missing value",
        ),
        ("{}", "json", "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        ("[]", "merge", "json: cannot unmarshal array into Go value of type unstructured.detector"),
        ("5", "merge", "Invalid JSON Patch"),
        ("[]", "strategic", "invalid JSON document"),
        ('{"spec":{"$patch":"x"}}', "strategic", "unknown patch type: x in map: map[$patch:x]"),
        (
            '{"kind":null}',
            "merge",
            'Object \'Kind\' is missing in \'{"apiVersion":"apps/v1","metadata":{"name":"web"},'
            '"spec":{"replicas":0}}\'',
        ),
    ],
)
def test_patching_file_alone_tells_what_is_wrong(
    bare: Kubepy, folder: Path, content: str, kind: str, why: str
) -> None:
    (folder / "d.yaml").write_text(MANIFEST)
    assert bare("patch", "--local", "-f", "d.yaml", f"--type={kind}", "-p", content) == Done(
        "", f"error: {why}\n", 1
    )


def test_file_of_kind_that_is_not_known_takes_merge_patch(bare: Kubepy, folder: Path) -> None:
    (folder / "boat.yaml").write_text(CUSTOM)
    words = ("patch", "--local", "-f", "boat.yaml", "-p", '{"sail":"red"}')
    assert bare(*words).err == (
        "error: strategic merge patch is not supported for sea.example/v1, Kind=Boat locally, "
        "try --type merge\n"
    )
    done = bare(*words, "--type=merge", "-o", "json")
    assert json.loads(done.out) == {
        "apiVersion": "sea.example/v1",
        "kind": "Boat",
        "metadata": {"name": "kite"},
        "sail": "red",
    }
