"""``kubepy envtest-assets``: the programs that controller-runtime's envtest starts."""

from __future__ import annotations

from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_flag
from kubepy.cli.runtime.options import Options
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.cli import installation
    from kubepy.controlplane import groups
    from kubepy.server.envtest import assets


class EnvtestAssetsOptions(Options):
    """The flags of ``envtest-assets``."""

    controllers: str = string_flag(
        "controllers",
        default="api",
        help="The controllers that run beside the API server: all, or names of groups, separated "
        "by commas (api,gc,namespace). KUBEPY_ENVTEST_CONTROLLERS names others for one run.",
    )


@command(
    "envtest-assets [--controllers=NAMES]",
    EnvtestAssetsOptions,
    examples="""
# Run the tests of an operator without etcd and kube-apiserver
export KUBEBUILDER_ASSETS=$(kubepy envtest-assets)
go test ./...

# With the garbage collector and what removes namespaces beside
export KUBEBUILDER_ASSETS=$(kubepy envtest-assets --controllers=gc,namespace)
""",
)
def envtest_assets(factory: Factory, options: EnvtestAssetsOptions) -> None:
    """Print a folder with the programs kube-apiserver, etcd and kubectl, for KUBEBUILDER_ASSETS.

    controller-runtime's envtest starts them for the tests of an operator. The cluster is in memory, and is gone with its kube-apiserver. The folder is in the user's cache, and is made if it is not there."""  # noqa: E501
    options.require_no_args()
    try:
        groups.reconcilers_of(options.controllers)
    except groups.UnknownGroupError as error:
        raise CliError(f"--controllers: {error}") from None
    installation.require_serve()
    try:
        factory.print(assets.make_assets(options.controllers))
    except OSError as error:
        raise CliError(
            f"{printable(error.filename or assets.cache_folder())}: "
            f"{(error.strerror or str(error)).lower()}"
        ) from None
