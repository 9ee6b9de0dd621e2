"""The program ``kube-apiserver`` of envtest's assets: an API server whose cluster is in memory.

``python -m kubepy.cli.envtest_apiserver CONTROLLERS FLAGS…`` runs it. What kube-apiserver refuses
ends it with status 1 and a line; SIGTERM ends it in order. Upstream: ``cmd/kube-apiserver/app``.
"""

from __future__ import annotations

import os
import signal
import ssl
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from kubepy import KUBERNETES_VERSION, system
from kubepy.api.clock import Clock
from kubepy.apiserver.settings import ADMISSION_PLUGINS, parse_service_subnet, parse_settings
from kubepy.apiserver.tokens import SigningKey, VerifyingKey, verifying_keys
from kubepy.controlplane.groups import API, UnknownGroupError, reconcilers_of
from kubepy.controlplane.open import MEMORY
from kubepy.klog import header
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote
from kubepy.server import listener
from kubepy.server.application import Application, CredentialOptions, RunCommand, ServeOptions
from kubepy.server.clientcertificates import certificates_of
from kubepy.server.envtest import featuregates
from kubepy.server.envtest.flags import ServerArguments, ServerFlagError, help_text, parse_arguments
from kubepy.server.idletime import CLUSTER, IdlePace, TimeFlagError, parse_pace
from kubepy.storage import StorageError
from kubepy.terminal import guard_process

with lazy_imports():
    from kubepy.server import certificates

CONTROLLERS_VARIABLE = "KUBEPY_ENVTEST_CONTROLLERS"
TIME_VARIABLE = "KUBEPY_ENVTEST_TIME"
CLOCK_VARIABLE = "KUBEPY_ENVTEST_CLOCK"
PORT = 6443
ALWAYS_ALLOW, RBAC, NODE = "AlwaysAllow", "RBAC", "Node"
UNSERVED_MODES = ("ABAC", "AlwaysDeny", "Webhook")
# The plugins of v1.36 that cannot be turned off here, and those that are not here at all.
ALWAYS_ON_PLUGINS = (
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceLifecycle",
    "ResourceQuota",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)
ABSENT_PLUGINS = (
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "ClusterTrustBundleAttest",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "JobValidation",
    "LimitPodHardAntiAffinityTopology",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NodeDeclaredFeatureValidator",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PodGroupProtection",
    "PodGroupWorkloadExists",
    "PodNodeSelector",
    "PodResizeValidator",
    "PodTolerationRestriction",
    "PodTopologyLabels",
)
CERTIFICATE, CERTIFICATE_KEY = "apiserver.crt", "apiserver.key"


class ServerStartError(Exception):
    """What keeps the server from starting."""


class ServerLog:
    """Writes the log of the program to stderr: lines of klog."""

    def __init__(self) -> None:
        self._clock = Clock()

    def info(self, text: str) -> None:
        self._write("I", text)

    def warn(self, text: str) -> None:
        self._write("W", text)

    def fail(self, error: str) -> None:
        self._write("E", f'"command failed" err={quote(error)}')

    def _write(self, severity: str, text: str) -> None:
        sys.stderr.write(f"{header(severity, self._clock, 'apiserver.py')} {printable(text)}\n")
        sys.stderr.flush()


class ServerPlan(NamedTuple):
    """What a command line asks for, checked.

    :ivar signing_key: signs tokens, in PEM.
    """

    address: str
    port: int
    files: listener.TlsFiles
    options: ServeOptions
    signing_key: bytes
    credentials: CredentialOptions


def main(words: Sequence[str], run_command: RunCommand | None = None) -> int:
    """Serve until a signal; return the exit status.

    :param words: the controllers that run where the environment names none, and the flags.
    :param run_command: runs command lines for harnesses.
    """
    controllers, *flags = words
    if any(word in ("--help", "-h") for word in flags):
        sys.stdout.write(help_text())
        return 0
    if any(word in ("--version", "--version=true") for word in flags):
        sys.stdout.write(f"Kubernetes {KUBERNETES_VERSION}\n")
        return 0
    guard_process()
    notes = ServerLog()
    try:
        arguments = parse_arguments(flags)
    except ServerFlagError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    try:
        plan = plan_of(arguments, os.environ.get(CONTROLLERS_VARIABLE) or controllers, notes)
        options = plan.options._replace(run_command=run_command)
        return serve(plan._replace(options=options), notes)
    except (ServerStartError, StorageError, featuregates.FeatureGateError) as error:
        notes.fail(str(error))
        return 1


def serve(plan: ServerPlan, notes: ServerLog) -> int:
    """Serve until a signal. Raises ServerStartError."""
    try:
        sockets = listener.listen(plan.address, plan.port)
    except OSError as error:
        raise ServerStartError(
            f"failed to create listener: failed to listen on {plan.address}:{plan.port}: "
            f"{(error.strerror or str(error)).lower()}"
        ) from None
    application = Application(
        MEMORY,
        plan.options,
        signing_key=plan.signing_key,
        credentials=plan.credentials,
        log=notes.info,
    )

    def ready() -> None:
        address, port = sockets[0].getsockname()[:2]
        notes.info(f"Serving securely on {address}:{port}")

    try:
        server = listener.HttpServer(application, plan.files, sockets, ready)
    except (ssl.SSLError, OSError) as error:
        raise ServerStartError(f"{plan.files.certificate}: {error}") from None
    try:
        received = listener.run(server)
    except OSError as error:
        raise ServerStartError(str(error)) from None
    return 128 + signal.SIGINT if received[:1] == [signal.SIGINT] else 0


# --- what the flags ask for -----------------------------------------------------------------------


def plan_of(arguments: ServerArguments, controllers: str, notes: ServerLog) -> ServerPlan:
    """Check a command line. Raises ServerStartError, FeatureGateError."""
    for word in arguments.unknown:
        notes.warn(f"{printable(word)}: this flag does nothing here")
    _check_feature_gates(arguments, notes)
    _check_required(arguments)
    if words := arguments.items("runtime-config"):
        notes.warn(
            f"--runtime-config={printable(','.join(words))}: does nothing here: the APIs are those "
            "that v1.36 serves by default"
        )
    try:
        names = reconcilers_of(controllers or API)
    except UnknownGroupError as error:
        raise ServerStartError(f"{CONTROLLERS_VARIABLE}: {error}") from None
    pace = _pace(os.environ.get(TIME_VARIABLE, ""))
    address = arguments.last("bind-address", "0.0.0.0")
    options = ServeOptions(
        authorization=_authorization(arguments),
        controllers=names,
        verbosity=_number(arguments, "v", 0, 1 << 31),
        settings=_clock(pace) | _settings(arguments, notes),
        pace=pace,
    )
    signing_key, credentials = _account_tokens(arguments)
    return ServerPlan(
        address,
        _number(arguments, "secure-port", PORT, 0xFFFF),
        _tls_files(arguments, address, notes),
        options,
        signing_key,
        credentials,
    )


def _check_required(arguments: ServerArguments) -> None:
    """Refuse a command line without the flags that an API server needs (``Options.Validate``), also
    where they mean nothing here: a harness that forgets them fails on a real one. Raises
    ServerStartError."""
    has_issuer = bool(arguments.items("service-account-issuer"))
    problems: list[str] = []
    if not arguments.items("etcd-servers"):
        problems.append("--etcd-servers must be specified")
    if not has_issuer:
        problems.append("service-account-issuer is a required flag")
    if not arguments.items("service-account-key-file"):
        problems.append(
            "either `--service-account-key-file` or `--service-account-signing-endpoint` must be "
            "set"
        )
    if not (has_issuer and arguments.last("service-account-signing-key-file")):
        problems.append(
            "--service-account-signing-key-file and --service-account-issuer are required flags"
        )
    if len(problems) == 1:
        raise ServerStartError(problems[0])
    if problems:
        raise ServerStartError(f"[{', '.join(problems)}]")


def _pace(text: str) -> IdlePace | None:
    """Read how the cluster's time goes on. Raises ServerStartError."""
    try:
        return parse_pace(text or CLUSTER)
    except TimeFlagError as error:
        raise ServerStartError(f"{TIME_VARIABLE}: {error}") from None


def _clock(pace: IdlePace | None) -> dict[str, Any]:
    """Return the setting of a time of its own, which begins now, where that is to be moved."""
    return {} if pace is None else {"clock": Clock().timestamp()}


def _number(arguments: ServerArguments, name: str, default: int, highest: int) -> int:
    text = arguments.last(name, str(default))
    if not text.isascii() or not text.isdigit() or int(text) > highest:
        raise ServerStartError(f"--{name}={printable(text)}: must be a number from 0 to {highest}")
    return int(text)


def _check_feature_gates(arguments: ServerArguments, notes: ServerLog) -> None:
    for text in arguments.values.get("feature-gates", ()):
        gates = featuregates.parse_feature_gates(text)
        featuregates.check_feature_gates(gates)
        if gates:
            notes.warn(f"--feature-gates={printable(text)}: change nothing here")


def _authorization(arguments: ServerArguments) -> str:
    """Return who may do what: all of everybody, or what roles say. Raises ServerStartError."""
    modes = arguments.items("authorization-mode") or [ALWAYS_ALLOW]
    for mode in modes:
        if mode in UNSERVED_MODES:
            raise ServerStartError(f"authorization-mode {quote(mode)} is not supported here")
        if mode not in (ALWAYS_ALLOW, RBAC, NODE):
            raise ServerStartError(f"authorization-mode {quote(mode)} is not a valid mode")
    return ALWAYS_ALLOW if ALWAYS_ALLOW in modes else RBAC


def _settings(arguments: ServerArguments, notes: ServerLog) -> dict[str, Any]:
    """Return the settings of the cluster. Raises ServerStartError."""
    settings = _clock_setting(os.environ.get(CLOCK_VARIABLE, ""))
    known = (*ADMISSION_PLUGINS, *ALWAYS_ON_PLUGINS, *ABSENT_PLUGINS)
    unknown = [
        f"{flag} plugin {quote(name)} is unknown"
        for flag in ("enable-admission-plugins", "disable-admission-plugins")
        for name in arguments.items(flag)
        if name not in known
    ]
    if unknown:
        raise ServerStartError(unknown[0] if len(unknown) == 1 else f"[{', '.join(unknown)}]")
    for name in arguments.items("enable-admission-plugins"):
        if name in ABSENT_PLUGINS:
            notes.warn(f"--enable-admission-plugins: {name} is not here")
    disabled = arguments.items("disable-admission-plugins")
    for name in disabled:
        if name in ALWAYS_ON_PLUGINS:
            notes.warn(f"--disable-admission-plugins: {name} runs nevertheless")
    if plugins := sorted({*disabled} & {*ADMISSION_PLUGINS}):
        settings["admission"] = {"disablePlugins": plugins}
    if networks := arguments.items("service-cluster-ip-range"):
        try:
            settings["networking"] = {"serviceSubnet": parse_service_subnet(networks[0])}
        except StorageError as error:
            reason = str(error).rpartition("serviceSubnet: ")[2]
            raise ServerStartError(f"--service-cluster-ip-range: {reason}") from None
    return settings


def _clock_setting(text: str) -> dict[str, Any]:
    """Return the setting of the moment at which the cluster's own time begins; "" is the system's
    time. Raises ServerStartError."""
    if not text:
        return {}
    settings = {"clock": text}
    try:
        parse_settings(settings)
    except StorageError as error:
        reason = str(error).rpartition("clock: ")[2]
        raise ServerStartError(f"{CLOCK_VARIABLE}={printable(text)}: {reason}") from None
    return settings


def _account_tokens(arguments: ServerArguments) -> tuple[bytes, CredentialOptions]:
    """Return the key that signs tokens, and how tokens are checked. Raises ServerStartError."""
    path = arguments.last("service-account-signing-key-file")
    signing_key = _content("service-account-signing-key-file", path)
    try:
        SigningKey(signing_key)
    except (ValueError, TypeError) as error:
        problem = f"failed to parse service-account-issuer-key-file: {error}"
        raise ServerStartError(problem) from None
    other_keys: list[VerifyingKey] = []
    for path in arguments.items("service-account-key-file"):
        try:
            other_keys += verifying_keys(_content("service-account-key-file", path))
        except (ValueError, TypeError) as error:
            raise ServerStartError(f"error reading public key file {path}: {error}") from None
    issuers = arguments.values.get("service-account-issuer", [])
    return signing_key, CredentialOptions(other_keys, issuers, arguments.items("api-audiences"))


def _content(flag: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ServerStartError(f"--{flag}: open {printable(path)}: {reason}") from None


def _tls_files(arguments: ServerArguments, address: str, notes: ServerLog) -> listener.TlsFiles:
    """Return what TLS is spoken with; a folder without a certificate gets one, as upstream. Raises
    ServerStartError."""
    client_ca = ""
    if path := arguments.last("client-ca-file"):
        try:
            client_ca = certificates_of(_content("client-ca-file", path))
        except ValueError as error:
            raise ServerStartError(f"unable to load client CA provider: {path}: {error}") from None
    certificate = arguments.last("tls-cert-file")
    key = arguments.last("tls-private-key-file")
    if not certificate:
        folder = arguments.last("cert-dir", "/var/run/kubernetes")
        certificate, key = (os.path.join(folder, name) for name in (CERTIFICATE, CERTIFICATE_KEY))
        if not os.path.exists(certificate):
            _make_certificate(certificate, key, address)
            notes.info(f"Generated self-signed cert ({certificate}, {key})")
    return listener.TlsFiles(certificate, key, client_ca)


def _make_certificate(certificate: str, key: str, address: str) -> None:
    """Make the files of a certificate that is signed by itself. Raises ServerStartError."""
    hosts = {*certificates.NAMES, *certificates.LOOPBACK, *certificates.hosts_of(address)}
    own_certificate, own_key = certificates.self_signed(sorted(hosts))
    try:
        os.makedirs(os.path.dirname(certificate), exist_ok=True)
        for path, content in ((certificate, own_certificate), (key, own_key)):
            descriptor = os.open(path, system.WRITE | os.O_TRUNC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(content)
    except OSError as error:
        raise ServerStartError(
            f"error creating self-signed certificates: {(error.strerror or str(error)).lower()}: "
            f"{certificate}"
        ) from None
