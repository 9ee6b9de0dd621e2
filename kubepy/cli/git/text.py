"""``kubepy git diff-text``: print an object with the whole path of each field."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from kubepy.api.schema.openapi import Schema
from kubepy.apiserver.managedfields.fieldpath import Path, field, path_text
from kubepy.apiserver.managedfields.typed import TypedError, child, elements, is_atomic
from kubepy.cli.git.files import kind_of, read_object, state_file_at
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.options import Options
from kubepy.lazy import lazy_imports
from kubepy.storage.manifests import ContentError

with lazy_imports():
    from kubepy.storage import yaml


@command(
    "diff-text FILE",
    Options,
    examples="""
# As git calls it (diff.kubepy.textconv)
kubepy git diff-text state/namespaces/default/deployments.apps/web.yaml

# Two files, field by field
diff <(kubepy git diff-text old.yaml) <(kubepy git diff-text new.yaml)
""",
)
def diff_text(factory: Factory, options: Options) -> None:
    """Print the object in a file with a line for each field: its path, and its value.

    A file that is no object is printed as it is."""
    if len(options.args) != 1:
        options.usage_error("exactly one FILE is required")
    with open(options.args[0], "rb") as file:
        data = file.read()
    try:
        obj = read_object(data)
    except ContentError:
        factory.print(data.decode(errors="replace"), end="")
        return
    state_file = state_file_at(os.path.relpath(options.args[0]))
    factory.print("\n".join(lines_of(obj, kind_of(obj, state_file).schema)))


def lines_of(value: Any, schema: Schema | None, path: Path = ()) -> Iterator[str]:
    """Yield the lines of a value; items of lists are named by their keys, without keys by their
    position."""
    if isinstance(value, dict) and value:
        for name in sorted(value):
            yield from lines_of(value[name], child(schema, name), (*path, field(name)))
    elif isinstance(value, list) and value:
        names = [f"i:{index}" for index in range(len(value))]
        if schema is not None and not is_atomic(schema, value):
            with suppress(TypedError):
                names = elements(schema, value, path)
        for name, item in zip(names, value, strict=True):
            yield from lines_of(item, schema and schema.items(), (*path, name))
    else:
        field_path = path_text(path).removeprefix(".")
        first, *more = yaml.dump(value).splitlines()
        yield f"{field_path}: {first}"
        yield from (f"{field_path}| {line.removeprefix('  ')}" for line in more)
