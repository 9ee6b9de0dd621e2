"""The garbage collector against a simple model of upstream's rules, on random graphs of owners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kubepy.api.meta import FOREGROUND, ORPHAN, Object, name_of, owner_references, uid_of
from kubepy.apiserver.request import DeleteOptions
from tests.controllers.conftest import Lab
from tests.controllers.watched_lab import FAULTS, if_there
from tests.stores import disagreements

HOLD = "example.org/hold"
NOBODY = -1  # an owner that does not exist
SPACES = ("default", "north", "")  # "": cluster-scoped
RESOURCES = {
    "default": "configmaps",
    "north": "configmaps",
    "": "clusterroles.rbac.authorization.k8s.io",
}


class Link(NamedTuple):
    owner: int  # its number, or NOBODY
    blocks: bool  # the owner's deletion


class Thing(NamedTuple):
    """An object in the model."""

    links: frozenset[Link] = frozenset()
    finalizers: frozenset[str] = frozenset()
    going: bool = False


Picture = dict[int, Thing]  # a state of the cluster, by the numbers of its objects


class Model:
    """Upstream's rules: which single writes of the collector may follow a state, and where they may
    end.

    With ``in_order`` an owner in foreground deletion goes on when all its dependents have been
    dealt with: they are enqueued before it (``processTransitions``), so that a worker that meets no
    error comes to them first.
    """

    def __init__(self, spaces: list[str], in_order: bool) -> None:
        self.spaces = spaces
        self.in_order = in_order

    def outcomes(self, picture: Picture) -> list[Picture]:
        """Return the states in which nothing is left to do that some order of writes leads to."""
        seen, todo, ends = set(), [picture], []
        while todo:
            picture = todo.pop()
            state = frozenset(picture.items())
            if state not in seen:
                seen.add(state)
                following = [after for number in picture for after in self.writes(picture, number)]
                todo += following
                ends += [] if following else [picture]
        return ends

    def writes(self, picture: Picture, number: int) -> list[Picture]:
        """Return the states to which the next write of a sync of an object may lead; none where it
        writes nothing."""
        thing = picture[number]
        if not thing.going:
            return self.collect(picture, number)
        dependents = {other: picture[other] for other in dependents_of(picture, number)}
        if ORPHAN in thing.finalizers:  # the dependents are orphaned in no particular order
            orphaned = [
                replaced(
                    picture,
                    other,
                    links=dependent.links - {Link(number, True), Link(number, False)},
                )
                for other, dependent in dependents.items()
            ]
            return orphaned or [released(picture, number, ORPHAN)]
        if not waits(thing) or any(
            Link(number, True) in dependent.links for dependent in dependents.values()
        ):
            return []
        if self.in_order and any(
            self.collect(picture, other) for other in dependents if not picture[other].going
        ):
            return []
        return [released(picture, number, FOREGROUND)]

    def collect(self, picture: Picture, number: int) -> list[Picture]:
        """Return the state after the next write of ``attemptToDeleteItem``, if it writes
        anything."""
        links, space = picture[number].links, self.spaces[number]
        if not links or (not space and any(self.space_of(link.owner) for link in links)):
            # without owners, or cluster-scoped with a namespaced owner: the collector leaves it
            # alone
            return []
        there = {
            link
            for link in links
            if link.owner in picture and self.space_of(link.owner) in ("", space)
        }
        solid = frozenset(link for link in there if not waits(picture[link.owner]))
        if solid:
            return [replaced(picture, number, links=solid)] if solid != links else []
        dependents = dependents_of(picture, number)
        if not there or not dependents:
            return [deleted(picture, number, "Background")]
        unblocked = frozenset(Link(link.owner, False) for link in links)
        if links != unblocked and any(waits(picture[other]) for other in dependents):
            return [
                replaced(picture, number, links=unblocked)
            ]  # the deletion is a write of its own
        return [deleted(picture, number, "Foreground")]

    def space_of(self, number: int) -> str:
        """Return the namespace of an owner, "" for an owner that never existed."""
        return "" if number == NOBODY else self.spaces[number]


def dependents_of(picture: Picture, number: int) -> list[int]:
    return [
        other
        for other, thing in picture.items()
        if any(link.owner == number for link in thing.links)
    ]


def waits(thing: Thing) -> bool:
    return thing.going and FOREGROUND in thing.finalizers


def replaced(picture: Picture, number: int, **fields: Any) -> Picture:
    """Return the state after a write to an object; being deleted and without finalizers it is
    gone."""
    thing = picture[number]._replace(**fields)
    if thing.going and not thing.finalizers:
        return {other: picture[other] for other in picture if other != number}
    return {**picture, number: thing}


def released(picture: Picture, number: int, finalizer: str = HOLD) -> Picture:
    return replaced(picture, number, finalizers=picture[number].finalizers - {finalizer})


def deleted(picture: Picture, number: int, policy: str) -> Picture:
    """Return the state after a deletion, which replaces the finalizers of an earlier one."""
    added = {"Background": set(), "Foreground": {FOREGROUND}, "Orphan": {ORPHAN}}[policy]
    return replaced(
        picture,
        number,
        finalizers=picture[number].finalizers - {FOREGROUND, ORPHAN} | added,
        going=True,
    )


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
        kind = (
            {"apiVersion": "v1", "kind": "ConfigMap"}
            if space
            else {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}
        )
        return self.lab.create(RESOURCES[space], {**kind, "metadata": metadata}, space)

    def link(self, number: int, links: dict[int, bool]) -> None:
        references = [self.reference(owner, blocks) for owner, blocks in links.items()]
        if_there(
            lambda: self.lab.change(
                RESOURCES[self.spaces[number]],
                f"thing-{number}",
                lambda one: one["metadata"].update(ownerReferences=references),
                self.spaces[number],
            )
        )

    def reference(self, number: int, blocks: bool) -> Object:
        if number == NOBODY:
            name = "namesake" if blocks else "nobody"  # the name exists or not, the uid never
            return {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "name": name,
                "uid": "0a0b0c0d-1111-2222-3333-444455556666",
                "blockOwnerDeletion": blocks,
            }
        owner = self.made[number]
        return {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": name_of(owner),
            "uid": uid_of(owner),
            "blockOwnerDeletion": blocks,
        }

    def delete(self, number: int, policy: str) -> None:
        if_there(
            lambda: self.lab.client.delete(
                RESOURCES[self.spaces[number]],
                f"thing-{number}",
                namespace=self.spaces[number],
                options=DeleteOptions(propagation_policy=policy),
            )
        )

    def release(self, number: int) -> None:
        def change(one: Object) -> None:
            one["metadata"]["finalizers"] = [
                name for name in one["metadata"].get("finalizers", []) if name != HOLD
            ]

        if_there(
            lambda: self.lab.change(
                RESOURCES[self.spaces[number]], f"thing-{number}", change, self.spaces[number]
            )
        )

    def picture(self) -> Picture:
        found = [
            one
            for resource in sorted(set(RESOURCES.values()))
            for one in self.lab.client.list(resource).items
            if uid_of(one) in self.numbers
        ]
        return {
            self.numbers[uid_of(one)]: Thing(
                frozenset(
                    Link(
                        self.numbers.get(link["uid"], NOBODY), link.get("blockOwnerDeletion", False)
                    )
                    for link in owner_references(one)
                ),
                frozenset(one["metadata"].get("finalizers", [])),
                "deletionTimestamp" in one["metadata"],
            )
            for one in found
        }


SIZE = 6
NUMBERS = st.integers(0, SIZE - 1)
LINKS = st.dictionaries(st.integers(NOBODY, SIZE - 1), st.booleans(), max_size=3)
DELETE = st.tuples(
    st.just("delete"), NUMBERS, st.sampled_from(["Background", "Foreground", "Orphan"])
)
RELEASE = st.tuples(st.just("release"), NUMBERS)


# Object 2 has no dependent that blocks it; the one that it has, 3, is blocked by 4, which is never
# collected.
UNBLOCKED_OWNER: dict[str, Any] = {
    "spaces": ["default", "default", "north", "north", "", "default"],
    "held": set(),
    "links": [
        {},
        {0: False, 2: False, 3: False},
        {0: False, 1: False, 3: False},
        {0: False, 2: False},
        {3: True, 0: False},
        {0: False},
    ],
    "operations": [("delete", 2, "Foreground")],
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Any]:
    return lambda: tmp_path_factory.mktemp("owners") / "state"


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    spaces=st.lists(st.sampled_from(SPACES), min_size=SIZE, max_size=SIZE),
    held=st.sets(NUMBERS, max_size=3),
    links=st.lists(LINKS, min_size=SIZE, max_size=SIZE),
    operations=st.lists(st.one_of(DELETE, DELETE, RELEASE), max_size=5),
    faults=FAULTS,
)
@example(
    faults=None,
    spaces=["default"] * SIZE,
    held=set(),
    operations=[("delete", 0, "Foreground")],
    links=[
        {1: True},
        {0: True},
        {0: True, 1: True},
        {2: True, 5: True},
        {NOBODY: False, 5: True},
        {},
    ],
)
@example(
    faults=None,
    spaces=["default"] * SIZE,
    held=set(),
    operations=[],
    links=[{NOBODY: True}, {NOBODY: False}, {NOBODY: True, 5: True}, {0: True}, {}, {}],
)
@example(
    faults=None,
    spaces=["default", "default", "", *["default"] * 3],
    held=set(),
    operations=[("delete", 0, "Foreground")],
    links=[{}, {0: True}, {1: True}, {}, {}, {}],
)
@example(faults=None, **UNBLOCKED_OWNER)
@example(faults={"seed": 0, "conflicts": {"rate": 0.02}}, **UNBLOCKED_OWNER)
@example(faults={"seed": 0, "conflicts": {"rate": 0.02}}, **{**UNBLOCKED_OWNER, "held": {0}})
def test_remaining_objects_are_those_of_upstreams_rules(
    folders: Callable[[], Any],
    spaces: list[str],
    held: set[int],
    links: list[dict[int, bool]],
    operations: list[tuple[Any, ...]],
    faults: Any,
) -> None:
    """Compare each step with the outcomes that upstream may reach; they depend on the order of the
    collector's writes.

    An owner in foreground deletion that no dependent blocks is gone as soon as its turn comes. A
    dependent that had its turn before is deleted in foreground, too, if it has dependents itself,
    and waits for those that block it. One that comes later, because its first write met a conflict
    or another worker was quicker, is deleted in background. With faults every order is accepted,
    without them only those in which dependents come before their owner.
    """
    lab = Lab(folders(), faults)
    lab.create(
        "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "north"}}
    )
    lab.create(
        "clusterroles.rbac.authorization.k8s.io",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "namesake"},
        },
    )
    world = World(lab, spaces, held)
    model = Model(spaces, in_order=not faults)
    picture = {
        number: Thing(finalizers=frozenset({HOLD} if number in held else ()))
        for number in range(SIZE)
    }
    for number, owners in enumerate(links):
        others = {owner: blocks for owner, blocks in owners.items() if owner != number}
        world.link(number, others)
        picture = replaced(picture, number, links=frozenset(map(Link._make, others.items())))
    for name, *arguments in [
        ("settle",),
        *operations,
        *(("release", number) for number in sorted(held)),
    ]:
        if arguments:
            getattr(world, name)(*arguments)
            if arguments[0] in picture:
                picture = {"delete": deleted, "release": released}[name](picture, *arguments)
        assert world.picture() == picture
        outcomes = model.outcomes(picture)
        lab.recover() if faults else lab.settle()
        picture = world.picture()
        assert picture in outcomes
    assert disagreements(lab.cluster.store) == []
    lab.cluster.close()
