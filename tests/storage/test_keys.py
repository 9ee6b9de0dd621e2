"""Names become paths that every file system and git can hold, and paths become names again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubepy.storage import Key
from kubepy.storage.folder.paths import decode, encode, is_cut, path_of


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (Key("nodes", "", "node-1"), "cluster/nodes/node-1.yaml"),
        (
            Key("daemonsets.apps", "default", "nginx-ds"),
            "namespaces/default/daemonsets.apps/nginx-ds.yaml",
        ),
        (
            Key("clusterroles.rbac.authorization.k8s.io", "", "system:Node"),
            "cluster/clusterroles.rbac.authorization.k8s.io/system%3A%4Eode.yaml",
        ),
        (Key("configmaps", "default", "con"), "namespaces/default/configmaps/%63on.yaml"),
        (Key("roles", "default", ".."), "namespaces/default/roles/%2E%2E.yaml"),
        (Key("roles", "default", "../../x"), "namespaces/default/roles/%2E.%2F..%2Fx.yaml"),
        (Key("roles", "default", ".git"), "namespaces/default/roles/%2Egit.yaml"),
    ],
)
def test_key_has_exactly_one_path(key: Key, path: str) -> None:
    assert path_of(key) == path


def test_empty_name_has_no_path() -> None:
    with pytest.raises(ValueError, match="empty"):
        encode("")


@given(
    st.text(min_size=1, max_size=60).filter(
        lambda text: not any("\ud800" <= char <= "\udfff" for char in text)
    )
)
def test_name_encoded_and_decoded_is_same(name: str) -> None:
    component = encode(name)
    assert decode(component) == name or is_cut(component)
    assert component.isascii()
    assert "/" not in component
    assert not component.startswith(".")
    assert component.lower() == component or "%" in component


def test_names_that_differ_in_case_differ_in_every_file_system() -> None:
    assert encode("a").lower() != encode("A").lower()


def test_longest_names_fit_into_file_names_and_differ() -> None:
    first, second = "a" * 253, "a" * 252 + "b"
    assert len(encode(first) + ".yaml") <= 255
    assert encode(first) != encode(second)
    assert is_cut(encode(first))
    assert decode(encode(first)) is None


@pytest.mark.parametrize("component", ["A", "%61", "a%2f", "a:b", "%zz", "con", "%FF", "a\udcff"])
def test_component_of_no_name_decodes_to_none(component: str) -> None:
    assert decode(component) is None
