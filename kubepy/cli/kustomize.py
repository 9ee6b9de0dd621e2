"""``kubepy kustomize``. Upstream: ``kubectl/pkg/cmd/kustomize``, ``kustomize/kustomize/v5/commands/build``."""

from __future__ import annotations

from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flags import string_slice_flag as strings
from kubepy.cli.runtime.verbs import Invocation, verb

NO_PLUGINS = "Accepted as kubectl does; no plugins are run."
NO_HELM = "Accepted as kubectl does; no charts are inflated."
FLAGS = [
    string("output", "o", help="If specified, write output to this path."),
    string("load-restrictor", default="LoadRestrictionsRootOnly", help="If set to 'LoadRestrictionsNone', local "
           "kustomizations may load files from outside their root."),
    boolean("as-current-user", help=NO_PLUGINS),
    boolean("enable-alpha-plugins", help=NO_PLUGINS),
    strings("env", "e", help=NO_PLUGINS),
    strings("mount", help=NO_PLUGINS),
    boolean("network", help=NO_PLUGINS),
    string("network-name", default="bridge", help=NO_PLUGINS),
    boolean("enable-helm", help=NO_HELM),
    strings("helm-api-versions", help=NO_HELM),
    string("helm-command", default="helm", help=NO_HELM),
    boolean("helm-debug", help=NO_HELM),
    string("helm-kube-version", help=NO_HELM),
]
RESTRICTIONS = ("LoadRestrictionsRootOnly", "LoadRestrictionsNone", "")


@verb("kustomize", "kustomize DIR", flags=FLAGS, examples="""
# The manifests of a folder that has a kustomization.yaml
kubepy kustomize overlays/production

# Apply them
kubepy apply -k overlays/production
""")
def kustomize(factory: Factory, given: Invocation) -> None:
    """Build a set of manifests from a folder with a "kustomization.yaml".

    Known are resources, components, generators of config maps and secrets, patches, images, replicas, replacements,
    vars, names, namespaces, labels and annotations. Nothing is read from the network."""
    from kubepy.cli.kustomization.target import build
    from kubepy.storage.yaml import dump

    if len(given.args) > 1:
        raise CliError("specify one path to kustomization.yaml")
    if given.load_restrictor not in RESTRICTIONS:
        raise CliError(f"illegal flag value --load-restrictor {given.load_restrictor}; legal values: "
                       "[LoadRestrictionsRootOnly LoadRestrictionsNone]")
    objects = build(given.args[0] if given.args else ".", factory.say,
                    restricted=given.load_restrictor != "LoadRestrictionsNone")
    text = "---\n".join(dump(obj) for obj in objects)
    if not given.output:
        factory.print(text, end="")
        return
    with open(given.output, "w", encoding="utf-8") as file:
        file.write(text)
