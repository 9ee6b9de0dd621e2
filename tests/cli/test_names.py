"""kubepy under other names: through a link named ``kubectl``, and as a plugin of kubectl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from kubepy.cli.commands import COMMANDS
from kubepy.cli.main import main
from kubepy.cli.names import program_of, renamed
from kubepy.cli.program import called_as
from kubepy.cli.runtime.command import walk
from tests.cli.conftest import Done

SCRIPTS = Path(sysconfig.get_path("scripts"))
REAL = shutil.which("kubectl")


class Linked:
    """A folder with a link to kubepy, which is the first of the PATH."""

    def __init__(self, folder: Path, name: str) -> None:
        (folder / "bin").mkdir(exist_ok=True)
        self.bin = folder / "bin"
        self.program = self.bin / name
        self.program.symlink_to(SCRIPTS / "kubepy")

    def __call__(self, *words: str, stdin: str = "") -> Done:
        path = f"{self.bin}{os.pathsep}/usr/bin{os.pathsep}/bin"
        done = subprocess.run(
            [str(self.program), *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": path},
            timeout=60,
        )
        return Done(done.stdout, done.stderr, done.returncode)

    def plugin(self, name: str, text: str = 'echo "$0" "$@"\nexit 7\n') -> str:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)
        return str(path)


@pytest.fixture
def kubectl(folder: Path) -> Linked:
    return Linked(folder, "kubectl")


def test_link_named_kubectl_says_kubectl_in_errors(kubectl: Linked) -> None:
    assert kubectl("logz") == Done(
        "", 'error: unknown command "logz" for "kubectl"\n\nDid you mean this?\n\tlogs\n', 1
    )
    assert kubectl("get", "--bogus").err == (
        "error: unknown flag: --bogus\nSee 'kubectl get --help' for usage.\n"
    )
    assert kubectl("rollout", "bogus").err == (
        "error: unknown command \"bogus\"\nSee 'kubectl rollout -h' for help and examples\n"
    )
    assert (
        kubectl("--version").err
        == "error: unknown flag: --version\nSee 'kubectl --help' for usage.\n"
    )
    assert kubectl("get", "pods").err.startswith(
        'error: no cluster in "state": make one with "kubectl init", or'
    )
    assert 'Use "kubectl api-resources" for a complete list' in kubectl("get").err
    assert "kubepy" not in kubectl("init").out


def test_kubectl_does_not_suggest_commands_of_kubepy(kubectl: Linked) -> None:
    assert "\tcontroller" not in kubectl("controllers").err
    assert "\nSee 'kubectl controller -h'" in kubectl("controller").err


@pytest.mark.parametrize("name", ["", *(name for name, entry in walk(COMMANDS) if entry.summary)])
def test_help_of_kubectl_has_no_word_of_kubepy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setenv("PATH", "/nowhere")  # kubepy itself may be a plugin on the PATH
    out = io.StringIO()
    assert main([*name.split(), "--help"], program="kubectl", stdout=out) == 0
    text = out.getvalue()
    for word in (
        "rename-context kubepy",
        "kubepy.dev/",
        "kubepy.yaml",
        "kubepy-plan.yaml",
        ".kubepy",
        "kubepy-intent",
        "complete-kubepy",
    ):
        text = text.replace(word, "")
    assert [line for line in text.splitlines() if "kubepy" in line] == []


def test_help_of_kubectl_lists_commands_of_kubectl_only(kubectl: Linked) -> None:
    text = kubectl("help").out
    assert "\n  get " in text
    assert "State Folder Commands" not in text
    assert "\n  fsck" not in text
    assert text.endswith(
        'Use "kubectl options" for a list of global command-line options (applies to all '
        "commands).\n"
    )
    options = kubectl("options").out
    assert "--kubeconfig=''" in options
    assert "--state" not in options


def test_version_of_kubectl(kubectl: Linked) -> None:
    assert (
        kubectl("version").out
        == "Client Version: v1.36.0\nKustomize Version: v5.8.1\nServer Version: v1.36.0\n"
    )
    versions = json.loads(kubectl("version", "-o", "json").out)
    assert list(versions) == ["clientVersion", "kustomizeVersion", "serverVersion"]
    assert list(versions["clientVersion"]) == [
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ]
    assert versions["serverVersion"]["emulationMinor"] == versions["serverVersion"]["minor"] == "36"


def test_kubectl_writes_its_name_into_objects(kubectl: Linked) -> None:
    kubectl("init", "--nodes=1")
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("set", "image", "deploy/web", "nginx=nginx:2", "--record")
    web = json.loads(kubectl("get", "deploy", "web", "-o", "json", "--show-managed-fields").out)
    assert web["metadata"]["annotations"]["kubernetes.io/change-cause"] == (
        "kubectl set image deploy/web nginx=nginx:2 --record=true"
    )
    assert {entry["manager"] for entry in web["metadata"]["managedFields"]} <= {
        "kubectl-create",
        "kubectl-set",
        "kube-controller-manager",
    }


def test_kubectl_names_itself_to_the_server(kubectl: Linked) -> None:
    kubectl("init")
    assert "User-Agent: kubectl/v1.36.0" in kubectl("get", "ns", "-v=7").err


def test_kubectl_finds_its_plugins(kubectl: Linked) -> None:
    path = kubectl.plugin("kubectl-foo-bar_baz")
    kubectl.plugin("kubepy-other")
    assert kubectl("foo", "bar-baz", "a", "--flag") == Done(f"{path} a --flag\n", "", 7)
    assert kubectl("foo", "bar_baz", "a").out == f"{path} a\n"
    assert kubectl("other").err.startswith('error: unknown command "other" for "kubectl"')
    assert kubectl("plugin", "list") == Done(
        f"The following compatible plugins are available:\n\n{path}\n", "", 0
    )
    get = kubectl.plugin("kubectl-get")
    assert kubectl("plugin", "list").err == (
        '  - warning: kubectl-get overwrites existing command: "kubectl get"\n'
        "error: one plugin warning was found\n"
    )
    assert get in kubectl("plugin", "list").out
    assert "Subcommands provided by plugins:\n  foo " in kubectl("help").out


def test_script_that_executes_kubepy_counts_as_link(folder: Path) -> None:
    assert called_as(["/venv/bin/kubepy", "get"]) == ("kubepy", ["get"])
    (folder / "kubectl").write_text(f'#!/bin/dash\nexec {SCRIPTS / "kubepy"} "$@"\n')
    (folder / "kubectl").chmod(0o755)
    if not os.path.exists("/bin/dash"):
        pytest.skip("sh is not dash")
    done = subprocess.run(
        ["bash", "-c", "./kubectl bogus; true"], capture_output=True, text=True, check=True
    )
    assert done.stderr.startswith('error: unknown command "bogus" for "kubectl"')


# --- completion -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "out", "directive"),
    [
        (["ro"], "rollout\tManage the rollout of a resource\n:4\n", "NoFileComp"),
        (["rollout", "un"], "undo\tUndo a previous rollout\n:4\n", "NoFileComp"),
        (["get", "deploy"], "deployments.apps\n:4\n", "NoFileComp"),
        (
            ["get", "-o", "js"],
            "json\njsonpath-as-json\njsonpath-file\njsonpath\n:4\n",
            "NoFileComp",
        ),
        (["get", "--output=ya"], "yaml\n:4\n", "NoFileComp"),
        (["get", "-f", ""], "json\nyaml\nyml\n:8\n", "FilterFileExt"),
        (["apply", "-k", ""], ":16\n", "FilterDirs"),
        (
            ["get", "--all-names"],
            "--all-namespaces\tIf present, the objects across all namespaces. The namespace of "
            "--namespace is ignored.\n:4\n",
            "NoFileComp",
        ),
        (["get", "pods", "--bogus", ""], ":0\n", "Default"),
        (["bogus", ""], ":0\n", "Default"),
        (["fs"], ":4\n", "NoFileComp"),
        (
            ["fsck", "--rep"],
            "--repair\tRepair everything that can be repaired without guessing.\n:4\n",
            "NoFileComp",
        ),
    ],
)
def test_complete_speaks_the_form_of_cobra(
    kubectl: Linked, words: list[str], out: str, directive: str
) -> None:
    done = kubectl("__complete", *words)
    if words[0] == "fsck":
        assert done.out.startswith("--repair\t")
        return
    assert done == Done(out, f"Completion ended with directive: ShellCompDirective{directive}\n", 0)


def test_complete_without_words_fails_and_without_descriptions_prints_names(
    kubectl: Linked,
) -> None:
    assert kubectl("__complete") == Done(
        "", "Error: requires at least 1 arg(s), only received 0\n", 1
    )
    assert kubectl("__completeNoDesc", "ro").out == "rollout\n:4\n"


def test_completion_of_plugin_is_left_to_its_program(kubectl: Linked) -> None:
    kubectl.plugin("kubectl-foo")
    assert (
        kubectl("__complete", "fo").out
        == "foo\tThe command foo is a plugin installed by the user\n:4\n"
    )
    assert kubectl("__complete", "foo", "a").out == ":0\n"
    kubectl.plugin("kubectl_complete-foo", 'printf "%s\\n" apple "$1" :6\n')
    assert kubectl("__complete", "foo", "a").out == "apple\na\n:6\n"


def test_completion_scripts_are_named_after_the_program(kubectl: Linked) -> None:
    bash = kubectl("completion", "bash").out
    assert "kubepy" not in bash
    assert "__start_kubectl()" in bash
    assert "complete -F _kubectl kubectl\n" in bash
    assert kubectl("completion", "zsh").out.startswith("#compdef kubectl\n")
    script = (
        f"{bash}COMP_WORDS=(k rollout un); COMP_CWORD=2; COMP_LINE='k rollout un'; COMP_POINT=12\n"
        "__start_kubectl k un rollout; echo ${COMPREPLY[*]}\n"
    )
    path = f"{kubectl.bin}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path},
    )
    assert done.stdout == "undo\n"


# --- as a plugin of kubectl -----------------------------------------------------------------------


def test_plugin_names_itself_with_kubectl(folder: Path) -> None:
    plugin = Linked(folder, "kubectl-kubepy")
    assert plugin("bogus").err.startswith('error: unknown command "bogus" for "kubectl kubepy"')
    assert plugin("get", "--bogus").err.endswith("See 'kubectl kubepy get --help' for usage.\n")
    text = plugin("get", "--help").out
    assert "\n  kubectl kubepy get " in text
    assert text.endswith(
        'Use "kubectl kubepy options" for a list of global command-line options (applies to all '
        "commands).\n"
    )
    assert "State Folder Commands" in plugin("help").out
    assert plugin("--version").out.startswith("kubepy ")


@pytest.mark.skipif(REAL is None, reason="no kubectl on the PATH")
def test_real_kubectl_runs_and_completes_plugin(folder: Path) -> None:
    for name in ("kubectl-kubepy", "kubectl_complete-kubepy"):
        Linked(folder, name)
    env = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.defpath}"}

    def real(*words: str) -> str:
        return subprocess.run(
            [str(REAL), *words], capture_output=True, text=True, env=env, check=True
        ).stdout

    assert "kubectl-kubepy" in real("plugin", "list")
    real("kubepy", "init", "--nodes=1")
    assert real("kubepy", "get", "nodes", "-o", "name") == "node/node-1\n"
    assert real("__complete", "kubepy", "cordon", "no") == "node-1\n:4\n"


# --- python -m kubepy -----------------------------------------------------------------------------


def test_module_is_the_same_program(folder: Path) -> None:
    def run(*command: str) -> Done:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return Done(done.stdout, done.stderr, done.returncode)

    for words in (["--version"], ["bogus"], ["get", "--bogus"], ["rollout", "-h"], []):
        assert run(sys.executable, "-m", "kubepy", *words) == run(str(SCRIPTS / "kubepy"), *words)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('run "kubepy init" first', 'run "kubectl init" first'),
        ("kubepy's own", "kubectl's own"),
        ("see .kubepy/config and kubepy.yaml", "see .kubepy/config and kubepy.yaml"),
        ('namespaces "kubepy" not found', 'namespaces "kubepy" not found'),
        ("open /srv/kubepy is: gone", "open /srv/kubepy is: gone"),
        ("No resources found in kubepy namespace.", "No resources found in kubepy namespace."),
    ],
)
def test_only_the_program_is_renamed(text: str, wanted: str) -> None:
    assert renamed(text, "kubectl") == wanted
    assert renamed(text, "kubepy") == text


def test_program_in_path_of_command() -> None:
    assert [
        program_of(path)
        for path in ("kubepy", "kubectl get", "kubectl kubepy get", "kubectl kubepyx")
    ] == ["kubepy", "kubectl", "kubectl kubepy", "kubectl"]
