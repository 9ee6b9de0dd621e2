"""``kubepy version`` and ``kubepy options``. Upstream: ``kubectl/pkg/cmd/version/version.go``."""

from __future__ import annotations

from typing import Any

from kubepy import KUBERNETES_VERSION, KUSTOMIZE_VERSION, __version__
from kubepy.cli.errors import CliError
from kubepy.cli.names import KUBECTL, renamed
from kubepy.cli.runtime.command import command, options_text
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag
from kubepy.cli.runtime.options import GLOBAL_FLAGS, OWN_FLAGS, Options
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api.values import goformat
    from kubepy.server import health
    from kubepy.storage import yaml


class VersionOptions(Options):
    """The flags of ``version``."""

    client: bool = bool_flag(
        "client", help="If true, shows client version only (no cluster required)."
    )
    output: str = string_flag("output", "o", help="One of 'yaml' or 'json'.")


@command(
    "version",
    VersionOptions,
    examples="""
# The versions of the client, of kustomize and of the server
kubepy version

# Only the client's, for a script
kubepy version --client -o json
""",
)
def version(factory: Factory, options: VersionOptions) -> None:
    """Print the client and server version information.

    The program is both client and server, and keeps to one version of Kubernetes."""
    if options.args:
        raise CliError(printable(f"extra arguments: [{' '.join(options.args)}]"))
    if options.output not in ("", "yaml", "json"):
        raise CliError("--output must be 'yaml' or 'json'")
    if not options.output:
        own = "" if factory.program == KUBECTL else f" (kubepy {__version__})"
        factory.print(
            f"Client Version: {KUBERNETES_VERSION}{own}\nKustomize Version: {KUSTOMIZE_VERSION}"
        )
        if not options.client:
            factory.print(f"Server Version: {KUBERNETES_VERSION}")
        return

    own_version = health.version_info()
    if factory.program != KUBECTL:
        own_version["kubepyVersion"] = __version__
    versions: dict[str, Any] = {"clientVersion": own_version, "kustomizeVersion": KUSTOMIZE_VERSION}
    if not options.client:
        versions["serverVersion"] = health.version_info(of_server=True)
    if options.output == "yaml":
        factory.print(yaml.dump(versions))
    else:
        factory.print(goformat.to_json(versions, indent=2, sort_keys=False))


@command(
    "options",
    Options,
    examples="""
# What every command takes
kubepy options
""",
)
def options(factory: Factory, options: Options) -> None:
    """Print the list of flags inherited by all commands."""
    from textwrap import fill

    title = "The following options can be passed to any command:\n"
    if factory.program == KUBECTL:
        flags = [flag for flag in GLOBAL_FLAGS if flag.long not in OWN_FLAGS]
        factory.print(renamed(options_text(title, flags, all_flags=True), factory.program))
        return

    factory.print(renamed(options_text(title, GLOBAL_FLAGS), factory.program))
    names = ", ".join(f"--{flag.long}" for flag in GLOBAL_FLAGS if flag.hidden)
    factory.print(
        "\n"
        + fill(
            f"kubectl's other options are accepted and mean nothing here: {names}.",
            110,
            break_on_hyphens=False,
        )
    )
