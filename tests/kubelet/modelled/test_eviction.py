"""The eviction of modelled pods that write more than their limits allow."""

from __future__ import annotations

import pytest

from kubepy.kubelet.modelled.records import RECORD
from kubepy.shell.files import MOST_KEPT

from .clusters import Object, PodsCluster, shell

ZEROS = "dd if=/dev/zero of={path} bs=1M count={count}; sleep 1000"


@pytest.fixture
def pods() -> PodsCluster:
    return PodsCluster()


def writing(path: str, count: int, *, limit: str = "", name: str = "c") -> Object:
    """Return a container that writes so many MiB."""
    container = shell(ZEROS.format(path=path, count=count), name=name)
    container["volumeMounts"] = [{"name": "v", "mountPath": "/cache"}]
    if limit:
        container["resources"] = {"limits": {"ephemeral-storage": limit}}
    return container


def create(pods: PodsCluster, *containers: Object, **empty_dir: str) -> None:
    volume = {"name": "v", "emptyDir": empty_dir}
    pods.advance(3)
    pods.create("p", *containers, volumes=[volume])


def evictions(pods: PodsCluster) -> list[str]:
    return [message for reason, message, _ in pods.events("p") if reason == "Evicted"]


def test_volume_over_its_limit_evicts_the_pod_at_the_next_look(pods: PodsCluster) -> None:
    create(pods, writing("/cache/x", 5), sizeLimit="4Mi")
    pods.advance(6)
    assert pods.shown("p") == "1/1 Running 0"
    pods.advance(1)
    status = pods.pod("p")["status"]
    message = 'Usage of EmptyDir volume "v" exceeds the limit "4Mi". '
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "Evicted", message)
    assert evictions(pods) == [message]
    assert pods.reasons("p")[-2:] == ["Evicted", "Killing"]
    assert "DisruptionTarget" not in {each["type"] for each in status["conditions"]}


def test_volume_within_its_limit_is_never_looked_at(pods: PodsCluster) -> None:
    create(pods, writing("/cache/x", 3), sizeLimit="4Mi")
    pods.advance(3600)
    assert pods.shown("p").startswith("1/1 Running")
    assert evictions(pods) == []


def test_limits_of_all_containers_count_together(pods: PodsCluster) -> None:
    one = writing("/tmp/x", 3, limit="4Mi", name="one")
    two = writing("/cache/x", 6, limit="4Mi", name="two")
    create(pods, one, two)
    pods.advance(10)
    words = "Pod ephemeral local storage usage exceeds the total limit of containers 8Mi. "
    assert evictions(pods) == [words]


def test_container_over_its_own_limit_evicts_the_pod(pods: PodsCluster) -> None:
    one = writing("/tmp/x", 5, limit="4Mi", name="one")
    two = writing("/tmp/x", 1, limit="40Mi", name="two")
    create(pods, one, two)
    pods.advance(10)
    assert evictions(pods) == ['Container one exceeded its local ephemeral storage limit "4Mi". ']


def test_files_that_a_command_has_written_count(pods: PodsCluster) -> None:
    container = shell("sleep 1000", resources={"limits": {"ephemeral-storage": "1Mi"}})
    pods.create("p", container)
    pods.advance(2)
    pods.run("exec", "p", "--", "sh", "-c", "head -c 1100000 /dev/zero > /big")
    pods.advance(20)
    assert len(evictions(pods)) == 1


def test_pod_that_ignores_term_is_killed_after_two_seconds(pods: PodsCluster) -> None:
    script = "trap '' TERM; head -c 5000000 /dev/zero > /cache/x; while :; do sleep 1; done"
    container = {**writing("/cache/x", 1), "command": ["sh", "-c", script]}
    create(pods, container, sizeLimit="1Mi")
    pods.advance(7)
    assert pods.pod("p")["status"]["phase"] == "Running"
    pods.advance(2)
    assert pods.pod("p")["status"]["reason"] == "Evicted"
    assert pods.state("p")["terminated"]["exitCode"] == 137


def test_critical_pod_stays(pods: PodsCluster) -> None:
    volume = {"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}
    pods.create(
        "p", writing("/cache/x", 5), volumes=[volume], priorityClassName="system-node-critical"
    )
    pods.advance(60)
    assert evictions(pods) == []


def test_volume_in_memory_has_no_space_beyond_its_limit(pods: PodsCluster) -> None:
    create(pods, writing("/cache/x", 5), medium="Memory", sizeLimit="1Mi")
    pods.advance(30)
    assert "No space left on device" in pods.logs("p")
    assert pods.shown("p") == "1/1 Running 0"


DOUBLING = """
echo 0123456789abcdef > /cache/a
i=0
while [ $i -lt 18 ]; do
  cat /cache/a /cache/a > /cache/b || break
  mv /cache/b /cache/a
  i=$((i+1))
done
sleep 1000
"""


def test_record_holds_a_mebibyte_of_a_volume(pods: PodsCluster) -> None:
    container = {**writing("/cache/x", 1), "command": ["sh", "-c", DOUBLING]}
    create(pods, container)
    assert "No space left on device" in pods.logs("p")
    uid = pods.pod("p")["metadata"]["uid"]
    with pods.cluster._open() as local:
        text = local.client.value(f"{RECORD}{uid}")
    assert text is not None
    assert MOST_KEPT / 2 < len(text) < 2 * MOST_KEPT


def test_write_beyond_what_is_kept_counts_for_the_eviction(pods: PodsCluster) -> None:
    container = {**writing("/cache/x", 1), "command": ["sh", "-c", DOUBLING]}
    create(pods, container, sizeLimit="1Mi")
    pods.advance(20)
    assert len(evictions(pods)) == 1
