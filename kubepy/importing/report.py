"""The lines that an import says at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from kubepy.importing.taking import counted
from kubepy.importing.words import number
from kubepy.quoting import printable

if TYPE_CHECKING:
    from kubepy.importing.documents import SourceContent
    from kubepy.importing.making import ImportedCluster

MOST_NAMES = 5  # of a line
MOST_UNREAD = 20


def summary_lines(imported: ImportedCluster, content: SourceContent) -> Iterator[str]:
    """Yield what was taken, made, named and left out, a line each."""
    taken = imported.taken
    kinds = {key.resource for key in (*imported.objects, *taken.manifests)}
    count = len(imported.objects) + len(taken.manifests)
    yield f"{number(count, 'object')} of {number(len(kinds), 'kind')} imported"
    yield f"the clock stands at {imported.settings['clock']}"
    if imported.replaced:
        secrets = number(imported.replaced, "Secret")
        yield f"the values of {secrets} were replaced: --secrets=keep keeps them"
    yield from _lines_of_made(imported)
    for (kind, version), count in sorted(taken.converted.items()):
        yield f"converted from {version}: {number(count, kind)}"
    yield from _section("named, and not in the source", _lines_of_names(imported))
    for namespace in imported.absent.remaining:
        yield printable(
            f"being deleted, and kept by what is not in the source: namespace {namespace.name} "
            f"({namespace.remaining})"
        )
    silent = imported.settings.get("kubelet", {}).get("silentNodes", ())
    if silent:
        yield f"not ready, and left so: {_named(silent)}"
    hooks = imported.settings.get("webhooks") or {}
    if hooks:
        yield f"taken to allow everything: the webhooks of {_named(hooks)}"
    if imported.learned:
        yield f"learned from pods: {number(len(imported.learned), 'rule')} in kubepy.yaml"
    yield from _section("not taken", _lines_of_refused(imported))
    yield from _section("unknown fields, left out", _lines_of_fields(taken.unknown_fields))
    yield from _section("files that could not be read", _lines_of_unread(content.unread))
    without_objects = _lines_of_unread(content.without_objects)
    yield from _section("files without objects", without_objects)


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    """Yield lines below a title, nothing without lines."""
    indented = [f"  {line}" for line in lines]
    if indented:
        yield f"{title}:"
        yield from indented


def _lines_of_made(imported: ImportedCluster) -> Iterator[str]:
    made = imported.made
    if made.namespaces:
        yield f"made: {number(len(made.namespaces), 'namespace')} ({_named(made.namespaces)})"
    if made.nodes:
        nodes = number(len(made.nodes), "node")
        yield (
            f"made: {nodes} that pods name ({_named(made.nodes)}), with room for twice "
            "their requests"
        )
    for resource, count in sorted(made.derived.items()):
        yield f"made, as controllers do: {count} {resource}"


def _lines_of_names(imported: ImportedCluster) -> Iterator[str]:
    named = imported.absent.named
    are_nodes_made = bool(imported.made.nodes)
    for kind, names in named.items():
        if kind == "Node" and are_nodes_made:
            continue
        yield f"{kind} {len(names)}: {_named(names)}"


def _lines_of_refused(imported: ImportedCluster) -> Iterator[str]:
    for (kind, reason), names in counted(imported.taken.refused).items():
        yield f"{kind} {len(names)}: {reason} ({_named(names)})"


def _lines_of_fields(fields: Counter[tuple[str, str]]) -> Iterator[str]:
    for (kind, field), count in sorted(fields.items()):
        yield printable(f"{kind} {field}: {number(count, 'object')}")


def _lines_of_unread(unread: Sequence[str]) -> Iterator[str]:
    yield from unread[:MOST_UNREAD]
    if len(unread) > MOST_UNREAD:
        yield f"… and {len(unread) - MOST_UNREAD} more"


def _named(names: Collection[str]) -> str:
    """Return names as a line has them: the first ones, and how many there are besides."""
    shown = [printable(name) for name in list(names)[:MOST_NAMES]]
    more = len(names) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more > 0 else shown)
