"""``kubepy kustomize``. Upstream: ``kubectl/pkg/cmd/kustomize``,
``kustomize/kustomize/v5/commands/build``."""

from __future__ import annotations

from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag, string_slice_flag
from kubepy.cli.runtime.options import Options
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.cli.kustomization import target
    from kubepy.storage import yaml

NO_PLUGINS = "Accepted as kubectl does; no plugins are run."
NO_HELM = "Accepted as kubectl does; no charts are inflated."


class KustomizeBuildOptions(Options):
    """The flags of ``kustomize``."""

    output: str = string_flag("output", "o", help="If specified, write output to this path.")
    load_restrictor: str = string_flag(
        "load-restrictor",
        default="LoadRestrictionsRootOnly",
        help="If set to "
        "'LoadRestrictionsNone', local kustomizations may load files from outside "
        "their root.",
    )
    as_current_user: bool = bool_flag("as-current-user", help=NO_PLUGINS)
    enable_alpha_plugins: bool = bool_flag("enable-alpha-plugins", help=NO_PLUGINS)
    env: list[str] = string_slice_flag("env", "e", help=NO_PLUGINS)
    mount: list[str] = string_slice_flag("mount", help=NO_PLUGINS)
    network: bool = bool_flag("network", help=NO_PLUGINS)
    network_name: str = string_flag("network-name", default="bridge", help=NO_PLUGINS)
    enable_helm: bool = bool_flag("enable-helm", help=NO_HELM)
    helm_api_versions: list[str] = string_slice_flag("helm-api-versions", help=NO_HELM)
    helm_command: str = string_flag("helm-command", default="helm", help=NO_HELM)
    helm_debug: bool = bool_flag("helm-debug", help=NO_HELM)
    helm_kube_version: str = string_flag("helm-kube-version", help=NO_HELM)


RESTRICTIONS = ("LoadRestrictionsRootOnly", "LoadRestrictionsNone", "")


@command(
    "kustomize DIR",
    KustomizeBuildOptions,
    examples="""
# Print the objects of a kustomization
kubepy kustomize overlays/production

# Of the folder that one is in
kubepy kustomize

# Write them to a file
kubepy kustomize overlays/production --output=/tmp/production.yaml

# Of a folder in a repository, at a tag
kubepy kustomize 'https://git.example.com/shop.git//overlays/production?ref=v1.2.0'
""",
)
def kustomize(factory: Factory, options: KustomizeBuildOptions) -> None:
    """Build a set of manifests from a folder with a "kustomization.yaml", or from a git repository that has one.

    All that kustomize has built in is known. Plugins and functions that are programs, and Helm charts, are refused.
    Repositories are cloned by the git on the PATH."""  # noqa: E501
    if len(options.args) > 1:
        raise CliError("specify one path to kustomization.yaml")
    if options.load_restrictor not in RESTRICTIONS:
        raise CliError(
            f"illegal flag value --load-restrictor {options.load_restrictor}; legal values: "
            "[LoadRestrictionsRootOnly LoadRestrictionsNone]"
        )

    objects = target.build(
        options.args[0] if options.args else ".",
        factory.say,
        restricted=options.load_restrictor != "LoadRestrictionsNone",
    )
    text = "---\n".join(yaml.dump(obj) for obj in objects)
    if not options.output:
        factory.print(text, end="")
        return
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(text)
