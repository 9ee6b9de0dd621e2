"""The functions beyond the language's core: cel-go's extensions and Kubernetes' own (``apiserver/pkg/cel/library``).

Importing this registers all of them.
"""

from kubepy.api.cel import operators, times
from kubepy.api.cel.library import addresses, amounts, lists, texts

__all__ = ["addresses", "amounts", "lists", "operators", "texts", "times"]
