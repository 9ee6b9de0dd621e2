"""What happens in a cluster is decided in one place: time, chance and order.

``kubepy/api/clock.py`` and ``kubepy/runtime/oracle.py`` are that place. Nobody else below the
command line asks the system for the time or a random number, or goes by the order of a set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1] / "kubepy"
PACKAGES = (
    "api",
    "apiserver",
    "controllers",
    "controlplane",
    "demo",
    "fuzz",
    "insight",
    "kubelet",
    "runtime",
    "scheduler",
    "shell",
)
CLOCKS = {
    "time.time",
    "time.time_ns",
    "time.monotonic",
    "time.perf_counter",
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
}
CHANCE = {"os.urandom", "uuid.uuid1", "uuid.uuid4", "os.getrandom"}
RANDOM_MODULES = {"random", "secrets"}
# The places that measure or wait for something outside of the cluster.
ALLOWED = {
    "api/clock.py": "the one place",
    "apiserver/webhookclient.py": "the time limit of a webhook is real",
    "controlplane/manager.py": "batches end before other programs have waited for long",
    "controlplane/running.py": "the age of git's lock",
    "controlplane/source.py": "the age of a look at files",
    "controlplane/timekeeping.py": "the cost of a look at files",
    "fuzz/command.py": "runs a second, on stderr",
    "fuzz/keptsearch.py": "records are kept once a second, and for a month",
}


def modules() -> list[Path]:
    return sorted(path for name in PACKAGES for path in (PROJECT / name).rglob("*.py"))


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


def uses_of_chance(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and dotted(node) in CLOCKS | CHANCE:
            yield node.lineno, dotted(node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in RANDOM_MODULES:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module in (*RANDOM_MODULES, "time"):
            yield node.lineno, str(node.module)


def is_set(node: ast.expr) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.Sub):
        return is_set(node.left) or is_set(node.right)
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("set", "frozenset")
    )


def is_constant(node: ast.expr) -> bool:
    """Whether a set is one of numbers or single values, of which the order does not matter."""
    return isinstance(node, ast.Set) and len(node.elts) <= 1


def orders_of_sets(tree: ast.Module) -> Iterator[int]:
    """Yield the lines in which a list, or the order of a loop, is that of a set."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("list", "tuple", "iter", "next", "enumerate"):
                for argument in node.args[:1]:
                    if is_set(argument) and not is_constant(argument):
                        yield node.lineno
        elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
            if isinstance(node, ast.GeneratorExp):
                continue  # mostly within sum, any, all, sorted, set
            yield from (
                generator.iter.lineno
                for generator in node.generators
                if is_set(generator.iter) and not is_constant(generator.iter)
            )


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PROJECT)))
def test_module_leaves_time_and_chance_to_the_clock(path: Path) -> None:
    name = str(path.relative_to(PROJECT))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = list(uses_of_chance(tree))
    if name in ALLOWED:
        assert found, f"{name} needs no exception any more"
    else:
        assert found == []
    assert list(orders_of_sets(tree)) == []


def test_uses_are_seen() -> None:
    tree = ast.parse(
        "import random\nimport time\nnow = time.time()\nfrom secrets import token_hex\n"
        "names = list({'a', 'b'})\nothers = [name for name in set(names)]\n"
        "clock = time.monotonic\n"
    )
    assert [line for line, _ in sorted(uses_of_chance(tree))] == [1, 3, 4, 7]
    assert sorted(orders_of_sets(tree)) == [5, 6]
