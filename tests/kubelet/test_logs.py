"""The logs of simulated containers: which container, which run, which lines; and the errors of a
kubelet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubepy.api.errors import NotFound, Status
from kubepy.kubelet.logs import (
    ContainerLog,
    LogOptions,
    choose_container,
    goes_on,
    read_log,
    validate_log_options,
)
from tests.kubelet.objects import NOW, Object, new_node, new_pod, played


def log_of(
    pod: Object, node: Object | None = None, now: datetime = NOW, **options: Any
) -> ContainerLog | None:
    return read_log(
        pod, LogOptions(**{"container": "c", **options}), lambda name: node or new_node(), now
    )


def text_of(pod: Object, **options: Any) -> str:
    log = log_of(pod, **options)
    assert log is not None
    return log.data.decode()


def refusal(pod: Object, **options: Any) -> tuple[int, str]:
    with pytest.raises(Status) as caught:
        log_of(pod, **options)
    return caught.value.code, caught.value.message


def printing(pod: Object, **logs: str) -> Object:
    pod["metadata"]["annotations"] |= {
        f"kubepy.dev/{name.replace('_', '.')}": text for name, text in logs.items()
    }
    return pod


def test_log_of_running_container_is_empty_and_open() -> None:
    log = log_of(played(new_pod()))
    assert log is not None
    assert (log.data, log.is_open) == (b"", True)


def test_log_has_the_lines_of_the_annotations() -> None:
    pod = played(printing(new_pod(), log="one\ntwo\n", log_d="other"))
    assert text_of(pod) == "one\ntwo\n"
    assert text_of(pod, container="d") == "other\n"


def test_log_of_all_containers_is_not_that_of_init_containers() -> None:
    pod = played(printing(new_pod(initContainers=[{"name": "i", "image": "i"}]), log="one"))
    assert text_of(pod, container="i") == ""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"tail_lines": 1}, "two\n"),
        ({"tail_lines": 0}, ""),
        ({"tail_lines": 9}, "one\ntwo\n"),
        ({"limit_bytes": 5}, "one\nt"),
        ({"since_time": NOW}, "one\ntwo\n"),
        ({"since_time": NOW + timedelta(seconds=1)}, ""),
        ({"since_seconds": 1}, "one\ntwo\n"),
        ({"timestamps": True, "tail_lines": 1}, "2026-11-20T12:00:00.000000000Z two\n"),
    ],
)
def test_options_choose_lines(options: dict[str, Any], text: str) -> None:
    assert text_of(played(printing(new_pod(), log="one\ntwo")), **options) == text


def test_since_seconds_counts_from_now() -> None:
    log = log_of(
        played(printing(new_pod(), log="one")), now=NOW + timedelta(seconds=6), since_seconds=5
    )
    assert log is not None
    assert log.data == b""


def test_pod_without_node_has_no_log() -> None:
    pod = new_pod()
    del pod["spec"]["nodeName"]
    assert log_of(pod) is None


def test_container_must_be_named_where_there_are_several() -> None:
    pod = new_pod(initContainers=[{"name": "i", "image": "i"}])
    with pytest.raises(Status) as caught:
        choose_container(pod, "")
    assert (
        caught.value.message
        == "a container name must be specified for pod web, choose one of: [i c d]"
    )
    with pytest.raises(Status) as caught:
        choose_container(pod, "x")
    assert (caught.value.code, caught.value.message) == (
        400,
        "container x is not valid for pod web",
    )


def test_container_that_waits_says_for_what() -> None:
    assert refusal(new_pod("pending")) == (
        400,
        'container "c" in pod "web" is waiting to start: ContainerCreating',
    )
    assert refusal(played(new_pod("image-pull-backoff"))) == (
        400,
        'container "c" in pod "web" is waiting to start: trying and failing to pull image',
    )


def test_crashed_container_shows_its_last_run_and_the_previous_one() -> None:
    pod = played(printing(new_pod("crash-loop"), log="panic"))
    assert pod["status"]["containerStatuses"][0]["state"].keys() == {"waiting"}
    assert text_of(pod) == "panic\n"
    assert text_of(pod, previous=True) == "panic\n"


def test_previous_of_first_run_is_not_found() -> None:
    assert refusal(played(new_pod()), previous=True) == (
        400,
        'previous terminated container "c" in pod "web" not found',
    )


def test_completed_container_has_a_closed_log() -> None:
    log = log_of(played(printing(new_pod("succeeded"), log="done")))
    assert log is not None
    assert (log.data, log.is_open) == (b"done\n", False)


def test_rejected_pod_has_no_container() -> None:
    pod = new_pod()
    pod["status"] = {"phase": "Failed", "reason": "OutOfcpu"}
    assert refusal(pod) == (400, 'container "c" in pod "web" is not available')


def test_pod_of_missing_node_has_no_log() -> None:
    with pytest.raises(Status) as caught:
        read_log(played(new_pod()), LogOptions("c"), lambda name: None, NOW)
    assert (caught.value.code, caught.value.message) == (404, 'pods "node-1" not found')


def test_kubelet_that_is_down_cannot_be_reached() -> None:
    node = new_node(**{"kubepy.dev/down-until": "2026-11-20T13:00:00Z"})
    with pytest.raises(Status) as caught:
        log_of(played(new_pod()), node)
    assert caught.value.message == (
        'Get "https://192.168.0.1:10250/containerLogs/shop/web/c": dial tcp '
        "192.168.0.1:10250: connect: connection refused"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tail_lines": -1}, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"limit_bytes": 0}, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"since_seconds": 0}, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ({"stream": "All"}, "stream: Forbidden: may not be specified"),
        (
            {"since_seconds": 1, "since_time": datetime(2026, 1, 1, tzinfo=UTC)},
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
    ],
)
def test_options_are_validated(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Status) as caught:
        validate_log_options("web", LogOptions(**options))
    assert (caught.value.code, caught.value.message) == (
        422,
        f'PodLogOptions "web" is invalid: {message}',
    )


def test_followed_log_ends_with_its_run() -> None:
    pod = played(new_pod())
    log = log_of(pod)
    assert log is not None
    assert goes_on(log, lambda: log_of(pod))
    restarted = played(new_pod())
    restarted["status"]["containerStatuses"][0]["restartCount"] = 1
    assert not goes_on(log, lambda: log_of(restarted))
    assert not goes_on(log, lambda: log_of(played(new_pod("succeeded"))))


def test_followed_log_ends_with_its_pod() -> None:
    def gone() -> ContainerLog | None:
        raise NotFound('pods "web" not found')

    assert not goes_on(ContainerLog(b"", "", is_open=True), gone)
