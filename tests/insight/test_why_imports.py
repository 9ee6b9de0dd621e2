"""`why` about objects of an imported cluster whose owners the source does not hold."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import run
from tests.importing.conftest import owned_by, pod
from tests.importing.test_absent import terminating_namespace

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


def test_namespace_that_is_kept_by_absent_content_says_so(tmp_path: Path) -> None:
    state = f"--state={tmp_path / 'state'}"
    message = "Some resources are remaining: widgets.acme.io has 1 resource instances"
    namespace = {"apiVersion": "v1", **terminating_namespace(message)}
    done = run(state, "import", "-", stdin=json.dumps(namespace))
    assert "kept by what is not in the source: namespace shop (widgets.acme.io)\n" in done.out
    assert run(state, "get", "ns", "shop").status == 0
    done = run(state, "why", "ns/shop", "-o", "json")
    answer = json.loads(done.out)
    assert answer["cause"] == "namespace-contents"
    assert "the source of the import does not hold what remains in it: widgets.acme.io" in done.out
