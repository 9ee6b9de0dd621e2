"""The garbage collector against a simple model of upstream's rules, on random graphs of owners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kubepy.api.meta import FOREGROUND, ORPHAN, Object, name_of, owner_references, uid_of
from kubepy.apiserver.request import DeleteOptions
from tests.controllers.conftest import Lab
from tests.controllers.watched_lab import FAULTS, if_there

HOLD = "example.org/hold"
NOBODY = -1  # an owner that does not exist
SPACES = ("default", "north", "")  # "": cluster-scoped
RESOURCES = {"default": "configmaps", "north": "configmaps", "": "clusterroles.rbac.authorization.k8s.io"}


class Link(NamedTuple):
    owner: int  # its number, or NOBODY
    blocks: bool


@dataclass
class Thing:
    """An object in the model."""

    space: str
    links: dict[int, bool] = field(default_factory=dict)  # owner → whether the object blocks the owner's deletion
    finalizers: set[str] = field(default_factory=set)
    going: bool = False


class Model:
    """Upstream's rules, applied until nothing changes any more."""

    def __init__(self, things: dict[int, Thing]) -> None:
        self.things = things
        self.spaces = {number: thing.space for number, thing in things.items()}

    def delete(self, number: int, policy: str) -> None:
        thing = self.things.get(number)
        if thing is None:
            return
        thing.going = True
        thing.finalizers -= {FOREGROUND, ORPHAN}
        thing.finalizers |= {"Foreground": {FOREGROUND}, "Orphan": {ORPHAN}}.get(policy, set())
        self.drop_if_free(number)

    def release(self, number: int) -> None:
        if number in self.things:
            self.things[number].finalizers.discard(HOLD)
            self.drop_if_free(number)

    def drop_if_free(self, number: int) -> None:
        if self.things[number].going and not self.things[number].finalizers:
            del self.things[number]

    def settle(self) -> None:
        while sum(self.step(number) for number in sorted(self.things)):
            pass

    def dependents(self, number: int) -> list[int]:
        return [other for other, thing in self.things.items() if number in thing.links]

    def waits(self, number: int) -> bool:
        return self.things[number].going and FOREGROUND in self.things[number].finalizers

    def step(self, number: int) -> bool:
        """Apply the rules to an object; report whether anything changed."""
        thing = self.things.get(number)
        if thing is None:
            return False
        if not thing.going:
            return self.collect(number, thing)
        if ORPHAN in thing.finalizers:
            for other in self.dependents(number):
                del self.things[other].links[number]
            return self.finish(number, ORPHAN)
        return FOREGROUND in thing.finalizers and self.wait(number)

    def wait(self, number: int) -> bool:
        """Delete the dependents of an object in foreground deletion, then the object itself when none blocks it."""
        dealt_with = [self.collect(other, self.things[other]) for other in self.dependents(number)
                      if other in self.things and not self.things[other].going]
        if number in self.things and not any(self.things[other].links[number] for other in self.dependents(number)):
            return self.finish(number, FOREGROUND)
        return any(dealt_with)

    def finish(self, number: int, finalizer: str) -> bool:
        self.things[number].finalizers.discard(finalizer)
        self.drop_if_free(number)
        return True

    def collect(self, number: int, thing: Thing) -> bool:
        if not thing.links or (not thing.space and any(self.space_of(owner) for owner in thing.links)):
            return False  # without owners, or cluster-scoped with a namespaced owner: the collector leaves it alone
        there = {owner for owner in thing.links if owner in self.things and self.space_of(owner) in ("", thing.space)}
        solid = {owner for owner in there if not self.waits(owner)}
        if solid:
            lost = thing.links.keys() - solid
            thing.links = {owner: blocks for owner, blocks in thing.links.items() if owner in solid}
            return bool(lost)
        if there and (dependents := self.dependents(number)):
            if any(self.waits(other) for other in dependents):
                thing.links = dict.fromkeys(thing.links, False)
            self.delete(number, "Foreground")
        else:
            self.delete(number, "Background")
        return True

    def space_of(self, number: int) -> str:
        """Return the namespace of an owner, "" for an owner that never existed."""
        return self.spaces.get(number, "")

    def picture(self) -> dict[int, tuple[dict[int, bool], set[str], bool]]:
        return {number: (thing.links, thing.finalizers, thing.going) for number, thing in self.things.items()}


class World:
    """The same operations in a cluster."""

    def __init__(self, lab: Lab, spaces: list[str], held: set[int]) -> None:
        self.lab = lab
        self.spaces = spaces
        self.made = [self.make(number, number in held) for number in range(len(spaces))]
        self.numbers = {uid_of(one): number for number, one in enumerate(self.made)}

    def make(self, number: int, held: bool) -> Object:
        space = self.spaces[number]
        metadata = {"name": f"thing-{number}", "finalizers": [HOLD] if held else []}
        kind = {"apiVersion": "v1", "kind": "ConfigMap"} if space else {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}
        return self.lab.create(RESOURCES[space], {**kind, "metadata": metadata}, space)

    def link(self, number: int, links: dict[int, bool]) -> None:
        references = [self.reference(owner, blocks) for owner, blocks in links.items()]
        if_there(lambda: self.lab.change(
            RESOURCES[self.spaces[number]], f"thing-{number}",
            lambda one: one["metadata"].update(ownerReferences=references), self.spaces[number]))

    def reference(self, number: int, blocks: bool) -> Object:
        if number == NOBODY:
            name = "namesake" if blocks else "nobody"  # the name exists or not, the uid never
            return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": name,
                    "uid": "0a0b0c0d-1111-2222-3333-444455556666", "blockOwnerDeletion": blocks}
        owner = self.made[number]
        return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name_of(owner), "uid": uid_of(owner),
                "blockOwnerDeletion": blocks}

    def delete(self, number: int, policy: str) -> None:
        if_there(lambda: self.lab.client.delete(
            RESOURCES[self.spaces[number]], f"thing-{number}", namespace=self.spaces[number],
            options=DeleteOptions(propagation_policy=policy)))

    def release(self, number: int) -> None:
        def change(one: Object) -> None:
            one["metadata"]["finalizers"] = [name for name in one["metadata"].get("finalizers", []) if name != HOLD]

        if_there(lambda: self.lab.change(RESOURCES[self.spaces[number]], f"thing-{number}", change,
                                         self.spaces[number]))

    def picture(self) -> dict[int, tuple[dict[int, bool], set[str], bool]]:
        found = [one for resource in sorted(set(RESOURCES.values())) for one in self.lab.client.list(resource).items
                 if uid_of(one) in self.numbers]
        return {self.numbers[uid_of(one)]: (
            {self.numbers.get(link["uid"], NOBODY): link.get("blockOwnerDeletion", False)
             for link in owner_references(one)},
            set(one["metadata"].get("finalizers", [])), "deletionTimestamp" in one["metadata"]) for one in found}


SIZE = 6
NUMBERS = st.integers(0, SIZE - 1)
LINKS = st.dictionaries(st.integers(NOBODY, SIZE - 1), st.booleans(), max_size=3)
DELETE = st.tuples(st.just("delete"), NUMBERS, st.sampled_from(["Background", "Foreground", "Orphan"]))
RELEASE = st.tuples(st.just("release"), NUMBERS)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Any]:
    return lambda: tmp_path_factory.mktemp("owners") / "state"


@settings(max_examples=60, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
@given(spaces=st.lists(st.sampled_from(SPACES), min_size=SIZE, max_size=SIZE),
       held=st.sets(NUMBERS, max_size=3),
       links=st.lists(LINKS, min_size=SIZE, max_size=SIZE),
       operations=st.lists(st.one_of(DELETE, DELETE, RELEASE), max_size=5), faults=FAULTS)
@example(faults=None, spaces=["default"] * SIZE, held=set(), operations=[("delete", 0, "Foreground")],
         links=[{1: True}, {0: True}, {0: True, 1: True}, {2: True, 5: True}, {NOBODY: False, 5: True}, {}])
@example(faults=None, spaces=["default"] * SIZE, held=set(), operations=[],
         links=[{NOBODY: True}, {NOBODY: False}, {NOBODY: True, 5: True}, {0: True}, {}, {}])
def test_remaining_objects_are_those_of_upstreams_rules(folders: Callable[[], Any], spaces: list[str], held: set[int],
                                                        links: list[dict[int, bool]],
                                                        operations: list[tuple[Any, ...]], faults: Any) -> None:
    """Compare at the end and, without foreign finalizers, after each step: while such a finalizer holds an object,
    the result for owners and dependents depends on the order of syncs."""
    lab = Lab(folders(), faults)
    lab.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "north"}})
    lab.create("clusterroles.rbac.authorization.k8s.io", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "namesake"}})
    world = World(lab, spaces, held)
    model = Model({number: Thing(space, finalizers={HOLD} if number in held else set())
                   for number, space in enumerate(spaces)})
    for number, owners in enumerate(links):
        others = {owner: blocks for owner, blocks in owners.items() if owner != number}
        world.link(number, others)
        model.things[number].links = dict(others)
    for name, *arguments in [("release", NOBODY), *operations, *(("release", number) for number in sorted(held))]:
        if arguments != [NOBODY]:
            getattr(world, name)(*arguments)
            getattr(model, name)(*arguments)
        lab.recover() if faults else lab.settle()
        model.settle()
        if not held:
            assert world.picture() == model.picture()
    assert world.picture() == model.picture()
    assert lab.cluster.store.check() == []
    lab.cluster.close()
