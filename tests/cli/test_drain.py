"""``cordon``, ``uncordon`` and ``drain`` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

BARE = """
apiVersion: v1
kind: Pod
metadata: {name: lone, labels: {app: lone}}
spec: {nodeName: node-1, containers: [{name: c, image: nginx}]}
"""
SCRATCH = BARE.replace("lone", "scratch").replace(
    "]}\n", "], volumes: [{name: v, emptyDir: {}}]}\n"
)
AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: nginx}]}
"""
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec: {minAvailable: 1, selector: {matchLabels: {app: lone}}}
"""
UNMANAGED = "cannot delete Pods that declare no controller (use --force to override): default/lone"


@pytest.fixture
def node(bare: Kubepy) -> Kubepy:
    bare("init", "--nodes=1")
    return bare


def make(kubepy: Kubepy, *manifests: str) -> None:
    assert kubepy("create", "-f", "-", stdin="---\n".join(manifests)).status == 0
    assert kubepy("controller", "--once", "-q").status == 0


def test_drain_unmanaged_pods_need_force(node: Kubepy) -> None:
    make(node, BARE)
    done = node("drain", "node-1")
    assert (done.out, done.status) == ("node/node-1 cordoned\n", 1)
    assert done.err == (
        f'error: unable to drain node "node-1" due to error: {UNMANAGED}, continuing command...\n'
        f"There are pending nodes to be drained:\n node-1\n{UNMANAGED}\n"
    )
    assert node("drain", "node-1", "--force") == Done(
        "node/node-1 already cordoned\nevicting pod default/lone\npod/lone evicted\nnode/node-1 "
        "drained\n",
        "Warning: deleting Pods that declare no controller: default/lone\n",
        0,
    )


def test_drain_prints_all_obstacles_at_once(node: Kubepy) -> None:
    make(node, BARE, SCRATCH, AGENT)
    agent = node("get", "pods", "-l", "app=agent", "-o", "jsonpath={.items[0].metadata.name}").out
    why = [
        f"cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): "
        f"default/{agent}",
        UNMANAGED,
        "cannot delete Pods with local storage (use --delete-emptydir-data to override): "
        "default/scratch",
    ]
    assert node("drain", "node-1") == Done(
        "node/node-1 cordoned\n",
        f'error: unable to drain node "node-1" due to error: [{", ".join(why)}], continuing '
        f"command...\n"
        "There are pending nodes to be drained:\n node-1\n" + "".join(f"{one}\n" for one in why),
        1,
    )


def test_drain_dry_run_prints_each_pod_once(node: Kubepy) -> None:
    make(node, BARE)
    done = node("drain", "node-1", "--force", "--dry-run")
    assert (done.out, done.status) == (
        "node/node-1 cordoned (dry run)\nevicting pod default/lone (dry run)\nnode/node-1 drained "
        "(dry run)\n",
        0,
    )
    log, warning = done.err.splitlines()
    assert log.endswith(
        "helpers.go:719] --dry-run is deprecated and can be replaced with --dry-run=client."
    )
    assert warning == "Warning: deleting Pods that declare no controller: default/lone"
    assert node("get", "pods", "-o", "name").out == "pod/lone\n"


def test_drain_blocked_by_budget_retries_until_timeout(node: Kubepy) -> None:
    make(node, BARE, BUDGET)
    refused = "Cannot evict pod as it would violate the pod's disruption budget."
    overdue = 'error when evicting pods/"lone" -n "default": global timeout reached: 300ms'
    done = node("drain", "node-1", "--force", "--timeout=300ms")
    assert (
        done.out == "node/node-1 cordoned\nevicting pod default/lone\nevicting pod default/lone\n"
    )
    assert done.err == (
        "Warning: deleting Pods that declare no controller: default/lone\n"
        f'error when evicting pods/"lone" -n "default" (will retry after 5s): {refused}\n'
        f'There are pending pods in node "node-1" when an error occurred: {overdue}\npod/lone\n'
        f'error: unable to drain node "node-1" due to error: {overdue}, continuing command...\n'
        f"There are pending nodes to be drained:\n node-1\n{overdue}\n"
    )


def test_drain_disable_eviction_ignores_budgets(node: Kubepy) -> None:
    make(node, BARE, BUDGET)
    assert node("drain", "node-1", "--force", "--disable-eviction") == Done(
        "node/node-1 cordoned\npod/lone deleted\nnode/node-1 drained\n",
        "Warning: deleting Pods that declare no controller: default/lone\n",
        0,
    )


@pytest.mark.parametrize("verb", ["cordon", "uncordon", "drain"])
def test_node_commands_without_name_fail(node: Kubepy, verb: str) -> None:
    assert node(verb, "") == Done("", "error: resource name may not be empty\n", 1)
    assert node(verb, "none") == Done(
        "", 'Error from server (NotFound): nodes "none" not found\n', 1
    )
    assert node(verb, "pod/x").status == 1


def test_cordon_unwritable_node_reports_error(node: Kubepy, folder: Path) -> None:
    nodes = folder / "state/cluster/nodes"
    node("get", "nodes")
    nodes.rename(folder / "nodes")
    nodes.symlink_to(folder / "nodes")
    done = node("cordon", "-l", "kubernetes.io/os=linux")
    assert (done.out, done.status) == ("", 0)
    assert (
        done.err.splitlines()[-1]
        == f'error: unable to cordon node "node-1": {nodes.relative_to(folder)}: '
        "is a symbolic link"
    )


@pytest.mark.parametrize("verb", ["cordon", "uncordon", "drain"])
def test_node_commands_with_empty_selector_fail(node: Kubepy, verb: str) -> None:
    done = node(verb, "--selector=")
    assert (done.err.splitlines()[0], done.status) == (
        "error: You must provide one or more resources by argument or filename.",
        1,
    )


def test_node_after_one_that_is_waited_for_for_ever_is_not_drained(bare: Kubepy) -> None:
    bare("init", "--nodes=2", "--clock=2026-01-01T00:00:00Z")
    other = BARE.replace("lone", "other").replace("node-1", "node-2")
    make(bare, BARE, BUDGET, other)
    done = bare("drain", "node-1", "node-2", "--force")
    assert "There are pending nodes to be drained:\n node-1\n node-2\n" in done.err
    assert done.status == 1
    assert bare("get", "pod", "other", "-o", "name").out == "pod/other\n"
