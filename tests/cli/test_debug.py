"""``debug``; containers that are attached to are fakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Done, Kubepy
from tests.kubelet import fakemachine

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}, annotations: {note: x}}
spec:
  containers:
  - name: c
    image: nginx
    livenessProbe: {httpGet: {port: 80}}
  - {name: d, image: redis}
  initContainers: [{name: i, image: init}]
"""
PTRACE = {"capabilities": {"add": ["SYS_PTRACE"]}}


@pytest.fixture
def kubepy(bare: Kubepy) -> Kubepy:
    bare("init", "--nodes=1", "--clock=2026-01-01T00:00:00Z")
    assert bare("apply", "-f", "-", stdin=POD).status == 0
    assert bare("controller", "--once", "-q").status == 0
    return bare


def spec_of(kubepy: Kubepy, pod: str) -> Any:
    return json.loads(kubepy("get", "pod", pod, "-o", "json").out)["spec"]


def container(kubepy: Kubepy, pod: str, field: str, name: str) -> Any:
    containers = spec_of(kubepy, pod)[field]
    return next(entry for entry in containers if entry["name"] == name)


# --- ephemeral containers -------------------------------------------------------------------------


def test_debug_adds_ephemeral_container_of_chosen_name(kubepy: Kubepy) -> None:
    words = ("debug", "web", "--image=busybox", "-c", "dbg", "--target=c", "--env=A=b", "--", "sh")
    done = kubepy(*words)
    assert (done.err, done.status) == ("", 0)
    assert done.out.startswith('Targeting container "c". If you don\'t see processes from this ')
    added = container(kubepy, "web", "ephemeralContainers", "dbg")
    assert added["command"] == ["sh"]
    assert added["env"] == [{"name": "A", "value": "b"}]
    assert added["securityContext"] == PTRACE
    assert added["targetContainerName"] == "c"


def test_debug_without_name_draws_one(kubepy: Kubepy) -> None:
    names = []
    for _ in range(2):
        done = kubepy("debug", "pod/web", "--image=busybox")
        assert done.out.startswith("Defaulting debug container name to debugger-")
        names.append(done.out.removesuffix(".\n").rpartition(" ")[2])
    added = [entry["name"] for entry in spec_of(kubepy, "web")["ephemeralContainers"]]
    assert added == names
    assert len(set(names)) == 2


@pytest.mark.parametrize(
    ("profile", "context"),
    [
        ("general", PTRACE),
        ("baseline", None),
        ("netadmin", {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}}),
        ("sysadmin", {"privileged": True}),
        (
            "restricted",
            {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        ),
    ],
)
def test_debug_with_profile_gives_its_rights(
    kubepy: Kubepy, profile: str, context: dict[str, Any] | None
) -> None:
    kubepy("debug", "web", "--image=b", "-c", "dbg", "-q", f"--profile={profile}")
    added = container(kubepy, "web", "ephemeralContainers", "dbg")
    assert added.get("securityContext") == context


def test_debug_with_custom_profile_merges_it(kubepy: Kubepy, folder: Path) -> None:
    (folder / "custom.yaml").write_text("env: [{name: A, value: b}]\n")
    done = kubepy("debug", "web", "--image=b", "-c", "dbg", "-q", "--custom=custom.yaml")
    assert done == Done("", "", 0)
    added = container(kubepy, "web", "ephemeralContainers", "dbg")
    assert added["env"] == [{"name": "A", "value": "b"}]
    assert added["image"] == "b"
    (folder / "custom.yaml").write_text("image: x\n")
    assert kubepy("debug", "web", "--image=b", "--custom=custom.yaml").err == (
        "error: name, command, image, lifecycle and volume devices are not modifiable via custom "
        "profile\n"
    )


# --- copies ---------------------------------------------------------------------------------------


def test_debug_copy_with_new_container_drops_labels_and_probes(kubepy: Kubepy) -> None:
    done = kubepy("debug", "web", "--copy-to=copy", "--image=busybox", "-c", "dbg", "--", "sh")
    assert done == Done("", "", 0)
    copied = json.loads(kubepy("get", "pod", "copy", "-o", "json").out)
    spec = copied["spec"]
    assert "labels" not in copied["metadata"]
    assert "annotations" not in copied["metadata"]
    assert spec["shareProcessNamespace"] is True
    assert [entry["name"] for entry in spec["containers"]] == ["c", "d", "dbg"]
    assert "livenessProbe" not in spec["containers"][0]
    assert [entry["name"] for entry in spec["initContainers"]] == ["i"]


def test_debug_copy_with_kept_parts_has_them(kubepy: Kubepy) -> None:
    words = ("--keep-labels", "--keep-annotations", "--keep-liveness", "--same-node", "--replace")
    kubepy("debug", "web", "--copy-to=copy", "--image=b", "-c", "dbg", *words)
    copied = json.loads(kubepy("get", "pod", "copy", "-o", "json").out)
    assert copied["metadata"]["labels"] == {"app": "web"}
    assert copied["metadata"]["annotations"]["note"] == "x"
    assert "livenessProbe" in copied["spec"]["containers"][0]
    assert copied["spec"]["nodeName"] == "node-1"
    assert kubepy("get", "pod", "web").status == 1


def test_debug_copy_changes_images_and_command(kubepy: Kubepy) -> None:
    assert kubepy("debug", "web", "--copy-to=one", "--set-image=*=busybox,d=alpine").status == 0
    images = [entry["image"] for entry in spec_of(kubepy, "one")["containers"]]
    assert images == ["busybox", "alpine"]
    assert kubepy("debug", "web", "--copy-to=two", "-c", "c", "--", "sleep", "1").status == 0
    assert container(kubepy, "two", "containers", "c")["command"] == ["sleep", "1"]


# --- nodes ----------------------------------------------------------------------------------------


def test_debug_node_creates_pod_in_its_namespaces(kubepy: Kubepy) -> None:
    done = kubepy("debug", "node/node-1", "--image=busybox")
    assert done.out.startswith("Creating debugging pod node-debugger-node-1-")
    assert done.out.endswith(" with container debugger on node node-1.\n")
    spec = spec_of(kubepy, done.out.split()[3])
    assert (spec["nodeName"], spec["hostPID"], spec["hostNetwork"]) == ("node-1", True, True)
    mounts = spec["containers"][0]["volumeMounts"]
    assert {"mountPath": "/host", "name": "host-root"} in mounts
    again = kubepy("debug", "node/node-1", "--image=busybox")
    assert again.status == 0
    assert again.out != done.out


# --- attaching ------------------------------------------------------------------------------------


def test_debug_with_stdin_attaches_to_container(
    kubepy: Kubepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakemachine.install(monkeypatch)
    kubepy("annotate", "pod", "web", "kubepy.dev/log.dbg=hello")
    done = kubepy("debug", "web", "--image=b", "-c", "dbg", "-i", "-q")
    assert (done.out, done.status) == ("hello\n", 0)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("web", "you must specify --image when not using --copy-to."),
        ("--image=b", "NAME or filename is required for debug"),
        ("web --image=b --replace", "--replace may only be used with --copy-to."),
        ("web --image=b --same-node", "--same-node may only be used with --copy-to."),
        ("web --image=b --set-image=a=b", "--set-image may only be used with --copy-to."),
        ("web --copy-to=x", "you must specify --image, --set-image or command arguments."),
        (
            "web --copy-to=x -- sh",
            "you must specify an existing container or a new image when specifying args.",
        ),
        (
            "web --copy-to=x --image=b --target=c",
            "--target is incompatible with --copy-to. Use --share-processes instead.",
        ),
        ("web --image=b -t", "-i/--stdin is required for containers with -t/--tty=true"),
        ("web --image=b --profile=odd", "unknown profile: odd"),
        ("web --image=B!", 'invalid image name "B!": invalid reference format'),
        ("web --image=b --image-pull-policy=x", "invalid image pull policy: x"),
        ("svc/web --image=b", 'Error from server (NotFound): services "web" not found'),
    ],
)
def test_debug_with_wrong_flags_is_error(kubepy: Kubepy, words: str, error: str) -> None:
    done = kubepy("debug", *words.split())
    prefix = "" if error.startswith("Error") else "error: "
    assert done == Done("", f"{prefix}{error}\n", 1)
