"""``-v``: the work of the controllers and the requests, as klog writes them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kubepy.klog import Logger, go_duration
from tests.cli.conftest import Kubepy

NODE = "{apiVersion: v1, kind: Node, metadata: {name: node-1}}"
HEADER = re.compile(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ ([\w/]+\.py):(\d+)\] ")


def messages(err: str) -> list[str]:
    """Return the lines of klog without their headers; every line must have one."""
    lines = err.splitlines()
    assert [line for line in lines if not HEADER.match(line)] == []
    return [HEADER.sub("", line) for line in lines]


def test_v4_shows_handlers_and_syncs_in_order(kubepy: Kubepy) -> None:
    kubepy("create", "-f", "-", stdin=NODE)
    kubepy("create", "deployment", "web", "--image=nginx", "--replicas=1")
    done = kubepy("controller", "--once", "-v=4")
    shown = [line for line in messages(done.err) if "eployment" in line or "eplica" in line]
    wanted = [
        r'"Adding deployment" deployment="default/web"',
        r'"Started syncing deployment" deployment="default/web" startTime="\d{4}-\d\d-\d\d .* UTC"',
        r'"Finished syncing deployment" deployment="default/web" duration="[\d.]+(µs|ms|s)"',
        r'"Adding" replicaSet="default/web-\w+"',
        r'"ReplicaSet added" replicaSet="default/web-\w+"',
        r'"Updating deployment" deployment="default/web"',
        r'"Finished syncing" kind="ReplicaSet" key="default/web-\w+" duration="[\d.]+(µs|ms|s)"',
    ]
    position = 0
    for pattern in wanted:
        position = next(
            (index for index in range(position, len(shown)) if re.fullmatch(pattern, shown[index])),
            -1,
        )
        assert position >= 0, (pattern, shown)
    assert "deployment.apps/web" in done.out


def test_v4_names_place_of_handler_and_of_sync(kubepy: Kubepy) -> None:
    kubepy("create", "job", "once", "--image=busybox")
    lines = kubepy("controller", "--once", "-v=4").err.splitlines()
    places = {
        match[1]
        for line in lines
        if '"Finished syncing job"' in line and (match := HEADER.match(line))
    }
    assert places == {"job/__init__.py"}


@pytest.mark.parametrize(
    ("level", "shown", "hidden"),
    [
        (2, "Successfully bound pod to node", "Attempting to schedule pod"),
        (3, "Attempting to schedule pod", "Pod added"),
        (4, "Pod added", '"Response"'),
        (6, '"Response" verb="POST"', '"Request"'),
    ],
)
def test_level_decides_what_is_shown(
    kubepy: Kubepy, folder: Path, level: int, shown: str, hidden: str
) -> None:
    kubepy("create", "-f", "-", stdin=NODE)
    (folder / "agent.yaml").write_text("""apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: i}]}}
""")
    kubepy("apply", "-f", "agent.yaml")
    err = kubepy("controller", "--once", f"-v={level}").err
    assert shown in err
    assert hidden not in err


def test_waiting_command_shows_the_controllers_that_it_runs(kubepy: Kubepy) -> None:
    kubepy("create", "-f", "-", stdin=NODE)
    kubepy("create", "deployment", "web", "--image=nginx")
    done = kubepy("rollout", "status", "deployment/web", "-v=4")
    assert done.out.endswith('deployment "web" successfully rolled out\n')
    assert '"Finished syncing deployment" deployment="default/web"' in done.err


def test_failing_sync_is_shown_with_its_error(kubepy: Kubepy) -> None:
    kubepy("create", "quota", "none", "--hard=pods=0")
    kubepy("create", "deployment", "web", "--image=nginx")
    err = kubepy("controller", "--once", "-v=4").err
    assert re.search(
        r'"Error syncing" controller="replicaset-controller" key="default/web-\w+" err="pods '
        r'\\"web-.*'
        "exceeded quota: none",
        err,
    )


def test_v6_shows_requests_as_round_trips(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "paint", "--from-literal=colour=red")
    assert [
        re.sub(r"=\d+$", "=N", line)
        for line in messages(kubepy("get", "cm", "paint", "-o", "name", "-v=6").err)
    ] == [
        '"Response" verb="GET" url="/api/v1/namespaces/default/configmaps/paint" status="200 OK" '
        "milliseconds=N"
    ]
    missing = kubepy("get", "cm", "nope", "-v=6")
    assert (
        'verb="GET" url="/api/v1/namespaces/default/configmaps/nope" status="404 Not Found"'
        in missing.err
    )
    assert missing.err.endswith('Error from server (NotFound): configmaps "nope" not found\n')
    made = kubepy("create", "ns", "shop", "-v=6").err
    assert (
        'verb="POST" url="/api/v1/namespaces?fieldManager=kubectl-create&fieldValidation=Strict" '
        'status="201 Created"'
    ) in made
    assert (
        'verb="DELETE" url="/api/v1/namespaces/shop" status="200 OK"'
        in kubepy("delete", "ns", "shop", "--wait=false", "-v=6").err
    )
    selected = kubepy("get", "cm", "-A", "-l", "a=b", "-v=6").err
    assert 'url="/api/v1/configmaps?labelSelector=a%3Db&limit=500"' in selected


def test_v6_shows_a_request_for_each_page(kubepy: Kubepy) -> None:
    urls = re.findall(r'url="([^"]*)"', kubepy("get", "ns", "--chunk-size=3", "-v=6").err)
    assert urls == ["/api/v1/namespaces?limit=3", urls[-1]]
    assert re.fullmatch(r"/api/v1/namespaces\?continue=[\w-]+&limit=3", urls[-1])
    assert len(messages(kubepy("get", "ns", "--chunk-size=0", "-v=6").err)) == 1


def test_v8_shows_bodies_and_v9_cuts_them_off_later(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "paint", f"--from-literal=colour={'r' * 3000}")
    shown = kubepy("get", "cm", "paint", "-v=8").err
    assert '"Request" verb="GET" url="/api/v1/namespaces/default/configmaps/paint"' in shown
    assert re.search(r'"Response Body" body=".{1000,1200} \[truncated \d+ chars\]"', shown)
    assert "truncated" not in kubepy("get", "cm", "paint", "-v=9").err


def test_v7_shows_headers_of_requests_and_v8_those_of_answers(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "paint", f"--from-literal=colour={'r' * 140_000}")
    table = kubepy("get", "cm", "--sort-by=.metadata.name", "-v=7").err
    assert (
        'url="/api/v1/namespaces/default/configmaps?includeObject=Object&limit=500" headers=<\n'
        "\tAccept: application/json;as=Table;v=v1;g=meta.k8s.io,"
    ) in table
    assert re.search(r'"Response" status="200 OK" milliseconds=\d+\n', table)
    assert "Vary" not in table
    objects = kubepy("get", "cm", "paint", "-o", "name", "-v=8").err
    assert "\tAccept: application/json\n" in objects
    assert '"Response" status="200 OK" headers=<\n\tCache-Control: no-cache, private\n' in objects
    assert "\tVary: Accept-Encoding\n" in objects
    for words in (("--disable-compression",), ("kube-public", "-n=kube-public")):
        assert "Vary" not in kubepy("get", "cm", "-o", "name", "-v=8", *words).err
    assert (
        "\tContent-Type: application/merge-patch+json\n"
        in kubepy("patch", "cm", "paint", "--type=merge", "-p", "{}", "-v=7").err
    )


def test_v5_shows_the_end_of_a_watch_by_timeout(kubepy: Kubepy) -> None:
    done = kubepy("get", "ns", "default", "--watch", "--request-timeout=1", "-v=5")
    assert messages(done.err)[-1] == (
        '"Unable to decode an event from the watch stream" '
        'err="context deadline exceeded (Client.Timeout or context cancellation while reading '
        'body)"'
    )
    assert (done.status, done.out.splitlines()[1].split()[0]) == (0, "default")


def test_vmodule_raises_verbosity_of_one_module(kubepy: Kubepy) -> None:
    kubepy("create", "-f", "-", stdin=NODE)
    kubepy("create", "deployment", "web", "--image=nginx")
    shown = messages(kubepy("controller", "--once", "--vmodule=deployment=4").err)
    assert shown
    assert all("eployment" in line or "ReplicaSet" in line for line in shown)


def test_without_v_nothing_of_logging_is_imported(kubepy: Kubepy) -> None:
    script = (
        "import sys; from kubepy.cli.main import main\n"
        "main(['controller', '--once', '-q'])\n"
        "print([name for name in sys.modules if name.endswith(('klog', 'verbose', 'roundtrips'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_log_writes_values_as_klog() -> None:
    from datetime import UTC, datetime, timedelta

    from kubepy.api.clock import Clock

    lines: list[str] = []
    logger = Logger(4, lines.append, Clock(datetime(2026, 11, 22, 17, 42, 5, 123456, UTC)))
    logger.info(
        4,
        "job.py:7",
        'say "hi"',
        {
            "text": "a b",
            "count": 3,
            "right": True,
            "pods": ["x/a", "x/b"],
            "took": timedelta(milliseconds=1.5),
            "lines": "one\ntwo\n",
        },
    )
    logger.info(5, "job.py:7", "unseen", {})
    assert re.sub(r" +\d+ job", " PID job", lines[0]) == (
        'I1122 17:42:05.123456 PID job.py:7] "say \\"hi\\"" text="a b" count=3 right=true '
        'pods=["x/a","x/b"] '
        'took="1.5ms" lines=<\n\tone\n\ttwo\n >'
    )
    assert len(lines) == 1
    assert [go_duration(seconds) for seconds in (0.0000124, 0.25, 2.0)] == ["12µs", "250ms", "2s"]
