"""``kubepy auth reconcile``: roles and bindings get what files describe, and keep what else they have.

Upstream: ``kubectl/pkg/cmd/auth/reconcile.go``, ``component-helpers/auth/rbac/reconciliation``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.cli.auth.rules import rule_text, subject_text, uncovered
from kubepy.cli.errors import CliError, unless_missing
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    SERVER,
    UNNAMED,
    dry_run,
    dry_run_flag,
    filename_flags,
    output_flags,
    require_files,
)
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import typed
from kubepy.cli.runtime.output import Printer, printer_for
from kubepy.cli.runtime.verbs import Invocation, find, verb

GROUP = "rbac.authorization.k8s.io"
OPTED_OUT = "rbac.authorization.kubernetes.io/autoupdate"
ROLES, BINDINGS = ("Role", "ClusterRole"), ("RoleBinding", "ClusterRoleBinding")
CREATE, UPDATE, RECREATE = "create", "update", "recreate"
FLAGS = [
    *filename_flags("identifying the resource to reconcile."),
    *output_flags(),
    boolean("remove-extra-permissions", help="If true, removes extra permissions added to roles."),
    boolean("remove-extra-subjects", help="If true, removes extra subjects added to rolebindings."),
    dry_run_flag(),
]


class Plan(NamedTuple):
    """What is to happen to an object (``operation`` "": nothing), and why: ``missing`` and ``extra`` are rules of a
    role, subjects of a binding."""

    object: Object
    operation: str
    missing: list[Object]
    extra: list[Object]
    is_protected: bool = False


@verb("reconcile", "reconcile -f FILENAME", flags=FLAGS, creates=True, examples="""
# Give roles and bindings what a file describes
kubepy auth reconcile -f rbac.yaml

# And take away what it does not
kubepy auth reconcile -f rbac.yaml --remove-extra-permissions --remove-extra-subjects
""")
def reconcile(factory: Factory, given: Invocation) -> None:
    """Reconcile rules for role, role binding, cluster role, and cluster role binding objects.

    Missing objects are created, together with their namespaces; objects of other kinds are passed over."""
    require_files(given)
    if given.args:
        raise CliError("no arguments are allowed")
    strategy = dry_run(factory, given)
    if strategy == SERVER:
        raise CliError("--dry-run=server for command reconcile is not supported yet")
    printer = printer_for(factory, given, "reconciled", strategy, typed=True)
    find(factory, given, local=True).visit(lambda info: _reconcile_one(factory, given, info, printer, strategy))


def _reconcile_one(factory: Factory, given: Invocation, info: Info, printer: Printer, strategy: str) -> None:
    if info.resource.group != GROUP or info.resource.kind not in (*ROLES, *BINDINGS):
        return
    version = info.content["apiVersion"].rpartition("/")[2]
    if version != "v1":
        raise CliError(f"only {GROUP}/v1 is supported: not *{version}.{info.resource.kind}")
    expected = typed(info.content, info.source)
    if info.resource.namespaced and not info.namespace:
        raise CliError("resource name may not be empty")  # kubectl's words for a namespace that is not named
    existing = _existing(factory, info)
    plan = _plan(given, existing, expected)
    made = plan.object
    if plan.operation and not plan.is_protected and strategy != CLIENT:
        made = _carry_out(factory, info, plan)
    printer(made)
    _explain(factory, given, plan, is_role=info.resource.kind in ROLES)


def _existing(factory: Factory, info: Info) -> Object | None:
    return unless_missing(factory.client.get, info.resource.address, info.name, namespace=info.namespace)


# --- deciding -----------------------------------------------------------------------------------------------------


def _plan(given: Invocation, existing: Object | None, expected: Object) -> Plan:
    is_role = expected["kind"] in ROLES
    if existing is None:
        return Plan(expected, CREATE, list((expected.get("rules") if is_role else expected.get("subjects")) or []), [])
    protected = (existing["metadata"].get("annotations") or {}).get(OPTED_OUT) == "false"
    if is_role:
        return role_plan(existing, expected, given.remove_extra_permissions)._replace(is_protected=protected)
    return binding_plan(existing, expected, given.remove_extra_subjects)._replace(is_protected=protected)


def role_plan(existing: Object, expected: Object, removes: bool) -> Plan:
    """What makes a role allow what is expected, and only that if ``removes``."""
    wanted = _with_metadata(existing, expected)
    old_rules, new_rules = existing.get("rules") or [], expected.get("rules") or []
    missing = uncovered(old_rules, new_rules)
    aggregated = expected.get("aggregationRule") is not None and existing.get("aggregationRule") is not None
    extra = [] if aggregated else uncovered(new_rules, old_rules)
    if removes and (missing or extra):
        wanted["rules"] = new_rules
    elif missing:
        wanted["rules"] = [*old_rules, *missing]
    _aggregate(wanted, expected.get("aggregationRule"), removes)
    return Plan(wanted, UPDATE if wanted != existing else "", missing, extra)


def _aggregate(wanted: Object, expected: Object | None, removes: bool) -> None:
    """Give a role the selectors that are expected of it; changes the role."""
    if expected is None:
        wanted.pop("aggregationRule", None)
        return
    old = (wanted.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    new = expected.get("clusterRoleSelectors") or []
    missing = [one for one in new if one not in old]
    if removes and (missing or [one for one in old if one not in new]):
        wanted["aggregationRule"] = expected
    elif missing:
        wanted["aggregationRule"] = {"clusterRoleSelectors": [*old, *missing]}


def binding_plan(existing: Object, expected: Object, removes: bool) -> Plan:
    """What binds the subjects that are expected, and only them if ``removes``; another role needs another binding."""
    if existing["roleRef"] != expected["roleRef"]:
        return Plan(expected, RECREATE, [], [])
    wanted = _with_metadata(existing, expected)
    old, new = existing.get("subjects") or [], expected.get("subjects") or []
    missing, extra = _without(new, old), _without(old, new)
    if removes and (missing or extra):
        wanted["subjects"] = new
    elif missing:
        wanted["subjects"] = [*old, *missing]
    return Plan(wanted, UPDATE if wanted != existing else "", missing, extra)


def _without(subjects: Iterable[Object], others: list[Object]) -> list[Object]:
    found: list[Object] = []
    for one in subjects:
        if one not in others and one not in found:
            found.append(one)
    return found


def _with_metadata(existing: Object, expected: Object) -> Object:
    """A copy of the existing object with the labels and annotations that it lacks."""
    wanted = copy.deepcopy(existing)
    for field in ("annotations", "labels"):
        if values := {**(expected["metadata"].get(field) or {}), **(existing["metadata"].get(field) or {})}:
            wanted["metadata"][field] = dict(sorted(values.items()))
    return wanted


# --- doing and telling --------------------------------------------------------------------------------------------


def _carry_out(factory: Factory, info: Info, plan: Plan) -> Object:
    """Returns the object as the cluster has it then."""
    client, key = factory.client, info.resource.key
    with client.joined():
        if plan.operation == UPDATE:
            return client.update(key, plan.object, namespace=info.namespace, field_manager=UNNAMED)
        if plan.operation == RECREATE:
            client.delete(key, info.name, namespace=info.namespace)
        if info.namespace:
            _ensure_namespace(factory, info.namespace)
        return client.create(key, plan.object, namespace=info.namespace, field_manager=UNNAMED)


def _ensure_namespace(factory: Factory, name: str) -> None:
    if unless_missing(factory.client.get, "namespaces", name) is None:
        namespace: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        factory.client.create("namespaces", namespace, field_manager=UNNAMED)


def _explain(factory: Factory, given: Invocation, plan: Plan, *, is_role: bool) -> None:
    if not plan.operation:
        return
    caveat = f", but object opted out ({OPTED_OUT}: false)" if plan.is_protected else ""
    factory.say(f"\treconciliation required {plan.operation}{caveat}")
    what, text = ("rules", rule_text) if is_role else ("subjects", subject_text)
    removes = given.remove_extra_permissions if is_role else given.remove_extra_subjects
    for title, found in ((f"missing {what} added", plan.missing), (f"extra {what} removed", plan.extra * removes)):
        if found:
            factory.say("\n".join([f"\t{title}:", *(f"\t\t{text(one)}" for one in found)]))
