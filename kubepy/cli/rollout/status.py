"""``rollout status``: follow a rollout, and the viewers that say how far a workload's is.

Upstream: ``kubectl/pkg/cmd/rollout/rollout_status.go``,
``kubectl/pkg/polymorphichelpers/rollout_status.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, name_of, nested_list
from kubepy.api.objects.deployments import revision_of
from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError, unless_missing
from kubepy.cli.rollout import RolloutOptions, latest_objects
from kubepy.cli.runtime.command import command, ticking
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag, int_flag
from kubepy.cli.runtime.infos import Info
from kubepy.quoting import printable, quote
from kubepy.storage import Key

REACTION_SECONDS = (
    2.0  # times in managedFields are whole seconds, so that one of them may be less than that
)


class StatusOptions(RolloutOptions):
    """The flags of ``rollout status``."""

    watch: bool = bool_flag(
        "watch", "w", default=True, help="Watch the status of the rollout until it's done."
    )
    revision: int = int_flag(
        "revision",
        help="Pin to a specific revision for showing its status. Defaults to 0 (last revision).",
    )
    timeout: float = duration_flag(
        "timeout",
        help="The length of time to wait before ending watch, zero means never. "
        "Any other values should contain a corresponding time unit (e.g. 1s, 2m, 3h).",
    )


@ticking
@command(
    "status (TYPE NAME | TYPE/NAME)",
    StatusOptions,
    examples="""
    # Wait until a DaemonSet is rolled out; the controllers run meanwhile
    kubepy rollout status ds/log-agent

    # Say how far it is, and do not wait
    kubepy rollout status ds/log-agent --watch=false
""",
)
def status(factory: Factory, options: StatusOptions) -> None:
    """Show the status of the rollout, and wait until it is done.

    While it waits it runs the controllers itself, unless `kubepy controller --watch` does.
    """
    options.require_resources()
    if options.revision < 0:
        raise CliError(f"revision must be a positive integer: {options.revision}")
    count = 0
    factory.catches_up = not options.watch
    factory.look_for_checkouts()

    def follow(info: Info) -> None:
        nonlocal count
        count += 1
        RolloutWatch(factory, options, info).run()

    latest_objects(factory, options).visit(follow)
    if not count:
        factory.say(printable(f"No resources found in {factory.namespace} namespace."))


class RolloutWatch:
    """The watch of one workload's rollout: every state with a message is printed once."""

    def __init__(self, factory: Factory, options: StatusOptions, info: Info) -> None:
        self.factory = factory
        self.options = options
        self.info = info
        self.viewer = viewer_for(info.resource)
        self.printed_version = ""
        self.done = False

    def run(self) -> None:
        """Follow the rollout. Raises CliError for a timeout, a deleted object, a rollout that
        failed."""
        if self._was_left_alone():
            self.factory.driver.react()
        if self.look() or not self.options.watch:
            return
        if not self.factory.driver.wait_until(
            self.look, self.options.timeout or None, self.info.printed_name, self.info.content
        ):
            raise CliError("timed out waiting for the condition")

    def _was_left_alone(self) -> bool:
        """Return whether the workload was last changed so long ago that in a cluster its controller
        would have acted.

        After a change of just now, the states on the way are printed too, as kubectl prints them.
        """
        times = [
            entry["time"]
            for entry in self.info.content["metadata"].get("managedFields", ())
            if "time" in entry
        ]
        if times:
            seconds = (self.factory.cluster.clock.now() - parse_time(max(times))).total_seconds()
        else:
            seconds = 0.0
        return seconds >= REACTION_SECONDS

    def look(self) -> bool:
        """Print the state if it has changed; returns whether the rollout is done, which it
        stays."""
        info = self.info
        factory = self.factory
        obj = unless_missing(
            factory.client.get, info.resource.gvr, info.name, namespace=info.namespace
        )
        if obj is None or obj["metadata"].get("uid") != info.content["metadata"].get("uid"):
            raise CliError("object has been deleted")
        version = obj["metadata"].get("resourceVersion", "")
        if not self.done and self.options.watch:
            self._check_file(obj)
        if self.done or version == self.printed_version:
            return self.done
        state = self.viewer(obj, self.options.revision)
        if (
            state.done
            and self.options.watch
            and factory.reconciles
            and not factory.driver.has_observed(obj)
        ):
            # The controllers have yet to see the object as it is: its status may be that of another
            # file.
            return False

        self.printed_version = version
        factory.print(state.message)
        factory.stdout.flush()
        self.done = state.done
        return self.done

    def _check_file(self, obj: Object) -> None:
        """Raise CliError where nobody can write the object, since its file has a problem: its
        status stays as it is. A rollout that is done as it last was may be told all the same."""
        if self.viewer(obj, self.options.revision).done:
            return
        key = Key(self.info.resource.key, self.info.namespace, self.info.name)
        if line := self.factory.cluster.problem_of(key):
            raise CliError(
                f"the rollout of {self.info.printed_name} cannot go on before its file is put "
                f"right: {line}"
            )


# --- viewers --------------------------------------------------------------------------------------


class RolloutStatus(NamedTuple):
    """The state of a rollout: the message about it, and whether it is done."""

    message: str
    done: bool


# Takes the workload and the revision of --revision. Raises CliError for a rollout that failed.
Viewer = Callable[[Object, int], RolloutStatus]


def viewer_for(resource: Resource) -> Viewer:
    """Return the viewer of a kind. Raises CliError for kinds without rollouts."""
    viewer = VIEWERS.get(resource.key)
    if viewer is None:
        raise CliError(f"no status viewer has been implemented for {resource.qualified_kind}")
    return viewer


def is_observed(obj: Object) -> bool:
    return bool(
        obj["metadata"].get("generation", 0) <= obj.get("status", {}).get("observedGeneration", 0)
    )


def daemon_set(obj: Object, revision: int) -> RolloutStatus:
    name = name_of(obj)
    status = obj.get("status", {})
    _require_rolling_update(obj)
    if not is_observed(obj):
        return RolloutStatus("Waiting for daemon set spec update to be observed...", False)
    desired = status.get("desiredNumberScheduled", 0)
    updated = status.get("updatedNumberScheduled", 0)
    available = status.get("numberAvailable", 0)
    waiting = f"Waiting for daemon set {quote(name)} rollout to finish:"
    if updated < desired:
        return RolloutStatus(
            f"{waiting} {updated} out of {desired} new pods have been updated...", False
        )

    if available < desired:
        return RolloutStatus(
            f"{waiting} {available} of {desired} updated pods are available...", False
        )

    return RolloutStatus(f"daemon set {quote(name)} successfully rolled out", True)


def _require_rolling_update(obj: Object) -> None:
    if obj["spec"].get("updateStrategy", {}).get("type") != "RollingUpdate":
        raise CliError("rollout status is only available for RollingUpdate strategy type")


def deployment(obj: Object, revision: int) -> RolloutStatus:
    name = name_of(obj)
    status = obj.get("status", {})
    if revision > 0 and revision_of(obj) != revision:
        raise CliError(
            f"desired revision ({revision}) is different from the running revision "
            f"({revision_of(obj)})"
        )

    if not is_observed(obj):
        return RolloutStatus("Waiting for deployment spec update to be observed...", False)
    if any(
        condition["type"] == "Progressing" and condition.get("reason") == "ProgressDeadlineExceeded"
        for condition in nested_list(status, "conditions")
    ):
        raise CliError(f"deployment {quote(name)} exceeded its progress deadline")

    desired = obj["spec"].get("replicas", 0)
    total = status.get("replicas", 0)
    updated = status.get("updatedReplicas", 0)
    available = status.get("availableReplicas", 0)
    waiting = f"Waiting for deployment {quote(name)} rollout to finish:"
    if updated < desired:
        return RolloutStatus(
            f"{waiting} {updated} out of {desired} new replicas have been updated...", False
        )

    if total > updated:
        return RolloutStatus(
            f"{waiting} {total - updated} old replicas are pending termination...", False
        )

    if available < updated:
        return RolloutStatus(
            f"{waiting} {available} of {updated} updated replicas are available...", False
        )

    return RolloutStatus(f"deployment {quote(name)} successfully rolled out", True)


def stateful_set(obj: Object, revision: int) -> RolloutStatus:
    spec = obj["spec"]
    status = obj.get("status", {})
    _require_rolling_update(obj)
    if not status.get("observedGeneration") or not is_observed(obj):
        return RolloutStatus("Waiting for statefulset spec update to be observed...", False)
    desired = spec.get("replicas", 1)
    ready = status.get("readyReplicas", 0)
    if ready < desired:
        return RolloutStatus(f"Waiting for {desired - ready} pods to be ready...", False)
    updated = status.get("updatedReplicas", 0)
    rolling = spec["updateStrategy"].get("rollingUpdate")
    if rolling is not None:
        above = desired - rolling["partition"] if "partition" in rolling else 0
        if updated < above:
            return RolloutStatus(
                f"Waiting for partitioned roll out to finish: {updated} out of {above} new pods "
                f"have "
                "been updated...",
                False,
            )
        return RolloutStatus(
            f"partitioned roll out complete: {updated} new pods have been updated...", True
        )

    current = status.get("currentRevision", "")
    update = status.get("updateRevision", "")
    if update != current:
        return RolloutStatus(
            f"waiting for statefulset rolling update to complete {updated} pods at revision "
            f"{update}...",
            False,
        )

    return RolloutStatus(
        f"statefulset rolling update complete {status.get('currentReplicas', 0)} pods at revision"
        f" {current}...",
        True,
    )


VIEWERS: dict[str, Viewer] = {
    "daemonsets.apps": daemon_set,
    "deployments.apps": deployment,
    "statefulsets.apps": stateful_set,
}
