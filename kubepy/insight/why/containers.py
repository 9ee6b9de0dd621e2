"""Pods whose containers do not run: images, crashes, init containers, memory, deadlines,
annotations of the kubelet.

Everything is read off the status that a kubelet reports. Where an annotation has made the simulated
kubelet report it, the annotation is the last link, and taking it away is a remedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.meta import (
    Object,
    annotations_of,
    is_being_deleted,
    name_of,
    nested_list,
    nested_map,
    spec_of,
    status_of,
    uid_of,
)
from kubepy.api.objects.images import image_name_problem
from kubepy.api.objects.outcomes import OUTCOME, PENDING, POD_OUTCOME, RUNS_FOR, UnknownOutcomeError
from kubepy.api.objects.pods import RESIZE_PENDING, is_pod_terminal, node_name, phase_of
from kubepy.api.objects.usage import AnnotationError
from kubepy.insight.why.remedies import (
    MADE_ANEW,
    merge_patch,
    of_template,
    patch_template,
    pod_spec_of,
    pods_of,
    replaces_pods,
    top_owner,
)
from kubepy.insight.why.scene import annotated, condition_status, plural, unready_link
from kubepy.kubelet.admission import is_scheduled, rejection
from kubepy.kubelet.lifetimes import NO_RULES, Rules, lifetime_of

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod
    from kubepy.insight import Finding, Link
    from kubepy.insight.why.scene import Diagnosis, Scene, Words

PULL_REASONS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
)
INVALID_IMAGE_NAME = "InvalidImageName"
CONFIG_ERROR = "CreateContainerConfigError"
ROOT_PROBLEM = re.compile("runAsNonRoot|non-root policy")  # in what a kubelet says of it
SOME_USER = 1000  # one that is not root
CRASH_LOOP = "CrashLoopBackOff"
OUT_OF_MEMORY = "OOMKilled"
KEEPERS_OF_PODS = ("ReplicaSet", "ReplicationController")  # a new template replaces none
NOT_READY = "not-ready"  # an outcome, and a cause
LISTS = (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses"))


class FailingContainer(NamedTuple):
    """A container that is not where it should be: it waits, or has failed.

    :ivar path: of its status (``status.containerStatuses[0]``).
    :ivar spec_path: of its spec (``spec.containers[0]``).
    """

    pod: Object
    container: Object
    status: Object
    path: str
    spec_path: str

    @property
    def name(self) -> str:
        return str(self.container["name"])

    @property
    def title(self) -> str:
        if self.is_init:
            return f"init container {self.name}"
        return f"container {self.name}"

    @property
    def is_init(self) -> bool:
        return self.spec_path.startswith("spec.init")

    @property
    def waiting(self) -> Object:
        return nested_map(self.status, "state", "waiting")

    @property
    def reason(self) -> str:
        return str(self.waiting.get("reason", ""))

    @property
    def end(self) -> tuple[str, Object]:
        """The path of the end of its last run below its status, and that end; empty where none has
        ended."""
        for field in ("state", "lastState"):
            if ended := (self.status.get(field) or {}).get("terminated"):
                return f"{self.path}.{field}.terminated", ended
        return "", {}

    @property
    def is_looping(self) -> bool:
        """Tell whether it ends again and again; it may run just now."""
        return self.reason == CRASH_LOOP or runs_between_ends(self.status)

    @property
    def has_failed(self) -> bool:
        """Tell whether it ends again and again, or its end has ended the pod."""
        ended = nested_map(self.status, "state", "terminated")
        return self.is_looping or bool(ended.get("exitCode"))


def runs_between_ends(status: Object) -> bool:
    """Tell whether a container of a crash loop runs just now: it has been started again more than
    once after an error, and is not ready."""
    if "running" not in nested_map(status, "state") or status.get("ready"):
        return False
    last = nested_map(status, "lastState", "terminated")
    return int(status.get("restartCount") or 0) >= 2 and bool(last.get("exitCode"))


def failing_containers(pod: Object) -> Iterator[FailingContainer]:
    """Yield the containers of a pod that wait or have failed, in the order in which a kubelet
    starts them."""
    for field, statuses_field in LISTS:
        indexes = {
            container["name"]: index for index, container in enumerate(pod["spec"].get(field) or ())
        }
        for index, status in enumerate(status_of(pod).get(statuses_field) or ()):
            state = nested_map(status, "state")
            if status["name"] in indexes and (
                "waiting" in state
                or nested_map(state, "terminated").get("exitCode")
                or runs_between_ends(status)
            ):
                place = indexes[status["name"]]
                yield FailingContainer(
                    pod,
                    pod["spec"][field][place],
                    status,
                    f"status.{statuses_field}[{index}]",
                    f"spec.{field}[{place}]",
                )


# --- what the annotations say ---------------------------------------------------------------------


def without_annotation(
    scene: Scene, pod: Object, annotation: str = OUTCOME, of_node: str = POD_OUTCOME
) -> list[Words]:
    """Return the command that takes the annotation away: from the template, the pod, or its
    node."""
    workload = top_owner(scene, pod)
    node = scene.get("nodes", "", node_name(pod))
    if annotations_of(pod).get(annotation):
        metadata = nested_map(workload["spec"], "template", "metadata")
        if replaces_pods(workload) and annotation in nested_map(metadata, "annotations"):
            patch = {"metadata": {"annotations": {annotation: None}}}
            return [merge_patch(scene, workload, {"spec": {"template": patch}})]
        if phase_of(pod) == "Failed":
            return []
        return [scene.command(pod, "annotate", scene.word(pod), f"{annotation}-")]

    if node is not None and (text := annotations_of(node).get(of_node)):
        alike = [
            name_of(other)
            for other in scene.list("nodes")
            if annotations_of(other).get(of_node) == text
        ]
        return [("annotate", "node", *alike, f"{of_node}-")]

    return []


# --- images ---------------------------------------------------------------------------------------


def invalid_image_name(scene: Scene, pod: Object) -> Finding | None:
    """Blame the name of an image that cannot be parsed."""
    for failing in failing_containers(pod):
        if failing.reason == INVALID_IMAGE_NAME:
            return scene.finding(
                "invalid-image-name",
                scene.link(
                    pod,
                    f"{failing.path}.state.waiting.reason",
                    f"{failing.title} is not started: "
                    f"{failing.waiting.get('message') or 'the name of its image cannot be parsed'}",
                ),
                scene.link(pod, f"{failing.spec_path}.image", "this is no valid name of an image"),
                remedies=set_image(scene, failing),
            )
    return None


def runs_as_root(scene: Scene, pod: Object) -> Finding | None:
    """Blame an image or a user as whom a container may not run (``runAsNonRoot``)."""
    for failing in failing_containers(pod):
        message = str(failing.waiting.get("message") or "")
        if failing.reason == CONFIG_ERROR and ROOT_PROBLEM.search(message):
            text = f"{failing.title} is not started: {message}"
            return scene.finding(
                "image-runs-as-root",
                scene.link(pod, f"{failing.path}.state.waiting.reason", text),
                _demand_for_other_user(scene, failing),
                remedies=_set_user(scene, failing),
            )
    return None


def _demand_for_other_user(scene: Scene, failing: FailingContainer) -> Link:
    """Return the link of the field that says that a container must not run as root."""
    path = "spec.securityContext.runAsNonRoot"
    if nested_map(failing.container, "securityContext").get("runAsNonRoot") is not None:
        path = f"{failing.spec_path}.securityContext.runAsNonRoot"
    return scene.link(failing.pod, path, "it must not run as root")


def _set_user(scene: Scene, failing: FailingContainer) -> list[Words]:
    """Return the command that lets a container run as a user that is not root."""
    field = "initContainers" if failing.is_init else "containers"
    names = [container["name"] for container in failing.pod["spec"][field]]
    index = names.index(failing.name)
    context = {**nested_map(failing.container, "securityContext"), "runAsUser": SOME_USER}
    return patch_template(
        scene,
        failing.pod,
        ("add", (field, index, "securityContext"), context),
    )


def image_pull(scene: Scene, pod: Object) -> Finding | None:
    """Blame an image that cannot be pulled."""
    for failing in failing_containers(pod):
        if failing.reason in PULL_REASONS:
            links = [*annotated(scene, pod)]
            return scene.finding(
                "image-pull",
                scene.link(
                    pod,
                    f"{failing.path}.state.waiting.reason",
                    f"{failing.title} has no image: "
                    f"{failing.waiting.get('message') or failing.reason}",
                ),
                scene.link(pod, f"{failing.spec_path}.image", "this image cannot be pulled"),
                *links,
                remedies=without_annotation(scene, pod) if links else set_image(scene, failing),
            )

    return None


def set_image(scene: Scene, failing: FailingContainer) -> list[Words]:
    """Return the command that sets another image: that of an earlier revision, or the name as it
    was probably meant."""
    pod = failing.pod
    image = failing.container["image"]
    workload = top_owner(scene, pod)
    if workload["kind"] in KEEPERS_OF_PODS and not has_image(workload, failing.name, image):
        old = [
            name_of(other)
            for other in pods_of(scene, workload)
            if has_image(other, failing.name, image)
        ]
        if old:
            return [scene.command(workload, "delete", "pod", *old)]
        return []

    earlier = [
        other
        for other in earlier_images(scene, workload, failing.name)
        if other != image and not image_name_problem(other)
    ]
    names = [
        *earlier[:1],
        *(
            name
            for name in (image.lower(), image.lower().strip(":@/"))
            if image_name_problem(image) and not image_name_problem(name)
        ),
    ]
    if not names:
        return []
    target = pod if workload["kind"] in MADE_ANEW else workload  # of a pod the image can be changed
    words = scene.command(target, "set", "image", scene.word(target), f"{failing.name}={names[0]}")
    if target is pod:
        return [words]
    return of_template(workload, words)


def has_image(obj: Object, container: str, image: str) -> bool:
    """Return whether a container of a pod, or of a workload's template, has an image."""
    spec = pod_spec_of(obj)
    containers = (*nested_list(spec, "initContainers"), *nested_list(spec, "containers"))
    return any(each["name"] == container and each.get("image") == image for each in containers)


def earlier_images(scene: Scene, workload: Object, container: str) -> Iterator[str]:
    """Yield the images that a container had in the revisions of a workload, the latest first."""
    if workload["kind"] == "Deployment":
        annotation = "deployment.kubernetes.io/revision"
        revisions = [
            (int(annotations_of(obj).get(annotation) or 0), obj["spec"]["template"])
            for obj in scene.owned(workload, "replicasets.apps")
        ]
    else:
        revisions = [
            (
                int(obj.get("revision") or 0),
                nested_map(obj, "data", "spec", "template"),
            )
            for obj in scene.owned(workload, "controllerrevisions.apps")
        ]

    for _, template in sorted(revisions, key=lambda revision: -revision[0]):
        spec = spec_of(template)
        for other in (*nested_list(spec, "initContainers"), *nested_list(spec, "containers")):
            if other["name"] == container and other.get("image"):
                yield other["image"]


# --- containers that end --------------------------------------------------------------------------


def failed_container(scene: Scene, pod: Object) -> Finding | None:
    """Blame a container that ends, or has ended: out of memory, an init container, a crash loop, a
    failure."""
    for failing in failing_containers(pod):
        if failing.has_failed:
            cause = cause_of_failure(failing)
            links = [*annotated(scene, pod)]
            remedies = without_annotation(scene, pod)
            if not links:
                links = [*annotated(scene, pod, RUNS_FOR, RUNS_FOR)]
                remedies = without_annotation(scene, pod, RUNS_FOR, RUNS_FOR)
            return scene.finding(
                cause, *failure_links(scene, failing, cause), *links, remedies=remedies
            )
    return None


def cause_of_failure(failing: FailingContainer) -> str:
    if failing.end[1].get("reason") == OUT_OF_MEMORY:
        return "out-of-memory"
    if failing.is_init:
        return "init-container-failing"
    if failing.is_looping:
        return "crash-loop"
    return "container-failed"


def failure_links(scene: Scene, failing: FailingContainer, cause: str) -> Iterator[Link]:
    """Yield the links of a container that ends: that it waits for its restart, and how its last run
    ended."""
    pod, (path, ended) = failing.pod, failing.end
    if failing.is_looping:
        restarts = plural(int(failing.status.get("restartCount") or 0), "restart")
        waits = ", and the others wait for it" if failing.is_init else ""
        yield scene.link(
            pod,
            f"{failing.path}.state.waiting.reason"
            if failing.reason == CRASH_LOOP
            else f"{failing.path}.restartCount",
            f"{failing.title} ends again and again, after {restarts} so far{waits}",
        )

    if ended and cause == "out-of-memory":
        limit = nested_map(failing.container, "resources", "limits").get("memory")
        yield scene.link(
            pod,
            f"{path}.reason",
            f"{failing.title} was killed: it needed more memory than "
            f"{f'its limit of {limit}' if limit else 'there was'}",
        )
    elif ended:
        nothing = "" if failing.is_looping else ", and nothing starts it again in this pod"
        yield scene.link(
            pod,
            f"{path}.exitCode",
            f"the last run of {failing.title} ended with exit code "
            f"{ended.get('exitCode', 0)}{nothing}",
        )


def failed_pod(scene: Scene, pod: Object) -> Finding | None:
    """Blame a deadline, or a node that did not admit the pod or has ended it."""
    status = status_of(pod)
    if phase_of(pod) != "Failed" or not status.get("reason"):
        return None
    if status["reason"] == "DeadlineExceeded":
        return scene.finding(
            "deadline-exceeded",
            scene.link(pod, "status.reason", "it had not ended by its deadline"),
            scene.link(
                pod,
                "spec.activeDeadlineSeconds",
                "so many seconds after its start it has to be gone",
            ),
        )

    text = status.get("message") or f"it has failed: {status['reason']}"
    return scene.finding(
        "pod-rejected",
        scene.link(pod, "status.reason", text.rstrip(".")),
        remedies=without_node_name(scene, pod),
    )


def rejected_pod(scene: Scene, pod: Object) -> Finding | None:
    """Blame a node that will not admit a pod which has yet to be started there: it was made anew
    after it had been rejected."""
    node = scene.get("nodes", "", node_name(pod))
    status = status_of(pod)
    is_undecided = phase_of(pod) in ("", "Pending") and not status.get("startTime")
    if node is None or not is_undecided or not pod_spec_of(top_owner(scene, pod)).get("nodeName"):
        return None
    others = [
        cast("Pod", other)
        for other in scene.list("pods")
        if node_name(other) == name_of(node)
        and uid_of(other) != uid_of(pod)
        and not is_pod_terminal(other)
        and is_scheduled(cast("Pod", other))
    ]
    reason = rejection(cast("Pod", pod), cast("Node", node), others)
    if reason is None:
        return None
    text = f"the node does not admit it: {reason.message}"
    return scene.finding(
        "pod-rejected",
        scene.link(pod, "spec.nodeName", text),
        remedies=without_node_name(scene, pod),
    )


def without_node_name(scene: Scene, pod: Object) -> list[Words]:
    """Return the command that leaves the choice of a node to the scheduler, where the template of a
    pod names one."""
    workload = top_owner(scene, pod)
    if workload["kind"] == "Pod" or not pod_spec_of(workload).get("nodeName"):
        return []
    return patch_template(scene, pod, ("remove", ("nodeName",), None))


# --- pods that the kubelet does not start ---------------------------------------------------------


def not_started(scene: Scene, pod: Object) -> Finding | None:
    """Blame an annotation that keeps the simulated kubelet from starting a pod, or that it cannot
    read."""
    node = scene.get("nodes", "", node_name(pod))
    if (
        node is None
        or phase_of(pod) not in ("", "Pending")
        or status_of(pod).get("containerStatuses")
    ):
        return None

    rules = rules_of(scene)
    try:
        outcome = lifetime_of(cast("Pod", pod), cast("Node", node), rules).outcome
        cause = "not-started"
        text = ""
    except (UnknownOutcomeError, AnnotationError) as error:
        name = error.annotation if isinstance(error, AnnotationError) else OUTCOME
        outcome = PENDING
        cause = "invalid-annotation"
        text = f"the simulated kubelet cannot follow it: {error}"
    else:
        name = OUTCOME

    if outcome != PENDING:
        return None
    of_node = POD_OUTCOME if name == OUTCOME else name
    links = [
        link._replace(text=text or "the simulated kubelet does not start the pod")
        if link.field
        else link
        for link in annotated(scene, pod, name, of_node)
    ]
    return scene.finding(cause, *links, remedies=without_annotation(scene, pod, name, of_node))


def rules_of(scene: Scene) -> Rules:
    """Return what the simulated kubelets go by beside pods and nodes."""
    return NO_RULES._replace(defaults=scene.settings.kubelet.annotations())


def kept_unready(scene: Scene, pod: Object) -> Finding | None:
    """Blame an annotation that lets the containers of a pod run, but never be ready."""
    node = scene.get("nodes", "", node_name(pod))
    faults = scene.settings.faults
    if node is None or phase_of(pod) != "Running" or condition_status(pod, "Ready") == "True":
        return None
    try:
        outcome = lifetime_of(cast("Pod", pod), cast("Node", node), rules_of(scene)).outcome
    except (UnknownOutcomeError, AnnotationError):
        return None

    links = [*annotated(scene, pod)]
    if (
        NOT_READY not in (outcome, faults.pod_outcome(pod) if faults is not None else "")
        or not links
    ):
        return None

    return scene.finding(
        NOT_READY, unready_link(scene, pod), *links, remedies=without_annotation(scene, pod)
    )


def resize_pending(scene: Scene, pod: Object) -> Finding | None:
    """Blame the node of a pod that has no room for the resources that it asks for by now."""
    if condition_status(pod, RESIZE_PENDING) != "True" or is_being_deleted(pod):
        return None
    return scene.finding(
        "resize-pending",
        scene.condition_link(
            pod, RESIZE_PENDING, "its containers keep the resources that they have", "message"
        ),
    )


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {
    "pods": (
        failed_pod,
        rejected_pod,
        invalid_image_name,
        runs_as_root,
        image_pull,
        failed_container,
        not_started,
        kept_unready,
        resize_pending,
    ),
}
