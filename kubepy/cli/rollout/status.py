"""``rollout status``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError, unless_missing
from kubepy.cli.rollout.flags import COMMON, latest_objects, require_resources, require_revision
from kubepy.cli.rollout.viewers import Viewer, viewer_for
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import duration_flag as duration
from kubepy.cli.runtime.flags import int_flag as integer
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.quoting import printable

EXAMPLES = """
    # Wait until a DaemonSet is rolled out; the controllers run meanwhile
    kubepy rollout status ds/log-agent

    # Say how far it is, and do not wait
    kubepy rollout status ds/log-agent --watch=false
"""

FLAGS = [
    *COMMON,
    boolean("watch", "w", default=True, help="Watch the status of the rollout until it's done."),
    integer("revision", help="Pin to a specific revision for showing its status. Defaults to 0 (last revision)."),
    duration("timeout", help="The length of time to wait before ending watch, zero means never. Any other values "
             "should contain a corresponding time unit (e.g. 1s, 2m, 3h)."),
]


@verb("status", "status (TYPE NAME | TYPE/NAME)", flags=FLAGS, examples=EXAMPLES)
def status(factory: Factory, given: Invocation) -> None:
    """Show the status of the rollout, and wait until it is done.

    While it waits it runs the controllers itself, unless `kubepy controller --watch` does.
    """
    require_resources(given)
    require_revision(given)
    found = False

    def follow(info: Info) -> None:
        nonlocal found
        found = True
        Following(factory, given, info, viewer_for(info.resource)).run()

    latest_objects(factory, given).visit(follow)
    if not found:
        factory.say(printable(f"No resources found in {factory.namespace} namespace."))


class Following:
    """One object's rollout: every state that has something to say is printed once."""

    def __init__(self, factory: Factory, given: Invocation, info: Info, viewer: Viewer) -> None:
        self.factory = factory
        self.given = given
        self.info = info
        self.viewer = viewer
        self.seen = ""
        self.done = False

    def run(self) -> None:
        """Raises CliError when the time is over, the object gone, or the rollout has failed."""
        if self.look() or not self.given.watch:
            return
        if not self.factory.driver.wait_until(self.look, self.given.timeout or None, self.info.printed_name):
            raise CliError("timed out waiting for the condition")

    def look(self) -> bool:
        """Print the state if it has changed; whether the rollout is done, which it stays."""
        obj = self._read()
        version = obj["metadata"].get("resourceVersion", "")
        if self.done or version == self.seen:
            return self.done
        progress = self.viewer(obj, self.given.revision)
        if progress.done and self._is_unobserved(obj):
            return False
        self.seen = version
        self.factory.print(progress.message)
        self.factory.stdout.flush()
        self.done = progress.done
        return self.done

    def _is_unobserved(self, obj: Object) -> bool:
        """Tell whether the controllers have yet to see the object as it is: its status may be that of another file."""
        return self.given.watch and self.factory.reconciles and not self.factory.driver.has_observed(obj)

    def _read(self) -> Object:
        info = self.info
        obj = unless_missing(self.factory.client.get, info.resource.gvr, info.name, namespace=info.namespace)
        if obj is None:
            raise CliError("object has been deleted")
        if obj["metadata"].get("uid") != self.info.content["metadata"].get("uid"):
            raise CliError("object has been deleted")
        return obj
