"""Files that cannot be objects are reported with path and line; all others keep working, and
nothing changes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubepy.storage import EditError, FolderError, Key
from kubepy.storage.folder.manifest import ContentError, parse
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml.loader import DocumentText, split
from tests.stores import changes

from .conftest import config_map, create, file_of, key, names

HERE = "namespaces/default/configmaps"
GOOD = "kind: ConfigMap\nmetadata:\n  name: bad\n"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)

BROKEN = {
    "bad YAML": (b"kind: ConfigMap\nmetadata:\n  name: bad\n  x: [\n", None),
    "merge conflict": (
        b"kind: ConfigMap\n<<<<<<< HEAD\nx: 1\n=======\nx: 2\n>>>>>>> other\n",
        (2, "has merge conflict markers"),
    ),
    "merge conflict of a file renamed on both sides": (
        b"kind: ConfigMap\n<<<<<<<< HEAD:one.yaml\nx: 1\n========\nx: 2\n>>>>>>>> other:two.yaml\n",
        (2, "has merge conflict markers"),
    ),
    "several documents": ((GOOD + "---\n" + GOOD).encode(), (5, "has more than one document")),
    "a key twice": (
        b"kind: ConfigMap\nmetadata:\n  name: bad\ndata:\n  a: 1\n  a: 2\n",
        (6, 'has the key "a" more than once'),
    ),
    "a key twice in JSON": (
        b'\n{"kind": "ConfigMap", "data": {"a": 1, "a": 2}}\n',
        (2, 'has the key "a" more than once'),
    ),
    "keys that are one as text": (
        b"kind: ConfigMap\nmetadata:\n  name: bad\ndata:\n  1: x\n  '1': y\n",
        (6, 'has the key "1" more than once'),
    ),
    "a number beyond float64 in JSON": (
        b'{"kind": "ConfigMap",\n"data":\n{"a": 1e999}}\n',
        (3, "json: cannot unmarshal number 1e999 into Go value of type float64"),
    ),
    "a number of many digits in JSON": (
        b'{"kind": "ConfigMap",\n"a": ' + b"1" * 5000 + b"}\n",
        (2, f"json: cannot unmarshal number {'1' * 5000} into Go value of type float64"),
    ),
    "JSON nested too deeply": (b'{"a":' * 5000 + b"1" + b"}" * 5000, (1, "exceeded max depth")),
    "control characters in a name": (
        b'metadata:\n  name: "a\\e[31m\\nb"\n',
        (1, 'is named "a\\x1b[31m\\nb", not "bad"'),
    ),
    "nothing": (b"", (0, "is empty")),
    "only a remark": (b"# nothing\n", (0, "is empty")),
    "a list": (b"- a\n", (1, "is not an object")),
    "another name": (b"metadata:\n  name: other\n", (1, 'is named "other", not "bad"')),
    "another namespace": (
        b"metadata:\n  name: bad\n  namespace: other\n",
        (1, 'has the namespace "other", not "default"'),
    ),
    "bytes that are no text": (b"kind: ConfigMap\nx: \xff\n", (2, "is not UTF-8 text")),
    "more than 3 MiB": (b"#" * (3 * 1024 * 1024 + 1), (0, "is larger than 3 MiB")),
    "an alias bomb": ((GOOD + BOMB).encode(), None),
    "not a number": ((GOOD + "x: .nan\n").encode(), None),
    "no end of nesting": ((GOOD + "x: " + "[" * 5000 + "]" * 5000 + "\n").encode(), None),
    "a kind that is not its folder's": (
        b"kind: Secret\nmetadata:\n  name: bad\n",
        (1, "is a Secret"),
    ),
}


# What a known object's path still names.
UNNAMED: dict[str, tuple[bytes, tuple[int, str]]] = {
    "no metadata": (b"kind: ConfigMap\n", (1, "has no metadata")),
    "metadata of another type": (b"metadata: []\n", (1, "has no metadata")),
    "no name": (b"metadata:\n  labels: {}\n", (1, "has no metadata.name")),
}


def admit(
    key: Key, obj: dict[str, Any], mtime: float, old: dict[str, Any] | None
) -> dict[str, Any]:
    if obj.get("kind") != "ConfigMap":
        raise ValueError(f"is a {obj.get('kind')}")
    return obj


@pytest.fixture
def store(open_store: Callable[..., FolderStore]) -> FolderStore:
    store = open_store(admit=admit)
    create(store, config_map("bad"), config_map("good"))
    return store


@pytest.mark.parametrize(("content", "expected"), BROKEN.values(), ids=BROKEN.keys())
def test_invalid_file_is_reported_and_left_alone(
    store: FolderStore, folder: Path, content: bytes, expected: tuple[int, str] | None
) -> None:
    path = file_of(folder, "bad")
    path.write_bytes(content)
    (problem,) = store.problems()
    assert problem.path == f"{HERE}/bad.yaml"
    assert expected is None or (problem.line, problem.reason) == expected
    assert store.list("configmaps") == (2, [config_map("good", resourceVersion="2")], (problem,))
    with pytest.raises(FolderError, match=r"configmaps/bad\.yaml"):
        store.get(key("bad"))
    refuses_every_write(store)
    assert path.read_bytes() == content
    assert changes(store, 2) == []


@pytest.mark.parametrize(("content", "expected"), UNNAMED.values(), ids=UNNAMED.keys())
def test_file_that_does_not_name_its_object_keeps_it(
    store: FolderStore, folder: Path, content: bytes, expected: tuple[int, str]
) -> None:
    path = file_of(folder, "bad")
    path.write_bytes(content)
    (problem,) = store.problems()
    assert (problem.line, problem.reason, problem.keeps_object) == (*expected, True)
    assert names(store.list("configmaps").objects) == ["bad", "good"]
    assert path.read_bytes() == content
    assert changes(store, 2) == []
    new = file_of(folder, "new")
    new.write_bytes(content)
    assert names(store.list("configmaps").objects) == ["bad", "good"]
    assert [problem.keeps_object for problem in store.problems()] == [True, False]


def refuses_every_write(store: FolderStore) -> None:
    with store.transaction() as transaction:
        assert names(transaction.list("configmaps").objects) == ["good"]
        for write in (transaction.create, transaction.update):
            with pytest.raises(FolderError, match=r"bad\.yaml"):
                write(key("bad"), config_map("bad"))
        with pytest.raises(FolderError, match=r"bad\.yaml"):
            transaction.delete(key("bad"))
        with pytest.raises(FolderError, match=r"bad\.yaml"):
            transaction.get(key("bad"))


def test_invalid_file_with_new_index_is_reported_and_left_alone(
    store: FolderStore, folder: Path
) -> None:
    import shutil

    for number, (content, _) in enumerate([*BROKEN.values(), *UNNAMED.values()]):
        file_of(folder, f"bad{number}").write_bytes(content)
    shutil.rmtree(folder / ".kubepy")
    assert names(store.list("configmaps").objects) == ["bad", "good"]
    assert len(store.problems()) == len(BROKEN) + len(UNNAMED)


def test_repaired_file_is_change_for_watchers(store: FolderStore, folder: Path) -> None:
    text = file_of(folder, "bad").read_text()
    file_of(folder, "bad").write_text("{")
    assert store.list("configmaps").problems != ()
    file_of(folder, "bad").write_text(text)
    assert [(change.type, change.key.name) for change in changes(store, 2)] == [("MODIFIED", "bad")]
    assert store.problems() == []
    assert names(store.list("configmaps").objects) == ["bad", "good"]


def test_invalid_file_that_is_removed_is_deletion(store: FolderStore, folder: Path) -> None:
    file_of(folder, "bad").write_text("{")
    assert store.list("configmaps").problems != ()
    file_of(folder, "bad").unlink()
    assert [(change.type, change.key.name) for change in changes(store, 2)] == [("DELETED", "bad")]
    assert store.problems() == []


def test_links_are_never_followed(store: FolderStore, folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim.yaml").write_text("kind: ConfigMap\nmetadata: {name: victim}\n")
    file_of(folder, "victim").symlink_to(outside / "victim.yaml")
    (folder / "namespaces/linked").symlink_to(outside)
    (folder / "namespaces/default/secrets").symlink_to(outside)
    assert [(problem.path, problem.reason) for problem in store.problems()] == [
        (f"{HERE}/victim.yaml", "is a symbolic link"),
        ("namespaces/default/secrets", "is a symbolic link"),
        ("namespaces/linked", "is a symbolic link"),
    ]
    assert names(store.list("configmaps").objects) == ["bad", "good"]
    with pytest.raises(FolderError, match="is a symbolic link"):
        create(store, config_map("victim"))
    with pytest.raises(FolderError, match="secrets: is a symbolic link"):
        create(store, config_map("new"), resource="secrets")
    with pytest.raises(FolderError, match="linked: is a symbolic link"):
        create(store, config_map("new", namespace="linked"))
    assert [path.name for path in outside.iterdir()] == ["victim.yaml"]


def test_folder_in_place_of_file_is_problem(store: FolderStore, folder: Path) -> None:
    file_of(folder, "odd").mkdir()
    assert [str(problem) for problem in store.problems()] == [
        f"{HERE}/odd.yaml: is not a regular file"
    ]
    with pytest.raises(FolderError, match=r"odd\.yaml"):
        create(store, config_map("odd"))


def test_pipe_in_place_of_file_does_not_block(store: FolderStore, folder: Path) -> None:
    os.mkfifo(file_of(folder, "pipe"))
    assert [problem.reason for problem in store.list("configmaps").problems] == [
        "is not a regular file"
    ]


def test_file_name_of_no_object_is_problem(store: FolderStore, folder: Path) -> None:
    file_of(folder, "Bad").write_text("kind: ConfigMap\nmetadata: {name: Bad}\n")
    (file_of(folder, "x").parent / os.fsdecode(b"\xff.yaml")).write_text("")
    assert [(problem.path, problem.reason) for problem in store.problems()] == [
        (f"{HERE}/Bad.yaml", "is not the file name of any object"),
        (f"{HERE}/\\xff.yaml", "is not the file name of any object"),
    ]


def test_misplaced_yaml_is_reported_and_other_files_are_not(
    store: FolderStore, folder: Path
) -> None:
    for path in (
        "README.md",
        ".git/config.yaml",
        f"{HERE}/.bad.yaml.swp",
        f"{HERE}/bad.yaml~",
    ):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("not: an object")
    assert store.problems() == []
    stray = [
        "pod.yaml",
        "namespaces/x.yaml",
        "namespaces/default/y.yaml",
        f"{HERE}/deep/z.yaml",
        f"{HERE}/a.yml",
    ]
    for path in stray:
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("kind: ConfigMap\n")
    assert [problem.path for problem in store.problems()] == sorted(stray)
    assert names(store.list("configmaps").objects) == ["bad", "good"]


def test_long_name_is_read_back_from_its_file(store: FolderStore, folder: Path) -> None:
    import shutil

    long = "a" * 253
    create(
        store,
        config_map(long),
        {"kind": "ConfigMap", "metadata": {"name": "System:X", "namespace": "default"}},
    )
    shutil.rmtree(folder / ".kubepy")
    assert names(store.list("configmaps").objects) == ["System:X", long, "bad", "good"]
    assert store.problems() == []
    with store.transaction() as transaction:
        transaction.delete(key(long))
    assert names(store.list("configmaps").objects) == ["System:X", "bad", "good"]


def test_object_too_large_for_file_is_refused(store: FolderStore) -> None:
    with pytest.raises(FolderError, match="larger than 3 MiB"):
        create(store, config_map("large", "x" * 3 * 1024 * 1024))
    assert store.get(key("large")) is None


def test_file_in_place_of_all_folders_is_reported(store: FolderStore, folder: Path) -> None:
    (folder / "cluster").write_text("")
    assert [str(problem) for problem in store.problems()] == ["cluster: is not a folder"]
    (folder / "cluster").unlink()


def test_folder_that_goes_during_the_look_is_no_problem(
    store: FolderStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listdir = os.listdir
    monkeypatch.setattr(
        os, "listdir", lambda path: [*listdir(path), *(["cluster"] if path == str(folder) else [])]
    )
    assert not (folder / "cluster").exists()
    assert store.problems() == []


def test_syntax_error_names_its_line_once(store: FolderStore, folder: Path) -> None:
    file_of(folder, "bad").write_text(GOOD + "x: [\n")
    (problem,) = store.list("configmaps").problems
    assert store.describe(problem) == (
        f"{file_of(folder, 'bad')}:5: did not find expected node content: this file is left out"
    )


# --- files whose object keeps its last valid content ---


def admit_unless_forbidden(
    key: Key, obj: dict[str, Any], mtime: float, old: dict[str, Any] | None
) -> dict[str, Any]:
    """Admit all objects but those with the value "no"."""
    if old is not None and obj["data"]["a"] == "no":
        raise EditError("data.a", 'data.a: may not be "no"')
    return obj


@pytest.fixture
def strict(open_store: Callable[..., FolderStore]) -> FolderStore:
    store = open_store(admit=admit_unless_forbidden)
    create(store, config_map("a"), config_map("b"))
    return store


def forbid(folder: Path) -> str:
    path = file_of(folder, "a")
    sound = path.read_text()
    path.write_text(sound.replace('a: "1"', 'a: "no"'))
    return sound


def allow(folder: Path, text: str) -> None:
    file_of(folder, "a").write_text(text)


def test_refused_edit_leaves_object_as_it_last_was(strict: FolderStore, folder: Path) -> None:
    sound = forbid(folder)
    (problem,) = strict.problems()
    assert problem == (f"{HERE}/a.yaml", 3, 'data.a: may not be "no"', True)
    assert strict.describe(problem) == f"{folder}/{problem}: the object counts as it last was"
    listed = strict.list("configmaps")
    assert [(obj["metadata"]["name"], obj["data"]) for obj in listed.objects] == [
        ("a", {"a": "1"}),
        ("b", {"a": "1"}),
    ]
    assert listed.problems == (problem,)
    assert strict.get(key("a")) == listed.objects[0]
    assert strict.find(key("a")) == (listed.objects[0], problem)
    assert strict.check() == []
    allow(folder, sound)
    assert strict.problems() == []


def test_object_of_refused_edit_is_read_only_in_transaction(
    strict: FolderStore, folder: Path
) -> None:
    sound = forbid(folder)
    with strict.transaction() as transaction:
        assert names(transaction.list("configmaps").objects) == ["a", "b"]
        assert transaction.get(key("a"))["data"] == {"a": "1"}  # type: ignore[index]
        for write in (transaction.create, transaction.update):
            with pytest.raises(FolderError, match=r"a\.yaml:3: data\.a: may not"):
                write(key("a"), config_map("a", "2"))
        with pytest.raises(FolderError, match=r"a\.yaml:3: data\.a: may not"):
            transaction.delete(key("a"))
        transaction.update(key("b"), config_map("b", "2"))
    assert '"no"' in file_of(folder, "a").read_text()
    allow(folder, sound)


def test_refused_edit_and_its_undoing_are_no_changes(strict: FolderStore, folder: Path) -> None:
    sound = forbid(folder)
    assert changes(strict, 2) == []
    allow(folder, sound)
    assert changes(strict, 2) == []
    allow(folder, sound.replace('"1"', '"2"'))
    assert [(change.type, change.key.name) for change in changes(strict, 2)] == [("MODIFIED", "a")]


def test_refused_edit_after_broken_file_puts_object_back_into_lists(
    strict: FolderStore, folder: Path
) -> None:
    sound = file_of(folder, "a").read_text()
    allow(folder, "{")
    assert names(strict.list("configmaps").objects) == ["b"]
    assert changes(strict, 2) == []
    allow(folder, sound)
    forbid(folder)
    assert [(change.type, change.key.name) for change in changes(strict, 2)] == [("MODIFIED", "a")]
    assert names(strict.list("configmaps").objects) == ["a", "b"]
    allow(folder, "{")
    assert names(strict.list("configmaps").objects) == ["b"]
    allow(folder, sound)


def test_refused_edit_beside_writer_is_reported_and_keeps_object(
    strict: FolderStore, folder: Path
) -> None:
    with strict.transaction() as transaction:
        transaction.update(key("b"), config_map("b", "2"))
        sound = forbid(folder)
        reader = FolderStore(folder, admit=admit_unless_forbidden)
        listed = reader.list("configmaps")
        reader.close()
        assert names(listed.objects) == ["a", "b"]
        assert [problem.keeps_object for problem in listed.problems] == [True]
    allow(folder, sound)


def test_new_index_accepts_file_without_comparing(
    open_store: Callable[..., FolderStore], strict: FolderStore, folder: Path
) -> None:
    import shutil

    forbid(folder)
    shutil.rmtree(folder / ".kubepy")
    assert strict.problems() == []
    assert strict.get(key("a"))["data"] == {"a": "no"}  # type: ignore[index]


@pytest.mark.parametrize(
    "error",
    [
        TypeError("no such shape"),
        OverflowError("too large"),
        KeyError("spec"),
        AttributeError("get"),
        MemoryError("all of it"),
        RecursionError("depth"),
    ],
)
def test_unforeseen_error_is_problem_of_its_file_alone(
    open_store: Callable[..., FolderStore], folder: Path, error: Exception
) -> None:
    def fail(
        key: Key, obj: dict[str, Any], mtime: float, old: dict[str, Any] | None
    ) -> dict[str, Any]:
        if key.name == "bad":
            raise error
        return obj

    store = open_store(admit=fail)
    create(store, config_map("good"))
    file_of(folder, "bad").write_text(GOOD)
    snapshot = store.list("configmaps")
    assert names(snapshot.objects) == ["good"]
    assert [(problem.path, problem.line) for problem in snapshot.problems] == [
        (f"{HERE}/bad.yaml", 1)
    ]
    assert (
        type(error).__name__ in snapshot.problems[0].reason
        or "nested too deeply" in snapshot.problems[0].reason
    )


@pytest.mark.parametrize(("depth", "inner"), [(199, "1"), (200, ""), (199, "1.5")])
def test_nesting_is_refused_beyond_its_limit(depth: int, inner: str) -> None:
    text = f"{GOOD}x: {{}}{inner}{{}}\n"
    assert parse(text.format("[" * depth, "]" * depth).encode()).object["kind"] == "ConfigMap"
    with pytest.raises(ContentError, match="nested too deeply"):
        parse(text.format("[" * (depth + 1), "]" * (depth + 1)).encode())


@pytest.mark.parametrize(
    "text", [GOOD, GOOD.rstrip("\n"), GOOD + "\n\n", "\n", "# remark\n\n" + GOOD]
)
def test_document_without_separator_is_same_as_behind_one(text: str) -> None:
    (document,), (separated,) = split(DocumentText(text, 7)), split(DocumentText(f"---\n{text}", 6))
    assert (document.text, document.line) == (
        separated.text.removeprefix("---\n"),
        separated.line + 1,
    )


def test_hidden_manifest_is_reported_and_lock_of_an_editor_is_not(
    store: FolderStore, folder: Path
) -> None:
    hidden = folder / HERE / ".x.yaml"
    hidden.write_text("not: an object")
    (folder / HERE / ".#bad.yaml").symlink_to("nobody@nowhere")
    [problem] = store.problems()
    assert (problem.path, problem.reason) == (
        f"{HERE}/.x.yaml",
        "is not read: its name begins with a dot",
    )
    hidden.unlink()
    assert store.problems() == []
