"""Objects decoded from rows share what is the same in them, and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubepy.storage.folder.manifest import share_parts

values = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, 2, 1.0, 0.0, -0.0])
    | st.sampled_from(["", "a", "b"]),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.sampled_from("abcd"), children, max_size=4)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.sampled_from("abcd"), values),
    st.dictionaries(st.sampled_from("abcd"), values),
)
def test_object_that_shares_parts_is_what_it_was(obj: dict[str, Any], like: dict[str, Any]) -> None:
    before, other = json.dumps(obj), json.dumps(like)
    share_parts(obj, like)
    assert (json.dumps(obj), json.dumps(like)) == (before, other)


@pytest.mark.parametrize(
    ("part", "like", "is_shared"),
    [
        ({"c": [1, "x"]}, {"c": [1, "x"]}, True),
        ({"c": [1]}, {"c": [True]}, False),
        ({"c": 1, "d": 2}, {"d": 2, "c": 1}, False),
    ],
)
def test_equal_parts_are_shared(
    part: dict[str, Any], like: dict[str, Any], is_shared: bool
) -> None:
    obj, other = {"spec": part}, {"spec": like}
    share_parts(obj, other)
    assert (obj["spec"] is like) == is_shared
