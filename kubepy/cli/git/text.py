"""``kubepy git diff-text``: an object as text in which each line tells the whole path of its field."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from kubepy.api.schema.openapi import Schema
from kubepy.apiserver.managedfields.fieldpath import Path, field, path_text
from kubepy.apiserver.managedfields.typed import TypedError, child, elements, is_atomic
from kubepy.cli.git.files import kind_of, place_of, read_object
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.storage.manifest import ContentError


@verb("diff-text", "diff-text FILE", examples="""
# As git calls it (diff.kubepy.textconv)
kubepy git diff-text state/namespaces/default/deployments.apps/web.yaml

# Two files, field by field
diff <(kubepy git diff-text old.yaml) <(kubepy git diff-text new.yaml)
""")
def diff_text(factory: Factory, given: Invocation) -> None:
    """Print the object in a file with a line for each field: its path, and its value.

    A file that is no object is printed as it is."""
    if len(given.args) != 1:
        given.usage_error("exactly one FILE is required")
    with open(given.args[0], "rb") as file:
        data = file.read()
    try:
        obj = read_object(data)
    except ContentError:
        factory.print(data.decode(errors="replace"), end="")
        return
    place = place_of(os.path.relpath(given.args[0]))
    factory.print("\n".join(lines_of(obj, kind_of(obj, place).schema)))


def lines_of(value: Any, schema: Schema | None, path: Path = ()) -> Iterator[str]:
    """The lines of a value; items of lists that have keys are told by them, others by their position."""
    from kubepy.storage.yaml import dump

    if isinstance(value, dict) and value:
        for name in sorted(value):
            yield from lines_of(value[name], child(schema, name), (*path, field(name)))
    elif isinstance(value, list) and value:
        for element, item in zip(_elements(schema, value, path), value, strict=True):
            yield from lines_of(item, schema and schema.items(), (*path, element))
    else:
        place = path_text(path).removeprefix(".")
        first, *more = dump(value).splitlines()
        yield f"{place}: {first}"
        yield from (f"{place}| {line.removeprefix('  ')}" for line in more)


def _elements(schema: Schema | None, values: list[Any], path: Path) -> list[str]:
    positions = [f"i:{index}" for index in range(len(values))]
    if schema is None or is_atomic(schema, values):
        return positions
    try:
        return elements(schema, values, path)
    except TypedError:
        return positions
