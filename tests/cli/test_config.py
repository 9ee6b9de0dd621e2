"""``kubepy config``: a context is a state folder and a namespace. The output is kubectl's."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

FILE = "state/.kubepy/config"


@pytest.fixture
def lab(kubepy: Kubepy, folder: Path) -> Path:
    """A second cluster with a namespace, named by the context ``lab``."""
    assert kubepy("--state=lab", "init", "--nodes=0").status == 0
    assert kubepy("--state=lab", "create", "ns", "web").status == 0
    assert kubepy("config", "set-context", "lab", "--cluster=./lab", "--namespace=web").status == 0
    return folder / "lab"


# --- the context of a folder without a chosen context ---------------------------------------------


def test_first_context_is_current(kubepy: Kubepy) -> None:
    assert kubepy("config", "current-context").out == "kubepy\n"
    assert kubepy("config", "get-contexts").out == (
        "CURRENT   NAME     CLUSTER   AUTHINFO   NAMESPACE\n"
        "*         kubepy   kubepy    kubepy     \n")  # fmt: skip
    assert kubepy("config", "get-clusters").out == "NAME\nkubepy\n"


def test_unknown_context_is_accepted_before_contexts_are_written(kubepy: Kubepy) -> None:
    assert kubepy("--context=kind-kind", "--cluster=kind-kind", "get", "cm").err == (
        "No resources found in default namespace.\n"
    )


def test_view_prints_kubeconfig(kubepy: Kubepy, folder: Path) -> None:
    assert (
        kubepy("config", "view").out
        == f"""apiVersion: v1
clusters:
- cluster:
    server: file://{folder}/state
  name: kubepy
contexts:
- context:
    cluster: kubepy
    user: kubepy
  name: kubepy
current-context: kubepy
kind: Config
users:
- name: kubepy
  user: {{}}
"""
    )


def test_view_name_output_has_no_name(kubepy: Kubepy) -> None:
    assert kubepy("config", "view", "-o", "name").out == "config/<unknown>\n"


def test_context_commands_without_cluster_fail(bare: Kubepy) -> None:
    for words in (
        "set-context --current --namespace=web",
        "use-context x",
        "set-cluster x",
        "set contexts.a.user b",
    ):
        done = bare("config", *words.split())
        assert (done.status, done.err[:22]) == (1, 'error: no cluster in "')


# --- namespaces -----------------------------------------------------------------------------------


def test_namespace_of_current_context_is_default(kubepy: Kubepy) -> None:
    kubepy("create", "namespace", "web")
    assert (
        kubepy("config", "set-context", "--current", "--namespace=web").out
        == 'Context "kubepy" modified.\n'
    )
    assert kubepy("create", "configmap", "c").status == 0
    assert kubepy("get", "cm", "-n", "default", "-o", "name").out == ""
    assert kubepy("get", "cm", "c", "-o", "jsonpath={.metadata.namespace}").out == "web"
    assert kubepy("config", "view", "--minify", "-o", "jsonpath={..namespace}").out == "web"
    kubepy("config", "set-context", "--current", "--namespace=")
    assert kubepy("get", "cm").err == "No resources found in default namespace.\n"


def test_contexts_are_created_and_switched(kubepy: Kubepy) -> None:
    assert kubepy("config", "set-context", "staging", "--cluster=kubepy", "-n", "web").out == (
        'Context "staging" created.\n'
    )
    assert kubepy("get", "cm").err == "No resources found in default namespace.\n"
    assert kubepy("--context=staging", "get", "cm").err == "No resources found in web namespace.\n"
    assert kubepy("config", "use-context", "staging").out == 'Switched to context "staging".\n'
    assert kubepy("get", "cm").err == "No resources found in web namespace.\n"
    assert kubepy("get", "cm", "-n", "edge").err == "No resources found in edge namespace.\n"
    assert kubepy("config", "get-contexts", "-o", "name").out == "kubepy\nstaging\n"


# --- folders --------------------------------------------------------------------------------------


def test_context_names_another_folder(kubepy: Kubepy, lab: Path) -> None:
    assert kubepy("--context", "lab", "create", "cm", "far").out == "configmap/far created\n"
    assert kubepy("get", "cm", "-A", "-o", "name").out == ""
    assert kubepy("--state=lab", "get", "cm", "-n", "web", "-o", "name").out == "configmap/far\n"
    kubepy("config", "use-context", "lab")
    assert kubepy("get", "cm", "-o", "name").out == "configmap/far\n"
    assert kubepy("get", "cm", "-o", "name", "--context=kubepy").out == ""


def test_state_flag_selects_contexts(
    kubepy: Kubepy, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubepy("config", "use-context", "lab")
    assert kubepy("--state=lab", "config", "current-context").out == "kubepy\n"
    assert kubepy("--state=lab", "get", "cm").err == "No resources found in default namespace.\n"
    monkeypatch.setenv("KUBEPY_STATE", "lab")
    assert kubepy("get", "cm").err == "No resources found in default namespace.\n"
    assert kubepy("--state=state", "get", "cm").err == "No resources found in web namespace.\n"


def test_set_context_folder_path_becomes_cluster(kubepy: Kubepy, lab: Path) -> None:
    assert kubepy("config", "get-clusters").out == f"NAME\n{lab}\nkubepy\n"
    assert kubepy(
        "config", "view", "--minify", "--context=lab", "-o", "jsonpath={.clusters}"
    ).out == json.dumps(
        [{"cluster": {"server": f"file://{lab}"}, "name": str(lab)}], separators=(",", ":")
    )
    for named in ("lab/.", "lab"):
        assert (
            kubepy(f"--cluster={named}", "get", "ns", "web", "-o", "name").out == "namespace/web\n"
        )
    kubepy("config", "set-context", "again", "--cluster=lab")
    assert kubepy("--context=again", "get", "ns", "web", "-o", "name").out == "namespace/web\n"
    kubepy(
        "config", "set-context", "nowhere", "--cluster=labb"
    )  # an unknown cluster name means this folder
    assert kubepy("--context=nowhere", "get", "ns", "web").status == 1


def test_context_inside_state_folder_names_no_other_folder(
    kubepy: Kubepy, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lab)
    assert kubepy("--state=../state", "get", "ns", "web").status == 1
    kubepy("--state=../state", "config", "set-context", "plain")
    assert kubepy("--state=../state", "--context=plain", "get", "ns", "web").status == 1
    assert kubepy("--state=.", "get", "ns", "web", "-o", "name").out == "namespace/web\n"


def test_set_cluster_names_folder(kubepy: Kubepy, lab: Path) -> None:
    assert kubepy("config", "set-cluster", "far", "--server=./lab").out == 'Cluster "far" set.\n'
    assert kubepy("--cluster=far", "get", "ns", "web", "-o", "name").out == "namespace/web\n"
    assert kubepy("config", "set-context", "--current", "--cluster=far").status == 0
    assert kubepy("get", "ns", "web", "-o", "name").out == "namespace/web\n"


def test_set_cluster_server_url_means_this_folder(kubepy: Kubepy) -> None:
    """Set the URL of a server, as scripts written for kubectl do."""
    for words in (
        "set-cluster ci --server=https://10.0.0.1 --insecure-skip-tls-verify",
        "set-credentials ci --token=t",
        "set-context ci --cluster=ci --user=ci",
        "use-context ci",
    ):
        assert kubepy("config", *words.split()).status == 0
    assert kubepy("create", "cm", "c").out == "configmap/c created\n"
    assert kubepy("config", "use-context", "kubepy").status == 0
    assert kubepy("get", "cm", "-o", "name").out == "configmap/c\n"


def test_context_of_folder_without_cluster_fails_with_its_name(
    kubepy: Kubepy, folder: Path
) -> None:
    kubepy("config", "set-context", "gone", "--cluster=/nowhere/state")
    assert kubepy("get", "cm", "--context=gone").err.startswith(
        'error: no cluster in "/nowhere/state": make one '
    )


# --- errors, and the other subcommands ------------------------------------------------------------


def test_any_context_may_be_used_until_one_is_set(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "a")
    for name in ("prod", "staging", "prod", "kubepy", "prod"):
        assert kubepy("config", "use-context", name).out == f'Switched to context "{name}".\n'
        assert kubepy("config", "current-context").out == f"{name}\n"
        assert kubepy("get", "cm", "-o", "name").out == "configmap/a\n"
    assert kubepy("--context=test", "get", "cm", "-o", "name").out == "configmap/a\n"
    assert kubepy("config", "get-contexts", "-o", "name").out == "kubepy\nprod\nstaging\n"
    kubepy("config", "set-context", "--current", "--namespace=web")
    assert kubepy("get", "cm").err == "No resources found in web namespace.\n"
    assert (
        kubepy("config", "use-context", "test").err
        == 'error: no context exists with the name: "test"\n'
    )
    assert kubepy("--context=test", "get", "cm").status == 1
    assert kubepy("--context=staging", "get", "cm", "-o", "name").out == "configmap/a\n"


def test_missing_context_is_refused(kubepy: Kubepy) -> None:
    done = kubepy("config", "get-contexts", "x", "kubepy", "y")
    assert (done.out.count("\n"), done.err) == (2, "context x not found\ncontext y not found\n")
    kubepy("config", "set-context", "staging")
    assert (
        kubepy("config", "use-context", "x").err == 'error: no context exists with the name: "x"\n'
    )
    assert kubepy("get", "cm", "--context=stagging") == Done(
        "", "Error in configuration: context was not found for specified context: stagging\n", 1
    )


def test_missing_cluster_or_user_is_refused(kubepy: Kubepy) -> None:
    assert (
        kubepy("get", "cm", "--cluster=gone", "--user=gone").status == 0
    )  # no context was ever set
    kubepy("config", "set-context", "staging")
    assert kubepy("get", "cm", "--cluster=gone", "--user=gone") == Done(
        "", 'error: no server found for cluster "gone"\n', 1
    )
    assert kubepy("get", "cm", "--user=gone") == Done(
        "", 'error: auth info "gone" does not exist\n', 1
    )
    assert kubepy("get", "cm", "--cluster=kubepy", "--user=kubepy").status == 0


def test_own_user_flag_of_command_selects_no_user_of_contexts(kubepy: Kubepy) -> None:
    kubepy("config", "set-context", "staging")
    assert (
        kubepy("create", "clusterrolebinding", "agent", "--clusterrole=view", "--user=ann").status
        == 0
    )
    assert kubepy("set", "subject", "clusterrolebinding", "agent", "--user=bob") == Done(
        "clusterrolebinding.rbac.authorization.k8s.io/agent subjects updated\n", "", 0
    )
    assert (
        kubepy(
            "create",
            "rolebinding",
            "agent",
            "--clusterrole=view",
            "--user=ann",
            "--context=staging",
        ).status
        == 0
    )


def test_set_base64_in_lines_is_accepted(kubepy: Kubepy) -> None:
    kubepy("config", "set", "clusters.far.certificate-authority-data", "AAEC\nAwQF\r\n")
    assert (
        kubepy(
            "config",
            "view",
            "--raw",
            "-o",
            "jsonpath={.clusters[?(@.name=='far')].cluster.certificate-authority-data}",
        ).out
        == "AAECAwQF"
    )


def test_contexts_are_renamed_and_deleted(kubepy: Kubepy) -> None:
    assert (
        kubepy("config", "rename-context", "kubepy", "home").out
        == 'Context "kubepy" renamed to "home".\n'
    )
    assert kubepy("config", "current-context").out == "home\n"
    assert kubepy("config", "rename-context", "x", "y").err == (
        f'error: cannot rename the context "x", it\'s not in {FILE}\n'
    )
    assert (
        kubepy("config", "delete-context", "x").err
        == f"error: cannot delete context x, not in {FILE}\n"
    )
    assert kubepy("config", "delete-context", "home") == Done(
        f"deleted context home from {FILE}\n",
        'warning: this removed your active context, use "kubepy config '
        'use-context" to select a different one\n',
        0,
    )
    assert (
        kubepy("get", "cm").err
        == "Error in configuration: context was not found for specified context: home\n"
    )
    assert kubepy("config", "unset", "current-context").out == 'Property "current-context" unset.\n'
    assert kubepy("get", "cm").err == "No resources found in default namespace.\n"
    assert kubepy("config", "current-context").err == "error: current-context is not set\n"
    assert (
        kubepy("config", "view", "--minify").err
        == "error: current-context must exist in order to minify\n"
    )


def test_clusters_and_users_are_deleted(kubepy: Kubepy) -> None:
    assert (
        kubepy("config", "delete-cluster", "kubepy").out == f"deleted cluster kubepy from {FILE}\n"
    )
    assert kubepy("config", "delete-user", "kubepy").out == f"deleted user kubepy from {FILE}\n"
    assert (
        kubepy("config", "delete-user", "kubepy").err
        == f"error: cannot delete user kubepy, not in {FILE}\n"
    )
    assert kubepy("config", "view", "-o", "jsonpath={.clusters}{.users}").out == "nullnull"
    assert "clusters: null\n" in kubepy("config", "view").out
    assert kubepy("get", "cm").status == 0


def test_single_values_are_set_by_their_paths(kubepy: Kubepy, lab: Path) -> None:
    for path, value in (
        ("contexts.a.b.namespace", "x"),
        ("clusters.c.server", "lab/."),
        ("users.u.token", "t"),
        ("clusters.c.insecure-skip-tls-verify", "true"),
        ("current-context", "a.b"),
    ):
        assert kubepy("config", "set", path, value).out == f'Property "{path}" set.\n'
    assert (
        kubepy("config", "view", "-o", "jsonpath={.contexts[?(@.name=='a.b')].context}").out
        == '{"namespace":"x"}'
    )
    assert kubepy("config", "view", "-o", "jsonpath={.clusters[?(@.name=='c')].cluster}").out == (
        f'{{"insecure-skip-tls-verify":true,"server":"file://{lab}"}}'
    )
    assert kubepy("get", "cm").err == "No resources found in x namespace.\n"
    assert (
        kubepy("config", "unset", "contexts.a.b.namespace").out
        == 'Property "contexts.a.b.namespace" unset.\n'
    )
    assert kubepy("get", "cm").err == "No resources found in default namespace.\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["set", "a", "b"], "unable to parse a after [] at api.Config"),
        (
            ["set", "contexts.x.namespace.y", "b"],
            "unable to parse one or more field values of contexts.x.namespace.y",
        ),
        (["set", "contexts.x", "b"], "can't set a map to a value: map[kubepy]"),
        (["set", "current-context", ""], "you cannot use set to unset a property"),
        (
            ["set", "clusters.x.insecure-skip-tls-verify", "b"],
            'strconv.ParseBool: parsing "b": invalid syntax',
        ),
        (["unset", "contexts.x.namespace"], "current map key `x` is invalid"),
        (["set-context"], "you must specify a non-empty context name or --current"),
        (["set-context", "x", "--current"], "you cannot specify both a context name and --current"),
        (
            ["set-credentials", "u", "--token=a", "--username=b"],
            "you cannot specify more than one authentication method at "
            "the same time: --token, --username/--password",
        ),
        (
            ["set-cluster", "c", "--embed-certs"],
            "you must specify a --certificate-authority to embed",
        ),
        (
            ["get-contexts", "-o", "json"],
            "--output json is not available in kubectl config get-contexts; resetting to "
            "default output format",
        ),
    ],
)
def test_wrong_input_fails_with_kubectls_message(
    kubepy: Kubepy, words: list[str], error: str
) -> None:
    assert kubepy("config", *words) == Done("", f"error: {error}\n", 1)


def test_wrong_number_of_args_shows_help_first(kubepy: Kubepy) -> None:
    done = kubepy("config", "use-context")
    assert (done.out, done.err, done.status) == (
        kubepy("config", "use-context", "--help").out,
        "error: Unexpected args: []\n",
        1,
    )


def test_set_credentials_are_stored_and_redacted(kubepy: Kubepy, folder: Path) -> None:
    assert kubepy("config", "set-credentials", "u", "--token=secret").out == 'User "u" set.\n'
    assert kubepy("config", "view", "-o", "jsonpath={.users[1].user}").out == '{"token":"REDACTED"}'
    assert (
        kubepy("config", "view", "--raw", "-o", "jsonpath={.users[1].user}").out
        == '{"token":"secret"}'
    )
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    kubepy("config", "set-credentials", "u", "--username=me", "--password=p")
    assert kubepy("config", "view", "--raw", "-o", "jsonpath={.users[1].user}").out == (
        '{"password":"p","username":"me"}'
    )


def test_contexts_are_ignored_by_git(kubepy: Kubepy, folder: Path) -> None:
    kubepy("config", "set-context", "--current", "--namespace=web")
    assert json.loads((folder / FILE).read_text()) == {
        "kind": "Config",
        "apiVersion": "v1",
        "clusters": [{"name": "kubepy", "cluster": {}}],
        "users": [{"name": "kubepy", "user": {}}],
        "current-context": "kubepy",
        "contexts": [
            {
                "name": "kubepy",
                "context": {"cluster": "kubepy", "user": "kubepy", "namespace": "web"},
            }
        ],
    }
    assert (folder / "state/.gitignore").read_text() == "/.kubepy/\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "Expecting property name"),
        ("[]", "couldn't get version/kind"),
        ('{"current-context": 1}', "json: cannot unmarshal number into Go struct field"),
        (
            '{"current-context": "", "clusters": [{"name": 1, "cluster": {}}]}',
            "json: cannot unmarshal number into Go struct field NamedCluster.clusters.name of "
            "type string",
        ),
    ],
)
def test_invalid_contexts_file_fails_with_its_name(
    kubepy: Kubepy, folder: Path, text: str, error: str
) -> None:
    (folder / FILE).write_text(text)
    done = kubepy("get", "cm")
    assert (done.out, done.status) == ("", 1)
    assert done.err.startswith(f'error: error loading config file "{FILE}": {error}')
    assert done.err.count("\n") == 1


def test_set_credentials_exec_command_is_stored(kubepy: Kubepy) -> None:
    def kept() -> object:
        shown = kubepy("config", "view", "--raw", "-o", "json").out
        return next(one["user"] for one in json.loads(shown)["users"] if one["name"] == "u")

    kubepy(
        "config",
        "set-credentials",
        "u",
        "--exec-command=get-token",
        "--exec-arg=a,b",
        "--exec-env=K=v",
        "--exec-api-version=v1",
    )
    assert kept() == {
        "exec": {
            "args": ["a", "b"],
            "command": "get-token",
            "apiVersion": "v1",
            "env": [{"name": "K", "value": "v"}],
        }
    }
    kubepy(
        "config",
        "set-credentials",
        "u",
        "--exec-env=K-",
        "--exec-env=L=w",
        "--auth-provider=oidc",
        "--auth-provider-arg=id=x",
    )
    assert kept() == {
        "auth-provider": {"name": "oidc", "config": {"id": "x"}},
        "exec": {
            "args": ["a", "b"],
            "command": "get-token",
            "apiVersion": "v1",
            "env": [{"name": "L", "value": "w"}],
        },
    }
    assert kubepy("config", "set-credentials", "u", "--exec-interactive-mode=x").err == (
        "error: invalid interactive mode type, can be only IfAvailable, Never, Always\n"
    )


# --- --kubeconfig ---------------------------------------------------------------------------------

KUBECONFIG = """
clusters: [{name: real, cluster: {server: "https://10.0.0.1:6443"}}]
contexts:
- {name: one, context: {cluster: real, user: ann, namespace: web}}
- {name: two, context: {cluster: real, user: lost}}
current-context: one
users:
- {name: ann, user: {as: ann, as-uid: "7", as-groups: [painters], as-user-extra: {team: [red, blue]}}}
- {name: lost, user: {as-uid: "7"}}
preferences: {colors: true}
"""  # noqa: E501


@pytest.fixture
def kubeconfig(kubepy: Kubepy, folder: Path) -> Path:
    """A kubeconfig of another cluster; its context's namespace has a config map."""
    kubepy("create", "ns", "web")
    kubepy("create", "cm", "paint", "-n", "web")
    path = folder / "kubeconfig"
    path.write_text(KUBECONFIG)
    return path


@pytest.mark.parametrize(
    "words", ["get pods", "get pods --context=", "create cm x --dry-run=client", "apply -f x.yaml"]
)
def test_kubeconfig_missing_file_is_refused(kubepy: Kubepy, folder: Path, words: str) -> None:
    (folder / "x.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
    done = kubepy(*words.split(), "--kubeconfig=nope")
    assert done == Done("", "error: stat nope: no such file or directory\n", 1)


def test_kubeconfig_missing_file_has_no_contexts_for_config(kubepy: Kubepy, folder: Path) -> None:
    assert "contexts: null" in kubepy("config", "view", "--kubeconfig=nope").out
    assert (
        kubepy("config", "current-context", "--kubeconfig=nope").err
        == "error: current-context is not set\n"
    )
    assert kubepy("version", "--client", "--kubeconfig=nope").status == 0
    assert kubepy("config", "set-context", "a", "--namespace=web", "--kubeconfig=sub/new").out == (
        'Context "a" created.\n'
    )
    assert (folder / "sub/new").read_text() == (
        "apiVersion: v1\nclusters: []\ncontexts:\n- context:\n    namespace: web\n  name: "
        'a\ncurrent-context: ""\n'
        "kind: Config\nusers: []\n"
    )
    assert stat.S_IMODE((folder / "sub/new").stat().st_mode) == 0o600


def test_kubeconfig_context_gives_namespace_of_this_folder(
    kubepy: Kubepy, kubeconfig: Path
) -> None:
    assert (
        kubepy("get", "cm", "-o", "name", f"--kubeconfig={kubeconfig}").out == "configmap/paint\n"
    )
    assert (
        kubepy("get", "cm", "-o", "name", f"--kubeconfig={kubeconfig}", "--cluster=real").out
        == "configmap/paint\n"
    )
    assert kubepy("get", "cm").err == "No resources found in default namespace.\n"
    assert kubepy("get", "cm", f"--kubeconfig={kubeconfig}", "--context=x").err == (
        "Error in configuration: context was not found for specified context: x\n"
    )
    assert kubepy("get", "cm", f"--kubeconfig={kubeconfig}", "--cluster=x").err == (
        'error: no server found for cluster "x"\n'
    )
    assert kubepy("get", "cm", f"--kubeconfig={kubeconfig}", "--user=x").err == (
        'error: auth info "x" does not exist\n'
    )


def test_kubeconfig_cluster_is_folder(kubepy: Kubepy, kubeconfig: Path, lab: Path) -> None:
    kubepy("--state", str(lab), "create", "cm", "-n", "web", "brush")
    kubeconfig.write_text(KUBECONFIG.replace("https://10.0.0.1:6443", f"file://{lab}"))
    assert (
        kubepy("get", "cm", "-o", "name", f"--kubeconfig={kubeconfig}").out == "configmap/brush\n"
    )


def test_kubeconfig_variable_is_not_read(
    kubepy: Kubepy, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    assert kubepy("config", "current-context").out == "kubepy\n"
    assert kubepy("get", "cm").err == "No resources found in default namespace.\n"


def test_kubeconfig_user_impersonates(kubepy: Kubepy, kubeconfig: Path) -> None:
    def user(*words: str) -> object:
        shown = kubepy("auth", "whoami", "-o", "json", f"--kubeconfig={kubeconfig}", *words).out
        return json.loads(shown)["status"]["userInfo"]

    ann = {
        "username": "ann",
        "uid": "7",
        "groups": ["painters", "system:authenticated"],
        "extra": {"team": ["red", "blue"]},
    }
    assert user() == ann
    assert user("--as=bob", "--as-group=glaziers") == {
        **ann,
        "username": "bob",
        "groups": ["glaziers", "system:authenticated"],
    }
    assert kubepy("get", "pods", "--user=lost", f"--kubeconfig={kubeconfig}").err == (
        "error: requesting uid, groups or user-extra for lost without impersonating a user\n"
    )


def test_kubeconfig_is_written_to_no_file_that_was_prepared(
    kubepy: Kubepy, kubeconfig: Path
) -> None:
    prepared = kubeconfig.with_name(f"{kubeconfig.name}.{os.getpid()}.tmp")
    prepared.write_text("")
    prepared.chmod(0o666)
    with prepared.open() as of_another_user:
        kubepy("config", "set-credentials", "ann", "--token=secret", f"--kubeconfig={kubeconfig}")
        assert of_another_user.read() == ""
    assert "secret" in kubeconfig.read_text()
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600


def test_kubeconfig_config_commands_change_the_file_alone(
    kubepy: Kubepy, kubeconfig: Path, folder: Path
) -> None:
    assert (
        kubepy("config", "use-context", "two", f"--kubeconfig={kubeconfig}").out
        == 'Switched to context "two".\n'
    )
    assert kubepy("config", "delete-context", "one", "--kubeconfig=kubeconfig").out == (
        "deleted context one from kubeconfig\n"
    )
    assert (
        kubepy("config", "get-contexts", "-o", "name", f"--kubeconfig={kubeconfig}").out == "two\n"
    )
    assert "preferences:\n  colors: true\n" in kubeconfig.read_text()
    assert not (folder / FILE).exists()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: [\n", "yaml: line"),
        (
            "[]",
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go "
            "value of type struct",
        ),
        (
            "{kind: Config, apiVersion: v-1}",
            'no kind "Config" is registered for version "v-1" in scheme',
        ),
        (
            "contexts: 5",
            "json: cannot unmarshal number into Go struct field Config.contexts of type "
            "[]v1.NamedContext",
        ),
        (
            "contexts: [{name: a, context: 5}]",
            "json: cannot unmarshal number into Go struct field NamedContext.contexts.context of "
            "type v1.Context",
        ),
        (
            "contexts: [{name: a, context: {namespace: 5}}]",
            "json: cannot unmarshal number into Go struct field "
            "Context.contexts.context.namespace of type string",
        ),
        (
            "users: [{name: a, user: {as-user-extra: {x: z}}}]",
            "json: cannot unmarshal string into Go struct field AuthInfo.users.user.as-user-extra "
            "of type []string",
        ),
        (
            "contexts: [{name: a}, {name: a}]",
            "error converting *[]NamedContext into *map[string]*api.Context: duplicate name",
        ),
    ],
)
def test_kubeconfig_of_another_form_is_refused(
    kubepy: Kubepy, folder: Path, text: str, error: str
) -> None:
    (folder / "bad").write_text(text)
    done = kubepy("get", "pods", "--kubeconfig=bad")
    assert (done.out, done.status, done.err.count("\n")) == ("", 1, 1)
    assert done.err.startswith(f'error: error loading config file "bad": {error}')


def test_kubeconfig_folder_is_refused(kubepy: Kubepy, folder: Path) -> None:
    assert kubepy("get", "pods", f"--kubeconfig={folder}").err == (
        f'error: error loading config file "{folder}": read {folder}: is a directory\n'
    )
