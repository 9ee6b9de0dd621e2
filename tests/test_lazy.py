"""Lazy imports bind stand-ins, which the module replaces at first use; named tuples are those of typing."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from kubepy.lazy import NamedTuple

USER = """
from kubepy.lazy import lazy_imports

with lazy_imports():
    from {package} import {module}{alias}

def answer():
    return {name}.answer()
"""


def run(folder: Path, code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr.strip().rpartition("\n")[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "heavy.py").write_text("print('loaded')\ndef answer():\n    return 42\n")
    (tmp_path / "user.py").write_text(USER.format(package="package", module="heavy", alias="", name="heavy"))
    (tmp_path / "renamed.py").write_text(USER.format(package="package", module="heavy", alias=" as h", name="h"))
    (tmp_path / "missing.py").write_text(USER.format(package="package", module="none", alias="", name="none"))
    return tmp_path


def test_lazy_module_not_loaded_before_use(folder: Path) -> None:
    assert run(folder, "import user, sys; print('package.heavy' in sys.modules)") == "False\n"


@pytest.mark.parametrize("user", ["user", "renamed"])
def test_lazy_module_used_is_replaced(folder: Path, user: str) -> None:
    name = {"user": "heavy", "renamed": "h"}[user]
    code = f"import {user} as u, sys; print(u.answer()); print(u.{name} is sys.modules['package.heavy'])"
    assert run(folder, code) == "loaded\n42\nTrue\n"


def test_lazy_module_loaded_already_is_bound_at_once(folder: Path) -> None:
    assert run(folder, "import package.heavy as p, user; print(user.heavy is p)") == "loaded\nTrue\n"


def test_lazy_module_missing_raises_at_first_use(folder: Path) -> None:
    assert run(folder, "import missing; print('imported'); missing.answer()") == (
        "imported\nModuleNotFoundError: No module named 'package.none'")


def test_lazy_imports_other_import_raises(folder: Path) -> None:
    (folder / "wrong.py").write_text("from kubepy.lazy import lazy_imports\nwith lazy_imports():\n    import json\n")
    assert run(folder, "import wrong") == (
        "ImportError: lazy_imports: only `from package import module` can be lazy, not 'json'")
    assert run(folder, "import builtins; print(builtins.__import__.__name__)") == "__import__\n"


def test_module_that_others_import_in_block_is_loaded_at_first_use(folder: Path) -> None:
    (folder / "other.py").write_text("import package.heavy\nimport single\ndef answer():\n    return single.VALUE\n")
    (folder / "single.py").write_text("print('single')\nVALUE = 7\n")
    code = ("from kubepy.lazy import lazy_for_others\nwith lazy_for_others('single'):\n    import other\n"
            "import sys; loaded = 'single' in sys.modules; print(loaded, other.answer(), other.answer())")
    assert run(folder, code) == "loaded\nsingle\nFalse 7 7\n"


class Point(NamedTuple):
    """A named tuple with a default and a method."""

    x: int
    y: int = 2

    def total(self) -> int:
        return self.x + self.y


def test_named_tuple_is_that_of_typing() -> None:
    point = Point(1)
    assert (point, point.y, point.total(), point._replace(x=5)) == ((1, 2), 2, 3, (5, 2))
    assert (Point.__doc__, Point._fields, Point.__module__, repr(point)) == (
        "A named tuple with a default and a method.", ("x", "y"), __name__, "Point(x=1, y=2)")
    assert pickle.loads(pickle.dumps(point)) == point
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
