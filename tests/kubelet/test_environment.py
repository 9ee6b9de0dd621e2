"""The environment of containers: variables from everywhere, references to them, what is missing.

Cases of upstream's ``TestMakeEnvironmentVariables`` and of its expansion and ``envutil`` tests are
among these.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from kubepy.api.meta import Object
from kubepy.kubelet.environment import (
    ContainerConfigError,
    command_of,
    environment,
    hostname_and_domain,
    hostname_in_container,
    process_environment,
    variable_in_file,
)
from kubepy.kubelet.expansion import expand, first_value
from tests.kubelet.objects import new_node, new_pod

OBJECTS: dict[tuple[str, str], Object] = {
    ("configmaps", "colours"): {
        "metadata": {"name": "colours"},
        "data": {"SKY": "blue", "1.odd name": "kept"},
        "binaryData": {"raw": "AA=="},
    },
    ("secrets", "login"): {
        "metadata": {"name": "login"},
        "data": {
            "USER": b64encode(b"root").decode(),
            "BYTES": b64encode(b"\xff\xfe").decode(),
        },
    },
}
SERVICES = {"SHOP_SERVICE_HOST": "10.96.0.7", "SKY": "service"}


def find(resource: str, namespace: str, name: str) -> Object | None:
    assert namespace == "shop"
    return OBJECTS.get((resource, name))


def container_of(**fields: Any) -> Any:
    return {"name": "c", "image": "c:1", **fields}


def pod_with(container: Object, **spec: Any) -> Any:
    pod = new_pod(containers=[container, {"name": "d", "image": "d:1"}], **spec)
    pod["metadata"]["labels"] = {"app": "web", "tier": 'a"b'}
    pod["status"]["podIPs"] = [{"ip": "10.244.0.5"}, {"ip": "fd00::5"}]
    return pod


def node_with(**allocatable: str) -> Any:
    node = new_node()
    node["status"] = {
        "allocatable": {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi", **allocatable},
        "addresses": [{"type": "InternalIP", "address": "192.168.0.7"}],
    }
    return node


def declared(container: Any, **spec: Any) -> dict[str, str]:
    return environment(pod_with(container, **spec), container, find, {}, node_with())


def env(**variables: Any) -> Any:
    entries = []
    for name, value in variables.items():
        field = "value" if isinstance(value, str) else "valueFrom"
        entries.append({"name": name, field: value})
    return container_of(env=entries)


def field(path: str) -> Object:
    return {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}


def resource(name: str, divisor: str = "0", container: str = "") -> Object:
    return {"resourceFieldRef": {"resource": name, "divisor": divisor, "containerName": container}}


# --- references to variables ----------------------------------------------------------------------


@pytest.mark.parametrize(("text", "value"), [
    ("$(A)-$(B)", "a-$(A)"),
    ("$$(A)", "$(A)"),
    ("$$$(A)", "$a"),
    ("$$$$(A)", "$$(A)"),
    ("$(MISSING)", "$(MISSING)"),
    ("$A $ $", "$A $ $"),
    ("f000-$(A", "f000-$(A"),
    ("$(A$(A)", "$(A$(A)"),
    ("$()", "$()"),
    ("$(A$$", "$(A$"),
    ("100%$", "100%$"),
])  # fmt: skip
def test_reference_in_text_becomes_its_value(text: str, value: str) -> None:
    assert expand(text, first_value({"A": "a", "B": "$(A)"})) == value


def test_env_refers_to_variables_before_it_and_to_services() -> None:
    container = env(EARLY="$(LATE)", LATE="late", BOTH="$(LATE) $(SHOP_SERVICE_HOST) $(SKY)")
    container["envFrom"] = [{"configMapRef": {"name": "colours"}}]
    variables = environment(pod_with(container), container, find, SERVICES, node_with())
    assert variables["EARLY"] == "$(LATE)"
    assert variables["BOTH"] == "late 10.96.0.7 blue"
    assert variables["SKY"] == "blue"
    assert variables["SHOP_SERVICE_HOST"] == "10.96.0.7"


def test_command_and_args_have_values_of_all_variables() -> None:
    container = container_of(command=["echo", "$(SKY)"], args=["$(HOSTNAME)", "$$(SKY)", "$SKY"])
    variables = environment(pod_with(container), container, find, SERVICES, node_with())
    assert command_of(container, variables) == (
        ["echo", "service"],
        ["$(HOSTNAME)", "$(SKY)", "$SKY"],  # the runtime, not the kubelet, knows that one
    )


# --- where variables come from --------------------------------------------------------------------


def test_env_from_takes_all_keys_with_prefix_and_env_wins() -> None:
    container = env(C_SKY="grey")
    container["envFrom"] = [
        {"prefix": "C_", "configMapRef": {"name": "colours"}},
        {"secretRef": {"name": "login"}},
    ]
    assert declared(container) == {
        "C_SKY": "grey",
        "C_1.odd name": "kept",  # v1.36 takes any printable name
        "USER": "root",
        "BYTES": "\udcff\udcfe",
    }


def test_optional_references_to_what_is_missing_are_left_out() -> None:
    container = env(
        A={"configMapKeyRef": {"name": "none", "key": "k", "optional": True}},
        B={"secretKeyRef": {"name": "login", "key": "none", "optional": True}},
        EMPTY="",
    )
    container["envFrom"] = [{"secretRef": {"name": "none", "optional": True}}]
    assert declared(container) == {"EMPTY": ""}


@pytest.mark.parametrize(("container", "message"), [
    (container_of(envFrom=[{"configMapRef": {"name": "none"}}]), 'configmap "none" not found'),
    (container_of(envFrom=[{"secretRef": {"name": "none"}}]), 'secret "none" not found'),
    (env(A={"configMapKeyRef": {"name": "colours", "key": "raw"}}),
     "couldn't find key raw in ConfigMap shop/colours"),
    (env(A={"secretKeyRef": {"name": "login", "key": "PIN"}}),
     "couldn't find key PIN in Secret shop/login"),
    (env(A=resource("limits.cpu", container="e")), "container e not found"),
])  # fmt: skip
def test_reference_that_cannot_be_followed_is_an_error(container: Object, message: str) -> None:
    with pytest.raises(ContainerConfigError, match=f"^{message}$"):
        declared(container)


@pytest.mark.parametrize(("path", "value"), [
    ("metadata.name", "web"),
    ("metadata.namespace", "shop"),
    ("metadata.uid", "0f1e"),
    ("metadata.labels['tier']", 'a"b'),
    ("metadata.labels['none']", ""),
    ("metadata.annotations['none']", ""),
    ("spec.nodeName", "node-1"),
    ("spec.serviceAccountName", "robot"),
    ("status.hostIP", "192.168.0.7"),
    ("status.hostIPs", "192.168.0.7"),
    ("status.podIP", "10.244.0.5"),
    ("status.podIPs", "10.244.0.5,fd00::5"),
])  # fmt: skip
def test_field_reference_is_the_field_of_the_pod(path: str, value: str) -> None:
    assert declared(env(A=field(path)), serviceAccountName="robot") == {"A": value}


@pytest.mark.parametrize(("reference", "value"), [
    (resource("limits.cpu"), "2"),  # 1500m, rounded up
    (resource("limits.cpu", "1m"), "1500"),
    (resource("requests.cpu", "100m"), "3"),
    (resource("limits.memory"), str(8 << 30)),  # the node's
    (resource("limits.memory", "1Gi"), "8"),
    (resource("requests.memory", "1Mi"), "64"),
    (resource("requests.ephemeral-storage"), "0"),
    (resource("limits.ephemeral-storage", "1Gi"), "10"),
    (resource("limits.hugepages-2Mi"), "0"),
    (resource("limits.cpu", container="d"), "4"),
])  # fmt: skip
def test_resource_reference_is_the_amount_in_units_of_its_divisor(
    reference: Object, value: str
) -> None:
    container = env(A=reference)
    container["resources"] = {
        "limits": {"cpu": "1500m"},
        "requests": {"cpu": "250m", "memory": "64Mi"},
    }
    assert declared(container) == {"A": value}


def test_limits_of_the_pod_come_before_those_of_the_node() -> None:
    container = env(A=resource("limits.cpu"), B=resource("limits.memory", "1Gi"))
    limits = {"limits": {"cpu": "2"}}
    assert declared(container, resources=limits) == {"A": "2", "B": "8"}


# --- files ----------------------------------------------------------------------------------------


def from_file(content: bytes | None, **reference: Any) -> dict[str, str]:
    key = {"volumeName": "config", "path": "dir/env", "key": "A", **reference}
    container = env(A={"fileKeyRef": key})
    read = {("config", "dir/env"): content}

    def read_file(volume: str, path: str) -> bytes | None:
        return read[volume, path]

    return environment(pod_with(container), container, find, {}, node_with(), read_file)


def test_file_reference_is_the_variable_of_the_file() -> None:
    assert from_file(b"B='b'\n A='one\ntwo' # more\n") == {"A": "one\ntwo"}


def test_optional_file_reference_without_the_key_is_left_out() -> None:
    assert from_file(b"B='b'\n", optional=True) == {}


@pytest.mark.parametrize(("content", "message"), [
    (None, "couldn't parse env file"),
    (b"A=plain\n", "couldn't parse env file"),
    (b"B='b'\n", 'environment variable key "A" not found in file '
     '"/var/lib/kubelet/pods/0f1e/volumes/kubernetes.io~empty-dir/config/dir/env"'),
])  # fmt: skip
def test_file_that_lacks_the_variable_is_an_error(content: bytes | None, message: str) -> None:
    with pytest.raises(ContainerConfigError) as caught:
        from_file(content)
    assert str(caught.value) == message


@pytest.mark.parametrize(("text", "value"), [
    ("# A='no'\n\nA='yes'\r\n", "yes"),
    ("A= 'late'\n", ""),
    ("A='x'#y\n", "x"),
    ("A=''\nbroken", ""),
])  # fmt: skip
def test_file_of_variables_is_read_as_upstream_reads_it(text: str, value: str) -> None:
    assert variable_in_file(text, "A") == value


@pytest.mark.parametrize("text", ["A", "='x'", "A ='x'", "A=", "A=x", "A='x", "A='x' y"])
def test_file_of_variables_that_upstream_refuses_is_an_error(text: str) -> None:
    with pytest.raises(ContainerConfigError, match="couldn't parse env file"):
        variable_in_file(text, "A")


# --- what a runtime sets --------------------------------------------------------------------------


def test_runtime_sets_path_host_name_and_home() -> None:
    container = container_of(tty=True)
    variables = process_environment(pod_with(container), container, {"A": "a"})
    assert list(variables) == ["PATH", "TERM", "HOSTNAME", "A", "HOME"]
    assert variables["HOSTNAME"] == "web"
    assert variables["HOME"] == "/root"


def test_image_sets_variables_that_the_manifest_replaces() -> None:
    container = container_of()
    image = {"PATH": "/bin", "LANG": "en", "HOME": "/srv"}
    variables = process_environment(pod_with(container), container, {"LANG": "C"}, image)
    assert variables == {"PATH": "/bin", "LANG": "C", "HOME": "/srv", "HOSTNAME": "web"}


def test_home_of_a_user_that_no_image_knows_is_the_root_directory() -> None:
    container = container_of()
    pod = pod_with(container, securityContext={"runAsUser": 1000})
    assert process_environment(pod, container, {})["HOME"] == "/"


@pytest.mark.parametrize(("spec", "name", "domain", "printed"), [
    ({}, "web", "", "web"),
    ({"hostname": "db", "subdomain": "nodes"}, "db", "nodes.shop.svc.cluster.local", "db"),
    ({"hostname": "db", "subdomain": "nodes", "setHostnameAsFQDN": True},
     "db", "nodes.shop.svc.cluster.local", "db.nodes.shop.svc.cluster.local"),
    ({"hostname": "a" * 62 + "-b"}, "a" * 62, "", "a" * 62),
    ({"hostNetwork": True}, "web", "", "node-1"),
    ({"hostname": "db", "hostnameOverride": "any.example"}, "any.example", "", "any.example"),
])  # fmt: skip
def test_host_name_comes_from_the_spec(spec: Object, name: str, domain: str, printed: str) -> None:
    pod = pod_with(container_of(), **spec)
    assert hostname_and_domain(pod) == (name, domain)
    assert hostname_in_container(pod) == printed
