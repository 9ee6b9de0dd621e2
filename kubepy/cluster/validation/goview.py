"""How Go's server shows a struct in an error: its internal type, with Go's field names and every field."""

from __future__ import annotations

from typing import Any


def go_view(type_name: str, value: Any) -> Any:
    """A value as ``json.Marshal`` prints the internal type ``type_name`` (``apps.DaemonSetUpdateStrategy``).

    Imported and looked up only when there is an error to print: the tables of types are large.
    """
    from kubepy.cluster.types import go_fields

    return go_fields(type_name, value)


def selector_view(selector: Any) -> Any:
    """A label selector with its fields in Go's order."""
    from kubepy.cluster.types import go_order

    return None if selector is None else go_order("meta/v1.LabelSelector", selector)
