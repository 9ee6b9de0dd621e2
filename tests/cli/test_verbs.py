"""Commands that change a cluster, and their output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

MANIFEST = """apiVersion: v1
kind: ConfigMap
metadata:
  name: palette
  labels: {kind-of: paint}
data: {red: "1", green: "2"}
"""
DAEMONSET = """apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
      - {name: agent, image: "agent:1"}
"""


@pytest.fixture
def palette(kubepy: Kubepy, folder: Path) -> Kubepy:
    (folder / "cm.yaml").write_text(MANIFEST)
    assert kubepy("apply", "-f", "cm.yaml") == Done("configmap/palette created\n", "", 0)
    return kubepy


def field(kubepy: Kubepy, path: str, *words: str) -> str:
    return kubepy("get", *(words or ("cm", "palette")), "-o", f"jsonpath={{{path}}}").out


# --- apply ----------------------------------------------------------------------------------------


def test_apply_takes_away_what_manifest_lost_and_keeps_what_others_set(palette: Kubepy) -> None:
    palette("patch", "cm", "palette", "-p", '{"data":{"blue":"3"}}')
    changed = MANIFEST.replace(', green: "2"', "")
    assert palette("apply", "-f", "-", stdin=changed).out == "configmap/palette configured\n"
    assert json.loads(field(palette, ".data")) == {"red": "1", "blue": "3"}


def test_apply_of_same_again_writes_nothing(palette: Kubepy, folder: Path) -> None:
    before = field(palette, ".metadata.resourceVersion")
    assert palette("apply", "-f", "cm.yaml").out == "configmap/palette unchanged\n"
    assert field(palette, ".metadata.resourceVersion") == before


def test_apply_of_many_prints_list_in_other_formats(palette: Kubepy) -> None:
    other = MANIFEST.replace("palette", "other")
    done = palette(
        "apply",
        "-f",
        "-",
        "-o",
        "jsonpath={.kind} {.items[*].metadata.name}",
        stdin=f"{MANIFEST}---\n{other}",
    )
    assert done.out == "List palette other"


def test_apply_goes_on_after_error_and_fails(palette: Kubepy) -> None:
    documents = "---\n".join(
        [MANIFEST.replace("palette", "Bad_Name"), MANIFEST.replace("palette", "fine")]
    )
    done = palette("apply", "-f", "-", stdin=documents)
    assert (done.out, done.status) == ("configmap/fine created\n", 1)
    assert done.err.startswith(
        'The ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": '
    )


def test_apply_of_what_create_made_warns_and_patches_annotation_in(kubepy: Kubepy) -> None:
    kubepy("create", "-f", "-", stdin=MANIFEST)
    done = kubepy("apply", "-f", "-", stdin=MANIFEST)
    assert done.out == "configmap/palette configured\n"
    assert done.err.startswith(
        "Warning: resource configmaps/palette is missing the kubectl.kubernetes.io/"
    )
    assert kubepy("apply", "-f", "-", stdin=MANIFEST) == Done(
        "configmap/palette unchanged\n", "", 0
    )


# --- get ------------------------------------------------------------------------------------------


def test_tables_of_several_kinds_name_them_and_are_set_apart(palette: Kubepy) -> None:
    palette("create", "secret", "generic", "key", "--from-literal=a=b")
    lines = palette("get", "cm/palette", "secret/key").out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["NAME", "DATA"],
        ["configmap/palette", "2"],
        [],
        ["NAME", "TYPE"],
        ["secret/key", "Opaque"],
    ]


def test_get_without_results_says_so_on_stderr_and_exits_0(palette: Kubepy) -> None:
    assert palette("get", "cm", "-l", "no=thing") == Done(
        "", "No resources found in default namespace.\n", 0
    )
    assert palette("get", "cm", "-l", "no=thing", "-o", "name") == Done("", "", 0)


def test_get_prints_one_object_itself_and_several_as_a_list(palette: Kubepy) -> None:
    assert json.loads(palette("get", "cm", "palette", "-o", "json").out)["kind"] == "ConfigMap"
    assert json.loads(palette("get", "cm", "-o", "json").out)["kind"] == "List"


def test_labels_become_columns(palette: Kubepy) -> None:
    rows = palette("get", "cm", "palette", "-L", "kind-of,none", "--show-labels").out.splitlines()
    assert rows[0].split() == ["NAME", "DATA", "AGE", "KIND-OF", "NONE", "LABELS"]
    assert rows[1].split()[3:] == ["paint", "kind-of=paint"]


def test_reading_leaves_folder_as_it_was(palette: Kubepy, folder: Path) -> None:
    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in sorted((folder / "state").rglob("*.yaml"))}

    before = contents()
    for words in (
        ["get", "cm", "-A"],
        ["get", "cm", "palette", "-o", "yaml"],
        ["api-resources"],
        ["fsck"],
    ):
        assert palette(*words).status == 0
    assert contents() == before


# --- create, replace, delete ----------------------------------------------------------------------


def test_unknown_fields_fail_warn_or_pass_as_validate_says(kubepy: Kubepy) -> None:
    odd = MANIFEST + "colour: red\n"
    done = kubepy("create", "-f", "-", stdin=odd)
    assert (done.out, done.status) == ("", 1)
    assert 'strict decoding error: unknown field "colour"' in done.err
    warned = kubepy("create", "-f", "-", "--validate=warn", stdin=odd)
    assert warned == Done("configmap/palette created\n", 'Warning: unknown field "colour"\n', 0)


def test_forced_replacement_of_nothing_says_that_it_deleted_nothing(kubepy: Kubepy) -> None:
    assert kubepy("replace", "--force", "-f", "-", stdin="") == (
        "No resources found\n",
        "error: no objects passed to replace\n",
        1,
    )


def test_replace_of_stale_version_is_conflict(palette: Kubepy) -> None:
    got = palette("get", "cm", "palette", "-o", "yaml").out
    palette("label", "cm", "palette", "a=b")
    done = palette("replace", "-f", "-", stdin=got)
    assert done.status == 1
    assert done.err.startswith('Error from server (Conflict): error when replacing "STDIN": ')


def test_delete_names_namespace_and_what_was_not_there(palette: Kubepy) -> None:
    assert palette("delete", "cm", "palette", "none") == Done(
        'configmap "palette" deleted from default namespace\n',
        'Error from server (NotFound): configmaps "none" not found\n',
        1,
    )


def test_delete_waits_no_longer_than_asked(kubepy: Kubepy) -> None:
    kubepy(
        "create",
        "-f",
        "-",
        stdin=MANIFEST.replace("  labels", "  finalizers: [example.org/keep]\n  labels"),
    )
    done = kubepy("delete", "cm", "palette", "--timeout=10ms")
    assert done == Done(
        'configmap "palette" deleted from default namespace\n',
        "error: timed out waiting for the condition on configmaps/palette\n",
        1,
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["delete", "cm"], "resource(s) were provided, but no name was specified"),
        (["delete", "cm", "z", "--all"], "name cannot be provided when a selector is specified"),
        (
            ["delete", "cm/z", "-l", "a=b"],
            "selectors and the all flag cannot be used when passing resource/name arguments",
        ),
        (
            ["delete", "cm", "z", "--now", "--grace-period=3"],
            "--now and --grace-period cannot be specified together",
        ),
        (
            ["delete", "cm", "z", "-A"],
            "a resource cannot be retrieved by name across all namespaces",
        ),
        (["get", "cm/"], "arguments in resource/name form must have a single resource and name"),
        (["get", "a/b/c"], "arguments in resource/name form may not have more than one slash"),
        (["get", "widgets.example.org"], 'the server doesn\'t have a resource type "widgets"'),
        (
            ["get", "-f", "cm.yaml", "pods"],
            "when paths, URLs, or stdin is provided as input, you may not specify resource "
            "arguments as well",
        ),
        (
            ["apply", "-f", "http://x:abc/"],
            'the URL passed to filename "http://x:abc/" is not valid: parse "http://x:abc/": '
            'invalid port ":abc" after host',
        ),
        (["label", "cm", "x"], "at least one label update is required"),
        (["scale", "deploy/x"], 'required flag(s) "replicas" not set'),
        (
            ["patch", "cm", "x", "-p", "{}", "--type=guess"],
            '--type must be one of [json merge strategic], not "guess"',
        ),
    ],
)
def test_ambiguous_arguments_are_refused(palette: Kubepy, words: list[str], why: str) -> None:
    assert palette(*words) == Done("", f"error: {why}\n", 1)


# --- changes --------------------------------------------------------------------------------------


def test_label_is_overwritten_only_when_told_to(palette: Kubepy) -> None:
    assert palette("label", "cm", "palette", "kind-of=oil") == Done(
        "", "error: 'kind-of' already has a value (paint), and --overwrite is false\n", 1
    )
    assert (
        palette("label", "cm", "palette", "kind-of=oil", "--overwrite").out
        == "configmap/palette labeled\n"
    )
    assert palette("label", "cm", "palette", "kind-of-", "none-").out == (
        'label "none" not found.\nconfigmap/palette unlabeled\n'
    )


def test_annotating_several_objects_by_label(palette: Kubepy) -> None:
    palette("create", "-f", "-", stdin=MANIFEST.replace("palette", "other"))
    assert palette("annotate", "cm", "-l", "kind-of=paint", "note=a, b = c").out == (
        "configmap/other annotated\nconfigmap/palette annotated\n"
    )
    assert field(palette, ".metadata.annotations.note") == "a, b = c"


def test_patch_that_changes_nothing_says_so(palette: Kubepy) -> None:
    assert (
        palette("patch", "cm", "palette", "-p", "data: {red: '1'}").out
        == "configmap/palette patched (no change)\n"
    )
    assert (
        palette("patch", "cm", "palette", "-p", "data: {red: '9'}").out
        == "configmap/palette patched\n"
    )


def test_local_patch_needs_no_cluster(bare: Kubepy, folder: Path) -> None:
    (folder / "cm.yaml").write_text(MANIFEST)
    done = bare(
        "patch",
        "--local",
        "-f",
        "cm.yaml",
        "--type=merge",
        "-p",
        '{"data":{"red":null}}',
        "-o",
        "jsonpath={.data}",
    )
    assert done == Done('{"green":"2"}', "", 0)


def test_scaling_checks_its_preconditions(kubepy: Kubepy) -> None:
    kubepy("create", "deployment", "web", "--image=nginx", "--replicas=2")
    assert kubepy("scale", "deploy/web", "--replicas=3", "--current-replicas=5") == Done(
        "", "error: Expected replicas to be 5, was 2\n", 1
    )
    assert kubepy("scale", "deploy/web", "--replicas=3").out == "deployment.apps/web scaled\n"
    assert field(kubepy, ".spec.replicas", "deploy", "web") == "3"


def test_daemonset_has_no_scale(kubepy: Kubepy) -> None:
    kubepy("create", "-f", "-", stdin=DAEMONSET)
    assert kubepy("scale", "ds/agent", "--replicas=1") == Done(
        "", "Error from server (NotFound): the server could not find the requested resource\n", 1
    )


def test_waiting_runs_controllers(bare: Kubepy) -> None:
    bare("init", "--nodes=2")
    bare("create", "-f", "-", stdin=DAEMONSET)
    done = bare("wait", "ds/agent", "--for=jsonpath={.status.numberReady}=2", "--timeout=10s")
    assert done == Done("daemonset.apps/agent condition met\n", "", 0)


def test_waiting_without_controllers_ends_at_its_time(bare: Kubepy) -> None:
    bare("init", "--nodes=1")
    bare("create", "-f", "-", stdin=DAEMONSET)
    done = bare(
        "wait",
        "ds/agent",
        "--for=jsonpath={.status.numberReady}=1",
        "--timeout=20ms",
        "--reconcile=never",
    )
    assert (done.out, done.status) == ("", 1)
    assert done.err.endswith("error: timed out waiting for the condition on daemonsets/agent\n")


# --- the folder -----------------------------------------------------------------------------------


def test_fsck_names_file_and_reason_and_fails(palette: Kubepy, folder: Path) -> None:
    assert palette("fsck") == Done("state: no problems\n", "", 0)
    broken = folder / "state" / "namespaces" / "default" / "configmaps" / "palette.yaml"
    broken.write_text("<<<<<<< HEAD\n" + broken.read_text())
    done = palette("fsck")
    assert done.status == 1
    assert done.out.startswith("namespaces/default/configmaps/palette.yaml")


# --- files that cannot be objects -----------------------------------------------------------------


def test_files_that_cannot_be_objects_are_warned_of_by_every_command(
    palette: Kubepy, folder: Path
) -> None:
    file = folder / "state/namespaces/default/configmaps/palette.yaml"
    file.write_text("<<<<<<< HEAD\n" + file.read_text())
    warning = (
        f"Warning: {file.relative_to(folder)}:1: has merge conflict markers: this file is "
        f"left out\n"
    )
    assert palette("get", "cm") == Done(
        "", warning + "No resources found in default namespace.\n", 0
    )
    assert palette("get", "cm", "palette").status == 1
    assert palette("controller", "--once") == Done("", warning, 0)
    assert palette("get", "ns", "default", "-o", "name") == Done("namespace/default\n", warning, 0)


def test_folder_that_lost_its_settings_becomes_cluster_again_with_all_that_is_in_it(
    palette: Kubepy, folder: Path
) -> None:
    (folder / "state/kubepy.yaml").unlink()
    assert palette("apply", "-f", "cm.yaml") == Done("configmap/palette unchanged\n", "", 0)


def test_init_takes_folder_with_nothing_but_settings(bare: Kubepy, folder: Path) -> None:
    (folder / "state").mkdir()
    (folder / "state/kubepy.yaml").write_text(
        "formatVersion: 1\nclock: 2026-01-01T00:00:00Z\nseed: 7\n"
    )
    assert bare("init", "--nodes=0").out.startswith("cluster created in state\n")
    assert field(bare, ".metadata.creationTimestamp", "ns", "default") == "2026-01-01T00:00:00Z"
    assert bare("init", "--nodes=0").err == 'error: there is a cluster in "state" already\n'


def test_describe_prefix_ends_each_object_with_empty_line(kubepy: Kubepy) -> None:
    for name in ("pre-a", "pre-b"):
        kubepy("create", "cm", name)
    shown = "".join(
        f"Name:         {name}\nNamespace:    default\nLabels:       <none>\nAnnotations:  "
        f"<none>\n\n"
        "Data\n====\n\nBinaryData\n====\n\n\n"
        for name in ("pre-a", "pre-b")
    )
    assert kubepy("describe", "cm", "pre-").out == shown


@pytest.mark.parametrize("metadata", ["{name: null}", "{}", "null", "{generateName: x-}"])
@pytest.mark.parametrize(
    "kind", ["{apiVersion: v1, kind: ConfigMap}", "{apiVersion: v1, kind: Node}"]
)
def test_describe_file_without_name_is_refused(kubepy: Kubepy, kind: str, metadata: str) -> None:
    manifest = kind.replace("}", f", metadata: {metadata}}}")
    assert kubepy("describe", "-f", "-", stdin=manifest) == Done(
        "", "error: resource name may not be empty\n", 1
    )
