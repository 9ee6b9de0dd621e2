"""Preferences: ``kubepy kuberc``, aliases of commands and defaults of flags (kubectl's kuberc)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

HEAD = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"
PREFERENCES = (
    HEAD
    + """
aliases:
- {name: mk, command: create configmap, appendArgs: [tail]}
- {name: show, command: get, prependArgs: [configmaps], options: [{name: output, default: name}]}
- {name: role, command: create role, options: [{name: verb, default: "get,watch"}]}
defaults:
- {command: get, options: [{name: output, default: json}]}
- {command: create configmap, options: [{name: namespace, default: web}, {name: dry-run, default: client}]}
"""  # noqa: E501
)
With = Callable[..., Done]


@pytest.fixture
def prefer(kubepy: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch) -> With:
    """A function that runs a command with preferences: ``prefer("get", "cm", file=…)``."""
    for name in ("KUBERC", "KUBECTL_KUBERC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))

    def run(*words: str, file: str = PREFERENCES, stdin: str = "") -> Done:
        (folder / "rc").write_text(file)
        return kubepy(*words[:1], "--kuberc=rc", *words[1:], stdin=stdin)

    kubepy("create", "cm", "paint")
    return run


def test_alias_becomes_its_command(prefer: With) -> None:
    assert prefer("show").out == "configmap/paint\n"
    assert prefer("show", "paint", "-o", "jsonpath={.metadata.name}").out == "paint"
    assert prefer("mk", "--dry-run=server", "-o=name").out == "configmap/tail\n"
    assert prefer("mk", "x", "--dry-run=server").err.startswith(
        "error: exactly one NAME is required, got 2\n"
    )
    assert prefer(
        "role", "r", "--resource=pods", "--dry-run=client", "-o=jsonpath={.rules[0].verbs}"
    ).out == ('["get","watch"]')
    assert (
        prefer(
            "role",
            "r",
            "--verb=list",
            "--resource=pods",
            "--dry-run=client",
            "-o=jsonpath={.rules[0].verbs}",
        ).out
        == '["list"]'
    )


def test_default_of_flag_counts_unless_the_flag_is_given(prefer: With, kubepy: Kubepy) -> None:
    assert json.loads(prefer("get", "cm", "paint").out)["kind"] == "ConfigMap"
    for words in (("-oname",), ("-o", "name"), ("--output", "name"), ("--output=name",)):
        assert prefer("get", "cm", "paint", *words).out == "configmap/paint\n"
    assert prefer("create", "configmap", "x", "-o=jsonpath={.metadata.namespace}").out == "web"
    assert (
        prefer("create", "cm", "x", "--dry-run=server", "-ndefault", "-o=name").out
        == "configmap/x\n"
    )
    assert kubepy("get", "cm", "x").status == 1


def test_default_interactive_delete_asks(prefer: With, kubepy: Kubepy) -> None:
    file = HEAD + "defaults: [{command: delete, options: [{name: interactive, default: 'true'}]}]"
    assert "Do you want to continue?" in prefer("delete", "cm", "paint", file=file, stdin="n\n").out
    assert kubepy("get", "cm", "paint").status == 0
    assert prefer("delete", "cm", "paint", "--interactive=false", file=file).out == (
        'configmap "paint" deleted from default namespace\n'
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "aliases: [{name: a-b, command: get}]",
            "invalid alias name, can only include alphabetical characters",
        ),
        ("aliases: [{name: a, command: get}, {name: a, command: get}]", "duplicate alias name a"),
        (
            "aliases: [{name: a, command: get, options: [{name: -o, default: x}]}]",
            "flag name -o should be in long form without dashes",
        ),
        (
            "aliases: [{name: zz, command: nope}]",
            'command "nope" not found to set alias "zz": [nope]',
        ),
        (
            "aliases: [{name: zz, command: get, options: [{name: nope, default: x}]}]",
            "invalid alias flag nope in alias kubepy",
        ),
        ("credentialPluginPolicy: Sometimes", 'unknown plugin policy: "Sometimes"'),
        (
            "credentialPluginPolicy: DenyAll\ncredentialPluginAllowlist: [{command: x}]",
            'misconfigured credential plugin allowlist: plugin policy is "DenyAll" but allowlist '
            "is non-nil",
        ),
        (
            "credentialPluginPolicy: Allowlist",
            'credential plugin policy set to "Allowlist", but allowlist is unspecified',
        ),
        (
            "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{command: a//b}]",
            'non-normalized file path: "a//b" vs "a/b"',
        ),
    ],
)
def test_preferences_with_mistakes_are_refused(prefer: With, text: str, error: str) -> None:
    assert prefer("zz", file=HEAD + text) == Done(
        "", f"error occurred while applying preferences {error}\n", 1
    )


def test_default_of_unknown_command_or_flag_is_reported(prefer: With) -> None:
    file = (
        HEAD
        + "defaults: [{command: nope, options: []}, {command: get, options: [{name: x, default: "
        "z}]}]"
    )
    assert (
        prefer("version", "--client", file=file).err
        == 'Warning: command "nope" not found to set kuberc override\n'
    )
    assert prefer("get", "cm", file=file).err.endswith(
        "error occurred while applying preferences invalid flag x for command get\n"
    )
    file = HEAD + "defaults: [{command: get, options: [{name: watch, default: maybe}]}]"
    assert (
        "could not apply override value maybe to flag watch in command get err: "
        in prefer("get", "cm", file=file).err
    )


@pytest.mark.parametrize(
    ("file", "error"),
    [
        ("[", "error occurred while applying preferences kuberc error kuberc: "),
        (
            "5",
            "error occurred while applying preferences kuberc error kuberc: no valid preferences "
            "found in rc",
        ),
        (
            "kind: Preference",
            "error occurred while applying preferences kuberc error kuberc: no valid preferences "
            "found",
        ),
        (
            HEAD + "aliases: 5",
            "error occurred while applying preferences kuberc error kuberc: no valid preferences "
            "found",
        ),
        (
            HEAD + "unknown: 5",
            "kuberc: ignoring strict decoding error in rc: strict decoding error: unknown field "
            '"unknown"',
        ),
    ],
)
def test_file_of_another_form_is_named(prefer: With, file: str, error: str) -> None:
    assert prefer("get", "cm", file=file).err.startswith(error)


def test_first_supported_document_counts(prefer: With) -> None:
    old = (
        "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\noverrides:\n"
        "- {command: get, flags: [{name: output, default: name}]}\n"
    )
    assert (
        prefer("get", "cm", "paint", file=f"kind: Other\n---\n{old}---\n{PREFERENCES}").out
        == "configmap/paint\n"
    )
    assert prefer("get", "cm", "paint", "-o=name", file="") == Done("configmap/paint\n", "", 0)
    for words in (("-v=5",), ("-v", "5"), ("--v=5",), ("--v", "5")):
        assert (
            "] kuberc: no preferences found in rc\n"
            in prefer("get", "cm", "paint", *words, file="").err
        )


def test_variables_choose_the_file(
    prefer: With, kubepy: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefer("show")
    monkeypatch.setenv("KUBERC", "rc")
    assert kubepy("show").out == "configmap/paint\n"
    monkeypatch.setenv("KUBERC", "off")
    assert kubepy("show").status == 1
    assert kubepy("show", "--kuberc=rc").err == (
        "error occurred while applying preferences disabling kuberc via KUBERC=off and passing "
        "kuberc flag are "
        "mutually exclusive\n"
    )
    monkeypatch.setenv("KUBERC", "nope")
    assert kubepy("get", "cm").err == (
        "error occurred while applying preferences kuberc error kuberc: open nope: no such file "
        "or directory\n"
    )
    monkeypatch.setenv("KUBECTL_KUBERC", "false")
    assert kubepy("get", "cm", "paint", "-o=name").out == "configmap/paint\n"


def test_set_and_view_preferences(
    kubepy: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("KUBERC", raising=False)
    set_ = ("kuberc", "set", "--section=defaults", "--command=get")
    path = folder / ".kube/kuberc"
    assert kubepy(*set_, "--option=output=wide", "--option=--watch=true").out == f"Updated {path}\n"
    assert path.read_text() == (
        "aliases: null\n" + HEAD.splitlines()[0] + "\ndefaults:\n- command: get\n  options:\n"
        '  - default: wide\n    name: output\n  - default: "true"\n    name: watch\n'
        "kind: Preference\n"
    )
    assert kubepy(*set_, "--option=output=json").err == (
        'error: defaults for command "get" already exist, use --overwrite to replace\n'
    )
    assert kubepy(*set_, "--option=output=json", "--overwrite").status == 0
    alias = ("kuberc", "set", "--section=aliases", "--name=gp", "--command=get")
    assert kubepy(*alias, "--prependarg=pods", "--appendarg=-A").status == 0
    assert kubepy(*alias).err == 'error: alias "gp" already exists, use --overwrite to replace\n'
    assert kubepy(*alias, "--prependarg=nodes", "--overwrite").status == 0
    assert (
        kubepy(
            "kuberc",
            "set",
            "--section=credentialplugin",
            "--policy=Allowlist",
            "--allowlist-entry=command=a,command=b",
        ).status
        == 0
    )
    assert json.loads(kubepy("kuberc", "view", "-o", "json").out) == {
        "kind": "Preference",
        "apiVersion": "kubectl.config.k8s.io/v1beta1",
        "defaults": [{"command": "get", "options": [{"name": "output", "default": "json"}]}],
        "aliases": [
            {"name": "gp", "command": "get", "prependArgs": ["nodes"], "appendArgs": ["-A"]}
        ],
        "credentialPluginPolicy": "Allowlist",
        "credentialPluginAllowlist": [{"command": "a"}, {"command": "b"}],
    }


def test_view_without_file_offers_recommended_options(
    kubepy: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("KUBERC", raising=False)
    assert "Would you like to generate" in kubepy("kuberc", "view", stdin="n\n").out
    assert not (folder / ".kube").exists()
    assert kubepy("kuberc", "view", stdin="y\n").out.endswith(f"Updated {folder}/.kube/kuberc\n")
    assert "name: server-side" in kubepy("kuberc", "view").out
    monkeypatch.setenv("KUBERC", "off")
    assert (
        kubepy("kuberc", "view").err
        == "error: KUBERC is disabled via KUBERC=off environment variable\n"
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("--command=get", 'required flag(s) "section" not set'),
        ("--section=x", '--section must be "defaults", "aliases", or "credentialplugin", got: x'),
        (
            "--section=defaults",
            "--command is required when --section=aliases or --section=defaults",
        ),
        (
            "--section=defaults --name=a --command=get",
            "--name should not be specified when --section=defaults",
        ),
        (
            "--section=defaults --command=get --appendarg=x",
            "--prependarg and --appendarg are only valid for --section=aliases",
        ),
        (
            "--section=defaults --command=get --option=x",
            'invalid option format "x", expected flag=value',
        ),
        ("--section=aliases --command=get", "--name is required when --section=aliases"),
        ("--section=credentialplugin", "--policy is required when --section=credentialplugin"),
        (
            "--section=credentialplugin --policy=Foo",
            ' --policy must be  "AllowAll", "DenyAll", or "Allowlist", got: Foo',
        ),
        (
            "--section=credentialplugin --policy=DenyAll --allowlist-entry=command=a",
            "--allowlist-entry may only be used when --section=credentialplugin and "
            "--policy=Allowlist",
        ),
        (
            "--section=credentialplugin --policy=Allowlist",
            "--allowlist-entry is required when --section=credentialplugin and --policy=Allowlist",
        ),
        (
            "--section=credentialplugin --policy=Allowlist --allowlist-entry=a=b,name=c",
            '[unrecognized allowlist entry field: "a", allowlist entry field "name" is '
            'deprecated, use "command" instead]',
        ),
        (
            "--section=credentialplugin --policy=Allowlist --allowlist-entry=command=",
            'empty value in allowlist entry for field "command"',
        ),
    ],
)
def test_set_wrong_flags_are_refused(
    kubepy: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, error: str
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("KUBERC", raising=False)
    assert kubepy("kuberc", "set", *words.split()) == Done("", f"error: {error}\n", 1)
