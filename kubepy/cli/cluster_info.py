"""``kubepy cluster-info`` and ``cluster-info dump``. Upstream: ``kubectl/pkg/cmd/clusterinfo``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kubepy.api.meta import Object, nested_list
from kubepy.cli.errors import NO_CONTAINERS, CliError
from kubepy.cli.runtime.command import command, ticking
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag, string_flag, string_slice_flag
from kubepy.cli.runtime.options import NOTHING, Options, PrintFlags, output_flag
from kubepy.cli.runtime.output import printer_for
from kubepy.quoting import printable

# The resources of a namespace that are dumped, with the names of their files.
DUMPED = (
    ("events", "events"),
    ("replicationcontrollers", "replication-controllers"),
    ("services", "services"),
    ("daemonsets.apps", "daemonsets"),
    ("deployments.apps", "deployments"),
    ("replicasets.apps", "replicasets"),
    ("pods", "pods"),
)
EXTENSIONS = {"json": ".json", "yaml": ".yaml"}


class DumpOptions(PrintFlags):
    """The flags of ``dump``."""

    output: str = output_flag(default="json")
    output_directory: str = string_flag(
        "output-directory",
        help="Where to output the files. If empty or '-' uses "
        "stdout, otherwise creates a directory hierarchy in that directory.",
    )
    namespaces: list[str] = string_slice_flag(
        "namespaces", help="A comma separated list of namespaces to dump."
    )
    all_namespaces: bool = bool_flag(
        "all-namespaces",
        "A",
        help="If true, dump all namespaces. If true, --namespaces is ignored.",
    )
    pod_running_timeout: float = duration_flag("pod-running-timeout", default=20.0, help=NOTHING)


@ticking
@command(
    "cluster-info",
    Options,
    examples="""
# Where the cluster is
kubepy cluster-info

# Everything in it, for a bug report
kubepy cluster-info dump --output-directory=/tmp/dump
""",
)
def cluster_info(factory: Factory, options: Options) -> None:
    """Display where the cluster is kept: its folder, or its etcd."""
    factory.require_cluster()
    place = printable(factory.server)
    factory.print(f"Kubernetes control plane is running at {place}\n")
    factory.print(
        f"To further debug and diagnose cluster problems, use '{factory.program} cluster-info "
        f"dump'."
    )


@ticking
@command(
    "dump",
    DumpOptions,
    examples="""
# Everything in the current namespace and in kube-system
kubepy cluster-info dump

# As files of a folder
kubepy cluster-info dump --output-directory=/tmp/dump

# Everything in all namespaces
kubepy cluster-info dump --all-namespaces

# Everything in some namespaces, as YAML
kubepy cluster-info dump --namespaces=default,shop --output-directory=/tmp/two -o yaml
""",
)
def dump(factory: Factory, options: DumpOptions) -> None:
    """Dump relevant information for debugging and diagnosis: nodes, and of each namespace its events, services,
    workloads and pods. Pods have no logs here."""  # noqa: E501
    printer = printer_for(factory, options, typed=True)
    factory.catch_up()
    extension = EXTENSIONS.get(options.output, ".txt")
    with _output(factory, options, f"nodes{extension}"):
        printer(_listed(factory, "nodes", None, options))
    namespaces = options.namespaces or ["kube-system", factory.namespace]
    if options.all_namespaces:
        namespaces = [
            namespace["metadata"]["name"] for namespace in factory.client.list("namespaces").items
        ]

    for namespace in namespaces:
        for resource, name in DUMPED:
            listed = _listed(factory, resource, namespace, options)
            with _output(factory, options, os.path.join(namespace, name + extension)):
                printer(listed)
        for pod in factory.client.list("pods", namespace=namespace).items:
            with _output(
                factory, options, os.path.join(namespace, pod["metadata"]["name"], "logs.txt")
            ):
                pod_name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                for container in [
                    *nested_list(pod["spec"], "initContainers"),
                    *pod["spec"]["containers"],
                ]:
                    factory.print(
                        f"==== START logs for container {container['name']} of pod {pod_name} ===="
                    )
                    factory.print(f"Request log error: {NO_CONTAINERS}")
                    factory.print(
                        f"==== END logs for container {container['name']} of pod {pod_name} ===="
                    )

    if options.output_directory not in ("", "-"):
        factory.print(f"Cluster info dumped to {printable(options.output_directory)}")


def _listed(factory: Factory, key: str, namespace: str | None, options: DumpOptions) -> Object:
    """Return a list as the API answers it, its items without kind and apiVersion. Raises CliError
    for -o name."""
    resource = factory.scheme.find(key)
    assert resource is not None
    if options.output == "name":
        raise CliError(
            f"list types are not supported by name printing: "
            f"*{resource.version}.{resource.kind}List"
        )

    listed = factory.client.list(resource.key, namespace=namespace)
    items = [
        {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
        for obj in listed.items
    ]
    return {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": listed.resource_version},
        "items": items or None,
    }  # as protobuf brings it


@contextmanager
def _output(factory: Factory, options: DumpOptions, name: str) -> Iterator[None]:
    """Redirect the output of the block to a file, if --output-directory names a folder."""
    if options.output_directory in ("", "-"):
        yield
        return
    path = os.path.join(options.output_directory, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    stdout = factory.stdout
    with open(path, "w", encoding="utf-8") as factory.stdout:
        try:
            yield
        finally:
            factory.stdout = stdout
