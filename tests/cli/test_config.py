"""``kubepy config``: contexts are namespaces of the state folder. What is printed is what kubectl 1.32 prints."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Kubepy


def test_the_current_context_is_the_only_one_at_first(kubepy: Kubepy) -> None:
    assert kubepy("config", "current-context").out == "kubepy\n"
    assert kubepy("config", "get-contexts").out == (
        "CURRENT   NAME     CLUSTER   AUTHINFO   NAMESPACE\n"
        "*         kubepy   kubepy    kubepy     \n")  # fmt: skip


def test_a_chosen_namespace_is_used_by_commands_that_name_none(kubepy: Kubepy) -> None:
    kubepy("create", "namespace", "web")
    assert kubepy("config", "set-context", "--current", "--namespace=web").out == 'Context "kubepy" modified.\n'
    assert kubepy("create", "configmap", "c").status == 0
    assert kubepy("get", "cm", "-n", "default", "-o", "name").out == ""
    assert kubepy("get", "cm", "c", "-o", "jsonpath={.metadata.namespace}").out == "web"
    assert kubepy("config", "view", "--minify", "-o", "jsonpath={..namespace}").out == "web"


def test_contexts_are_made_and_switched(kubepy: Kubepy) -> None:
    assert kubepy("config", "set-context", "staging", "--namespace=web").out == 'Context "staging" created.\n'
    assert kubepy("get", "cm").err == "No resources found in default namespace.\n"
    assert kubepy("--context=staging", "get", "cm").err == "No resources found in web namespace.\n"
    assert kubepy("config", "use-context", "staging").out == 'Switched to context "staging".\n'
    assert kubepy("get", "cm").err == "No resources found in web namespace.\n"
    assert kubepy("config", "get-contexts", "-o", "name").out == "kubepy\nstaging\n"
    assert kubepy("--context=kind-kind", "get", "cm").err == "No resources found in web namespace.\n"


def test_a_context_that_is_not_there(kubepy: Kubepy) -> None:
    assert kubepy("config", "use-context", "x").err == 'error: no context exists with the name: "x"\n'
    assert kubepy("config", "get-contexts", "x").err == "error: context x not found\n"


def test_a_context_needs_a_cluster(bare: Kubepy) -> None:
    done = bare("config", "set-context", "--current", "--namespace=web")
    assert (done.status, done.err[:22]) == (1, 'error: no cluster in "')


def test_the_choice_stays_out_of_git(kubepy: Kubepy, folder: Path) -> None:
    kubepy("config", "set-context", "--current", "--namespace=web")
    chosen = json.loads((folder / "state/.kubepy/contexts.json").read_text())
    assert chosen == {"current": "kubepy", "contexts": {"kubepy": "web"}}


def test_a_broken_file_is_named(kubepy: Kubepy, folder: Path) -> None:
    (folder / "state/.kubepy/contexts.json").write_text("{}")
    done = kubepy("get", "cm")
    assert (done.status, done.err) == (1, "error: state/.kubepy/contexts.json: 'current' is missing\n")
