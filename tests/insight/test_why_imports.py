"""`why` about objects of an imported cluster whose owners the source does not hold."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import run
from tests.importing.conftest import owned_by, pod

CONDITION = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T10:00:00Z"}


def test_absent_owner_is_named(tmp_path: Path) -> None:
    state = f"--state={tmp_path / 'state'}"
    metadata = owned_by("StatefulSet", "db")
    obj = {"apiVersion": "v1", **pod("db-0", metadata=metadata, status={"conditions": [CONDITION]})}
    assert run(state, "import", "-", stdin=json.dumps(obj)).status == 0
    done = run(state, "why", "-n", "shop", "pod/db-0", "-o", "json")
    assert done.status == 0, done.err
    answer = json.loads(done.out)
    assert answer["cause"] == "owner-not-held"
    assert "statefulsets.apps" in done.out
    done = run(state, "why", "-n", "shop", "sts/db")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("StatefulSet db is not in the source that this cluster was imported")
