"""Choosing objects by label and field selectors."""

from __future__ import annotations

from kubepy.api import errors
from kubepy.api.meta import Object, labels_of
from kubepy.api.selectors import SelectorError, Term, parse_fields, parse_labels
from kubepy.apiserver.strategies.strategy import Strategy


def select(strategy: Strategy, objects: list[Object], label_selector: str, field_selector: str) -> list[Object]:
    """The objects that both selectors choose. Raises BadRequest in upstream's words."""
    try:
        labels, terms = parse_labels(label_selector), parse_fields(field_selector)
    except SelectorError as error:
        raise errors.BadRequest(str(error)) from None
    terms = [_known(strategy, term) for term in terms]
    chosen = [obj for obj in objects if labels.matches(labels_of(obj))]
    if not terms:
        return chosen
    return [obj for obj in chosen if _matches(strategy, terms, obj)]


def _matches(strategy: Strategy, terms: list[Term], obj: Object) -> bool:
    fields = _fields(strategy, obj)
    return all(term.matches(fields) for term in terms)


def _fields(strategy: Strategy, obj: Object) -> dict[str, str]:
    metadata = obj["metadata"]
    own = {"metadata.name": metadata.get("name", ""), "metadata.namespace": metadata.get("namespace", "")}
    return {**strategy.selectable_fields(obj), **own}


def _known(strategy: Strategy, term: Term) -> Term:
    """The term by the field's present name. Raises BadRequest for a field that the kind is not selected by."""
    field = strategy.selectable_aliases.get(term.field, term.field)
    if not strategy.is_selectable(field):
        raise errors.BadRequest(strategy.not_selectable(field))
    return term._replace(field=field)
