"""The memory of bodies of macros says what the plain interpreter says, whatever is written."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kubepy.api.cel.checker import parse_expression
from kubepy.api.cel.interpreter import evaluate
from kubepy.api.cel.values import CelError
from kubepy.fuzz.expressions import compile_check
from kubepy.fuzz.footprint import are_same, are_same_at, paths_of
from kubepy.fuzz.memo import RememberedBody, remember
from kubepy.fuzz.objectlists import CheckedList
from kubepy.storage import Key

Obj = dict[str, Any]


# --- footprints

LABEL = ("metadata", "labels", "app")


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("p.a.b == 'x'", [("a", "b")]),
        ("has(p.a.b) && p.a.c > 1", [("a", "b"), ("a", "c")]),
        ("p.metadata.labels['app'] == p.?a.?b.orValue('')", [("a", "b"), LABEL]),
        ("p.a.exists(x, x.b == p.c)", [("a",), ("c",)]),
        ("p.a.exists(p, p.b)", [("a",)]),
        ("p.a[p.b]", [("a",), ("b",)]),
        ("p.a[0].b", [("a",)]),
        ("p.a.b.startsWith('x')", [("a", "b")]),
        ("[p.a, {'k': p.b}].size() > q.c", [("a",), ("b",)]),
        ("p == q", None),
        ("[p].size() > 0", None),
        ("q.x", []),
    ],
)
def test_footprint_is_the_fields_that_an_expression_reads(
    text: str, paths: list[tuple[str, ...]] | None
) -> None:
    expected = None if paths is None else tuple(paths)
    assert paths_of(parse_expression(text), "p") == expected


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (None, {}, False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": [1]}, {"a": [True]}, False),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        ([1, 2], [1], False),
        ("a", "a", True),
    ],
)
def test_values_are_the_same_only_with_their_types(left: Any, right: Any, same: bool) -> None:
    assert are_same(left, right) is same
    assert are_same_at(("x", "y"), {"x": {"y": left}}, {"x": {"y": right}}) is same
    assert are_same_at(("x", "y"), {"x": left}, {"x": left})


def test_missing_from_another_field_on_is_not_the_same() -> None:
    assert are_same_at(("a", "b"), {}, {"c": 1})
    assert not are_same_at(("a", "b"), {}, {"a": {}})
    assert not are_same_at(("a", "b"), {"a": None}, {})
    assert are_same_at(("a", "b"), {"a": {"c": 1}}, {"a": {"c": 2}})


# --- random writes

BODIES = (
    "X.spec.a == 1",
    "X.spec.a == X.spec.b",
    "has(X.spec.a) && X.spec.a != 'x'",
    "type(X.spec.a) == int",
    "X.?spec.?a.orValue(0) == 1",
    "X.spec.l.exists(i, i == X.spec.a)",
    "X.spec['a'] == 'x' || X.spec.b == 'x'",
    "X.metadata.name == 'n-1'",
    "X.spec.a",
    "X.spec.a > 0",
)
FORMS = (
    "things.all(p, P)",
    "things.exists(p, P)",
    "things.exists_one(p, P)",
    "things.filter(p, P).size() == 1",
    "things.filter(p, P).all(p, p.metadata.name != 'n-2')",
    "things.filter(q, has(q.spec.a)).exists(p, P)",
    "things.map(p, P).size() > 2",
    "others.all(o, things.exists(p, P && o.spec.a == p.spec.b))",
    "others.exists(o, things.filter(p, o.spec.a == p.spec.a).size() == 2)",
    "things.all(p, things.exists_one(q, q.metadata.name == p.metadata.name) && P)",
    "things.filter(p, others.exists(o, o.spec.a == p.spec.a && P)).size() == 1",
    "things.all(p, others.size() > 1 || P)",
    "others.all(o, others.filter(q, q.spec.a == o.spec.a).all(q, things.exists(p, P || "
    "p.spec.b == q.spec.b && o.spec.a == 1)))",
    "things.all(p, [1, 2].exists(n, things.filter(q, q.spec.a == n).size() > 0 || P))",
    "things.all(i, p, i < 3 && P)",
)
VALUES = (1, True, 1.0, "1", "x", None, 0)


class Lists:
    """Two lists that the expressions are about."""

    def __init__(self) -> None:
        self.lists = {name: CheckedList(f"{name}.example.org") for name in ("things", "others")}
        self.scope = {name: found.objects for name, found in self.lists.items()}

    def write(self, draw: random.Random) -> None:
        """Make, change or delete an object; a change often leaves fields as they are."""
        name = draw.choice(("things", "things", "others"))
        found = self.lists[name]
        key = Key(found.resource, "default", f"n-{draw.randrange(4)}")
        old = next((obj for obj in found.objects if obj["metadata"]["name"] == key.name), None)
        if old is not None and draw.random() < 0.25:
            found.replace(key, None)
            return
        spec = dict(old["spec"]) if old is not None else {}
        for field in draw.sample("abl", draw.randrange(3)):
            spec[field] = draw.choice(VALUES) if field != "l" else draw.sample(VALUES, 2)
            if draw.random() < 0.2:
                del spec[field]
        metadata = {"name": key.name, "namespace": "default", "uid": f"uid-{key.name}"}
        found.replace(key, {"kind": "Thing", "metadata": metadata, "spec": spec})


def outcome(node: Any, scope: Obj) -> object:
    try:
        return evaluate(node, scope)
    except CelError as error:
        return f"error: {error}"


@pytest.mark.parametrize("form", FORMS)
def test_memory_says_what_the_plain_interpreter_says(form: str) -> None:
    texts = [form.replace("P", body.replace("X", "p")) for body in BODIES]
    lists = Lists()
    plain = [compile_check(f"dyn({text}) == true").node for text in texts]
    remembered = [remember(node, lists.lists, lists.scope) for node in plain]
    draw = random.Random(form)
    for _ in range(300):
        lists.write(draw)
        scope = {name: list(objects) for name, objects in lists.scope.items()}
        for text, memory, node in zip(texts, remembered, plain, strict=True):
            assert outcome(memory, lists.scope) == outcome(node, scope), text


def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the objects whose bodies are computed from now on."""
    names: list[str] = []
    compute = RememberedBody._compute

    def count(self: RememberedBody, obj: Obj, inner: Obj, tracker: Any) -> Any:
        names.append(obj["metadata"]["name"])
        return compute(self, obj, inner, tracker)

    monkeypatch.setattr(RememberedBody, "_compute", count)
    return names


def test_join_computes_one_body_for_each_object_of_the_other_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lists = Lists()
    for resource, count in (("things", 6), ("others", 3)):
        for number in range(count):
            put(lists, resource, f"{resource}-{number}", a=number)
    text = "others.all(o, things.filter(p, p.spec.a == o.spec.a).size() == 1)"
    node = remember(compile_check(text).node, lists.lists, lists.scope)
    assert evaluate(node, lists.scope) is True
    names = computed(monkeypatch)
    put(lists, "things", "things-1", a=9)
    assert evaluate(node, lists.scope) is False
    assert sorted(names) == ["others-0", "others-1", "others-2", *["things-1"] * 3]
    names.clear()
    put(lists, "things", "things-1", a=9, b=1)  # nothing that the join reads
    evaluate(node, lists.scope)
    assert "things-1" not in names
    names.clear()
    put(lists, "others", "others-0", a=5)
    evaluate(node, lists.scope)
    assert names.count("others-0") == 1
    assert sum(name.startswith("things") for name in names) == 6


def put(lists: Lists, resource: str, name: str, **spec: Any) -> None:
    found = lists.lists[resource]
    metadata = {"name": name, "namespace": "default", "uid": name}
    found.replace(
        Key(found.resource, "default", name), {"kind": "T", "metadata": metadata, "spec": spec}
    )


def test_memory_holds_no_more_than_there_are_objects() -> None:
    lists = Lists()
    text = "others.all(o, things.filter(p, p.spec.a == o.spec.a).size() >= 0)"
    node = remember(compile_check(text).node, lists.lists, lists.scope)
    [body] = lists.lists["things"].memories
    assert isinstance(body, RememberedBody)
    draw = random.Random(1)
    for _ in range(300):
        lists.write(draw)
        outcome(node, lists.scope)
        things, others = (len(lists.scope[name]) for name in ("things", "others"))
        assert len(body._values) <= others
        assert all(len(known) <= things for known in body._values.values())
