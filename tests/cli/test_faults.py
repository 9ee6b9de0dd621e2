"""``--faults``, the seed that is drawn, and the command that repeats a failed run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Kubepy, run

DEPLOYMENT = ("create", "deployment", "web", "--image=web", "--replicas=3")
CRASHES = "pods: [{rate: 0.5, outcome: crash-loop}]\n"
CLOCK = "--clock=2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "x: 1",
            "error: faults.yaml: x: unknown field: must be one of seed, nodes, pods, conflicts, "
            "restarts, lateEvents",
        ),
        ("faults: {nodes: [{}]}", "error: faults.yaml: faults.nodes[0].downFor: is required"),
        (
            "- 1",
            "error: faults.yaml: must be a map of seed, nodes, pods, conflicts, restarts, "
            "lateEvents",
        ),
        ("", "error: faults.yaml: must be one document with faults, not 0"),
        (
            "a: [",
            "error: faults.yaml: error converting YAML to JSON: yaml: line 1: did not find "
            "expected node content",
        ),
    ],
)
def test_wrong_file_is_an_error_with_its_name(
    kubepy: Kubepy, folder: Path, text: str, message: str
) -> None:
    (folder / "faults.yaml").write_text(text)
    done = kubepy("get", "pods", "--faults=faults.yaml")
    assert (done.out, done.err, done.status) == ("", f"{message}\n", 1)


def test_missing_file_is_an_error(kubepy: Kubepy) -> None:
    done = kubepy("get", "pods", "--faults", "none.yaml")
    assert (done.err, done.status) == ("error: open none.yaml: no such file or directory\n", 1)


def test_seed_is_drawn_once_and_said(kubepy: Kubepy, folder: Path) -> None:
    (folder / "faults.yaml").write_text(CRASHES)
    first, second = (kubepy("get", "pods", "--faults=faults.yaml").err for _ in range(2))
    assert re.match(
        r"note: faults: seed \d+ was drawn; it stays the seed of this cluster's faults\n", first
    )
    assert "was drawn" not in second


def test_seed_of_the_cluster_is_that_of_the_faults(folder: Path) -> None:
    assert run("init", "--nodes=1", "--seed=5", CLOCK).status == 0
    (folder / "faults.yaml").write_text(CRASHES)
    assert (
        run("get", "pods", "--faults=faults.yaml").err
        == "No resources found in default namespace.\n"
    )


def test_command_that_succeeds_says_nothing_of_faults(folder: Path) -> None:
    run("init", "--nodes=1", "--seed=5", CLOCK)
    run(*DEPLOYMENT)
    (folder / "faults.yaml").write_text("conflicts: {rate: 0.3}\n")
    done = run("rollout", "status", "deploy/web", "--faults=faults.yaml")
    assert (done.err, done.status) == ("", 0)


@pytest.mark.parametrize("seed", ["--seed=3", ""])
def test_printed_command_repeats_the_failed_run(folder: Path, seed: str) -> None:
    run("init", "--nodes=2", CLOCK, *filter(None, [seed]))
    run(*DEPLOYMENT)
    (folder / "faults.yaml").write_text(CRASHES.replace("0.5", "1"))
    words = ["rollout", "status", "deploy/web", "--timeout=90s", "--faults", "faults.yaml"]
    failed = run(*words)
    assert failed.status == 1
    said = re.search(r"^faults: seed (\S+); repeat with: (.*)$", failed.err, re.MULTILINE)
    assert said is not None
    assert seed in ("", f"--seed={said[1]}")
    pods = run("get", "pods", "--faults=faults.yaml").out
    env = {
        **os.environ,
        "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        "TMPDIR": str(folder),
    }
    for _ in range(2):
        script = f'{said[2]}; kubepy --state "$D" get pods --faults=faults.yaml'
        again = subprocess.run(["bash", "-c", script], env=env, text=True, capture_output=True)
        assert failed.out in again.stdout
        assert again.stdout.endswith(pods), again.stdout
        assert "error: timed out waiting for the condition" in again.stderr


def test_standard_input_is_no_file_of_faults(kubepy: Kubepy) -> None:
    assert (
        kubepy("get", "pods", "--faults=-").err
        == "error: --faults cannot be standard input: it takes a file\n"
    )


def test_command_that_read_its_input_says_that_it_needs_it_again(folder: Path) -> None:
    run("init", "--nodes=1", CLOCK, "--seed=3")
    run("create", "configmap", "a")
    (folder / "faults.yaml").write_text(CRASHES)
    done = run(
        "wait",
        "--for=jsonpath={.data.a}=b",
        "-f",
        "-",
        "--timeout=5s",
        "--faults=faults.yaml",
        stdin="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    )
    assert "faults: seed 3; repeat, giving it the same standard input, with: D=" in done.err


def test_link_that_is_not_on_the_path_is_called_by_its_path(folder: Path) -> None:
    run("init", "--nodes=1", CLOCK, "--seed=3")
    run(*DEPLOYMENT)
    (folder / "faults.yaml").write_text(CRASHES.replace("0.5", "1"))
    (folder / "kubectl").symlink_to(Path(sys.executable).with_name("kubepy"))
    words = ["./kubectl", "rollout", "status", "deploy/web", "--timeout=5s", "--faults=faults.yaml"]
    done = subprocess.run(words, text=True, capture_output=True)
    path = folder.resolve() / "kubectl"
    assert (
        f'; {path} --state state/.kubepy/failed-run fork "$D" && {path} --state "$D" rollout'
        in done.stderr
    )


def test_limit_of_until_settled_says_how_to_repeat(folder: Path) -> None:
    run("init", "--nodes=2", "--seed=3", CLOCK)
    run(*DEPLOYMENT)
    (folder / "faults.yaml").write_text(
        "conflicts: {rate: 1, controllers: [replicaset-controller]}\n"
    )
    done = run("controller", "--until-settled=30s", "--faults=faults.yaml", "-q")
    assert done.status == 0
    assert "note: not settled after 30s" in done.err
    assert re.search(
        r"faults: seed 3; repeat with: .* controller --until-settled=30s --faults=faults.yaml -q\n",
        done.err,
    )
