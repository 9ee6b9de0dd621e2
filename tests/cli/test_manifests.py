"""Manifests: the files that are read, their documents, and the names of files in errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubepy.cli.main import main
from tests.cli.conftest import Done, Kubepy

INVALID = 'error validating "STDIN": error validating data'
ADVICE = "if you choose to ignore these errors, turn validation off with --validate=false"


def config_map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"


def created(kubepy: Kubepy, *words: str, stdin: str = "") -> list[str]:
    done = kubepy("create", "--dry-run=client", "-o", "name", *words, stdin=stdin)
    assert (done.err, done.status) == ("", 0)
    return [line.removeprefix("configmap/") for line in done.out.splitlines()]


@pytest.fixture
def manifests(folder: Path) -> Path:
    for name in ("b.yaml", "a.yml", "notes.txt", "deep/c.yaml"):
        path = folder / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(config_map(path.stem))
    return folder / "set"


def test_folder_means_its_manifests_by_name(bare: Kubepy, manifests: Path) -> None:
    assert created(bare, "-f", "set") == ["a", "b"]
    assert created(bare, "-f", "set", "-R") == ["a", "b", "c"]


def test_file_that_is_named_is_read_whatever_it_is_called(bare: Kubepy, manifests: Path) -> None:
    assert created(bare, "-f", "set/notes.txt,set/b.yaml") == ["notes", "b"]
    assert created(bare, "-f", "set/*.y*") == ["a", "b"]


def test_lists_are_taken_apart_and_typed_ones_tell_kind(bare: Kubepy) -> None:
    typed = (
        "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: one}\n- metadata: "
        "{name: two}\n"
    )
    assert created(bare, "-f", "-", stdin=typed) == ["one", "two"]


def test_json_documents_follow_each_other(bare: Kubepy) -> None:
    objects = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in "xy"
    ]
    stream = "\n".join(json.dumps(obj) for obj in objects)
    assert created(bare, "-f", "-", stdin=stream) == ["x", "y"]


def test_invalid_json_is_read_as_yaml(bare: Kubepy) -> None:
    assert created(
        bare,
        "-f",
        "-",
        stdin='{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x",}}',
    ) == ["x"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"apiVersion": "v1"', "error parsing STDIN: unexpected EOF"),
        (
            "a: b: c\n",
            "error parsing STDIN: error converting YAML to JSON: yaml: mapping values are not "
            "allowed in this "
            "context",
        ),
        ("just words\n", f"{INVALID}: invalid object to validate; {ADVICE}"),
        ("kind: ConfigMap\n", f"{INVALID}: apiVersion not set; {ADVICE}"),
        (
            "apiVersion: v1\nkind: Thing\nmetadata: {name: x}\n",
            'resource mapping not found for name: "x" namespace: "" from "STDIN": no matches for '
            'kind "Thing" in version '
            '"v1"\nensure CRDs are installed first',
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {labels: {on: yes}}\n",
            'unable to decode "STDIN": json: cannot unmarshal bool into Go struct field '
            "ObjectMeta.metadata.labels of type "
            "string",
        ),
        ("# nothing\n", "no objects passed to create"),
    ],
)
def test_manifest_that_is_no_object_gives_kubectls_error(bare: Kubepy, text: str, why: str) -> None:
    assert bare("create", "-f", "-", "--dry-run=client", stdin=text) == Done(
        "", f"error: {why}\n", 1
    )


def test_namespace_of_manifest_must_be_that_of_flag(bare: Kubepy) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: south}\n"
    done = bare("create", "-f", "-", "-n", "north", "--dry-run=client", stdin=text)
    assert done == Done(
        "",
        'error: the namespace from the provided object "south" does not match the namespace '
        "\"north\". You must pass '--namespace=south' to perform this operation.\n",
        1,
    )


def test_selector_filters_what_files_hold(bare: Kubepy) -> None:
    text = (
        config_map("plain")
        + "---\n"
        + config_map("chosen").replace("chosen", "chosen, labels: {a: b}")
    )
    assert created(bare, "-f", "-", "-l", "a=b", stdin=text) == ["chosen"]


def test_file_that_is_missing_stops_everything(kubepy: Kubepy, manifests: Path) -> None:
    assert kubepy("apply", "-f", "set/b.yaml", "-f", "absent.yaml") == Done(
        "", 'error: the path "absent.yaml" does not exist\n', 1
    )
    assert kubepy("get", "cm", "b").status == 1


def test_item_of_list_that_does_not_say_what_it_is_keeps_all_of_it_out(kubepy: Kubepy) -> None:
    text = (
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: "
        "a}}\n"
        "- {metadata: {name: b}}\n"
    )
    assert kubepy("create", "-f", "-", stdin=text) == Done(
        "",
        'error: error validating "STDIN": error validating data: [apiVersion not set, kind not '
        "set]; if you choose "
        "to ignore these errors, turn validation off with --validate=false\n",
        1,
    )


# --- streams --------------------------------------------------------------------------------------


def test_documents_before_a_broken_one_and_other_files_are_taken(
    kubepy: Kubepy, folder: Path
) -> None:
    (folder / "broken.yaml").write_text(
        config_map("one") + "---\na: b: c\n---\n" + config_map("two")
    )
    (folder / "good.yaml").write_text(config_map("three"))
    why = (
        "error parsing broken.yaml: error converting YAML to JSON: yaml: mapping values are not "
        "allowed in this "
        "context\n"
    )
    assert kubepy("apply", "-f", "broken.yaml", "-f", "good.yaml") == Done(
        "configmap/one created\nconfigmap/three created\n", f"error: {why}", 1
    )
    done = kubepy(
        "create", "-f", "broken.yaml", "-f", "good.yaml"
    )  # create's own errors come before those of files
    assert done.err == (
        'Error from server (AlreadyExists): error when creating "broken.yaml": configmaps "one" '
        "already exists\n"
        'Error from server (AlreadyExists): error when creating "good.yaml": configmaps "three" '
        "already exists\n" + why
    )


def test_errors_of_files_are_one_among_others(kubepy: Kubepy, folder: Path) -> None:
    (folder / "a.yaml").write_text("apiVersion: v1\nkind: Thing\n")
    (folder / "b.yaml").write_text("[")
    (folder / "c.yaml").write_text(config_map("Not_OK"))
    done = kubepy("create", "-f", "a.yaml", "-f", "b.yaml", "-f", "c.yaml", "--validate=false")
    lines = done.err.splitlines()
    assert lines[0].startswith(
        'Error from server (Invalid): error when creating "c.yaml": ConfigMap "Not_OK" is '
    )
    assert lines[1:] == [
        '[resource mapping not found for name: "" namespace: "" from "a.yaml": no matches for '
        'kind "Thing" in version '
        '"v1"',
        "ensure CRDs are installed first, error parsing b.yaml: error converting YAML to JSON: "
        "yaml: line 1: "
        "did not find expected node content]",
    ]
    assert kubepy("get", "-f", "b.yaml").err == (  # get gathers errors: they have no prefix
        "error parsing b.yaml: error converting YAML to JSON: yaml: line 1: did not find expected "
        "node content\n"
    )


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + config_map("x").encode(),
        config_map("x").replace("\n", "\r\n").encode(),
        b"\xff\xfe" + config_map("x").encode("utf-16-le"),
        b"\xfe\xff" + config_map("x").encode("utf-16-be"),
    ],
)
def test_marks_of_byte_order_and_of_windows_do_not_matter(
    bare: Kubepy, folder: Path, data: bytes
) -> None:
    (folder / "x.yaml").write_bytes(data)
    assert created(bare, "-f", "x.yaml") == ["x"]


def test_invalid_utf_8_is_replaced(kubepy: Kubepy, folder: Path) -> None:
    (folder / "x.yaml").write_bytes(config_map("x").encode() + b'data: {a: "1\xff2"}\n')
    assert kubepy("apply", "-f", "x.yaml").status == 0
    assert kubepy("get", "cm", "x", "-o", "jsonpath={.data.a}").out == "1\ufffd2"


def test_stream_that_is_closed_is_empty(
    monkeypatch: pytest.MonkeyPatch,
    kubepy: Kubepy,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert main(("apply", "-f", "-")) == 1
    assert capsys.readouterr() == ("", "error: no objects passed to apply\n")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("-f", "none*.yaml"), 'the path "none*.yaml" does not exist'),
        (("-f", "[.yaml"), 'pattern "[.yaml" is not valid: syntax error in pattern'),
        (
            ("-f", "http://["),
            'the URL passed to filename "http://[" is not valid: parse "http://[": missing \']\' '
            "in host",
        ),
        (("-f", "void"), "error reading [void]: recognized file extensions are [.json .yaml .yml]"),
        (("-f", "-", "-f", "-"), "standard input cannot be used for multiple arguments"),
        (("-f", "link"), "error parsing link: read link: is a directory"),
    ],
)
def test_paths_that_lead_nowhere(
    bare: Kubepy, folder: Path, words: tuple[str, ...], why: str
) -> None:
    (folder / "void").mkdir()
    (folder / "link").symlink_to("void")
    assert bare("create", "--dry-run=client", *words) == Done("", f"error: {why}\n", 1)


def test_folder_without_manifests_is_no_error_behind_one_that_has_some(
    bare: Kubepy, manifests: Path
) -> None:
    (manifests / "void").mkdir()
    assert created(bare, "-f", "set", "-f", "set/void") == ["a", "b"]


# --- lists ----------------------------------------------------------------------------------------


def list_of(*items: str, kind: str = "List") -> str:
    return f"apiVersion: v1\nkind: {kind}\nitems:\n" + "".join(f"- {item}\n" for item in items)


CM = "apiVersion: v1, kind: ConfigMap"


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            list_of(f"{{{CM}, metadata: {{name: a}}, dta: {{}}}}"),
            'ValidationError(ConfigMap): unknown field "dta" in io.k8s.api.core.v1.ConfigMap',
        ),
        (
            list_of("{metadata: {name: a}, dta: {}}", kind="ConfigMapList"),
            'ValidationError(ConfigMapList.items[0]): unknown field "dta" in '
            "io.k8s.api.core.v1.ConfigMap",
        ),
        (
            list_of(
                "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: "
                "'80'}, {name: x}, null], "
                "selector: {a: 1}, type: [a], clusterIP: 5}}"
            ),
            "[ValidationError(Service.spec.ports[0].port): invalid type for "
            "io.k8s.api.core.v1.ServicePort.port: got "
            '"string", expected "integer", ValidationError(Service.spec.ports[1]): missing '
            'required field "port" in '
            "io.k8s.api.core.v1.ServicePort, ValidationError(Service.spec.ports): unknown object "
            'type "nil" in '
            "Service.spec.ports[2], ValidationError(Service.spec.type): invalid type for "
            "io.k8s.api.core.v1.ServiceSpec.type: "
            'got "array", expected "string"]',
        ),
        ("apiVersion: v1\nkind: List\n", "invalid object to validate"),
    ],
)
def test_lists_are_validated_before_anything_is_sent(
    bare: Kubepy, text: str, problems: str
) -> None:
    assert bare("create", "-f", "-", stdin=text) == Done(
        "", f"error: {INVALID}: {problems}; {ADVICE}\n", 1
    )


def test_lists_are_not_validated_when_warnings_would_do(kubepy: Kubepy) -> None:
    text = list_of(f"{{{CM}, metadata: {{name: a}}, dta: {{}}}}")
    done = kubepy("create", "-f", "-", "--validate=warn", stdin=text)
    log, warning = done.err.splitlines()
    assert (done.out, done.status, warning) == (
        "configmap/a created\n",
        0,
        'Warning: unknown field "dta"',
    )
    assert log.endswith(
        "schema.go:145] cannot perform warn validation if server-side field validation is "
        "unsupported, "
        "skipping validation"
    )


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (
            "{apiVersion: v1, kind: Thing}",
            'unable to recognize no matches for kind "Thing" in version "v1"',
        ),
        (
            "{metadata: {name: a}}",
            "unable to get type info from the object \"*unstructured.Unstructured\": Object 'Kind' "
            "is missing in 'object has no kind field '",
        ),
        (
            "{apiVersion: v1, kind: List, items: []}",
            "error: *unstructured.Unstructured is not a list: no Items field in this object",
        ),
        (
            "text",
            'error: unable to decode "STDIN": json: cannot unmarshal string into Go value of type '
            "map[string]interface {}",
        ),
    ],
)
def test_items_that_are_no_objects(bare: Kubepy, item: str, why: str) -> None:
    assert bare("create", "-f", "-", "--validate=false", stdin=list_of(item)) == Done(
        "", f"{why}\n", 1
    )


def test_kind_in_lower_case_goes_to_server_which_refuses_it(kubepy: Kubepy) -> None:
    done = kubepy("create", "-f", "-", stdin=config_map("x").replace("ConfigMap", "configmap"))
    assert done.err == (
        'Error from server (BadRequest): error when creating "STDIN": configmap in version "v1" '
        "cannot be handled as a "
        'ConfigMap: no kind "configmap" is registered for version "v1" in scheme '
        '"pkg/api/legacyscheme/scheme.go:30"\n'
    )
