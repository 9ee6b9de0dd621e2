"""``kubepy config …-context…``: showing, choosing and changing contexts."""

from __future__ import annotations

import os

from kubepy.cli.errors import CliError, raise_all
from kubepy.cli.runtime import kubeconfig
from kubepy.cli.runtime.command import show_help
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.kubeconfig import FILE, Entry, Kubeconfig
from kubepy.cli.runtime.tables import format_lines
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.quoting import printable, quote

GET_FLAGS = [
    boolean("no-headers", help="When using the default or custom-column output format, don't print headers."),
    string("output", "o", help="Output format. One of: (name)."),
]
SET_FLAGS = [
    boolean("current", help="Modify the current context."),
    string("cluster", help="The context's state folder, by its path or by the name of a cluster (see set-cluster). "
           "Default: this one."),
    string("user", help="Kept with the context; it means nothing here."),
    string("namespace", "n", help="The namespace that commands use in this context."),
]
HEADERS = ("CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE")


def chosen(factory: Factory) -> Kubeconfig:
    """The contexts of the home folder, in which there must be a cluster. Raises CliError."""
    factory.require_home()
    return factory.kubeconfig


def file_of(factory: Factory) -> str:
    return os.path.join(factory.home, FILE)


def unexpected_args(factory: Factory, given: Invocation, text: str = "Unexpected args") -> CliError:
    """The error for a wrong number of words, before which the help is shown."""
    show_help(factory)
    return CliError(printable(f"{text}: [{' '.join(given.args)}]"))


@verb("current-context", "current-context", examples="""
# The name of the context that commands use
kubepy config current-context

# Where commands work
kubepy cluster-info --context="$(kubepy config current-context)"
""")
def current_context(factory: Factory, given: Invocation) -> None:
    """Display the current-context."""
    current = factory.kubeconfig.current
    if not current:
        raise CliError("current-context is not set")
    factory.print(printable(current))


@verb("get-contexts", "get-contexts [NAME...]", flags=GET_FLAGS, examples="""
# All contexts, with their clusters and namespaces
kubepy config get-contexts

# Only their names
kubepy config get-contexts -o name
""")
def get_contexts(factory: Factory, given: Invocation) -> None:
    """Display one or many contexts."""
    if given.output not in ("", "name"):
        raise CliError(f"--output {given.output} is not available in kubectl config get-contexts; resetting to default "
                       "output format")
    config = factory.kubeconfig
    names = sorted(name for name in given.args or config.contexts if name in config.contexts)
    lines = [] if given.no_headers or given.output else ["\t".join(HEADERS)]
    lines += names if given.output else [_line(config, name) for name in names]
    factory.print(format_lines(["\t".join(map(printable, line.split("\t"))) for line in lines]), end="")
    raise_all(CliError(f"context {printable(name)} not found") for name in given.args if name not in config.contexts)


def _line(config: Kubeconfig, name: str) -> str:
    context = config.contexts[name]
    mark = "*" if name == config.current else ""
    return "\t".join((mark, name, *(context.get(key, "") for key in ("cluster", "user", "namespace"))))


@verb("use-context", "use-context CONTEXT_NAME", examples="""
# Commands work on the folder and in the namespace of this context
kubepy config use-context staging

# Back to this folder
kubepy config use-context kubepy
""")
def use_context(factory: Factory, given: Invocation) -> None:
    """Set the current-context."""
    if len(given.args) != 1:
        raise unexpected_args(factory, given)
    name = given.args[0]
    config = chosen(factory)
    if not name:
        raise CliError("empty context names are not allowed")
    if name not in config.contexts:
        raise CliError(f"no context exists with the name: {quote(name)}")
    kubeconfig.write(factory.home, config._replace(current=name))
    factory.print(f"Switched to context {quote(name)}.")


@verb("set-context", "set-context [NAME | --current] [--cluster=FOLDER] [--user=user] [--namespace=namespace]",
      flags=SET_FLAGS, examples="""
# Commands without -n use this namespace from now on
kubepy config set-context --current --namespace=web

# A context for another state folder; --context=lab uses it once, use-context from now on
kubepy config set-context lab --cluster=/srv/lab/state --namespace=web
""")
def set_context(factory: Factory, given: Invocation) -> None:
    """Set the state folder and the namespace of a context.

    What is not named stays as it is. Contexts are kept in the folder that --state names, in its ".kubepy", not in
    git."""
    if len(given.args) > 1:
        raise unexpected_args(factory, given)
    asked = given.args[0] if given.args else ""
    if not asked and not given.current:
        raise CliError("you must specify a non-empty context name or --current")
    if asked and given.current:
        raise CliError("you cannot specify both a context name and --current")
    config = chosen(factory)
    name = asked or config.current
    if not name:
        raise CliError("no current context is set")
    known = name in config.contexts
    kubeconfig.write(factory.home, with_context(config, name, given))
    factory.print(f'Context {quote(name)} {"modified" if known else "created"}.')


def with_context(config: Kubeconfig, name: str, given: Invocation) -> Kubeconfig:
    """A context with what the flags say of it; a folder that it names is a cluster of that name."""
    values = {key: given.flag(key) for key in ("cluster", "user", "namespace") if given.changed(key)}
    clusters = config.clusters
    if values.get("cluster", "") not in clusters and kubeconfig.is_folder(values.get("cluster", "")):
        values["cluster"] = os.path.abspath(values["cluster"])
        clusters = {**clusters, values["cluster"]: {"server": kubeconfig.server_of(values["cluster"])}}
    context: Entry = {**config.contexts.get(name, {}), **values}
    context = {key: value for key, value in context.items() if value or key != "namespace"}
    return config._replace(clusters=clusters, contexts={**config.contexts, name: context})


@verb("rename-context", "rename-context CONTEXT_NAME NEW_NAME", examples="""
# Another name for a context
kubepy config rename-context lab old-lab

# The current context stays current under its new name
kubepy config rename-context kubepy home
""")
def rename_context(factory: Factory, given: Invocation) -> None:
    """Rename a context; if it is the current one, it stays so."""
    if len(given.args) != 2:
        raise unexpected_args(factory, given)
    old, new = given.args
    if not new:
        raise CliError("You must specify a new non-empty context name")
    config = chosen(factory)
    if old not in config.contexts:
        raise CliError(f"cannot rename the context {quote(old)}, it's not in {printable(file_of(factory))}")
    if new in config.contexts:
        raise CliError(f"cannot rename the context {quote(old)}, the context {quote(new)} already exists in "
                       f"{printable(file_of(factory))}")
    contexts = {new if name == old else name: context for name, context in config.contexts.items()}
    current = new if config.current == old else config.current
    kubeconfig.write(factory.home, config._replace(contexts=contexts, current=current))
    factory.print(f"Context {quote(old)} renamed to {quote(new)}.")


@verb("delete-context", "delete-context NAME", examples="""
# Forget a context; its folder stays
kubepy config delete-context lab

# In another folder's contexts
kubepy --state /srv/home/state config delete-context lab
""")
def delete_context(factory: Factory, given: Invocation) -> None:
    """Delete a context. The state folder that it names stays as it is."""
    if len(given.args) != 1:
        show_help(factory)
        return
    name = given.args[0]
    config = chosen(factory)
    if name not in config.contexts:
        raise CliError(f"cannot delete context {name}, not in {file_of(factory)}")
    if name == config.current:
        factory.say('warning: this removed your active context, use "kubepy config use-context" to select a different '
                    "one")
    contexts = {one: context for one, context in config.contexts.items() if one != name}
    kubeconfig.write(factory.home, config._replace(contexts=contexts))
    factory.print(printable(f"deleted context {name} from {file_of(factory)}"))
