"""What a pod asks for as a whole."""

from __future__ import annotations

from typing import Any

from kubepy.api.objects.pods import aggregate


def container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


def asked(**spec: Any) -> dict[str, str]:
    return {name: str(amount) for name, amount in aggregate(spec, "requests").items()}


def test_containers_run_together() -> None:
    assert asked(containers=[container("100m"), container("1"), {"resources": {"requests": {"memory": "1Mi"}}}]) == {
        "cpu": "1100m", "memory": "1Mi"}


def test_init_containers_run_one_after_another() -> None:
    init = [container("2"), container("500m")]
    assert asked(containers=[container("1")], initContainers=init) == {"cpu": "2"}
    assert asked(containers=[container("3")], initContainers=init) == {"cpu": "3"}


def test_sidecars_go_on_beside_what_comes_after_them() -> None:
    init = [container("1"), container("1", restartPolicy="Always"), container("3")]
    assert asked(containers=[container("1")], initContainers=init) == {"cpu": "4"}
    assert asked(containers=[container("5")], initContainers=init) == {"cpu": "6"}
