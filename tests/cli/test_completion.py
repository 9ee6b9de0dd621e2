"""Completions of an unfinished command line."""

from __future__ import annotations

import resource
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kubepy.cli.completion import SCRIPTS, TEMPLATED
from tests.cli.conftest import Kubepy


def candidates(kubepy: Kubepy, line: str) -> list[str]:
    done = kubepy("__complete", line)
    assert (done.err, done.status) == ("", 0)
    return done.out.split()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("kubepy desc", ["describe"]),
        ("kubepy rollout re", ["restart", "resume"]),
        ("kubepy create secret ", ["docker-registry", "generic", "tls"]),
        ("kubepy get daem", ["daemonsets"]),
        ("kubepy get nodes ", ["node-1", "node-2"]),
        ("kubepy get no node-1 node-2", ["node-2"]),
        ("kubepy describe node/", ["node/node-1", "node/node-2"]),
        ("kubepy cordon ", ["node-1", "node-2"]),
        ("kubepy get cm -n kube-s", ["kube-system"]),
        ("kubepy -n kube-s", ["kube-system"]),
        ("kubepy delete --cascade=o", ["--cascade=orphan"]),
        ("kubepy get --show-l", ["--show-labels"]),
        ("kubepy completion f", ["fish"]),
        ("kubepy get pods 'unfinished", []),
        ("kubepy nonsense x ", []),
    ],
)
def test_candidates(bare: Kubepy, line: str, wanted: list[str]) -> None:
    bare("init", "--nodes=2")
    assert candidates(bare, line) == wanted


AGENT = """apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, labels: {tier: edge}}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      initContainers: [{name: setup, image: i}]
      containers: [{name: main, image: i, env: [{name: MODE, value: fast}]}, {name: proxy, image: i}]
"""  # noqa: E501


@pytest.fixture
def busy(bare: Kubepy, folder: Path) -> Kubepy:
    """A cluster with a DaemonSet of two revisions, a Deployment, and two contexts."""
    bare("init", "--nodes=1")
    (folder / "agent.yaml").write_text(AGENT)
    bare("apply", "-f", "agent.yaml")
    bare("controller", "--once")
    bare("set", "image", "ds/agent", "main=j")
    bare("controller", "--once")
    bare("create", "deployment", "web", "--image=nginx")
    bare("create", "serviceaccount", "robot")
    bare("config", "set-context", "lab", "--cluster=./lab")
    return bare


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        # types, and objects of types
        ("kubepy rollout undo ", ["daemonsets", "deployments", "statefulsets"]),
        ("kubepy rollout undo ds/", ["ds/agent"]),
        ("kubepy rollout undo ds ", ["agent"]),
        ("kubepy scale de", ["deployments"]),
        ("kubepy get daemonsets,depl", ["daemonsets,deployments"]),
        ("kubepy delete ds,deploy ", ["agent", "web"]),
        ("kubepy delete deploy/web deploy/", []),
        ("kubepy taint ", ["nodes"]),
        ("kubepy cordon node-1 ", []),
        ("kubepy explain daem", ["daemonsets"]),
        (
            "kubepy create ",
            [
                "clusterrole",
                "clusterrolebinding",
                "configmap",
                "cronjob",
                "deployment",
                "ingress",
                "job",
                "namespace",
                "poddisruptionbudget",
                "priorityclass",
                "quota",
                "role",
                "rolebinding",
                "secret",
                "service",
                "serviceaccount",
                "token",
            ],
        ),
        ("kubepy run x ", []),
        ("kubepy run x -- ", []),
        # what follows an object
        ("kubepy set image ds/agent ", ["daemonsets/", "deployments/"]),
        ("kubepy set image ds agent ", ["main=", "proxy=", "setup="]),
        ("kubepy set env ds/agent M", ["MODE-", "MODE="]),
        ("kubepy set env ds/agent -c pr", ["proxy"]),
        ("kubepy set serviceaccount deploy/web ro", ["robot"]),
        ("kubepy label ds/agent ti", ["tier-"]),
        # flags and their values
        ("kubepy rollout undo ds/agent --to-revision=", ["--to-revision=1", "--to-revision=2"]),
        ("kubepy rollout history ds/agent --revision ", ["1", "2"]),
        ("kubepy rollout diff ds/agent --from-revision ", ["1", "2"]),
        ("kubepy rollout diff ds ", ["agent"]),
        ("kubepy get pods -o jsonp", ["jsonpath-as-json=", "jsonpath-file=", "jsonpath="]),
        ("kubepy version -o ", ["json", "yaml"]),
        ("kubepy patch ds agent --type ", ["json", "merge", "strategic"]),
        ("kubepy expose deploy web --type=C", ["--type=ClusterIP"]),
        ("kubepy wait pod/x --for ", ["condition=", "create", "delete", "jsonpath="]),
        ("kubepy create role r --resource=pods,dep", ["--resource=pods,deployments"]),
        ("kubepy get --all-namespaces=", ["--all-namespaces=false", "--all-namespaces=true"]),
        ("kubepy get pods --no", ["--no-headers"]),
        # contexts, commands
        ("kubepy --context ", ["kubepy", "lab"]),
        ("kubepy config use-context l", ["lab"]),
        ("kubepy config use l", ["lab"]),
        ("kubepy config set contexts.lab.n", ["contexts.lab.namespace"]),
        ("kubepy help rollout un", ["undo"]),
        ("kubepy ex", ["exec", "explain", "expose"]),
        ("kubepy get pods --context=nope ", []),
    ],
)
def test_candidates_outside_of_cluster(busy: Kubepy, line: str, wanted: list[str]) -> None:
    if line == "kubepy set image ds/agent ":
        wanted = sorted(["main=", "proxy=", "setup=", *(f"{kind}/" for kind in TEMPLATED)])
    assert candidates(busy, line) == wanted


def test_completion_takes_less_than_fifth_of_second(busy: Kubepy) -> None:
    """Measure CPU time: elapsed time says nothing on a busy machine."""
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [
            sys.executable,
            "-m",
            "kubepy.cli.program",
            "__complete",
            "kubepy rollout undo ds/",
        ]
        assert (
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
            == "ds/agent\n"
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 0.2


def test_plugins_on_path_are_candidates(
    busy: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "kubepy-my_own-thing").touch()
    monkeypatch.setenv("PATH", str(folder))
    assert candidates(busy, "kubepy my") == ["my-own"]


def test_missing_folder_has_no_candidates(bare: Kubepy) -> None:
    assert candidates(bare, "kubepy get nodes ") == []


@pytest.mark.parametrize("shell", SCRIPTS)
def test_script_is_valid_in_its_shell(bare: Kubepy, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = bare("completion", shell).out
    done = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)


def replies(bare: Kubepy, answers: list[str], line: str, words: list[str]) -> str:
    """Return the words that bash would put in place of the last word, given these answers of
    kubepy."""
    script = "\n".join(
        [
            "kubepy() { printf '%s\\n' " + shlex.join(answers) + "; }",
            bare("completion", "bash").out,
            f"COMP_LINE={shlex.quote(line)}; COMP_POINT=${{#COMP_LINE}}",
            f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _kubepy; echo "
            f'"${{COMPREPLY[@]}}"',
        ]
    )
    return subprocess.run(
        ["bash", "-c", script], text=True, capture_output=True, check=True
    ).stdout.rstrip("\n")


@pytest.mark.parametrize(
    ("answers", "line", "words", "wanted"),
    [
        (
            ["node/node-1", "node/node-2"],
            "kubepy get node/",
            ["kubepy", "get", "node/"],
            "node/node-1 node/node-2",
        ),
        (
            ["--to-revision=1", "--to-revision=2"],
            "kubepy undo --to-revision=",
            ["kubepy", "undo", "--to-revision", "="],
            "1 2",
        ),
        (
            ["--to-revision=12"],
            "kubepy undo --to-revision=1",
            ["kubepy", "undo", "--to-revision", "=", "1"],
            "12",
        ),
        (["main="], "kubepy set image ds/x ma", ["kubepy", "set", "image", "ds/x", "ma"], "main="),
    ],
)
def test_bash_completes_words_with_equals_and_colons(
    bare: Kubepy, answers: list[str], line: str, words: list[str], wanted: str
) -> None:
    assert replies(bare, answers, line, words) == wanted


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_offers_candidates(bare: Kubepy) -> None:
    script = (
        "function kubepy; echo node/node-1; echo node/node-2; end\n"
        + bare("completion", "fish").out
    )
    done = subprocess.run(
        ["fish", "-c", script + "complete -C 'kubepy get node/'"],
        text=True,
        capture_output=True,
        check=True,
    )
    assert done.stdout.split() == ["node/node-1", "node/node-2"]
