"""Helpers that run a strategy on an object without a cluster, for the tests of defaults, validation
and strategies."""

from __future__ import annotations

import copy
from typing import Any

from kubepy.api.scheme import Scheme
from kubepy.apiserver.kinds import new_strategy
from kubepy.apiserver.strategy import Strategy

Object = dict[str, Any]
GONE = object()  # as a value for ``changed``: the entry is removed

_SCHEME = Scheme()


def strategy(key: str) -> Strategy:
    """Return the strategy of a built-in resource: ``pods``, ``daemonsets.apps``."""
    return new_strategy(_SCHEME.by_key(key), lambda resource: {})


def changed(obj: Object, changes: dict[str, Any]) -> Object:
    """Return a copy with other values at some paths: ``{"spec.containers.0.image": "a:1"}``."""
    made = copy.deepcopy(obj)
    for path, value in changes.items():
        *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        place: Any = made
        for part in parents:
            place = place[part] if isinstance(part, int) else place.setdefault(part, {})
        if value is GONE:
            del place[last]
        else:
            place[last] = value
    return made


def defaulted(key: str, obj: Object) -> Object:
    """Return the object as decoding leaves it: known fields only, defaults filled in."""
    own = strategy(key)
    made = own.decode(obj).object
    own.default(made)
    return made


def created(key: str, obj: Object) -> Object:
    """Return the object as it would be stored, without the fields that the registry sets."""
    made = defaulted(key, obj)
    strategy(key).prepare_for_create(made)
    return made


def refusals(key: str, obj: Object) -> list[str]:
    """Return the validation errors of a new object, one line each."""
    return [str(error) for error in strategy(key).validate(created(key, obj))]


def updated(key: str, new: Object, old: Object) -> Object:
    made = defaulted(key, new)
    strategy(key).prepare_for_update(made, created(key, old))
    return made


def update_refusals(key: str, new: Object, old: Object) -> list[str]:
    before = created(key, old)
    return [str(error) for error in strategy(key).validate_update(updated(key, new, old), before)]


def warnings(key: str, obj: Object) -> list[str]:
    return strategy(key).warnings_on_create(created(key, obj))


def pod(**spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "web:1"}], **spec},
    }


def daemon_set(**spec: Any) -> Object:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "ds", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


def workload(kind: str, **spec: Any) -> Object:
    return {**daemon_set(**spec), "kind": kind}
