from __future__ import annotations

import pytest

from kubepy.api.selectors import (
    NOTHING,
    SelectorError,
    Term,
    format_label_selector,
    from_label_selector,
    parse_fields,
    parse_labels,
)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("a", "a"),
        ("!a", "!a"),
        (" track , app in (uno,one) ", "app in (one,uno),track"),
        ("z=1,a==2,m!=3", "a==2,m!=3,z=1"),
        ("a notin ()", "a notin ()"),
        ("x in (,b),y>3,w<1", "w<1,x in (,b),y>3"),
        ("in in (notin)", "in in (notin)"),
        ("a=", "a="),
    ],
)
def test_selector_prints_sorted_as_upstream(text: str, printed: str) -> None:
    assert str(parse_labels(text)) == printed


@pytest.mark.parametrize(
    ("text", "labels", "fits"),
    [
        ("env=prod", {"env": "prod"}, True),
        ("env=prod", {}, False),
        ("env!=prod", {}, True),
        ("env in (dev,)", {"env": ""}, True),
        ("env notin (dev)", {"env": "dev"}, False),
        ("!env,pool", {"pool": ""}, True),
        ("weight>3", {"weight": "10"}, True),
        ("weight>3", {"weight": "many"}, False),
        ("weight<3", {}, False),
        ("", {}, True),
    ],
)
def test_selector_matches_as_upstream(text: str, labels: dict[str, str], fits: bool) -> None:
    assert parse_labels(text).matches(labels) is fits


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("env in prod", "unable to parse requirement: found 'prod' expected: '('"),
        ("=prod", "found '=', expected: !, identifier, or 'end of string'"),
        ("env=prod,,tier", "found ',', expected: identifier after ','"),
        ("env=prod,", "found '', expected: identifier after ','"),
        ("app=not valid", "found 'valid', expected: ',' or 'end of string'"),
        (
            "weight>heavy",
            "unable to parse requirement: values[0]: Invalid value: \"heavy\": for 'Gt', 'Lt' "
            "operators, "
            "the value must be an integer",
        ),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
    ],
)
def test_unreadable_selector_raises_upstreams_error(text: str, why: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_labels(text)
    assert str(caught.value) == why


def test_invalid_label_key_error_has_gos_nil_path() -> None:
    with pytest.raises(
        SelectorError,
        match=r'unable to parse requirement: <nil>: Invalid value: "-a": name part must',
    ):
        parse_labels("-a=b")


def test_object_selector_matches_and_prints_like_parsed_one() -> None:
    selector = {
        "matchLabels": {"tier": "web"},
        "matchExpressions": [
            {"key": "app", "operator": "In", "values": ["uno", "one"]},
            {"key": "track", "operator": "Exists"},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    }
    assert format_label_selector(selector) == "app in (one,uno),!old,tier=web,track"
    assert from_label_selector(selector).matches({"tier": "web", "app": "one", "track": ""})
    assert not from_label_selector(selector).matches({"tier": "web", "app": "one"})


def test_missing_selector_matches_nothing_and_empty_one_everything() -> None:
    assert from_label_selector(None) is NOTHING
    assert not from_label_selector(None).matches({"a": "b"})
    assert from_label_selector({}).matches({})
    assert format_label_selector({}) == "<none>"


def test_invalid_object_selector_prints_as_error() -> None:
    assert (
        format_label_selector({"matchExpressions": [{"key": "a", "operator": "Near"}]}) == "<error>"
    )
    assert (
        format_label_selector({"matchExpressions": [{"key": "a", "operator": "In"}]}) == "<error>"
    )


def test_field_selector_terms_are_sorted_by_text() -> None:
    assert parse_fields(r"status.phase!=Running,metadata.name==a\,b,x=") == [
        Term("metadata.name", "a,b", False),
        Term("status.phase", "Running", True),
        Term("x", "", False),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        (
            "status.phase in (Running)",
            "invalid selector: 'status.phase in (Running)'; "
            "can't understand 'status.phase in (Running)'",
        ),
        (r"a=b\c", r"invalid field selector: invalid escape sequence: \c"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_unreadable_field_selector_raises_upstreams_error(text: str, why: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_fields(text)
    assert str(caught.value) == why
