"""``kubepy cluster-info`` and ``cluster-info dump``. Upstream: ``kubectl/pkg/cmd/clusterinfo``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kubepy.api.meta import Object
from kubepy.cli.errors import NO_CONTAINERS, CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import duration_flag as duration
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flags import string_slice_flag as strings
from kubepy.cli.runtime.flagsets import output_flags
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import NOTHING, Invocation, changed_flag, verb
from kubepy.quoting import printable

# Each resource of a namespace that is dumped, with the name of its file.
DUMPED = (("events", "events"), ("replicationcontrollers", "replication-controllers"), ("services", "services"),
          ("daemonsets.apps", "daemonsets"), ("deployments.apps", "deployments"), ("replicasets.apps", "replicasets"),
          ("pods", "pods"))
EXTENSIONS = {"json": ".json", "yaml": ".yaml"}
DUMP_FLAGS = [
    *(changed_flag(flag, default="json") if flag.long == "output" else flag for flag in output_flags()),
    string("output-directory", help="Where to output the files. If empty or '-' uses stdout, otherwise creates a "
           "directory hierarchy in that directory."),
    strings("namespaces", help="A comma separated list of namespaces to dump."),
    boolean("all-namespaces", "A", help="If true, dump all namespaces. If true, --namespaces is ignored."),
    duration("pod-running-timeout", default=20.0, help=NOTHING),
]


@verb("cluster-info", "cluster-info", examples="""
# Where the cluster is
kubepy cluster-info

# Everything in it, for a bug report
kubepy cluster-info dump --output-directory=/tmp/dump
""")
def cluster_info(factory: Factory, given: Invocation) -> None:
    """Display the folder that is the cluster."""
    factory.require_cluster()
    factory.print(f"Kubernetes control plane is running at file://{printable(os.path.abspath(factory.folder))}\n")
    factory.print("To further debug and diagnose cluster problems, use 'kubepy cluster-info dump'.")


@verb("dump", "dump", flags=DUMP_FLAGS, examples="""
# Everything in the current namespace and in kube-system
kubepy cluster-info dump

# All namespaces, as files
kubepy cluster-info dump --all-namespaces --output-directory=/tmp/dump
""")
def dump(factory: Factory, given: Invocation) -> None:
    """Dump relevant information for debugging and diagnosis: nodes, and of each namespace its events, services,
    workloads and pods. Pods have no logs here."""
    printer = printer_for(factory, given, typed=True)
    extension = EXTENSIONS.get(given.output, ".txt")
    with _output(factory, given, f"nodes{extension}"):
        printer(_listed(factory, "nodes", None, given))
    for namespace in _namespaces(factory, given):
        for resource, name in DUMPED:
            listed = _listed(factory, resource, namespace, given)
            with _output(factory, given, os.path.join(namespace, name + extension)):
                printer(listed)
        for pod in factory.client.list("pods", namespace=namespace).items:
            with _output(factory, given, os.path.join(namespace, pod["metadata"]["name"], "logs.txt")):
                _print_logs(factory, pod)
    if given.output_directory not in ("", "-"):
        factory.print(f"Cluster info dumped to {printable(given.output_directory)}")


def _namespaces(factory: Factory, given: Invocation) -> list[str]:
    if given.all_namespaces:
        return [one["metadata"]["name"] for one in factory.client.list("namespaces").items]
    return given.namespaces or ["kube-system", factory.namespace]


def _listed(factory: Factory, key: str, namespace: str | None, given: Invocation) -> Object:
    """A list as the API answers it: its items do not say what they are. Raises CliError for -o name."""
    resource = factory.scheme.find(key)
    assert resource is not None
    if given.output == "name":
        raise CliError(f"list types are not supported by name printing: *{resource.version}.{resource.kind}List")
    found = factory.client.list(resource.key, namespace=namespace)
    items = [{key: value for key, value in one.items() if key not in ("apiVersion", "kind")} for one in found.items]
    return {"kind": f"{resource.kind}List", "apiVersion": resource.api_version,
            "metadata": {"resourceVersion": found.resource_version}, "items": items}


@contextmanager
def _output(factory: Factory, given: Invocation, name: str) -> Iterator[None]:
    """What is printed in the block goes to a file, if there is a folder for it."""
    if given.output_directory in ("", "-"):
        yield
        return
    path = os.path.join(given.output_directory, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    stdout = factory.stdout
    with open(path, "w", encoding="utf-8") as factory.stdout:
        try:
            yield
        finally:
            factory.stdout = stdout


def _print_logs(factory: Factory, pod: Object) -> None:
    where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    for container in [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]:
        factory.print(f"==== START logs for container {container['name']} of pod {where} ====")
        factory.print(f"Request log error: {NO_CONTAINERS}")
        factory.print(f"==== END logs for container {container['name']} of pod {where} ====")
