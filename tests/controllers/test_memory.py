"""Controllers that run for long: what has come and gone costs them no memory, and forgetting it
changes nothing."""

from __future__ import annotations

import gc
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kubepy.controlplane import build_manager
from kubepy.runtime import informers

from .conftest import Lab

NEVER = 10**9
CONTAINER = {"name": "c", "image": "busybox"}
CRON_JOB = {
    "metadata": {"name": "often"},
    "spec": {
        "schedule": "*/10 * * * *",
        "jobTemplate": {
            "spec": {
                "ttlSecondsAfterFinished": 600,
                "template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}},
            }
        },
    },
}


class LongRun:
    """One manager over a cluster in which a Job begins every ten minutes, and goes ten minutes
    after its end."""

    def __init__(self, folder: Path) -> None:
        self.lab = Lab(folder)
        self.lab.node("n")
        self.lab.create("cronjobs.batch", CRON_JOB, "default")
        self._manager = build_manager(self.lab.cluster)

    def pass_hours(self, number: int) -> None:
        for _ in range(number):
            self._manager.advance(self.lab.now + timedelta(hours=1))

    def content(self) -> dict[str, Any]:
        cluster = self.lab.cluster
        return {resource: cluster.store.list(resource).objects for resource in cluster.resources()}


def kept() -> int:
    gc.collect()
    return len(gc.get_objects())


def test_what_has_gone_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informers, "OVERGROWN", 100)
    run = LongRun(tmp_path / "state")
    run.pass_hours(8)
    before = kept()
    run.pass_hours(16)
    assert kept() < before + 500  # 96 Jobs with a pod each have come and gone
    run.lab.cluster.close()


def test_forgetting_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = []
    for overgrown in (-NEVER, 30, NEVER):
        monkeypatch.setattr(informers, "OVERGROWN", overgrown)
        run = LongRun(tmp_path / str(overgrown))
        run.pass_hours(4)
        run.lab.create(
            "pods", {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}}, "default"
        )
        run.pass_hours(4)
        contents.append(run.content())
        run.lab.cluster.close()
    assert contents[0] == contents[1] == contents[2]
