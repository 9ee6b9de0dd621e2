"""tools/run_bundles.py finds bundles, and finds what is wrong with a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import run_bundles
from tools.run_bundles import Bundle, Done, Run, find_bundles, run_bundle, summary

CONFIG_MAP = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: paint, namespace: %s}\ndata: {colour: red}\n"
)


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_files_folders_and_kustomizations_that_no_other_names_are_bundles(tmp_path: Path) -> None:
    write(
        tmp_path,
        one_yaml="",
        notes="no manifest",
        many__a_yaml="",
        many__deep__b_yaml="",
        empty__notes="",
        shop__base__kustomization_yaml="resources: []",
        shop__prod__kustomization_yaml="resources: [../base]",
        shop__extra__kustomization_yaml="kind: Component",
    )
    assert [(bundle.name, bundle.flags[:-1]) for bundle in find_bundles(tmp_path)] == [
        ("many", ("-R", "-f")),
        ("one.yaml", ("-f",)),
        ("shop/prod", ("-k",)),
    ]
    assert find_bundles(tmp_path / "shop" / "base") == [
        Bundle("base", ("-k", str(tmp_path / "shop" / "base")))
    ]


def test_missing_namespace_is_made_and_refused_object_is_listed(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_yaml=CONFIG_MAP % "studio" + "---\napiVersion: v1\nkind: Gone\nmetadata: {name: x}\n",
    )
    report = run_bundle(find_bundles(tmp_path)[0])
    assert report.problems == []
    assert report.notes == ["namespace studio was made first"]
    assert [line[:54] for line in report.refused] == [
        'error: resource mapping not found for name: "x" namesp'
    ]
    assert report.row() == ["a.yaml", 1, 1, f"{report.seconds:.1f}", "1 no", "same", "ok", "all", 0]


def test_object_that_is_configured_again_is_explained(tmp_path: Path) -> None:
    write(
        tmp_path, a_yaml="apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n"
    )
    report = run_bundle(find_bundles(tmp_path)[0])
    assert (report.again, report.problems) == ("1 set", [])
    assert report.notes == ['secret/s is configured again: stringData: {"a": "b"} is "absent"']


@pytest.mark.parametrize(
    ("words", "answer", "problem"),
    [
        (
            "describe configmaps",
            Done("", "internal error: KeyError\n", 1),
            "describe configmaps -A: internal error",
        ),
        ("describe configmaps", Done("", "", 0), "describe configmaps: says nothing"),
        ("delete", Done("", "", 0), "delete left configmaps/default/paint"),
        (
            "diff",
            Done("+++ /tmp/x/v1.ConfigMap.default.paint\n", "", 1),
            "diff: v1.ConfigMap.default.paint differs",
        ),
        ("get", Done('{"items": []}', "", 3), "get configmaps,"),
        ("controller", Done("", "error: no\n", 1), "controller: error: no"),
    ],
)
def test_wrong_answer_is_a_problem(
    words: str, answer: Done, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_command = Run.kubepy

    def run(self: Run, *given: str) -> Done:
        return answer if " ".join(given).startswith(words) else run_command(self, *given)

    monkeypatch.setattr(Run, "kubepy", run)
    report = run_bundle(find_bundles(write(tmp_path, a_yaml=CONFIG_MAP % "default"))[0])
    assert any(line.startswith(problem) for line in report.problems), report.problems


def test_table_is_narrow_and_lists_problems(tmp_path: Path) -> None:
    report = run_bundles.Report(
        "a-name-that-is-longer-than-its-column.yaml", problems=["delete left pods/a"]
    )
    table, lines = summary([report]).split("\n\n")
    assert max(map(len, table.splitlines())) <= 80
    assert lines == f"{report.name}:\n  problem: delete left pods/a"
