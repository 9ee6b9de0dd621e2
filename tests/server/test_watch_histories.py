"""Random writes: every watch, from wherever it begins and however often it reconnects, has exactly
what follows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubepy.server import watch

from .conftest import Api
from .test_watch import config_map

NAMES = "abc"
LABELS: tuple[dict[str, str], ...] = ({}, {"app": "x"}, {"app": "y"}, {"app": "x", "tier": "t"})
SELECTORS: tuple[tuple[str, Callable[[dict[str, str]], bool]], ...] = (
    ("", lambda labels: True),
    ("app=x", lambda labels: labels.get("app") == "x"),
    ("app", lambda labels: "app" in labels),
    ("app!=x", lambda labels: labels.get("app") != "x"),
    ("tier in (t)", lambda labels: labels.get("tier") == "t"),
    ("!app", lambda labels: "app" not in labels),
)

numbers = itertools.count()
writes = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from((*range(len(LABELS)), None))), max_size=12
)


class Watching(NamedTuple):
    """A watch: after so many changes, with a selector, of one name or all; it reconnects after so
    many events."""

    start: int
    selector: int
    name: str
    reads: int


watchers = st.lists(
    st.builds(
        Watching,
        st.integers(0, 12),
        st.integers(0, len(SELECTORS) - 1),
        st.sampled_from(("", *NAMES)),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=4,
)


class History:
    """The writes to a namespace of its own.

    :ivar changes: the name of each object that was written, with its labels before and after.
    :ivar revisions: those of lists before the first change, and after each.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        name = f"space-{next(numbers)}"
        assert api.post("/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
        self.path = f"/api/v1/namespaces/{name}/configmaps"
        self.objects: dict[str, dict[str, str]] = {}
        self.changes: list[tuple[str, dict[str, str] | None, dict[str, str] | None]] = []
        self.revisions = [self.list(api)[0]]

    def list(self, api: Api) -> tuple[int, dict[str, str]]:
        """Return the revision of a list, and the resourceVersions of the objects by name."""
        body = api.get(self.path).json()
        items = {
            item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in body["items"]
        }
        return int(body["metadata"]["resourceVersion"]), items

    def write(self, name: str, labels: dict[str, str] | None) -> None:
        """Create, replace or delete an object; what changes nothing is not part of the history."""
        old = self.objects.get(name)
        if old == labels:
            return
        if labels is None:
            del self.objects[name]
            answer = self.api.delete(f"{self.path}/{name}")
        else:
            self.objects[name] = labels
            body = config_map(name, labels)
            answer = (
                self.api.post(self.path, body)
                if old is None
                else self.api.put(f"{self.path}/{name}", body)
            )
        assert answer.status in (200, 201), answer.body
        self.changes.append((name, old, labels))
        self.revisions.append(self.list(self.api)[0])

    def expected(self, watching: Watching) -> list[tuple[str, str]]:
        """Return the types and names of the events of a watch."""
        matches = SELECTORS[watching.selector][1]
        events = []
        for name, old, new in self.changes[watching.start :]:
            matched, still = (labels is not None and matches(labels) for labels in (old, new))
            if watching.name in ("", name) and (matched or still):
                events.append(
                    ("DELETED" if not still else "MODIFIED" if matched else "ADDED", name)
                )
        return events

    def watch(self, watching: Watching, api: Api, since: int) -> list[Any]:
        """Return the events of a watch up to the bookmark that says that nothing else has
        happened."""
        events: list[Any] = []
        fields = f"metadata.name={watching.name}" if watching.name else ""
        query = (
            f"labelSelector={quote(SELECTORS[watching.selector][0])}&fieldSelector={quote(fields)}"
        )
        while True:
            stream = api.stream(
                f"{self.path}?watch=1&allowWatchBookmarks=true&resourceVersion={since}&{query}"
            )
            for _ in range(watching.reads):
                event = stream.event()
                assert event["type"] != "ERROR", event
                since = int(event["object"]["metadata"]["resourceVersion"])
                if event["type"] != "BOOKMARK":
                    events.append(event)
                elif since >= self.revisions[-1]:
                    stream.close()
                    return events
            stream.close()


@pytest.fixture(autouse=True)
def frequent_bookmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "BOOKMARK_SECONDS", 0.02)


def written(api: Api, chosen: list[Any]) -> History:
    history = History(api)
    for name, labels in chosen:
        history.write(name, None if labels is None else LABELS[labels])
    return history


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(writes, watchers)
def test_each_watch_has_exactly_the_history_that_follows(
    api: Api, chosen: list[Any], watching: list[Watching]
) -> None:
    history = written(api, chosen)
    for one in watching:
        one = one._replace(start=min(one.start, len(history.changes)))
        events = history.watch(one, api, history.revisions[one.start])
        assert [
            (event["type"], event["object"]["metadata"]["name"]) for event in events
        ] == history.expected(one)
        revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
        assert revisions == sorted(set(revisions))


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(writes, st.integers(0, 12), st.integers(1, 3))
def test_watch_of_restarted_server_leads_to_what_is_there(
    new_api: Callable[..., Api],
    new_folder: Callable[[], Path],
    chosen: list[Any],
    start: int,
    reads: int,
) -> None:
    folder = new_folder()
    history = written(new_api(folder), chosen)
    start = min(start, len(history.changes))
    since, (_, present) = history.revisions[start], history.list(history.api)
    state = dict.fromkeys(names_at(history, start), "")
    for event in history.watch(Watching(start, 0, "", reads), new_api(folder), since):
        name = event["object"]["metadata"]["name"]
        assert (event["type"] == "ADDED") == (name not in state)
        state[name] = event["object"]["metadata"]["resourceVersion"]
        if event["type"] == "DELETED":
            del state[name]
    assert state.keys() == present.keys()
    assert all(
        int(present[name]) <= since if not version else version == present[name]
        for name, version in state.items()
    )


def names_at(history: History, start: int) -> set[str]:
    """Return the names of the objects that were there after so many changes."""
    names: set[str] = set()
    for name, _, labels in history.changes[:start]:
        (names.discard if labels is None else names.add)(name)
    return names
