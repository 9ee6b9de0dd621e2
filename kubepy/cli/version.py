"""``kubepy version`` and ``kubepy options``. Upstream: ``kubectl/pkg/cmd/version/version.go``."""

from __future__ import annotations

from kubepy import KUBERNETES_VERSION, KUSTOMIZE_VERSION, __version__
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import command, options_text
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag
from kubepy.cli.runtime.options import GLOBAL_FLAGS, Options
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api.values import goformat
    from kubepy.storage import yaml


class VersionOptions(Options):
    """The flags of ``version``."""

    client: bool = bool_flag("client", help="If true, shows client version only (no cluster required).")
    output: str = string_flag("output", "o", help="One of 'yaml' or 'json'.")


@command("version", VersionOptions, examples="""
# The version of kubepy, and the version of Kubernetes that it keeps to
kubepy version

# For a script
kubepy version -o json
""")
def version(factory: Factory, options: VersionOptions) -> None:
    """Print the client and server version information.

    kubepy is both, and keeps to one version of Kubernetes."""
    if options.args:
        raise CliError(printable(f"extra arguments: [{' '.join(options.args)}]"))
    if options.output not in ("", "yaml", "json"):
        raise CliError("--output must be 'yaml' or 'json'")
    if not options.output:
        factory.print(f"Client Version: {KUBERNETES_VERSION} (kubepy {__version__})\nKustomize Version: "
                      f"{KUSTOMIZE_VERSION}")
        if not options.client:
            factory.print(f"Server Version: {KUBERNETES_VERSION}")
        return
    info = version_info()
    versions = {"clientVersion": info, "kustomizeVersion": KUSTOMIZE_VERSION}
    if not options.client:
        versions["serverVersion"] = info
    if options.output == "yaml":
        factory.print(yaml.dump(versions))
    else:
        factory.print(goformat.to_json(versions, indent=2, sort_keys=False))


def version_info() -> dict[str, str]:
    """Return the version as a server answers it, without the details of a build."""
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    return {"major": major, "minor": minor, "gitVersion": KUBERNETES_VERSION, "kubepyVersion": __version__}


@command("options", Options, examples="""
# What every command takes
kubepy options
""")
def options(factory: Factory, options: Options) -> None:
    """Print the list of flags inherited by all commands."""
    from textwrap import fill

    factory.print(options_text("The following options can be passed to any command:\n", GLOBAL_FLAGS))
    names = ", ".join(f"--{flag.long}" for flag in GLOBAL_FLAGS if flag.hidden)
    factory.print("\n" + fill(f"kubectl's other options are accepted and mean nothing here: {names}.", 110,
                              break_on_hyphens=False))
