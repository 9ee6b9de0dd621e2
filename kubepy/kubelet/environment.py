"""The environment of a container, and its command with the values of its variables.

Upstream: ``makeEnvironmentVariables`` and ``GeneratePodHostNameAndDomain`` in
``pkg/kubelet/kubelet_pods.go``, ``pkg/kubelet/util/env``; what a runtime adds: containerd's
``containerSpecOpts`` and runc's ``HOME``. Pure functions.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kubepy.api.meta import AnyObject, name_of, namespace_of, nested_map, uid_of
from kubepy.api.objects.references import CONFIG_MAPS, SECRETS, Find, Reference, reference_problem
from kubepy.kubelet.downward import DownwardError, field_for_variable, resource_for_variable
from kubepy.kubelet.expansion import expand, expand_all, first_value
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Node, Pod

CLUSTER_DOMAIN = "cluster.local"
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LONGEST_HOSTNAME = 63
UNREADABLE_FILE = "couldn't parse env file"
ReadFile = Callable[[str, str], "bytes | None"]  # volume, path → the content of a file in it

_SOURCES = {
    CONFIG_MAPS: ("configMapRef", "configMapKeyRef"),
    SECRETS: ("secretRef", "secretKeyRef"),
}


class ContainerConfigError(Exception):
    """An obstacle to the creation of a container, in the kubelet's words: the message of
    ``CreateContainerConfigError``."""


def environment(
    pod: Pod,
    container: Container,
    find: Find,
    services: Mapping[str, str],
    node: Node,
    read_file: ReadFile | None = None,
) -> dict[str, str]:
    """Return the variables that the kubelet hands to the runtime: those of the manifest, then those
    of services. References in the command and in ``subPathExpr`` are to these.

    Raises ContainerConfigError where a reference cannot be followed.

    :param find: looks up ConfigMaps and Secrets.
    :param services: the variables of the services that the pod sees.
    :param read_file: reads a file of one of the pod's volumes, for ``fileKeyRef``.
    """
    source = _Source(
        pod,
        container,
        find,
        node,
        read_file,
    )
    variables = _declared(source, services)
    for name, value in services.items():
        variables.setdefault(name, value)
    return variables


def process_environment(
    pod: Pod, container: Container, variables: Mapping[str, str], image: Mapping[str, str] = {}
) -> dict[str, str]:
    """Return the environment of a container's first process: what the runtime and the image set,
    and over it the variables of :func:`environment`."""
    environ = {"PATH": DEFAULT_PATH, **image}
    if container.get("tty"):
        environ["TERM"] = "xterm"
    environ["HOSTNAME"] = hostname_in_container(pod)
    environ.update(variables)
    environ.setdefault("HOME", _home(pod, container))
    return environ


def command_of(container: Container, variables: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return ``command`` and ``args`` of a container with the values of its variables."""
    command = container.get("command")
    args = container.get("args")
    expanded_command = expand_all(command, variables)
    return expanded_command, expand_all(args, variables)


def hostname_and_domain(pod: Pod) -> tuple[str, str]:
    """Return the host name of a pod and its domain, "" for none
    (``GeneratePodHostNameAndDomain``)."""
    spec = pod["spec"]
    override = spec.get("hostnameOverride")
    if override is not None:
        return _truncated(override), ""
    hostname = _truncated(spec.get("hostname") or name_of(pod))
    subdomain = spec.get("subdomain")
    if not subdomain:
        return hostname, ""
    return hostname, f"{subdomain}.{namespace_of(pod)}.svc.{CLUSTER_DOMAIN}"


def hostname_in_container(pod: Pod) -> str:
    """Return what ``hostname`` prints in a container of the pod."""
    spec = pod["spec"]
    if spec.get("hostNetwork") and spec.get("hostnameOverride") is None:
        return spec.get("nodeName") or ""
    hostname, domain = hostname_and_domain(pod)
    if domain and spec.get("setHostnameAsFQDN"):
        return f"{hostname}.{domain}"
    return hostname


def user_of(pod: Pod, container: Container) -> int:
    """Return the id of the user as whom a container runs, 0 where the image would say."""
    for holder in (container, pod["spec"]):
        user = nested_map(holder, "securityContext").get("runAsUser")
        if user is not None:
            return int(user)
    return 0


def group_of(pod: Pod, container: Container) -> int:
    """Return the id of the primary group of a container's user, 0 where the image would say."""
    for holder in (container, pod["spec"]):
        group = nested_map(holder, "securityContext").get("runAsGroup")
        if group is not None:
            return int(group)
    return 0


def groups_of(pod: Pod, container: Container) -> list[int]:
    """Return the ids of all groups of a container's user, in the kernel's order."""
    context = nested_map(pod["spec"], "securityContext")
    groups = {group_of(pod, container), *(context.get("supplementalGroups") or ())}
    if context.get("fsGroup") is not None:
        groups.add(context["fsGroup"])
    return sorted(groups)


def _truncated(hostname: str) -> str:
    if len(hostname) <= LONGEST_HOSTNAME:
        return hostname
    return hostname[:LONGEST_HOSTNAME].rstrip("-.")


def _home(pod: Pod, container: Container) -> str:
    """Return the home of a container's user: an image has no users other than root."""
    return "/" if user_of(pod, container) else "/root"


# --- what a manifest declares ---------------------------------------------------------------------


class _Source:
    """The sources of the variables of one container."""

    def __init__(
        self,
        pod: Pod,
        container: Container,
        find: Find,
        node: Node,
        read_file: ReadFile | None,
    ) -> None:
        self.pod = pod
        self.container = container
        self.node = node
        self.read_file = read_file
        self._find = find

    def texts(self, resource: str, reference: AnyObject, key: str) -> dict[str, str]:
        """Return the texts of a ConfigMap or Secret, none where it may be missing and is.

        :param key: the key that must be in it; "" for none.
        """
        name = reference.get("name") or ""
        namespace = namespace_of(self.pod)
        container = self.container["name"]
        is_optional = bool(reference.get("optional"))
        obj = self._find(resource, namespace, name)
        place = Reference(
            resource,
            name,
            key,
            is_optional,
            "",
            container,
        )
        problem = reference_problem(place, obj, namespace)
        if problem and not is_optional:
            raise ContainerConfigError(problem)
        if obj is None:
            return {}
        data = nested_map(obj, "data")
        if resource == CONFIG_MAPS:
            return data
        texts = {}
        for entry, value in data.items():
            texts[entry] = _text(value)
        return texts


def _text(value: str) -> str:
    """Return a value of a Secret; bytes that are no UTF-8 stay what they are."""
    content = b64decode(value)
    return content.decode("utf-8", "surrogateescape")


def _declared(source: _Source, services: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ``envFrom``, then those of ``env``, which may refer to them, to
    services and to those before them."""
    declared: dict[str, str] = {}
    groups: Sequence[AnyObject] = source.container.get("envFrom") or ()
    for group in groups:
        prefix = group.get("prefix") or ""
        for resource, (field, _) in _SOURCES.items():
            reference = group.get(field)
            if reference is None:
                continue
            for key, text in sorted(source.texts(resource, reference, "").items()):
                declared[prefix + key] = text

    value_of = first_value(declared, services)
    for variable in source.container.get("env") or ():
        template = variable.get("value")
        if template:
            declared[variable["name"]] = expand(template, value_of)
            continue
        value = _value_from(source, variable.get("valueFrom") or {})
        if value is not None:
            declared[variable["name"]] = value
    return declared


def _value_from(source: _Source, place: AnyObject) -> str | None:
    """Return the value of a variable that is taken from elsewhere, None where it is left out."""
    for resource, (_, field) in _SOURCES.items():
        reference = place.get(field)
        if reference is not None:
            key = reference.get("key") or ""
            return source.texts(resource, reference, key).get(key)
    if place.get("fileKeyRef") is not None:
        return _from_file(source, place["fileKeyRef"])

    allocatable = nested_map(source.node, "status", "allocatable")
    try:
        if place.get("fieldRef") is not None:
            path = place["fieldRef"].get("fieldPath") or ""
            return field_for_variable(source.pod, source.node, path)
        if place.get("resourceFieldRef") is not None:
            selector = place["resourceFieldRef"]
            return resource_for_variable(
                selector,
                source.pod,
                source.container,
                allocatable,
            )
    except DownwardError as error:
        raise ContainerConfigError(str(error)) from None
    return ""


# --- files of variables ---------------------------------------------------------------------------


def _from_file(source: _Source, reference: AnyObject) -> str | None:
    """Return a variable of a file in a volume. Raises ContainerConfigError."""
    volume = reference.get("volumeName") or ""
    path = reference.get("path") or ""
    key = reference.get("key") or ""
    content = source.read_file(volume, path) if source.read_file is not None else None
    if content is None:
        raise ContainerConfigError(UNREADABLE_FILE)
    value = variable_in_file(content.decode("utf-8", "surrogateescape"), key)
    if value:
        return value
    if reference.get("optional"):
        return None
    directory = f"/var/lib/kubelet/pods/{uid_of(source.pod)}/volumes/kubernetes.io~empty-dir"
    file = f"{directory}/{volume}/{path}"
    raise ContainerConfigError(
        f"environment variable key {quote(key)} not found in file {quote(file)}"
    )


def variable_in_file(text: str, key: str) -> str:
    """Return a variable of a file of lines ``NAME='value'``, "" where it is not there
    (``ParseEnv``). What comes after it is not read. Raises ContainerConfigError."""
    whole_lines = text.split("\n")
    lines = iter([line.removesuffix("\r") for line in whole_lines])
    for line in lines:
        statement = line.lstrip(" \t")
        if not statement or statement.startswith("#"):
            continue
        name, equals, rest = statement.partition("=")
        if not equals or not name or name != name.rstrip(" \t"):
            raise ContainerConfigError(UNREADABLE_FILE)
        is_separate = rest.startswith((" ", "\t"))  # to a shell the value ends before a space
        value = "" if is_separate else _quoted(rest, lines)
        if name == key:
            return value
    return ""


def _quoted(text: str, lines: Iterator[str]) -> str:
    """Return a value in single quotes, which may go on over the next lines."""
    if not text.startswith("'"):
        raise ContainerConfigError(UNREADABLE_FILE)
    value, closing, rest = text[1:].partition("'")
    while not closing:
        line = next(lines, None)
        if line is None:
            raise ContainerConfigError(UNREADABLE_FILE)
        more, closing, rest = line.partition("'")
        value += f"\n{more}"
    rest = rest.lstrip(" \t")
    if rest and not rest.startswith("#"):
        raise ContainerConfigError(UNREADABLE_FILE)
    return value
