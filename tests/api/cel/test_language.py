"""The CEL language by its specification: values of expressions, and the errors they end with."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.cel.checker import (
    JSON_PATCHES,
    OBJECT,
    CompileError,
    compile_expression,
    compile_mutation,
)
from kubepy.api.cel.interpreter import evaluate
from kubepy.api.cel.parser import parse
from kubepy.api.cel.types import DYN, INT, STRING, Type, call, list_of, map_of, optional_of
from kubepy.api.cel.values import CelError

SCOPE: dict[str, Any] = {"i": 5, "s": "hello", "l": [1, 2, 3], "m": {"a": 1, "b": 2}}


def value(expression: str) -> Any:
    return evaluate(parse(expression), SCOPE)


@pytest.mark.parametrize(
    "expression",
    [
        # literals and arithmetic
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "7 / 2 == 3",
        "-7 / 2 == -3",
        "7 % 3 == 1",
        "-7 % 3 == -1",
        "2.0 * 1.5 == 3.0",
        "1u + 2u == 3u",
        "0x10 == 16",
        "1e3 == 1000.0",
        "'a' + \"b\" == 'ab'",
        "r'\\d' == '\\\\d'",
        "b'\\xff' == b'\\377'",
        "'\\u00e9' == 'é'",
        "'''a'b''' == \"a'b\"",
        "[1] + [2] == [1, 2]",
        "- -3 == 3",
        "!false",
        "!!true",
        # comparison across kinds of numbers
        "1 == 1.0",
        "1 == 1u",
        "1 < 1.5",
        "2u > 1",
        "1 != 2",
        "'a' < 'b'",
        "false < true",
        "[1, 2] == [1.0, 2u]",
        "{'a': 1} == {'a': 1.0}",
        "dyn(1) != 'a'",
        "null == null",
        # logic: one side that decides the result is enough
        "false && 1 / 0 == 1 || true",
        "true || 1 / 0 == 1",
        "1 / 0 == 1 || true",
        "!(1 / 0 == 1 && false)",
        "true ? true : 1 / 0 == 1",
        "i > 3 ? s == 'hello' : false",
        # membership, parts and presence
        "2 in l",
        "!(4 in l)",
        "'a' in m",
        "l[0] == 1",
        "m['b'] == 2",
        "m.a == 1",
        "has(m.a) && !has(m.c)",
        "size(l) == 3",
        "l.size() == size(s) - 2",
        "size(m) == 2 && size(b'abc') == 3",
        # macros
        "l.all(x, x > 0)",
        "l.exists(x, x == 2)",
        "l.exists_one(x, x > 2)",
        "l.map(x, x * 2) == [2, 4, 6]",
        "l.map(x, x > 1, x * 2) == [4, 6]",
        "l.filter(x, x != 2) == [1, 3]",
        "m.all(k, m[k] > 0)",
        "m.exists(k, k == 'a')",
        "[].all(x, false)",
        "![].exists(x, true)",
        "l.all(x, y, x < y)",
        "m.transformList(k, v, v + 1) == [2, 3]",
        "m.transformMap(k, v, v > 1, k + 'x') == {'b': 'bx'}",
        "l.all(x, l.exists(y, y == x))",
        "[1, 0].exists(x, 1 / x == 1)",
        "l.map(l, l + 1) == [2, 3, 4]",
        # conversions and types
        "int('12') == 12",
        "int(3.9) == 3",
        "uint(3) == 3u",
        "double('1.5') == 1.5",
        "string(1.5) == '1.5'",
        "string(true) == 'true'",
        "string(b'a') == 'a'",
        "bytes('a') == b'a'",
        "bool('true')",
        "type(1) == int",
        "type('') == string && type(1u) == uint && type(null) == null_type",
        "type([]) == list && type({}) == map",
        "type(timestamp('2026-01-01T00:00:00Z')) == google.protobuf.Timestamp",
        # times
        "timestamp('2026-11-20T10:00:00Z') + duration('90m') == timestamp('2026-11-20T11:30:00Z')",
        "timestamp('2026-11-20T10:00:00+02:00') == timestamp('2026-11-20T08:00:00Z')",
        "timestamp('2026-11-20T10:00:00Z') - timestamp('2026-11-20T09:00:00Z') == duration('1h')",
        "timestamp('2026-11-20T10:20:30Z').getMonth() == 10",
        "timestamp('2026-11-20T10:20:30Z').getDayOfWeek() == 5",
        "timestamp('2026-11-20T23:20:30Z').getHours('+02:00') == 1",
        "duration('1h30m').getMinutes() == 90",
        "string(duration('1.5s')) == '1.5s'",
        "duration('1m') < duration('1h')",
        # optional values
        "m.?c.orValue(7) == 7",
        "m.?a.orValue(7) == 1",
        "m[?'c'].hasValue() == false",
        "optional.of(1).value() == 1",
        "l[?9].or(optional.of(3)).value() == 3",
        "[1, ?m.?c] == [1]",
        "{?'a': m.?a} == {'a': 1}",
        "m.?a.optMap(x, x + 1).value() == 2",
        "optional.none().hasValue() == false",
    ],
)
def test_expression_evaluates_to_true(expression: str) -> None:
    assert value(expression) is True


@pytest.mark.parametrize(
    "expression",
    [
        "'héllo'.charAt(1) == 'é'",
        "s.indexOf('l') == 2 && s.lastIndexOf('l') == 3 && s.indexOf('x') == -1",
        "s.replace('l', 'L', 1) == 'heLlo'",
        "'a,b,c'.split(',') == ['a', 'b', 'c']",
        "'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "s.substring(1, 3) == 'el'",
        "s.substring(3) == 'lo'",
        "' a '.trim() == 'a'",
        "['a', 'b'].join('-') == 'a-b'",
        "'aÉ'.upperAscii() == 'AÉ'",
        "s.startsWith('he') && s.endsWith('lo') && s.contains('ell')",
        "'%s has %d and %.2f %x'.format([s, 5, 1.234, 255]) == 'hello has 5 and 1.23 ff'",
        "'%s'.format([[1, 'a']]) == '[1, \"a\"]'",
        "s.matches('^h.*o$')",
        "!s.matches('^l')",
        "'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
        "'ab'.matches('^[[:alpha:]]+$')",
        "[1, 2, 2].isSorted() && [3, 1].max() == 3 && [3, 1].min() == 1 && [1, 2].sum() == 3",
        "[1, 2, 1].lastIndexOf(1) == 2 && ['a'].indexOf('b') == -1",
        "[1, 2, 3].slice(1, 3) == [2, 3]",
        "['bb', 'a'].sortBy(w, w.size()) == ['a', 'bb'] && [3, 1, 2].sortBy(n, -n) == [3, 2, 1] "
        "&& [].sortBy(n, n) == []",
        "{'a': 1, 'b': 2}.transformMapEntry(k, v, v > 1, {k + 'x': v * 2}) == {'bx': 4}",
        "['p', 'q'].transformMapEntry(i, w, {w: i}) == {'p': 0, 'q': 1}",
        "'%.1e %e'.format([1250.0, 0.5]) == '1.2×10⁰³ 5.000000×10⁻⁰¹'",
        "duration('61s5ms').getMilliseconds() == 61005",
        "string(timestamp('2026-11-21T10:00:00.5+02:00')) == '2026-11-21T10:00:00.5+02:00'",
        "optional.ofNonZeroValue(duration('0s')) == optional.none()",
        "['a', ?optional.none()] == ['a']",
        "url('https://a.example.com/two words?q=of us').getEscapedPath() == '/two%20words'",
        "[3, 1, 2].sort() == [1, 2, 3] && [1, 1].distinct() == [1] && [[1], [2]].flatten() == [1, "
        "2]",
        "lists.range(3) == [0, 1, 2] && [1, 2].reverse() == [2, 1] && [1].first().value() == 1",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
        "quantity('1.5Gi').isGreaterThan(quantity('1Gi')) && isQuantity('5m') && "
        "!isQuantity('five')",
        "quantity('1k').add(quantity('1')).compareTo(quantity('1001')) == 0 && "
        "quantity('2k').asInteger() == 2000",
        "quantity('50k').sub(20).isInteger() && quantity('-1').sign() == -1",
        "isURL('https://a.example.com:80/x?q=1') && !isURL('a b')",
        "url('https://u@a.example.com:80/x?q=1&q=2').getHostname() == 'a.example.com'",
        "url('https://a:80/x?q=1&q=2').getPort() == '80' && url('/p?q=1&q=2').getQuery() == {'q': "
        "['1', '2']}",
        "isIP('10.0.0.1') && ip('::1').isLoopback() && ip('10.0.0.1').family() == 4 && "
        "ip.isCanonical('::1')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && "
        "!cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "cidr('10.0.0.5/8').masked() == cidr('10.0.0.0/8') && "
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "format.dns1123Label().validate('a-b') == optional.none()",
        "format.named('dns1123Label').value().validate('A').hasValue()",
        "!isSemver('', true) && isSemver('v0.01', true)",
        "isSemver('1.2.3') && semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('v1.2', "
        "true).minor() == 2",
    ],
)
def test_library_function_returns_value(expression: str) -> None:
    assert value(expression) is True


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("0u - 1u", "unsigned integer overflow"),
        ("l[3]", "index out of bounds: 3"),
        ("m.c", "no such key: c"),
        ("m['c']", "no such key: c"),
        ("1 + 'a'", "no such overload"),
        ("s.substring(9)", "index out of range: 9"),
        ("int('x')", "type conversion error from 'string' to 'int'"),
        ("s.size('x')", "no such overload: string.size(string)"),
        ("semver('v1.0')", "No Major.Minor.Patch elements found"),
        ("semver('1.x.0')", 'Invalid character(s) found in minor number "x"'),
        ("semver('')", "Version string empty"),
        ("semver('1.2.03')", 'Patch number must not contain leading zeroes "03"'),
        ("['a', 'a'].transformMapEntry(i, w, {w: i})", "insert failed: key 'a' already exists"),
        ("optional.none().value()", "optional.none() dereference"),
        ("s.matches('(')", "error parsing regexp: missing closing ): `(`"),
        ("true && 1 / 0 == 1", "division by zero"),
        ("duration('soon')", "type conversion error from 'string' to 'google.protobuf.Duration'"),
    ],
)
def test_evaluation_raises_cel_gos_error(expression: str, why: str) -> None:
    with pytest.raises(CelError) as error:
        value(expression)
    assert str(error.value) == why


# --- checking -------------------------------------------------------------------------------------

PERSON = Type(
    "object",
    fields={"name": STRING, "age": INT, "tags": list_of(STRING), "notes": map_of(STRING, INT)},
)
VARIABLES = {"self": PERSON, "any": DYN, "old": optional_of(PERSON)}


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("self.age > 3", "bool"),
        ("self.name + 'x'", "string"),
        ("self.tags.map(t, size(t))", "list(int)"),
        ("self.notes['a'] + 1", "int"),
        ("any.b.c", "dyn"),
        ("old.?name", "optional_type(string)"),
        ("old.?age.orValue(1)", "int"),
        ("self.notes.all(k, k != '')", "bool"),
        ("[dyn(1), 'a']", "list(dyn)"),
        ("self.age > 1.5", "bool"),
        ("any ? 1 : 2", "int"),
        ("self.tags.filter(t, t != 'x')[0]", "string"),
    ],
)
def test_checker_returns_type_of_expression(expression: str, kind: str) -> None:
    assert str(compile_expression(expression, VARIABLES).type) == kind


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("self.size > 3", "ERROR: <input>:1:5: undefined field 'size'\n | self.size > 3\n | ....^"),
        (
            "self.name == null",
            "ERROR: <input>:1:11: found no matching overload for '_==_' applied to '(string, "
            "null)'\n"
            " | self.name == null\n | ..........^",
        ),
        (
            "duration('1d') > duration('2h')",
            "ERROR: <input>:1:10: invalid duration argument\n | duration('1d') > duration('2h')\n "
            "| .........^",
        ),
        (
            "timestamp(-99999999999999) < timestamp('then')",
            "ERROR: <input>:1:11: invalid timestamp argument\n | timestamp(-99999999999999) < "
            "timestamp('then')\n"
            " | ..........^\nERROR: <input>:1:40: invalid timestamp argument\n"
            " | timestamp(-99999999999999) < timestamp('then')\n | "
            ".......................................^",
        ),
        (
            "self.name.matches('(')",
            "ERROR: <input>:1:19: invalid matches argument\n | self.name.matches('(')\n"
            " | ..................^",
        ),
        (
            "{'a': 1, 'b': 'c'}",
            "ERROR: <input>:1:15: expected type 'int' but found 'string'\n | {'a': 1, 'b': 'c'}\n"
            " | ..............^",
        ),
        (
            "self.age > 'a'",
            "ERROR: <input>:1:10: found no matching overload for '_>_' applied to '(int, string)'\n"
            " | self.age > 'a'\n | .........^",
        ),
        (
            "this.age > 3",
            "ERROR: <input>:1:1: undeclared reference to 'this' (in container '')\n | this.age > "
            "3\n | ^",
        ),
        (
            "self.name.foo()",
            "ERROR: <input>:1:14: undeclared reference to 'foo' (in container '')\n"
            " | self.name.foo()\n | .............^",
        ),
        (
            "self.name.contains(5)",
            "ERROR: <input>:1:19: found no matching overload for 'contains' applied to "
            "'string.(int)'\n | self.name.contains(5)\n | ..................^",
        ),
        (
            "self.age && true",
            "ERROR: <input>:1:5: expected type 'bool' but found 'int'\n | self.age && true\n | "
            "....^",
        ),
        (
            "self.age.all(x, true)",
            "ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension (must "
            "be list, map, or dynamic)\n | self.age.all(x, true)\n | ....^",
        ),
        (
            "self.name.first",
            "ERROR: <input>:1:10: type 'string' does not support field selection\n"
            " | self.name.first\n | .........^",
        ),
        (
            "self.a ==\nself.b",
            "ERROR: <input>:1:5: undefined field 'a'\n | self.a ==\n | ....^\n"
            "ERROR: <input>:2:5: undefined field 'b'\n | self.b\n | ....^",
        ),
    ],
)
def test_type_error_is_reported_with_its_place(expression: str, why: str) -> None:
    with pytest.raises(CompileError) as error:
        compile_expression(expression, VARIABLES)
    assert str(error.value) == why


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "1 +",
        "self.",
        "(1",
        "[1",
        "'a",
        "a b",
        "1 ? 2",
        "has(self)",
        "l.all(1, true)",
        "for",
        "\\",
        "{1}",
        "(" * 400,
        "1" + " + 1" * 2000,
    ],
)
def test_unreadable_expression_raises(expression: str) -> None:
    with pytest.raises(CompileError):
        compile_expression(expression, VARIABLES)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[1 + 1, 2 + 3]", [2, 5]),
        ("'a' + 'b'", "ab"),
        ("1u + 1u", 2),
        ("1.5 + 1.0", 2.5),
        ("[1] + [2]", [1, 2]),
        ("b'a' + b'b'", b"ab"),
        ("[1 < 2.5, 2u > 1, 'a' < 'b']", [True, True, True]),
    ],
)
def test_operator_on_several_types_runs_matching_overload(expression: str, expected: Any) -> None:
    for _ in range(2):
        assert value(expression) == expected
        with pytest.raises(CelError, match="no such overload"):
            call("_+_", [1, "a"])
        with pytest.raises(CelError, match=r"no such overload: int.startsWith\(string\)"):
            call("startsWith", [1, "a"], is_member=True)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("!!true", True),
        ("!!!true", False),
        ("--i", 5),
        ("---i", -5),
        ("--1", 1),
        ("---1", -1),
        ("1 - --1", 0),
        ("!" * 5000 + "true", True),
        ("-" * 5001 + "i", -5),
    ],
)
def test_repeated_signs_cancel_out(expression: str, expected: Any) -> None:
    assert value(expression) == expected


def test_expression_longer_than_limit_raises() -> None:
    compile_expression("'" + "x" * (100_000 - 2) + "'", {})
    with pytest.raises(CompileError) as refused:
        compile_expression("'" + "x" * (100_000 - 1) + "'", {})
    assert (
        str(refused.value)
        == "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit "
        "100000"
    )


def test_patch_makes_objects_of_named_types() -> None:
    compiled = compile_mutation(
        "Object{spec: Object.spec{size: 1, ?none: optional.none(), ?some: optional.of('x')}}",
        OBJECT,
    )
    made = evaluate(compiled.node, SCOPE)
    assert made == {"spec": {"size": 1, "some": "x"}}
    assert (made.type_name, made["spec"].type_name) == ("Object", "Object.spec")
    patches = (
        "object > 1 ? [JSONPatch{op: 'remove', path: '/' + jsonpatch.escapeKey('a/b~c')}] : []"
    )
    assert evaluate(compile_mutation(patches, JSON_PATCHES).node, {"object": 2}) == [
        {"op": "remove", "path": "/a~1b~0c"}
    ]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("Object.spec{}", "must evaluate to Object but got Object.spec"),
        ("Boat{}", "undeclared reference to 'Boat' (in container '')"),
        ("[JSONPatch{op: 1}]", "expected type of field 'op' is 'string' but provided type is"),
        ("[JSONPatch{size: 1}]", "undefined field 'size'"),
        ("Object{size 1}", "Syntax error"),
        ("Object{in: 1}", "Syntax error"),
        ("Object{true: 1}", "Syntax error"),
        ("Object{?null: optional.of(1)}", "Syntax error"),
    ],
)
def test_patch_of_another_type_does_not_compile(expression: str, why: str) -> None:
    with pytest.raises(CompileError) as error:
        compile_mutation(expression, OBJECT)
    assert why in str(error.value)


def test_reserved_word_may_name_a_field() -> None:
    compiled = compile_mutation("Object{namespace: 1, as: 2}", OBJECT)
    assert evaluate(compiled.node, SCOPE) == {"namespace": 1, "as": 2}


@pytest.mark.parametrize("expression", ["Boat{size: unknown}", "Boat{op: 1}"])
def test_fields_of_undeclared_type_are_not_checked(expression: str) -> None:
    with pytest.raises(CompileError) as error:
        compile_mutation(expression, OBJECT)
    assert str(error.value).count("ERROR:") == 1
    assert "undeclared reference to 'Boat'" in str(error.value)


def test_objects_are_made_in_patches_only() -> None:
    with pytest.raises(CompileError, match="undeclared reference to 'Object'"):
        compile_expression("Object{}", {})
