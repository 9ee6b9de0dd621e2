"""Go's ``text/template``, which ``-o go-template`` is written in, with kubectl's ``exists`` and ``base64decode``.

A text becomes tokens (``lexer``), a tree (``parser``, ``nodes``), and is run over an object (``run``) with the built-in
functions (``functions``, ``printf``). What comes out, and every error, is what kubectl prints. Upstream: Go's
``text/template`` and ``cli-runtime/pkg/printers/template.go``.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.values.goformat import format_value, quote
from kubepy.cli.gotemplate.nodes import TemplateError
from kubepy.cli.gotemplate.parser import Parser
from kubepy.cli.gotemplate.run import ExecutionError, Run

__all__ = ["ExecutionError", "Template", "TemplateError"]


class Template:
    """A template that has been read."""

    def __init__(self, text: str) -> None:
        """Raises TemplateError."""
        self.text = text
        self.templates = Parser("output", text).parse()

    def render(self, obj: Any, *, missing_ok: bool = True) -> str:
        """The template filled in. Raises ExecutionError, which holds what was printed before."""
        run = Run("output", self.text, self.templates, missing_ok)
        run.execute(obj)
        return "".join(run.written)

    def explain(self, obj: Any, error: ExecutionError, raw: str) -> tuple[str, str]:
        """What kubectl prints when the template does not fit: to standard output, and as its error.

        ``raw``: the object as JSON.
        """
        told = (f"{error.written}Error executing template: {error}. Printing more information for debugging the "
                f"template:\n\ttemplate was:\n\t\t{self.text}\n\traw data was:\n\t\t{raw}\n"
                f"\tobject given to template engine was:\n\t\t{format_value(obj)}\n\n")
        return told, f"error executing template {quote(self.text)}: {error}"
