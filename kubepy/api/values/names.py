"""Validation of names and labels: each function returns a list of upstream's sentences, empty for a
valid name.

Upstream: ``apimachinery/pkg/util/validation`` (names of objects) and
``apimachinery/pkg/api/validate/content`` (labels), which differ in one word: a name that is too
long has too many characters, a label too many bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

NameRule = Callable[[str], list[str]]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"

_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)


def regex_error(rule: str, pattern: str, *examples: str) -> str:
    """Return a rule with examples and its pattern; upstream doubles the space between examples.

    ``rule (e.g. 'a',  or 'b', regex used for validation is 'pattern')``
    """
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(value: str, limit: int, unit: str = "characters") -> list[str]:
    if len(value.encode()) > limit:
        return [f"must be no more than {limit} {unit}"]
    return []


def dns1123_subdomain(value: str, unit: str = "characters") -> list[str]:
    """Validate names of most kinds: lower case, digits, ``-`` and ``.``, at most 253."""
    if len(value) <= 253 and re.fullmatch(_SUBDOMAIN, value):
        return []
    problems = _too_long(value, 253, unit)
    if not re.fullmatch(_SUBDOMAIN, value):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            "'-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(regex_error(rule, _SUBDOMAIN, "example.com"))
    return problems


def dns1123_label(value: str) -> list[str]:
    """Validate names of namespaces, services and containers: lower case, digits and ``-``, at most
    63."""
    problems = _too_long(value, 63)
    if re.fullmatch(_LABEL, value):
        return problems
    if re.fullmatch(_SUBDOMAIN, value):
        return [*problems, "must not contain dots"]
    rule = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character"
    )
    return [*problems, regex_error(rule, _LABEL, "my-name", "123-abc")]


def dns1035_label(value: str) -> list[str]:
    """Validate a DNS-1123 label that begins with a letter."""
    problems = _too_long(value, 63)
    if not re.fullmatch(_LABEL_1035, value):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        problems.append(regex_error(rule, _LABEL_1035, "my-name", "abc-123"))
    return problems


def path_segment(value: str) -> list[str]:
    """Validate a name of any kind: it has to be a segment of a URL's path."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return path_segment_prefix(value)


def path_segment_prefix(value: str) -> list[str]:
    return [f"may not contain '{illegal}'" for illegal in ("/", "%") if illegal in value]


def mask_trailing_dash(prefix: str) -> str:
    """Return a ``generateName`` as it is to be validated: by the rule of its kind, but it may end
    in a dash."""
    if len(prefix) > 1 and prefix.endswith("-"):
        return f"{prefix[:-2]}a"
    return prefix


def qualified_name(value: str) -> list[str]:
    """Validate label keys, annotation keys and finalizers: ``[prefix/]name``."""
    parts = value.split("/")
    if len(parts) > 2:
        rule = regex_error(f"a valid label key {_KEY_RULE}", _KEY, "MyName", "my.name", "123-abc")
        return [f"{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems = []
    if len(parts) == 2:
        prefix_problems = (
            dns1123_subdomain(parts[0], "bytes") if parts[0] else ["must be non-empty"]
        )
        problems = [f"prefix part {problem}" for problem in prefix_problems]

    name = parts[-1]
    if len(name) <= 63 and re.fullmatch(_KEY, name):
        return problems
    name_problems = _too_long(name, 63, "bytes") if name else ["must be non-empty"]
    if not re.fullmatch(_KEY, name):
        name_problems.append(regex_error(_KEY_RULE, _KEY, "MyName", "my.name", "123-abc"))
    return [*problems, *(f"name part {problem}" for problem in name_problems)]


def label_value(value: str) -> list[str]:
    """Validate the value of a label: empty, or like the name part of a key."""
    if len(value) <= 63 and re.fullmatch(_VALUE, value):
        return []
    problems = _too_long(value, 63, "bytes")
    if not re.fullmatch(_VALUE, value):
        rule = f"a valid label must be an empty string or {_KEY_RULE.removeprefix('must ')}"
        problems.append(regex_error(rule, _VALUE, "MyValue", "my_value", "12345"))
    return problems
