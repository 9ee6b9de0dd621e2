"""The entry of a kind in the table of its API group, and the admission plugins that entries name.

Upstream: ``pkg/registry/*/rest``, ``pkg/kubeapiserver/options/plugins.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kubepy.apiserver.printers import Printer, print_plain
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver import strategy as strategies
    from kubepy.apiserver.admission import (
        certificates,
        classes,
        limits,
        podsecurity,
        scheduling,
        serviceaccounts,
    )

if TYPE_CHECKING:
    from kubepy.apiserver.server import Attributes
    from kubepy.apiserver.strategy import Strategy


class AdmissionPlugin(NamedTuple):
    """A part of an admission plugin, which has upstream's name.

    ``operations`` are those that it is about: ``create``, ``update``, ``update/resize`` …
    """

    name: str
    operations: tuple[str, ...]
    admit: Callable[[Attributes], None]


class ServedKind(NamedTuple):
    """The server's rules for one kind.

    ``mutating`` plugins complete an object before the kind's own rules see it, ``validating`` ones
    refuse what those rules let through; both are in upstream's order.
    """

    strategy: Callable[[], type[Strategy]] = lambda: strategies.Strategy
    printer: Callable[[], Printer] = lambda: print_plain
    mutating: tuple[AdmissionPlugin, ...] = ()
    validating: tuple[AdmissionPlugin, ...] = ()


# --- admission plugins ----------------------------------------------------------------------------

_CREATE = ("create",)
_WRITE = ("create", "update")

CHECK_APPROVAL = AdmissionPlugin(
    "CertificateApproval",
    ("update/approval",),
    lambda attributes: certificates.check_approval(attributes),
)
CHECK_CLAIM_LIMITS = AdmissionPlugin(
    "LimitRanger", _WRITE, lambda attributes: limits.check_limits(attributes)
)
CHECK_LIMITS = AdmissionPlugin(
    "LimitRanger", ("create", "update/resize"), lambda attributes: limits.check_limits(attributes)
)
CHECK_NAMESPACE = AdmissionPlugin(
    "PodSecurity", _WRITE, lambda attributes: podsecurity.check_namespace(attributes)
)
CHECK_ONE_DEFAULT = AdmissionPlugin(
    "Priority", _WRITE, lambda attributes: scheduling.check_one_default(attributes)
)
CHECK_OVERHEAD = AdmissionPlugin(
    "RuntimeClass", _CREATE, lambda attributes: scheduling.check_overhead(attributes)
)
CHECK_POD = AdmissionPlugin(
    "PodSecurity",
    (*_WRITE, "update/ephemeralcontainers", "update/resize"),
    lambda attributes: podsecurity.check_pod(attributes),
)
CHECK_RESIZE = AdmissionPlugin(
    "PersistentVolumeClaimResize", ("update",), lambda attributes: classes.check_resize(attributes)
)
DEFAULT_INGRESS_CLASS = AdmissionPlugin(
    "DefaultIngressClass", _CREATE, lambda attributes: classes.set_default_ingress_class(attributes)
)
DEFAULT_STORAGE_CLASS = AdmissionPlugin(
    "DefaultStorageClass", _CREATE, lambda attributes: classes.set_default_storage_class(attributes)
)
DEFAULT_TOLERATIONS = AdmissionPlugin(
    "DefaultTolerationSeconds",
    _WRITE,
    lambda attributes: scheduling.add_default_tolerations(attributes),
)
KEEP_PRIORITY = AdmissionPlugin(
    "Priority", ("update",), lambda attributes: scheduling.keep_priority(attributes)
)
LIMIT_DEFAULTS = AdmissionPlugin(
    "LimitRanger", _CREATE, lambda attributes: limits.apply_limit_defaults(attributes)
)
PROTECT_CLAIM = AdmissionPlugin(
    "StorageObjectInUseProtection", _CREATE, lambda attributes: classes.protect_claim(attributes)
)
PROTECT_VOLUME = AdmissionPlugin(
    "StorageObjectInUseProtection", _CREATE, lambda attributes: classes.protect_volume(attributes)
)
RUNTIME_CLASS = AdmissionPlugin(
    "RuntimeClass", _CREATE, lambda attributes: scheduling.apply_runtime_class(attributes)
)
SET_PRIORITY = AdmissionPlugin(
    "Priority", _CREATE, lambda attributes: scheduling.set_priority(attributes)
)
CHECK_SIGNING = AdmissionPlugin(
    "CertificateSigning",
    ("update/status",),
    lambda attributes: certificates.check_signing(attributes),
)
CHECK_SUBJECT = AdmissionPlugin(
    "CertificateSubjectRestriction",
    _CREATE,
    lambda attributes: certificates.check_subject(attributes),
)
CHECK_SERVICE_ACCOUNT = AdmissionPlugin(
    "ServiceAccount",
    ("create", "update/ephemeralcontainers"),
    lambda attributes: serviceaccounts.check_service_account(attributes),
)
SET_SERVICE_ACCOUNT = AdmissionPlugin(
    "ServiceAccount", _CREATE, lambda attributes: serviceaccounts.set_service_account(attributes)
)
TAINT_NODE = AdmissionPlugin(
    "TaintNodesByCondition", _CREATE, lambda attributes: scheduling.taint_node(attributes)
)
WARN_OF_TEMPLATE = AdmissionPlugin(
    "PodSecurity", _WRITE, lambda attributes: podsecurity.warn_of_template(attributes)
)
