"""``admission.disablePlugins`` in ``kubepy.yaml``."""

from __future__ import annotations

import pytest

from kubepy.api.scheme import BUILT_IN
from kubepy.apiserver.kinds import kind_of
from kubepy.apiserver.settings import ADMISSION_PLUGINS, parse_settings
from kubepy.controlplane.open import make_cluster
from kubepy.storage import FolderError

POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}


def test_plugins_that_can_be_disabled_are_those_of_kinds() -> None:
    plugins = {
        plugin.name
        for kind in map(kind_of, BUILT_IN)
        for plugin in (*kind.mutating, *kind.validating)
    }
    assert plugins == set(ADMISSION_PLUGINS)


def test_disabled_plugin_does_not_run_and_others_do() -> None:
    cluster = make_cluster(
        "memory:", {"admission": {"disablePlugins": ["DefaultTolerationSeconds"]}}
    )
    spec = cluster.client.create("pods", POD, namespace="default")["spec"]
    assert "tolerations" not in spec
    assert spec["priority"] == 0  # of the plugin Priority


def test_pod_needs_no_service_account_without_the_plugin() -> None:
    settings = {"bootstrap": "full", "admission": {"disablePlugins": ["ServiceAccount"]}}
    pod = make_cluster("memory:", settings).client.create("pods", POD, namespace="default")
    assert "volumes" not in pod["spec"]
    assert "serviceAccountName" not in pod["spec"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("ServiceAccount", "admission: must be a map of disablePlugins"),
        ({"enablePlugins": []}, "admission.enablePlugins: unknown setting: must be disablePlugins"),
        (
            {"disablePlugins": "Priority"},
            "admission.disablePlugins: must be a list of names of admission plugins",
        ),
        (
            {"disablePlugins": ["Priority", "NamespaceLifecycle"]},
            'admission.disablePlugins[1]: "NamespaceLifecycle" is not one of CertificateApproval, ',
        ),
    ],
)
def test_wrong_setting_names_its_field(value: object, message: str) -> None:
    with pytest.raises(FolderError) as error:
        parse_settings({"admission": value})
    assert str(error.value).startswith(f"kubepy.yaml: {message}")
