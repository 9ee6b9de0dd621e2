"""Creating and deleting the pods of an owner, with its events (``controller_utils.go``,
``RealPodControl``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar, cast

from kubepy.api.errors import NotFound, Status
from kubepy.api.meta import AnyObject, Object, name_of, namespace_of, new_controller_ref
from kubepy.api.objects.pods import set_condition
from kubepy.apiserver.client import Client
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import PODS, ResourceClient

if TYPE_CHECKING:
    from kubepy.api.typed import Pod, PodCondition, PodStatus
    from kubepy.controllers.expectations import Expectations
    from kubepy.runtime.reconcile import Key

T = TypeVar("T")

SLOW_START_INITIAL_BATCH_SIZE = 1
MAX_GENERATED_PREFIX = (
    253 - 5
)  # the room that a name of 253 characters leaves beside its random suffix

NAMESPACE_TERMINATING = "NamespaceTerminating"


class PodControl:
    """Writes pods for controllers; every outcome becomes an event of the owner."""

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    def create(self, owner: AnyObject, pod: AnyObject) -> None:
        """Create a pod made by :func:`pod_from_template`. Raises Status."""
        try:
            created = self._client.create(PODS, cast(Object, pod), namespace=namespace_of(owner))
        except Status as error:
            if not is_namespace_terminating(error):
                self._recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            raise
        self._recorder.event(
            owner, "Normal", "SuccessfulCreate", f"Created pod: {name_of(created)}"
        )

    def create_expected(
        self, owner: AnyObject, pods: Sequence[AnyObject], expectations: Expectations[Key], key: Key
    ) -> list[Status]:
        """Create pods that are expected already, in a slow start; those not created are expected no
        longer.

        Returns the errors. A namespace that is going is none: all further creations would fail
        alike.
        """

        def create(pod: AnyObject) -> None:
            try:
                self.create(owner, pod)
            except Status as error:
                if not is_namespace_terminating(error):
                    expectations.creation_observed(key)
                    raise

        errors, skipped = slow_start(pods, create)
        expectations.lower(key, creations=skipped)
        return errors

    def delete(self, owner: AnyObject, name: str) -> None:
        """Delete a pod by name. Raises Status, NotFound without an event."""
        try:
            self._client.delete(PODS, name, namespace=namespace_of(owner))
        except NotFound:
            raise
        except Status as error:
            self._recorder.event(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            raise
        self._recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")


def pod_from_template(owner: AnyObject, template: AnyObject) -> Pod:
    """Return a new pod of a template, owned by ``owner`` (``GetPodFromTemplate``).

    The spec and the maps of metadata are the template's own: the Client copies the objects that it
    is given.
    """
    name = name_of(owner)
    metadata = template.get("metadata") or {}
    kept = {
        key: metadata[key] for key in ("labels", "annotations", "finalizers") if metadata.get(key)
    }
    return cast(
        "Pod",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **kept,
                # just the name where the dash would make it too long for a pod (``getPodsPrefix``)
                "generateName": f"{name}-" if len(name) < MAX_GENERATED_PREFIX else name,
                "ownerReferences": [new_controller_ref(owner)],
            },
            "spec": template["spec"],
        },
    )


def is_namespace_terminating(error: Status) -> bool:
    """Return whether a creation failed only because its namespace is going
    (``NamespaceTerminatingCause``)."""
    return any(cause.reason == NAMESPACE_TERMINATING for cause in error.causes)


def slow_start(items: Sequence[T], act: Callable[[T], None]) -> tuple[list[Status], int]:
    """Act on the items in batches of 1, 2, 4, 8 …, until a batch in which one failed
    (``slowStartBatch``).

    Returns the errors, and how many items were never tried: an error will most likely repeat for
    all, and each failure is an event.
    """
    errors: list[Status] = []
    position = 0
    size = SLOW_START_INITIAL_BATCH_SIZE
    while position < len(items) and not errors:
        errors = failures(items[position : position + size], act)
        position = position + size
        size = 2 * size
    return errors, max(len(items) - position, 0)


def failures(items: Iterable[T], act: Callable[[T], None]) -> list[Status]:
    """Act on every item; return the errors of those that failed."""
    errors = []
    for item in items:
        try:
            act(item)
        except Status as error:
            errors.append(error)
    return errors


def add_disruption_target(
    client: Client, pod: Pod, reason: str, message: str, now: datetime, *, phase: str = ""
) -> Pod:
    """Write the ``DisruptionTarget`` condition, which says why a pod is being taken away
    (KEP-3329), into the status.

    With ``phase`` that phase is written too. Returns the pod as stored. Raises Status.
    """
    condition: PodCondition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
    }
    generation = pod["metadata"].get("generation")
    if generation:
        condition["observedGeneration"] = generation
    status: PodStatus = {**(pod.get("status") or {})}
    status["conditions"] = list(status.get("conditions") or [])
    set_condition(status["conditions"], condition, now)
    if phase:
        status["phase"] = phase
    return ResourceClient(client, PODS).update_status(pod, status)
