"""``kubepy describe``. Upstream: ``kubectl/pkg/cmd/describe/describe.go``,
``kubectl/pkg/describe``."""

from __future__ import annotations

from datetime import UTC

from kubepy.api.meta import Object, name_of, uid_of
from kubepy.cli.describers import describer_for
from kubepy.cli.describers.writer import ZONE, DescribeContext, PrefixWriter
from kubepy.cli.errors import CliError, raise_together
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command, ticking
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.options import (
    AllNamespacesOptions,
    ChunkSizeOptions,
    KustomizeOptions,
    SelectorOptions,
    filename_flag,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.kubelet import unknowns

EXAMPLES = """
# A node, and the pods on it
kubepy describe node node-1

# A DaemonSet with its events
kubepy describe ds/log-agent

# All pods of the namespace
kubepy describe pods

# The pods with a label
kubepy describe pods -l app=web

# All pods whose names begin with a word,
# as those of a Deployment do
kubepy describe pods web

# The objects of a file
kubepy describe -f web.yaml

# Without events
kubepy describe pod task --show-events=false
"""


class DescribeOptions(KustomizeOptions, SelectorOptions, AllNamespacesOptions, ChunkSizeOptions):
    """The flags of ``describe``."""

    filename: list[str] = filename_flag("containing the resource to describe.")
    show_events: bool = bool_flag(
        "show-events", default=True, help="If true, display events related to the described object."
    )


@ticking
@command(
    "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME)",
    DescribeOptions,
    examples=EXAMPLES,
)
def describe(factory: Factory, options: DescribeOptions) -> None:
    """Show details of a specific resource or group of resources, and of what belongs to them.

    A name that is no object's may be the beginning of several.
    """
    if not options.args and not options.filename and not options.kustomize:
        raise CliError(
            'You must specify the type of resource to describe. Use "kubepy api-resources" for a '
            "complete "
            "list of supported resources.\n"
        )

    infos, errors = (
        Builder(factory, options, bare_types=True, latest=True, related=True).do().infos()
    )
    with_events = options.show_events and (
        options.changed("show-events") or not (errors or len(infos) > 1)
    )
    if len(options.args) == 2 and len(errors) == 1 and isinstance(errors[0], api_errors.NotFound):
        resource, prefix = options.args
        infos = [
            info
            for info in Builder(factory, options, args=[resource], bare_types=True).do().all_infos()
            if info.name.startswith(prefix)
        ]
        if not infos:
            raise errors[0]
        with_events = options.show_events and options.changed("show-events")
        for info in infos:
            factory.print(description(factory, info, with_events))
        return

    factory.print(
        "\n\n".join(description(factory, info, with_events) for info in infos if info.name), end=""
    )
    if not all(info.name for info in infos):
        errors.append(CliError("resource name may not be empty"))
    if not infos and not errors:
        factory.say(
            "No resources found"
            if options.all_namespaces
            else f"No resources found in {printable(factory.namespace)} namespace."
        )

    raise_together(errors)


def description(factory: Factory, info: Info, with_events: bool) -> str:
    """Return the text that describe prints of an object, ended by a newline."""

    def list_objects(resource: str, namespace: str | None) -> list[Object]:
        return factory.client.list(resource, namespace=namespace).items

    events = _events_about(factory, info.content) if with_events else None
    writer = PrefixWriter()
    clock = factory.cluster.clock
    ZONE.set(UTC if clock.own else None)
    notes: list[str] = []
    if info.resource.key == "pods":
        notes = unknowns.notes_on_unknowns(factory.client, info.content)
    context = DescribeContext(clock.now(), events, list_objects, notes)
    describer_for(info.resource.key)(writer, info.content, context)
    return writer.text()


def _events_about(factory: Factory, obj: Object) -> list[Object]:
    """Return the events whose involvedObject is this one; a node's may have its name for a uid."""
    uids = {uid_of(obj), name_of(obj)} if obj["kind"] == "Node" else {uid_of(obj)}
    namespace = obj["metadata"].get("namespace")
    return [
        event
        for event in factory.client.list("events", namespace=namespace).items
        if event["involvedObject"].get("uid") in uids
        and (event["involvedObject"].get("kind"), event["involvedObject"].get("name"))
        == (obj["kind"], name_of(obj))
    ]
