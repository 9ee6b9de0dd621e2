"""Stored objects are read back from their files unchanged."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubepy.storage import Key
from kubepy.storage.folder.store import FolderStore
from tests.stores import disagreements

ODD = "ab \n\t:-#'\"%@`|>&*!?{}[],0123456789.~=<yesnoYN\u0085\u2028\ufeff\x07\x1b\x7f\u00a0é"
TEXTS = (
    st.text(max_size=30)
    | st.text(alphabet=ODD, max_size=40)
    | st.sampled_from(
        ["yes", "0x1", "1e3", "1_000", "12:30", "2024-01-01", "~", "null", "<<", "=", ".inf", "010"]
    )
)
NUMBERS = (
    st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([1.0, -0.0, 1e16, 1e21, 1e22, 1e-7, 2.0**63, -(2.0**63)])
)
VALUES = st.recursive(
    st.none() | st.booleans() | TEXTS | NUMBERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
TOY = Key("toys.example.org", "default", "top")


@settings(max_examples=200, deadline=None)
@given(data=st.lists(st.dictionaries(TEXTS, VALUES, max_size=4), min_size=1, max_size=3))
def test_stored_object_read_from_its_file_is_same(data: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as base:
        FolderStore.initialize(folder := Path(base) / "state", {})
        store = FolderStore(folder)
        for one in data:
            obj = {
                "apiVersion": "example.org/v1",
                "kind": "Toy",
                "metadata": {"name": "top", "namespace": "default"},
                "data": one,
            }
            with store.transaction() as transaction:
                try:
                    write = (
                        transaction.create if transaction.get(TOY) is None else transaction.update
                    )
                    write(TOY, obj)
                except ValueError:  # lone surrogates, which no file can hold
                    continue
            assert disagreements(store) == []
        store.close()


def test_number_without_fraction_is_integer_at_once(store: FolderStore) -> None:
    metadata = {"name": "top", "namespace": "default"}
    with store.transaction() as transaction:
        stored = transaction.create(
            TOY, {"metadata": metadata, "data": {"a": 1.0, "b": [2.5, 1e16, {"c": -0.0}]}}
        )
    assert repr(stored["data"]) == "{'a': 1, 'b': [2.5, 10000000000000000, {'c': 0}]}"
