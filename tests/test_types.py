"""mypy finds mistyped flags and fields: one name is changed in each of some modules of a copy of
the package."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]
# The module, the name as it is, a mistyped one, and the error.
MISTYPED = (
    (
        "kubepy/cli/drain.py",
        "options.grace_period",
        "options.grace_time",
        'has no attribute "grace_time"',
    ),
    (
        "kubepy/controllers/daemonset/pods.py",
        '.get("nodeName")',
        '.get("nodeNam")',
        '"PodSpec" has no key "nodeNam"',
    ),
    (
        "kubepy/controllers/job/decide.py",
        '["backoffLimit"]',
        '["backofLimit"]',
        '"JobSpec" has no key "backofLimit"',
    ),
    (
        "kubepy/controllers/endpoint.py",
        '.get("notReadyAddresses")',
        '.get("notReadyAddress")',
        '"EndpointSubset" has no key "notReadyAddress"',
    ),
    (
        "kubepy/controllers/persistentvolume/volumes.py",
        '.get("persistentVolumeReclaimPolicy")',
        '.get("reclaimPolicy")',
        '"PersistentVolumeSpec" has no key "reclaimPolicy"',
    ),
    (
        "kubepy/controllers/statefulset/status.py",
        'status["readyReplicas"]',
        'status["readyReplica"]',
        '"StatefulSetStatus" has no key "readyReplica"',
    ),
)


def mypy(tree: Path) -> str:
    modules = [module for module, *_ in MISTYPED]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tree / ".mypy_cache"), *modules],
        cwd=tree,
        text=True,
        capture_output=True,
        check=False,
    )
    return done.stdout


def test_mistyped_name_is_error_of_mypy(tmp_path: Path) -> None:
    for folder in ("kubepy", "tools"):
        shutil.copytree(
            PROJECT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    if (
        cache := PROJECT / ".mypy_cache"
    ).exists():  # of `make check`: only modules that change are checked again
        shutil.copytree(cache, tmp_path / ".mypy_cache")
    assert "Success" in mypy(tmp_path)
    for module, right, wrong, _ in MISTYPED:
        changed = tmp_path / module
        assert right in changed.read_text()
        changed.write_text(changed.read_text().replace(right, wrong))
    errors = mypy(tmp_path).splitlines()
    for module, _, _, error in MISTYPED:
        assert any(line.startswith(f"{module}:") and error in line for line in errors), (
            module,
            error,
        )
