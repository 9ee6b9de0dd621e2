"""``kubepy config``: the contexts of the state folder. Upstream: ``kubectl/pkg/cmd/config``."""

from __future__ import annotations

import os

from kubepy.cli.config import contexts
from kubepy.cli.config.contexts import FIRST, Contexts
from kubepy.cli.runtime.command import Invocation, verb
from kubepy.cli.runtime.errors import CliError
from kubepy.cli.runtime.flags import boolean, string
from kubepy.cli.runtime.output import FORMATS, printer_for
from kubepy.cli.runtime.session import Session
from kubepy.cli.runtime.tables import format_lines
from kubepy.cluster.objects.meta import Object

VIEW_FLAGS = [
    boolean("minify", help="Remove all information not used by current-context from the output."),
    boolean("flatten", hidden=True),
    boolean("merge", default=True, hidden=True),
    boolean("raw", hidden=True),
    boolean("show-managed-fields", hidden=True),
    boolean("allow-missing-template-keys", default=True, hidden=True),
    string("output", "o", default="yaml", help="Output format. One of: (json, yaml, kyaml, name, go-template, "
           "go-template-file, template, templatefile, jsonpath, jsonpath-as-json, jsonpath-file)."),
    string("template", help="Template string or path to template file to use when -o=go-template."),
]
GET_FLAGS = [
    boolean("no-headers", help="When using the default or custom-column output format, don't print headers."),
    string("output", "o", help="Output format. One of: (name)."),
]
SET_FLAGS = [boolean("current", help="Modify the current context.")]
HEADERS = ("CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE")


@verb("current-context", "current-context", examples="""
# The name of the context that commands use
kubepy config current-context
""")
def current_context(session: Session, given: Invocation) -> None:
    """Display the current-context."""
    current = contexts.read(session.folder).current
    if not current:
        raise CliError("current-context is not set")
    session.print(current)


@verb("get-contexts", "get-contexts [NAME...]", flags=GET_FLAGS, examples="""
# All contexts, with their namespaces
kubepy config get-contexts

# Only their names
kubepy config get-contexts -o name
""")
def get_contexts(session: Session, given: Invocation) -> None:
    """Display one or many contexts of the state folder."""
    if given.output not in ("", "name"):
        raise CliError(f"output must be one of '' or 'name': {given.output}")
    found = contexts.read(session.folder)
    names = [name for name in given.args if name in found.namespaces] if given.args else list(found.namespaces)
    if given.output == "name":
        for name in sorted(names):
            session.print(name)
    else:
        lines = [] if given.no_headers else ["\t".join(HEADERS)]
        for name in sorted(names):
            mark = "*" if name == found.current else ""
            lines.append("\t".join((mark, name, FIRST, FIRST, found.namespaces[name])))
        session.print(format_lines(lines), end="")
    missing = [name for name in given.args if name not in found.namespaces]
    if missing:
        raise CliError(f"context {missing[0]} not found")


@verb("use-context", "use-context CONTEXT_NAME", flags=[], examples="""
# Commands without -n use the namespace of this context
kubepy config use-context staging
""")
def use_context(session: Session, given: Invocation) -> None:
    """Set the current-context of the state folder."""
    if len(given.args) != 1:
        given.usage_error(f"accepts 1 arg(s), received {len(given.args)}")
    name = given.args[0]
    found = _of_cluster(session)
    if name not in found.namespaces:
        raise CliError(f'no context exists with the name: "{name}"')
    contexts.write(session.folder, found._replace(current=name))
    session.print(f'Switched to context "{name}".')


@verb("set-context", "set-context [NAME | --current] [--namespace=namespace]", flags=SET_FLAGS, examples="""
# Commands without -n use this namespace from now on
kubepy config set-context --current --namespace=web

# A second context, for another namespace of the same state folder
kubepy config set-context staging --namespace=staging
""")
def set_context(session: Session, given: Invocation) -> None:
    """Set the namespace of a context.

    A context is a namespace of the state folder; what is chosen lives in the folder's ".kubepy", not in git."""
    if len(given.args) > 1 or bool(given.args) == given.current:
        raise CliError("you must specify a non-empty context name or --current")
    found = _of_cluster(session)
    name = found.current if given.current else given.args[0]
    if not name:
        raise CliError("no current context is set")
    known = name in found.namespaces
    namespace = given.namespace if given.changed("namespace") else found.namespaces.get(name, "")
    contexts.write(session.folder, found._replace(namespaces={**found.namespaces, name: namespace}))
    session.print(f'Context "{name}" {"modified" if known else "created"}.')


@verb("view", "view", flags=VIEW_FLAGS, examples="""
# What the contexts of the state folder are
kubepy config view

# The namespace that commands use
kubepy config view --minify -o jsonpath='{..namespace}'
""")
def view(session: Session, given: Invocation) -> None:
    """Display the contexts of the state folder in the form of a kubeconfig."""
    found = contexts.read(session.folder)
    if given.minify:
        if found.current not in found.namespaces:
            raise CliError("current-context must exist in order to minify")
        found = found._replace(namespaces={found.current: found.namespaces[found.current]})
    printer_for(session, given, formats=FORMATS)(_kubeconfig(found, session.folder))


def _of_cluster(session: Session) -> Contexts:
    """The contexts of a cluster that is there. Raises CliError."""
    return contexts.read(session.cluster_folder)


def _kubeconfig(found: Contexts, folder: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": FIRST, "cluster": {"server": f"file://{os.path.abspath(folder)}"}}],
        "contexts": [{"name": name, "context": _context(found.namespaces[name])} for name in sorted(found.namespaces)],
        "current-context": found.current,
        "users": [{"name": FIRST, "user": {}}],
    }


def _context(namespace: str) -> Object:
    return {"cluster": FIRST, "user": FIRST, **({"namespace": namespace} if namespace else {})}
