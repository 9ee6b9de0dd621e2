"""Order of errors of a faulty command line: flags before arguments, arguments before objects, as in
kubectl."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

FORMATS = (
    "go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,"
    "template,templatefile,"
    "yaml"
)
SERVICE_AND_MAP = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: gone}}
"""


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            "set serviceaccount x/y/z robot -o nope",
            f'error: unable to match a printer suitable for the output format "nope", allowed '
            f"formats are: {FORMATS}",
        ),
        (
            "set resources deploy/gone --local -o jsonpath={",
            "error: error parsing jsonpath {, unclosed action",
        ),
        (
            "set image deploy/gone a=b --dry-run=perhaps",
            'error: Invalid dry-run value (perhaps). Must be "none", "server", or "client".',
        ),
        (
            "cordon gone --dry-run=perhaps",
            'error: Invalid dry-run value (perhaps). Must be "none", "server", or "client".',
        ),
        (
            "taint foo gone a=b:NoSchedule --validate=x",
            'error: invalid - validate option "x"; must be one of: strict (or true), warn, ignore '
            "(or false)",
        ),
        (
            "create job a.b --image=i --validate=",
            'error: invalid - validate option ""; must be one of: strict (or true), warn, ignore '
            "(or false)",
        ),
        (
            "rollout pause -k dir -R -f x.yaml",
            "only one of -f or -k can be specified\nthe -k flag can't be used with -f or -R",
        ),
        (
            "replace --force -k gone cm/a",
            "error: resource/name arguments cannot be provided when a path is specified",
        ),
    ],
)
def test_first_fault_is_told(kubepy: Kubepy, words: str, error: str) -> None:
    assert kubepy(*words.split()) == Done("", f"{error}\n", 1)


@pytest.mark.parametrize(
    "words",
    [
        "namespace",
        "serviceaccount",
        "configmap",
        "quota",
        "role",
        "clusterrole",
        "rolebinding",
        "poddisruptionbudget",
        "secret generic",
        "secret docker-registry",
    ],
)
def test_empty_name_is_told_before_all_that_kind_needs(kubepy: Kubepy, words: str) -> None:
    assert kubepy("create", *words.split(), "") == Done("", "error: name must be specified\n", 1)


def test_format_is_quoted_as_go_quotes(kubepy: Kubepy) -> None:
    error = (
        "error: unable to match a printer suitable for the output format "
        '"go-template={{\\"\\\\n\\"}}", allowed '
        f"formats are: {FORMATS}\n"
    )
    assert kubepy("create", "ns", "a", "-o", 'go-template={{"\\n"}}', "--template", "x") == Done(
        "", error, 1
    )


def test_old_dry_run_value_warns_once(kubepy: Kubepy) -> None:
    kubepy("create", "deploy", "web", "--image=i")
    done = kubepy("set", "image", "deploy/web", "i=j", "--dry-run=true")
    assert done.out == "deployment.apps/web image updated (dry run)\n"
    assert done.err.count("--dry-run=true is deprecated") == 1


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("label cm a x=y", "-o jsonpath={.metadata.labels} get cm a"),
        (
            "rollout undo deploy/web",
            "-o jsonpath={.spec.template.spec.containers[0].image} get deploy web",
        ),
    ],
)
def test_format_that_is_only_needed_at_end_is_told_at_end(
    kubepy: Kubepy, words: str, shown: str
) -> None:
    kubepy("create", "cm", "a")
    kubepy("create", "deploy", "web", "--image=i")
    kubepy("controller", "--once")
    kubepy("set", "image", "deploy/web", "i=j")
    kubepy("controller", "--once")
    assert kubepy(*words.split(), "-o", "nope").status == 1
    assert kubepy(*shown.split()).out in ('{"x":"y"}', "i")


def test_objects_without_selector_are_reported_before_missing_ones(
    kubepy: Kubepy, folder: Path
) -> None:
    kubepy("create", "cm", "a")
    (folder / "x.yaml").write_text(SERVICE_AND_MAP, encoding="utf-8")
    error = 'setting a selector is only supported for Services\nconfigmaps "gone" not found\n'
    assert kubepy("set", "selector", "-f", "x.yaml", "a=b") == Done("", error, 1)


NUMBER = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: 1}}"


@pytest.mark.parametrize(
    ("words", "prefix"),
    [
        ("rollout pause", ""),
        ("rollout status", "error: "),
        ("set serviceaccount x", "error: "),
    ],
)
def test_file_must_fit_types_of_commands_that_know_them(
    kubepy: Kubepy, folder: Path, words: str, prefix: str
) -> None:
    (folder / "x.yaml").write_text(NUMBER, encoding="utf-8")
    error = (
        'unable to decode "x.yaml": json: cannot unmarshal number into Go struct field '
        "ConfigMap.data of type "
        "string"
    )
    done = kubepy(*words.split(), "-f", "x.yaml")
    assert (done.err, done.status) == (f"{prefix}{error}\n", 1)


def test_restarted_objects_are_documents_of_their_own(kubepy: Kubepy) -> None:
    for name in ("a", "b"):
        kubepy("create", "deploy", name, "--image=i")
    done = kubepy("rollout", "restart", "deploy", "-o", "yaml")
    assert (done.out.count("kind: Deployment"), done.out.count("---")) == (2, 0)


def test_restart_of_unsupported_kind_is_reported_before_wrong_format(kubepy: Kubepy) -> None:
    done = kubepy("rollout", "restart", "ns", "default", "-o", "nope")
    assert done == Done("", 'error: namespaces "default" restarting is not supported\n', 1)


def test_errors_of_restart_are_told_as_they_were_gathered(kubepy: Kubepy, folder: Path) -> None:
    (folder / "x.yaml").write_text("a: [x\n", encoding="utf-8")
    done = kubepy("rollout", "pause", "-f", "x.yaml")
    assert done.err.startswith("error parsing x.yaml: error converting YAML to JSON: yaml: line ")
