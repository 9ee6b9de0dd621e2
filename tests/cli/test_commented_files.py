"""Files with comments, written by hand: commands and controllers change only the values that
change."""

from __future__ import annotations

import difflib
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Kubepy
from tests.storage.test_yaml_roundtrip import DAEMON_SET

AGENT = "state/namespaces/default/daemonsets.apps/agent.yaml"
WEB = "state/namespaces/default/deployments.apps/web.yaml"
PAINT = "state/namespaces/default/configmaps/paint.yaml"

DEPLOYMENT = """\
# The web tier.
kind: Deployment   # rolls
apiVersion: apps/v1

metadata: {name: web}

spec:
    # two are enough
    replicas: 2   # at night

    selector: {matchLabels: {app: web}}
    template:
        metadata: {labels: {app: web}}   # as above
        spec:
            containers:
            # serves
            - name: nginx   # itself
              image: 'nginx:1.15'
            # no more
"""


@pytest.fixture
def agent(kubepy: Kubepy, folder: Path) -> Path:
    """The file of a DaemonSet written by hand, which the controllers have already seen."""
    return place(kubepy, folder / AGENT, DAEMON_SET)


@pytest.fixture
def web(kubepy: Kubepy, folder: Path) -> Path:
    return place(kubepy, folder / WEB, DEPLOYMENT)


def place(kubepy: Kubepy, path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert kubepy("controller", "--once").status == 0
    return path


def changes(before: str, path: Path) -> list[str]:
    """Return the lines removed and added."""
    lines = difflib.ndiff(before.splitlines(), path.read_text().splitlines())
    return [line.rstrip() for line in lines if line[0] in "+-"]


def comments(text: str) -> list[str]:
    """Return all comments with the text before them on their lines, in order."""
    return re.findall(r"^.*# .*$", text, re.MULTILINE)


def test_set_image_changes_three_lines_of_commented_daemon_set(kubepy: Kubepy, agent: Path) -> None:
    before = agent.read_text()
    assert kubepy("set", "image", "ds/agent", "agent=nginx:1.16").status == 0
    number = int(re.findall(r"generation: (\d+)", before)[0])
    assert changes(before, agent) == [
        '-     deprecated.daemonset.template.generation: "1"  # ours',
        '+     deprecated.daemonset.template.generation: "2"  # ours',
        f"-   generation: {number} # too",
        f"+   generation: {number + 1} # too",
        '-           image: "nginx:1.15"   # pinned, see #42',
        '+           image: "nginx:1.16"   # pinned, see #42',
    ]


def test_controllers_and_defaults_add_lines_and_take_none(agent: Path) -> None:
    assert [line for line in changes(DAEMON_SET, agent) if line[0] == "-"] == []
    assert agent.read_text().endswith("  observedGeneration: 1\n# end of the file\n")


@pytest.mark.parametrize(
    "words",
    [
        "label ds agent a=b",
        "annotate ds agent note=x",
        "set env ds/agent -c agent FOO=bar",
        "set resources ds/agent -c sidecar --limits=cpu=1",
        "controller --once",
    ],
)
def test_comments_stay_on_their_lines_whatever_command(
    kubepy: Kubepy, agent: Path, words: str
) -> None:
    kubepy("set", "image", "ds/agent", "sidecar=busybox:2")
    before = comments(agent.read_text())
    assert kubepy(*words.split()).status == 0
    text = agent.read_text()
    for comment in before:
        if "generation" not in comment and "labels" not in comment:
            assert f"{comment}\n" in text
    assert kubepy("fsck").status == 0


def test_undo_brings_bytes_back_but_for_generations(kubepy: Kubepy, agent: Path) -> None:
    before = agent.read_text()
    kubepy("set", "image", "ds/agent", "agent=nginx:1.16")
    kubepy("controller", "--once")
    assert kubepy("rollout", "undo", "ds/agent").out == "daemonset.apps/agent rolled back\n"
    assert all("eneration" in line for line in changes(before, agent))


def test_container_that_is_removed_takes_its_comments_along(kubepy: Kubepy, agent: Path) -> None:
    patch = '{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","$patch":"delete"}]}}}}'
    assert kubepy("patch", "ds", "agent", "-p", patch).status == 0
    text = agent.read_text()
    assert "# beside it" not in text
    assert "# X says where" not in text
    assert "        # the agent\n        - name: agent  # itself\n" in text
    assert "        # no more of them\n" in text


def test_scale_edit_and_apply_change_their_lines(
    kubepy: Kubepy, web: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEPY_RECONCILE", "never")
    before = web.read_text()
    assert kubepy("scale", "deploy/web", "--replicas=3").status == 0
    assert [line for line in changes(before, web) if "generation" not in line] == [
        "-     replicas: 2   # at night",
        "+     replicas: 3   # at night",
    ]
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/nginx:1.15/nginx:1.16/")
    before = web.read_text()
    assert kubepy("edit", "deploy", "web").out == "deployment.apps/web edited\n"
    assert [line for line in changes(before, web) if "generation" not in line] == [
        "-               image: 'nginx:1.15'",
        "+               image: 'nginx:1.16'",
    ]
    manifest = folder / "web.yaml"
    manifest.write_text(DEPLOYMENT.replace("1.15", "1.17").replace("replicas: 2", "replicas: 3"))
    assert kubepy("apply", "-f", str(manifest)).status == 0
    text = web.read_text()
    assert "              image: 'nginx:1.17'\n" in text
    assert [
        line
        for line in comments(DEPLOYMENT.replace("replicas: 2", "replicas: 3"))
        if line not in text
    ] == []


def test_comment_added_to_file_of_kubepys_own_survives(kubepy: Kubepy, folder: Path) -> None:
    kubepy("create", "cm", "paint", "--from-literal=colour=red", "--from-literal=size=3")
    path = folder / PAINT
    path.write_text(
        path.read_text().replace("  colour: red\n", "  # of the door\n  colour: red  # or so\n")
    )
    kubepy("get", "cm")
    assert kubepy("patch", "cm", "paint", "-p", '{"data":{"colour":"blue"}}').status == 0
    assert 'data:\n  # of the door\n  colour: blue  # or so\n  size: "3"\n' in path.read_text()


def test_comments_survive_index_made_anew(kubepy: Kubepy, agent: Path, folder: Path) -> None:
    before = agent.read_text()
    subprocess.run(["rm", "-r", folder / "state" / ".kubepy"], check=True)
    assert kubepy("annotate", "ds", "agent", "note=x").status == 0
    assert changes(before, agent) == ["+     note: x"]


def test_commented_secret_stays_private(kubepy: Kubepy, folder: Path) -> None:
    kubepy("create", "secret", "generic", "key", "--from-literal=a=b")
    path = folder / "state/namespaces/default/secrets/key.yaml"
    path.write_text("# whose\n" + path.read_text())
    assert kubepy("label", "secret", "key", "x=y").status == 0
    assert path.read_text().startswith("# whose\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_writing_canonical_files_does_not_load_merge(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "paint", "--from-literal=colour=red")
    code = (
        "import sys; from kubepy.cli.main import main; main(['label', 'cm', 'paint', 'a=b']); "
        "print([name for name in sys.modules if 'roundtrip' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "configmap/paint labeled\n[]\n"
