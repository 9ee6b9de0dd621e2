"""``kubepy config view``. Upstream: ``kubectl/pkg/cmd/config/view.go``, ``clientcmd/api/helpers.go``."""

from __future__ import annotations

import os

from kubepy.cli.errors import CliError
from kubepy.cli.runtime import kubeconfig
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flagsets import output_flags
from kubepy.cli.runtime.kubeconfig import FOLDER, Entry, Kubeconfig
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import Invocation, changed_flag, verb
from kubepy.quoting import printable

FLAGS = [
    *(changed_flag(flag, default="yaml") if flag.long == "output" else flag for flag in output_flags()),
    boolean("minify", help="Remove all information not used by current-context from the output."),
    boolean("flatten", help="Accepted as kubectl does; there are no files to take in."),
    boolean("merge", default=True, help="Accepted as kubectl does; there is one file."),
    boolean("raw", help="Display credentials, too."),
]
SECRETS = {"token": "REDACTED", "password": "REDACTED", "client-key-data": "DATA+OMITTED",
           "client-certificate-data": "DATA+OMITTED", "certificate-authority-data": "DATA+OMITTED"}


@verb("view", "view", flags=FLAGS, examples="""
# What the contexts are
kubepy config view

# The namespace that commands use
kubepy config view --minify -o jsonpath='{..namespace}'
""")
def view(factory: Factory, given: Invocation) -> None:
    """Display contexts, clusters and users in the form of a kubeconfig."""
    if given.args:
        given.usage_error(printable(f"unexpected arguments: [{' '.join(given.args)}]"))
    printer = printer_for(factory, given, typed=True)
    config = factory.kubeconfig
    if given.minify:
        config = minified(config._replace(current=factory.options.context or config.current))
    config = _with_folders(config, factory.home)
    if not given.raw and not given.flatten:
        config = config._replace(clusters=_redacted(config.clusters), users=_redacted(config.users))
    shown = kubeconfig.as_object(config)
    printer({key: value if value != [] else None for key, value in shown.items()})


def minified(config: Kubeconfig) -> Kubeconfig:
    """The current context and what it refers to. Raises CliError."""
    if not config.current:
        raise CliError("current-context must exist in order to minify")
    if config.current not in config.contexts:
        raise CliError(f"cannot locate context {config.current}")
    context = config.contexts[config.current]
    kept = [{name: entries[name] for name in (context.get(key, ""),) if name in entries}
            for key, entries in (("cluster", config.clusters), ("user", config.users))]
    return config._replace(contexts={config.current: context}, clusters=kept[0], users=kept[1])


def _with_folders(config: Kubeconfig, home: str) -> Kubeconfig:
    """A cluster without a server is home."""
    here = FOLDER + os.path.abspath(home)
    return config._replace(clusters={name: {**entry, "server": entry.get("server") or here}
                                     for name, entry in config.clusters.items()})


def _redacted(entries: dict[str, Entry]) -> dict[str, Entry]:
    return {name: {key: SECRETS.get(key, value) for key, value in entry.items()} for name, entry in entries.items()}
