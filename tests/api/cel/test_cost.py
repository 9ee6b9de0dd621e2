"""Costs of CEL expressions: the estimate and the count.

The numbers are those that Kubernetes v1.36 expects of itself
(``apiextensions-apiserver/pkg/apiserver/schema/cel`` and ``apiserver/pkg/cel/library``).
"""

from __future__ import annotations

from time import monotonic
from typing import Any

import pytest

from kubepy.api.cel.checker import compile_expression
from kubepy.api.cel.cost import BudgetExceeded, CostBudget, CostLimitExceeded, CostTracker
from kubepy.api.cel.estimate import Range, Sizes, estimate_cost, replaced_size
from kubepy.api.cel.interpreter import evaluate, evaluate_within
from kubepy.api.cel.rules import ValidationRule, compile_rule
from kubepy.api.cel.schemas import ConvertedValues
from kubepy.api.cel.sizes import Shape, shape_of
from kubepy.api.cel.types import DYN, Type

Object = dict[str, Any]
ITEM: Object = {
    "type": "object",
    "required": ["required"],
    "properties": {"required": {"type": "string"}, "optional": {"type": "string"}},
}


def schema_of(kind: str | Object) -> Object:
    if isinstance(kind, dict):
        return kind
    if kind == "int-or-string":
        return {"x-kubernetes-int-or-string": True}
    if kind == "enum":
        return {"type": "string", "enum": ["A", "B", "C", "LongValue"]}
    return (
        {"type": kind}
        if kind in ("number", "string", "boolean", "integer")
        else {"type": "string", "format": kind}
    )


def array(items: str | Object) -> Object:
    return {"type": "array", "items": schema_of(items)}


def mapping(values: str | Object) -> Object:
    return {"type": "object", "additionalProperties": schema_of(values)}


def compiled(rule: str, schema: Object, *, is_root: bool = False) -> ValidationRule:
    found = compile_rule({"rule": rule}, schema, is_root=is_root)
    assert isinstance(found, ValidationRule), found
    return found


def estimate(rule: str, schema: Object) -> int:
    return estimate_cost(compiled(rule, schema).expression.checked, Sizes(shape_of(schema))).most


# kind, rule, cost without a limit (None: above the limit for a rule), limit, cost with the limit
@pytest.mark.parametrize(
    ("kind", "rule", "cost", "limit", "limited"),
    [
        (array("number"), "self.all(x, true)", 4718591, 10, 32),
        (array("string"), "self.all(x, true)", 3145727, 20, 62),
        (array("boolean"), "self.all(x, true)", 1887437, 5, 17),
        (array(array("number")), "self.all(x, true)", 3145727, 100, 302),
        (array(ITEM), "self.all(x, true)", 555128, 50, 152),
        (mapping("number"), "self.all(x, true)", 1348169, 10, 32),
        (mapping("string"), "self.all(x, true)", 1179647, 3, 11),
        (mapping("boolean"), "self.all(x, true)", 943718, 100, 302),
        ("string", "self.contains('test')", 314574, 10, 5),
        ("string", "self.startsWith('test')", 2, 15, 2),
        ("string", "self.endsWith('test')", 2, 30, 2),
        ("string", 'size(self + "hello") > size("hello")', 314578, 4, 7),
        (array("number"), "self[1] == 0.0", 2, 5000, 2),
        (array("string"), "self[1] == self[1]", 314577, 8, 314577),
        (array("number"), "self.all(x, self.all(y, true))", None, 10, 352),
        (array("number"), "self.all(x, self.all(y, self.all(z, true)))", None, 10, 3552),
        ("string", 'self.matches("x")', 314574, 50, 22),
        ("string", '"".matches("(((((((((())))))))))[0-9]")', 7, 10, 7),
        ("string", 'self.matches("")', 1, 100, 1),
        (array("number"), "self[3] == 0.0", 2, 0, 2),
        (mapping("number"), 'self["x"] == 0.0', 2, 0, 2),
        ("string", 'self == "x"', 2, 0, 1),
        ("byte", 'self == b"x"', 2, 0, 1),
        (array("number"), "self.all(x, x == 0.0)", 6291454, 6291456, 25165826),
        (array("int-or-string"), "self.all(x, true)", 4718591, 10, 32),
        (array("int-or-string"), "self[0] == 5", 3, 10, 3),
        (array("boolean"), "self[0] == false", 2, 25, 2),
        (array(ITEM), "self[0] == null", 2, 422, 2),
        (array(array("number")), "self[0][0] == -1.0", 3, 51, 3),
        (array(mapping("number")), "self.all(x, x.y == 25.2)", 6291452, 12, 74),
        (array(mapping("number")), "self[0].x > 2.0", 4, 3000, 4),
        (array("duration"), "self.all(x, true)", 2359295, 5, 17),
        (array("duration"), "self[0].getHours() == 2", 4, 525, 4),
        (array("date"), "self.all(x, true)", 725936, 15, 47),
        (array("date"), "self[2].getDayOfMonth() == 13", 4, 42, 4),
        (array("date-time"), "self.all(x, true)", 428963, 25, 77),
        (array("date-time"), "self[2].getMinutes() == 45", 4, 99, 4),
        (mapping("int-or-string"), "self.all(x, true)", 1348169, 15, 47),
        (mapping(ITEM), "self.all(x, true)", 428963, 20, 62),
        (mapping(mapping("number")), "self.all(x, true)", 1179647, 10, 32),
        (mapping(array("number")), "self.all(x, true)", 1179647, 25, 77),
        (mapping("duration"), "self.all(x, true)", 1048577, 5, 17),
        (mapping("date"), "self.all(x, true)", 524288, 10, 32),
        (mapping("date-time"), "self.all(x, true)", 349526, 25, 77),
        ("string", "self.find('[0-9]+') == ''", 629147, 10, 11),
        (mapping("integer"), "oldSelf.size() == self.size()", 5, 10, 5),
        (mapping("date-time"), 'self["a"] == self["b"]', 8, 7, 8),
        (mapping("duration"), 'self["c"] == self["d"]', 8, 42, 8),
        ("enum", "self.contains('A')", 2, 1000, 401),
    ],
)
def test_estimate_follows_from_sizes_that_schema_allows(
    kind: str | Object, rule: str, cost: int | None, limit: int, limited: int
) -> None:
    schema = schema_of(kind)
    name = {"array": "maxItems", "object": "maxProperties", "string": "maxLength"}[schema["type"]]
    found = estimate(rule, schema)
    assert found == cost if cost is not None else found > 10_000_000
    assert estimate(rule, {**schema, name: limit}) == limited


class TextsOfTwelve(Sizes):
    """Sizes at which every string has at most twelve characters."""

    def size_of(self, shape: Shape | None, type: Type) -> Range | None:
        return Range(0, 12) if type.name in ("string", "bytes") else None


@pytest.mark.parametrize(
    ("expression", "least", "most"),
    [
        ("'ABCDEFGHIJ abcdefghij'.lowerAscii()", 3, 3),
        ("'ABCDEFGHIJ abcdefghij'.lowerAscii() == 'abcdefghij ABCDEFGHIJ'.lowerAscii()", 7, 9),
        ("'ABCDEFGHIJ abcdefghij'.upperAscii()", 3, 3),
        ("'ABCDEFGHIJ abcdefghij'.upperAscii() == 'abcdefghij ABCDEFGHIJ'.upperAscii()", 7, 9),
        ("strings.quote('ABCDEFGHIJ abcdefghij')", 3, 3),
        ("strings.quote('ABCDEFGHIJ abcdefghij') == strings.quote('ABCDEFGHIJ abcdefghij')", 7, 11),
        ("'abc 123 def 123'.replace('123', '456')", 3, 3),
        ("'abc 123 def 123'.replace('', 'x')", 3, 3),
        ("'abc 123 def 123'.replace('123', '')", 3, 3),
        ("'abc 123 def 123'.replace('123', '456', 1)", 3, 3),
        ("'abc 123 def 123'.split(' ')", 3, 3),
        ("'abc 123 def 123'.split(' ', 1)", 3, 3),
        ("'abc 123 def 123'.substring(5)", 2, 2),
        ("'abc 123 def 123'.substring(5, 8)", 2, 2),
        ("'  abc 123 def 123  '.trim()", 2, 2),
        ("['aa', 'bb', 'cc', 'd', 'e', 'f', 'g', 'h', 'i', 'j'].join(' ')", 11, 23),
        ("['aa', 'bb', 'cc', 'd', 'e', 'f', 'g', 'h', 'i', 'j'].join()", 10, 22),
        ("'abc 123 def 123'.find('123')", 2, 2),
        ("'abc 123 def 123'.findAll('123')", 2, 2),
        ("'abc 123 def 123'.findAll('123', 1)", 2, 2),
        ('quantity("12Mi")', 1, 1),
        ('isQuantity("20")', 1, 1),
        ('isQuantity("20M")', 1, 1),
        ('quantity("200M") == quantity("200M")', 3, 3),
        ('quantity("200M") == quantity("0.2G") && quantity("0.2G") == quantity("200M")', 3, 6),
        (
            'quantity("2M") == quantity("0.002G") && quantity("2000k") == quantity("2M") && '
            'quantity("0.002G") =='
            ' quantity("2000k")',
            3,
            9,
        ),
        ('quantity("50M").isLessThan(quantity("50Mi"))', 3, 3),
        ('quantity("50Mi").isGreaterThan(quantity("50M"))', 3, 3),
        ('quantity("200M").compareTo(quantity("0.2G")) > 0', 4, 4),
        ('quantity("50k").add(quantity("20")) == quantity("50.02k")', 5, 5),
        ('quantity("50k").sub(quantity("20")) == quantity("49.98k")', 5, 5),
        ('quantity("50k").sub(20) == quantity("49980")', 4, 4),
        ('quantity("50k").add(20).sub(quantity("100k")).asInteger() > 0', 6, 6),
        ('quantity("50k").add(20).sub(quantity("100k")).sub(-50000).asInteger() > 0', 7, 7),
        ('quantity("50k").asInteger() > 0', 3, 3),
        ('quantity("50").isInteger()', 2, 2),
        ('quantity("50.703k").asApproximateFloat() > 0.0', 3, 3),
        ('format.named("dns1123subdomain")', 1, 1),
        ('format.named("dns1123Label").value().validate("my-name")', 34, 34),
        ('format.named("dns1123Label").value() == format.named("dns1123Label").value()', 5, 11),
        ("sets.contains([], [])", 21, 21),
        ("sets.contains([1], [])", 21, 21),
        ("sets.contains([1], [1])", 22, 22),
        ("sets.contains([1], [1, 1])", 23, 23),
        ("sets.contains([1, 1], [1])", 23, 23),
        ("sets.contains([2, 1], [1])", 23, 23),
        ("sets.contains([1, 2, 3, 4], [2, 3])", 29, 29),
        ("!sets.contains([1], [2])", 23, 23),
        ("!sets.contains([1], [1, 2])", 24, 24),
        ("sets.equivalent([], [])", 21, 21),
        ("sets.equivalent([1], [1])", 23, 23),
        ("sets.equivalent([1], [1, 1])", 25, 25),
        ("sets.equivalent([1, 1], [1])", 25, 25),
        ("!sets.equivalent([2, 1], [1])", 26, 26),
        ("!sets.equivalent([1], [1, 2])", 26, 26),
        ("sets.intersects([1], [1])", 22, 22),
        ("sets.intersects([1], [1, 1])", 23, 23),
        ("sets.intersects([1, 1], [1])", 23, 23),
        ("sets.intersects([2, 1], [1])", 23, 23),
        ("sets.intersects([1], [1, 2])", 23, 23),
        ("!sets.intersects([], [])", 22, 22),
        ("!sets.intersects([1], [])", 22, 22),
        ("!sets.intersects([1], [2])", 23, 23),
        ('semver("1.0.0")', 1, 1),
        ('semver("1234.56789012345.67890123456789")', 4, 4),
        ('isSemver("1.0.0")', 1, 1),
        ('isSemver("1234.56789012345.67890123456789")', 4, 4),
        ('semver("1.2.3").major()', 2, 2),
        ('semver("1.2.3").minor()', 2, 2),
        ('semver("1.2.3").patch()', 2, 2),
        ('semver("1.0.0").isLessThan(semver("1.1.0"))', 3, 3),
        ('semver("1.1.0").isGreaterThan(semver("1.0.0"))', 3, 3),
        ('semver("1.0.0").compareTo(semver("1.2.3"))', 3, 3),
        ("{'a': 1, 'b': 2}.all(k, v, v > 0)", 37, 41),
        ("{'a': 1, 'b': 2}.exists(k, v, v > 0)", 39, 43),
        ("{'a': 1, 'b': 2}.existsOne(k, v, v > 0)", 38, 40),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v + 1)", 71, 71),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v < 5, v + 1)", 67, 75),
        ("{'a': 1, 'b': 2}.transformMapEntry(k, v, {k: v + 1})", 131, 131),
        ("{'a': 1, 'b': 2}.transformMapEntry(k, v, v < 5, {k: v + 1})", 67, 135),
        ("[1, 2].all(i, v, v > 0)", 17, 21),
        ("[1, 2].exists(i, v, v > 0)", 19, 23),
        ("[1, 2].existsOne(i, v, v > 0)", 18, 20),
        ("[1, 2].transformList(i, v, v + 1)", 49, 49),
        ("[1, 2].transformList(i, v, v < 5, v + 1)", 27, 53),
    ],
)
def test_estimate_of_functions(expression: str, least: int, most: int) -> None:
    checked = compile_expression(expression, {}).checked
    assert estimate_cost(checked, TextsOfTwelve(None)) == (least, most)


@pytest.mark.parametrize(
    ("text", "old", "new", "size"),
    [
        ((3, 3), (0, 0), (1, 1), (7, 7)),
        ((3, 3), (1, 1), (0, 0), (0, 3)),
        ((4, 4), (2, 2), (4, 4), (4, 8)),
        ((4, 4), (0, 1), (0, 2), (0, 14)),
        ((4, 4), (1, 1), (1, 2), (4, 8)),
        ((4, 4), (1, 2), (1, 1), (2, 4)),
    ],
)
def test_replaced_size_bounds_size_of_result(
    text: tuple[int, int], old: tuple[int, int], new: tuple[int, int], size: tuple[int, int]
) -> None:
    assert replaced_size(Range(*text), Range(*old), Range(*new)) == size


UNICODE_STRINGS_SCHEMA: Object = {
    "type": "object",
    "properties": {"val1": {"type": "string"}, "val2": {"type": "string"}},
}
UNICODE_STRINGS_VALUE: Object = {"val1": "Rook takes 👑", "val2": "Rook takes 👑"}
UNICODE_STRINGS = [  # rule, cost, estimate
    (
        "self.val1 == 'Rook takes 👑' && 'Rook takes 👑' == self.val1 && self.val1 == self.val2",
        14,
        314585,
    ),
    ("self.val1.startsWith('Rook')", 4, 3),
    ("!self.val1.startsWith('knight')", 5, 4),
    ("self.val1.matches('^[^0-9]*$')", 8, 943721),
    ("!self.val1.matches('^[0-9]*$')", 7, 629149),
    ("type(self.val1) == string", 4, 4),
    ("size(self.val1) == 12", 4, 4),
    ("self.val1.charAt(3) == 'k'", 4, 4),
    ("self.val1.indexOf('o') == 1", 4, 314576),
    ("self.val1.indexOf('o', 2) == 2", 4, 314576),
    ("self.val1.replace(' ', 'x') == 'Rookxtakesx👑'", 7, 629150),
    ("self.val1.replace(' ', 'x', 1) == 'Rookxtakes 👑'", 7, 629150),
    ("self.val1.split(' ') == ['Rook', 'takes', '👑']", 6, 629159),
    ("self.val1.split(' ', 2) == ['Rook', 'takes 👑']", 6, 629159),
    ("self.val1.substring(5) == 'takes 👑'", 5, 314576),
    ("self.val1.substring(0, 4) == 'Rook'", 5, 314576),
    ("self.val1.substring(4, 10).trim() == 'takes'", 6, 629149),
    ("self.val1.upperAscii() == 'ROOK TAKES 👑'", 6, 314577),
    ("self.val1.lowerAscii() == 'rook takes 👑'", 6, 314577),
    ("self.val1.lowerAscii() == self.val1.lowerAscii()", 10, 943723),
    (
        "'%d %s %f %s %s'.format([1, 'abc', 1.0, duration('1m'), "
        "timestamp('2000-01-01T00:00:00.000Z')]) == '"
        "1 abc 1.000000 60s 2000-01-01T00:00:00Z'",
        6,
        None,
    ),
    ("'%e'.format([3.14]) == '3.140000×10⁰⁰'", 3, None),
    ("'%o %o %o'.format([7, 8, 9]) == '7 10 11'", 2, None),
    ("'%b %b %b'.format([7, 8, 9]) == '111 1000 1001'", 3, None),
]

LISTMAP_ACCESS_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "listMap": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "k": {"type": "string"},
                    "v": {"type": "string"},
                    "v2": {"type": "string"},
                },
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        }
    },
}
LISTMAP_ACCESS_VALUE: Object = {
    "listMap": [{"k": "a1", "v": "b1"}, {"k": "a2", "v": "b2"}, {"k": "a3", "v": "b3", "v2": "z"}]
}
LISTMAP_ACCESS = [  # rule, cost, estimate
    ("has(self.listMap[0].v)", 3, 3),
    ("self.listMap.all(m, m.k.startsWith('a'))", 21, 6291453),
    ("self.listMap.all(m, !has(m.v2) || m.v2 == 'z')", 21, 8388603),
    ("self.listMap.exists(m, m.k.endsWith('1'))", 13, 7340028),
    ("self.listMap.exists_one(m, m.k == 'a3')", 15, 5242879),
    ("!self.listMap.all(m, m.k.endsWith('1'))", 18, 6291454),
    ("!self.listMap.exists(m, m.v == 'x')", 25, 7340029),
    ("!self.listMap.exists_one(m, m.k.startsWith('a'))", 20, 5242880),
    ("size(self.listMap.filter(m, m.k == 'a1')) == 1", 27, 16777215),
    ("self.listMap.exists(m, m.k == 'a1' && m.v == 'b1')", 16, 10485753),
    ("self.listMap.map(m, m.v).exists(v, v == 'b1')", 55, 19922939),
    ("self.listMap.exists(m, has(m.v2) && m.v2 == 'z')", 21, 8388603),
    ("!self.listMap.all(m, has(m.v2) && m.v2 != 'z')", 10, 7340029),
    ("self.listMap.exists_one(m, has(m.v2) && m.v2 == 'z')", 12, 6291454),
    ("self.listMap.filter(m, has(m.v2) && m.v2 == 'z').size() == 1", 24, 17825790),
    ("self.listMap.map(m, has(m.v2) && m.v2 == 'z', m.v2).size() == 1", 25, 18874365),
    ("self.listMap.filter(m, has(m.v2) && m.v2 == 'z').map(m, m.v2).size() == 1", 39, 32505851),
    ("self.listMap.exists(m, m.v2 == 'z')", 24, 7340028),
    ("!self.listMap.all(m, m.v2 != 'z')", 22, 6291454),
    ("!self.listMap.all(i, m, has(m.v2) && m.v2 != 'z')", 10, None),
    ("self.listMap.exists(i, m, has(m.v2) && m.v2 == 'z')", 21, None),
    ("self.listMap.existsOne(i, m, has(m.v2) && m.v2 == 'z')", 12, None),
    ("self.listMap.transformList(i, m, has(m.v2) && m.v2 == 'z', m.v2).size() == 1", 25, None),
    ("self.listMap.transformList(i, m, m.v).size() == 3", 47, None),
]

OPTIONALS_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "obj": {
            "type": "object",
            "properties": {"field": {"type": "string"}, "absentField": {"type": "string"}},
        },
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
        "l": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
    },
}
OPTIONALS_VALUE: Object = {"obj": {"field": "a"}, "m": {"k": "v"}, "l": ["a"]}
OPTIONALS = [  # rule, cost, estimate
    ("optional.of('a') != optional.of('b')", 3, 1844674407370955266),
    ("optional.of('a') != optional.none()", 3, 1844674407370955266),
    ("optional.of('a').hasValue()", 2, 2),
    ("optional.of('a').or(optional.of('a')).hasValue()", 2, 4),
    ("optional.none().or(optional.of('a')).hasValue()", 3, 4),
    ("optional.of('a').optMap(v, v == 'value').hasValue()", 8, 18),
    ("self.obj.?field == optional.of('a')", 5, 1844674407370955268),
    ("self.obj.?absentField == optional.none()", 4, 1844674407370955268),
    ("self.obj.?field.orValue('v') == 'a'", 4, 5),
    ("self.m[?'k'] == optional.of('v')", 5, 1844674407370955268),
    ("self.l[?0] == optional.of('a')", 5, 1844674407370955268),
    ("optional.ofNonZeroValue(1).hasValue()", 2, 2),
]

EXT_LISTS_VERSION_3_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "val1": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "atomic"},
        "val2": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "atomic"},
    },
}
EXT_LISTS_VERSION_3_VALUE: Object = {"val1": [1, 2, 3], "val2": [1, 2, 3]}
EXT_LISTS_VERSION_3 = [  # rule, cost, estimate
    ("lists.range(4) == [0,1,2,3]", 16, None),
    ("lists.range(0) == []", 11, None),
    ("[5,1,2,3].reverse() == [3,2,1,5]", 16, None),
    ("[].reverse() == []", 11, None),
    ("[1].reverse() == [1]", 13, None),
    (
        "['are', 'you', 'as', 'bored', 'as', 'I', 'am'].reverse() == ['am', 'I', 'as', 'bored', "
        "'as', 'you', "
        "'are']",
        19,
        None,
    ),
    ("[false, true, true].reverse().reverse() == [false, true, true]", 29, None),
    ("[1,2,3,4].slice(0, 4) == [1,2,3,4]", 16, None),
    ("[1,2,3,4].slice(0, 0) == []", 11, None),
    ("[1,2,3,4].slice(1, 1) == []", 11, None),
    ("[1,2,3,4].slice(4, 4) == []", 11, None),
    ("[1,2,3,4].slice(1, 3) == [2, 3]", 14, None),
    ("dyn([]).flatten() == []", 11, None),
    ("dyn([1,2,3,4]).flatten() == [1,2,3,4]", 16, None),
    ("[].sort() == []", 11, None),
    ("[1].sort() == [1]", 14, None),
    ("[4, 3, 2, 1].sort() == [1, 2, 3, 4]", 44, None),
    ('["d", "a", "b", "c"].sort() == ["a", "b", "c", "d"]', 45, None),
    ("[].sortBy(e, e) == []", 14, None),
    ('["a"].sortBy(e, e) == ["a"]', 30, None),
    ("[-3, 1, -5, -2, 4].sortBy(e, -(e * e)) == [-5, 4, -3, -2, 1]", 145, None),
    ("[-3, 1, -5, -2, 4].map(e, e * 2).sortBy(e, -(e * e)) == [-10, 8, -6, -4, 2]", 216, None),
    ("lists.range(3).sortBy(e, -e) == [2, 1, 0]", 89, None),
    (
        '["a", "c", "b", "first"].sortBy(e, e == "first" ? "" : e) == ["first", "a", "b", "c"]',
        104,
        None,
    ),
    (
        "[{'name': 'foo'}, {'name': 'bar'}, {'name': 'baz'}].sortBy(e, e.name) == [{'name': "
        "'bar'}, {'name': "
        "'baz'}, {'name': 'foo'}]",
        75,
        None,
    ),
    ("[].distinct() == []", 11, None),
    ("[1].distinct() == [1]", 14, None),
    ("[-2, 5, -2, 1, 1, 5, -2, 1].distinct() == [-2, 5, 1]", 140, None),
    ("['c', 'a', 'a', 'b', 'a', 'b', 'c', 'c'].distinct() == ['c', 'a', 'b']", 146, None),
    ("[[1], [1], [2]].distinct() == [[1], [2]]", 30, None),
    (
        "[{'name': 'a'}, {'name': 'b'}, {'name': 'a'}].distinct() == [{'name': 'a'}, {'name': "
        "'b'}]",
        30,
        None,
    ),
]

CONVERSIONS_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "val1": {"type": "integer"},
        "val2": {"type": "number"},
        "val3": {"type": "number"},
        "val4": {"type": "number"},
        "val5": {"type": "boolean"},
        "val6": {"type": "string"},
        "val7": {"type": "string", "format": "byte"},
        "val8": {"type": "string"},
        "val9": {"type": "string", "format": "duration"},
        "val10": {"type": "string"},
        "val11": {"type": "string", "format": "date-time"},
        "val12": {"type": "string"},
        "val13": {"type": "string", "format": "date"},
    },
}
CONVERSIONS_VALUE: Object = {
    "val1": 10,
    "val2": 10.0,
    "val3": 10.49,
    "val4": 10.5,
    "val5": True,
    "val6": "10",
    "val7": "MTA=",
    "val8": "3723.004s",
    "val9": "1h2m3s4ms",
    "val10": "2011-08-18T19:03:37.01+01:00",
    "val11": "2011-08-18T19:03:37.01+01:00",
    "val12": "2011-08-18T00:00:00Z",
    "val13": "2011-08-18",
}
CONVERSIONS = [  # rule, cost, estimate
    ("int(self.val2) == self.val1", 6, 5),
    ("double(self.val1) == self.val2", 6, 5),
    ("bytes(self.val6) == self.val7", 6, 629150),
    ("string(self.val1) == self.val6", 6, 314578),
    ("string(self.val4) == '10.5'", 4, 4),
    ("string(self.val7) == self.val6", 6, 629150),
    ("duration(self.val8) == self.val9", 6, 6),
    ("timestamp(self.val10) == self.val11", 6, 6),
    ("string(self.val11) == self.val10", 8, 314578),
    ("timestamp(self.val12) == self.val13", 6, 6),
    ("string(self.val13) == self.val12", 7, 314578),
]


@pytest.mark.parametrize(
    ("schema", "value", "rule", "cost", "estimated"),
    [
        *[(UNICODE_STRINGS_SCHEMA, UNICODE_STRINGS_VALUE, *row) for row in UNICODE_STRINGS],
        *[(LISTMAP_ACCESS_SCHEMA, LISTMAP_ACCESS_VALUE, *row) for row in LISTMAP_ACCESS],
        *[(OPTIONALS_SCHEMA, OPTIONALS_VALUE, *row) for row in OPTIONALS],
        *[
            (EXT_LISTS_VERSION_3_SCHEMA, EXT_LISTS_VERSION_3_VALUE, *row)
            for row in EXT_LISTS_VERSION_3
        ],
        *[(CONVERSIONS_SCHEMA, CONVERSIONS_VALUE, *row) for row in CONVERSIONS],
    ],
)
def test_evaluation_counts_its_cost(
    schema: Object, value: Object, rule: str, cost: int, estimated: int | None
) -> None:
    tracker = CostTracker()
    scope = {"self": ConvertedValues().value_of(value, schema, is_root=True)}
    assert evaluate(compiled(rule, schema, is_root=True).expression.node, scope, tracker) is True
    assert tracker.cost == cost
    assert estimated is None or estimate(rule, schema) == estimated


def test_evaluation_over_its_limit_is_stopped_before_work_is_done() -> None:
    numbers = compile_expression("l.all(a, l.all(b, l.all(c, a + b + c >= 0)))", {"l": DYN}).node
    texts = compile_expression("l.exists(x, t.matches('(a+)+$'))", {"l": DYN, "t": DYN}).node
    start = monotonic()
    for node in (numbers, texts):
        with pytest.raises(
            CostLimitExceeded, match="operation cancelled: actual cost limit exceeded"
        ):
            evaluate(node, {"l": list(range(1000)), "t": "a" * 200_000 + "b"})
    assert monotonic() - start < 20


def test_errors_and_short_circuits_do_not_hide_exceeded_limit() -> None:
    node = compile_expression("l.all(a, l.all(b, l.all(c, true))) || true", {"l": DYN}).node
    with pytest.raises(CostLimitExceeded):
        evaluate(node, {"l": list(range(1000))})


def test_budget_is_spent_by_evaluations_that_fail_as_well() -> None:
    budget = CostBudget(4)
    with pytest.raises(Exception, match="division by zero"):
        evaluate_within(compile_expression("i / 0 == 1", {"i": DYN}).node, {"i": 1}, budget)
    assert budget.remaining == 1
    with pytest.raises(BudgetExceeded):
        evaluate_within(compile_expression("i + i == 2", {"i": DYN}).node, {"i": 1}, budget)
