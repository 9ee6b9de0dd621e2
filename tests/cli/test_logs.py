"""``kubepy logs``; the texts are those of kubectl against a server of the same cluster."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Kubepy

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {kubepy.dev/log: "one\\ntwo"}, labels: {app: web}}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: two, labels: {app: web}, annotations: {kubepy.dev/log.b: "from b"}}
spec:
  containers: [{name: a, image: nginx}, {name: b, image: nginx}]
  initContainers: [{name: i, image: i}]
---
apiVersion: v1
kind: Pod
metadata: {name: pull, annotations: {kubepy.dev/outcome: image-pull-backoff}}
spec: {containers: [{name: c, image: nginx}]}
"""


@pytest.fixture
def kubepy(bare: Kubepy) -> Kubepy:
    bare("init", "--nodes=1")
    assert bare("apply", "-f", "-", stdin=PODS).status == 0
    return bare


@pytest.mark.parametrize(
    ("words", "out", "err"),
    [
        ("web", "one\ntwo\n", ""),
        ("pod/web --tail=1", "two\n", ""),
        ("web c --limit-bytes=2", "on", ""),
        ("web --prefix", "[pod/web/c] one\n[pod/web/c] two\n", ""),
        ("two", "", 'Defaulted container "a" out of: a, b, i (init)\n'),
        ("two -c b", "from b\n", ""),
        ("two --all-containers --prefix", "[pod/two/b] from b\n", ""),
        ("-l app=web --all-containers", "from b\none\ntwo\n", ""),
        ("-l app=none", "", "No resources found in default namespace.\n"),
    ],
)
def test_logs_print_what_annotations_say(kubepy: Kubepy, words: str, out: str, err: str) -> None:
    done = kubepy("logs", *words.split())
    assert (done.out, done.err, done.status) == (out, err, 0)


@pytest.mark.parametrize(
    ("words", "err"),
    [
        (
            "nope",
            'error: error from server (NotFound): pods "nope" not found in namespace "default"',
        ),
        ("web x", "error: container x is not valid for pod web out of: c"),
        ("web c -c c", "error: only one of -c or an inline [CONTAINER] arg is allowed"),
        (
            "pull",
            'Error from server (BadRequest): container "c" in pod "pull" is waiting to start: '
            "trying and failing to "
            "pull image",
        ),
        (
            "web -p",
            'Error from server (BadRequest): previous terminated container "c" in pod "web" not '
            "found",
        ),
        (
            "web --since=1s --since-time=2026-01-01T00:00:00Z",
            "error: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        (
            "web --since-time=x",
            'error: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
        ("web --tail=-2", "error: --tail must be greater than or equal to -1"),
        (
            "two --all-containers -c a",
            "error: --all-containers=true should not be specified with container name a",
        ),
        (
            "svc/kubernetes",
            "error: cannot get the logs from *v1.Service: invalid service 'kubernetes': Service "
            "is defined "
            "without a selector",
        ),
        (
            "-f two --all-containers --max-log-requests=1",
            "error: you are attempting to follow 3 log streams, but maximum allowed concurrency "
            "is 1, use --max-log-requests "
            "to increase the limit",
        ),
        (
            "web -l a=b",
            "error: only a selector (-l) or a POD name is allowed\nSee 'kubepy logs -h' for help "
            "and examples",
        ),
    ],
)
def test_logs_that_cannot_be_shown_say_why(kubepy: Kubepy, words: str, err: str) -> None:
    done = kubepy("logs", *words.split())
    assert (done.out, done.err, done.status) == ("", f"{err}\n", 1)


def test_logs_of_workload_are_those_of_one_pod(kubepy: Kubepy) -> None:
    kubepy("create", "deployment", "d", "--image=nginx", "--replicas=2")
    done = kubepy("logs", "deployment/d")
    assert done.err.startswith("Found 2 pods, using pod/d-")
    assert kubepy("logs", "deployment/d", "--all-pods").err == ""


def test_followed_logs_end_with_their_containers(kubepy: Kubepy) -> None:
    kubepy(
        "run",
        "job",
        "--image=x",
        "--restart=Never",
        "--annotations=kubepy.dev/log=done",
        "--annotations=kubepy.dev/runs-for=1s",
    )
    assert kubepy("logs", "-f", "job").out == "done\n"
