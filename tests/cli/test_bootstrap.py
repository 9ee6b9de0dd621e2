"""Objects that every cluster has: implied (``bootstrap: minimal``), or files that controllers keep
(``full``)."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Done, Kubepy

TOKEN = """
apiVersion: v1
kind: Secret
metadata: {name: %s, annotations: {kubernetes.io/service-account.name: %s}}
type: kubernetes.io/service-account-token
"""
PATCH = '{"imagePullSecrets":[{"name":"registry"}]}'
KUBERNETES_ROW = "kubernetes   ClusterIP   10.96.0.1    <none>        443/TCP   "


def files(folder: Path) -> set[str]:
    state = folder / "state"
    return {
        str(path.relative_to(state))
        for path in state.rglob("*.yaml")
        if not {".kubepy", ".managed"} & set(path.parts)
    }


def read(kubepy: Kubepy, *words: str) -> Any:
    return json.loads(kubepy("get", *words, "-o", "json").out)


@pytest.fixture
def full(bare: Kubepy) -> Kubepy:
    """A function that runs a command in a cluster with ``bootstrap: full`` and one node."""
    assert bare("init", "--bootstrap=full").status == 0
    return bare


# --- minimal --------------------------------------------------------------------------------------


def test_implied_objects_are_read_and_leave_no_files(kubepy: Kubepy, folder: Path) -> None:
    before = files(folder)
    assert kubepy("get", "sa", "-A", "-o", "name").out == "serviceaccount/default\n" * 4
    assert kubepy("get", "svc").out.splitlines()[1].startswith(KUBERNETES_ROW)
    assert (
        "Endpoints:                192.168.0.1:6443" in kubepy("describe", "svc", "kubernetes").out
    )
    assert kubepy("get", "clusterroles", "-o", "name").out.count("\n") == 70
    assert kubepy("get", "clusterrolebindings", "-o", "name").out.count("\n") == 51
    assert kubepy("get", "roles,rolebindings", "-A", "-o", "name").out.count("\n") == 14
    assert "service/kubernetes" in kubepy("get", "all").out
    assert (
        kubepy("get", "svc", "-l", "component=apiserver", "-o", "name").out
        == "service/kubernetes\n"
    )
    assert kubepy("get", "sa", "--field-selector=metadata.name=x").err.startswith(
        "No resources found"
    )
    assert files(folder) == before
    assert kubepy("fsck").status == 0


def test_implied_object_becomes_file_when_changed(kubepy: Kubepy, folder: Path) -> None:
    before, implied = files(folder), read(kubepy, "sa", "default")
    assert kubepy("patch", "sa", "default", "-p", PATCH).out == "serviceaccount/default patched\n"
    assert files(folder) - before == {"namespaces/default/serviceaccounts/default.yaml"}
    stored = read(kubepy, "sa", "default")
    assert stored["imagePullSecrets"] == [{"name": "registry"}]
    assert stored["metadata"]["uid"] == implied["metadata"]["uid"]
    assert stored["metadata"]["creationTimestamp"] == implied["metadata"]["creationTimestamp"]
    (folder / "state/namespaces/default/serviceaccounts/default.yaml").unlink()
    assert read(kubepy, "sa", "default") == implied


@pytest.mark.parametrize(
    "words",
    [
        ("label", "svc", "kubernetes", "a=b"),
        ("annotate", "clusterrole", "view", "a=b"),
        ("apply", "-f", "sa.yaml"),
        ("apply", "--server-side", "-f", "sa.yaml"),
        ("replace", "-f", "sa.yaml"),
        ("set", "subject", "clusterrolebinding", "cluster-admin", "--user=ann"),
        (
            "patch",
            "rolebinding",
            "-n",
            "kube-system",
            "system:controller:token-cleaner",
            "-p",
            '{"subjects":null}',
        ),
    ],
    ids=" ".join,
)
def test_every_way_of_changing_makes_one_file(
    words: tuple[str, ...], kubepy: Kubepy, folder: Path
) -> None:
    Path("sa.yaml").write_text("""
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}, secrets: [{name: a}]}""")
    before = files(folder)
    assert kubepy(*words, "--dry-run=server").status == 0
    assert files(folder) == before
    assert kubepy(*words).status == 0
    assert len(files(folder) - before) == 1
    assert kubepy("fsck").status == 0


def test_unchanged_apply_and_no_change_leave_no_file(kubepy: Kubepy, folder: Path) -> None:
    before = files(folder)
    assert (
        kubepy("patch", "sa", "default", "-p", "{}").out
        == "serviceaccount/default patched (no change)\n"
    )
    assert files(folder) == before


def test_existing_implied_object_cannot_be_created(kubepy: Kubepy) -> None:
    assert kubepy("create", "sa", "default").err == (
        'error: failed to create serviceaccount: serviceaccounts "default" already exists\n'
    )
    assert (
        "already exists"
        in kubepy("create", "clusterrole", "view", "--verb=get", "--resource=pods").err
    )
    assert (
        kubepy(
            "create", "clusterrolebinding", "b", "--clusterrole=cluster-admin", "--user=ann"
        ).status
        == 0
    )


def test_deleted_account_and_service_are_back_as_other_objects(kubepy: Kubepy) -> None:
    for words in (("sa", "default"), ("svc", "kubernetes")):
        before = read(kubepy, *words)["metadata"]["uid"]
        assert kubepy("delete", *words).status == 0
        middle = read(kubepy, *words)["metadata"]["uid"]
        assert kubepy("label", *words, "a=b").status == 0
        assert kubepy("delete", *words, "--timeout=5s").status == 0
        after = read(kubepy, *words)["metadata"]
        assert len({before, middle, after["uid"]}) == 3
        assert "a" not in after.get("labels", {})


def test_deleted_role_stays_away_until_control_plane_starts(kubepy: Kubepy) -> None:
    assert kubepy("delete", "clusterrole", "view").status == 0
    assert "NotFound" in kubepy("get", "clusterrole", "view").err
    assert kubepy("create", "clusterrole", "view", "--verb=get", "--resource=pods").status == 0
    assert kubepy("delete", "clusterrole", "view").status == 0
    assert kubepy("delete", "clusterrole", "view").status == 1
    assert kubepy("controller", "--once", "-q").status == 0
    assert len(read(kubepy, "clusterrole", "view")["rules"]) > 5


def test_aggregated_roles_have_rules_of_own_roles(kubepy: Kubepy, folder: Path) -> None:
    kubepy("create", "clusterrole", "crons", "--verb=get", "--resource=secrets")
    kubepy("label", "clusterrole", "crons", "rbac.authorization.k8s.io/aggregate-to-view=true")
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    for name in ("view", "edit", "admin"):
        assert rule in read(kubepy, "clusterrole", name)["rules"]
    kubepy("controller", "--once", "-q")
    assert not any(path.endswith("view.yaml") for path in files(folder))


def test_own_role_aggregates_implied_ones(kubepy: Kubepy) -> None:
    Path("r.yaml").write_text("""
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: mine}, rules: [],
 aggregationRule: {clusterRoleSelectors: [{matchLabels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}]}}""")  # noqa: E501
    kubepy("apply", "-f", "r.yaml")
    kubepy("controller", "--once", "-q")
    assert (
        read(kubepy, "clusterrole", "mine")["rules"] == read(kubepy, "clusterrole", "view")["rules"]
    )


def test_namespace_has_account_and_goes_with_it(kubepy: Kubepy, folder: Path) -> None:
    kubepy("create", "ns", "shop")
    assert read(kubepy, "sa", "default", "-n", "shop")["metadata"]["namespace"] == "shop"
    kubepy("label", "sa", "default", "-n", "shop", "a=b")
    assert kubepy("delete", "ns", "shop", "--timeout=30s").status == 0
    assert kubepy("get", "sa", "-n", "shop").err == "No resources found in shop namespace.\n"
    assert not any("shop" in path for path in files(folder))


def test_quota_counts_implied_objects_as_a_cluster_does(kubepy: Kubepy) -> None:
    kubepy("create", "quota", "q", "--hard=services=2,count/serviceaccounts=1")
    kubepy("controller", "--once", "-q")
    assert read(kubepy, "quota", "q")["status"]["used"] == {
        "count/serviceaccounts": "1",
        "services": "1",
    }
    assert kubepy("create", "svc", "clusterip", "a", "--tcp=80").status == 0
    assert (
        "exceeded quota: q, requested: services=1, used: services=2"
        in kubepy("create", "svc", "clusterip", "b", "--tcp=80").err
    )
    assert "exceeded quota" in kubepy("create", "sa", "robot").err
    assert kubepy("label", "svc", "kubernetes", "a=b").status == 0


def test_owner_that_is_implied_keeps_its_dependents(kubepy: Kubepy) -> None:
    uid = read(kubepy, "sa", "default")["metadata"]["uid"]
    Path("cm.yaml").write_text(f"""
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, ownerReferences: [
 {{apiVersion: v1, kind: ServiceAccount, name: default, uid: {uid}}}]}}}}""")
    kubepy("apply", "-f", "cm.yaml")
    kubepy("controller", "--once", "-q")
    assert kubepy("get", "cm", "a").status == 0


def test_watch_shows_account_of_new_namespace(kubepy: Kubepy) -> None:
    done = kubepy("get", "sa", "-A", "-w", "--request-timeout=10ms", "-o", "name")
    assert done.out == "serviceaccount/default\n" * 4


# --- APIServices ----------------------------------------------------------------------------------

CRONTABS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
  - {name: v1, served: true, storage: true, schema: &schema {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: false, storage: false, schema: *schema}
  - {name: v1alpha1, served: true, storage: false, schema: *schema}
"""


@pytest.mark.parametrize("bootstrap", ["minimal", "full"])
def test_api_services_are_those_of_a_server(bootstrap: str, bare: Kubepy, folder: Path) -> None:
    assert bare("init", f"--bootstrap={bootstrap}").status == 0
    lines = bare("get", "apiservices").out.splitlines()
    assert lines[0].split() == ["NAME", "SERVICE", "AVAILABLE", "AGE"]
    assert [line.split()[:3] for line in lines[1:3]] == [
        ["v1.", "Local", "True"],
        ["v1.admissionregistration.k8s.io", "Local", "True"],
    ]
    assert len(lines) == 1 + 21
    core, apps = read(bare, "apiservice", "v1."), read(bare, "apiservice", "v1.apps")
    assert core["spec"] == {"groupPriorityMinimum": 18000, "version": "v1", "versionPriority": 1}
    assert apps["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
    assert apps["status"]["conditions"] == [
        {
            "lastTransitionTime": apps["metadata"]["creationTimestamp"],
            "message": "Local APIServices are always available",
            "reason": "Local",
            "status": "True",
            "type": "Available",
        }
    ]
    assert not any("apiservices" in file for file in files(folder))
    assert bare("fsck").status == 0


def test_each_served_version_of_a_definition_has_an_api_service(kubepy: Kubepy) -> None:
    Path("crd.yaml").write_text(CRONTABS)
    kubepy("apply", "-f", "crd.yaml")
    names = kubepy("get", "apiservices", "-o", "name").out
    assert [name.partition("/")[2] for name in names.split() if "stable" in name] == [
        "v1.stable.example.com",
        "v1alpha1.stable.example.com",
    ]
    service = read(kubepy, "apiservice", "v1.stable.example.com")
    definition = read(kubepy, "crd", "crontabs.stable.example.com")
    assert service["spec"] == {
        "group": "stable.example.com",
        "groupPriorityMinimum": 1000,
        "version": "v1",
        "versionPriority": 100,
    }
    since = definition["metadata"]["creationTimestamp"]
    assert service["metadata"]["creationTimestamp"] == since
    assert service["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    kubepy("delete", "crd", "crontabs.stable.example.com")
    assert "stable" not in kubepy("get", "apiservices").out


@pytest.mark.parametrize("bootstrap", ["minimal", "full"])
def test_deleted_api_service_of_the_server_is_back_after_a_start(
    bootstrap: str, bare: Kubepy
) -> None:
    assert bare("init", f"--bootstrap={bootstrap}").status == 0
    assert bare("delete", "apiservice", "v1.apps").status == 0
    assert "NotFound" in bare("get", "apiservice", "v1.apps").err
    assert bare("get", "deployments").status == 0
    bare("controller", "--once")
    assert bare("get", "apiservice", "v1.apps").status == 0


def test_deleted_api_service_of_a_definition_is_back_at_once(kubepy: Kubepy) -> None:
    Path("crd.yaml").write_text(CRONTABS)
    kubepy("apply", "-f", "crd.yaml")
    before = read(kubepy, "apiservice", "v1.stable.example.com")["metadata"]["uid"]
    assert kubepy("delete", "apiservice", "v1.stable.example.com").status == 0
    assert read(kubepy, "apiservice", "v1.stable.example.com")["metadata"]["uid"] != before


def test_changed_api_service_is_a_file(kubepy: Kubepy, folder: Path) -> None:
    for name in ("v1.", "v1.batch"):
        before = files(folder)
        uid = read(kubepy, "apiservice", name)["metadata"]["uid"]
        assert kubepy("label", "apiservice", name, "a=b").status == 0
        assert len(files(folder) - before) == 1
        assert read(kubepy, "apiservice", name)["metadata"]["uid"] == uid
    assert kubepy("get", "apiservices").out.count("Local") == 21
    assert kubepy("fsck").status == 0


def test_own_api_service_stands_beside_those_of_the_server(kubepy: Kubepy) -> None:
    service = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.metrics.example.com"},
        "spec": {
            "group": "metrics.example.com",
            "groupPriorityMinimum": 100,
            "service": {"name": "metrics", "namespace": "kube-system"},
            "version": "v1beta1",
            "versionPriority": 100,
        },
    }
    Path("service.json").write_text(json.dumps(service))
    assert kubepy("apply", "-f", "service.json").status == 0
    row = kubepy("get", "apiservice", "v1beta1.metrics.example.com", "--no-headers").out
    assert row.split()[:3] == ["v1beta1.metrics.example.com", "kube-system/metrics", "Unknown"]
    assert kubepy("get", "apiservices", "--no-headers").out.count("\n") == 22


# --- full -----------------------------------------------------------------------------------------


def test_full_cluster_has_its_objects_as_files(full: Kubepy, folder: Path) -> None:
    assert {
        f"namespaces/{name}/{file}"
        for name in ("default", "kube-node-lease", "kube-public", "kube-system")
        for file in ("serviceaccounts/default.yaml", "configmaps/kube-root-ca.crt.yaml")
    } <= files(folder)
    assert full("get", "svc").out.splitlines()[1].startswith(KUBERNETES_ROW)
    assert full("get", "clusterroles", "-o", "name").out.count("\n") == 70 + 1  # system:coredns
    assert read(full, "clusterrole", "view")["rules"]
    assert read(full, "servicecidr", "kubernetes")["status"]["conditions"][0]["status"] == "True"
    assert full("fsck").status == 0
    assert full("controller", "--once").out == ""


def test_full_cluster_has_the_name_server_of_kubeadm(full: Kubepy) -> None:
    full("controller", "--once")
    service = read(full, "svc", "kube-dns", "-n", "kube-system")
    ports = [
        (port["name"], port["port"], port["protocol"], port["targetPort"])
        for port in service["spec"]["ports"]
    ]
    assert service["spec"]["clusterIP"] == "10.96.0.10"
    assert ports == [
        ("dns", 53, "UDP", 53),
        ("dns-tcp", 53, "TCP", 53),
        ("metrics", 9153, "TCP", 9153),
    ]
    pods = read(full, "pods", "-n", "kube-system", "-l", "k8s-app=kube-dns")["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Running", "Running"]
    assert {pod["spec"]["serviceAccountName"] for pod in pods} == {"coredns"}
    slices = read(full, "endpointslices", "-n", "kube-system")["items"]
    assert len(slices[0]["endpoints"]) == 2
    rights = read(full, "clusterrolebinding", "system:coredns")
    assert rights["subjects"][0]["name"] == "coredns"
    assert "Corefile" in read(full, "cm", "coredns", "-n", "kube-system")["data"]


def test_deleted_name_server_stays_away(full: Kubepy) -> None:
    for words in (("deployment", "coredns"), ("svc", "kube-dns")):
        assert full("delete", *words, "-n", "kube-system").status == 0
    full("controller", "--once")
    assert full("get", "deploy,svc,pods", "-n", "kube-system").out == ""


def test_cluster_without_service_account_plugin_has_no_name_server(bare: Kubepy) -> None:
    Path("state").mkdir()
    Path("state/kubepy.yaml").write_text(
        "formatVersion: 1\nbootstrap: full\nadmission: {disablePlugins: [ServiceAccount]}\n"
    )
    assert bare("init").status == 0
    assert bare("get", "deploy,svc", "-n", "kube-system").out == ""


def test_settings_by_hand_make_full_cluster_at_once(bare: Kubepy) -> None:
    Path("state").mkdir()
    Path("state/kubepy.yaml").write_text("formatVersion: 1\nbootstrap: full\n")
    assert bare("--reconcile=never", "run", "a", "--image=nginx").status == 0
    assert bare("--reconcile=never", "get", "cm,sa", "-o", "name").out == (
        "configmap/kube-root-ca.crt\nserviceaccount/default\n"
    )


def test_setting_added_later_makes_what_is_missing(kubepy: Kubepy) -> None:
    kubepy("patch", "sa", "default", "-p", PATCH)
    uid = read(kubepy, "sa", "default")["metadata"]["uid"]
    with Path("state/kubepy.yaml").open("a") as file:
        file.write("bootstrap: full\n")
    assert kubepy("get", "clusterrole", "view").status == 0
    assert read(kubepy, "sa", "default")["metadata"]["uid"] == uid
    assert kubepy("get", "cm", "kube-root-ca.crt", "-n", "kube-system").status == 0


def test_init_refuses_other_bootstrap_than_settings_say(bare: Kubepy) -> None:
    assert bare("init", "--bootstrap=some") == Done(
        "", "error: --bootstrap=some is invalid: must be minimal or full\n", 1
    )
    Path("state").mkdir()
    Path("state/kubepy.yaml").write_text("# mine\nformatVersion: 1")
    assert bare("init", "--bootstrap=full", "--nodes=0").status == 0
    assert Path("state/kubepy.yaml").read_text() == "# mine\nformatVersion: 1\nbootstrap: full\n"


@pytest.mark.parametrize(
    "words",
    [
        ("cm", "kube-root-ca.crt"),
        ("sa", "default"),
        ("svc", "kubernetes"),
        ("endpointslice", "kubernetes"),
        ("servicecidr", "kubernetes"),
        ("ns", "kube-node-lease"),
    ],
    ids="/".join,
)
def test_deleted_object_of_full_cluster_comes_back(words: tuple[str, str], full: Kubepy) -> None:
    before = read(full, *words)["metadata"]["uid"]
    assert full("delete", *words, "--wait=false").status == 0
    full("controller", "--once", "-q")
    assert read(full, *words)["metadata"]["uid"] != before


def test_changed_root_certificate_is_put_right(full: Kubepy) -> None:
    full("patch", "cm", "kube-root-ca.crt", "-p", '{"data":{"ca.crt":"x","more":"y"}}')
    data = read(full, "cm", "kube-root-ca.crt")["data"]
    assert list(data) == ["ca.crt"]
    assert data["ca.crt"].startswith("-----BEGIN CERTIFICATE-----\n")


def test_start_completes_roles_unless_they_opt_out(full: Kubepy) -> None:
    full("delete", "clusterrole", "system:node")
    for role in ("system:basic-user", "system:discovery"):
        full("patch", "clusterrole", role, "--type=merge", "-p", '{"rules":[]}')
    full(
        "annotate",
        "clusterrole",
        "system:discovery",
        "rbac.authorization.kubernetes.io/autoupdate=false",
        "--overwrite",
    )
    full(
        "patch",
        "clusterrolebinding",
        "cluster-admin",
        "--type=merge",
        "-p",
        '{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"ann"}]}',
    )
    assert "NotFound" in full("get", "clusterrole", "system:node").err
    full("controller", "--once", "-q")
    assert read(full, "clusterrole", "system:node")["rules"]
    assert read(full, "clusterrole", "system:basic-user")["rules"]
    assert not read(full, "clusterrole", "system:discovery")["rules"]
    subjects = read(full, "clusterrolebinding", "cluster-admin")["subjects"]
    assert [subject["name"] for subject in subjects] == ["ann", "system:masters"]


def test_pod_gets_account_and_token_volume(full: Kubepy) -> None:
    full("patch", "sa", "default", "-p", PATCH)
    full("run", "a", "--image=nginx")
    spec = read(full, "pod", "a")["spec"]
    (volume,), (mount,) = spec["volumes"], spec["containers"][0]["volumeMounts"]
    assert (spec["serviceAccountName"], spec["imagePullSecrets"]) == (
        "default",
        [{"name": "registry"}],
    )
    assert volume["name"] == mount["name"]
    assert volume["name"].startswith("kube-api-access-")
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]
    described = full("describe", "pod", "a").out
    assert "/var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-" in described
    assert "TokenExpirationSeconds:  3607" in described


def test_pod_without_automount_has_no_token_volume(full: Kubepy) -> None:
    full("patch", "sa", "default", "-p", '{"automountServiceAccountToken":false}')
    full("run", "a", "--image=nginx")
    full(
        "run", "b", "--image=nginx", "--overrides", '{"spec":{"automountServiceAccountToken":true}}'
    )
    assert "volumes" not in read(full, "pod", "a")["spec"]
    assert "volumes" in read(full, "pod", "b")["spec"]


def test_pod_of_missing_account_is_forbidden(full: Kubepy) -> None:
    refused = full(
        "run", "x", "--image=nginx", "--overrides", '{"spec":{"serviceAccountName":"name"}}'
    )
    assert refused.err == (
        'Error from server (Forbidden): pods "x" is forbidden: error looking up service account '
        'default/name: serviceaccount "name" not found\n'
    )
    full("create", "deployment", "web", "--image=nginx")
    full("set", "serviceaccount", "deployment/web", "name")
    full("controller", "--once", "-q")
    assert (
        'error looking up service account default/name: serviceaccount "name" not found'
        in full("get", "events").out
    )


def test_account_that_lists_its_secrets_refuses_others(full: Kubepy) -> None:
    full("annotate", "sa", "default", "kubernetes.io/enforce-mountable-secrets=true")
    secret = '{"spec":{"volumes":[{"name":"v","secret":{"secretName":"s"}}]}}'
    assert full("run", "x", "--image=nginx", "--overrides", secret).err.endswith(
        'pods "x" is forbidden: volume with secret.secretName="s" is not allowed because service '
        "account default does "
        "not reference that secret\n"
    )
    pull_secret = '{"spec":{"imagePullSecrets":[{"name":"p"}]}}'
    assert full("run", "x", "--image=nginx", "--overrides", pull_secret).err.endswith(
        'imagePullSecrets[0].name="p" is not allowed because service account default does not '
        "reference that "
        "imagePullSecret\n"
    )
    full("patch", "sa", "default", "-p", '{"secrets":[{"name":"s"}]}')
    assert full("run", "x", "--image=nginx", "--overrides", secret).status == 0


def test_new_namespace_takes_pods_before_controllers_have_seen_it(full: Kubepy) -> None:
    full("create", "ns", "shop")
    assert full("--reconcile=never", "run", "a", "--image=nginx", "-n", "shop").status == 0
    assert full("get", "sa,cm", "-n", "shop", "-o", "name").out == (
        "serviceaccount/default\nconfigmap/kube-root-ca.crt\n"
    )
    assert full("delete", "ns", "shop", "--timeout=60s").status == 0
    assert full("get", "ns", "shop").status == 1


def test_token_secret_is_filled_and_goes_with_its_account(full: Kubepy) -> None:
    full("create", "sa", "robot")
    full("apply", "-f", "-", stdin=TOKEN % ("good", "robot") + "---" + TOKEN % ("orphan", "nobody"))
    secret = read(full, "secret", "good")
    uid = read(full, "sa", "robot")["metadata"]["uid"]
    assert secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == uid
    assert sorted(secret["data"]) == ["ca.crt", "namespace", "token"]
    head, claims, signature = base64.b64decode(secret["data"]["token"]).decode().split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "=="))["alg"] == "RS256"
    assert (
        json.loads(base64.urlsafe_b64decode(claims + "=="))["sub"]
        == "system:serviceaccount:default:robot"
    )
    assert len(base64.urlsafe_b64decode(signature + "==")) == 256
    assert full("get", "secret", "orphan").status == 1
    full("patch", "sa", "robot", "-p", '{"secrets":[{"name":"good"},{"name":"other"}]}')
    full("delete", "secret", "good")
    assert read(full, "sa", "robot")["secrets"] == [{"name": "other"}]
    full("apply", "-f", "-", stdin=TOKEN % ("next", "robot"))
    full("delete", "sa", "robot")
    assert full("get", "secret", "next").status == 1


def test_fixed_clock_and_seed_give_same_bytes(bare: Kubepy, folder: Path) -> None:
    def build(name: str) -> dict[str, bytes]:
        state = folder / name
        state.mkdir()
        (state / "kubepy.yaml").write_text(
            "formatVersion: 1\nclock: 2026-01-01T00:00:00Z\nseed: 7\nbootstrap: full\n"
        )
        for words in (
            ("init",),
            ("create", "ns", "shop"),
            ("run", "a", "--image=nginx"),
            ("delete", "sa", "default"),
            ("apply", "-f", "token.yaml"),
            ("controller", "--once"),
        ):
            assert bare("--state", name, *words).status == 0
        return {str(path.relative_to(state)): path.read_bytes() for path in state.rglob("*.yaml")}

    Path("token.yaml").write_text(TOKEN % ("t", "default"))
    assert build("one") == build("two")
