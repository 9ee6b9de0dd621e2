"""The objects of a cluster by which an edited file is checked: definitions of custom resources,
other Services."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubepy.api.meta import Object
from kubepy.apiserver.strategy import Strategy
from kubepy.lazy import lazy_imports
from kubepy.storage import Key

with lazy_imports():
    from kubepy.api.schema import customresources
    from kubepy.apiserver import kinds

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class OtherObjects:
    """The other objects of the cluster of a file.

    :param find: returns an object as its file is now.
    :param list: returns the objects of a resource that are known.
    :param warn: tells the user something about the file of an object.
    """

    def __init__(
        self,
        find: Callable[[Key], Object | None],
        list: Callable[[str], list[Object]],
        warn: Callable[[Key, str], None],
    ) -> None:
        self._find = find
        self.list = list
        self.warn = warn
        # By the name of a definition: the definition, and its strategies by apiVersion.
        self._strategies: dict[str, tuple[Object, dict[str, Strategy]]] = {}

    def custom_strategy(self, key: Key, api_version: Any) -> Strategy | None:
        """Return the strategy of a custom resource in a version; None where its definition is not
        there, is no definition, or not in force. Raises ValueError for a version that the
        definition does not have."""
        definition = self._find(Key(DEFINITIONS, "", key.resource))
        if definition is None:
            return None
        known, strategies = self._strategies.get(key.resource, (None, {}))
        if known is not definition:
            strategies = _strategies_of(definition)
            self._strategies[key.resource] = definition, strategies
        if strategies and api_version not in strategies:
            raise ValueError(
                f"{api_version or 'no apiVersion'} is not a version of {key.resource}, which has "
                f"{', '.join(strategies)}"
            )
        return strategies.get(api_version)


def _strategies_of(definition: Object) -> dict[str, Strategy]:
    """Return the strategies of a definition in each of its versions; none if it is not in force."""
    strategies: dict[str, Strategy] = {}
    for resource in customresources.resources_of(definition):
        for variant in resource.variants or (resource,):
            at = resource.at(variant.version)
            strategies[at.api_version] = kinds.new_strategy(at, lambda _: definition)
    return strategies


NO_OTHERS = OtherObjects(lambda key: None, lambda resource: [], lambda key, text: None)
