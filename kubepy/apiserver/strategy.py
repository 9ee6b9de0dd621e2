"""Strategies: what the API server does to the objects of each kind (upstream:
``pkg/registry/*/strategy.go``).

The base class serves any kind plainly. A kind's own strategy overrides what differs. All methods
but ``prepare_*`` and ``default`` are pure; those two change the object they are given, which the
Client has copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from kubepy.api.errors import BadRequest, FieldError
from kubepy.api.meta import Object, labels_of
from kubepy.api.scheme import Resource
from kubepy.apiserver.settings import ClusterSettings
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

if TYPE_CHECKING:
    from kubepy.api.schema.openapi import Schema
    from kubepy.api.types import Decoded
    from kubepy.apiserver.authorization import ReviewContext

with lazy_imports():
    from kubepy.api import selectors, types
    from kubepy.api.schema import openapi
    from kubepy.api.values import names

ListObjects = Callable[[str], list[Object]]


def restore(new: Object, old: Object, key: str) -> None:
    """Restore an entry to its old value, or remove it if there was none."""
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


class Strategy:
    """The plain service of a kind: no defaults, no validation beyond metadata, generation only for
    custom resources.

    ``has_status``: status is kept by ordinary updates, and only the status subresource changes it.
    ``has_generation``: metadata.generation is ``first_generation`` at creation and goes up when
    ``spec_changed``. ``allow_create_on_update``: an update (replace) of an absent object creates it
    (services, leases…). ``allow_unconditional_update``: an update without a resourceVersion is
    taken for one of the latest. ``assigned``: fields of the spec that the cluster fills in after
    creation and no update takes back; a file from before (``git checkout``) is without them.
    ``has_observer``: a controller here writes ``status.observedGeneration`` of the kind.
    ``selectable``: the fields that ``--field-selector`` may name, beyond metadata.name and
    metadata.namespace. ``selectable_aliases``: old names of such fields.
    ``is_plain``: the kind has neither floats nor free-form fields: its objects hold what decoding
    makes, nothing else. ``settings``: those of the cluster.
    """

    has_status: ClassVar[bool] = False
    has_generation: ClassVar[bool] = False
    first_generation: ClassVar[int] = 1
    allow_create_on_update: ClassVar[bool] = False
    allow_unconditional_update: ClassVar[bool] = True
    assigned: ClassVar[tuple[str, ...]] = ()
    has_observer: ClassVar[bool] = False
    is_plain: ClassVar[bool] = False
    selectable: tuple[str, ...] = ()
    selectable_aliases: ClassVar[Mapping[str, str]] = MappingProxyType({})
    settings = ClusterSettings()

    def __init__(self, resource: Resource) -> None:
        self.resource = resource

    def decode(self, obj: Object) -> Decoded:
        """Return a copy of an object that a client sent, as its type in the stored version. Raises
        DecodeError."""
        return types.decode(obj)

    def field_schema(self) -> Schema | None:
        """Return the schema by which managedFields are tracked; None where nothing is known of the
        kind."""
        return openapi.schema_for(self.resource.api_version, self.resource.kind)

    def answer(self, obj: Object, context: ReviewContext) -> Object:
        """Answer a review, which is valid. Raises BadRequest."""
        raise NotImplementedError

    def take_requester(self, obj: Object, requester: Object) -> None:
        """Note the requester in a new object, where the kind has a place for that."""

    def read_stored(self, obj: Object) -> Object:
        """Return a stored object as readers get it; ``obj`` is not changed."""
        return obj

    def in_version(self, obj: Object, api_version: str) -> Object:
        """Return an object in another version of the kind; ``obj`` is not changed."""
        return {**obj, "apiVersion": api_version}

    def to_stored_version(self, config: Object) -> Object:
        """Return a configuration, which may be a part of an object, in the stored version."""
        return {**config, "apiVersion": self.resource.api_version}

    def default(self, obj: Object) -> None:
        """Set the defaults of the kind (``pkg/apis/*/v1/defaults.go``)."""

    def validate_name(self, name: str) -> list[str]:
        """Return the errors of a name, in upstream's words; most kinds require a DNS-1123
        subdomain."""
        return names.dns1123_subdomain(name)

    def empty_status(self) -> Object:
        """Return the status of a new object: Go's zero value, less the fields left out when
        empty."""
        return {}

    def begin_create(self, obj: Object, list_objects: ListObjects) -> None:
        """Allocate for a new object before anything else looks at it (``BeginCreate``: a Service's
        address).

        ``list_objects`` returns all objects of a resource key. Raises Invalid.
        """

    def begin_update(self, obj: Object, old: Object, list_objects: ListObjects) -> None:
        """Allocate for an update (``BeginUpdate``). Raises Invalid."""

    def prepare_for_create(self, obj: Object) -> None:
        """Clear and set fields at a creation (status, for most workloads)."""
        if self.has_status:
            obj["status"] = self.empty_status()

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        """Keep fields of the old object at an update (status)."""
        if self.has_status:
            restore(obj, old, "status")

    def prepare_for_edit(self, obj: Object, old: Object) -> None:
        """Keep fields of the old object in one read from its edited file; ``old`` has the status
        that it is to have.

        Unlike ``prepare_for_update`` it must be idempotent: with the result as ``old`` it gives the
        result again.
        """
        self.prepare_for_update(obj, old)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Keep everything but status, and metadata that the server allows to change."""
        restore(obj, old, "spec")
        restore(obj["metadata"], old["metadata"], "labels")

    def prepare_for_subresource_update(self, obj: Object, old: Object, subresource: str) -> None:
        """Keep fields of the old object at an update of any subresource."""
        if (
            subresource == "finalize"
        ):  # a namespace's: only spec.finalizers changes, and status is as it was
            restore(obj, old, "status")
        else:
            self.prepare_for_status_update(obj, old)

    def spec_changed(self, obj: Object, old: Object) -> bool:
        """Tell whether an update raises metadata.generation."""
        return obj.get("spec") != old.get("spec")

    def validate(self, obj: Object) -> list[FieldError]:
        return []

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        """Return all errors of an update, those of ``validate`` included, in upstream's order."""
        return self.validate(obj)

    def validate_status_update(self, obj: Object, old: Object) -> list[FieldError]:
        return []

    def validate_subresource_update(
        self, obj: Object, old: Object, subresource: str
    ) -> list[FieldError]:
        return self.validate_status_update(obj, old)

    def warnings_of_version(self, api_version: str) -> list[str]:
        """Return the warnings for an object in a version that is served but not the resource's
        own."""
        return []

    def warnings_on_create(self, obj: Object) -> list[str]:
        return []

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return []

    def grace_period_seconds(self, obj: Object, requested: int | None) -> int:
        """Return the seconds that a deletion takes: 0 for everything but pods
        (``CheckGracefulDelete``)."""
        return 0

    def default_propagation(self) -> str:
        """Return the policy of a deletion without propagationPolicy
        (``DefaultGarbageCollectionPolicy``)."""
        return "Background"

    def select(
        self, objects: list[Object], label_selector: str, field_selector: str
    ) -> list[Object]:
        """Return the objects that both selectors choose. Raises BadRequest in upstream's words."""
        try:
            labels = selectors.parse_labels(label_selector)
            terms = selectors.parse_fields(field_selector)
        except selectors.SelectorError as error:
            raise BadRequest(str(error)) from None

        terms = [
            term._replace(field=self.selectable_aliases.get(term.field, term.field))
            for term in terms
        ]
        for term in terms:
            if not self.is_selectable(term.field):
                raise BadRequest(self.not_selectable(term.field))
        chosen = [obj for obj in objects if labels.matches(labels_of(obj))]
        if not terms:
            return chosen
        selected = []
        for obj in chosen:
            metadata = obj["metadata"]
            values = {
                **self.selectable_fields(obj),
                "metadata.name": metadata.get("name", ""),
                "metadata.namespace": metadata.get("namespace", ""),
            }
            if all(term.matches(values) for term in terms):
                selected.append(obj)

        return selected

    def is_selectable(self, field: str) -> bool:
        """Tell whether objects can be selected by a field.

        Kinds with fields of their own leave out the namespace if they have none; other kinds never
        do.
        """
        if field == "metadata.namespace":
            return self.resource.namespaced or not self._says_what_is_selectable()
        return field == "metadata.name" or field in self.selectable

    def not_selectable(self, field: str) -> str:
        """Word the refusal of a field (``AddFieldLabelConversionFunc`` of the kind, or the common
        one)."""
        if self._says_what_is_selectable():
            return printable(f"field label not supported: {field}")
        return (
            f'{quote(field)} is not a known field selector: only "metadata.name", '
            f'"metadata.namespace"'
        )

    def _says_what_is_selectable(self) -> bool:
        return bool(self.selectable) or self.resource.custom

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        """Return the values of the ``selectable`` fields of an object; a missing one is empty."""
        return {path: _text_at(obj, path) for path in self.selectable}


def _text_at(obj: Object, path: str) -> str:
    """Return the scalar at a dotted path as Go prints it, "" if there is none."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
