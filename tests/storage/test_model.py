"""The store beside a plain dictionary: after any change through the API or to the files, both are
equal."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubepy.storage import CompactedError, ConflictError, ExistsError, MissingError
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml import dump
from tests.stores import changes, disagreements

from .conftest import config_map, file_of, key

NAMES = st.sampled_from(["a", "b", "System:C", "d" * 253])
VALUES = st.sampled_from(["1", "2", "3"])


class Model(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.base = Path(tempfile.mkdtemp())
        self.folder = self.base / "state"
        FolderStore.initialize(self.folder, {})
        self.store = FolderStore(self.folder)
        self.objects: dict[str, str] = {}
        self.watched: dict[str, str] = {}
        self.since = 0

    @rule(name=NAMES, value=VALUES)
    def create(self, name: str, value: str) -> None:
        try:
            with self.store.transaction() as transaction:
                transaction.create(key(name), config_map(name, value))
            assert name not in self.objects
            self.objects[name] = value
        except ExistsError:
            assert name in self.objects

    @rule(name=NAMES, value=VALUES)
    def update(self, name: str, value: str) -> None:
        before = self.store.revision
        try:
            with self.store.transaction() as transaction:
                transaction.update(key(name), config_map(name, value))
            changed = self.objects[name] != value
            self.objects[name] = value
            assert (self.store.revision > before) >= changed
        except MissingError:
            assert name not in self.objects

    @rule(name=NAMES)
    def update_an_older_version(self, name: str) -> None:
        if name not in self.objects:
            return
        try:
            with self.store.transaction() as transaction:
                transaction.update(key(name), config_map(name, "stale"), expected="0")
            raise AssertionError("an older version was taken")
        except ConflictError:
            pass

    @rule(names=st.lists(NAMES, unique=True), value=VALUES)
    def replace_several_at_once(self, names: list[str], value: str) -> None:
        with self.store.transaction() as transaction:
            for name in names:
                if transaction.get(key(name)) is not None:
                    transaction.delete(key(name))
                transaction.create(key(name), config_map(name, value))
                self.objects[name] = value

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        try:
            with self.store.transaction() as transaction:
                last = transaction.delete(key(name))
            assert last["data"]["a"] == self.objects.pop(name)
        except MissingError:
            assert name not in self.objects

    @rule(name=NAMES, value=VALUES)
    def give_up(self, name: str, value: str) -> None:
        class GivenUp(Exception):
            pass

        try:
            with self.store.transaction() as transaction:
                if transaction.get(key(name)) is None:
                    transaction.create(key(name), config_map(name, value))
                else:
                    transaction.delete(key(name))
                raise GivenUp
        except GivenUp:
            pass

    @rule(name=NAMES, value=VALUES, in_place=st.booleans())
    def edit_from_outside(self, name: str, value: str, in_place: bool) -> None:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not in_place:
            path.unlink(missing_ok=True)
        path.write_text(dump(config_map(name, value)))
        self.objects[name] = value

    @rule(name=NAMES)
    def remove_from_outside(self, name: str) -> None:
        self.path(name).unlink(missing_ok=True)
        self.objects.pop(name, None)

    @precondition(lambda self: self.objects)
    @rule()
    def remove_the_folder_from_outside(self) -> None:
        shutil.rmtree(self.folder / "namespaces")
        self.objects.clear()

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = FolderStore(self.folder)

    @rule()
    def lose_the_index(self) -> None:
        shutil.rmtree(self.folder / ".kubepy", ignore_errors=True)

    @rule()
    def catch_up(self) -> None:
        """Check that following the change log gives the objects that exist."""
        try:
            for change in changes(self.store, self.since):
                if change.type == "DELETED":
                    self.watched.pop(change.key.name, None)
                else:
                    self.watched[change.key.name] = change.object["data"]["a"]
                self.since = change.revision
        except CompactedError:
            listed = self.store.list("configmaps")
            self.watched = {obj["metadata"]["name"]: obj["data"]["a"] for obj in listed.objects}
            self.since = listed.revision
        assert self.watched == self.objects

    @invariant()
    def they_agree(self) -> None:
        if not hasattr(self, "store"):
            return
        listed = self.store.list("configmaps").objects
        assert [(obj["metadata"]["name"], obj["data"]["a"]) for obj in listed] == sorted(
            self.objects.items()
        )
        found: dict[str, Any] = {
            name: self.store.get(key(name)) for name in ("a", "b", "System:C", "d" * 253)
        }
        assert {
            name: obj["data"]["a"] for name, obj in found.items() if obj is not None
        } == self.objects
        assert disagreements(self.store) == []

    def path(self, name: str) -> Path:
        from kubepy.storage.folder.paths import encode

        return file_of(self.folder, encode(name))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.base)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
