"""The settings of a cluster: what its ``kubepy.yaml`` says, one field a key, checked when the
cluster is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.clock import CLOCK_YEARS, parse_time
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote
from kubepy.storage import FolderError

with lazy_imports():
    from kubepy.api.objects import outcomes
    from kubepy.api.values import goformat

if TYPE_CHECKING:
    from ipaddress import IPv4Network

    from kubepy.apiserver.absence import AbsentObjects
    from kubepy.apiserver.fault_settings import FaultSettings
    from kubepy.apiserver.rule_settings import RuleSettings

with lazy_imports():
    from kubepy.apiserver import absence, fault_settings, rule_settings

FINEST = "time goes by microseconds"
AUTO, NEVER = "auto", "never"
READS = "reads"
MINIMAL, FULL = "minimal", "full"
MODELLED, SIMPLE = "modelled", "simple"
ESTIMATED, UNKNOWN = "estimated", "unknown"
DEFAULT_CONTAINERS = MODELLED  # how the containers of new clusters live
CONTAINERS_VARIABLE = "KUBEPY_CONTAINERS"  # of the environment: another such default
API_SERVICES = "apiservices.apiregistration.k8s.io"
# The resources of which some objects are implied (``kubepy.apiserver.implied``).
IMPLIED = frozenset(
    (
        API_SERVICES,
        "serviceaccounts",
        "services",
        "endpoints",
        "endpointslices.discovery.k8s.io",
        *(
            f"{plural}.rbac.authorization.k8s.io"
            for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
        ),
    )
)
# … whatever the cluster's bootstrap: an API server makes these for itself when it starts.
IMPLIED_ALWAYS = frozenset((API_SERVICES,))
SERVICE_SUBNET = "10.96.0.0/12"  # kubeadm's
SMALLEST_SERVICE_SUBNET = 10  # addresses, as kubeadm wants them
SERVICE = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?(:(?P<port>[0-9]{1,5}))?"
ALLOWS = "allows"  # what a Service is mapped to whose webhooks allow everything
BASE_URL = r"https?://(\[[0-9a-fA-F:.]+\]|[^\s/?#@:\[\]]+)(:(?P<port>[0-9]{1,5}))?(/[^\s?#]*)?"
MAX_PORT = 65535
# The plugins that can be turned off: those that look at single kinds (``kubepy.apiserver.kinds``).
ADMISSION_PLUGINS = (
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "LimitRanger",
    "PersistentVolumeClaimResize",
    "PodSecurity",
    "Priority",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
)


class Networking(NamedTuple):
    """The addresses that the cluster gives away.

    :param service_subnet: the range of cluster IPs, as a network of IPv4.
    :param load_balancer_pool: what Services of type LoadBalancer get an address of: pairs of the
        first and the last address, as numbers, in the order in which they are used. Without any,
        such Services stay pending.
    """

    service_subnet: str = SERVICE_SUBNET
    load_balancer_pool: tuple[tuple[int, int], ...] = ()


class KubeletSettings(NamedTuple):
    """The values that annotations about pods have where neither a pod nor its node names one; empty
    for none.

    :param containers: ``modelled`` or ``simple``: whether containers do what their manifests say,
        or run.
    :param rules: what containers do that cannot be known from their manifests; None: nothing.
    :param silent_nodes: the nodes whose kubelets report nothing, so that they stay as they are.
    :param usage: ``estimated``, or ``unknown``: containers use what rules and annotations say, and
        of others no metrics are served.
    """

    outcome: str = ""
    ready_after: str = ""
    stops_after: str = ""
    runs_for: str = ""
    exit_code: str = ""
    references: str = ""
    containers: str = SIMPLE
    rules: RuleSettings | None = None
    silent_nodes: frozenset[str] = frozenset()
    usage: str = ESTIMATED

    @property
    def identity(self) -> str:
        """The text by which one version of the settings is told from another."""
        text = f"{tuple(self.annotations().values())}"
        if self.containers != SIMPLE:
            text = f"{text} {self.containers}"
        if self.rules is not None:
            text = f"{text} {self.rules.source}"
        if self.silent_nodes:
            text = f"{text} {sorted(self.silent_nodes)}"
        if self.usage != ESTIMATED:
            text = f"{text} usage {self.usage}"
        return text

    def annotations(self) -> dict[str, str]:
        """Return the values by the names of the annotations."""
        return {
            outcomes.OUTCOME: self.outcome,
            outcomes.READY_AFTER: self.ready_after,
            outcomes.STOPS_AFTER: self.stops_after,
            outcomes.RUNS_FOR: self.runs_for,
            outcomes.EXIT_CODE: self.exit_code,
            outcomes.REFERENCES: self.references,
        }


class AdmissionSettings(NamedTuple):
    """The admission plugins that do not run (kube-apiserver's ``--disable-admission-plugins``)."""

    disable_plugins: frozenset[str] = frozenset()


class TimelineSettings(NamedTuple):
    """The memory of what has happened.

    :param keep: for how many seconds of the cluster's time; 0: nothing is kept.
    """

    keep: float = 24 * 3600.0


class Limits(NamedTuple):
    """How many objects the cluster takes at most.

    :param pods: in all namespaces.
    """

    pods: int = 200_000


class ClusterSettings(NamedTuple):
    """The settings with their types. A key that ``kubepy.yaml`` does not have takes its default.

    :param clock: the moment at which the cluster's time stands; None is the system's time.
    :param tick: ``reads`` or ``never``: whether that time goes on with each command that reads.
    :param seed: what random draws are a function of; None draws from the system.
    :param reconcile: ``auto`` or ``never``: whether commands run the controllers.
    :param bootstrap: ``minimal`` or ``full``: whether the objects that every cluster has are
        implied, or files that controllers keep.
    :param webhooks: the URLs at which the Services of webhooks answer, by ``namespace/name`` or
        ``namespace/name:port``; ``allows`` where they allow everything.
    :param kubelet: how pods live that no annotation speaks of.
    :param admission: which plugins do not run.
    :param timeline: how long the cluster remembers what has happened.
    :param limits: how many objects it takes.
    :param faults: what goes wrong; None: nothing.
    :param absent: what an imported source names and does not hold; None: nothing.
    """

    clock: datetime | None = None
    tick: str = NEVER
    seed: int | str | None = None
    reconcile: str = AUTO
    bootstrap: str = MINIMAL
    networking: Networking = Networking()
    webhooks: Mapping[str, str] = MappingProxyType({})
    kubelet: KubeletSettings = KubeletSettings()
    admission: AdmissionSettings = AdmissionSettings()
    timeline: TimelineSettings = TimelineSettings()
    limits: Limits = Limits()
    faults: FaultSettings | None = None
    absent: AbsentObjects | None = None

    @property
    def implied_resources(self) -> frozenset[str]:
        """The resources of which the cluster has objects that are not stored."""
        if self.bootstrap == MINIMAL:
            return IMPLIED
        return IMPLIED_ALWAYS


def parse_settings(settings: Mapping[str, Any], folder: str = "") -> ClusterSettings:
    """Check the settings of a cluster. Raises FolderError, which names the field.

    :param folder: the state folder in which a file of rules is looked up.
    """
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key == "formatVersion":  # storage has checked it
            continue
        if key not in PARSERS:
            raise invalid(str(key), f"unknown setting: must be one of {', '.join(PARSERS)}")
        if value is not None:
            values[key] = _kubelet(value, folder) if key == "kubelet" else PARSERS[key](value)

    parsed = ClusterSettings(**values)
    if parsed.tick == READS and parsed.clock is None:
        raise invalid(
            "tick",
            f"{READS} goes with a clock: without one the cluster's time is the system's, which "
            "nothing can move",
        )

    if parsed.faults is not None and parsed.faults.seed is None:
        parsed = parsed._replace(faults=parsed.faults._replace(seed=parsed.seed))
    return parsed


def invalid(field: str, message: str) -> FolderError:
    """Build the error for a setting by the path of its field (``networking.serviceSubnet``)."""
    return FolderError(printable(f"kubepy.yaml: {field}: {message}"))


def choice(field: str, *allowed: str) -> Callable[[Any], str]:
    """Build the parser of a setting that takes one of a few words."""

    def parse(value: Any) -> str:
        if value not in allowed:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            raise invalid(field, f"{quote(text)} is not one of {', '.join(allowed)}")
        return str(value)

    return parse


def _clock(value: Any) -> datetime:
    try:
        moment = parse_time(value).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise invalid("clock", f"{value!r} is not a time such as 2026-11-20T10:13:48Z") from None
    if is_too_exact(value):
        raise invalid("clock", f"{value!r} is too exact: {FINEST}")
    if moment.year not in CLOCK_YEARS:
        raise invalid(
            "clock", f"{value!r} is not between the years {CLOCK_YEARS[0]} and {CLOCK_YEARS[-1]}"
        )
    return moment


def is_too_exact(time: str) -> bool:
    """Return whether a time has parts of a microsecond, which Python would drop."""
    return re.search(r"[.,][0-9]{6}[0-9]*[1-9]", time) is not None


def _seed(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise invalid("seed", "must be a string or a number without fraction")
    return value


def parse_networking(value: Any) -> Networking:
    if not isinstance(value, dict):
        raise invalid("networking", "must be a map of serviceSubnet and loadBalancerPool")
    for key in value:
        if key not in ("serviceSubnet", "loadBalancerPool"):
            raise invalid(
                f"networking.{key}",
                "unknown setting: must be one of serviceSubnet, loadBalancerPool",
            )

    pool = value.get("loadBalancerPool") or []
    if not isinstance(pool, list):
        raise invalid(
            "networking.loadBalancerPool",
            "must be a list of networks (192.0.2.0/28) and ranges (192.0.2.16-192.0.2.31)",
        )

    subnet = (
        SERVICE_SUBNET
        if value.get("serviceSubnet") is None
        else parse_service_subnet(value["serviceSubnet"])
    )
    return Networking(
        subnet,
        tuple(
            parse_addresses(f"networking.loadBalancerPool[{index}]", entry)
            for index, entry in enumerate(pool)
        ),
    )


def parse_service_subnet(value: Any) -> str:
    field = "networking.serviceSubnet"
    subnet = _network(field, value)
    if subnet.num_addresses < SMALLEST_SERVICE_SUBNET:
        raise invalid(
            field,
            f"{subnet} has too few addresses: must contain at least {SMALLEST_SERVICE_SUBNET}",
        )
    return str(subnet)


def parse_addresses(field: str, value: Any) -> tuple[int, int]:
    """Read a network or a range of the pool."""
    from ipaddress import IPv4Address  # few clusters have such settings

    if "-" not in str(value):
        network = _network(
            field, f"{value}/32" if isinstance(value, str) and "/" not in value else value
        )
        return int(network[0]), int(network[-1])

    try:
        first, last = (IPv4Address(part.strip()) for part in str(value).split("-"))
    except ValueError:
        raise invalid(
            field,
            f"{quote(str(value))} is not a range of IPv4 addresses such as 192.0.2.16-192.0.2.31",
        ) from None

    if last < first:
        raise invalid(field, f"{quote(str(value))} ends before it begins")
    return int(first), int(last)


def _network(field: str, value: Any) -> IPv4Network:
    """Read a network in CIDR notation; as Go's ParseCIDR, bits behind the mask are let go."""
    from ipaddress import IPv4Network

    try:
        if not isinstance(value, str) or "/" not in value:
            raise ValueError
        return IPv4Network(value, strict=False)
    except ValueError:
        shown = "a list or map" if isinstance(value, list | dict) else quote(str(value))
        raise invalid(field, f"{shown} is not a network of IPv4 such as {SERVICE_SUBNET}") from None


def _webhooks(value: Any) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise invalid(
            "webhooks",
            "must be a map of Services to URLs, such as default/my-hook: http://127.0.0.1:9443",
        )

    for service, url in value.items():
        if url == ALLOWS and _matches(BASE_URL, service):
            continue
        if not _matches(SERVICE, service):
            raise invalid(
                "webhooks",
                f"{quote(str(service))} is not a Service: must be namespace/name or "
                "namespace/name:port",
            )
        if url != ALLOWS and not _matches(BASE_URL, url):
            raise invalid(
                f"webhooks[{service}]",
                f"{quote(str(url))} is neither {ALLOWS} nor a URL such as http://127.0.0.1:9443: "
                "must be http or https, without user, query and fragment",
            )

    return MappingProxyType(dict(value))


def new_cluster_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a new cluster with how its containers live, which a ``kubepy.yaml`` of
    an earlier version does not say. Raises FolderError."""
    kubelet = settings.get("kubelet") or {}
    containers = os.environ.get(CONTAINERS_VARIABLE) or DEFAULT_CONTAINERS
    if containers not in (MODELLED, SIMPLE):
        message = f"{quote(containers)} is not one of {MODELLED}, {SIMPLE}"
        raise FolderError(printable(f"{CONTAINERS_VARIABLE}: {message}"))
    is_given = isinstance(kubelet, dict) and "containers" in kubelet
    if is_given or not isinstance(kubelet, dict):
        return dict(settings)
    return {**settings, "kubelet": {"containers": containers, **kubelet}}


def _kubelet(value: Any, folder: str = "") -> KubeletSettings:
    names = (*KUBELET_TEXTS, "containers", "rules", "silentNodes", "usage")
    if not isinstance(value, dict):
        raise invalid("kubelet", f"must be a map of {', '.join(names)}")
    values: dict[str, Any] = {}
    for key, setting in value.items():
        field = f"kubelet.{key}"
        if key not in names:
            raise invalid(field, f"unknown setting: must be one of {', '.join(names)}")
        if setting is None:
            continue
        if key == "rules":
            values["rules"] = rule_settings.parse_rules(setting, folder)
        elif key == "containers":
            values["containers"] = choice(field, MODELLED, SIMPLE)(setting)
        elif key == "usage":
            values["usage"] = choice(field, ESTIMATED, UNKNOWN)(setting)
        elif key == "silentNodes":
            values["silent_nodes"] = _silent_nodes(field, setting)
        else:
            name = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", key)
            values[name] = _annotation_text(field, key, setting)

    return KubeletSettings(**values)


def _silent_nodes(field: str, value: Any) -> frozenset[str]:
    """Check a list of names of nodes."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise invalid(field, "must be a list of names of nodes")
    return frozenset(value)


def _annotation_text(field: str, key: str, setting: Any) -> str:
    """Check the default of an annotation."""
    if isinstance(setting, list | dict | bool):
        raise invalid(field, "must be a string")
    try:
        KUBELET_TEXTS[key](field, str(setting))
    except ValueError as error:
        raise invalid(field, str(error).removeprefix(f"{field}: ")) from None
    return str(setting)


def _admission(value: Any) -> AdmissionSettings:
    if not isinstance(value, dict):
        raise invalid("admission", "must be a map of disablePlugins")
    for key in value:
        if key != "disablePlugins":
            raise invalid(f"admission.{key}", "unknown setting: must be disablePlugins")
    names = value.get("disablePlugins") or []
    if not isinstance(names, list):
        raise invalid("admission.disablePlugins", "must be a list of names of admission plugins")
    for index, name in enumerate(names):
        if name not in ADMISSION_PLUGINS:
            raise invalid(
                f"admission.disablePlugins[{index}]",
                f"{quote(str(name))} is not one of {', '.join(ADMISSION_PLUGINS)}",
            )

    return AdmissionSettings(frozenset(names))


def _timeline(value: Any) -> TimelineSettings:
    if not isinstance(value, dict):
        raise invalid("timeline", "must be a map of keep")
    for key in value:
        if key != "keep":
            raise invalid(f"timeline.{key}", "unknown setting: must be keep")
    text = value.get("keep")
    if text is None:
        return TimelineSettings()
    try:
        seconds = goformat.parse_span("0" if text == 0 and not isinstance(text, bool) else text)
    except (TypeError, ValueError):
        seconds = -1.0

    if seconds < 0:
        raise invalid("timeline.keep", f"{quote(str(text))} is not a duration such as 24h or 7d")
    return TimelineSettings(seconds)


def _limits(value: Any) -> Limits:
    fields = Limits._fields
    if not isinstance(value, dict):
        raise invalid("limits", f"must be a map of {', '.join(fields)}")
    limits = Limits()
    for key, number in value.items():
        if key not in fields:
            raise invalid(f"limits.{key}", f"unknown setting: must be {', '.join(fields)}")
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise invalid(
                f"limits.{key}",
                f"{quote(str(number))} is not a number of objects such as {Limits().pods}",
            )
        limits = limits._replace(**{key: number})

    return limits


def _matches(form: str, text: Any) -> bool:
    """Tell whether a text has a form, and no port or a possible one."""
    match = re.fullmatch(form, text) if isinstance(text, str) else None
    return match is not None and 0 < int(match["port"] or 1) <= MAX_PORT


# The defaults of annotations in ``kubelet``, and what reads them.
KUBELET_TEXTS: Mapping[str, Callable[[str, str], Any]] = {
    "outcome": lambda field, text: outcomes.parse_outcomes(field, text),
    "readyAfter": lambda field, text: outcomes.parse_length(field, text),
    "stopsAfter": lambda field, text: outcomes.parse_length(field, text),
    "runsFor": lambda field, text: outcomes.parse_length(field, text),
    "exitCode": lambda field, text: outcomes.parse_exit_code(field, text),
    "references": lambda field, text: outcomes.parse_references(field, text),
}
PARSERS: dict[str, Callable[[Any], Any]] = {
    "clock": _clock,
    "tick": choice("tick", READS, NEVER),
    "seed": _seed,
    "reconcile": choice("reconcile", AUTO, NEVER),
    "bootstrap": choice("bootstrap", MINIMAL, FULL),
    "networking": parse_networking,
    "webhooks": _webhooks,
    "kubelet": _kubelet,
    "admission": _admission,
    "timeline": _timeline,
    "limits": _limits,
    "faults": lambda value: fault_settings.parse_faults("kubepy.yaml: faults", value),
    "absent": lambda value: absence.parse_absent(value),
}
