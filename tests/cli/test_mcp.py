"""``kubepy mcp``, asked by the client of the library ``mcp`` over standard input and output."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kubepy.cli.commands import COMMANDS
from kubepy.cli.main import main
from kubepy.cli.mcp import permitted
from kubepy.cli.runtime.command import load, walk
from kubepy.cli.runtime.options import GLOBAL_FLAGS
from tests.cli.conftest import run

client = pytest.importorskip("mcp.client.client", reason="the extra mcp is not installed")
stdio = pytest.importorskip("mcp.client.stdio")
anyio = pytest.importorskip("anyio")
from_thread = pytest.importorskip("anyio.from_thread")

PROGRAM = [sys.executable, "-m", "kubepy.cli.program"]
SECRET = "a line that nobody may read"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: paint}\ndata: {colour: red}\n"
WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: outside}
webhooks:
- name: outside.example.com
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {url: "https://127.0.0.1:9/"}
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps]}
"""

Arguments = dict[str, Any]
Call = tuple[str, Arguments]


class Answer(NamedTuple):
    """The answer to a call: its texts, and whether it is an error."""

    texts: list[str]
    is_error: bool

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def converse(folder: Path, calls: Sequence[Call], *words: str) -> list[Answer]:
    """Start a server in a folder, and return its answers to calls that are made one by one."""
    return anyio.run(_converse, folder, calls, words)


async def _converse(folder: Path, calls: Sequence[Call], words: Sequence[str]) -> list[Answer]:
    async with client.Client(stdio.stdio_client(server_in(folder, words))) as session:
        return [await answer_of(session, call) for call in calls]


def server_in(folder: Path, words: Sequence[str]) -> Any:
    """Return how a client starts a server in a folder."""
    return stdio.StdioServerParameters(
        command=PROGRAM[0],
        args=[*PROGRAM[1:], "mcp", *words],
        cwd=str(folder),
        env={"KUBEPY_SECRET": SECRET, "EDITOR": "touch"},
    )


async def answer_of(session: Any, call: Call) -> Answer:
    """Return the answer to a call of a tool."""
    result = await session.call_tool(*call)
    return Answer([block.text for block in result.content], result.is_error)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cluster in ``state``: a Deployment of three pods on three nodes."""
    folder = tmp_path_factory.mktemp("mcp")
    before = os.getcwd()
    os.chdir(folder)
    try:
        assert run("init", "--nodes=3", "--clock=2026-01-01T00:00:00Z", "--seed=7").status == 0
        run("create", "deployment", "web", "--image=web:1", "--replicas=3")
        assert run("rollout", "status", "deploy/web").status == 0
    finally:
        os.chdir(before)
    (folder / "secret.yaml").write_text(f"apiVersion: v1\n# {SECRET}\n")
    return folder


def digest(folder: Path) -> dict[str, str]:
    """Return a digest of each file that is not this machine's own."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and ".kubepy" not in path.parts
    }


Ask = Callable[..., Answer]
AskAll = Callable[[Sequence[Call]], list[Answer]]


@pytest.fixture(scope="module")
def ask_all(cluster: Path) -> Iterator[AskAll]:
    """A function that makes calls one by one, of one server for all tests that need none of their
    own."""
    session_of = client.Client(stdio.stdio_client(server_in(cluster, ())))
    with (
        from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(session_of) as session,
    ):
        yield lambda calls: [portal.call(answer_of, session, call) for call in calls]


@pytest.fixture(scope="module")
def ask(ask_all: AskAll) -> Ask:
    """A function that makes one call of a tool."""

    def call(tool: str, **arguments: Any) -> Answer:
        [answer] = ask_all([(tool, arguments)])
        return answer

    return call


@pytest.fixture(scope="module")
def fork(ask: Ask) -> str:
    """The id of a fork on which nothing has been done."""
    name, is_kept = ask("run_on_fork", commands=["clock"], keep=True).texts[1].split(" ", 1)
    assert is_kept == "is kept"
    return name


# --- tools ----------------------------------------------------------------------------------------


def test_tools_read_plan_ask_and_rehearse(cluster: Path, ask_all: AskAll) -> None:
    before = digest(cluster)
    read, plan, document, why, timeline, undone = ask_all(
        [
            ("read", {"command": "kubectl get deployments"}),
            ("plan", {"command": "set image deploy/web web=web:2", "ready_after": "10s"}),
            ("plan", {"command": ["delete", "deploy", "web"], "output": "json"}),
            ("why", {"objects": ["deploy/web"]}),
            ("timeline", {"objects": ["deploy/web"], "output": "json"}),
            ("why", {}),
        ]
    )
    assert read.texts[0].splitlines()[0].split() == [
        "NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE",
    ]  # fmt: skip
    assert "web    3/3     3            3" in read.texts[0]
    assert "Finishes after 30s." in plan.texts[0]
    assert json.loads(document.texts[0])["finishes"] is True
    assert "deployment.apps/web is done" in why.texts[0]
    assert json.loads(timeline.texts[0])["workloads"][0]["name"] == "web"
    assert undone.texts == ["everything is done\n"]
    assert not any(answer.is_error for answer in (read, plan, document, why, timeline, undone))
    assert digest(cluster) == before


def test_plan_that_does_not_finish_has_exit_status_2_and_is_no_error(ask: Ask) -> None:
    answer = ask(
        "plan", command="set image deploy/web web=web:2", **{"for": "1ms"}, ready_after="9s"
    )
    assert "Does not finish within" in answer.texts[0]
    assert answer.texts[-1] == "exit status 2"
    assert not answer.is_error


def test_rehearsal_runs_commands_in_order_and_leaves_the_cluster_alone(
    cluster: Path, ask_all: AskAll
) -> None:
    before = digest(cluster)
    commands = [
        "apply -f maps/paint.yaml",
        "get cm paint -o 'jsonpath={.data.colour}'",
        "get cm none",
        ["rollout", "restart", "deploy/web"],
        "rollout status deploy/web",
        "clock advance 10m",
        "clock",
    ]
    rehearsal, after = ask_all(
        [
            ("run_on_fork", {"commands": commands, "files": {"maps/paint.yaml": CONFIG_MAP}}),
            ("read", {"command": "get cm -o name"}),
        ]
    )
    shown, end = rehearsal.texts
    assert shown.startswith("$ apply -f maps/paint.yaml\nconfigmap/paint created\n")
    assert "\nred\n" in shown
    assert 'Error from server (NotFound): configmaps "none" not found\n(exit status 1)' in shown
    assert 'deployment "web" successfully rolled out' in shown
    assert shown.endswith("$ clock\n2026-01-01T00:10:00Z")
    assert end == "the fork is dropped; the cluster is as it was"
    assert rehearsal.is_error  # one of the commands has failed
    assert "paint" not in after.text
    assert digest(cluster) == before


def test_kept_fork_answers_until_it_is_dropped(cluster: Path) -> None:
    kept, there, more, elsewhere, dropped, gone = converse(
        cluster,
        [
            ("run_on_fork", {"commands": ["apply -f -"], "stdin": CONFIG_MAP, "keep": True}),
            ("read", {"command": "get cm -o name", "fork": "fork-1"}),
            ("run_on_fork", {"commands": ["delete cm paint"], "fork": "fork-1"}),
            ("plan", {"command": "delete cm paint", "fork": "fork-1"}),
            ("drop_fork", {"fork": "fork-1"}),
            ("read", {"command": "get cm", "fork": "fork-1"}),
        ],
    )
    assert kept.texts[1] == more.texts[1] == "fork-1 is kept"
    assert there.text == "configmap/paint\n"
    assert "(NotFound)" in elsewhere.text
    assert dropped.texts == ["fork-1 is dropped"]
    assert gone == Answer(["refused: there is no fork 'fork-1'; those that are kept: none"], True)


def test_kept_fork_outlives_a_flag_that_cannot_be_read(ask: Ask, fork: str) -> None:
    wrong = ask("plan", command="delete deploy web", fork=fork, **{"for": "soon"})
    assert wrong.is_error
    assert wrong.text.startswith('refused: plan: invalid argument "soon" for "--for" flag')
    assert ask("read", command="get deploy -o name", fork=fork).text == "deployment.apps/web\n"


# --- calls at the same time -----------------------------------------------------------------------


async def _converse_at_once(
    folder: Path, before: Call, calls: Sequence[Call], after: Sequence[Call], words: Sequence[str]
) -> tuple[list[Answer], list[int]]:
    answers: dict[int, Answer] = {}

    async def ask(session: Any, number: int) -> None:
        answers[number] = await answer_of(session, calls[number])

    async with client.Client(stdio.stdio_client(server_in(folder, words))) as session:
        await answer_of(session, before)
        async with anyio.create_task_group() as group:
            for number in range(len(calls)):
                group.start_soon(ask, session, number)
        order = list(answers)
        last = [await answer_of(session, call) for call in after]
    return [*(answers[number] for number in range(len(calls))), *last], order


def converse_at_once(
    folder: Path, before: Call, calls: Sequence[Call], *words: str, after: Sequence[Call] = ()
) -> tuple[list[Answer], list[int]]:
    """Start a server in a folder, make a call, then others at the same time, then some one by one.

    Returns the answers to all but the first, and the places of those at the same time in the order
    in which they were answered."""
    return anyio.run(_converse_at_once, folder, before, calls, after, words)


KEEP: Call = ("run_on_fork", {"commands": ["clock"], "keep": True})


def test_more_than_eight_forks_are_refused_also_at_the_same_time(cluster: Path) -> None:
    answers, _ = converse_at_once(
        cluster, KEEP, [KEEP] * 8, after=[KEEP, ("drop_fork", {"fork": "fork-3"}), KEEP]
    )
    *at_once, ninth, dropped, another = answers
    assert sorted(answer.is_error for answer in at_once) == [False] * 7 + [True]
    [refused] = [answer.text for answer in at_once if answer.is_error]
    assert refused.startswith("refused: 8 forks are kept")
    assert ninth.text.startswith("refused: 8 forks are kept")
    assert not dropped.is_error
    assert another.texts[1] == "fork-9 is kept"


def test_calls_that_wait_for_a_fork_hold_up_no_others(cluster: Path) -> None:
    endless = "exec deploy/web -- sh -c 'while true; do :; done'"
    calls: list[Call] = [
        ("run_on_fork", {"commands": [endless], "fork": "fork-1"}),
        *[("read", {"command": "clock", "fork": "fork-1"})] * 3,
        ("read", {"command": "get deploy -o name"}),
    ]
    answers, order = converse_at_once(cluster, KEEP, calls, "--timeout=3s")
    ended, *waiting, other = answers
    assert other == Answer(["deployment.apps/web\n"], False)
    assert order[0] == len(calls) - 1
    assert "took longer than 3 seconds" in ended.text
    # Those that waited have had no time yet: they hear what became of the fork.
    for answer in waiting:
        assert answer.text.startswith("refused: there is no fork 'fork-1'")


def test_output_beyond_the_bound_is_counted(ask: Ask) -> None:
    answer = ask("read", command="get pods -o json", max_output=500)
    text, left_out = answer.texts
    assert len(text) <= 500
    assert text.endswith("\n")
    lines = int(left_out.removeprefix("(").partition(" ")[0])
    whole = ask("read", command="get pods -o json", max_output=500_000).texts[0]
    assert whole.startswith(text)
    assert lines == whole.count("\n") - text.count("\n")


def test_long_plan_keeps_its_verdict(ask: Ask) -> None:
    command = "scale deploy/web --replicas=40"
    whole = ask("plan", command=command).texts[0]
    text, left_out = ask("plan", command=command, max_output=200).texts
    assert len(text) <= 200 + len("...\n")
    begin, end = text.split("...\n")
    assert whole.startswith(begin)
    assert end
    assert whole.endswith(end)
    assert int(left_out.removeprefix("(").partition(" ")[0]) == (
        whole.count("\n") - begin.count("\n") - end.count("\n")
    )


def test_long_plan_as_json_stays_valid(ask: Ask) -> None:
    command = "scale deploy/web --replicas=40"
    plan = json.loads(ask("plan", command=command, output="json", max_output=2000).texts[0])
    assert plan["leftOut"][:1] == ["numbers"]
    assert "steps" not in plan
    assert "finishes" in plan


def test_plan_takes_a_policy_and_seeds(ask: Ask) -> None:
    command = "scale deploy/web --replicas=4"
    held = ask("plan", command=command, fail_on=[], fail_if=["desired > 3"])
    assert "exit status 3" in held.text
    assert "exit status" not in ask("plan", command=command, fail_if=["desired > 9"]).text
    assert "seeds 3" in ask("plan", command=command, seeds="3..4").text.replace("seed ", "seeds ")
    assert "at most 50" in ask("plan", command=command, seeds="0..99").text


def test_call_that_takes_too_long_is_ended(cluster: Path) -> None:
    endless = "exec deploy/web -- sh -c 'while true; do :; done'"
    ended, after, fork = converse(
        cluster,
        [
            ("run_on_fork", {"commands": [endless], "keep": True}),
            ("read", {"command": "get deploy -o name"}),
            ("read", {"command": "get deploy -o name", "fork": "fork-1"}),
        ],
        "--timeout=3s",
    )
    assert ended.is_error
    assert ended.text.startswith("error: this took longer than 3 seconds and was ended")
    assert after.text == "deployment.apps/web\n"
    assert fork.is_error


def test_namespace_of_the_server_is_that_of_commands(cluster: Path) -> None:
    one, other = converse(
        cluster,
        [
            ("read", {"command": "get deploy"}),
            ("read", {"command": "get deploy -n default -o name"}),
        ],
        "-n",
        "kube-system",
    )
    assert one.text.startswith("No resources found in kube-system namespace.")
    assert other.text == "deployment.apps/web\n"


# --- writes ---------------------------------------------------------------------------------------


def test_without_allow_writes_there_is_no_tool_that_writes(ask: Ask) -> None:
    answer = ask("run", command="delete deploy web")
    assert answer == Answer(
        ["refused: this server does not change the cluster: it was started without --allow-writes"],
        True,
    )


def test_allow_writes_adds_a_tool_that_changes_the_cluster(folder: Path) -> None:
    run("init", "--nodes=1", "--clock=2026-01-01T00:00:00Z")
    created, refused, read = converse(
        folder,
        [
            ("run", {"command": "apply -f a.yaml", "files": {"a.yaml": CONFIG_MAP}}),
            ("run", {"command": "get cm --kubeconfig=/etc/passwd"}),
            ("read", {"command": "get cm -o name"}),
        ],
        "--allow-writes",
    )
    assert created.text == "configmap/paint created\n"
    assert refused.text.startswith("refused: get --kubeconfig:")
    assert "configmap/paint" in read.text
    assert run("get", "cm", "paint", "-o", "name").out == "configmap/paint\n"
    assert run("fsck").status == 0


# --- what is refused ------------------------------------------------------------------------------

REFUSED: list[tuple[str, str]] = [
    # Files of the machine
    ("apply -f /etc/passwd", "it is none of the files that came with this call"),
    ("apply -f secret.yaml", "it is none of the files"),
    ("apply --filename=../../../etc/passwd", "it is none of the files"),
    ("apply -f given.yaml,/etc/passwd", "it is none of the files"),
    ("apply -f '*.yaml'", "it is none of the files"),
    ("apply -f file:///etc/passwd", "it is none of the files"),
    ("create -f given.yaml/../../secret.yaml", "it is none of the files"),
    ("create cm a --from-file=/etc/passwd", "it reads a file of this machine"),
    ("create cm a --from-env-file=/proc/self/environ", "it reads a file of this machine"),
    ("create secret generic a --from-file=k=/etc/shadow", "it reads a file of this machine"),
    ("create secret tls a --cert=/etc/a --key=/etc/b", "it reads files of this machine"),
    ("patch deploy web --patch-file=/etc/passwd", "it is none of the files"),
    ("get pods -o go-template-file=/etc/passwd", "this server takes custom-columns"),
    ("get pods -o templatefile=/etc/passwd", "this server takes custom-columns"),
    ("get pods -o jsonpath-file=/etc/passwd", "this server takes custom-columns"),
    ("get pods -o=custom-columns-file=/etc/passwd", "this server takes custom-columns"),
    ("get pods -ogo-template --template=/etc/passwd", "it may name a file"),
    ("cp /etc/passwd web:/tmp", "it reads or writes files of this machine"),
    ("cluster-info dump --output-directory=out", "it is about files of this machine"),
    ("kustomize /etc", "it reads files of this machine"),
    ("config view --raw", "it is about files of this machine"),
    ("kuberc view", "it is about files of this machine"),
    ("debug web --image=a --custom=/etc/passwd", "it reads a file of this machine"),
    ("timeline -o html", "this server takes custom-columns"),
    ("completion bash", "it is for shells"),
    # Addresses and kustomizations elsewhere
    ("apply -f https://127.0.0.1:9/a.yaml", "it is none of the files"),
    ("apply -k https://example.com/a?ref=b", "it is none of the files"),
    ("apply -k /etc", "it is none of the files"),
    # Another cluster, another user
    ("get pods --state=/tmp/other", "the cluster is the one that this server was started with"),
    ("--state etcd://127.0.0.1:2379 get pods", "the cluster is the one"),
    ("get pods --context=other", "the cluster is the one"),
    ("get pods --cluster=/tmp/other", "the cluster is the one"),
    ("get pods --kubeconfig=/etc/passwd", "the cluster is the one"),
    ("get pods -s https://127.0.0.1:9", "the cluster is the one"),
    ("get pods --trust", "the cluster is the one"),
    ("get pods --as=root", "requests are made as the user"),
    ("get pods --user=root", "requests are made as the user"),
    ("get pods --token=x", "requests are made as the user"),
    ("get pods --kuberc=/etc/passwd", "it reads a file of this machine"),
    ("get pods --faults=/etc/passwd", "it reads a file of this machine"),
    ("get pods --cache-dir=/tmp/x", "it writes files"),
    ("get --raw /api", "it is a request of any kind"),
    ("create token default", "a token is a key"),
    # Programs, ports, and what does not end
    ("edit deploy web", "it starts an editor"),
    ("apply -f given.yaml --profile=cpu", "this server does not take it"),
    ("create -f given.yaml --edit", "it starts an editor"),
    ("apply edit-last-applied deploy web", "it starts an editor"),
    ("diff -f given.yaml", "it starts a program"),
    ("plugin list", "it starts a program"),
    ("port-forward web 80", "it opens a port"),
    ("proxy", "it opens a port"),
    ("serve", "it opens a port"),
    ("envtest-assets", "it is about files of this machine"),
    ("get pods -w", "it goes on until it is interrupted"),
    ("get pods --watch-only=true", "it goes on until it is interrupted"),
    ("logs -f deploy/web", "it goes on until it is interrupted"),
    ("events --watch", "it goes on until it is interrupted"),
    ("controller --watch", "it goes on until it is interrupted"),
    ("attach web", "it goes on until it is interrupted"),
    ("exec -it web -- sh", "nobody is there to type"),
    ("run a --image=b -i --rm", "nobody is there to type"),
    ("delete pods --all -i", "nobody is there to type"),
    # The state folder, and what is no command
    ("init --nodes=3", "it makes or checks a state folder"),
    ("fork /tmp/copy", "it makes or checks a state folder"),
    ("fsck --repair", "it makes or checks a state folder"),
    ("git setup", "it makes or checks a state folder"),
    ("trust", "it makes or checks a state folder"),
    ("mcp --allow-writes", "this is one"),
    ("__mcp /tmp", "this server does not take it"),
    ("__complete get", "this server does not take it"),
    ("plan delete deploy web", "it is a tool of its own"),
    ("no-such-command", 'unknown command "no-such-command"'),
    ("kubepy kubepy get pods", 'unknown command "kubepy"'),
    ("get pods | tee out", "no shell reads it"),
    ("get pods > out", "no shell reads it"),
    ("get 'pods", "no closing quotation"),
    ("why deploy/web --apply", "why: unknown flag: --apply"),
    ("scale deploy web --replicas=few", 'scale: invalid argument "few" for "--replicas" flag'),
    ("get pods --sort-by", "get: flag needs an argument: --sort-by"),
    ("", "name a command"),
]


@pytest.fixture(scope="module")
def refusals(cluster: Path, ask: Ask, fork: str) -> dict[str, Answer]:
    """The answers to all commands that are to be refused, each behind one that is allowed, on one
    fork."""
    before = digest(cluster)
    answers = {
        line: ask(
            "run_on_fork",
            commands=["delete deploy web", line],
            files={"given.yaml": CONFIG_MAP},
            fork=fork,
        )
        for line, _ in REFUSED
    }
    # Nothing of the calls has been done.
    assert ask("read", command="get deploy -o name", fork=fork).text == "deployment.apps/web\n"
    assert digest(cluster) == before
    return answers


@pytest.mark.parametrize(("line", "reason"), REFUSED)
def test_command_is_refused_with_a_clear_line(
    refusals: dict[str, Answer], line: str, reason: str
) -> None:
    answer = refusals[line]
    assert answer.is_error
    assert reason in answer.text
    assert "deleted" not in answer.text
    assert "internal error" not in answer.text
    assert SECRET not in answer.text
    assert answer.text.startswith("refused: ")
    assert "\n" not in answer.text


def test_user_flag_is_that_of_bindings_only(ask_all: AskAll) -> None:
    get, bind = ask_all(
        [
            ("read", {"command": "get pods --user=root"}),
            (
                "run_on_fork",
                {"commands": ["create rolebinding a --clusterrole=view --user=root"]},
            ),
        ]
    )
    assert get.text == (
        "refused: get --user: requests are made as the user that this server was started with"
    )
    assert "rolebinding.rbac.authorization.k8s.io/a created" in bind.text


def test_reading_tool_takes_no_command_that_changes(ask: Ask, fork: str) -> None:
    for line in (
        "scale deploy web --replicas=1",
        "apply -f -",
        "exec deploy/web -- id",
        "wait pod a",
    ):
        answer = ask("read", command=line, fork=fork)
        assert "this tool only reads: plan it, or run it on a fork" in answer.text


def test_every_permitted_command_and_flag_exists() -> None:
    commands = {name: load(name.split()[-1], entry) for name, entry in walk(COMMANDS)}
    allowed = permitted.READING | permitted.CHANGING
    assert allowed <= set(commands)
    flags = {flag.long for flag in GLOBAL_FLAGS}
    flags |= {flag.long for name in allowed for flag in commands[name].flags}
    assert permitted.FLAGS - flags == set()
    for name, more in permitted.MORE_FLAGS.items():
        assert more <= {flag.long for flag in (*commands[name].flags, *GLOBAL_FLAGS)}
    assert set(permitted.COMMAND_REASONS) <= set(commands)
    assert set(permitted.COMMAND_REASONS).isdisjoint(allowed)


KUSTOMIZATIONS = [
    "resources: [https://127.0.0.1:9/a.yaml]\n",
    "resources: ['git::https://example.com/a/b']\n",
    "resources: [github.com/a/b]\n",
    "resources: [../../../../../../etc]\n",
    "resources: [/etc/passwd]\n",
    "components: [../../..]\n",
    "configMapGenerator: [{name: a, files: [/etc/passwd]}]\n",
    "secretGenerator: [{name: a, envs: [/proc/self/environ]}]\n",
    "patches: [{path: ../../../../secret.yaml, target: {kind: Pod}}]\n",
    "crds: [/etc/passwd]\n",
    "generators: [/etc/passwd]\n",
    "transformers: [https://127.0.0.1:9/t.yaml]\n",
    "openapi: {path: /etc/passwd}\n",
    "configurations: [/etc/passwd]\n",
    "replacements: [{path: /etc/passwd}]\n",
]


def test_kustomization_reaches_nothing_but_its_own_files(ask: Ask, fork: str) -> None:
    for text in KUSTOMIZATIONS:
        files = {"k/kustomization.yaml": text}
        answer = ask("run_on_fork", commands=["apply -k k"], files=files, fork=fork)
        assert answer.is_error, text
        assert "can only use files that came with it" in answer.text, text
        assert "root:" not in answer.text


def test_kustomization_sees_no_variable_of_the_server(ask: Ask) -> None:
    files = {
        "kustomization.yaml": "configMapGenerator: [{name: a, envs: [names]}]\n",
        "names": "KUBEPY_SECRET\nPATH\n",
    }
    answer = ask("run_on_fork", commands=["apply -k .", "get cm -o yaml"], files=files)
    assert 'KUBEPY_SECRET: ""' in answer.text
    assert 'PATH: ""' in answer.text


def test_files_of_a_call_are_never_imported(ask: Ask) -> None:
    names = ("jsonpatch.py", "kubepy/__init__.py", "ssl.py", "sitecustomize.py")
    files = dict.fromkeys(names, "raise SystemExit('imported')\n")
    answer = ask("run_on_fork", commands=["patch deploy web -p '{}'", "explain pods"], files=files)
    assert not answer.is_error
    assert "imported" not in answer.text


def test_webhook_on_a_fork_is_not_called(ask: Ask) -> None:
    answer = ask(
        "run_on_fork", commands=["apply -f w.yaml", "create cm a"], files={"w.yaml": WEBHOOK}
    )
    assert "this server asks no other machine" in answer.text


WRONG: list[tuple[str, Arguments, str]] = [
    ("read", {}, "'command' is a required property"),
    ("read", {"command": 7}, "command: 7 is not valid"),
    ("read", {"comand": "x", "command": "y"}, "'comand' was unexpected"),
    ("read", {"command": ["get", 1]}, "command[1]: 1 is not of type"),
    ("read", {"command": "get pods", "max_output": -1}, "max_output: -1 is less than"),
    ("read", {"command": "get pods", "fork": "fork-99"}, "there is no fork 'fork-99'"),
    ("read", {"command": ["get", "\0"]}, "NUL"),
    ("run_on_fork", {"commands": []}, "commands: [] should be non-empty"),
    ("run_on_fork", {"commands": ["clock"], "files": {"../a": ""}}, "a file is named '../a'"),
    ("run_on_fork", {"commands": ["clock"], "files": {"/etc/a": ""}}, "a file is named"),
    ("run_on_fork", {"commands": ["clock"], "files": {"a/../../b": ""}}, "a file is named"),
    ("run_on_fork", {"commands": ["clock"], "files": {"a": "", "a/b": ""}}, "and of a folder"),
    ("run_on_fork", {"commands": ["clock"], "stdin": "x" * 5_000_000}, "4,194,304 are allowed"),
    ("plan", {"command": "clock", "runs": 1000}, "runs: 1000 is greater than"),
    ("plan", {"for": "soon"}, 'plan: invalid argument "soon" for "--for" flag'),
    ("plan", {"command": "clock", "for": "soon"}, 'plan: invalid argument "soon" for "--for" flag'),
    ("why", {"objects": ["-f/etc/passwd"]}, "it is none of the files"),
    ("why", {"objects": ["--kubeconfig=/etc/passwd"]}, "the cluster is the one"),
    ("why", {"namespace": "shop"}, "name objects of that namespace"),
    ("timeline", {"since": "--"}, "--since"),
    ("drop_fork", {"fork": "x"}, "there is no fork 'x'"),
    ("no_such_tool", {}, "there is no tool 'no_such_tool'"),
]


def test_wrong_arguments_are_errors_in_one_line(ask_all: AskAll) -> None:
    answers = ask_all([(tool, arguments) for tool, arguments, _ in WRONG])
    for (tool, arguments, reason), answer in zip(WRONG, answers, strict=True):
        assert answer.is_error, (tool, str(arguments)[:200])
        assert reason in answer.text
        assert "internal error" not in answer.text
        assert len(answer.text) < 1000


# --- the sandbox ----------------------------------------------------------------------------------

# Each is tried by a process that is in a sandbox already.
ATTEMPTS: dict[str, str] = {
    "open('/etc/passwd')": "PermissionError",
    "os.open('/etc/passwd', os.O_RDONLY)": "PermissionError",
    "os.listdir('/etc')": "PermissionError",
    "open('new', 'w')": "PermissionError",
    "os.remove(given)": "PermissionError",
    "os.rename(given, given + '2')": "PermissionError",
    "os.symlink('/etc', inside + '/link')": "PermissionError",
    "open(inside + '/../secret')": "PermissionError",
    "sqlite3.connect('/tmp/x.db')": "PermissionError",
    "subprocess.run(['true'])": "RefusedError",
    "os.system('true')": "RefusedError",
    "os.execv('/bin/true', ['true'])": "RefusedError",
    "os.fork()": "RefusedError",
    "socket.create_connection(('127.0.0.1', 9))": "gaierror",
    "socket.socket().connect(('127.0.0.1', 9))": "PermissionError",
    "socket.getaddrinfo('example.com', 80)": "gaierror",
    "socket.socket().bind(('127.0.0.1', 0))": "PermissionError",
    "open(inside + '/file', 'w').write('x')": "",
    "open(given).read()": "",
    "os.listdir(inside)": "",
    "__import__('email.mime.text')": "",
    "sqlite3.connect(':memory:')": "",
}
TRY = """
import json, os, socket, sqlite3, subprocess, sys
from kubepy.cli.mcp.sandbox import Sandbox
given, inside = sys.argv[1:3]
Sandbox([os.path.dirname(given)], [inside]).close()
for line in json.loads(sys.argv[3]):
    try:
        eval(line)
        print("")
    except Exception as error:
        print(type(error).__name__)
"""


def test_sandbox_refuses_what_no_command_line_should_reach(tmp_path: Path) -> None:
    for name in ("given", "inside"):
        (tmp_path / name).mkdir()
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "given" / "file").write_text("text")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            TRY,
            str(tmp_path / "given" / "file"),
            str(tmp_path / "inside"),
            json.dumps(list(ATTEMPTS)),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert dict(zip(ATTEMPTS, done.stdout.split("\n"), strict=False)) == ATTEMPTS, done.stderr


# --- the command ----------------------------------------------------------------------------------


def test_without_the_extra_one_line_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("init", "--nodes=0")
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = run("mcp")
    assert done.status == 1
    assert done.err.startswith('error: this command needs the extra "mcp" of this installation')
    assert "[mcp]" in done.err
    assert done.err.count("\n") == 1


def test_without_a_cluster_one_line_says_so(folder: Path) -> None:
    done = run("mcp")
    assert (done.out, done.status) == ("", 1)
    assert done.err.startswith('error: no cluster in "state"')


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--timeout=0s"], "--timeout must be more than 0"),
        (["--timeout=2h"], "--timeout must be more than 0"),
        (["shop"], "Unexpected args: [shop]"),
    ],
)
def test_wrong_flags_are_errors(folder: Path, words: list[str], reason: str) -> None:
    run("init", "--nodes=0")
    done = run("mcp", *words)
    assert done.status == 1
    assert reason in done.err


def test_other_commands_do_not_import_the_library(cluster: Path) -> None:
    code = (
        "import sys; from kubepy.cli.main import main; main(['get', 'pods']); "
        "large = ('mcp', 'pydantic', 'asyncio', 'kubepy.cli.mcp.server'); "
        "print([name for name in large if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cluster, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("[]\n")


def test_server_ends_with_its_input_and_leaves_no_folder(cluster: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "mcp"],
        input="this is no message\n",
        cwd=cluster,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_program_that_has_opened_the_cluster_is_refused(kubepy: Any) -> None:
    from kubepy.clusters import Cluster

    result = Cluster.temporary().run("mcp")
    assert result.status == 1
    assert "mcp serves a cluster from a process of its own" in result.stderr
    assert main(["mcp", "--help"], stdout=io.StringIO()) == 0
