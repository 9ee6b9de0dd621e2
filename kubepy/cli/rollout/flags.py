"""The flags that the commands of `rollout` share."""

from __future__ import annotations

from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag
from kubepy.cli.runtime.flagsets import filename_flags, selector_flag
from kubepy.cli.runtime.infos import Result
from kubepy.cli.runtime.verbs import Invocation, find

COMMON: list[Flag] = [*filename_flags("identifying the resource to get from the cluster."), selector_flag()]


def require_resources(given: Invocation) -> None:
    if not given.args and not given.filename and not given.kustomize:
        raise CliError("required resource not specified")


def require_revision(given: Invocation) -> None:
    if given.revision < 0:
        raise CliError(f"revision must be a positive integer: {given.revision}")


def latest_objects(factory: Factory, given: Invocation) -> Result:
    """The objects named, as the cluster has them now; a type without a name means all of its objects."""
    return find(factory, given, bare_types=True, latest=True, typed=True)
