"""``top``, and the API that it reads: figures of pods and nodes, their order, sums, and what is
said without any."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubepy.storage.yaml import dump
from tests.cli.conftest import Done, Kubepy

CONTAINERS = ("app", "mesh")


def pod(name: str, node: str = "node-1", **annotations: str) -> str:
    own = {f"kubepy.dev/{key.replace('__', '.')}": text for key, text in annotations.items()}
    return dump(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {"app": name.partition("-")[0]},
                "annotations": own,
            },
            "spec": {
                "nodeName": node,
                "containers": [{"name": container, "image": "i"} for container in CONTAINERS],
            },
        }
    )


def set_clock(folder: Path, seconds: int) -> None:
    time = f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"
    (folder / "state" / "kubepy.yaml").write_text(
        dump({"formatVersion": 1, "clock": time, "seed": 1})
    )


@pytest.fixture
def cluster(bare: Kubepy, folder: Path) -> Kubepy:
    """Two nodes, and a cluster whose clock stands still."""
    (folder / "state").mkdir()
    set_clock(folder, 0)
    bare("init", "--nodes=2")
    return bare


@pytest.fixture
def busy(cluster: Kubepy) -> Kubepy:
    """Pods with and without figures."""
    cluster("create", "namespace", "other")
    pods = [
        pod("web-0", cpu="301m", memory="128Mi"),
        pod("web-1", "node-2", cpu="100m", memory="300Mi"),
        pod("db-0", cpu="50m", cpu__app="1500m", memory="64Mi"),
        pod("silent"),
    ]
    cluster("apply", "-f", "-", stdin="---\n".join(pods))
    cluster("apply", "-n", "other", "-f", "-", stdin=pod("batch", memory="1Gi"))
    cluster("controller", "--once", "-q")
    return cluster


def lines(done: Done) -> list[str]:
    assert (done.err, done.status) == ("", 0)
    return done.out.splitlines()


def test_pods_are_listed_by_name_with_their_usage(busy: Kubepy) -> None:
    assert lines(busy("top", "pod")) == [
        "NAME    CPU(cores)   MEMORY(bytes)   ",
        "db-0    1550m        64Mi            ",
        "web-0   301m         128Mi           ",
        "web-1   100m         300Mi           ",
    ]
    assert lines(busy("top", "po", "web-1", "--no-headers")) == ["web-1   100m   300Mi   "]


def test_pods_are_chosen_by_labels_and_fields(busy: Kubepy) -> None:
    assert lines(busy("top", "pods", "-l", "app=web", "--no-headers", "--sum")) == [
        "web-0   301m       128Mi      ",
        "web-1   100m       300Mi      ",
        "        ________   ________   ",
        "        401m       428Mi      ",
    ]
    assert lines(busy("top", "pods", "--field-selector=spec.nodeName=node-2", "--no-headers"))[
        0
    ].startswith("web-1")


def test_pods_of_all_namespaces_in_order_of_their_usage(busy: Kubepy) -> None:
    assert [
        line.split() for line in lines(busy("top", "pod", "-A", "--sort-by=memory", "--show-swap"))
    ] == [
        ["NAMESPACE", "NAME", "CPU(cores)", "MEMORY(bytes)", "SWAP(bytes)"],
        ["other", "batch", "0m", "1024Mi", "0Mi"],
        ["default", "web-1", "100m", "300Mi", "0Mi"],
        ["default", "web-0", "301m", "128Mi", "0Mi"],
        ["default", "db-0", "1550m", "64Mi", "0Mi"],
    ]


def test_containers_share_what_pod_uses_beside_their_own(busy: Kubepy) -> None:
    assert [
        line.split() for line in lines(busy("top", "pod", "--containers", "--sort-by=cpu"))
    ] == [
        ["POD", "NAME", "CPU(cores)", "MEMORY(bytes)"],
        ["db-0", "app", "1500m", "32Mi"],
        ["db-0", "mesh", "50m", "32Mi"],
        ["web-0", "app", "151m", "64Mi"],
        ["web-0", "mesh", "151m", "64Mi"],
        ["web-1", "app", "50m", "150Mi"],
        ["web-1", "mesh", "50m", "150Mi"],
    ]


def test_series_holds_from_its_times_on(cluster: Kubepy, folder: Path) -> None:
    cluster("apply", "-f", "-", stdin=pod("web", cpu="100m@10s,400m@1m"))
    cluster("controller", "--once", "-q")
    assert cluster("top", "pod").err == "error: metrics not available yet\n"
    for seconds, used in ((10, "100m"), (59, "100m"), (60, "400m"), (600, "400m")):
        set_clock(folder, seconds)
        assert lines(cluster("top", "pod", "--no-headers"))[0].split()[1] == used


def test_nodes_use_what_their_pods_use(busy: Kubepy) -> None:
    assert [line.split() for line in lines(busy("top", "node", "--sort-by=memory"))] == [
        ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"],
        ["node-1", "1851m", "46%", "1216Mi", "14%"],
        ["node-2", "100m", "2%", "300Mi", "3%"],
    ]
    busy(
        "patch",
        "node",
        "node-2",
        "--subresource=status",
        "-p",
        '{"status":{"allocatable":{"cpu":"200m"}}}',
    )
    assert lines(busy("top", "no", "node-2", "--no-headers"))[0].split()[:3] == [
        "node-2",
        "100m",
        "50%",
    ]
    assert lines(busy("top", "no", "node-2", "--no-headers", "--show-capacity"))[0].split()[:3] == [
        "node-2",
        "100m",
        "2%",
    ]
    assert (
        lines(busy("top", "no", "node-2", "--no-headers", "--show-swap"))[0].split()[-2:]
        == ["<unknown>"] * 2
    )


def test_node_that_is_not_ready_is_unknown(busy: Kubepy) -> None:
    busy("annotate", "node", "node-2", "kubepy.dev/outcome=not-ready")
    busy(
        "patch",
        "node",
        "node-2",
        "--subresource=status",
        "-p",
        '{"status":{"conditions":[{"type":"Ready","status":"False"}]}}',
    )
    assert lines(busy("top", "node", "--no-headers", "--reconcile=never"))[1].split() == [
        "node-2"
    ] + 4 * ["<unknown>"]
    assert busy("top", "node", "node-2").err == (
        'Error from server (NotFound): nodemetrics.metrics.k8s.io "node-2" not found\n'
    )


def test_without_figures_there_are_no_metrics(cluster: Kubepy, folder: Path) -> None:
    assert cluster("top", "pod") == Done("", "No resources found in default namespace.\n", 0)
    assert cluster("top", "pod", "-A") == Done("", "No resources found\n", 0)
    assert cluster("top", "node") == Done("", "error: metrics not available yet\n", 1)
    cluster("apply", "-f", "-", stdin=pod("silent"))
    cluster("controller", "--once", "-q")
    set_clock(folder, 60)
    assert cluster("top", "pod") == Done("", "error: metrics not available yet\n", 1)
    set_clock(folder, 121)
    assert cluster("top", "pod") == Done(
        "", "error: Metrics not available for pod default/silent, age: 2m1s\n", 1
    )
    assert cluster("top", "pod", "-l", "a=b") == Done(
        "", "No resources found in default namespace.\n", 0
    )
    assert cluster("top", "pod", "silent").err == (
        'Error from server (NotFound): podmetrics.metrics.k8s.io "default/silent" not found\n'
    )
    assert (
        cluster("top", "pod", "nosuch").err
        == 'Error from server (NotFound): pods "nosuch" not found\n'
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pod", "--sort-by=age"], "error: --sort-by accepts only cpu or memory\n"),
        (["pod", "a", "-l", "b=c"], "error: only one of NAME or selector can be provided\n"),
        (
            ["pod", "a", "-A"],
            "error: an empty namespace may not be set when a resource name is provided\n",
        ),
        (["node", "a", "-l", "b=c"], "error: only one of NAME or --selector can be provided\n"),
        (
            ["node", "a", "b"],
            "error: node [NAME | -l label]\nSee 'kubepy top node -h' for help and examples\n",
        ),
        (["pod", "-l", "a=b=c"], "error: found '=', expected: ',' or 'end of string'\n"),
    ],
)
def test_wrong_line_is_refused(cluster: Kubepy, words: list[str], message: str) -> None:
    assert cluster("top", *words) == Done("", message, 1)


def test_metrics_are_an_api_that_is_read_only(busy: Kubepy) -> None:
    answer = json.loads(
        busy("get", "--raw", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/web-0").out
    )
    assert (answer["kind"], answer["window"], answer["timestamp"]) == (
        "PodMetrics",
        "15s",
        "2026-01-01T00:00:00Z",
    )
    assert answer["containers"][1] == {
        "name": "mesh",
        "usage": {"cpu": "150500u", "memory": "64Mi"},
    }
    answer = json.loads(busy("get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes").out)
    assert [item["usage"] for item in answer["items"]] == [
        {"cpu": "1851m", "memory": "1216Mi"},
        {"cpu": "100m", "memory": "300Mi"},
    ]
    assert [line.split() for line in lines(busy("get", "pods.metrics.k8s.io", "web-0"))] == [
        ["NAME", "CPU", "MEMORY", "WINDOW"],
        ["web-0", "301m", "128Mi", "15s"],
    ]
    assert [
        line.split()
        for line in lines(busy("api-resources", "--api-group=metrics.k8s.io", "--no-headers"))
    ] == [
        ["nodes", "metrics.k8s.io/v1beta1", "false", "NodeMetrics"],
        ["pods", "metrics.k8s.io/v1beta1", "true", "PodMetrics"],
    ]
    assert "metrics.k8s.io/v1beta1" in lines(busy("api-versions"))
    assert busy("delete", "pods.metrics.k8s.io", "web-0").err == (
        "Error from server (MethodNotAllowed): the server does not allow this method on the "
        "requested resource\n"
    )
    assert lines(busy("get", "pods", "-o", "name"))[0] == "pod/db-0"


def test_annotation_that_cannot_be_read_keeps_pod_from_starting(cluster: Kubepy) -> None:
    cluster("apply", "-f", "-", stdin=pod("web", cpu="plenty"))
    cluster("controller", "--once", "-q")
    assert lines(cluster("get", "pods", "--no-headers"))[0].split()[:3] == ["web", "0/2", "Pending"]
    assert lines(
        cluster(
            "get", "events", "-o", "jsonpath={.items[?(@.reason=='InvalidAnnotation')].message}"
        )
    ) == [
        'kubepy.dev/cpu: "plenty": it must be a quantity such as 250m, or a series such as '
        "100m@0s,400m@60s"
    ]
    cluster("annotate", "pod", "web", "kubepy.dev/cpu=1", "--overwrite")
    cluster("controller", "--once", "-q")
    assert lines(cluster("top", "pod", "--no-headers")) == ["web   1000m   0Mi   "]
