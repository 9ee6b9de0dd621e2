"""``kubepy top``: the cpu and memory that pods are annotated with, as ``metrics.k8s.io`` serves
them.

Upstream: ``kubectl/pkg/cmd/top``, ``kubectl/pkg/metricsutil``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, name_of, namespace_of, status_of
from kubepy.api.values.quantity import Quantity
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import command, ticking
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag
from kubepy.cli.runtime.options import AllNamespacesOptions, FieldSelectorOptions, SelectorOptions
from kubepy.cli.runtime.tables import format_lines
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import selectors
    from kubepy.api.values import goformat

POD_METRICS = "pods.metrics.k8s.io"
NODE_METRICS = "nodes.metrics.k8s.io"
NOT_YET = "metrics not available yet"
CREATION_DELAY = 120.0  # seconds in which a pod may be without metrics
NODE_COLUMNS = ("NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)")
POD_COLUMNS = ("NAME", "CPU(cores)", "MEMORY(bytes)")
UNKNOWN = "<unknown>"
MEBIBYTE = 1024 * 1024

Amounts = Mapping[str, Quantity]


class TopOptions(SelectorOptions):
    """The flags of both commands."""

    sort_by: str = string_flag(
        "sort-by",
        help="If non-empty, sort the list using specified field. The field can be "
        "either 'cpu' or 'memory'.",
    )
    no_headers: bool = bool_flag("no-headers", help="If present, print output without headers.")
    use_protocol_buffers: bool = bool_flag(
        "use-protocol-buffers",
        default=True,
        help="Accepted as kubectl does; there is no API that is accessed.",
    )

    def name(self, usage: str) -> str:
        """Return the name of the one object that is asked for, "" for all of them. Raises
        CliError."""
        if len(self.args) > 1:
            self.usage_error(usage)
        if self.sort_by not in ("", "cpu", "memory"):
            raise CliError("--sort-by accepts only cpu or memory")
        if self.args:
            return self.args[0]
        return ""


class TopPodOptions(TopOptions, AllNamespacesOptions, FieldSelectorOptions):
    """The flags of ``top pod``."""

    containers: bool = bool_flag(
        "containers", help="If present, print usage of containers within a pod."
    )
    sum: bool = bool_flag("sum", help="Print the sum of the resource usage.")
    show_swap: bool = bool_flag("show-swap", help="Print pod resources related to swap memory.")


class TopNodeOptions(TopOptions):
    """The flags of ``top node``."""

    show_capacity: bool = bool_flag(
        "show-capacity",
        help="Print node resources based on Capacity instead of "
        "Allocatable (default) of the nodes.",
    )
    show_swap: bool = bool_flag("show-swap", help="Print node resources related to swap memory.")


class UsageRow(NamedTuple):
    """A line of a table: its first cells, and the amounts after them."""

    names: tuple[str, ...]
    amounts: Amounts


def check_selector(text: str) -> None:
    """Raise CliError for a label selector that cannot be read."""
    try:
        selectors.parse_labels(text)
    except selectors.SelectorError as error:
        raise CliError(str(error)) from None


def sort_key(row: UsageRow, sort_by: str) -> tuple[object, ...]:
    """Order by name, or by falling amount."""
    if not sort_by:
        return row.names
    amount = row.amounts.get(sort_by) or Quantity(0)
    used = amount.milli_value() if sort_by == "cpu" else amount.value()
    return (-used, *row.names)


def amount_cell(resource: str, amounts: Amounts) -> str:
    amount = amounts.get(resource) or Quantity(0)
    if resource == "cpu":
        return f"{amount.milli_value()}m"
    return f"{amount.value() // MEBIBYTE}Mi"


# --- pods -----------------------------------------------------------------------------------------


@ticking
@command(
    "pod [NAME | -l label]",
    TopPodOptions,
    examples="""
# All pods of the namespace
kubepy top pod

# The pods with a label
kubepy top pod -l app=web

# The containers of one pod
kubepy top pod web-0 --containers

# The pods that use the most memory, in all namespaces
kubepy top pod -A --sort-by=memory
""",
)
def top_pod(factory: Factory, options: TopPodOptions) -> None:
    """Display resource (CPU/memory) usage of pods.

    Pods use what their annotations kubepy.dev/cpu and kubepy.dev/memory say; others have no metrics."""  # noqa: E501
    name = options.name("pod [NAME | -l label]")
    if name and (options.selector or options.field_selector):
        raise CliError("only one of NAME or selector can be provided")
    if name and options.all_namespaces:
        raise CliError("an empty namespace may not be set when a resource name is provided")
    check_selector(options.selector)
    factory.catch_up()
    metrics = read_pod_metrics(factory, options, name)
    if not metrics:
        verify_empty_metrics(factory, options)
        factory.say(
            "No resources found"
            if options.all_namespaces
            else f"No resources found in {factory.namespace} namespace."
        )
        return

    print_pods(factory, options, metrics)


def read_pod_metrics(factory: Factory, options: TopPodOptions, name: str) -> list[Object]:
    client = factory.client
    if name:
        return [client.get(POD_METRICS, name, namespace=factory.namespace)]
    namespace = None if options.all_namespaces else factory.namespace
    return list(
        client.list(
            POD_METRICS,
            namespace=namespace,
            label_selector=options.selector,
            field_selector=options.field_selector,
        ).items
    )


def verify_empty_metrics(factory: Factory, options: TopPodOptions) -> None:
    """Raise CliError if there are pods, and so metrics are missing (``verifyEmptyMetrics``)."""
    pods = factory.client.list(
        "pods",
        namespace=factory.namespace,
        label_selector=options.selector,
        field_selector=options.field_selector,
    ).items
    for pod in pods:
        age = (
            factory.cluster.clock.now() - parse_time(pod["metadata"]["creationTimestamp"])
        ).total_seconds()
        if age > CREATION_DELAY:
            raise CliError(
                f"Metrics not available for pod {namespace_of(pod)}/{name_of(pod)}, age: "
                f"{goformat.format_duration(age)}"
            )

    if pods:
        raise CliError(NOT_YET)


def print_pods(factory: Factory, options: TopPodOptions, metrics: Iterable[Object]) -> None:
    resources = ("cpu", "memory", *(("swap",) if options.show_swap else ()))
    columns = [*POD_COLUMNS, *(("SWAP(bytes)",) if options.show_swap else ())]
    rows = sorted(
        (pod_row(options, entry) for entry in metrics),
        key=lambda row: sort_key(row[0], options.sort_by),
    )
    lines: list[list[str]] = []
    if not options.no_headers:
        columns[:0] = [
            *(("NAMESPACE",) if options.all_namespaces else ()),
            *(("POD",) if options.containers else ()),
        ]
        lines.append(columns)

    for pod, containers in rows:
        if options.containers:
            shown = sorted(containers, key=lambda row: sort_key(row, options.sort_by))
        else:
            shown = [pod]
        lines += [
            [
                *(pod.names if row is not pod else ()),
                *row.names,
                *(amount_cell(resource, row.amounts) for resource in resources),
            ]
            for row in shown
        ]

    if options.sum:
        total = summed(pod.amounts for pod, _ in rows)
        lines += [
            [*[""] * (len(columns) - 2), "________", "________"],
            [*[""] * (len(columns) - 2), *(amount_cell(resource, total) for resource in resources)],
        ]

    factory.print(format_lines(["\t".join([*line, ""]) for line in lines]), end="")


def pod_row(options: TopPodOptions, metrics: Object) -> tuple[UsageRow, list[UsageRow]]:
    """Return the row of a pod and those of its containers."""
    containers = [
        UsageRow((container["name"],), parsed(container["usage"]))
        for container in metrics["containers"]
    ]
    names = (
        (namespace_of(metrics), name_of(metrics)) if options.all_namespaces else (name_of(metrics),)
    )
    return UsageRow(names, summed(container.amounts for container in containers)), containers


def parsed(usage: Mapping[str, str]) -> dict[str, Quantity]:
    return {resource: Quantity.parse(amount) for resource, amount in usage.items()}


def summed(usages: Iterable[Amounts]) -> dict[str, Quantity]:
    """Add up amounts."""
    added: dict[str, Quantity] = {}
    for usage in usages:
        for resource, amount in usage.items():
            added[resource] = added.get(resource, Quantity(0)) + amount
    return added


# --- nodes ----------------------------------------------------------------------------------------


@ticking
@command(
    "node [NAME | -l label]",
    TopNodeOptions,
    examples="""
# All nodes
kubepy top node

# One of them
kubepy top node node-1
""",
)
def top_node(factory: Factory, options: TopNodeOptions) -> None:
    """Display resource (CPU/memory) usage of nodes.

    A node uses what its pods use, as their annotations say it."""
    name = options.name("node [NAME | -l label]")
    if name and options.selector:
        raise CliError("only one of NAME or --selector can be provided")
    check_selector(options.selector)
    factory.catch_up()
    client = factory.client
    metrics: Sequence[Object] = (
        [client.get(NODE_METRICS, name)]
        if name
        else client.list(NODE_METRICS, label_selector=options.selector).items
    )
    if not metrics:
        raise CliError(NOT_YET)
    if name:
        nodes = [client.get("nodes", name)]
    else:
        nodes = client.list("nodes", label_selector=options.selector).items

    print_nodes(factory, options, metrics, nodes)


def print_nodes(
    factory: Factory, options: TopNodeOptions, metrics: Iterable[Object], nodes: Iterable[Object]
) -> None:
    field = "capacity" if options.show_capacity else "allocatable"
    available = {name_of(node): parsed(status_of(node).get(field) or {}) for node in nodes}
    rows = sorted(
        (UsageRow((name_of(entry),), parsed(entry["usage"])) for entry in metrics),
        key=lambda row: sort_key(row, options.sort_by),
    )
    swap = [UNKNOWN, UNKNOWN] if options.show_swap else []  # no node here says that it has any
    columns = [*NODE_COLUMNS, *(("SWAP(bytes)", "SWAP(%)") if options.show_swap else ())]
    lines = [] if options.no_headers else [columns]
    for row in rows:
        line = list(row.names)
        for resource in ("cpu", "memory"):
            line.append(amount_cell(resource, row.amounts))
            if (whole := available.get(row.names[0], {}).get(resource)) is not None:
                line.append(percentage(row.amounts.get(resource, Quantity(0)), whole))
        lines.append([*line, *swap])

    unmeasured = sorted(available.keys() - {row.names[0] for row in rows})
    lines += [[node, *[UNKNOWN] * (len(columns) - 1)] for node in unmeasured]
    factory.print(format_lines(["\t".join([*line, ""]) for line in lines]), end="")


def percentage(used: Quantity, whole: Quantity) -> str:
    fraction = 0.0 if whole.is_zero() else used.milli_value() / whole.milli_value() * 100
    return f"{int(fraction)}%"
