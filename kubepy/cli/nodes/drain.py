"""``drain``: cordon nodes and evict their pods, waiting until they are gone."""

from __future__ import annotations

from kubepy.api.meta import name_of, namespace_of
from kubepy.cli.errors import CliError, SilentExit, is_expected, raise_all
from kubepy.cli.nodes.cordon import mark_each, nodes_of, require_nodes
from kubepy.cli.nodes.eviction import Plan, Rules, plan_removal
from kubepy.cli.nodes.pod_removal import PodRemoval
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import duration_flag as duration
from kubepy.cli.runtime.flags import int_flag as integer
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flagsets import CLIENT, chunk_size_flag, dry_run, dry_run_flag, selector_flag
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api import errors as api_errors

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


@verb("drain", "drain NODE", flags=FLAGS, examples=EXAMPLES)
def drain(factory: Factory, given: Invocation) -> None:
    """Drain node in preparation for maintenance.

    The node is marked unschedulable, and its pods are evicted, as far as PodDisruptionBudgets allow it. While it waits
    for them it runs the controllers itself, unless `kubepy controller --watch` does.
    """
    require_nodes(given, "drain NODE")
    strategy = dry_run(factory, given)
    _check_pod_selector(given)
    infos = nodes_of(factory, given)
    mark_each(factory, given, infos, strategy, unschedulable=True)
    left: list[str] = []
    errors: list[Exception] = []
    for info in infos:
        try:
            Draining(factory, given, info.name, strategy).run()
        except Exception as error:
            if not is_expected(error):
                raise
            factory.say(f"error: unable to drain node {quote(info.name)} due to error: {error}, continuing command...")
            left.append(info.name)
            errors.append(error)
            continue
        printer_for(factory, given, "drained", strategy)(info.content)
    if left:
        factory.say("There are pending nodes to be drained:\n" + "\n".join(f" {name}" for name in left))
    if errors:
        factory.say("\n".join(line for error in errors for line in _lines(error)))
        raise SilentExit(1)


def _check_pod_selector(given: Invocation) -> None:
    from kubepy.api.selectors import SelectorError, parse_labels

    try:
        parse_labels(given.pod_selector)
    except SelectorError:
        raise CliError("--pod-selector=<pod_selector> must be a valid label selector") from None


def _lines(error: Exception) -> list[str]:
    inner = getattr(error, "errors", None)
    return [str(one) for one in inner] if inner else [str(error)]


class Draining:
    """The emptying of one node."""

    def __init__(self, factory: Factory, given: Invocation, node: str, strategy: str) -> None:
        self.factory = factory
        self.given = given
        self.node = node
        self.strategy = strategy

    def run(self) -> None:
        """Raises CliError, AggregateError: pods that may not be removed, or that would not go."""
        plan = self.plan()
        raise_all(CliError(error) for error in plan.errors)
        if plan.warnings:
            self.factory.warn(plan.warnings)
        if self.strategy == CLIENT:
            for pod in plan.remove:
                self.factory.print(printable(f"evicting pod {namespace_of(pod)}/{name_of(pod)} (dry run)"))
            return
        try:
            PodRemoval(self.factory, self.given, self.strategy).run(plan.remove)
        except Exception as error:
            if not is_expected(error):
                raise
            self.say_pending(error)
            raise

    def plan(self) -> Plan:
        given = self.given
        pods = self.factory.client.list("pods", label_selector=given.pod_selector,
                                        field_selector=f"spec.nodeName={self.node}").items
        rules = Rules(given.force, given.ignore_daemonsets, given.delete_emptydir_data,
                      given.skip_wait_for_delete_timeout)
        return plan_removal(pods, rules, self.missing_daemonset, self.factory.cluster.clock.now())

    def missing_daemonset(self, namespace: str, name: str) -> str | None:
        try:
            self.factory.client.get("daemonsets.apps", name, namespace=namespace)
        except api_errors.NotFound as error:
            return str(error)
        return None

    def say_pending(self, error: Exception) -> None:
        pending = self.plan().remove
        if pending:
            lines = [f"There are pending pods in node {quote(self.node)} when an error occurred: {error}",
                     *(f"pod/{name_of(pod)}" for pod in pending)]
            self.factory.say("\n".join(lines))
