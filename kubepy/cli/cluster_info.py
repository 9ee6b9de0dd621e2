"""``kubepy cluster-info`` and ``cluster-info dump``. Upstream: ``kubectl/pkg/cmd/clusterinfo``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kubepy.api.meta import Object
from kubepy.cli.commands import NO_CONTAINERS
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import Invocation, verb
from kubepy.cli.runtime.flags import boolean, duration, string, strings
from kubepy.cli.runtime.flagsets import output_flags
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.session import NOTHING, Session
from kubepy.quoting import printable

# Each resource of a namespace that is dumped, with the name of its file.
DUMPED = (("events", "events"), ("replicationcontrollers", "replication-controllers"), ("services", "services"),
          ("daemonsets.apps", "daemonsets"), ("deployments.apps", "deployments"), ("replicasets.apps", "replicasets"),
          ("pods", "pods"))
EXTENSIONS = {"json": ".json", "yaml": ".yaml"}
DUMP_FLAGS = [
    *(flag._replace(default="json") if flag.name == "output" else flag for flag in output_flags()),
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
def cluster_info(session: Session, given: Invocation) -> None:
    """Display the folder that is the cluster."""
    session.require_cluster()
    session.print(f"Kubernetes control plane is running at file://{printable(os.path.abspath(session.folder))}\n")
    session.print("To further debug and diagnose cluster problems, use 'kubepy cluster-info dump'.")


@verb("dump", "dump", flags=DUMP_FLAGS, examples="""
# Everything in the current namespace and in kube-system
kubepy cluster-info dump

# All namespaces, as files
kubepy cluster-info dump --all-namespaces --output-directory=/tmp/dump
""")
def dump(session: Session, given: Invocation) -> None:
    """Dump relevant information for debugging and diagnosis: nodes, and of each namespace its events, services,
    workloads and pods. Pods have no logs here."""
    printer = printer_for(session, given, typed=True)
    extension = EXTENSIONS.get(given.output, ".txt")
    with _output(session, given, f"nodes{extension}"):
        printer(_listed(session, "nodes", None, given))
    for namespace in _namespaces(session, given):
        for resource, name in DUMPED:
            listed = _listed(session, resource, namespace, given)
            with _output(session, given, os.path.join(namespace, name + extension)):
                printer(listed)
        for pod in session.client.list("pods", namespace=namespace).items:
            with _output(session, given, os.path.join(namespace, pod["metadata"]["name"], "logs.txt")):
                _print_logs(session, pod)
    if given.output_directory not in ("", "-"):
        session.print(f"Cluster info dumped to {printable(given.output_directory)}")


def _namespaces(session: Session, given: Invocation) -> list[str]:
    if given.all_namespaces:
        return [one["metadata"]["name"] for one in session.client.list("namespaces").items]
    return given.namespaces or ["kube-system", session.namespace]


def _listed(session: Session, key: str, namespace: str | None, given: Invocation) -> Object:
    """A list as the API answers it: its items do not say what they are. Raises CliError for -o name."""
    resource = session.scheme.find(key)
    assert resource is not None
    if given.output == "name":
        raise CliError(f"list types are not supported by name printing: *{resource.version}.{resource.kind}List")
    found = session.client.list(resource.key, namespace=namespace)
    items = [{key: value for key, value in one.items() if key not in ("apiVersion", "kind")} for one in found.items]
    return {"kind": f"{resource.kind}List", "apiVersion": resource.api_version,
            "metadata": {"resourceVersion": found.resource_version}, "items": items}


@contextmanager
def _output(session: Session, given: Invocation, name: str) -> Iterator[None]:
    """What is printed in the block goes to a file, if there is a folder for it."""
    if given.output_directory in ("", "-"):
        yield
        return
    path = os.path.join(given.output_directory, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    stdout = session.stdout
    with open(path, "w", encoding="utf-8") as session.stdout:
        try:
            yield
        finally:
            session.stdout = stdout


def _print_logs(session: Session, pod: Object) -> None:
    where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    for container in [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]:
        session.print(f"==== START logs for container {container['name']} of pod {where} ====")
        session.print(f"Request log error: {NO_CONTAINERS}")
        session.print(f"==== END logs for container {container['name']} of pod {where} ====")
