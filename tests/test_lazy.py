"""Lazy imports bind stand-ins, which the module replaces at first use."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from kubepy.lazy import blake2b

USER = """
from kubepy.lazy import lazy_imports

with lazy_imports():
    from {package} import {module}{alias}

def answer():
    return {name}.answer()
"""

# Runs a command. At every import, what is in sys.modules is looked at, and a thread imports what
# click and filelock import, too.
LOOK_AT_IMPORTS = """
import builtins, sys, threading, types

before = set(sys.modules)
wrong = set()

def use():
    import gettext, inspect, platform, secrets, uuid
    inspect.signature(use)
    modules = [gettext, inspect, platform, secrets, uuid]
    wrong.update(module.__name__ for module in modules if not hasattr(module, '__file__'))

def look():
    modules = [sys.modules[name] for name in set(sys.modules) - before]
    modules = [module for module in modules if isinstance(module, types.ModuleType)]
    wrong.update(module.__name__ for module in modules if module.__spec__ is None)

def look_and_import(name, *rest, **more):
    if name not in sys.modules:
        look()
        if name in ("click", "filelock"):
            thread = threading.Thread(target=use)
            thread.start()
            thread.join()
    return import_now(name, *rest, **more)

import_now, builtins.__import__ = builtins.__import__, look_and_import
from kubepy.cli.main import main
main({words})
look()
print("stand-ins:", sorted(wrong))
"""


def run(folder: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr.strip().rpartition("\n")[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "heavy.py").write_text("print('loaded')\ndef answer():\n    return 42\n")
    (tmp_path / "user.py").write_text(
        USER.format(package="package", module="heavy", alias="", name="heavy")
    )
    (tmp_path / "renamed.py").write_text(
        USER.format(package="package", module="heavy", alias=" as h", name="h")
    )
    (tmp_path / "missing.py").write_text(
        USER.format(package="package", module="none", alias="", name="none")
    )
    return tmp_path


def test_lazy_module_not_loaded_before_use(folder: Path) -> None:
    assert run(folder, "import user, sys; print('package.heavy' in sys.modules)") == "False\n"


@pytest.mark.parametrize("user", ["user", "renamed"])
def test_lazy_module_used_is_replaced(folder: Path, user: str) -> None:
    name = {"user": "heavy", "renamed": "h"}[user]
    code = (
        f"import {user} as u, sys; print(u.answer()); print(u.{name} is "
        f"sys.modules['package.heavy'])"
    )
    assert run(folder, code) == "loaded\n42\nTrue\n"


def test_lazy_module_loaded_already_is_bound_at_once(folder: Path) -> None:
    assert (
        run(folder, "import package.heavy as p, user; print(user.heavy is p)") == "loaded\nTrue\n"
    )


def test_lazy_module_missing_raises_at_first_use(folder: Path) -> None:
    assert run(folder, "import missing; print('imported'); missing.answer()") == (
        "imported\nModuleNotFoundError: No module named 'package.none'"
    )


def test_lazy_imports_other_import_raises(folder: Path) -> None:
    (folder / "wrong.py").write_text(
        "from kubepy.lazy import lazy_imports\nwith lazy_imports():\n    import json\n"
    )
    assert run(folder, "import wrong") == (
        "ImportError: lazy_imports: only `from package import module` can be lazy, not 'json'"
    )
    assert run(folder, "import builtins; print(builtins.__import__.__name__)") == "__import__\n"


@pytest.mark.parametrize(
    "words",
    ["get ds x", "get --help", "label namespace default a=b", "rollout restart ds", "explain pods"],
)
def test_modules_of_others_are_never_stand_ins(folder: Path, words: str) -> None:
    run(folder, "from kubepy.cli.main import main; main(['init', '--nodes=0'])")
    assert "stand-ins: []" in run(folder, LOOK_AT_IMPORTS.format(words=words.split()))


@pytest.mark.parametrize("words", ["get ds x", "label namespace default a=b"])
def test_command_on_a_folder_loads_nothing_of_etcd(folder: Path, words: str) -> None:
    run(folder, "from kubepy.cli.main import main; main(['init', '--nodes=0'])")
    code = (
        "import sys; from kubepy.cli.main import main; "
        f"main({words.split()}); "
        "print('loaded:', [name for name in sys.modules if name.startswith('kubepy.storage.etcd')])"
    )
    assert "loaded: []" in run(folder, code)


def test_client_of_etcd_loads_little(folder: Path) -> None:
    code = (
        "import sys; from kubepy.storage.etcd import client, address; "
        "client.EtcdClient(address.parse_address('etcd://127.0.0.1:2379/a?values=protobuf')); "
        "from kubepy.api import storedforms; from kubepy.storage.etcd import keys, values; "
        "from kubepy.storage.model import Key; "
        "forms = values.Values(keys.EtcdKeys(), storedforms); "
        "text = '{\"apiVersion\":\"v1\"}'; key = Key('pods', 'a', 'b'); "
        "assert forms.decode(key, forms.encode(key, text)) == text; "
        "large = ['kubepy.api.protobuf', 'kubepy.api.types.table', 'kubepy.storage.etcd.watch', "
        "'ssl', 'http.client', 'urllib.parse']; "
        "print([name for name in large if name in sys.modules])"
    )
    assert run(folder, code) == "[]\n"


def test_blake2b_is_that_of_hashlib() -> None:
    assert blake2b(b"x" * 1000, 16) == hashlib.blake2b(b"x" * 1000, digest_size=16).digest()
