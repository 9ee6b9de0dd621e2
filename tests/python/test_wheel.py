"""The built wheel, installed elsewhere: plugin, types, data files, public names as type checkers
see them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]

SCRIPT = """
from datetime import timedelta

from kubepy import ApiError, Cluster, CommandResult, NotFound


def ready_pods(cluster: Cluster) -> list[str]:
    pods = cluster.client.list("pods", labels={"app": "web"})
    return [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"]


with Cluster.temporary(nodes=3) as cluster:
    result: CommandResult = cluster.run("create deployment web --image=nginx", check=True)
    cluster.advance(timedelta(minutes=1))
    settled: bool = cluster.settle(limit="1h")
    for event in cluster.client.watch("pods"):
        print(event.type, event.object["metadata"]["name"])
    try:
        cluster.client.get("deploy/none")
    except NotFound as error:
        status: ApiError = error
        print(status.code, result.stdout, settled, ready_pods(cluster.fork()))
"""
WRONG = """
from kubepy import Cluster

number: int = Cluster.temporary(node=3).run("get pods").stdout
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the wheel and this environment's other
    packages."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "-w", str(folder), str(PROJECT)],
        check=True,
        capture_output=True,
    )
    [wheel] = folder.glob("*.whl")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True
    )
    python = folder / "venv" / "bin" / "python"
    [packages] = (folder / "venv" / "lib").glob("python*/site-packages")
    subprocess.run(
        [*pip, "install", "--no-deps", "--target", str(packages), str(wheel)],
        check=True,
        capture_output=True,
    )
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return python


def run(python: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))
    }
    return subprocess.run(
        [str(python), *words],
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
        env=environment,
    )


def test_wheel_has_all_files_of_package(python: Path, tmp_path: Path) -> None:
    done = run(python, tmp_path, "-c", "import kubepy; print(kubepy.__path__[0])")
    installed = Path(done.stdout.strip())
    assert python.parents[1] in installed.parents
    wanted = {
        path.relative_to(PROJECT / "kubepy")
        for path in (PROJECT / "kubepy").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= {path.relative_to(installed) for path in installed.rglob("*")}
    assert Path("py.typed") in wanted


def test_script_runs_and_is_typed(python: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "wrong.py").write_text(WRONG)
    done = run(python, tmp_path, "script.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("404 deployment.apps/web created\n True ['web-")
    checked = run(python, tmp_path, "-m", "mypy", "--strict", "script.py")
    assert checked.returncode == 0, checked.stdout
    checked = run(python, tmp_path, "-m", "mypy", "--strict", "wrong.py")
    assert 'Unexpected keyword argument "node" for "temporary"' in checked.stdout
    assert 'expression has type "str", variable has type "int"' in checked.stdout


def test_plugin_comes_with_wheel(python: Path, tmp_path: Path) -> None:
    (tmp_path / "test_nodes.py").write_text(
        "from kubepy import Cluster\n\ndef test_nodes(kubepy: Cluster) -> None:\n    assert "
        "kubepy.run('get nodes')\n"
    )
    (tmp_path / "nodes.kubepy.txt").write_text("$ kubectl get nodes -o name\nnode/node-1\n")
    done = run(python, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
