"""``rollout``: the status, history, restarts and undoing of workloads' updates, a command a file.

``history`` reads the revisions of a workload and prints them; ``undo`` builds the patch that goes
back to one and sends it; ``status`` says how far a rollout is and waits for it; ``restart`` also
has ``pause`` and ``resume``. Upstream: ``k8s.io/kubectl/pkg/cmd/rollout``,
``k8s.io/kubectl/pkg/polymorphichelpers``.
"""

from __future__ import annotations

from kubepy.cli.errors import CliError
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.infos import Result
from kubepy.cli.runtime.options import KustomizeOptions, SelectorOptions, filename_flag


class RolloutOptions(KustomizeOptions, SelectorOptions):
    """The flags of every command of ``rollout``."""

    filename: list[str] = filename_flag("identifying the resource to get from the cluster.")

    def require_resources(self) -> None:
        """Raise CliError without words and files."""
        if not self.args and not self.filename and not self.kustomize:
            raise CliError("required resource not specified")


def latest_objects(factory: Factory, options: RolloutOptions) -> Result:
    """Find the workloads, as the cluster has them now; a type without a name means all of its
    objects."""
    return Builder(factory, options, bare_types=True, latest=True, typed=True, related=True).do()
