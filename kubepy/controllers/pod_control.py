"""Creating and deleting the pods of an owner, with its events (``controller_utils.go``, ``RealPodControl``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kubepy.api.errors import NotFound, Status
from kubepy.api.meta import Object, name_of, namespace_of, new_controller_ref
from kubepy.apiserver.client import Client
from kubepy.runtime.events import Recorder

T = TypeVar("T")

SLOW_START_INITIAL_BATCH_SIZE = 1
MAX_GENERATED_PREFIX = 253 - 5  # what a name of 253 characters leaves beside its random suffix

NAMESPACE_TERMINATING = "NamespaceTerminating"


class PodControl:
    """Writes pods for controllers; every outcome becomes an event of the owner."""

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    def create(self, owner: Object, pod: Object) -> Object:
        """Create a pod made by :func:`pod_from_template`. Raises Status."""
        try:
            created = self._client.create("pods", pod, namespace=namespace_of(owner))
        except Status as error:
            if not is_namespace_terminating(error):
                self._recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            raise
        self._recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {name_of(created)}")
        return created

    def delete(self, owner: Object, name: str) -> None:
        """Delete a pod by name. Raises Status, NotFound without an event."""
        try:
            self._client.delete("pods", name, namespace=namespace_of(owner))
        except Status as error:
            if not isinstance(error, NotFound):
                self._recorder.event(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            raise
        self._recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")


def pod_from_template(owner: Object, template: Object) -> Object:
    """A new pod of a template, owned by ``owner`` (``GetPodFromTemplate``).

    The spec and the maps of metadata are the template's own: the Client copies what it is given.
    """
    metadata = template.get("metadata") or {}
    kept = {key: metadata[key] for key in ("labels", "annotations", "finalizers") if metadata.get(key)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **kept,
            "generateName": pods_prefix(name_of(owner)),
            "ownerReferences": [new_controller_ref(owner)],
        },
        "spec": template["spec"],
    }


def pods_prefix(owner: str) -> str:
    """``name-``, or just the name where that is too long for a pod (``getPodsPrefix``)."""
    return f"{owner}-" if len(owner) < MAX_GENERATED_PREFIX else owner


def is_namespace_terminating(error: Status) -> bool:
    """Whether a creation failed only because its namespace is going (``NamespaceTerminatingCause``)."""
    return any(cause.reason == NAMESPACE_TERMINATING for cause in error.causes)


def slow_start(items: Sequence[T], act: Callable[[T], None]) -> tuple[list[Status], int]:
    """Act on the items in batches of 1, 2, 4, 8 …, until a batch in which one failed (``slowStartBatch``).

    Returns the errors, and how many items were never tried: what fails once will most likely fail for all, and each
    failure is an event.
    """
    errors: list[Status] = []
    position, size = 0, SLOW_START_INITIAL_BATCH_SIZE
    while position < len(items) and not errors:
        errors = failures(items[position : position + size], act)
        position, size = position + size, 2 * size
    return errors, max(len(items) - position, 0)


def failures(items: Iterable[T], act: Callable[[T], None]) -> list[Status]:
    """Act on every item; the errors of those that failed."""
    errors = []
    for item in items:
        try:
            act(item)
        except Status as error:
            errors.append(error)
    return errors
