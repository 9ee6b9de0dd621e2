"""Files that are no object's, in folders of no resource or under names that none has: every command
says so."""

from __future__ import annotations

import gc
import io
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kubepy.api import errors
from kubepy.apiserver.client import Client
from kubepy.cli.main import main
from tests.cli.conftest import Done, Kubepy
from tests.waiting import eventually

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\n"
NO_PLACE = (
    "is not where an object's file can be (cluster/RESOURCE/ or namespaces/NAMESPACE/RESOURCE/)"
)
NOT_YAML = "is not read: the name of an object's file ends in .yaml"
CASES = {
    "namespaces/default/configmap/a.yaml": 'is not read: "configmap" is not the folder name of '
    "any resource: its place is "
    "namespaces/default/configmaps/",
    "namespaces/default/deployment.apps/a.yaml": 'is not read: "deployment.apps" is not the '
    "folder name of any resource: its place is "
    "namespaces/default/configmaps/",
    "namespaces/default/Configmaps/a.yaml": 'is not read: "Configmaps" is not the folder name of '
    "any resource: its place is "
    "namespaces/default/configmaps/",
    "namespaces/default/boats.sea.example.org/a.yaml": 'is not read: "boats.sea.example.org" is '
    "not the folder name of any resource: its "
    "place is "
    "namespaces/default/configmaps/",
    "namespaces/default/configmaps/a.json": NOT_YAML,
    "namespaces/default/configmaps/a.yml": NOT_YAML,
    "namespaces/default/a.yaml": NO_PLACE,
    "namespaces/a.yaml": NO_PLACE,
    "cluster/a.yaml": NO_PLACE,
    "namespaces/default/configmaps/more/a.yaml": NO_PLACE,
}


@pytest.fixture
def state(kubepy: Kubepy, folder: Path) -> Path:
    kubepy("create", "cm", "paint")
    return folder / "state"


def put(path: Path, text: str = MAP.format("a")) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(("path", "reason"), CASES.items(), ids=CASES.keys())
def test_file_of_no_object_is_named_by_fsck_and_by_the_first_command(
    kubepy: Kubepy, state: Path, path: str, reason: str
) -> None:
    put(state / path)
    first = kubepy("get", "ns", "default", "-o", "name")
    assert (first.out, first.status) == ("namespace/default\n", 0)
    assert len(first.err.splitlines()) == 1
    of_file, of_folder = (
        f"{path}: {reason}: this file is left out",
        f"{path.rpartition('/')[0]}: {reason} (a.yaml)",
    )
    assert first.err in (f"Warning: state/{of_file}\n", f"Warning: state/{of_folder}\n")
    assert kubepy("fsck") == Done(f"{path}: {reason}\n", "", 1)
    (state / path).unlink()
    assert kubepy("fsck") == Done("state: no problems\n", "", 0)
    assert kubepy("get", "ns", "default", "-o", "name").err == ""


def test_file_in_fresh_clone_is_named_by_the_first_command(
    kubepy: Kubepy, state: Path, folder: Path
) -> None:
    put(state / "namespaces/default/configmap/a.yaml")
    (state / ".kubepy").rename(folder / "gone")
    assert "configmap: is not read" in kubepy("get", "nodes").err


@pytest.mark.parametrize(
    "words",
    [
        "create cm brush",
        "create cm paint",  # fails: it exists
        "create cm brush --dry-run=server",
        "run lamp --image=lamp",
        "apply -f cm.yaml",
        "create -f cm.yaml",
        "replace --force -f cm.yaml",
        "delete -f cm.yaml",
        "diff -f cm.yaml",
    ],
)
def test_file_of_no_object_is_named_by_command_that_reads_no_other(
    kubepy: Kubepy, state: Path, folder: Path, words: str
) -> None:
    (folder / "cm.yaml").write_text(MAP.format("brush"))
    put(state / "namespaces/default/configmap/a.yaml")
    assert "configmap: is not read" in kubepy(*words.split()).err


def test_file_whose_object_goes_elsewhere_is_named(kubepy: Kubepy, state: Path) -> None:
    put(state / "namespaces/default/configmaps/b.yaml")
    put(state / "namespaces/default/configmaps/c.yaml", MAP.format("c") + "---\n" + MAP.format("d"))
    done = kubepy("fsck")
    assert done.out.splitlines() == [
        'namespaces/default/configmaps/b.yaml:1: is named "a", not "b"',
        "namespaces/default/configmaps/c.yaml:6: has more than one document",
    ]
    assert done.status == 1


def test_other_files_are_named_only_on_demand(kubepy: Kubepy, state: Path) -> None:
    put(state / "namespaces/default/configmaps/notes.txt", "hello\n")
    put(state / "cluster/README.md", "hello\n")
    assert kubepy("fsck") == Done("state: no problems\n", "", 0)
    done = kubepy("fsck", "-v")
    assert done.out == (
        "cluster/README.md: is not read\nnamespaces/default/configmaps/notes.txt: is not read\n"
        "state: no problems\n"
    )
    assert done.status == 0


def test_many_files_are_summed_up(kubepy: Kubepy, state: Path) -> None:
    for number in range(50):
        put(state / f"namespaces/default/a{number:02}.yaml")
    lines = kubepy("get", "ns").err.splitlines()
    assert len(lines) == 21
    assert lines[-1] == 'Warning: state: 30 more files have problems: "kubepy fsck" lists them'


def test_folder_of_objects_whose_definition_is_not_there_yet_is_read_with_it(
    kubepy: Kubepy, state: Path
) -> None:
    put(
        state / "namespaces/default/boats.sea.example.org/ada.yaml",
        "apiVersion: sea.example.org/v1\nkind: Boat\nmetadata:\n  name: ada\n",
    )
    assert (
        'there is no CustomResourceDefinition "boats.sea.example.org"' in kubepy("get", "nodes").err
    )
    put(
        state / "cluster/customresourcedefinitions.apiextensions.k8s.io/boats.sea.example.org.yaml",
        """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example.org}
spec:
  group: sea.example.org
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
""",
    )
    assert kubepy("get", "boats", "-o", "name") == Done("boat.sea.example.org/ada\n", "", 0)


# --- controller --watch ---------------------------------------------------------------------------


def test_watch_warns_of_file_that_breaks_and_says_when_it_is_in_order(
    kubepy: Kubepy, state: Path, folder: Path
) -> None:
    file, errors = state / "namespaces/default/configmaps/paint.yaml", folder / "errors"
    whole = file.read_text()
    with errors.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "kubepy", "controller", "--watch", "-q"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=stream,
        )
    try:
        eventually((state / ".kubepy/manager.lock.holder").exists)
        file.write_text("{")
        eventually(lambda: len(errors.read_text().splitlines()) == 1)
        file.write_text(whole)
        eventually(lambda: len(errors.read_text().splitlines()) == 2)
        stray = put(state / "namespaces/default/configmap/a.yaml")
        eventually(lambda: len(errors.read_text().splitlines()) == 3)
        stray.unlink()
        eventually(lambda: len(errors.read_text().splitlines()) == 4)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    broken, mended, misplaced, removed = errors.read_text().splitlines()
    assert re.fullmatch(r"Warning: \S+/paint\.yaml:1: .*: this file is left out", broken)
    assert re.fullmatch(r"note: \S+/paint\.yaml: is in order again", mended)
    assert 'configmap: is not read: "configmap" is not the folder name of any resource' in misplaced
    assert re.fullmatch(r"note: \S+/configmap: is in order again", removed)


# --- admission ------------------------------------------------------------------------------------

REFUSED = "counts, though a server would have refused it: "
POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: at-most-three}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
  - {expression: "object.spec.replicas <= 3", message: three are enough}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: at-most-three, validationActions: [Deny]}
"""


def test_edit_that_policy_would_have_denied_is_warned_of_once_and_counts(
    kubepy: Kubepy, state: Path, folder: Path
) -> None:
    (folder / "policy.yaml").write_text(POLICY)
    assert kubepy("apply", "-f", "policy.yaml").status == 0
    kubepy("create", "deployment", "web", "--image=i")
    file = state / "namespaces/default/deployments.apps/web.yaml"
    file.write_text(re.sub(r"^  replicas: 1", "  replicas: 4", file.read_text(), flags=re.M))
    done = kubepy("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}")
    words = (
        "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'at-most-three' with "
        "binding "
        "'everywhere' denied request: three are enough"
    )
    assert done == Done(
        "4", f"Warning: state/namespaces/default/deployments.apps/web.yaml: {REFUSED}{words}\n", 0
    )
    assert kubepy("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == Done("4", "", 0)


def test_warning_of_an_edit_leaves_the_index_closed(kubepy: Kubepy, state: Path) -> None:
    kubepy("create", "quota", "q", "--hard=count/configmaps=1")
    put(state / "namespaces/default/configmaps/a.yaml")
    gc.disable()
    try:
        done = kubepy("get", "configmaps")
        assert REFUSED in done.err
        assert not (state / ".kubepy/index.db-wal").exists()
    finally:
        gc.enable()


def test_files_beyond_quota_are_warned_of_and_counted(kubepy: Kubepy, state: Path) -> None:
    kubepy("create", "quota", "q", "--hard=count/configmaps=2")
    for name in "ab":
        put(state / f"namespaces/default/configmaps/{name}.yaml", MAP.format(name))
    done = kubepy("get", "quota", "q", "-o", "jsonpath={.status.used}")
    assert done.out == '{"count/configmaps":"3"}'
    assert done.err == (
        f'Warning: state/namespaces/default/configmaps/b.yaml: {REFUSED}configmaps "b" is '
        f"forbidden: "
        "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=2, limited: "
        "count/configmaps=2\n"
    )


def test_pod_of_file_that_its_namespace_does_not_allow_is_warned_of(
    kubepy: Kubepy, state: Path
) -> None:
    kubepy("label", "ns", "default", "pod-security.kubernetes.io/enforce=baseline")
    put(
        state / "namespaces/default/pods/p.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n"
        "  hostNetwork: true\n  containers:\n  - {name: c, image: i}\n",
    )
    done = kubepy("get", "pods", "-o", "name")
    assert done.out == "pod/p\n"
    assert (
        f'{REFUSED}pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces'
        in done.err
    )


def test_files_of_cluster_that_is_read_for_the_first_time_are_not_judged(
    kubepy: Kubepy, state: Path, folder: Path
) -> None:
    kubepy("create", "quota", "q", "--hard=count/configmaps=0")
    put(state / "namespaces/default/configmaps/a.yaml")
    (state / ".kubepy").rename(folder / "gone")
    assert REFUSED not in kubepy("get", "cm").err


def test_index_found_damaged_by_the_last_look_leaves_a_command_that_wrote_successful(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index in its place knows nothing of the revision that the look goes on from."""
    folder = str(tmp_path / "state")
    streams = {"stdin": io.StringIO(), "stdout": io.StringIO(), "stderr": io.StringIO()}
    assert main(["--state", folder, "init"], **streams) == 0
    looks = []

    def rebuilt(client: Client, since: int, **named: object) -> None:
        looks.append(named)
        raise errors.Expired(f"too old resource version: {since}")

    monkeypatch.setattr(Client, "changes", rebuilt)
    assert main(["--state", folder, "create", "configmap", "a"], **streams) == 0
    assert looks == [{"reads": ()}]
    assert streams["stderr"].getvalue() == ""
