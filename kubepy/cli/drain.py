"""``drain``: cordon nodes and evict their pods, waiting until they are gone."""

from __future__ import annotations

from kubepy.cli.command import Invocation, verb
from kubepy.cli.cordon import mark_each, nodes_of
from kubepy.cli.errors import CliError, SilentExit, is_status, raise_all
from kubepy.cli.eviction import Plan, Rules, plan_removal, was_deleted_long_ago
from kubepy.cli.flags import boolean, duration, integer, string
from kubepy.cli.flagsets import CLIENT, SERVER, chunk_size_flag, dry_run, dry_run_flag, selector_flag
from kubepy.cli.output import printer_for
from kubepy.cli.session import Session
from kubepy.cluster.client import DeleteOptions
from kubepy.cluster.meta import Object, name_of, namespace_of, uid_of

EXAMPLES = """
    # Empty a node for maintenance; its daemon pods stay
    kubepy drain node-1 --ignore-daemonsets

    # Also pods that nothing would make again
    kubepy drain node-1 --ignore-daemonsets --force --grace-period=60
"""

FLAGS = [
    dry_run_flag(), selector_flag(), chunk_size_flag(),
    boolean("force", help="Continue even if there are pods that do not declare a controller."),
    boolean("ignore-daemonsets", help="Ignore DaemonSet-managed pods."),
    boolean("delete-emptydir-data", help="Continue even if there are pods using emptyDir (local data that will be "
            "deleted when the node is drained)."),
    integer("grace-period", default=-1, help="Period of time in seconds given to each pod to terminate gracefully. If "
            "negative, the default value specified in the pod will be used."),
    duration("timeout", help="The length of time to wait before giving up, zero means infinite."),
    string("pod-selector", help="Label selector to filter pods on the node."),
    boolean("disable-eviction", help="Force drain to use delete, even if eviction is supported. This will bypass "
            "checking PodDisruptionBudgets, use with caution."),
    integer("skip-wait-for-delete-timeout", help="If pod DeletionTimestamp older than N seconds, skip waiting for the "
            "pod. Seconds must be greater than 0 to skip."),
]

RETRY_DELAY = 5.0  # seconds between tries to evict a pod that a budget protects


@verb("drain", "drain NODE", flags=FLAGS, examples=EXAMPLES)
def drain(session: Session, given: Invocation) -> None:
    """Drain node in preparation for maintenance.

    The node is marked unschedulable, and its pods are evicted, as far as PodDisruptionBudgets allow it. While it waits
    for them it runs the controllers itself, unless `kubepy controller --watch` does.
    """
    infos = nodes_of(session, given, "drain NODE")
    mark_each(session, given, infos, unschedulable=True)
    strategy = dry_run(session, given)
    left: list[str] = []
    errors: list[Exception] = []
    for info in infos:
        try:
            Draining(session, given, info.name, strategy).run()
        except Exception as error:
            if not isinstance(error, CliError) and not hasattr(error, "errors") and not is_status(error):
                raise
            session.say(f'error: unable to drain node "{info.name}" due to error: {error}, continuing command...')
            left.append(info.name)
            errors.append(error)
            continue
        printer_for(session, given, "drained", strategy)(info.content)
    if left:
        session.say("There are pending nodes to be drained:\n" + "\n".join(f" {name}" for name in left))
    if errors:
        session.say("\n".join(line for error in errors for line in _lines(error)))
        raise SilentExit(1)


def _lines(error: Exception) -> list[str]:
    inner = getattr(error, "errors", None)
    return [str(one) for one in inner] if inner else [str(error)]


class Draining:
    """The emptying of one node."""

    def __init__(self, session: Session, given: Invocation, node: str, strategy: str) -> None:
        self.session = session
        self.given = given
        self.node = node
        self.strategy = strategy
        self.started = session.cluster.clock.monotonic()
        self.printed_gone: set[str] = set()

    def run(self) -> None:
        """Raises CliError, AggregateError: pods that may not be removed, or that would not go."""
        plan = self.plan()
        raise_all(CliError(error) for error in plan.errors)
        if plan.warnings:
            self.session.warn(plan.warnings)
        if self.strategy == CLIENT:
            for pod in plan.remove:
                self.session.print(f"evicting pod {namespace_of(pod)}/{name_of(pod)} (dry run)")
            return
        try:
            self.remove(plan.remove)
        except CliError as error:
            self.say_pending(error)
            raise

    def plan(self) -> Plan:
        given = self.given
        pods = self.session.client.list("pods", label_selector=given.pod_selector,
                                        field_selector=f"spec.nodeName={self.node}").items
        rules = Rules(given.force, given.ignore_daemonsets, given.delete_emptydir_data,
                      given.skip_wait_for_delete_timeout)
        return plan_removal(pods, rules, self.missing_daemonset, self.session.cluster.clock.now())

    def missing_daemonset(self, namespace: str, name: str) -> str | None:
        try:
            self.session.client.get("daemonsets.apps", name, namespace=namespace)
        except Exception as error:
            if not is_status(error, "NotFound"):
                raise
            return str(error)
        return None

    def say_pending(self, error: CliError) -> None:
        pending = self.plan().remove
        if pending:
            lines = [f'There are pending pods in node "{self.node}" when an error occurred: {error}',
                     *(f"pod/{name_of(pod)}" for pod in pending)]
            self.session.say("\n".join(lines))

    # --- removing pods

    def remove(self, pods: list[Object]) -> None:
        """Ask for the removal of every pod and wait until all are gone. Raises CliError."""
        waiting = [pod for pod in pods if self.ask(pod)] if self.given.disable_eviction else list(pods)
        asked: dict[str, float] = {uid_of(pod): float("inf") for pod in waiting} if self.given.disable_eviction else {}
        errors: list[Exception] = []

        def look() -> bool:
            for pod in [pod for pod in waiting if uid_of(pod) not in asked or self._is_due(asked[uid_of(pod)])]:
                self._try_eviction(pod, waiting, asked, errors)
            waiting[:] = [pod for pod in waiting if uid_of(pod) not in asked or asked[uid_of(pod)] != float("inf")
                          or not self.is_gone(pod)]
            return not waiting

        if not look() and not self.session.driver.wait_until(look, self.time_left()):
            pod = waiting[0]
            limit = _go_duration(self.given.timeout)
            errors.append(CliError(f'error when evicting pods/"{name_of(pod)}" -n "{namespace_of(pod)}": '
                                   f"global timeout reached: {limit}"))
        raise_all(errors)

    def _is_due(self, moment: float) -> bool:
        return moment <= self.session.cluster.clock.monotonic()

    def _try_eviction(self, pod: Object, waiting: list[Object], asked: dict[str, float],
                      errors: list[Exception]) -> None:
        """Evict one pod; sets when to try again (infinity: never, it only has to go)."""
        suffix = " (server dry run)" if self.strategy == SERVER else ""
        self.session.print(f"evicting pod {namespace_of(pod)}/{name_of(pod)}{suffix}")
        subject = f'pods/"{name_of(pod)}" -n "{namespace_of(pod)}"'
        try:
            self.ask(pod)
        except Exception as error:
            if is_status(error, "TooManyRequests"):
                self.session.say(f"error when evicting {subject} (will retry after 5s): {error}")
                asked[uid_of(pod)] = self.session.cluster.clock.monotonic() + RETRY_DELAY
                return
            if not is_status(error):
                raise
            errors.append(CliError(f"error when evicting {subject}: {error}"))
            waiting.remove(pod)
            return
        asked[uid_of(pod)] = float("inf")
        if self.strategy == SERVER:
            waiting.remove(pod)

    def ask(self, pod: Object) -> bool:
        """Delete or evict a pod; False when it is gone already. Raises Status."""
        grace = self.given.grace_period if self.given.grace_period >= 0 else None
        options = DeleteOptions(grace_period_seconds=grace, dry_run=self.strategy == SERVER)
        try:
            if self.given.disable_eviction:
                self.session.client.delete("pods", name_of(pod), namespace=namespace_of(pod), options=options)
            else:
                self.session.client.evict(name_of(pod), namespace=namespace_of(pod), options=options)
        except Exception as error:
            if is_status(error, "NotFound"):
                return False
            raise
        return True

    def is_gone(self, pod: Object) -> bool:
        """Whether the pod is gone (said once), or has been going for so long that it is not waited for."""
        try:
            found = self.session.client.get("pods", name_of(pod), namespace=namespace_of(pod))
        except Exception as error:
            if not is_status(error, "NotFound"):
                raise
            found = None
        if found is None or uid_of(found) != uid_of(pod):
            word = "deleted" if self.given.disable_eviction else "evicted"
            printer_for(self.session, self.given, word, self.strategy)(pod)
            return True
        limit = self.given.skip_wait_for_delete_timeout
        if was_deleted_long_ago(found, limit, self.session.cluster.clock.now()):
            self.session.print(f'pod "{name_of(pod)}" has DeletionTimestamp older than {limit} seconds, skipping')
            return True
        return False

    def time_left(self) -> float | None:
        if not self.given.timeout:
            return None
        return max(0.0, float(self.given.timeout) - (self.session.cluster.clock.monotonic() - self.started))


def _go_duration(seconds: float) -> str:
    """Seconds as Go prints a duration: ``2s``, ``1m30s``, ``1h0m0s``."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:g}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
