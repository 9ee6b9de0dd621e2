"""References to variables in texts of a pod: ``$(NAME)``, and ``$$`` for a dollar.

Upstream: ``third_party/forked/golang/expansion``. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

# A dollar and what belongs to it. A reference without its end is a text like any other.
_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, value_of: Callable[[str], str]) -> str:
    """Return a text with the values of the variables that it names.

    :param value_of: returns what stands in the place of a reference to a variable.
    """
    if "$" not in text:
        return text

    def replacement(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return value_of(match[1])

    return _REFERENCE.sub(replacement, text)


def first_value(*variables: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function for :func:`expand` that looks a variable up in several places, in this
    order. A reference to an unknown variable stays as it is (``MappingFuncFor``)."""

    def value_of(name: str) -> str:
        for values in variables:
            if name in values:
                return values[name]
        return f"$({name})"

    return value_of


def expand_all(texts: list[str] | None, variables: Mapping[str, str]) -> list[str]:
    """Return the words of a command with the variables of its container
    (``ExpandContainerCommandAndArgs``)."""
    value_of = first_value(variables)
    return [expand(text, value_of) for text in texts or ()]
