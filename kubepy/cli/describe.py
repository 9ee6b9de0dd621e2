"""``describe``."""

from __future__ import annotations

from kubepy.api.meta import Object, name_of, uid_of
from kubepy.cli.describers import describer_for
from kubepy.cli.describers.writer import DescribeContext, PrefixWriter
from kubepy.cli.errors import CliError, raise_together
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flagsets import all_namespaces_flag, chunk_size_flag, filename_flags, selector_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.verbs import Invocation, find, verb
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api import errors as api_errors

EXAMPLES = """
    # Everything about a DaemonSet
    kubepy describe ds log-agent

    # All pods whose names begin with log-agent-
    kubepy describe pods log-agent-

    # What runs on a node and how much of it is requested
    kubepy describe node node-1
"""

FLAGS = [
    *filename_flags("containing the resource to describe."), selector_flag(), all_namespaces_flag(), chunk_size_flag(),
    boolean("show-events", default=True, help="If true, display events related to the described object."),
]


@verb("describe", "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME)", flags=FLAGS, examples=EXAMPLES)
def describe(factory: Factory, given: Invocation) -> None:
    """Show details of a specific resource or group of resources, and of what belongs to them.

    A name that is no object's may be the beginning of several.
    """
    if not given.args and not given.filename and not given.kustomize:
        raise CliError("You must specify the type of resource to describe. Use \"kubepy api-resources\" for a complete "
                       "list of supported resources.\n")
    infos, errors = find(factory, given, bare_types=True, latest=True).infos()
    with_events = given.show_events and (given.changed("show-events") or not (errors or len(infos) > 1))
    if len(given.args) == 2 and len(errors) == 1 and isinstance(errors[0], api_errors.NotFound):
        _describe_prefix(factory, given, errors[0], given.show_events and given.changed("show-events"))
        return
    factory.print("\n\n".join(description(factory, info, with_events) for info in infos), end="")
    if not infos and not errors:
        factory.say("No resources found" if given.all_namespaces else
                    f"No resources found in {printable(factory.namespace)} namespace.")
    raise_together(errors)


def _describe_prefix(factory: Factory, given: Invocation, missing: Exception, with_events: bool) -> None:
    resource, prefix = given.args
    infos = [info for info in find(factory, given, args=[resource], bare_types=True).all_infos()
             if info.name.startswith(prefix)]
    if not infos:
        raise missing
    factory.print("\n".join(description(factory, info, with_events) for info in infos), end="")


def description(factory: Factory, info: Info, with_events: bool) -> str:
    """What describe says about one object, ended by a newline."""

    def list_objects(resource: str, namespace: str | None) -> list[Object]:
        return factory.client.list(resource, namespace=namespace).items

    found = _events_about(factory, info.content) if with_events else None
    writer = PrefixWriter()
    describer_for(info.resource.key)(writer, info.content,
                                     DescribeContext(factory.cluster.clock.now(), found, list_objects))
    return writer.text()


def _events_about(factory: Factory, obj: Object) -> list[Object]:
    """The events whose involvedObject is this one; a node's may name it instead of its uid."""
    uids = {uid_of(obj), name_of(obj)} if obj["kind"] == "Node" else {uid_of(obj)}
    namespace = obj["metadata"].get("namespace")
    return [event for event in factory.client.list("events", namespace=namespace).items
            if event["involvedObject"].get("uid") in uids
            and (event["involvedObject"].get("kind"), event["involvedObject"].get("name"))
            == (obj["kind"], name_of(obj))]
