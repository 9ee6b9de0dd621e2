"""docs/python.md holds: its Python runs, its tests and its transcript pass."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCKS = re.findall(r"^```(python|text)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\S+\.(?:py|txt))\n")

pytest_plugins = ["pytester"]


def test_python_of_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = [block for language, block in BLOCKS if language == "python" and not FILE.match(block)]
    assert len(blocks) >= 5
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)


def test_files_of_page_are_tests_that_pass(pytester: pytest.Pytester) -> None:
    for _, block in BLOCKS:
        if match := FILE.match(block):
            (pytester.path / match[1]).write_text(block.removeprefix(match[0]))
    result = pytester.runpytest("--strict-markers")
    assert result.parseoutcomes() == {"passed": 3}, result.stdout.str()


def test_page_names_every_public_name_and_method() -> None:
    import kubepy
    from kubepy.clusters import ObjectClient

    text = PAGE.read_text()
    versions = {"KUBERNETES_VERSION", "KUSTOMIZE_VERSION", "__version__", "CommandResult"}
    assert [name for name in kubepy.__all__ if name not in text and name not in versions] == []
    for kind in (kubepy.Cluster, ObjectClient):
        methods = [name for name in vars(kind) if not name.startswith("_")]
        assert [name for name in methods if not re.search(rf"[`.]{name}[(`]", text)] == []
