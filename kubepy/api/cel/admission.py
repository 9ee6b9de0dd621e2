"""The expressions of admission policies."""

from __future__ import annotations

from functools import lru_cache

from kubepy.api.cel.checker import Compiled, compile_expression
from kubepy.api.cel.types import DYN

VARIABLES = dict.fromkeys(("object", "oldObject", "request", "params", "namespaceObject", "variables"), DYN)


@lru_cache(maxsize=512)
def compiled(expression: str) -> Compiled:
    """Raises CompileError."""
    return compile_expression(expression, VARIABLES)
