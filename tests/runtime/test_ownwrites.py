"""A reconciler recognizes its own writes."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.api.watch import WatchEvent
from kubepy.runtime.informers import Informers
from kubepy.runtime.ownwrites import OwnWrites
from kubepy.storage import Key
from kubepy.storage.model import set_version

KEY = Key("pods", "default", "web")


def pod(version: str) -> Object:
    return {"metadata": {"name": "web", "namespace": "default", "resourceVersion": version}}


def test_write_is_recognized_by_the_version_that_its_commit_has_given() -> None:
    own_writes, written = OwnWrites(Informers()), pod("1")
    own_writes.note(KEY, written)
    set_version(written, 7)
    assert own_writes.observe(WatchEvent(KEY, None, pod("7")))
    assert not own_writes.observe(WatchEvent(KEY, None, pod("7")))


def test_write_of_somebody_else_is_not_recognized() -> None:
    own_writes = OwnWrites(Informers())
    own_writes.note(KEY, pod("1"))
    assert not own_writes.observe(WatchEvent(KEY, None, pod("2")))
