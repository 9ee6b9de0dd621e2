"""Label selectors: read, matched and printed as upstream does (``apimachinery/pkg/labels/selector.go``).

``parse_labels`` reads what a user types (``app in (a,b),!track``); ``from_label_selector`` reads the ``LabelSelector``
of an object. Both give a :class:`LabelSelector`, whose ``str`` is what kubectl prints. Field selectors are in
``kubepy.api.selectors``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kubepy.api.values.gonumbers import int_or_none
from kubepy.quoting import printable, quote

IN, NOT_IN, EXISTS, NOT_EXISTS = "in", "notin", "exists", "!"
EQUALS, DOUBLE_EQUALS, NOT_EQUALS, GREATER, LESS = "=", "==", "!=", "gt", "lt"

_SPECIAL = frozenset("=!(),><")
_SPACE = frozenset(" \t\r\n")
_SYMBOLS = {"=": EQUALS, "==": DOUBLE_EQUALS, "!=": NOT_EQUALS, ">": GREATER, "<": LESS}
_KEYWORDS = frozenset((")", ",", "!", "==", "=", ">", "in", "<", "!=", "notin", "("))
# The order in which upstream lists what it would have taken (``binaryOperators``).
_BINARY = "in, notin, =, ==, !=, gt, lt"
_EXPRESSION_OPERATORS = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": NOT_EXISTS}

IDENTIFIER, END = "identifier", "end of string"


class SelectorError(ValueError):
    """A selector that cannot be read, in upstream's words."""


class Requirement(NamedTuple):
    """One condition on one label. ``values`` are as given; they are sorted when printed."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in" | "=" | "==":
                return value is not None and value in self.values
            case "notin" | "!=":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        number, bound = int_or_none(value), int_or_none(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == GREATER else number < bound

    def __str__(self) -> str:
        values = ",".join(sorted(self.values))
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({values})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == GREATER else '<'}{values}"
        return f"{self.key}{self.operator}{values}"


class LabelSelector:
    """Requirements that must all hold, sorted by key. Without any it matches everything (``NOTHING`` does not)."""

    def __init__(self, requirements: Sequence[Requirement] = (), *, nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self._nothing = nothing

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        if self._nothing:
            return False
        found = labels or {}
        return all(requirement.matches(found) for requirement in self.requirements)

    def is_empty(self) -> bool:
        """Whether it matches everything."""
        return not self._nothing and not self.requirements

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(nothing=True)


def from_label_selector(selector: Mapping[str, Any] | None) -> LabelSelector:
    """The selector of an object: ``{matchLabels, matchExpressions}``; None matches nothing, ``{}`` everything.

    Raises SelectorError (``metav1.LabelSelectorAsSelector``).
    """
    if selector is None:
        return NOTHING
    found = [Requirement(key, EQUALS, (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    found += [_from_expression(one) for one in selector.get("matchExpressions") or []]
    for requirement in found:
        _validate(requirement)
    return LabelSelector(found)


def _from_expression(expression: Mapping[str, Any]) -> Requirement:
    operator = expression.get("operator", "")
    if operator not in _EXPRESSION_OPERATORS:
        raise SelectorError(f"{quote(operator)} is not a valid label selector operator")
    values = tuple(expression.get("values") or ())
    return Requirement(expression.get("key", ""), _EXPRESSION_OPERATORS[operator], values)


def from_set(labels: Mapping[str, str] | None) -> LabelSelector:
    """The selector that wants exactly these labels (a Service's, a ReplicationController's)."""
    return LabelSelector([Requirement(key, EQUALS, (value,)) for key, value in (labels or {}).items()])


def go_label_selector(selector: Mapping[str, Any] | None) -> str:
    """A ``LabelSelector`` as Go's generated code prints it."""
    from kubepy.api.values.goformat import format_value

    if selector is None:
        return "nil"
    labels = selector.get("matchLabels") or {}
    equal = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key', '')},Operator:{one.get('operator', '')},"
        f"Values:{format_value(one.get('values') or [])},}}," for one in selector.get("matchExpressions") or [])
    return (f"&LabelSelector{{MatchLabels:map[string]string{{{equal}}},"
            f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}")


def format_label_selector(selector: Mapping[str, Any] | None) -> str:
    """An object's selector as kubectl prints it: ``<none>`` for an empty one (``metav1.FormatLabelSelector``)."""
    try:
        return str(from_label_selector(selector)) or "<none>"
    except SelectorError:
        return "<error>"


def format_labels(labels: Mapping[str, str] | None) -> str:
    """``a=1,b=2``, sorted; ``<none>`` without any (``labels.FormatLabels``)."""
    return ",".join(sorted(f"{key}={value}" for key, value in (labels or {}).items())) or "<none>"


def parse_labels(text: str) -> LabelSelector:
    """What a user typed after ``-l``. Raises SelectorError with upstream's message (``labels.Parse``)."""
    if not text:
        return EVERYTHING
    return LabelSelector(_Parser(text).parse())


def parse_to_label_selector(text: str) -> dict[str, Any]:
    """What a user types as an object's ``{matchLabels, matchExpressions}``, without empty ones.

    Raises SelectorError (``metav1.ParseToLabelSelector``).
    """
    try:
        requirements = parse_labels(text).requirements
    except SelectorError as error:
        raise SelectorError(f"couldn't parse the selector string {quote(text)}: {error}") from None
    labels: dict[str, str] = {}
    expressions: list[dict[str, Any]] = []
    for one in requirements:
        if one.operator in (EQUALS, DOUBLE_EQUALS):
            labels[one.key] = one.values[0]
        else:
            expressions.append(_as_expression(one))
    selector = {"matchLabels": dict(sorted(labels.items())), "matchExpressions": expressions}
    return {key: value for key, value in selector.items() if value}


def _as_expression(requirement: Requirement) -> dict[str, Any]:
    if requirement.operator in (GREATER, LESS):
        raise SelectorError(f"{quote(requirement.operator)} isn't supported in label selectors")
    for name, operator in _EXPRESSION_OPERATORS.items():
        if operator == requirement.operator:
            values = {"values": sorted(requirement.values)} if requirement.values else {}
            return {"key": requirement.key, "operator": name, **values}
    raise SelectorError(f"{quote(requirement.operator)} is not a valid label selector operator")


# --- validation ---------------------------------------------------------------------------------------------------


def _validate(requirement: Requirement) -> None:
    """``labels.NewRequirement``: raises SelectorError with all that is wrong."""
    wrong = _invalid_key(requirement.key, "key") + _invalid_count(requirement)
    for index, value in enumerate(requirement.values):
        wrong += _invalid_value(requirement, index, value)
    if wrong:
        raise SelectorError(wrong[0] if len(wrong) == 1 else f"[{', '.join(dict.fromkeys(wrong))}]")


def _invalid_key(key: str, path: str) -> list[str]:
    from kubepy.api.errors import invalid_value
    from kubepy.api.values.names import qualified_name

    errors = qualified_name(key)
    return [str(invalid_value(path, key, "; ".join(errors)))] if errors else []


def _invalid_count(requirement: Requirement) -> list[str]:
    from kubepy.api.errors import invalid_value

    values = list(requirement.values)
    match requirement.operator:
        case "in" | "notin" if not values:
            return [str(invalid_value("values", values, "for 'in', 'notin' operators, values set can't be empty"))]
        case "=" | "==" | "!=" if len(values) != 1:
            return [str(invalid_value("values", values, "exact-match compatibility requires one single value"))]
        case "exists" | "!" if values:
            return [str(invalid_value("values", values, "values set must be empty for exists and does not exist"))]
    return []


def _invalid_value(requirement: Requirement, index: int, value: str) -> list[str]:
    from kubepy.api.errors import invalid_value
    from kubepy.api.values.names import label_value

    wrong = []
    if requirement.operator in (GREATER, LESS) and int_or_none(value) is None:
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        wrong.append(str(invalid_value(f"values[{index}]", value, why)))
    if errors := label_value(value):
        wrong.append(str(invalid_value(f"values[{index}][{requirement.key}]", value, "; ".join(errors))))
    return wrong


# --- parsing ------------------------------------------------------------------------------------------------------


class _Token(NamedTuple):
    kind: str  # a keyword itself, or IDENTIFIER, END
    text: str


def _scan(text: str) -> list[_Token]:
    """All tokens, ended by END."""
    tokens, position = [], 0
    while position < len(text):
        if text[position] in _SPACE:
            position += 1
            continue
        read = _scan_symbol if text[position] in _SPECIAL else _scan_word
        token, position = read(text, position)
        tokens.append(token)
    return [*tokens, _Token(END, "")]


def _scan_word(text: str, start: int) -> tuple[_Token, int]:
    end = start
    while end < len(text) and text[end] not in _SPECIAL and text[end] not in _SPACE:
        end += 1
    word = text[start:end]
    return _Token(word if word in _KEYWORDS else IDENTIFIER, word), end


def _scan_symbol(text: str, start: int) -> tuple[_Token, int]:
    """The longest keyword of special characters that begins here."""
    end = start
    while end < len(text) and text[end] in _SPECIAL and (end == start or text[start:end + 1] in _KEYWORDS):
        end += 1
    return _Token(text[start:end], text[start:end]), end


class _Parser:
    """The recursive descent of upstream's ``labels.Parser``, for its messages."""

    def __init__(self, text: str) -> None:
        self._tokens = _scan(text)
        self._position = 0

    def _look(self) -> _Token:
        """The next token; ``in`` and ``notin`` count as identifiers where an operator cannot stand."""
        token = self._tokens[min(self._position, len(self._tokens) - 1)]
        return _Token(IDENTIFIER, token.text) if token.kind in (IN, NOT_IN) else token

    def _take(self) -> _Token:
        token = self._look()
        self._position += 1
        return token

    def parse(self) -> list[Requirement]:
        found: list[Requirement] = []
        while (token := self._look()).kind != END:
            if token.kind not in (IDENTIFIER, "!"):
                raise SelectorError(f"found '{token.text}', expected: !, identifier, or 'end of string'")
            found.append(self._requirement_or_why())
            if (after := self._take()).kind == END:
                break
            self._expect_another(after)
        return found

    def _expect_another(self, after: _Token) -> None:
        if after.kind != ",":
            raise SelectorError(f"found '{after.text}', expected: ',' or 'end of string'")
        if (token := self._look()).kind not in (IDENTIFIER, "!"):
            raise SelectorError(f"found '{token.text}', expected: identifier after ','")

    def _requirement_or_why(self) -> Requirement:
        try:
            requirement = self._requirement()
            _validate(requirement)
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None
        return requirement

    def _requirement(self) -> Requirement:
        negated = self._look().kind == "!" and bool(self._take())
        token = self._take()
        if token.kind != IDENTIFIER:
            raise SelectorError(f"found '{token.text}', expected: identifier")
        if wrong := _invalid_key(token.text, "<nil>"):  # upstream passes no path here, and Go prints that so
            raise SelectorError(wrong[0])
        if negated:
            return Requirement(token.text, NOT_EXISTS)
        if self._look().kind in (END, ","):
            return Requirement(token.text, EXISTS)
        operator = self._operator()
        values = self._values() if operator in (IN, NOT_IN) else {self._exact_value()}
        return Requirement(token.text, operator, tuple(sorted(values)))

    def _operator(self) -> str:
        token = self._tokens[self._position]
        self._position += 1
        if token.kind in (IN, NOT_IN):
            return token.kind
        if token.kind not in _SYMBOLS:
            raise SelectorError(f"found '{token.text}', expected: {_BINARY}")
        return _SYMBOLS[token.kind]

    def _exact_value(self) -> str:
        if self._look().kind in (END, ","):
            return ""
        if (token := self._take()).kind != IDENTIFIER:
            raise SelectorError(f"found '{token.text}', expected: identifier")
        return token.text

    def _values(self) -> set[str]:
        if (token := self._take()).kind != "(":
            raise SelectorError(f"found '{token.text}' expected: '('")
        first = self._look()
        if first.kind == ")":
            self._take()
            return {""}
        if first.kind not in (IDENTIFIER, ","):
            raise SelectorError(f"found '{first.text}', expected: ',', ')' or identifier")
        found = self._identifiers()
        if self._take().kind != ")":
            raise SelectorError(f"found '{first.text}', expected: ')'")
        return found

    def _identifiers(self) -> set[str]:
        """The values up to the closing parenthesis; an empty place between commas is the empty value."""
        found: set[str] = set()
        while True:
            token, after = self._take(), self._look()
            if token.kind == IDENTIFIER:
                found.add(token.text)
                if after.kind not in (",", ")"):
                    raise SelectorError(f"found '{after.text}', expected: ',' or ')'")
            elif token.kind == ",":
                if not found or after.kind in (",", ")"):
                    found.add("")
            else:
                raise SelectorError(f"found '{token.text}', expected: ',', or identifier")
            if after.kind == ")":
                return found


# --- field selectors ----------------------------------------------------------------------------------------------

_TERM = re.compile(r"(?P<field>.*?)(?P<operator>!=|==|=)(?P<value>.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.?)|([,=])", re.DOTALL)


class Term(NamedTuple):
    """One condition on one field; a field that is not there is empty."""

    field: str
    value: str
    negated: bool

    def matches(self, fields: Mapping[str, str]) -> bool:
        return (fields.get(self.field, "") == self.value) != self.negated


def parse_fields(text: str) -> list[Term]:
    """What a user typed after ``--field-selector``. Raises SelectorError with upstream's message."""
    return [_parse_term(text, part) for part in sorted(_split(text)) if part]


def _split(text: str) -> list[str]:
    r"""At commas, but not at ``\,``."""
    return [part for part in re.findall(r"(?:\\.|[^,\\]|\\$)*", text, re.DOTALL) if part]


def _parse_term(selector: str, part: str) -> Term:
    found = _TERM.fullmatch(part)
    if not found:
        raise SelectorError(printable(f"invalid selector: '{selector}'; can't understand '{part}'"))
    return Term(found["field"], _unescape(found["value"]), found["operator"] == "!=")


def _unescape(value: str) -> str:
    return _ESCAPED.sub(_unescape_one, value)


def _unescape_one(found: re.Match[str]) -> str:
    if found[2]:
        raise SelectorError(f"invalid field selector: unescaped character in value: {ord(found[2])}")
    if found[1] not in ("\\", ",", "=") or not found[1]:
        raise SelectorError(f"invalid field selector: invalid escape sequence: \\{found[1]}")
    return found[1]
