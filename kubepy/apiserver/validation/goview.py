"""How Go's server shows a struct in an error: its internal type, with Go's field names and every field."""

from __future__ import annotations

from typing import Any

from kubepy.api.values.goformat import Ordered


def go_view(type_name: str, value: Any) -> Any:
    """A value as ``json.Marshal`` prints the internal type ``type_name`` (``apps.DaemonSetUpdateStrategy``).

    Imported and looked up only when there is an error to print: the tables of types are large.
    """
    from kubepy.api.types import go_fields

    return _ordered(go_fields(type_name, value))


def json_view(type_name: str, value: Any) -> Any:
    """A value as ``json.Marshal`` prints a type with JSON names (``meta/v1.OwnerReference``)."""
    from kubepy.api.types import go_order

    return _ordered(go_order(type_name, value))


def selector_view(selector: Any) -> Any:
    """A label selector as ``json.Marshal`` prints it."""
    return json_view("meta/v1.LabelSelector", selector)


def _ordered(value: Any) -> Any:
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return Ordered(value) if isinstance(value, dict) else value
