"""``kubepy auth``: check and describe permissions.

kubepy checks no permissions on the command line. ``whoami`` names its only user, the administrator
that a cluster made by kubeadm has, and ``can-i`` says yes to that one; with ``--as`` it says what
the roles and bindings of the cluster say. ``reconcile`` keeps roles and bindings as files
describe them. Upstream: ``kubectl/pkg/cmd/auth``,
``component-helpers/auth/rbac/{reconciliation,validation}``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kubepy.api.meta import AnyObject, Object
from kubepy.api.objects.rbac import (
    AUTOUPDATE,
    CREATE,
    GROUP,
    RECREATE,
    UPDATE,
    ReconcileResult,
    broken_down,
    reconcile_binding,
    reconcile_role,
)
from kubepy.api.scheme import Resource
from kubepy.apiserver.request import CreateOptions, UpdateOptions
from kubepy.cli.errors import CliError, SilentExit, unless_missing
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag
from kubepy.cli.runtime.options import (
    CLIENT,
    SERVER,
    UNNAMED,
    DryRunOptions,
    KustomizeOptions,
    Options,
    PrintFlags,
    filename_flag,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.api.values import goformat
    from kubepy.apiserver import authorization
    from kubepy.cli.runtime import builder, objects, output, tables

if TYPE_CHECKING:
    from kubepy.cli.runtime.infos import Info
    from kubepy.cli.runtime.output import Printer

VERBS = (
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "use",
    "bind",
    "impersonate",
    "*",
    "approve",
    "sign",
    "escalate",
    "attest",
)
URL_VERBS = ("get", "put", "post", "head", "options", "delete", "patch", "*")
UNDISCOVERED = ("users", "groups")  # may be named although they are no resources


# --- can-i ----------------------------------------------------------------------------------------


class CanIOptions(Options):
    """The flags of ``auth can-i``."""

    all_namespaces: bool = bool_flag(
        "all-namespaces", "A", help="If true, check the specified action in all namespaces."
    )
    quiet: bool = bool_flag(
        "quiet", "q", help="If true, suppress output and just return the exit code."
    )
    subresource: str = string_flag(
        "subresource", help="SubResource such as pod/log or deployment/scale."
    )
    list: bool = bool_flag("list", help="If true, prints all allowed actions.")
    no_headers: bool = bool_flag(
        "no-headers", help="If true, prints allowed actions without headers."
    )


@command(
    "can-i VERB [TYPE | TYPE/NAME | NONRESOURCEURL]",
    CanIOptions,
    examples="""
# Create deployments in this namespace
kubepy auth can-i create deployments

# Read pods in all namespaces
kubepy auth can-i list pods --all-namespaces

# Read one ConfigMap
kubepy auth can-i get configmaps/settings -n shop

# Change the size of Deployments
kubepy auth can-i patch deployments.apps --subresource=scale

# Read the logs of pods
kubepy auth can-i get pods --subresource=log

# Do everything
kubepy auth can-i '*' '*'

# Ask a server for what is no object
kubepy auth can-i get /healthz

# Approve certificates
kubepy auth can-i approve certificatesigningrequests.certificates.k8s.io

# As a service account of another namespace
kubepy auth can-i list secrets --as=system:serviceaccount:shop:robot || echo no

# For a script: only the exit status
kubepy auth can-i delete nodes --quiet && echo yes

# List everything that is allowed
kubepy auth can-i --list -n shop
""",
)
def can_i(factory: Factory, options: CanIOptions) -> None:
    """Check whether an action is allowed.

    The user of the command line may do everything. With --as the roles and bindings of the cluster
    answer, although commands with --as are carried out whatever these say. The exit status is 1 for
    an action that is not allowed."""
    if options.list:
        _list_rules(factory, options)
        return

    if len(options.args) != 2:
        raise CliError(
            "you must specify two arguments: verb resource or verb resource/resourceName.\n"
            "See 'kubepy auth can-i -h' for help and examples."
        )

    verb, target = options.args
    if not target.startswith("/"):
        _warn_of_resource(factory, options, verb, target.partition("/")[0])
    elif options.subresource:
        raise CliError("--subresource can not be used with NonResourceURL")
    elif verb not in URL_VERBS:
        factory.warn(f"verb '{printable(verb)}' is not a known verb\n")

    if options.no_headers:
        raise CliError("--no-headers cannot be set without --list specified")
    factory.require_cluster()
    attributes = _attributes(
        factory,
        options,
        verb,
        target,
    )
    decision = _authorizer(factory).authorize(attributes)
    if not options.quiet:
        reason = f" - {decision.reason}" if decision.reason else ""
        factory.print("yes" if decision.allowed else f"no{reason}")
    if not decision.allowed:
        raise SilentExit(1)


def _list_rules(factory: Factory, options: CanIOptions) -> None:
    """Print what the user may do in a namespace."""
    if options.args:
        raise CliError("list option must be specified with no arguments")
    if options.quiet or options.all_namespaces or options.subresource:
        raise CliError(
            "list option can't be specified with neither quiet, all-namespaces nor "
            "subresource options"
        )
    factory.require_cluster()
    authorizer = _authorizer(factory)
    resolved = authorizer.rules_for(factory.client.user, factory.namespace)
    rows = rule_rows(resolved.rules)
    lines = ["\t".join(row) for row in rows]
    if not options.no_headers:
        lines.insert(0, "Resources\tNon-Resource URLs\tResource Names\tVerbs")
    factory.print(tables.format_lines(lines), end="")


def _authorizer(factory: Factory) -> authorization.Authorizer:
    """Return what decides about the user: the roles and bindings, unless it is an administrator."""
    groups = factory.client.user["groups"]
    if authorization.CLUSTER_ADMINS not in groups:
        factory.client.use_authorization(authorization.RBAC)
    return factory.client.authorizer


def _attributes(
    factory: Factory, options: CanIOptions, verb: str, target: str
) -> authorization.AttributesRecord:
    """Return the action that is asked about."""
    user = factory.client.user
    if target.startswith("/"):
        return authorization.AttributesRecord(user, verb, path=target, is_resource_request=False)
    word, _, name = target.partition("/")
    resource = factory.scheme.find(word)
    return authorization.AttributesRecord(
        user,
        verb,
        resource.group if resource is not None else "",
        resource.plural if resource is not None else word,
        options.subresource,
        "" if options.all_namespaces else factory.namespace,
        name,
    )


def _warn_of_resource(factory: Factory, options: CanIOptions, verb: str, word: str) -> None:
    """Warn of resources and verbs that the cluster does not have."""
    if word == "*":
        return
    resource: Resource | None = factory.scheme.find(word)
    if resource is None and word not in UNDISCOVERED:
        name, _, group = word.lower().partition(".")
        in_group = f" in group '{group}'" if group else ""
        factory.warn(f"the server doesn't have a resource type '{name}'{in_group}\n")
    if options.all_namespaces:
        return
    if resource is not None and not resource.namespaced:
        in_group = f" in group '{resource.group}'" if resource.group else ""
        factory.warn(f"resource '{resource.plural}' is not namespace scoped{in_group}\n")
    if verb not in VERBS:
        factory.warn(f"verb '{printable(verb)}' is not a known verb\n")


# --- whoami ---------------------------------------------------------------------------------------


@command(
    "whoami",
    PrintFlags,
    examples="""
# Print the user that requests are made as
kubepy auth whoami

# As another user
kubepy auth whoami --as=ann -o yaml
""",
)
def whoami(factory: Factory, options: PrintFlags) -> None:
    """Check self subject attributes.

    There is one user, the administrator; --as names another one."""
    printer = output.printer_for(factory, options, typed=True)
    factory.require_cluster()
    user = factory.client.user
    if options.output or options.template:
        printer(
            {
                "kind": "SelfSubjectReview",
                "apiVersion": "authentication.k8s.io/v1",
                "metadata": {"creationTimestamp": factory.cluster.clock.timestamp()},
                "status": {"userInfo": user},
            }
        )
        return

    rows = [
        ("ATTRIBUTE", "VALUE"),
        ("Username", user["username"]),
        ("UID", user.get("uid", "")),
        ("Groups", f"[{' '.join(user['groups'])}]"),
    ]
    factory.print(tables.format_lines(["\t".join(row) for row in rows if row[1]]), end="")


# --- reconcile ------------------------------------------------------------------------------------

ROLES = ("Role", "ClusterRole")
BINDINGS = ("RoleBinding", "ClusterRoleBinding")


class ReconcileOptions(KustomizeOptions, PrintFlags, DryRunOptions):
    """The flags of ``auth reconcile``."""

    filename: list[str] = filename_flag("identifying the resource to reconcile.")
    remove_extra_permissions: bool = bool_flag(
        "remove-extra-permissions", help="If true, removes extra permissions added to roles."
    )
    remove_extra_subjects: bool = bool_flag(
        "remove-extra-subjects", help="If true, removes extra subjects added to rolebindings."
    )


@command(
    "reconcile -f FILENAME",
    ReconcileOptions,
    creates=True,
    examples="""
# Reconcile roles and bindings with a file
kubepy auth reconcile -f rbac.yaml

# Also remove rules and subjects that the file does not have
kubepy auth reconcile -f rbac.yaml --remove-extra-permissions --remove-extra-subjects
""",
)
def reconcile(factory: Factory, options: ReconcileOptions) -> None:
    """Reconcile rules for role, role binding, cluster role, and cluster role binding objects.

    Missing objects are created, together with their namespaces; objects of other kinds are passed over."""  # noqa: E501
    options.require_files()
    if options.args:
        raise CliError("no arguments are allowed")
    strategy = factory.dry_run_strategy(options)
    if strategy == SERVER:
        raise CliError("--dry-run=server for command reconcile is not supported yet")
    printer = output.printer_for(factory, options, "reconciled", strategy, typed=True)
    builder.Builder(factory, options, local=True).do().visit(
        lambda info: _reconcile_object(factory, options, info, printer, strategy)
    )


def _reconcile_object(
    factory: Factory, options: ReconcileOptions, info: Info, printer: Printer, strategy: str
) -> None:
    if info.resource.group != GROUP or info.resource.kind not in (*ROLES, *BINDINGS):
        return
    version = info.content["apiVersion"].rpartition("/")[2]
    if version != "v1":
        raise CliError(f"only {GROUP}/v1 is supported: not *{version}.{info.resource.kind}")
    expected = objects.typed(info.content, info.source)
    if info.resource.namespaced and not info.namespace:
        raise CliError(
            "resource name may not be empty"
        )  # kubectl's message for a missing namespace

    existing = unless_missing(
        factory.client.get, info.resource.gvr, info.name, namespace=info.namespace
    )
    is_role = info.resource.kind in ROLES
    if existing is None:
        missing = expected.get("rules" if is_role else "subjects") or []
        result = ReconcileResult(expected, CREATE, list(missing), [])
    elif is_role:
        result = reconcile_role(existing, expected, removes=options.remove_extra_permissions)
    else:
        result = reconcile_binding(existing, expected, removes=options.remove_extra_subjects)

    obj = result.object
    if result.operation and not result.is_protected and strategy != CLIENT:
        obj = _write(factory, info, result)
    printer(obj)
    if not result.operation:
        return
    opted_out = f", but object opted out ({AUTOUPDATE}: false)" if result.is_protected else ""
    factory.say(f"\treconciliation required {result.operation}{opted_out}")
    noun, text_of = ("rules", rule_text) if is_role else ("subjects", subject_text)
    removes = options.remove_extra_permissions if is_role else options.remove_extra_subjects
    for title, items in (
        (f"missing {noun} added", result.missing),
        (f"extra {noun} removed", result.extra if removes else []),
    ):
        if items:
            factory.say("\n".join([f"\t{title}:", *(f"\t\t{text_of(item)}" for item in items)]))


def _write(factory: Factory, info: Info, result: ReconcileResult) -> Object:
    """Write the object, with its namespace if that is missing. Return it as the cluster has it
    then."""
    client = factory.client
    key = info.resource.key
    with client.joined():
        if result.operation == UPDATE:
            return client.update(
                key,
                result.object,
                namespace=info.namespace,
                options=UpdateOptions(field_manager=UNNAMED),
            )
        if result.operation == RECREATE:
            client.delete(key, info.name, namespace=info.namespace)
        if info.namespace and unless_missing(client.get, "namespaces", info.namespace) is None:
            namespace: dict[str, Any] = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": info.namespace},
            }
            client.create("namespaces", namespace, options=CreateOptions(field_manager=UNNAMED))
        return client.create(
            key,
            result.object,
            namespace=info.namespace,
            options=CreateOptions(field_manager=UNNAMED),
        )


# --- rules ----------------------------------------------------------------------------------------


def rule_rows(rules: Iterable[AnyObject]) -> list[list[str]]:
    """Return a row for each of the compacted rules: resources, URLs, names of resources, verbs."""
    rows: list[list[str]] = []
    for rule in compact_rules(rules):
        resource = "".join(rule.get("resources", ())[:1])
        name, slash, subresource = resource.partition("/")
        group = "".join(rule.get("apiGroups", ())[:1])
        suffix = f".{group}" if group else ""
        row = [f"{name}{suffix}{slash}{subresource}"]
        for key in ("nonResourceURLs", "resourceNames", "verbs"):
            values = " ".join(rule.get(key, ()))
            row.append(f"[{values}]")
        rows.append(row)
    return rows


def compact_rules(rules: Iterable[AnyObject]) -> list[Object]:
    """Return a rule for each resource (and resource name) with all its verbs, and one for each verb
    of a URL."""
    compacted: list[Object] = []
    simple: dict[tuple[str, ...], Object] = {}
    for rule in (part for source in rules for part in broken_down(source)):
        if rule.get("nonResourceURLs"):
            compacted.append(rule)
            continue
        merged = simple.setdefault(
            (*rule["apiGroups"], *rule["resources"], *rule.get("resourceNames", ())), rule
        )
        merged["verbs"] += [verb for verb in rule["verbs"] if verb not in merged["verbs"]]
    return sorted([*compacted, *simple.values()], key=rule_text)


def rule_text(rule: AnyObject) -> str:
    """Format a PolicyRule as Go's ``%+v``."""
    fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    return (
        "{"
        + " ".join(
            f"{_go_name(field)}:{goformat.format_value(rule.get(field) or [])}" for field in fields
        )
        + "}"
    )


def subject_text(subject: AnyObject) -> str:
    """Format a Subject as Go's ``%+v``."""
    fields = ("kind", "apiGroup", "name", "namespace")
    return "{" + " ".join(f"{_go_name(field)}:{subject.get(field, '')}" for field in fields) + "}"


def _go_name(field: str) -> str:
    return {"apiGroups": "APIGroups", "apiGroup": "APIGroup"}.get(
        field, field[0].upper() + field[1:]
    )
