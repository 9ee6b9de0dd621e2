"""Label and field selectors (``apimachinery/pkg/labels/selector.go``,
``apimachinery/pkg/fields/selector.go``).

``parse_labels`` reads the value of ``-l`` (``app in (a,b),!track``); ``from_label_selector`` reads
an object's ``LabelSelector``. Both return a :class:`LabelSelector`, whose ``str`` is what kubectl
prints. ``parse_fields`` reads the value of ``--field-selector``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kubepy.api.meta import AnyObject, nested_list, nested_map
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.api.values import goformat, gonumbers, names

IN = "in"
NOT_IN = "notin"
EXISTS = "exists"
NOT_EXISTS = "!"
EQUALS = "="
DOUBLE_EQUALS = "=="
NOT_EQUALS = "!="
GREATER = "gt"
LESS = "lt"

_SPECIAL = frozenset("=!(),><")
_SPACE = frozenset(" \t\r\n")
_SYMBOLS = {"=": EQUALS, "==": DOUBLE_EQUALS, "!=": NOT_EQUALS, ">": GREATER, "<": LESS}
_KEYWORDS = frozenset((")", ",", "!", "==", "=", ">", "in", "<", "!=", "notin", "("))
# Upstream's list of the operators that it expects (``binaryOperators``).
_BINARY = "in, notin, =, ==, !=, gt, lt"
_EXPRESSION_OPERATORS = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": NOT_EXISTS}

IDENTIFIER = "identifier"
END = "end of string"


class SelectorError(ValueError):
    """A selector that cannot be read, in upstream's words."""


class Requirement(NamedTuple):
    """A condition on a label. ``values`` are sorted when printed."""

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

        number = gonumbers.int_or_none(value or "")
        bound = gonumbers.int_or_none(self.values[0])
        if number is None or bound is None:
            return False
        if self.operator == GREATER:
            return number > bound
        return number < bound

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
    """Requirements that must all hold, sorted by key. Without any it matches everything
    (``NOTHING`` does not)."""

    def __init__(self, requirements: Sequence[Requirement] = (), *, nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self._nothing = nothing

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        if self._nothing:
            return False
        existing = labels or {}
        return all(requirement.matches(existing) for requirement in self.requirements)

    def is_empty(self) -> bool:
        """Return whether the selector matches everything."""
        return not self._nothing and not self.requirements

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(nothing=True)


def from_label_selector(selector: AnyObject | None) -> LabelSelector:
    """Read the selector of an object: ``{matchLabels, matchExpressions}``; None matches nothing,
    ``{}`` everything.

    Raises SelectorError (``metav1.LabelSelectorAsSelector``).
    """
    if selector is None:
        return NOTHING
    requirements = [
        Requirement(key, EQUALS, (value,))
        for key, value in nested_map(selector, "matchLabels").items()
    ]
    for expression in nested_list(selector, "matchExpressions"):
        operator = expression.get("operator", "")
        if operator not in _EXPRESSION_OPERATORS:
            raise SelectorError(f"{quote(operator)} is not a valid label selector operator")
        values = tuple(nested_list(expression, "values"))
        requirements.append(
            Requirement(expression.get("key", ""), _EXPRESSION_OPERATORS[operator], values)
        )

    for requirement in requirements:
        _validate(requirement)
    return LabelSelector(requirements)


def from_set(labels: Mapping[str, str] | None) -> LabelSelector:
    """Return the selector of objects with all these labels (as of a Service or a
    ReplicationController)."""
    return LabelSelector(
        [Requirement(key, EQUALS, (value,)) for key, value in (labels or {}).items()]
    )


def go_label_selector(selector: AnyObject | None) -> str:
    """Format a ``LabelSelector`` as Go's generated code prints it."""
    if selector is None:
        return "nil"
    labels = nested_map(selector, "matchLabels")
    equal = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{expression.get('key', '')},"
        f"Operator:{expression.get('operator', '')},"
        f"Values:{goformat.format_value(expression.get('values') or [])},}},"
        for expression in nested_list(selector, "matchExpressions")
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{equal}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def format_label_selector(selector: AnyObject | None) -> str:
    """Format an object's selector as kubectl prints it, ``<none>`` if empty
    (``metav1.FormatLabelSelector``)."""
    try:
        return str(from_label_selector(selector)) or "<none>"
    except SelectorError:
        return "<error>"


def format_labels(labels: Mapping[str, str] | None) -> str:
    """Format labels: ``a=1,b=2``, sorted; ``<none>`` without any (``labels.FormatLabels``)."""
    return ",".join(sorted(f"{key}={value}" for key, value in (labels or {}).items())) or "<none>"


def parse_labels(text: str) -> LabelSelector:
    """Read the value of ``-l``. Raises SelectorError with upstream's message (``labels.Parse``)."""
    if not text:
        return EVERYTHING
    return LabelSelector(_Parser(text).parse())


def parse_to_label_selector(text: str) -> dict[str, Any]:
    """Read a typed selector into an object's ``{matchLabels, matchExpressions}``, without empty
    ones.

    Raises SelectorError (``metav1.ParseToLabelSelector``).
    """
    try:
        requirements = parse_labels(text).requirements
    except SelectorError as error:
        raise SelectorError(f"couldn't parse the selector string {quote(text)}: {error}") from None

    labels: dict[str, str] = {}
    expressions: list[dict[str, Any]] = []
    operators = {operator: name for name, operator in _EXPRESSION_OPERATORS.items()}
    for requirement in requirements:
        if requirement.operator in (EQUALS, DOUBLE_EQUALS):
            labels[requirement.key] = requirement.values[0]
        elif requirement.operator in operators:
            values = {"values": sorted(requirement.values)} if requirement.values else {}
            expressions.append(
                {"key": requirement.key, "operator": operators[requirement.operator], **values}
            )
        elif requirement.operator in (GREATER, LESS):
            raise SelectorError(f"{quote(requirement.operator)} isn't supported in label selectors")
        else:
            raise SelectorError(
                f"{quote(requirement.operator)} is not a valid label selector operator"
            )

    selector = {"matchLabels": dict(sorted(labels.items())), "matchExpressions": expressions}
    return {key: value for key, value in selector.items() if value}


# --- validation -----------------------------------------------------------------------------------


def _validate(requirement: Requirement) -> None:
    """Raise SelectorError with all that is wrong with a requirement (``labels.NewRequirement``)."""
    problems = _invalid_key(requirement.key, "key")
    values = list(requirement.values)
    match requirement.operator:
        case "in" | "notin" if not values:
            problems.append(
                _invalid("values", values, "for 'in', 'notin' operators, values set can't be empty")
            )
        case "=" | "==" | "!=" if len(values) != 1:
            problems.append(
                _invalid("values", values, "exact-match compatibility requires one single value")
            )
        case "exists" | "!" if values:
            problems.append(
                _invalid("values", values, "values set must be empty for exists and does not exist")
            )

    for index, value in enumerate(values):
        if requirement.operator in (GREATER, LESS) and gonumbers.int_or_none(value) is None:
            problems.append(
                _invalid(
                    f"values[{index}]",
                    value,
                    "for 'Gt', 'Lt' operators, the value must be an integer",
                )
            )
        if not _is_plain(value) and (errors := names.label_value(value)):
            problems.append(
                _invalid(f"values[{index}][{requirement.key}]", value, "; ".join(errors))
            )

    if problems:
        raise SelectorError(
            problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]"
        )


def _is_plain(text: str) -> bool:
    """Return whether a text is plainly a valid key and value: most are, and the rules need not be
    imported for them."""
    return text.isascii() and text.isalnum() and len(text) <= 63


def _invalid_key(key: str, path: str) -> list[str]:
    errors = [] if _is_plain(key) else names.qualified_name(key)
    if errors:
        return [_invalid(path, key, "; ".join(errors))]
    return []


def _invalid(path: str, value: Any, detail: str) -> str:
    return str(api_errors.invalid_value(path, value, detail))


# --- parsing --------------------------------------------------------------------------------------


class _Token(NamedTuple):
    kind: str  # a keyword itself, or IDENTIFIER, END
    text: str


def _scan(text: str) -> list[_Token]:
    """Split a selector into tokens: words, and the longest symbols there are; the last token is
    END."""
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        start = position
        position += 1
        if text[start] in _SPECIAL:
            while (
                position < len(text)
                and text[position] in _SPECIAL
                and text[start : position + 1] in _KEYWORDS
            ):
                position += 1
            tokens.append(_Token(text[start:position], text[start:position]))
        elif text[start] not in _SPACE:
            while (
                position < len(text)
                and text[position] not in _SPECIAL
                and text[position] not in _SPACE
            ):
                position += 1
            word = text[start:position]
            tokens.append(_Token(word if word in _KEYWORDS else IDENTIFIER, word))

    return [*tokens, _Token(END, "")]


class _Parser:
    """The recursive descent of upstream's ``labels.Parser``, for its messages."""

    def __init__(self, text: str) -> None:
        self._tokens = _scan(text)
        self._position = 0

    def _look(self) -> _Token:
        """Return the next token; ``in`` and ``notin`` are identifiers where an operator cannot
        stand."""
        token = self._tokens[min(self._position, len(self._tokens) - 1)]
        if token.kind in (IN, NOT_IN):
            return _Token(IDENTIFIER, token.text)
        return token

    def _take(self) -> _Token:
        token = self._look()
        self._position += 1
        return token

    def parse(self) -> list[Requirement]:
        """Read requirements up to the end. Raises SelectorError."""
        requirements: list[Requirement] = []
        while (token := self._look()).kind != END:
            if token.kind not in (IDENTIFIER, "!"):
                raise SelectorError(
                    f"found '{token.text}', expected: !, identifier, or 'end of string'"
                )
            try:
                requirement = self.requirement()
                _validate(requirement)
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            requirements.append(requirement)
            if (after := self._take()).kind == END:
                break
            if after.kind != ",":
                raise SelectorError(f"found '{after.text}', expected: ',' or 'end of string'")
            if (following := self._look()).kind not in (IDENTIFIER, "!"):
                raise SelectorError(f"found '{following.text}', expected: identifier after ','")

        return requirements

    def requirement(self) -> Requirement:
        """Read one requirement. Raises SelectorError."""
        negated = self._look().kind == "!" and bool(self._take())
        key = self._take()
        if key.kind != IDENTIFIER:
            raise SelectorError(f"found '{key.text}', expected: identifier")
        if problems := _invalid_key(
            key.text, "<nil>"
        ):  # upstream passes no path here, and Go prints that so
            raise SelectorError(problems[0])

        if negated:
            return Requirement(key.text, NOT_EXISTS)
        if self._look().kind in (END, ","):
            return Requirement(key.text, EXISTS)
        operator = self._tokens[self._position]
        self._position += 1
        if operator.kind in (IN, NOT_IN):
            return Requirement(key.text, operator.kind, tuple(sorted(self.values())))
        if operator.kind not in _SYMBOLS:
            raise SelectorError(f"found '{operator.text}', expected: {_BINARY}")
        value = ""
        if self._look().kind not in (END, ","):
            if (token := self._take()).kind != IDENTIFIER:
                raise SelectorError(f"found '{token.text}', expected: identifier")
            value = token.text

        return Requirement(key.text, _SYMBOLS[operator.kind], (value,))

    def values(self) -> set[str]:
        """Read ``(a,b)``; an empty place between commas is the empty value. Raises
        SelectorError."""
        if (token := self._take()).kind != "(":
            raise SelectorError(f"found '{token.text}' expected: '('")
        first = self._look()
        if first.kind == ")":
            self._take()
            return {""}
        if first.kind not in (IDENTIFIER, ","):
            raise SelectorError(f"found '{first.text}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            token = self._take()
            after = self._look()
            if token.kind == IDENTIFIER:
                values.add(token.text)
                if after.kind not in (",", ")"):
                    raise SelectorError(f"found '{after.text}', expected: ',' or ')'")
            elif token.kind == ",":
                if not values or after.kind in (",", ")"):
                    values.add("")
            else:
                raise SelectorError(f"found '{token.text}', expected: ',', or identifier")
            if after.kind == ")":
                self._take()
                return values


# --- field selectors ------------------------------------------------------------------------------

_TERM = r"(?s)(?P<field>.*?)(?P<operator>!=|==|=)(?P<value>.*)"
_ESCAPED = r"(?s)\\(.?)|([,=])"


class Term(NamedTuple):
    """A condition on a field; a missing field is empty."""

    field: str
    value: str
    negated: bool

    def matches(self, fields: Mapping[str, str]) -> bool:
        return (fields.get(self.field, "") == self.value) != self.negated


def parse_fields(text: str) -> list[Term]:
    """Read the value of ``--field-selector``. Raises SelectorError with upstream's message."""
    terms = []
    for part in sorted(
        re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL)
    ):  # between commas, but not at \,
        match = re.fullmatch(_TERM, part)
        if not match:
            raise SelectorError(printable(f"invalid selector: '{text}'; can't understand '{part}'"))
        value = re.sub(_ESCAPED, _unescaped, match["value"])
        terms.append(Term(match["field"], value, match["operator"] == "!="))
    return terms


def _unescaped(escape: re.Match[str]) -> str:
    if escape[2]:
        raise SelectorError(
            f"invalid field selector: unescaped character in value: {ord(escape[2])}"
        )
    if escape[1] not in ("\\", ",", "=") or not escape[1]:
        raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escape[1]}")
    return escape[1]
