"""mypy finds mistyped flags and fields: each test changes one name in a copy of the package."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]


def mypy(tree: Path, module: str) -> str:
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tree / ".mypy_cache"), module], cwd=tree,
                          text=True, capture_output=True, check=False)
    return done.stdout


@pytest.mark.parametrize(("module", "right", "wrong", "error"), [
    ("kubepy/cli/drain.py", "options.grace_period", "options.grace_time", 'has no attribute "grace_time"'),
    ("kubepy/controllers/daemonset/pods.py", '.get("nodeName")', '.get("nodeNam")', '"PodSpec" has no key "nodeNam"'),
    ("kubepy/controllers/job/decide.py", '["backoffLimit"]', '["backofLimit"]', '"JobSpec" has no key "backofLimit"'),
    ("kubepy/controllers/endpoint.py", '.get("notReadyAddresses")', '.get("notReadyAddress")',
     '"EndpointSubset" has no key "notReadyAddress"'),
    ("kubepy/controllers/persistentvolume/volumes.py", '.get("persistentVolumeReclaimPolicy")', '.get("reclaimPolicy")',
     '"PersistentVolumeSpec" has no key "reclaimPolicy"'),
    ("kubepy/controllers/statefulset/status.py", 'status["readyReplicas"]', 'status["readyReplica"]',
     '"StatefulSetStatus" has no key "readyReplica"'),
])  # fmt: skip
def test_mistyped_name_is_error_of_mypy(module: str, right: str, wrong: str, error: str, tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "kubepy", tmp_path / "kubepy", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PROJECT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    changed = tmp_path / module
    assert right in changed.read_text()
    assert "Success" in mypy(tmp_path, module)
    changed.write_text(changed.read_text().replace(right, wrong))
    assert error in mypy(tmp_path, module)
