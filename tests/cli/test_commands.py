"""Command lines: the command that a line names, the message when it names none, and errors."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kubepy.cli.errors import CliError, guarded
from kubepy.cli.program import as_text
from kubepy.cli.runtime.factory import Factory
from tests.cli.conftest import Done, Kubepy, run


def test_unknown_command_is_named_with_what_might_have_been_meant(bare: Kubepy) -> None:
    assert bare("gett", "pods") == Done(
        "", 'error: unknown command "gett" for "kubepy"\n\nDid you mean this?\n\tset\n\tget\n', 1
    )
    assert bare("frobnicate") == Done("", 'error: unknown command "frobnicate" for "kubepy"\n', 1)


def test_unknown_command_is_told_before_its_flags(bare: Kubepy) -> None:
    assert bare("aply", "-f", "x") == Done(
        "", 'error: unknown command "aply" for "kubepy"\n\nDid you mean this?\n\tapply\n', 1
    )
    assert bare("-n", "x", "foo") == Done(
        "", "Error: flags cannot be placed before plugin name: -n\n", 1
    )


def test_unknown_command_of_group(bare: Kubepy) -> None:
    assert bare("rollout", "frob", "x") == Done(
        "", "error: unknown command \"frob x\"\nSee 'kubepy rollout -h' for help and examples\n", 1
    )


def test_wrong_flag_points_to_help_of_its_command(bare: Kubepy) -> None:
    assert bare("get", "--colour") == Done(
        "", "error: unknown flag: --colour\nSee 'kubepy get --help' for usage.\n", 1
    )
    assert bare("create", "deploy", "x", "--image") == Done(
        "",
        "error: flag needs an argument: --image\nSee 'kubepy create deployment --help' for "
        "usage.\n",
        1,
    )


def test_global_flags_stand_before_and_behind_verb(kubepy: Kubepy) -> None:
    wanted = Done("", "No resources found in edge namespace.\n", 0)
    assert kubepy("-n", "edge", "get", "pods") == wanted
    assert kubepy("get", "pods", "-n", "edge") == wanted
    assert kubepy("--namespace=edge", "--context", "x", "get", "-v=3", "pods") == wanted


def test_state_folder_may_be_named_anywhere(bare: Kubepy) -> None:
    assert bare("--state", "elsewhere", "init", "--nodes=0").status == 0
    assert bare("get", "nodes", "--state=elsewhere") == Done("", "No resources found\n", 0)


def test_reading_from_folder_without_cluster_names_it_and_init(bare: Kubepy, folder: Path) -> None:
    done = bare("get", "pods")
    assert done == Done(
        "",
        'error: no cluster in "state": make one with "kubepy init", or name another folder with '
        "--state or $KUBEPY_STATE\n",
        1,
    )
    assert not (folder / "state").exists()


def test_creating_makes_cluster_and_dry_run_does_not(bare: Kubepy, folder: Path) -> None:
    assert bare("create", "cm", "a", "--dry-run=client") == Done(
        "configmap/a created (dry run)\n", "", 0
    )
    assert bare("create", "cm", "a", "--dry-run=server") == Done(
        "configmap/a created (server dry run)\n", "", 0
    )
    assert not (folder / "state").exists()
    assert bare("create", "cm", "a").out == "configmap/a created\n"
    assert (folder / "state" / "kubepy.yaml").exists()


NODE = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "own"}}'
CONFIG_MAP = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}'
CLASS = """{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "a/b", "metadata": {
    "name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}"""  # noqa: E501


def names(bare: Kubepy, kind: str) -> list[str]:
    return bare("get", kind, "-o", "name").out.split()


@pytest.mark.parametrize(
    "words",
    [
        "create deployment web --image=nginx",
        "apply -f -",
        "replace --force -f -",
        "run web --image=nginx",
        "create namespace x",
    ],
)
def test_first_command_makes_node_as_init_would(bare: Kubepy, folder: Path, words: str) -> None:
    done = bare(*words.split(), stdin=CONFIG_MAP)
    assert done.err == "note: made a cluster in state with one node, node-1, as kubepy init does\n"
    assert names(bare, "nodes") == ["node/node-1"]
    assert names(bare, "storageclasses") == ["storageclass.storage.k8s.io/standard"]
    assert bare("create", "cm", "y") == Done("configmap/y created\n", "", 0)


def test_first_command_node_is_the_one_of_init(bare: Kubepy, folder: Path) -> None:
    own_time = "formatVersion: 1\nclock: 2026-01-01T00:00:00Z\n"
    for name in ("first", "made"):
        (folder / name).mkdir()
        (folder / name / "kubepy.yaml").write_text(own_time)
    bare("--state", "first", "create", "cm", "x")
    bare("--state", "made", "init")
    texts = []
    for name in ("first", "made"):
        bare("--state", name, "controller", "--once")
        [line] = bare("--state", name, "get", "nodes", "--no-headers").out.splitlines()
        file = folder / name / "cluster" / "nodes" / "node-1.yaml"
        texts.append((line, re.sub("uid: .*", "", file.read_text())))
    assert texts[0] == texts[1]


def test_first_command_that_brings_nodes_gets_no_other(bare: Kubepy) -> None:
    assert bare("apply", "-f", "-", stdin=f"{CONFIG_MAP}\n---\n# the node\n{NODE}\n").err == ""
    assert bare("create", "cm", "y").err == ""
    assert names(bare, "nodes") == ["node/own"]
    assert names(bare, "storageclasses") == []


def test_first_command_that_brings_default_class_gets_no_other(bare: Kubepy) -> None:
    bare("apply", "-f", "-", stdin=CLASS)
    assert names(bare, "storageclasses") == ["storageclass.storage.k8s.io/fast"]
    assert names(bare, "nodes") == ["node/node-1"]


def test_plan_of_first_command_takes_files_that_are_there(bare: Kubepy, folder: Path) -> None:
    """The command makes a cluster around them, and configures what a file holds already."""
    file = folder / "state/namespaces/default/configmaps/a.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: 'y'}\n"
    planned = bare("plan", "apply", "-f", "-", stdin=manifest)
    tried = bare("apply", "-f", "-", "--dry-run=server", stdin=manifest)
    assert not (folder / "state/kubepy.yaml").exists()
    done = bare("apply", "-f", "-", stdin=manifest)
    assert done.out == "configmap/a configured\n"
    assert planned.out.startswith(done.out)
    assert tried.out == "configmap/a configured (server dry run)\n"


def test_first_command_that_fails_leaves_cluster_with_node(bare: Kubepy) -> None:
    assert bare("create", "configmap", "A").status == 1
    assert names(bare, "nodes") == ["node/node-1"]


def test_first_command_that_was_killed_is_made_up_for_by_next(bare: Kubepy, folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Factory, "_furnish", lambda factory, cluster: None)
        bare("create", "cm", "x")
    assert bare("create", "cm", "y").err.startswith("note: made a cluster in ")
    assert names(bare, "nodes") == ["node/node-1"]


def test_folder_that_init_made_without_nodes_gets_none(kubepy: Kubepy) -> None:
    assert kubepy("create", "cm", "x").err == ""
    assert names(kubepy, "nodes") == []
    assert names(kubepy, "storageclasses") == []


def test_plan_of_first_command_has_node_that_it_would_make(bare: Kubepy, folder: Path) -> None:
    done = bare("plan", "create", "deployment", "web", "--image=nginx")
    assert "node node-1 created, ready" in done.out
    assert (done.status, done.out.splitlines()[-1]) == (0, "Finishes at once.")
    assert not (folder / "state").exists()


def test_init_refuses_folder_that_holds_cluster(kubepy: Kubepy) -> None:
    assert kubepy("init", "--nodes=0") == Done(
        "", 'error: there is a cluster in "state" already\n', 1
    )


def test_init_makes_ready_nodes_and_default_storage_class(bare: Kubepy) -> None:
    assert bare("init", "--nodes=2").out == (
        "cluster created in state\nstorageclass.storage.k8s.io/standard created\n"
        "node/node-1 created\nnode/node-2 created\n"
    )
    classes = bare("get", "sc").out.splitlines()
    assert [line.split()[:5] for line in classes[1:]] == [
        ["standard", "(default)", "kubepy.dev/simulated", "Delete", "WaitForFirstConsumer"]
    ]
    ready = (
        "{range .items[*]}{.metadata.name} {.status.conditions[?(@.type=='Ready')]."
        "status}{'\\n'}{end}"
    )
    assert bare("get", "nodes", "-o", f"jsonpath={ready}").out == "node-1 True\nnode-2 True\n"


NO_NODES = (
    'make one with echo \'{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-1"}}\' | '
    "kubepy create -f -\n"
)


def test_cluster_without_nodes_says_what_comes_next(bare: Kubepy) -> None:
    assert bare("init", "--nodes=0") == Done(
        "cluster created in state\n",
        f"note: there are no nodes, so pods will stay Pending: {NO_NODES}",
        0,
    )
    assert bare("controller", "--once", "-q") == Done("", "", 0)
    for name in ("a", "b"):
        bare("run", name, "--image=nginx")
    for _ in range(2):
        assert bare("controller", "--once", "-q") == Done(
            "", f"note: 2 pods (default/a …) are Pending: there are no nodes: {NO_NODES}", 0
        )
    bare("create", "-f", "-", stdin="{apiVersion: v1, kind: Node, metadata: {name: one}}")
    assert bare("controller", "--once", "-q") == Done("", "", 0)


def test_warnings_can_count_as_errors(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "a")
    done = kubepy("delete", "cm", "a", "--force", "--warnings-as-errors")
    assert (done.out, done.status) == ('configmap "a" force deleted from default namespace\n', 1)
    assert done.err.splitlines()[-1] == "error: 1 warning received"


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (
            "--request-timeout=soon",
            "Invalid timeout value. Timeout must be a single integer in seconds, or an integer "
            "followed by a corresponding time unit (e.g. 1s | 2m | 3h)",
        ),
        (
            "--request-timeout=-5",
            "Invalid timeout value. Timeout must be a single integer in seconds, or an integer "
            "followed by a corresponding time unit (e.g. 1s | 2m | 3h)",
        ),
        ("--profile=all", "unknown profile 'all'"),
        (
            "--as-group=ops",
            "requesting uid, groups or user-extra for kubepy without impersonating a user",
        ),
        (
            "--log-flush-frequency=5",
            'invalid argument "5" for "--log-flush-frequency" flag: parse error\n'
            "See 'kubepy get --help' for usage.",
        ),
        (
            "--vmodule=a=b",
            'invalid argument "a=b" for "--vmodule" flag: syntax error: expect comma-separated '
            "list of "
            "filename=N\nSee 'kubepy get --help' for usage.",
        ),
        (
            "--v=much",
            'invalid argument "much" for "-v, --v" flag: strconv.ParseInt: parsing "much": '
            "invalid syntax\n"
            "See 'kubepy get --help' for usage.",
        ),
    ],
)
def test_flags_that_mean_nothing_are_still_read(kubepy: Kubepy, flags: str, error: str) -> None:
    assert kubepy("get", "pods", flags) == Done("", f"error: {error}\n", 1)


def test_flags_for_server_are_taken(kubepy: Kubepy) -> None:
    words = (
        "-s https://x --token=t --user=u --as=me --as-group=ops --request-timeout=5s -v=3 "
        "--vmodule=a=1,b=2 --log-flush-frequency=1m --cache-dir=/x --insecure-skip-tls-verify"
    )
    assert kubepy("get", "pods", *words.split()) == Done(
        "", "No resources found in default namespace.\n", 0
    )


def test_group_shows_its_commands_on_stderr_and_fails(bare: Kubepy) -> None:
    done = bare("create", "secret")
    assert (done.out, done.status) == ("", 1)
    assert [
        line.split()[0]
        for line in done.err.partition("Available Commands:")[2].splitlines()
        if line.startswith("  ")
    ][:3] == ["docker-registry", "generic", "tls"]
    rollout = bare("rollout")  # the one error whose help kubectl prints on stdout
    assert (rollout.err, rollout.status) == ("", 1)
    assert "  undo     Undo a previous rollout\n" in rollout.out


def test_watch_ends_with_time_of_its_request(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "a")
    for words in ("get cm -w -o name", "get cm --watch-only", "events -w"):
        done = kubepy(*words.split(), "--request-timeout=50ms")
        assert (done.out, done.status) == ("configmap/a\n" if words.endswith("name") else "", 0)


def test_warnings_are_yellow_on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def warned() -> str:
        terminal = Terminal()
        Factory(stderr=terminal).warn("mind")
        return terminal.getvalue()

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert warned() == "\033[33;1mWarning:\033[0m mind\n"
    monkeypatch.setenv("NO_COLOR", "")
    assert warned() == "Warning: mind\n"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert warned() == "Warning: mind\n"


@pytest.mark.parametrize("verb", ["exec", "port-forward", "attach", "cp"])
def test_command_without_containers_says_so_in_one_line(simple: Kubepy, verb: str) -> None:
    words = ("x:/a", "b") if verb == "cp" else ("pod/x", "--", "ls")
    done = simple(verb, *words)
    assert (done.out, done.status) == ("", 1)
    assert done.err.startswith(f'error: "{verb}" is not supported: ')
    assert done.err.count("\n") == 1


def test_defect_is_one_line_and_never_traceback() -> None:
    said: list[str] = []

    def fail() -> None:
        raise ZeroDivisionError("oops")

    assert guarded(fail, said.append) == 1
    assert len(said) == 1
    assert said[0].startswith("error: internal error: ZeroDivisionError: oops (test_commands.py:")


def test_interrupt_ends_with_130() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    assert guarded(interrupt, print) == 130


def test_error_of_command_line_gets_its_prefix_once() -> None:
    said: list[str] = []

    def fail() -> None:
        raise CliError("error: twice")

    guarded(fail, said.append)
    assert said == ["error: twice"]


@pytest.mark.parametrize(
    ("word", "text"), [("a", "a"), ("ü", "ü"), ("\udcff", "\ufffd"), ("\udcc3\udcbc", "ü")]
)
def test_arguments_are_utf8_in_any_locale(word: str, text: str) -> None:
    assert as_text(word) == text


def test_reader_that_leaves_ends_program_quietly(kubepy: Kubepy) -> None:
    script = (
        f"{sys.executable} -m kubepy.cli.program api-resources -o wide | head -1; echo "
        f"${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith("NAME")


NEVER = {"tabulate", "asyncio", "random", "gettext", "uuid", "platform", "hashlib", "ruamel"}
OF_FILELOCK = {"random", "platform", "hashlib"}  # a command that writes takes a lock


@pytest.mark.parametrize(
    ("words", "slow", "message"),
    [
        (
            "get ds x",
            NEVER | {"click", "filelock", "dataclasses", "inspect"},
            'Error from server (NotFound): daemonsets.apps "x" not found\n',
        ),
        (
            "get ds",
            NEVER | {"click", "kubepy.api.errors", "kubepy.api.watch", "kubepy.cli.get_output"},
            "No resources found in default namespace.\n",
        ),
        ("label namespace default a=b", NEVER - OF_FILELOCK, "namespace/default labeled\n"),
    ],
)
def test_command_imports_nothing_that_is_slow_to_import(
    kubepy: Kubepy, folder: Path, words: str, slow: set[str], message: str
) -> None:
    os.utime(
        folder / "state" / "kubepy.yaml", (1e9, 1e9)
    )  # a file written within the last moment is read again
    kubepy("get", "nodes")
    code = (
        f"import sys; from kubepy.cli.main import main; main({words.split()}); "
        f"print(sorted({slow} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr in (f"{message}[]\n", f"[]\n{message}")


# --- refused before anything changes --------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "annotate node node-1 a=b",
        "taint node node-1 a=b:NoSchedule",
        "set image ds/x a=b",
    ],
)
def test_wrong_output_format_is_told_before_anything_changes(bare: Kubepy, words: str) -> None:
    assert bare("init", "--nodes", "1").status == 0
    before = bare("get", "node", "node-1", "-o", "yaml").out
    done = bare(*words.split(), "-o", "bogus")
    assert (done.out, done.status) == ("", 1)
    assert done.err.startswith(
        'error: unable to match a printer suitable for the output format "bogus"'
    )
    assert bare("get", "node", "node-1", "-o", "yaml").out == before


def test_patch_tells_wrong_output_format_when_it_has_patched(bare: Kubepy) -> None:
    assert bare("init", "--nodes", "1").status == 0
    done = bare("patch", "node", "node-1", "-p", '{"metadata":{"labels":{"a":"b"}}}', "-o", "bogus")
    assert done.err.startswith(
        'error: unable to match a printer suitable for the output format "bogus"'
    )
    assert bare("get", "node", "node-1", "-o", "jsonpath={.metadata.labels.a}").out == "b"


def test_files_and_kustomization_exclude_each_other(kubepy: Kubepy) -> None:
    assert kubepy("get", "-f", "a", "-k", "b") == Done(
        "", "error: only one of -f or -k can be specified\n", 1
    )


# --- words that name objects ----------------------------------------------------------------------


def test_all_resources_take_names_as_given(bare: Kubepy) -> None:
    assert bare("init", "--nodes", "2").status == 0
    assert bare("label", "nodes", "node-1", "--all", "a=b").out == "node/node-1 labeled\n"
    assert (
        bare("label", "nodes", "--all", "c=d").out == "node/node-1 labeled\nnode/node-2 labeled\n"
    )
    assert bare("delete", "nodes", "node-1", "--all").err == (
        "error: name cannot be provided when a selector is specified\n"
    )


def test_nodes_to_cordon_may_say_their_type(bare: Kubepy) -> None:
    assert bare("init", "--nodes", "2").status == 0
    assert (
        bare("cordon", "node/node-1", "node-2").out
        == "node/node-1 cordoned\nnode/node-2 cordoned\n"
    )
    assert (
        bare("uncordon", "node/node-1", "pods/x").err
        == "error: you may only specify a single resource type\n"
    )
    assert bare("uncordon", "ns/default").err == (
        'error: expected resource of type node, got "/v1, Resource=namespaces"\n'
    )


def test_selector_of_pods_to_drain_is_checked_first(bare: Kubepy) -> None:
    assert bare("init", "--nodes", "1").status == 0
    assert bare("drain", "node-1", "--pod-selector=a=b=c") == Done(
        "", "error: --pod-selector=<pod_selector> must be a valid label selector\n", 1
    )
    assert "unschedulable" not in bare("get", "node", "node-1", "-o", "yaml").out


def test_type_may_be_given_with_version_and_group(kubepy: Kubepy) -> None:
    assert kubepy("get", "namespaces.v1.", "default", "-o", "name").out == "namespace/default\n"
    assert kubepy("get", "namespaces.v1", "default").err == (
        'error: the server doesn\'t have a resource type "namespaces"\n'
    )


def test_type_that_taint_does_not_know(kubepy: Kubepy) -> None:
    assert (
        kubepy("taint", "foo", "x", "a=b:NoSchedule").err
        == 'the server doesn\'t have a resource type "foo"\n'
    )


def test_rollout_status_goes_on_after_object_that_is_missing(kubepy: Kubepy, folder: Path) -> None:
    (folder / "ds.yaml").write_text(DAEMONSET)
    assert kubepy("apply", "-f", "ds.yaml").status == 0
    assert kubepy("rollout", "status", "ds/absent", "ds/agent") == Done(
        'Waiting for daemon set spec update to be observed...\ndaemon set "agent" successfully '
        "rolled out\n",
        'Error from server (NotFound): daemonsets.apps "absent" not found\n',
        1,
    )


# --- output about files ---------------------------------------------------------------------------

DAEMONSET = """apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: agent}]}
"""


def test_objects_of_files_get_no_namespace_without_cluster(bare: Kubepy, folder: Path) -> None:
    (folder / "cm.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
    assert bare("label", "--local", "-f", "cm.yaml", "a=b", "-o", "jsonpath={.metadata}").out == (
        '{"labels":{"a":"b"},"name":"x"}'
    )


def test_set_prints_file_as_its_type_in_go(bare: Kubepy, folder: Path) -> None:
    (folder / "ds.yaml").write_text(DAEMONSET.replace("image: agent}", "image: agent, imag: typo}"))
    done = bare("set", "image", "--local", "-f", "ds.yaml", "agent=agent:2", "-o", "json")
    printed = json.loads(done.out)
    assert list(printed) == ["kind", "apiVersion", "metadata", "spec", "status"]
    assert printed["spec"]["template"]["spec"]["containers"] == [
        {"name": "agent", "image": "agent:2", "resources": {}}
    ]
    assert printed["status"] == {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }


@pytest.mark.parametrize("output", ["", "wide"])
def test_table_of_one_object_is_sorted_by_anything(kubepy: Kubepy, output: str) -> None:
    assert kubepy("get", "ns", "default", "--sort-by={.x", "-o", output).out.startswith("NAME")


def test_sort_by_field_missing_in_several_objects_is_an_error(kubepy: Kubepy) -> None:
    assert kubepy("get", "ns", "--sort-by={.x").err == "No resources found\n"
    assert kubepy("get", "ns", "--sort-by={.x", "-o", "name").err.startswith(
        "error: unexpected path string"
    )


def test_first_command_makes_a_cluster_around_the_files_that_are_there(
    bare: Kubepy, folder: Path
) -> None:
    file = folder / "state/namespaces/default/configmaps/a.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    done = bare("create", "deployment", "web", "--image=web:1")
    assert done.out == "deployment.apps/web created\n"
    assert done.err == "note: made a cluster in state with one node, node-1, as kubepy init does\n"
    assert bare("get", "namespace", "default", "-o", "name").out == "namespace/default\n"
    assert bare("get", "configmap", "a", "-o", "name").out == "configmap/a\n"
    assert bare("rollout", "status", "deploy/web").status == 0


@pytest.mark.parametrize("words", ["get pods", "init", "create configmap a"])
def test_state_in_memory_is_refused_by_the_command_line(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("--state", "memory:", *words.split())
    assert (done.out, done.status) == ("", 1)
    assert done.err == (
        'error: "memory:" is no state folder: a cluster in memory would be gone with the command '
        "(./memory: is a folder of that name)\n"
    )
    assert list(tmp_path.iterdir()) == []
