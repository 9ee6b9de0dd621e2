"""``cordon``, ``uncordon`` and ``drain``: keep pods away from nodes, and evict those that are
there.

Upstream: ``kubectl/pkg/cmd/drain/drain.go``,
``k8s.io/kubectl/pkg/drain/{drain,filters,cordon}.go``. Upstream evicts every pod in a thread of its
own; here one loop looks after all of them, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kubepy.api.clock import later, parse_time
from kubepy.api.errors import Status
from kubepy.api.meta import (
    Object,
    annotations_of,
    controller_of,
    is_being_deleted,
    name_of,
    namespace_of,
    nested_list,
    uid_of,
)
from kubepy.api.objects.pods import is_pod_terminal
from kubepy.api.values.goformat import format_duration
from kubepy.apiserver.request import STRATEGIC_MERGE_PATCH, DeleteOptions, Patch, PatchOptions
from kubepy.cli.errors import (
    CliError,
    EndlessWaitError,
    SilentExit,
    is_expected,
    raise_all,
    unless_missing,
)
from kubepy.cli.runtime.builder import MISSING_RESOURCE, Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag, int_flag, string_flag
from kubepy.cli.runtime.infos import Info, resource_text
from kubepy.cli.runtime.options import (
    CLIENT,
    SERVER,
    UNNAMED,
    ChunkSizeOptions,
    DryRunOptions,
    SelectorOptions,
)
from kubepy.cli.runtime.output import SUFFIXES, name_printer
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote
from kubepy.storage import Key

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.api import selectors
    from kubepy.cli.runtime import driver

RETRY_DELAY = 5.0  # seconds between tries to evict a pod that may not go yet
NAMESPACE_TERMINATING = "NamespaceTerminating"
OVERDUE = "context deadline exceeded"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class CordonOptions(DryRunOptions, SelectorOptions):
    """The flags of ``cordon`` and ``uncordon``."""


class DrainOptions(CordonOptions, ChunkSizeOptions):
    """The flags of ``drain``."""

    force: bool = bool_flag(
        "force", help="Continue even if there are pods that do not declare a controller."
    )
    ignore_daemonsets: bool = bool_flag("ignore-daemonsets", help="Ignore DaemonSet-managed pods.")
    delete_emptydir_data: bool = bool_flag(
        "delete-emptydir-data",
        help="Continue even if there are pods using "
        "emptyDir (local data that will be deleted when the node is drained).",
    )
    grace_period: int = int_flag(
        "grace-period",
        default=-1,
        help="Period of time in seconds given to each pod to "
        "terminate gracefully. If negative, the default value specified in the pod will be "
        "used.",
    )
    timeout: float = duration_flag(
        "timeout", help="The length of time to wait before giving up, zero means infinite."
    )
    pod_selector: str = string_flag(
        "pod-selector", help="Label selector to filter pods on the node."
    )
    disable_eviction: bool = bool_flag(
        "disable-eviction",
        help="Force drain to use delete, even if eviction is "
        "supported. This will bypass checking PodDisruptionBudgets, use with caution.",
    )
    skip_wait_for_delete_timeout: int = int_flag(
        "skip-wait-for-delete-timeout",
        help="If pod DeletionTimestamp older "
        "than N seconds, skip waiting for the pod. Seconds must be greater "
        "than 0 to skip.",
    )


# --- commands -------------------------------------------------------------------------------------


@command(
    "cordon NODE",
    CordonOptions,
    examples="""
# Keep new pods away from a node
kubepy cordon node-1

# Keep new pods away from all nodes labelled pool=blue
kubepy cordon -l pool=blue
""",
)
def cordon(factory: Factory, options: CordonOptions) -> None:
    """Mark node as unschedulable."""
    require_nodes(options, "cordon NODE")
    strategy = factory.dry_run_strategy(options)
    cordon_or_uncordon(factory, nodes_of(factory, options), strategy, unschedulable=True)


@command(
    "uncordon NODE",
    CordonOptions,
    examples="""
# Let pods come to a node again
kubepy uncordon node-1

# Let pods come to all nodes labelled pool=blue again
kubepy uncordon -l pool=blue
""",
)
def uncordon(factory: Factory, options: CordonOptions) -> None:
    """Mark node as schedulable."""
    require_nodes(options, "uncordon NODE")
    strategy = factory.dry_run_strategy(options)
    cordon_or_uncordon(factory, nodes_of(factory, options), strategy, unschedulable=False)


@command(
    "drain NODE",
    DrainOptions,
    examples="""
    # Empty a node for maintenance; its daemon pods stay
    kubepy drain node-1 --ignore-daemonsets

    # Also pods that nothing would make again
    kubepy drain node-1 --ignore-daemonsets --force --grace-period=60
""",
)
def drain(factory: Factory, options: DrainOptions) -> None:
    """Drain node in preparation for maintenance.

    The node is marked unschedulable, and its pods are evicted, as far as PodDisruptionBudgets allow it. While it waits
    for them it runs the controllers itself, unless `kubepy controller --watch` does.
    """  # noqa: E501
    require_nodes(options, "drain NODE")
    strategy = factory.dry_run_strategy(options)
    try:
        selectors.parse_labels(options.pod_selector)
    except selectors.SelectorError:
        raise CliError("--pod-selector=<pod_selector> must be a valid label selector") from None

    infos = nodes_of(factory, options)
    factory.note_subjects(Key(info.resource.key, "", info.name) for info in infos)
    cordon_or_uncordon(factory, infos, strategy, unschedulable=True)
    drainer = Drainer(factory, options, strategy)
    pending: list[str] = []
    errors: list[Exception] = []
    for info in infos:
        try:
            drainer.drain(info.name)
        except Exception as error:
            if not is_expected(error):
                raise
            factory.say(
                f"error: unable to drain node {quote(info.name)} due to error: {error}, "
                f"continuing command..."
            )
            pending.append(info.name)
            errors += getattr(error, "errors", None) or [error]
            if any(isinstance(each, EndlessWaitError) for each in errors):
                # kubectl does not come to the nodes after this one
                pending += [other.name for other in infos[infos.index(info) + 1 :]]
                break
            continue
        print_operation(factory, info.content, "drained", strategy)

    if pending:
        factory.say(
            "There are pending nodes to be drained:\n" + "\n".join(f" {name}" for name in pending)
        )

    if errors:
        factory.say("\n".join(map(str, errors)))
        raise SilentExit(1)


def print_operation(factory: Factory, obj: Object, operation: str, strategy: str) -> None:
    name_printer(factory, operation + SUFFIXES[strategy])(obj)


def require_nodes(options: CordonOptions, usage: str) -> None:
    """Raise UsageError unless there are names or a selector, and not both."""
    if not options.args and not options.changed("selector"):
        options.usage_error(f"USAGE: {usage} [flags]")
    if options.args and options.selector:
        options.usage_error("error: cannot specify both a node name and a --selector option")


def nodes_of(factory: Factory, options: CordonOptions) -> list[Info]:
    """Return the nodes with the names, or those of the selector. Raises CliError for other
    types."""
    if not options.args and not options.selector:
        raise CliError(MISSING_RESOURCE)
    if not all(options.args):
        raise CliError("resource name may not be empty")
    args = [word if "/" in word else f"nodes/{word}" for word in options.args] or ["nodes"]
    infos = Builder(factory, options, args=args, retrieve=False, related=True).do().all_infos()
    if len({info.resource.key for info in infos}) > 1:
        raise CliError("you may only specify a single resource type")
    for info in infos:
        info.object = info.object or info.get(factory)
        if info.resource.key != "nodes":
            raise CliError(
                f"error: expected resource of type node, got {quote(resource_text(info.resource))}"
            )

    return infos


def cordon_or_uncordon(
    factory: Factory, infos: list[Info], strategy: str, *, unschedulable: bool
) -> None:
    """Set or clear spec.unschedulable and print that; a node that needs no change is printed too.

    A node that cannot be written is reported, and as upstream's command this one goes on.

    :param strategy: the dry run, see ``Factory.dry_run_strategy``.
    """
    verb = "cordon" if unschedulable else "uncordon"
    patch = {"spec": {"unschedulable": True if unschedulable else None}}
    for info in infos:
        is_done = bool(info.content.get("spec", {}).get("unschedulable")) == unschedulable
        try:
            if not is_done and strategy != CLIENT:
                factory.client.patch(
                    "nodes",
                    info.name,
                    Patch(STRATEGIC_MERGE_PATCH, patch),
                    options=PatchOptions(dry_run=strategy == SERVER, field_manager=UNNAMED),
                )
        except Exception as error:
            if not is_expected(error):
                raise
            factory.say(f"error: unable to {verb} node {quote(info.name)}: {error}")
            continue
        print_operation(
            factory, info.content, f"already {verb}ed" if is_done else f"{verb}ed", strategy
        )


# --- filters: which pods may be removed -----------------------------------------------------------


class PodDeleteStatus(NamedTuple):
    """The decision about a pod; the warning or error says why it is special."""

    delete: bool
    warning: str = ""
    error: str = ""


class PodDeleteList(NamedTuple):
    """The pods of a node that may be deleted, and the messages about the others."""

    pods: list[Object]
    warnings: str
    errors: list[str]


# Takes the namespace and name of a DaemonSet, and returns the error of getting it; None when it
# exists.
MissingDaemonSet = Callable[[str, str], str | None]


def filter_pods(
    pods: list[Object], options: DrainOptions, missing_daemon_set: MissingDaemonSet, now: datetime
) -> PodDeleteList:
    """Decide about all pods of a node."""
    statuses = [(pod, filter_pod(pod, options, missing_daemon_set, now)) for pod in pods]
    warnings = _names_by_message((status.warning, pod) for pod, status in statuses)
    errors = _names_by_message((status.error, pod) for pod, status in statuses)
    return PodDeleteList(
        [pod for pod, status in statuses if status.delete],
        "; ".join(f"{message}: {names}" for message, names in warnings.items()),
        [f"cannot delete {message}: {names}" for message, names in errors.items()],
    )


def _names_by_message(messages: Iterable[tuple[str, Object]]) -> dict[str, str]:
    names: dict[str, list[str]] = {}
    for message, pod in messages:
        if message:
            names.setdefault(message, []).append(f"{namespace_of(pod)}/{name_of(pod)}")
    return {message: ", ".join(pods) for message, pods in names.items()}


def filter_pod(
    pod: Object, options: DrainOptions, missing_daemon_set: MissingDaemonSet, now: datetime
) -> PodDeleteStatus:
    """Apply upstream's filters in its order: the first that keeps the pod decides, else the last
    one that warns."""
    if is_deleted_since(pod, options.skip_wait_for_delete_timeout, now):
        return PodDeleteStatus(False)
    controller = controller_of(pod)
    is_terminal = is_pod_terminal(pod)
    if (
        controller is not None
        and (controller["apiVersion"], controller["kind"]) == ("apps/v1", "DaemonSet")
        and not is_terminal
    ):
        if error := missing_daemon_set(namespace_of(pod), controller["name"]):
            if not options.force:
                return PodDeleteStatus(False, error=error)
        elif not options.ignore_daemonsets:
            return PodDeleteStatus(
                False, error="DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
            )
        else:
            return PodDeleteStatus(False, warning="ignoring DaemonSet-managed Pods")

    if MIRROR_ANNOTATION in annotations_of(pod):
        return PodDeleteStatus(False)
    if is_terminal:
        return PodDeleteStatus(True)
    has_local_storage = any("emptyDir" in volume for volume in nested_list(pod["spec"], "volumes"))
    if has_local_storage and not options.delete_emptydir_data:
        return PodDeleteStatus(
            False, error="Pods with local storage (use --delete-emptydir-data to override)"
        )

    if controller is not None:
        return PodDeleteStatus(True)
    if options.force:
        return PodDeleteStatus(True, warning="deleting Pods that declare no controller")
    return PodDeleteStatus(False, error="Pods that declare no controller (use --force to override)")


def is_deleted_since(pod: Object, seconds: int, now: datetime) -> bool:
    """Return whether a pod was deleted more than so many seconds ago; False for 0 seconds."""
    deletion = pod["metadata"].get("deletionTimestamp")
    return bool(
        seconds > 0 and deletion and int((now - parse_time(deletion)).total_seconds()) > seconds
    )


# --- removing pods --------------------------------------------------------------------------------


@dataclass
class PodEviction:
    """The eviction of a pod.

    :param due: the time of the next try; None: now.
    :param accepted: the eviction was admitted, and the pod only has to be gone.
    """

    pod: Object
    due: datetime | None = None
    accepted: bool = False


class Drainer:
    """The eviction or deletion of the pods of nodes, and the wait until they are gone.

    :param strategy: the dry run, see ``Factory.dry_run_strategy``.
    """

    def __init__(self, factory: Factory, options: DrainOptions, strategy: str) -> None:
        self.factory = factory
        self.options = options
        self.strategy = strategy
        self._skips: dict[
            str, datetime
        ] = {}  # by uid: when pods that are being deleted are not waited for any more

    def drain(self, node: str) -> None:
        """Remove the pods of a node. Raises CliError, AggregateError: pods that may not be removed,
        or that stay."""
        pods, warnings, errors = self.pods_for_deletion(node)
        raise_all(CliError(error) for error in errors)
        if warnings:
            self.factory.warn(warnings)
        if self.strategy == CLIENT:
            for pod in pods:
                self.factory.print(
                    printable(f"evicting pod {namespace_of(pod)}/{name_of(pod)} (dry run)")
                )
            return

        try:
            if self.options.disable_eviction:
                self._delete(pods)
            else:
                self._evict(pods)
        except Exception as error:
            if not is_expected(error):
                raise
            if pending := self.pods_for_deletion(node).pods:
                self.factory.say(
                    "\n".join(
                        [
                            f"There are pending pods in node {quote(node)} when an error "
                            f"occurred: {error}",
                            *(f"pod/{name_of(pod)}" for pod in pending),
                        ]
                    )
                )
            raise

    def pods_for_deletion(self, node: str) -> PodDeleteList:
        """Return the pods of a node that may be removed (``GetPodsForDeletion``)."""
        client = self.factory.client
        pods = client.list(
            "pods", label_selector=self.options.pod_selector, field_selector=f"spec.nodeName={node}"
        )

        def missing_daemon_set(namespace: str, name: str) -> str | None:
            try:
                client.get("daemonsets.apps", name, namespace=namespace)
            except api_errors.NotFound as error:
                return str(error)
            return None

        return filter_pods(
            pods.items, self.options, missing_daemon_set, self.factory.cluster.clock.now()
        )

    def _delete(self, pods: Sequence[Object]) -> None:
        """Delete pods. Raises Status for the first that may not be deleted; the pods before it are
        deleted."""
        for pod in pods:
            with suppress(api_errors.NotFound):
                self.factory.client.delete(
                    "pods",
                    name_of(pod),
                    namespace=namespace_of(pod),
                    options=self._delete_options(),
                )

        remaining = [] if self.strategy == SERVER else list(pods)

        def are_gone() -> bool:
            remaining[:] = [pod for pod in remaining if not self._is_gone(pod)]
            return not remaining

        if not self._wait_until(are_gone):
            raise CliError(OVERDUE)

    def _evict(self, pods: Sequence[Object]) -> None:
        """Evict pods, and raise all errors at the end."""
        remaining = [PodEviction(pod) for pod in pods]
        errors: list[Exception] = []

        def are_over() -> bool:
            remaining[:] = [
                eviction for eviction in remaining if not self._try_eviction(eviction, errors)
            ]
            return not remaining

        if not self._wait_until(
            are_over, lambda: [eviction.due for eviction in remaining if not eviction.accepted]
        ):
            for eviction in sorted(remaining, key=lambda eviction: not eviction.accepted):
                name = quote(name_of(eviction.pod))
                namespace = quote(namespace_of(eviction.pod))
                if eviction.accepted:
                    errors.append(
                        CliError(
                            f"error when waiting for pod {name} in namespace {namespace} to "
                            f"terminate: "
                            f"{OVERDUE}"
                        )
                    )
                    continue
                self._print_evicting(eviction.pod)
                errors.append(
                    CliError(
                        f"error when evicting pods/{name} -n {namespace}: global timeout reached: "
                        f"{format_duration(self.options.timeout)}"
                    )
                )

        raise_all(errors)

    def _try_eviction(self, eviction: PodEviction, errors: list[Exception]) -> bool:
        """Go on with an eviction. Return whether it is over, be it with an error."""
        if not eviction.accepted:
            if eviction.due and eviction.due > self.factory.cluster.clock.now():
                return False
            self._print_evicting(eviction.pod)
            try:
                self.factory.client.evict(
                    name_of(eviction.pod),
                    namespace=namespace_of(eviction.pod),
                    options=self._delete_options(),
                )
            except Status as error:
                return self._is_over_after(error, eviction, errors)
            eviction.accepted = True
        return self.strategy == SERVER or self._is_gone(eviction.pod)

    def _is_over_after(self, error: Status, eviction: PodEviction, errors: list[Exception]) -> bool:
        """Return whether an eviction is over after an error; if not, it is tried again later."""
        pod = eviction.pod
        if isinstance(error, api_errors.NotFound):
            return True
        target = f"pods/{quote(name_of(pod))} -n {quote(namespace_of(pod))}"
        if isinstance(error, api_errors.TooManyRequests):
            self.factory.say(f"error when evicting {target} (will retry after 5s): {error}")
        elif not any(cause.reason == NAMESPACE_TERMINATING for cause in error.causes):
            errors.append(CliError(f"error when evicting {target}: {error}"))
            return True
        elif is_being_deleted(pod):
            eviction.accepted = True  # no eviction will be admitted any more, and none is needed
            return False
        else:
            self.factory.say(
                f"error when evicting pod {quote(name_of(pod))} from terminating namespace "
                f"{quote(namespace_of(pod))} (will retry after 5s): {error}"
            )

        eviction.due = later(self.factory.cluster.clock.now(), RETRY_DELAY)
        eviction.pod = self._read(pod) or pod
        return False

    def _print_evicting(self, pod: Object) -> None:
        suffix = " (server dry run)" if self.strategy == SERVER else ""
        self.factory.print(printable(f"evicting pod {namespace_of(pod)}/{name_of(pod)}{suffix}"))

    def _delete_options(self) -> DeleteOptions:
        grace_period = self.options.grace_period if self.options.grace_period >= 0 else None
        return DeleteOptions(grace_period_seconds=grace_period, dry_run=self.strategy == SERVER)

    def _wait_until(
        self, is_done: Callable[[], bool], tries: Callable[[], list[datetime | None]] = list
    ) -> bool:
        """Wait with the time limit of the command. ``tries``: the times of the next tries."""

        def retry() -> datetime | None:
            return min((due for due in (*tries(), *self._skips.values()) if due), default=None)

        timeout = float(self.options.timeout) or None
        return is_done() or self.factory.driver.wait_until(
            is_done, timeout, "until pods are gone", retry=driver.Retry(retry)
        )

    def _read(self, pod: Object) -> Object | None:
        return unless_missing(
            self.factory.client.get, "pods", name_of(pod), namespace=namespace_of(pod)
        )

    def _is_gone(self, pod: Object) -> bool:
        """Return whether a pod is gone, or was deleted so long ago that drain does not wait for it;
        print either."""
        current = self._read(pod)
        if current is None or uid_of(current) != uid_of(pod):
            self._skips.pop(uid_of(pod), None)
            print_operation(
                self.factory,
                pod,
                "deleted" if self.options.disable_eviction else "evicted",
                self.strategy,
            )
            return True

        limit = self.options.skip_wait_for_delete_timeout
        if is_deleted_since(current, limit, self.factory.cluster.clock.now()):
            self.factory.print(
                f"pod {quote(name_of(pod))} has DeletionTimestamp older than {limit} seconds, "
                f"skipping"
            )
            self._skips.pop(uid_of(pod), None)
            return True

        if limit > 0 and is_being_deleted(current):
            self._skips[uid_of(pod)] = later(
                parse_time(current["metadata"]["deletionTimestamp"]), limit + 1
            )

        return False
