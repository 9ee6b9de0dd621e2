"""Owners of claims under the retention policy: the owner references before and after."""

from __future__ import annotations

import pytest

from kubepy.api.meta import Object
from kubepy.controllers.statefulset.claims import (
    has_unexpected_controller,
    is_claim_owner_up_to_date,
    with_claim_owner,
)

SET: Object = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "db", "uid": "set"},
    "spec": {},
}
POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "db-1", "uid": "pod"},
    "spec": {},
}


def reference(owner: Object, uid: str = "", *, controller: bool = True) -> Object:
    metadata = owner["metadata"]
    found = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": uid or metadata["uid"],
    }
    return {**found, "blockOwnerDeletion": True, "controller": True} if controller else found


OF_SET, OF_POD = reference(SET), reference(POD)
OF_OLD_SET, OF_OLD_POD = reference(SET, "old"), reference(POD, "old")
OF_OTHER = reference(
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "uid": "x"}}
)
BESIDE = reference(
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y", "uid": "y"}},
    controller=False,
)


def with_policy(deleted: str, scaled: str) -> Object:
    return {
        **SET,
        "spec": {
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}
        },
    }


def claim(*references: Object) -> Object:
    return {
        "metadata": {
            "name": "data-db-1",
            **({"ownerReferences": [*references]} if references else {}),
        }
    }


@pytest.mark.parametrize(
    ("deleted", "scaled", "in_range", "wanted"),
    [
        ("Retain", "Retain", True, None),
        ("Retain", "Retain", False, None),
        ("Delete", "Retain", True, OF_SET),
        ("Delete", "Retain", False, OF_SET),
        ("Retain", "Delete", True, None),
        ("Retain", "Delete", False, OF_POD),
        ("Delete", "Delete", True, OF_SET),
        ("Delete", "Delete", False, OF_POD),
    ],
)
@pytest.mark.parametrize(
    "before", [(), (OF_SET,), (OF_POD,), (OF_SET, OF_POD)], ids=["none", "set", "pod", "both"]
)
@pytest.mark.parametrize("beside", [(), (BESIDE,)], ids=["alone", "beside another"])
def test_claim_has_owner_of_policy(
    deleted: str,
    scaled: str,
    in_range: bool,
    wanted: Object | None,
    before: tuple[Object, ...],
    beside: tuple[Object, ...],
) -> None:
    set_, after = with_policy(deleted, scaled), (() if wanted is None else (wanted,))
    assert is_claim_owner_up_to_date(claim(*beside, *before), set_, POD, in_range) == (
        before == after
    )
    assert with_claim_owner(claim(*beside, *before), set_, POD, in_range) == claim(*beside, *after)


def test_owner_that_is_no_controller_is_made_one() -> None:
    found, set_ = claim(reference(SET, controller=False)), with_policy("Delete", "Retain")
    assert not is_claim_owner_up_to_date(found, set_, POD, True)
    assert with_claim_owner(found, set_, POD, True) == claim(OF_SET)


@pytest.mark.parametrize("stale", [OF_OLD_SET, OF_OLD_POD], ids=["set", "pod"])
def test_claim_of_earlier_set_or_pod_is_not_touched(stale: Object) -> None:
    for found in (claim(stale), claim(stale, OF_SET), claim(stale, OF_POD)):
        assert is_claim_owner_up_to_date(found, with_policy("Delete", "Delete"), POD, True)


def test_claim_that_another_controls_gets_no_owner_and_loses_ours() -> None:
    set_ = with_policy("Delete", "Retain")
    assert has_unexpected_controller(claim(OF_OTHER), set_, POD)
    assert is_claim_owner_up_to_date(claim(OF_OTHER), set_, POD, True)
    assert not is_claim_owner_up_to_date(claim(OF_OTHER, OF_SET), set_, POD, True)
    assert with_claim_owner(claim(OF_OTHER, OF_SET), set_, POD, True) == claim(OF_OTHER)


def test_retaining_policy_ignores_other_controllers_of_claims() -> None:
    assert not has_unexpected_controller(claim(OF_OTHER), with_policy("Retain", "Retain"), POD)
