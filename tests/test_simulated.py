"""docs/simulated.md agrees with the code: controllers, admission plugins, commands that are not
supported."""

import re
from pathlib import Path
from typing import NamedTuple

from kubepy import controlplane
from kubepy.api.scheme import BUILT_IN
from kubepy.apiserver.kinds import kind_of
from kubepy.apiserver.requests import admission
from kubepy.cli.commands import COMMANDS
from kubepy.cli.runtime.command import walk

PAGE = (Path(__file__).parents[1] / "docs" / "simulated.md").read_text()


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Controllers of kube-controller-manager and cloud-controller-manager
# (``cmd/kube-controller-manager/names``), less those under another name here and those of alpha
# APIs.
UPSTREAM_CONTROLLERS = _words("""
    serviceaccount-token-controller endpoint-slice-mirroring-controller pod-garbage-collector-controller
    resourcequota-controller namespace-controller serviceaccount-controller garbage-collector-controller
    daemonset-controller job-controller deployment-controller replicaset-controller
    horizontal-pod-autoscaler-controller disruption-controller statefulset-controller cronjob-controller
    certificatesigningrequest-signing-controller certificatesigningrequest-approving-controller
    certificatesigningrequest-cleaner-controller podcertificaterequest-cleaner-controller ttl-controller
    bootstrap-signer-controller token-cleaner-controller node-ipam-controller node-lifecycle-controller
    taint-eviction-controller device-taint-eviction-controller persistentvolume-binder-controller
    persistentvolume-attach-detach-controller persistentvolume-expander-controller clusterrole-aggregation-controller
    volumeattributesclass-protection-controller ttl-after-finished-controller root-ca-certificate-publisher-controller
    legacy-serviceaccount-token-cleaner-controller ephemeral-volume-controller
    storageversion-garbage-collector-controller storage-version-migrator-controller resourceclaim-controller
    service-cidr-controller validatingadmissionpolicy-status-controller selinux-warning-controller
    service-lb-controller node-route-controller cloud-node-lifecycle-controller""")  # noqa: E501
# On by default (``pkg/kubeapiserver/options/plugins.go``).
DEFAULT_PLUGINS = _words("""
    NamespaceLifecycle LimitRanger ServiceAccount DefaultStorageClass PersistentVolumeClaimResize
    DefaultTolerationSeconds MutatingAdmissionWebhook ValidatingAdmissionWebhook ResourceQuota
    StorageObjectInUseProtection PodGroupProtection Priority TaintNodesByCondition RuntimeClass CertificateApproval
    CertificateSigning ClusterTrustBundleAttest CertificateSubjectRestriction DefaultIngressClass PodSecurity
    PodTopologyLabels MutatingAdmissionPolicy ValidatingAdmissionPolicy PodGroupWorkloadExists
    NodeDeclaredFeatureValidator JobValidation PodResizeValidator""")  # noqa: E501
# Those that look at every kind stand in no table of kinds.
EVERY_KIND = {
    "NamespaceLifecycle": admission.check_namespace,
    "MutatingAdmissionPolicy": admission.mutate,
    "MutatingAdmissionWebhook": admission.mutate,
    "ValidatingAdmissionPolicy": admission.check_policies,
    "ValidatingAdmissionWebhook": admission.call_validating_webhooks,
    "ResourceQuota": admission.charge_quotas,
}


class Row(NamedTuple):
    """A row of the table. ``names`` are the words between backticks in its first cell."""

    group: str
    names: frozenset[str]
    answer: str


def read_rows() -> list[Row]:
    rows, group = [], ""
    for line in PAGE.splitlines():
        if not line.startswith("| ") or line.startswith(("| ---", "| part")):
            continue
        part, answer, _ = [cell.strip() for cell in line.strip("|").split("|")]
        if part.startswith("**"):
            group = part.strip("*")
        else:
            rows.append(Row(group, frozenset(re.findall(r"`([^`]+)`", part)), answer))
    return rows


ROWS = read_rows()


def names(group: str, *answers: str) -> set[str]:
    """Return the names in rows of a group, and with one of these answers if there are any."""
    return {
        name
        for row in ROWS
        if row.group == group and (not answers or row.answer in answers)
        for name in row.names
    }


def test_page_has_one_table_with_one_of_four_answers_a_row() -> None:
    assert len(re.findall(r"^\| ---", PAGE, re.MULTILINE)) == 1
    assert {row.answer for row in ROWS} == {"as real", "simulated", "stored", "no"}


def test_controllers_that_run_are_those_of_the_control_plane() -> None:
    assert names("Controllers that run") == set(controlplane.NAMES)
    assert names("Controllers that run", "no") == set()


def test_controllers_that_do_not_run_are_the_rest_of_upstream() -> None:
    missing = names("Controllers that do not run")
    assert not missing & set(controlplane.NAMES)
    assert missing == UPSTREAM_CONTROLLERS - set(controlplane.NAMES)


def test_admission_plugins_that_run_are_those_of_the_kinds() -> None:
    plugins = {
        plugin.name
        for kind in map(kind_of, BUILT_IN)
        for plugin in (*kind.mutating, *kind.validating)
    }
    assert names("Admission", "as real", "simulated") == plugins | set(EVERY_KIND)


def test_admission_plugins_that_do_not_run_are_the_rest_of_the_default_ones() -> None:
    absent = names("Admission", "no") & DEFAULT_PLUGINS
    assert absent == DEFAULT_PLUGINS - names("Admission", "as real", "simulated")


def test_commands_that_are_not_supported_are_named() -> None:
    unsupported = {
        path for path, entry in walk(COMMANDS) if entry.summary.startswith("Not supported")
    }
    refused = {name for row in ROWS if row.answer == "no" for name in row.names}
    assert unsupported <= refused
    supported = {path for path, entry in walk(COMMANDS) if entry.summary} - unsupported
    assert not supported & refused
