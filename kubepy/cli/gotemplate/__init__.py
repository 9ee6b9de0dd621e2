"""Go's ``text/template``, which ``-o go-template`` is written in, with kubectl's ``exists`` and
``base64decode``.

A text becomes tokens (``lexer``), a tree (``parser``, ``nodes``), and is run over an object
(``run``) with the built-in functions (``functions``, ``printf``). The output, and every error, is
what kubectl prints. Upstream: Go's ``text/template`` and ``cli-runtime/pkg/printers/template.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kubepy.api.values.goformat import format_value, quote
from kubepy.cli.gotemplate.nodes import (
    ActionNode,
    BranchNode,
    ChainNode,
    ConstantNode,
    DotNode,
    FieldPathNode,
    PipeNode,
    TemplateError,
    TemplateNode,
    VariableNode,
)
from kubepy.cli.gotemplate.parser import TemplateParser
from kubepy.cli.gotemplate.run import ExecutionError, Run

__all__ = ["ExecutionError", "Template", "TemplateError"]


class Template:
    """A parsed template."""

    def __init__(self, text: str) -> None:
        """Parse a text. Raises TemplateError."""
        self.text = text
        self.templates = TemplateParser("output", text).parse()

    def render(self, obj: Any, *, missing_ok: bool = True) -> str:
        """Return the template's output for an object. Raises ExecutionError, which holds the output
        before it."""
        run = Run("output", self.text, self.templates, missing_ok)
        run.execute(obj)
        return "".join(run.written)

    def explain(self, obj: Any, error: ExecutionError, raw: str) -> tuple[str, str]:
        """Return what kubectl prints to standard output when rendering fails, and its error
        message.

        :param raw: the object as JSON.
        """
        details = (
            f"{error.written}Error executing template: {error}. Printing more information for "
            f"debugging the "
            f"template:\n\ttemplate was:\n\t\t{self.text}\n\traw data was:\n\t\t{raw}\n"
            f"\tobject given to template engine was:\n\t\t{format_value(obj)}\n\n"
        )
        return details, f"error executing template {quote(self.text)}: {error}"

    def may_print(self, path: Sequence[str]) -> bool:
        """Return whether the template may print a field of an object, or of the items of a list. In
        doubt: True."""
        return any(
            path[-1] in names or names == tuple(path[: len(names)])
            for nodes in self.templates.values()
            for names in _paths_in_nodes(nodes)
        )


def _paths_in_nodes(nodes: Iterable[Any]) -> Iterator[tuple[str, ...]]:
    for node in nodes:
        match node:
            case ActionNode() | TemplateNode():
                yield from _paths_in_operand(node.pipe)
            case BranchNode():
                commands = node.pipe.commands
                # A field alone is not printed: it is a condition, or becomes the dot.
                if len(commands) > 1 or len(commands[0].words) > 1:
                    yield from _paths_in_operand(node.pipe)
                yield from _paths_in_nodes([*node.body, *(node.otherwise or ())])


def _paths_in_operand(operand: Any) -> Iterator[tuple[str, ...]]:
    """Yield the field names below the operand's start; strings too, which ``index`` takes for
    names."""
    match operand:
        case PipeNode():
            for command in operand.commands:
                for word in command.words:
                    yield from _paths_in_operand(word)
        case DotNode():
            yield ()
        case ConstantNode(value=str(text)):
            yield (text, "")
        case FieldPathNode() | VariableNode() | ChainNode():
            yield operand.names[1:] if operand.names[:1] == ("items",) else operand.names
