"""Volumes that put two files at one path (``warningsForOverlappingVirtualPaths`` upstream)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.quoting import quote


class _Placed(NamedTuple):
    path: str
    source: str = ""

    def __str__(self) -> str:
        return f"{quote(self.path)} ({self.source})" if self.source else quote(self.path)


def overlapping_paths(volumes: list[Object]) -> Iterator[str]:
    for volume in volumes:
        name = volume.get("name", "")
        for kind, described in _kinds(volume):
            items = (volume[kind] or {}).get("items") or ()
            yield from (_warning(name, described, overlap) for overlap in _overlaps(_items(items, "")))
        if volume.get("projected") is not None:
            yield from _of_projected(name, volume["projected"].get("sources") or ())


def _kinds(volume: Object) -> Iterator[tuple[str, str]]:
    if volume.get("configMap") is not None:
        yield "configMap", f'ConfigMap {quote(volume["configMap"].get("name", ""))}'
    if volume.get("secret") is not None:
        yield "secret", f'Secret {quote(volume["secret"].get("secretName", ""))}'
    if volume.get("downwardAPI") is not None:
        yield "downwardAPI", "DownwardAPI"


def _warning(name: str, described: str, overlap: str) -> str:
    return f"volume {quote(name)} ({described}): overlapping paths: {overlap}"


def _of_projected(name: str, sources: Iterable[Object]) -> Iterator[str]:
    placed: list[_Placed] = []
    for source in sources:
        if not any(value is not None for value in source.values()):
            yield f"volume {quote(name)} (Projected) has no sources provided"
            continue
        for one in _projected_paths(source):
            clean = one._replace(path=one.path.rstrip("/"))
            yield from (_warning(name, "Projected", f"{clean} with {other}") for other in _colliding(placed, clean))
            placed.append(clean)


def _projected_paths(source: Object) -> list[_Placed]:
    for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if (given := source.get(kind)) is not None and given.get("items"):
            return _items(given["items"], f'{shown} {quote(given.get("name", ""))}')
    if (given := source.get("downwardAPI")) is not None and given.get("items"):
        return _items(given["items"], "DownwardAPI")
    if (given := source.get("serviceAccountToken")) is not None:
        return [_Placed(given.get("path", ""), "ServiceAccountToken")]
    return []


def _items(items: Iterable[Object], source: str) -> list[_Placed]:
    return [_Placed(item.get("path", ""), source) for item in items]


def _overlaps(paths: list[_Placed]) -> Iterator[str]:
    placed: list[_Placed] = []
    for one in paths:
        clean = one._replace(path=one.path.rstrip("/"))
        yield from (f"{clean} with {other}" for other in _colliding(placed, clean))
        placed.append(clean)


def _colliding(placed: list[_Placed], new: _Placed) -> list[_Placed]:
    if not new.path:
        return []
    return [one for one in placed if one.path and (
        f"{one.path}/".startswith(f"{new.path}/") or f"{new.path}/".startswith(f"{one.path}/"))]
