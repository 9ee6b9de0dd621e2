"""The recipes of docs/harnesses.md, run with the tools that are here.

A recipe for Node needs ``@kubernetes/client-node`` in a folder of ``$NODE_PATH``. The one for Go
needs ``$KUBEPY_GO_MODULE``: a folder with a ``go.mod`` whose dependencies, controller-runtime among
them, can be had.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kubepy import Cluster
from tests.cli.conftest import run
from tests.python.test_serving import ask

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs" / "harnesses.md"
FILE = re.compile(r"^```\w+\n(?:#|//) (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RECIPES = dict(FILE.findall(PAGE.read_text()))
NEEDED = {"test_kubernetes.py": "kubernetes", "test_kr8s.py": "kr8s", "test_kopf.py": "kopf"}
PACKAGE = "@kubernetes/client-node"
BUILD_SECONDS = 600


def test_page_has_the_recipes_that_are_run() -> None:
    assert {*NEEDED, "test_unittest.py", "recipe.mjs", "recipe_test.go"} <= RECIPES.keys()


@pytest.mark.parametrize("name", [*NEEDED, "test_unittest.py"])
def test_recipe_for_python_passes(pytester: pytest.Pytester, name: str) -> None:
    package = NEEDED.get(name)
    if package and find_spec(package) is None:
        pytest.skip(f"{package} is missing: pip install -e '.[clients]'")
    (pytester.path / name).write_text(RECIPES[name])
    done = pytester.run(sys.executable, "-m", "pytest", "-q", name, timeout=120)
    assert "1 passed" in done.stdout.str(), done.stdout.str()


def node_package() -> Path | None:
    """Return the folder of packages in which the client for Node is."""
    for folder in os.environ.get("NODE_PATH", "").split(os.pathsep):
        if folder and (Path(folder) / PACKAGE).is_dir():
            return Path(folder)
    return None


def test_recipe_for_node_prints_what_it_has_written(tmp_path: Path) -> None:
    packages = node_package()
    node = shutil.which("node")
    if node is None or packages is None:
        pytest.skip(f"node, or {PACKAGE} in $NODE_PATH, is missing")
    (tmp_path / "node_modules").symlink_to(packages)
    (tmp_path / "recipe.mjs").write_text(RECIPES["recipe.mjs"])
    with Cluster.temporary() as cluster, cluster.serve() as server:
        done = subprocess.run(
            [node, "recipe.mjs"],
            cwd=tmp_path,
            env=server.environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr


def test_recipe_for_go_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, go = os.environ.get("KUBEPY_GO_MODULE"), shutil.which("go")
    if not module or go is None:
        pytest.skip("go, or $KUBEPY_GO_MODULE, is missing")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assets = run("envtest-assets").out.strip()
    folder = Path(module) / "kubepyrecipe"
    folder.mkdir()
    try:
        (folder / "recipe_test.go").write_text(RECIPES["recipe_test.go"])
        done = subprocess.run(
            [go, "test", "./kubepyrecipe"],
            cwd=module,
            env={**os.environ, "KUBEBUILDER_ASSETS": assets},
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
        )
    finally:
        shutil.rmtree(folder)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_url_of_a_fork_in_a_kubeconfig_serves_the_fork() -> None:
    """Any client takes the path of a fork as a part of its server's URL."""
    kr8s = pytest.importorskip("kr8s", reason="the client is missing")
    with Cluster.temporary() as cluster, cluster.serve() as server:
        path = ask(server, "/kubepy/forks", "POST", {})["server"].rstrip("/")
        text = Path(server.kubeconfig).read_text()
        fork_config = Path(server.kubeconfig).with_name("fork")
        fork_config.write_text(text.replace(server.url, f"{server.url}{path}"))
        cluster.run("create configmap of-origin", check=True)
        fork = kr8s.api(kubeconfig=str(fork_config))
        maps = [obj.name for obj in fork.get("configmaps", namespace="default")]
        assert "of-origin" not in maps
        assert [node.name for node in fork.get("nodes")] == ["node-1"]
