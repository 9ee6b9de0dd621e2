"""What a template may print of an object, told from the template alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kubepy.cli.gotemplate import Template
from kubepy.cli.gotemplate.nodes import Action, Call, Chain, Control, Dot, Field, Literal, Pipe, Variable


def may_print(template: Template, hidden: Sequence[str]) -> bool:
    """Whether it may print the field at ``hidden`` of an object, or of the items of a list. In doubt, it may."""
    return any(hidden[-1] in names or names == tuple(hidden[:len(names)])
               for nodes in template.templates.values() for names in _operands_of(nodes))


def _operands_of(nodes: Iterable[Any]) -> Iterator[tuple[str, ...]]:
    for node in nodes:
        match node:
            case Action() | Call():
                yield from _operands(node.pipe)
            case Control():
                if not _is_one_operand(node.pipe):  # a field alone is only looked at, or becomes the dot
                    yield from _operands(node.pipe)
                yield from _operands_of([*node.body, *(node.otherwise or ())])


def _is_one_operand(pipe: Pipe) -> bool:
    return len(pipe.commands) == 1 and len(pipe.commands[0].words) == 1


def _operands(operand: Any) -> Iterator[tuple[str, ...]]:
    """Each as the names of fields below whatever it begins at; strings too, which ``index`` takes for names."""
    match operand:
        case Pipe():
            for command in operand.commands:
                for word in command.words:
                    yield from _operands(word)
        case Dot():
            yield ()
        case Literal(value=str(text)):
            yield (text, "")
        case Field() | Variable() | Chain():
            yield operand.names[1:] if operand.names[:1] == ("items",) else operand.names
