"""How an object is named in storage, and which file that is."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """``resource`` is the plural with its group (``daemonsets.apps``, ``pods``); ``namespace`` is "" for cluster scope.

    Keys sort by resource, namespace, name: the order of every list.
    """

    resource: str
    namespace: str
    name: str
