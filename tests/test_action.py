"""The GitHub Action and the GitLab job: their scripts are run in a shell, with a kubepy that
records how it is called, and against a server that keeps comments."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubepy import comments
from kubepy.cli import plan_markdown

PROJECT = Path(__file__).parents[1]
ACTION = yaml.safe_load((PROJECT / "action.yml").read_text())
GITLAB = yaml.safe_load((PROJECT / "ci/gitlab/kubepy-plan.yml").read_text())[".kubepy-plan"]
PLAN = "**It finishes.**\n::set-output name=status::9\n"

# Records its words, working directory and policy; prints a plan, and fails as it is told.
KUBEPY = f"""#!{sys.executable}
import json, os, sys
policy = open("kubepy-plan.yaml").read() if os.path.exists("kubepy-plan.yaml") else ""
with open(os.environ["CALLS"], "a") as calls:
    print(json.dumps([sys.argv[1:], os.getcwd(), policy]), file=calls)
if "import" in sys.argv and os.path.exists(os.environ.get("NEW_FOLDER", "")):
    sys.exit("error: the folder is not empty")
if "plan" in sys.argv:
    print(os.environ["PLAN"], end="")
    print("::warning::a line for the log", file=sys.stderr)
    sys.exit(int(os.environ["PLAN_STATUS"]))
"""
# Makes an environment whose pip records its words, and whose kubepy is the one above.
PYTHON3 = f"""#!{sys.executable}
import os, shutil, sys
if sys.argv[1:3] != ["-m", "venv"]:
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
folder = sys.argv[3] + "/bin"
os.makedirs(folder)
shutil.copy(os.path.dirname(sys.argv[0]) + "/kubepy", folder + "/kubepy")
shutil.copy(os.path.dirname(sys.argv[0]) + "/pip", folder + "/pip")
with open(folder + "/python", "w") as file:
    file.write('#!/bin/sh\\nexec {sys.executable} "$@"\\n')
os.chmod(folder + "/python", 0o755)
"""
PIP = KUBEPY


# --- a server that keeps comments -----------------------------------------------------------------


class Comments(ThreadingHTTPServer):
    """GitHub's and GitLab's API, as far as comments go.

    :ivar bodies: the comments, as the API shows them.
    :ivar requests: method, path and token of each request.
    :ivar refuses: writes are answered with 403.
    :ivar login: the name of the holder of the token; "" for that of a job.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str, str]] = []
        self.refuses = False
        self.login = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Comments

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""

    def answer(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def handle_one_request(self) -> None:
        super().handle_one_request()
        self.close_connection = True

    def note(self) -> None:
        token = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN") or ""
        self.server.requests.append((self.command, self.path, token))

    def do_GET(self) -> None:
        self.note()
        if self.path == "/user":
            if self.server.login:
                self.answer(200, {"login": self.server.login, "username": self.server.login})
            else:
                self.answer(403, {"message": "Resource not accessible by integration"})
            return
        found = re.search(r"per_page=(\d+)&page=(\d+)", self.path)
        assert found
        size, page = int(found[1]), int(found[2])
        self.answer(200, self.server.bodies[(page - 1) * size : page * size])

    def do_POST(self) -> None:
        self.note()
        author = self.server.login or "github-actions[bot]"
        user = {"login": author, "username": author, "type": "User" if self.server.login else "Bot"}
        added = {"id": 1000 + len(self.server.bodies), "user": user, "author": user, **self.body()}
        if self.server.refuses:
            self.answer(403, {"message": "Resource not accessible\nby integration"})
            return
        self.server.bodies.append(added)
        self.answer(201, added)

    def do_PATCH(self) -> None:
        self.note()
        number = int(self.path.rpartition("/")[2])
        [found] = [existing for existing in self.server.bodies if existing["id"] == number]
        found.update(self.body())
        self.answer(200, found)

    do_PUT = do_PATCH


@pytest.fixture
def server() -> Iterator[Comments]:
    with Comments() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


# --- a runner -------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


class Runner:
    """A checkout of a pull request, and what runs the steps of a job in it.

    :ivar environment: the variables of the job.
    :ivar variables: the values of expressions: ``inputs.path``.
    """

    def __init__(self, folder: Path, server: Comments) -> None:
        self.checkout = folder / "checkout"
        self.temporary = folder / "temp"
        programs = folder / "programs"
        for path in (self.checkout, self.temporary, programs):
            path.mkdir()
        for name, text in (("kubepy", KUBEPY), ("pip", PIP), ("python3", PYTHON3)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        git(self.checkout, "init", "--quiet", "--initial-branch=main")
        (self.checkout / "kubepy-plan.yaml").write_text("failOn: [outage]\n")
        git(self.checkout, "add", "-A")
        git(self.checkout, "commit", "--quiet", "-m", "base")
        self.base = git(self.checkout, "rev-parse", "HEAD")
        (self.checkout / "kubepy-plan.yaml").write_text("failOn: []\n")
        git(self.checkout, "commit", "--quiet", "-a", "-m", "head")
        self.head = git(self.checkout, "rev-parse", "HEAD")
        self.calls_file = folder / "calls"
        self.calls_file.touch()
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(folder),
            "PYTHONPATH": str(PROJECT),
            "CALLS": str(self.calls_file),
            "PLAN": PLAN,
            "PLAN_STATUS": "0",
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_ACTION_PATH": "/an action",
            "GITHUB_REPOSITORY": "OWNER/REPO",
            "GITHUB_API_URL": server.url,
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        }
        self.variables = {
            "github.token": "a token",
            "github.event.pull_request.base.sha": self.base,
            "github.event.pull_request.number": "7",
            "inputs.path": "deploy",
        }
        self.log = ""

    @property
    def calls(self) -> list[tuple[list[str], str, str]]:
        """The words, working directory and policy of each call of kubepy and pip."""
        return [tuple(json.loads(line)) for line in self.calls_file.read_text().splitlines()]

    def value(self, text: str) -> str:
        """Return a text with the values of its expressions."""
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: self.evaluate(found[1]), text)

    def evaluate(self, expression: str) -> str:
        """Return the value of ``a || b`` and ``a.b``."""
        for name in expression.split(" || "):
            if value := self.variables.get(name.strip(), ""):
                return value
        return ""

    def holds(self, condition: str) -> bool:
        """Return whether a condition of ``==``, ``!=`` and ``&&`` holds."""
        for part in condition.split(" && "):
            found = re.fullmatch(r"(\S+) (==|!=) '(.*)'", part)
            assert found, part
            if (self.variables.get(found[1], "") == found[3]) != (found[2] == "=="):
                return False
        return True

    def run_action(self, **inputs: str) -> int:
        """Run the steps of the action; returns the exit status of the one that fails, or 0."""
        for name, about in ACTION["inputs"].items():
            default = self.value(str(about.get("default", "")))
            self.variables.setdefault(f"inputs.{name}", default)
        self.variables |= {
            f"inputs.{name.replace('_', '-')}": text for name, text in inputs.items()
        }
        for step in ACTION["runs"]["steps"]:
            if "if" in step and not self.holds(step["if"]):
                continue
            variables = {name: self.value(text) for name, text in step.get("env", {}).items()}
            status = self.run_script(step["run"], variables)
            output = Path(self.environment["GITHUB_OUTPUT"])
            if "id" in step and output.exists():
                for line in output.read_text().splitlines():
                    name, _, value = line.partition("=")
                    self.variables[f"steps.{step['id']}.outputs.{name}"] = value
            if status:
                return status
        return 0

    def run_script(self, script: str, variables: dict[str, str]) -> int:
        """Run a script as a runner does."""
        path = self.temporary / "script.sh"
        path.write_text(script)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(path)],
            cwd=self.checkout,
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.log += done.stdout
        return done.returncode


@pytest.fixture
def runner(tmp_path: Path, server: Comments) -> Runner:
    return Runner(tmp_path, server)


# --- the action -----------------------------------------------------------------------------------


def test_no_script_has_an_expression_in_it() -> None:
    steps = ACTION["runs"]["steps"]
    assert [step["name"] for step in steps if "${{" in step["run"]] == []
    assert all(step["shell"] == "bash" for step in steps)
    assert all("uses" not in step for step in steps)


def test_every_input_is_used_and_documented() -> None:
    text = (PROJECT / "action.yml").read_text()
    page = (PROJECT / "docs/pull-requests.md").read_text()
    for name in ACTION["inputs"]:
        assert f"inputs.{name}" in text
        assert f"`{name}`" in page


def test_action_plans_base_against_head_and_comments(runner: Runner, server: Comments) -> None:
    assert runner.run_action() == 0, runner.log
    install, plan = runner.calls
    assert install[0][0] == "install"
    assert install[0][-1] == "/an action"
    words, folder, policy = plan
    assert words == [
        "--state=memory:",
        "plan",
        "-o",
        "markdown",
        "--from",
        runner.base,
        "--to",
        runner.head,
        "--filename=deploy",
    ]
    assert Path(folder).parent == runner.temporary
    assert policy == "failOn: [outage]\n"  # the base's
    assert [comment["body"] for comment in server.bodies] == [f"<!-- kubepy-plan -->\n{PLAN}"]
    assert {token for _, _, token in server.requests} == {"Bearer a token"}
    assert Path(runner.environment["GITHUB_STEP_SUMMARY"]).read_text() == PLAN
    assert git(runner.checkout, "worktree", "list").count("\n") == 0


def test_second_run_updates_the_comment(runner: Runner, server: Comments) -> None:
    stranger = {
        "id": 1,
        "user": {"login": "mallory", "type": "User"},
        "body": "<!-- kubepy-plan -->",
    }
    server.bodies = [stranger, *({"id": n, "body": "words"} for n in range(2, 250))]
    before = [dict(comment) for comment in server.bodies]
    assert runner.run_action() == 0
    runner.environment["PLAN"] = "a new plan"
    os.rename(runner.temporary / "kubepy", runner.temporary / "old")
    assert runner.run_action() == 0
    assert server.bodies[:-1] == before
    assert server.bodies[-1]["body"] == "<!-- kubepy-plan -->\na new plan"
    writes = [(method, path) for method, path, _ in server.requests if method != "GET"]
    assert writes == [
        ("POST", "/repos/OWNER/REPO/issues/7/comments"),
        ("PATCH", f"/repos/OWNER/REPO/issues/comments/{server.bodies[-1]['id']}"),
    ]


@pytest.mark.parametrize(("status", "wanted"), [(0, 0), (2, 2), (3, 3), (1, 1), (130, 1)])
def test_exit_status_is_that_of_the_plan_and_the_comment_is_there(
    runner: Runner, server: Comments, status: int, wanted: int
) -> None:
    runner.environment["PLAN_STATUS"] = str(status)
    assert runner.run_action() == wanted
    assert runner.variables["steps.plan.outputs.status"] == str(wanted)
    [comment] = server.bodies
    assert ("There is no plan" in comment["body"]) == (wanted == 1)


def test_inputs_are_words_and_never_code(runner: Runner) -> None:
    hostile = "$(touch owned); `touch owned` '\" \\ | & ;"
    assert (
        runner.run_action(
            path=f"{hostile}/a",
            kustomize="true",
            state=hostile,
            fail_on="never-finishes,outage",
            fail_if=f"available < 0.8\n\n{hostile}\n",
            key="staging",
        )
        == 0
    ), runner.log
    words = runner.calls[-1][0]
    assert words[0] == f"--state={hostile}"
    assert words[-4:] == [
        f"--kustomize={hostile}/a",
        "--fail-on=never-finishes,outage",
        "--fail-if=available < 0.8",
        f"--fail-if={hostile}",
    ]
    assert list(runner.checkout.rglob("owned")) == list(runner.temporary.rglob("owned")) == []


@pytest.mark.parametrize("base", ["--upload-pack=touch owned", "", "no such; revision", "missing"])
def test_wrong_base_ends_the_job_before_the_plan(runner: Runner, base: str) -> None:
    runner.variables["github.event.pull_request.base.sha"] = base
    assert runner.run_action() != 0
    assert len(runner.calls) == 1  # pip
    assert list(runner.checkout.rglob("owned")) == []


def test_base_that_was_not_checked_out_is_fetched(runner: Runner, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{runner.checkout}", str(shallow))
    git(runner.checkout, "config", "uploadpack.allowAnySHA1InWant", "true")
    runner.checkout = shallow
    assert runner.run_action() == 0, runner.log
    assert runner.base in runner.calls[-1][0]


def test_dump_is_imported_and_takes_the_place_of_the_state(runner: Runner) -> None:
    assert runner.run_action(**{"import": "dump.tar.gz", "state": "elsewhere"}) == 0
    _, imported, plan = runner.calls
    state = str(runner.temporary / "kubepy-state")
    assert imported[0] == ["--state", state, "import", "--", "dump.tar.gz"]
    assert plan[0][0] == f"--state={state}"


def test_second_import_of_a_job_begins_anew(runner: Runner) -> None:
    state = runner.temporary / "kubepy-state"
    state.mkdir()
    (state / "kubepy.yaml").write_text("nodes: 7\n")
    runner.environment["NEW_FOLDER"] = str(state)
    assert runner.run_action(**{"import": "dump.tar.gz"}) == 0, runner.log


def test_output_of_the_plan_gives_no_commands_to_the_runner(runner: Runner) -> None:
    assert runner.run_action() == 0
    stop, shown, go_on = re.findall(r"^::.*$", runner.log, re.MULTILINE)
    assert shown == "::warning::a line for the log"
    assert go_on == f"::{stop.removeprefix('::stop-commands::')}::"
    assert len(go_on) > 30


def test_comment_that_is_not_allowed_is_a_warning(runner: Runner, server: Comments) -> None:
    server.refuses = True
    assert runner.run_action() == 0
    assert "HTTP 403: Resource not accessible by integration" in runner.log
    assert "::warning::the plan is in the summary" in runner.log


def test_no_comment_outside_of_a_pull_request(runner: Runner, server: Comments) -> None:
    runner.variables["github.event.pull_request.number"] = ""
    assert runner.run_action() == 0
    assert server.requests == []


# --- GitLab ---------------------------------------------------------------------------------------


def run_gitlab(runner: Runner, server: Comments, **variables: str) -> int:
    for name in ("GITHUB_REPOSITORY", "GITHUB_API_URL"):
        runner.environment.pop(name, None)
    defaults = {name: str(value) for name, value in GITLAB["variables"].items()}
    given = {
        "KUBEPY_PATH": "deploy",
        "KUBEPY_SOURCE": "/a clone",
        "KUBEPY_TOKEN": "a token",
        "CI_API_V4_URL": server.url,
        "CI_PROJECT_ID": "12",
        "CI_MERGE_REQUEST_IID": "3",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": runner.base,
        "CI_COMMIT_SHA": runner.head,
    }
    return runner.run_script("\n".join(GITLAB["script"]), {**defaults, **given, **variables})


def test_gitlab_job_plans_and_writes_one_note(runner: Runner, server: Comments) -> None:
    server.login = "project_12_bot"
    hostile = "x == '$(touch owned)' && `touch owned`"
    assert run_gitlab(runner, server, KUBEPY_FAIL_IF=f"available < 1.0\n{hostile}") == 0, runner.log
    install, (words, folder, policy) = runner.calls
    assert install[0][-1] == "/a clone"
    assert words == [
        "--state=memory:", "plan", "-o", "markdown", "--from", runner.base, "--to", runner.head,
        "--filename=deploy", "--fail-if=available < 1.0", f"--fail-if={hostile}",
    ]  # fmt: skip
    assert Path(folder).name == ".kubepy-base"
    assert policy == "failOn: [outage]\n"
    assert list(runner.checkout.rglob("owned")) == []
    remove_environment(runner)
    assert run_gitlab(runner, server, KUBEPY_KUSTOMIZE="true", KUBEPY_IMPORT="dump") == 0
    assert "--kustomize=deploy" in runner.calls[-1][0]
    assert runner.calls[-2][0][-3:] == ["import", "--", "dump"]
    writes = [(method, path) for method, path, _ in server.requests if method != "GET"]
    notes = "/projects/12/merge_requests/3/notes"
    assert writes == [("POST", notes), ("PUT", f"{notes}/1000")]
    assert server.bodies[0]["body"].startswith("<!-- kubepy-plan -->\n")


def remove_environment(runner: Runner) -> None:
    """Remove the environment of the first run, as a new job has none."""
    os.rename(runner.checkout / ".kubepy-venv", runner.temporary / "old")


@pytest.mark.parametrize(("status", "wanted"), [(2, 2), (3, 3), (1, 1)])
def test_gitlab_job_fails_as_the_plan(
    runner: Runner, server: Comments, status: int, wanted: int
) -> None:
    runner.environment["PLAN_STATUS"] = str(status)
    assert run_gitlab(runner, server, KUBEPY_TOKEN="") == wanted
    assert (runner.checkout / "kubepy-plan.md").exists()
    assert server.requests == []


# --- the real program -----------------------------------------------------------------------------

REAL = f"""#!/bin/sh
exec {sys.executable} -m kubepy "$@"
"""
MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 2
  strategy: {{type: {strategy}}}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: "{image}"}}]}}
"""


@pytest.fixture
def real(runner: Runner, tmp_path: Path) -> Runner:
    """A runner whose kubepy is the real one; the pull request changes a Deployment."""
    (tmp_path / "programs/kubepy").write_text(REAL)
    manifest = runner.checkout / "deploy/web.yaml"
    manifest.parent.mkdir()
    for strategy, image in (("RollingUpdate", "web:1"), ("Recreate", "web:2")):
        manifest.write_text(MANIFEST.format(strategy=strategy, image=image))
        git(runner.checkout, "add", "-A")
        git(runner.checkout, "commit", "--quiet", "-m", strategy)
    runner.base = git(runner.checkout, "rev-parse", "HEAD~")
    runner.head = git(runner.checkout, "rev-parse", "HEAD")
    runner.variables["github.event.pull_request.base.sha"] = runner.base
    return runner


def test_action_comments_with_what_the_real_program_says(real: Runner, server: Comments) -> None:
    assert real.run_action(fail_on="outage") == 3, real.log
    [comment] = server.bodies
    first, rest = comment["body"].split("\n", 2)[1:]
    assert first.startswith(
        "⚠️ **Finishes at once.** It hurts: <code>deployment web (outage)</code>"
    )
    assert f"From <code>{real.base[:10]}</code> to <code>{real.head[:10]}</code>" in rest
    assert "+      - image: web:2\n" in rest
    assert real.variables["steps.plan.outputs.status"] == "3"


def test_action_says_in_its_log_why_there_is_no_plan(real: Runner, server: Comments) -> None:
    assert real.run_action(path="elsewhere") == 1
    assert f'error: neither {real.base[:10]} nor {real.head[:10]} has "elsewhere"\n' in real.log
    assert "There is no plan" in server.bodies[0]["body"]


def test_gitlab_job_notes_what_the_real_program_says(real: Runner, server: Comments) -> None:
    server.login = "project_12_bot"
    assert run_gitlab(real, server) == 0, real.log  # the policy counts nothing
    [note] = server.bodies
    assert "✅ **Finishes at once.** Exit status 0." in note["body"]
    assert "outage now, for a moment: 2/2 → 0/2 available (does not count)" in note["body"]


# --- the comment ----------------------------------------------------------------------------------


def test_longest_plan_has_room_for_the_line_that_finds_the_comment(
    runner: Runner, server: Comments, tmp_path: Path
) -> None:
    text = "x" * plan_markdown.MOST_CHARACTERS
    (tmp_path / "plan.md").write_text(text)
    environment = {**runner.environment, "KUBEPY_TOKEN": "t", "KUBEPY_PULL_REQUEST": "7"}
    assert comments.main([f"--key={'k' * 60}", str(tmp_path / "plan.md")], environment) == 0
    [existing] = server.bodies
    assert existing["body"].endswith(text)
    assert len(existing["body"]) <= 65_536  # what GitHub takes


def test_keys_tell_comments_apart(runner: Runner, server: Comments, tmp_path: Path) -> None:
    server.login = "somebody"
    (tmp_path / "plan.md").write_text("text")
    environment = {
        **runner.environment,
        "KUBEPY_TOKEN": "t",
        "KUBEPY_PULL_REQUEST": "7",
    }
    for key in ("staging", "production", "staging"):
        assert comments.main([f"--key={key}", str(tmp_path / "plan.md")], environment) == 0
    assert [existing["body"] for existing in server.bodies] == [
        "<!-- kubepy-plan: staging -->\ntext",
        "<!-- kubepy-plan: production -->\ntext",
    ]


@pytest.mark.parametrize(
    ("words", "changes", "reason"),
    [
        (["--key=a-->b"], {}, "--key may have letters"),
        ([], {"KUBEPY_TOKEN": ""}, "$KUBEPY_TOKEN is not set"),
        ([], {"KUBEPY_TOKEN": "a\nb"}, "$KUBEPY_TOKEN is not set"),
        ([], {"KUBEPY_PULL_REQUEST": "7/../8"}, "$KUBEPY_PULL_REQUEST is no number"),
        ([], {"GITHUB_API_URL": "http://127.0.0.1:9"}, "GET /user"),
        ([], {"GITHUB_REPOSITORY": ""}, "$CI_PROJECT_ID is not set"),
    ],
)
def test_wrong_environment_is_one_line(
    runner: Runner,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    changes: dict[str, str],
    reason: str,
) -> None:
    environment = {
        **runner.environment,
        "KUBEPY_TOKEN": "t",
        "KUBEPY_PULL_REQUEST": "7",
        **changes,
    }
    assert comments.main([*words, str(PROJECT / "LICENSE")], environment) == 1
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1
