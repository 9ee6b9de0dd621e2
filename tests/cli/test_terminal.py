"""What arrives at a terminal: letters and line breaks in its encoding, kubepy's own colours, and
nothing else.

Objects, files and contexts hold characters that would steer a terminal, in every field that takes
them, and each command prints to a pseudo-terminal. In a pipe the texts stay as kubectl prints them,
in UTF-8 whatever the locale is.
"""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import tty
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kubepy
from kubepy.terminal import Colour, Painter, Terminal, encoding_of_process, guard
from tests.cli.conftest import Kubepy, run
from tests.forkserver import ForkServer

# A title, an 8-bit blink, a bell, a backspace, an overwritten line, bidirectional marks, a hidden
# character, and what some terminals take for line breaks.
HOSTILE = (
    "a\x1b]0;TITLE\x07b\x1b[5mc\x9b5md\be\rOVERWRITTEN\x0b\x0cf\x7f\x85g\u061c\u200e\u200f\u202e"
    "\u2066h\u200b"
    "\u2028\u2029\U000e0041z"
)
# The same without the controls: YAML prints such a text as it stands.
MARKS = "a\u061c\u200e\u200f\u202eb\u2066\u200b\U000e0041z"
STEERING = [
    *sorted({character for character in HOSTILE if not character.isprintable()} - {"\r"}),
    "\rOVERWRITTEN",
]
OWN = re.compile(r"\x1b\[(0|[1-7]|3[1-6])(;([1-7]|3[1-6]))*m")  # colours of kubepy.terminal
KINDS = (
    "configmaps,secrets,pods,deployments,daemonsets,replicasets,controllerrevisions,jobs,"
    "events,roles,rolebindings"
)


class Lab(NamedTuple):
    folder: Path
    text: str


COMMANDS = (
    "logs bare",
    "logs bare --timestamps --prefix",
    "logs deploy/x",
    "logs x",
    "get {all}",
    "get {all} -o wide --show-labels",
    "get {all} -o yaml",
    "get {all} -o json",
    "get {all} -o kyaml",
    "get {all} -o name",
    "get {all} -o custom-columns=A:.metadata.annotations,B:.data,C:.spec",
    "get {all} -o jsonpath={{..note}}{{..key}}{{..message}}",
    "get {all} -o jsonpath-as-json={{.items[*].metadata}}",
    "get {all} -o go-template={{{{range.items}}}}{{{{.metadata.annotations}}}}{{{{.}}}}{{{{end}}}}",
    "get cm x -L {hostile}",
    "get cm --sort-by=.data.key -o yaml",
    "get toys",
    "get toys -o wide",
    "get toys x -o yaml",
    "get events",
    "get events -o yaml",
    "get --raw /api/v1/namespaces/default/configmaps/x",
    "get --raw /api/v1/namespaces/default/events",
    "get cm x -o yaml --show-managed-fields",
    "get pods -v=8",
    "describe {all}",
    "describe toys",
    "describe storageclass x",
    "describe priorityclass x",
    "describe crd",
    "events",
    "describe nodes",
    "get nodes -o yaml",
    "events --for pod/bare -o yaml",
    "explain toys",
    "explain toys --recursive",
    "explain toys.spec",
    "explain toys.spec.a",
    "explain toys --output=plaintext-openapiv2",
    "rollout history deploy/x",
    "rollout history deploy/x --revision=1",
    "rollout history deploy/x -o wide",
    "rollout history ds/x",
    "rollout history ds/x --revision=1",
    "rollout history ds/x -o yaml",
    "rollout diff deploy/x",
    "rollout diff deploy/x -o yaml",
    "rollout status deploy/x --timeout=1s",
    "rollout undo deploy/x --dry-run=client",
    "rollout restart deploy/x --dry-run=server -o yaml",
    "annotate cm/x --list",
    "annotate {all} --list --all",
    "label cm/x --list",
    "set env deploy/x --list",
    "set env ds/x A=b",
    "set env deploy/x --list --resolve",
    "set image deploy/x c={hostile} -o yaml --dry-run=client",
    "set image deploy/x c={hostile}",
    "annotate cm/x note={hostile} --overwrite",
    "label cm/x note={hostile}",
    "apply view-last-applied cm/x",
    "apply view-last-applied cm/x -o json",
    "diff -f given.yaml",
    "apply -f given.yaml",
    "apply -f given.yaml --dry-run=server -o yaml",
    "apply -f given.yaml --server-side -v=8",
    "create -f given.yaml",
    "replace -f given.yaml --dry-run=client -o yaml",
    "apply -f folder",
    "apply -f bad.yaml",
    "create -f bad.yaml",
    "apply -k folder",
    "kustomize kustomization",
    'patch cm x -p {{"data":{{"k":"{hostile}"}}}}',
    'patch cm x --type=json -p [{{"op":"remove","path":"/{hostile}"}}]',
    "delete cm {hostile}",
    "create cm y --from-literal=a={hostile} -o yaml",
    "create cm {hostile}",
    "get {hostile}",
    "{hostile}",
    "run y --image={hostile} --dry-run=client -o yaml",
    "run {hostile} --image=x",
    "create -f {hostile}",
    "config view",
    "config get-contexts",
    "config get-clusters",
    "config get-users",
    "config current-context",
    "config use-context {hostile}",
    "config use-context own",
    "--context {hostile} get cm",
    "config view --raw -o json",
    "kuberc view",
    "api-resources",
    "api-resources -o wide",
    "api-versions",
    "cluster-info",
    "cluster-info dump",
    "top pods",
    "top nodes",
    "auth whoami",
    "auth can-i --list",
    "auth can-i get {hostile}",
    "wait pod/bare --for=condition={hostile} --timeout=1s",
    "drain node-1 --dry-run=client",
    "drain node-1",
    "taint node node-1 a={hostile}:NoSchedule",
    "uncordon node-1",
    "fsck",
    "fsck -v=1",
    "controller --once",
    "controller --until-settled",
    "clock",
    "plan",
    "plan rollout restart ds/x",
    "plan set image deploy/x c={hostile}",
    "plan delete cm {hostile}",
    "plan -o json rollout restart ds/x",
    "timeline",
    "timeline ds/x",
    "timeline -o json",
    "timeline -o svg",
    "timeline -o html",
    "timeline -o trace",
    "why deploy/x",
    "why ds/x",
    "why pod/bare",
    "why pod/bare -o yaml",
    "why job/x",
    "why toys/x",
    "plugin list",
    "plugin list --name-only",
    "plug{hostile}",
    "version -o {hostile}",
    "help {hostile}",
    "{hostile} --help",
    "--{hostile}",
    "get --{hostile}",
    "completion {hostile}",
    "__complete get cm {empty}",
    "__complete -- {empty}",
    "__complete config use-context {empty}",
    "git setup",
    "git refresh",
    "git resolve",
    "edit cm x",
    "fork {hostile}",
    "get cm -f {hostile}/x.yaml",
    "--state {hostile} get cm",
    "init",
    "get cm --watch --request-timeout=1s",
    "certificate approve {hostile}",
    "autoscale deploy x --max=1 --name={hostile}",
    "expose deploy x --port={hostile}",
    "scale deploy/x --replicas={hostile}",
    "--kubeconfig={hostile} get cm",
    "get cm --state={hostile}",
)


@pytest.fixture(params=[HOSTILE, MARKS], ids=["controls", "marks"])
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Lab:
    """A folder with a cluster, manifests, contexts and a plugin, with hostile texts in all of
    them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBEPY_STATE", raising=False)
    fill(tmp_path, request.param)
    return Lab(tmp_path, request.param)


def fill(folder: Path, text: str) -> None:
    given = objects_with(text)
    definitions = [obj for obj in given if obj["kind"] == "CustomResourceDefinition"]
    others = [obj for obj in given if obj not in definitions]
    for words, objects in (
        ("init --nodes=1", ()),
        ("apply -f -", definitions),
        ("apply -f -", others),
        ("controller --once", ()),
    ):
        done = run(*words.split(), stdin=documents(objects))
        assert done.status == 0, done.err
    for kind in ("deploy/x", "ds/x"):
        assert run("set", "env", kind, "B=c").status == 0
        assert (
            run("annotate", kind, f"kubernetes.io/change-cause={text}2", "--overwrite").status == 0
        )
    assert run("controller", "--once").status == 0
    for name in ("pod/bare", "node/node-1", "deploy/x"):
        done = run(
            "patch",
            name,
            "--subresource=status",
            "--type=merge",
            "-p",
            json.dumps(
                {
                    "status": {
                        "conditions": [
                            {"type": kind, "status": "False", "reason": text, "message": text}
                            for kind in ("Odd", "Ready")
                        ]
                    }
                }
            ),
        )
        assert done.status == 0, done.err
    config = folder / "state" / ".kubepy" / "config"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "own",
                "contexts": [
                    {
                        "name": name,
                        "context": {"cluster": text, "user": text, "namespace": "default"},
                    }
                    for name in ("own", text)
                ],
                "clusters": [{"name": text, "cluster": {"server": f"file://{folder}/state"}}],
                "users": [{"name": text, "user": {"token": text}}],
            }
        )
    )
    (folder / "given.yaml").write_text(
        documents(
            {**obj, "metadata": {**obj["metadata"], "annotations": {"note": f"{text}3"}}}
            for obj in given
            if obj["kind"] not in ("Job", "Event")
        )
    )
    (folder / "bad.yaml").write_text(
        json.dumps({"apiVersion": "v1", "kind": text, "metadata": {"name": text}, text: 1})
    )
    for made in ("folder", "kustomization"):
        (folder / made).mkdir()
    file_name = text.replace("/", "") + ".yaml"
    (folder / "folder" / file_name).write_text('{"apiVersion": "v1", "kind": "ConfigMap"')
    (folder / "kustomization" / "kustomization.yaml").write_text(
        json.dumps(
            {
                "configMapGenerator": [{"name": "x", "literals": [f"a={text}"]}],
                "commonAnnotations": {"b": text},
            }
        )
    )
    own = folder / "state" / "namespaces" / "default" / "configmaps"
    (own / file_name).write_text(json.dumps({"metadata": {"name": text}}))
    (own / "broken.yaml").write_text(f"{{{json.dumps(text)}: [")
    (folder / "bin").mkdir()
    plugin = folder / "bin" / f"kubepy-{text}"
    plugin.write_text("#!/bin/sh\n")


def objects_with(text: str) -> list[dict[str, Any]]:
    """Return objects that hold a text wherever the API takes one."""
    template: Any = {
        "metadata": {"labels": {"app": "x"}, "annotations": {"note": text}},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "nginx",
                    "command": ["sh", text],
                    "args": [text],
                    "env": [{"name": "A", "value": text}],
                }
            ]
        },
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "x", "annotations": {"note": text}},
            "data": {"key": text, "lines": f"{text}\n{text}\n"},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "x"},
            "stringData": {"key": text},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "bare", "annotations": {"note": text, "kubepy.dev/log": text}},
            "spec": template["spec"],
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "x", "annotations": {"kubernetes.io/change-cause": text}},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "x", "annotations": {"kubernetes.io/change-cause": text}},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "x", "annotations": {"note": text}},
            "spec": {
                "template": {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
            },
        },
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "toys.example.org"},
            "spec": {
                "group": "example.org",
                "scope": "Namespaced",
                "names": {"plural": "toys", "kind": "Toy"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "deprecated": True,
                        "deprecationWarning": "a b",
                        "additionalPrinterColumns": [
                            {
                                "name": text,
                                "type": "string",
                                "jsonPath": ".spec.a",
                                "description": text,
                            }
                        ],
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "description": text,
                                "properties": {
                                    "spec": {
                                        "type": "object",
                                        "description": text,
                                        "properties": {
                                            "a": {"type": "string", "description": text},
                                            "e": {
                                                "type": "string",
                                                "enum": ["", text],
                                                "description": text,
                                            },
                                            text: {"type": "string"},
                                        },
                                    }
                                },
                            }
                        },
                    }
                ],
            },
        },
        {
            "apiVersion": "example.org/v1",
            "kind": "Toy",
            "metadata": {"name": "x"},
            "spec": {"a": text, text: "b"},
        },
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "x"},
            "reason": text,
            "message": text,
            "type": "Warning",
            "source": {"component": text},
            "reportingComponent": text,
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "bare",
                "namespace": "default",
            },
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "x"},
            "provisioner": "a/b",
            "parameters": {"a": text},
            "mountOptions": [text],
        },
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "x"},
            "value": 1,
            "description": text,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "x"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": text}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "x"},
            "rules": [{"apiGroups": [text], "resources": [text], "verbs": [text]}],
        },
    ]


def documents(objects: Iterable[object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def test_hostile_texts_reach_no_terminal(lab: Lab, fork_server: ForkServer) -> None:
    leaks = {}
    for command in COMMANDS:
        words = [word.format(all=KINDS, hostile=lab.text, empty="") for word in command.split(" ")]
        shown = on_terminal([str(fork_server.program), *words], lab.folder)
        rest = OWN.sub("", shown)
        raw = [text for text in STEERING if text in rest]
        if raw or "internal error" in rest or "Traceback" in rest:
            leaks[command] = (raw, rest[:300])
    assert leaks == {}


def on_terminal(words: Sequence[str], folder: Path, **variables: str) -> str:
    """Run a program whose streams are a pseudo-terminal that changes nothing, and return what it
    has received."""
    screen, keyboard = pty.openpty()
    tty.setraw(keyboard)
    environment = {
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "HOME": str(folder),
        "EDITOR": "true",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm",
        **variables,
    }
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=keyboard,
        stderr=keyboard,
    )
    os.close(keyboard)
    received = b""
    while True:
        try:
            part = os.read(screen, 65536)
        except OSError:  # the last process with the terminal has ended
            break
        if not part:
            break
        received += part
    process.wait()
    os.close(screen)
    return received.decode()


# --- the stream -----------------------------------------------------------------------------------


class Screen(io.StringIO):
    """A terminal in memory."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a^[[31mb"),
        ("a\rb", "a\\rb"),
        ("a\x9bb", "a\\u009bb"),
        ("a\x07\bb", "a\\a\\bb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u2028b", "a\\u2028b"),
        ("a\udcffb", "a\\xffb"),
        ("a\tb\nc", "a\tb\nc"),
        ("é☃ 日本　語", "é☃ 日本　語"),
    ],
)
def test_terminal_shows_what_would_steer_it_as_escape_sequence(text: str, shown: str) -> None:
    screen = Screen()
    guard(screen).write(text)
    assert screen.getvalue() == shown


def test_terminal_passes_own_colours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Screen()
    terminal = guard(screen)
    terminal.write(Painter(terminal)("a\x1b[5mb", Colour.RED, Colour.BOLD) + "\x1b[5mc")
    assert screen.getvalue() == "\x1b[31;1ma^[[5mb\x1b[0m^[[5mc"


def test_terminal_takes_marks_of_another_for_text() -> None:
    screen = Screen()
    stolen = Terminal(Screen()).controls("\x1b[5m")
    guard(screen).write(stolen)
    assert "\x1b" not in screen.getvalue()


def test_guard_leaves_pipes_and_terminals_that_are_guarded() -> None:
    pipe, terminal = io.StringIO(), guard(Screen())
    assert guard(pipe) is pipe
    assert guard(terminal) is terminal


@pytest.mark.parametrize(
    ("variables", "encoding"),
    [
        ({}, "utf-8"),
        ({"LC_ALL": "C"}, "ascii"),
        ({"LANG": "POSIX"}, "ascii"),
        ({"LC_ALL": "C.UTF-8"}, "UTF-8"),
        ({"LC_ALL": "", "LANG": "de_DE.ISO-8859-1@euro"}, "ISO-8859-1"),
        ({"LC_ALL": "x.none"}, "utf-8"),
        ({"LC_ALL": "x.UTF-16"}, "utf-8"),
        ({"PYTHONIOENCODING": "latin-1:strict", "LC_ALL": "C"}, "latin-1"),
    ],
)
def test_encoding_of_process_is_that_of_environment(
    variables: dict[str, str], encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "PYTHONIOENCODING"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert encoding_of_process("utf-8") == encoding


def test_only_the_streams_of_commands_are_written_to() -> None:
    """Find writers that would go past the guard: streams are named by the program, the factory and
    git's filter."""
    package = Path(kubepy.__file__).parent
    named = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"sys\.(__)?(stdout|stderr)|(?<![\w.])(?<!def )print\(", path.read_text())
    }
    assert named == {
        "cli/program.py",
        "cli/runtime/factory.py",
        "cli/git/intent.py",
        "comments.py",  # a program of its own
        "server/controllers.py",
        "server/envtest/apiserver.py",  # programs of their own
        "server/envtest/etcd.py",
        "shell/utilities/pythonscript.py",  # a word of the programs that it carries out
        "scripting.py",
    }


# --- locales --------------------------------------------------------------------------------------

LOCALES: tuple[dict[str, str], ...] = (
    {},
    {"LC_ALL": "C"},
    {"LC_ALL": "C.UTF-8"},
    {"LANG": "POSIX"},
    {"LC_ALL": "de_DE.ISO-8859-1"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONIOENCODING": "latin-1"},
)
PROGRAM = [sys.executable, "-m", "kubepy"]


@pytest.fixture
def pictures(bare: Kubepy, folder: Path) -> Path:
    """A folder whose cluster makes plan and timeline draw bars, with a text that is not ASCII."""
    for words in (
        "init --nodes=3 --clock=2026-01-01T00:00:00Z --seed=7",
        "create deployment web --image=web:1 --replicas=12",
        "annotate deploy/web note=é☃",
        "controller --until-settled",
        "set image deploy/web web=web:2",
        "controller --until-settled",
    ):
        assert bare(*words.split()).status == 0
    return folder


DRAWN = ("plan set image deploy/web web=web:3", "timeline deploy/web")


def in_pipe(folder: Path, words: str, **variables: str) -> bytes:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    return subprocess.run(
        [*PROGRAM, *words.split()], cwd=folder, env=environment, capture_output=True, check=False
    ).stdout


@pytest.mark.parametrize(
    "words", [*DRAWN, "get deploy web -o jsonpath={.metadata.annotations.note}"]
)
def test_pipe_gets_same_bytes_in_every_locale(pictures: Path, words: str) -> None:
    first, *others = [in_pipe(pictures, words, **variables).decode() for variables in LOCALES]
    assert not first.isascii()
    assert set(others) == {first}


@pytest.mark.parametrize("words", DRAWN)
def test_pictures_on_terminal_use_its_encoding(pictures: Path, words: str) -> None:
    command = [*PROGRAM, *words.split()]
    assert not on_terminal(command, pictures).isascii()
    assert on_terminal(command, pictures, LC_ALL="C").isascii()
    assert on_terminal([*command, "--ascii"], pictures).isascii()


@pytest.mark.parametrize("words", DRAWN)
def test_ascii_flag_draws_pictures_in_ascii_everywhere(pictures: Path, words: str) -> None:
    plain = in_pipe(pictures, f"--ascii {words}", LC_ALL="C.UTF-8").decode()
    assert plain.isascii()
    assert "###" in plain


def test_text_on_terminal_that_cannot_show_it_is_escaped(pictures: Path) -> None:
    words = [*PROGRAM, "get", "deploy", "web", "-o", "jsonpath={.metadata.annotations.note}"]
    assert on_terminal(words, pictures, LC_ALL="C") == "\\xe9\\u2603"
    assert on_terminal(words, pictures, LC_ALL="de_DE.UTF-8") == "é☃"


# --- other programs, and pipes --------------------------------------------------------------------


def test_external_diff_program_has_the_terminal_itself(kubepy: Kubepy, folder: Path) -> None:
    program = folder / "coloured"
    program.write_text("#!/bin/sh\ntest -t 1 && printf '\\033[31mred'\nexit 1\n")
    program.chmod(0o755)
    (folder / "x.yaml").write_text(
        '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}'
    )
    assert "\x1b[31mred" in on_terminal(
        [*PROGRAM, "diff", "-f", "x.yaml"], folder, KUBECTL_EXTERNAL_DIFF=str(program)
    )


def test_texts_in_pipe_stay_as_they_are(paint: Kubepy) -> None:
    paint("annotate", "cm", "paint", f"note={HOSTILE}")
    assert paint("annotate", "cm", "paint", "--list").out == f"note={HOSTILE}\n"
    assert paint("get", "cm", "paint", "-o", "jsonpath={.metadata.annotations.note}").out == HOSTILE


def test_lines_of_logs_end_where_the_container_ended_them(kubepy: Kubepy, folder: Path) -> None:
    kubepy("run", "x", "--image=nginx", f"--annotations=kubepy.dev/log={HOSTILE}")
    kubepy(
        "create", "-f", "-", stdin='{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}'
    )
    kubepy("controller", "--once")
    assert kubepy("logs", "x", "--prefix").out == f"[pod/x/x] {HOSTILE}\n"


def test_completion_leaves_out_what_nobody_can_type(kubepy: Kubepy) -> None:
    kubepy("config", "set-context", HOSTILE, "--namespace=x")
    kubepy("config", "set-context", "plain", "--namespace=x")
    names = kubepy("__complete", "config", "use-context", "").out.splitlines()
    assert "plain" in names
    assert all(map(str.isprintable, names))


def test_filter_of_git_on_terminal_says_who_calls_it(folder: Path) -> None:
    assert on_terminal([*PROGRAM, "git", "filter"], folder) == (
        "error: git runs this command, and talks to it through pipes\n"
    )
