"""The ledger comes to the same as one that looks at everything for the first time, whatever changed before."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from kubepy.api.meta import Object
from kubepy.controllers.daemonset.ledger import Ledger
from kubepy.controllers.daemonset.placement import HERE, NOWHERE, Placement
from kubepy.runtime.reconcile import Key
from tests.controllers.daemonset_objects import HASH, NOW, OLD_HASH, daemon_set, pod, rolling

NODES = [f"n-{number}" for number in range(5)]
PLACEMENTS = [HERE, HERE, NOWHERE, Placement(should_run=False, should_continue=True)]
STRATEGIES = [rolling(1), rolling("50%"), rolling(0, 1), rolling(0, "100%"), {"type": "OnDelete"}]


def some_pod(chance: Random, name: str) -> Object:
    return pod(name, chance.choice(NODES), hash_=chance.choice([HASH, OLD_HASH]),
               ready_for=chance.choice([None, 0, 20, 500]), phase=chance.choice(["Running", "Running", "Failed"]),
               age=chance.randint(1, 900), deleted=chance.random() < 0.2, bound=chance.random() < 0.8)


@pytest.mark.parametrize("seed", range(30))
def test_what_was_judged_before_is_what_would_be_judged_now(seed: int) -> None:
    chance, ledger, now = Random(seed), Ledger(), NOW
    pods: dict[Key, Object] = {}
    owner, placements, hash_ = daemon_set(), dict.fromkeys(NODES, HERE), HASH
    for _ in range(60):
        match chance.choice(["put", "put", "put", "remove", "node", "template", "spec", "time", "nothing"]):
            case "put":
                key = Key("pods", "default", f"p-{chance.randint(0, 9)}")
                pods[key] = some_pod(chance, key.name)
                ledger.put(key, pods[key])
            case "remove":
                key = Key("pods", "default", f"p-{chance.randint(0, 9)}")
                pods.pop(key, None)
                ledger.put(key, None)
            case "node":
                placements = {node: chance.choice(PLACEMENTS) for node in NODES if chance.random() < 0.9}
            case "template":
                hash_ = chance.choice([HASH, OLD_HASH])
            case "spec":
                owner = daemon_set(strategy=chance.choice(STRATEGIES), min_ready_seconds=chance.choice([0, 30]))
            case "time":
                now += timedelta(seconds=chance.choice([1, 15, 100]))
        ledger.look(owner, placements, hash_, now)
        fresh = Ledger()
        for key, one in pods.items():
            fresh.put(key, one)
        fresh.look(owner, placements, hash_, now)
        assert ledger.counts == fresh.counts
        assert ledger.manage() == fresh.manage()
        assert ledger.rolling_update(owner) == fresh.rolling_update(owner)
        assert ledger.pods() == fresh.pods() == [pods[key] for key in sorted(pods)]


def test_only_what_changed_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []
    real = Ledger._judge
    monkeypatch.setattr(Ledger, "_judge", lambda self, owner, node, *rest: (judged.append(node),
                                                                            real(self, owner, node, *rest))[1])
    ledger, owner, placements = Ledger(), daemon_set(), dict.fromkeys(NODES, HERE)
    for node in NODES:
        ledger.put(Key("pods", "default", node), pod(node, node))
    ledger.look(owner, placements, HASH, NOW)
    assert sorted(judged) == NODES
    judged.clear()
    ledger.put(Key("pods", "default", "n-3"), None)
    ledger.look(daemon_set(), placements, HASH, NOW + timedelta(seconds=9))
    assert judged == ["n-3"]
    assert (ledger.counts.current, ledger.manage().create) == (4, ["n-3"])
