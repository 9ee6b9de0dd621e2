"""Folders that were made elsewhere: what came along in their ``.kubepy`` has no effect, and their
webhooks rest."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubepy.server.certificates import load_keys
from kubepy.storage.folder import evidence, origin
from tests.apiserver.webhook_server import Hook, configuration, rule, serving
from tests.cli.conftest import Done, Kubepy, run

PUT_ASIDE = (
    "was not made by you on this machine: it is .kubepy.untrusted now and not used; index, keys "
    "and contexts "
    'are made anew ("kubepy trust" takes it back)\n'
)
ADOPTED = "is of an earlier version of kubepy, and yours: it is adopted\n"
SHOW_NAMESPACE = ("config", "view", "-o", "jsonpath={.contexts[0].context.namespace}")
NOT_CALLED = (
    'was not made by you on this machine: its webhooks are not called ("kubepy trust" allows it)\n'
)

Arrival = Callable[[Path, Path], None]

needs_birth = pytest.mark.skipif(
    not evidence.birth_ns(__file__), reason="the system does not tell when files were made"
)


def git(folder: Path, *words: str) -> None:
    identity = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "-c",
        "init.defaultBranch=main",
    )
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def clone(source: Path, target: Path) -> None:
    git(source, "init", "-q")
    git(source, "add", "-f", ".")
    git(source, "commit", "-qm", "everything")
    git(source.parent, "clone", "-q", str(source), str(target))


def untar(source: Path, target: Path) -> None:
    archive = source.with_suffix(".tar")
    with tarfile.open(archive, "w") as file:
        file.add(source, ".")
    target.mkdir()
    with tarfile.open(archive) as file:
        file.extractall(target, filter="fully_trusted")


def copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def clone_with_another_key(source: Path, target: Path) -> None:
    clone(source, target)
    shutil.rmtree(origin.user_directory())
    origin._keys.clear()


ARRIVALS = [clone_with_another_key, clone, untar, copy]


@pytest.fixture(params=ARRIVALS, ids=lambda arrival: arrival.__name__)
def arrive(request: pytest.FixtureRequest) -> Arrival:
    arrival: Arrival = request.param
    return arrival


@pytest.fixture
def strange(kubepy: Kubepy, folder: Path) -> Path:
    """The state folder of a stranger, which this user gets by some way."""
    kubepy("create", "cm", "theirs")
    return folder / "state"


def at(place: Path, *words: str) -> Done:
    """Run a command as a new process does, which knows no folder yet."""
    for known in (origin._known, origin._known_indexes, origin._networked, origin._trusted):
        known.clear()
    return run("--state", str(place), *words)


# --- what came along has no effect ----------------------------------------------------------------


def test_contexts_that_came_along_send_no_command_elsewhere(
    strange: Path, folder: Path, arrive: Arrival
) -> None:
    mine, theirs = folder / "mine", folder / "theirs"
    at(mine, "create", "cm", "precious")
    at(strange, "config", "set-cluster", "kubepy", f"--server=file://{mine}")
    arrive(strange, theirs)
    done = at(theirs, "delete", "cm", "precious", "--ignore-not-found")
    assert done == ("", f"Warning: {theirs}/.kubepy {PUT_ASIDE}", 0)
    assert at(mine, "get", "cm", "precious").status == 0
    assert at(theirs, "get", "cm", "theirs", "-o", "name") == ("configmap/theirs\n", "", 0)
    assert (theirs / ".kubepy.untrusted/config").exists()
    assert (theirs / ".kubepy.untrusted/.gitignore").read_text() == "*\n"


def test_keys_that_came_along_open_no_server(strange: Path, folder: Path, arrive: Arrival) -> None:
    theirs = folder / "theirs"
    before = load_keys(str(strange))
    arrive(strange, theirs)
    at(theirs, "get", "cm")
    after = load_keys(str(theirs))
    assert after.token != before.token
    assert (after.ca, after.signing_key) != (before.ca, before.signing_key)


def test_pending_row_that_came_along_writes_no_object(
    strange: Path, folder: Path, arrive: Arrival
) -> None:
    theirs = folder / "theirs"
    add_pending_row(strange / ".kubepy/index.db")
    arrive(strange, theirs)
    assert at(theirs, "get", "clusterrolebindings", "evil").status == 1
    at(theirs, "create", "cm", "mine")
    assert not list(theirs.glob("cluster/clusterrolebindings*/evil.yaml"))


def add_pending_row(index: Path) -> None:
    obj = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "evil", "uid": "1", "resourceVersion": "900"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
    }
    with sqlite3.connect(index) as connection:
        connection.execute(
            "INSERT INTO objects (resource, namespace, name, revision, state, checksum, json) "
            "VALUES ('clusterrolebindings.rbac.authorization.k8s.io', '', 'evil', 900, 2, ?, ?)",
            (zlib.crc32(b"?"), json.dumps(obj)),
        )
    connection.close()


def test_link_that_came_along_is_put_aside(strange: Path, folder: Path) -> None:
    elsewhere = folder / "elsewhere"
    (strange / ".kubepy").rename(elsewhere)
    (strange / ".kubepy").symlink_to(elsewhere)
    before = sorted(os.listdir(elsewhere))
    assert at(strange, "create", "cm", "mine").err == f"Warning: {strange}/.kubepy {PUT_ASIDE}"
    assert (strange / ".kubepy.untrusted").is_symlink()
    assert sorted(os.listdir(elsewhere)) == before


@needs_birth
def test_copy_of_hard_links_is_put_aside(strange: Path, folder: Path) -> None:
    theirs = folder / "theirs"
    subprocess.run(["cp", "-al", str(strange), str(theirs)], check=True)
    assert at(strange, "create", "cm", "mine").err == ""
    assert at(theirs, "get", "cm").err == f"Warning: {theirs}/.kubepy {PUT_ASIDE}"
    assert at(strange, "get", "cm", "-o", "name").out == "configmap/mine\nconfigmap/theirs\n"


def test_pipes_in_strange_folder_are_not_waited_for(strange: Path) -> None:
    (strange / ".git").mkdir()
    for name in (".git/index", ".gitattributes", ".kubepy/index.db-wal", ".kubepy/token"):
        os.mkfifo(strange / name)
    assert at(strange, "create", "cm", "mine").status == 0
    assert at(strange, "trust").status == 1
    shutil.rmtree(strange / ".git")
    os.mkfifo(strange / ".git")
    assert at(strange, "get", "cm", "mine").status == 0


def test_second_stranger_is_put_beside_the_first(strange: Path, folder: Path) -> None:
    theirs = folder / "theirs"
    copy(strange, theirs)
    at(theirs, "get", "cm")
    shutil.rmtree(theirs / ".kubepy")
    shutil.copytree(strange / ".kubepy", theirs / ".kubepy")
    assert ".kubepy.untrusted.2 now" in at(theirs, "get", "cm").err
    assert sorted(path.name for path in theirs.glob(".kubepy*")) == [
        ".kubepy",
        ".kubepy.untrusted",
        ".kubepy.untrusted.2",
    ]


# --- one's own is known ---------------------------------------------------------------------------


def test_own_folder_is_known_after_mv_and_fork(strange: Path, folder: Path) -> None:
    at(strange, "config", "set-context", "kubepy", "--namespace=kube-system")
    strange.rename(folder / "moved")
    assert at(folder / "moved", "fork", str(folder / "forked")).err == ""
    assert at(folder / "moved", *SHOW_NAMESPACE) == ("kube-system", "", 0)
    assert at(folder / "forked", "get", "cm", "-n", "default", "-o", "name").err == ""


@needs_birth
def test_own_folder_is_known_after_chmod(strange: Path) -> None:
    for path in (strange / ".kubepy").iterdir():
        path.chmod(0o640)
        path.chmod(0o600)
    assert at(strange, "get", "cm", "-o", "name").err == ""


def without_marks(place: Path) -> None:
    """Make the folder one of an earlier version."""
    (place / ".kubepy/origin").unlink()
    (place / ".kubepy/marks").unlink()
    with sqlite3.connect(place / ".kubepy/index.db") as connection:
        connection.execute("DELETE FROM internal WHERE name = 'origin'")
    connection.close()


def test_folder_of_earlier_version_is_adopted_once(strange: Path) -> None:
    at(strange, "config", "set-context", "kubepy", "--namespace=kube-system")
    revision = at(
        strange,
        "get",
        "cm",
        "-n",
        "default",
        "theirs",
        "-o",
        "jsonpath={.metadata.resourceVersion}",
    ).out
    without_marks(strange)
    assert (
        at(strange, "get", "cm", "-n", "default", "-o", "name").err
        == f"Warning: {strange}/.kubepy {ADOPTED}"
    )
    words = ("get", "cm", "-n", "default", "theirs", "-o", "jsonpath={.metadata.resourceVersion}")
    assert at(strange, *words) == (revision, "", 0)
    assert at(strange, *SHOW_NAMESPACE).out == "kube-system"


def test_own_folder_is_known_with_another_key(
    strange: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(strange, "config", "set-context", "kubepy", "--namespace=kube-system")
    for home in ("other", "another", "other"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / home))
        assert at(strange, *SHOW_NAMESPACE) == ("kube-system", "", 0)
        assert at(strange, "get", "cm", "-n", "default", "theirs", "-o", "name") == (
            "configmap/theirs\n",
            "",
            0,
        )


def make_public(place: Path) -> None:
    (place / ".kubepy").chmod(0o755)


def track(place: Path) -> None:
    git(place, "init", "-q")
    git(place, "add", "-f", ".kubepy")


def replace_all_files(place: Path) -> None:
    copy(place, place.with_name("copy"))
    shutil.rmtree(place)
    place.with_name("copy").rename(place)


@pytest.mark.parametrize("change", [make_public, track, replace_all_files])
def test_folder_without_marks_that_may_be_anothers_is_not_adopted(
    strange: Path, change: Callable[[Path], None]
) -> None:
    without_marks(strange)
    change(strange)
    assert at(strange, "get", "cm", "-o", "name").err == f"Warning: {strange}/.kubepy {PUT_ASIDE}"


# --- files that come into one's own folder --------------------------------------------------------


def test_folder_is_not_adopted_by_files_behind_links(strange: Path, folder: Path) -> None:
    """Put links to the very files that the index knows in place of the folders of a copy."""
    theirs = folder / "theirs"
    copy(strange, theirs)
    without_marks(theirs)
    for name in ("cluster", "namespaces"):
        shutil.rmtree(theirs / name)
        (theirs / name).symlink_to(strange / name)
    assert f"Warning: {theirs}/.kubepy {PUT_ASIDE}" in at(theirs, "get", "cm").err


def test_config_that_a_merge_brings_does_not_count(strange: Path, folder: Path) -> None:
    mine = folder / "mine"
    at(mine, "create", "cm", "precious")
    at(strange, "config", "set-cluster", "kubepy", f"--server=file://{mine}")
    evil = (strange / ".kubepy/config").read_bytes()
    at(strange, "config", "unset", "clusters.kubepy.server")
    (strange / ".kubepy/config").write_bytes(evil)
    done = at(strange, "delete", "cm", "precious", "--ignore-not-found")
    assert done.err == (
        f'Warning: {strange}/.kubepy/config was not written by kubepy: it is not used ("kubepy '
        f'trust" '
        "uses it)\n"
    )
    assert at(mine, "get", "cm", "precious").status == 0


def test_index_that_a_merge_brings_is_rebuilt(strange: Path) -> None:
    other = strange / "other.db"
    shutil.copy(strange / ".kubepy/index.db", other)
    add_pending_row(other)
    other.replace(strange / ".kubepy/index.db")
    done = at(strange, "get", "clusterrolebindings", "evil")
    assert done.status == 1
    assert (
        f"{strange}/.kubepy/index.db was not made by kubepy here: it is rebuilt from the files\n"
        in done.err
    )
    assert at(strange, "get", "cm", "theirs", "-o", "name") == ("configmap/theirs\n", "", 0)


@pytest.mark.parametrize("name", ["index.db-wal", "index.db-journal"])
def test_log_of_index_that_a_merge_brings_is_not_carried_out(strange: Path, name: str) -> None:
    git(strange, "init", "-q")
    (strange / ".kubepy" / name).write_bytes(b"evil")
    git(strange, "add", "-f", f".kubepy/{name}")
    git(strange, "commit", "-qm", "a log")
    git(strange, "rm", "-q", f".kubepy/{name}")
    git(strange, "commit", "-qm", "none")
    at(strange, "get", "cm")
    git(strange, "checkout", "-q", "HEAD~1")
    assert at(strange, "get", "cm", "-o", "name").err == (
        f"Warning: {strange}/.kubepy/index.db has a log that kubepy has not written here: it is "
        f"rebuilt from the files"
        "\n"
    )
    assert at(strange, "get", "cm", "-o", "name").err == ""


@needs_birth
@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_log_of_index_that_an_archive_brings_is_not_carried_out(
    strange: Path, folder: Path, seconds: int
) -> None:
    """Unpack an archive with a log that suits the index, and changes an object that no file shows,
    over a folder of one's own."""
    archived = folder / "archived"
    shutil.copytree(strange / ".kubepy", archived / ".kubepy")
    writer = sqlite3.connect(archived / ".kubepy/index.db")
    writer.execute("UPDATE objects SET json = NULL WHERE name = 'theirs'")
    writer.commit()
    log = archived / ".kubepy/index.db-wal"
    assert log.stat().st_size > 0
    archived_at = time.time() + seconds
    os.utime(log, (archived_at, archived_at))
    shutil.copy2(log, strange / ".kubepy/index.db-wal")
    writer.close()
    done = at(strange, "get", "cm", "theirs", "-o", "name")
    assert done.out == "configmap/theirs\n"
    assert "index.db has a log that kubepy has not written here: it is rebuilt" in done.err


def test_token_in_kubeconfig_that_others_can_read_is_made_anew(strange: Path) -> None:
    before = load_keys(str(strange))
    kubeconfig = strange / ".kubepy/kubeconfig"
    kubeconfig.write_text(before.token)
    kubeconfig.chmod(0o600)
    assert load_keys(str(strange)).token == before.token
    kubeconfig.chmod(0o640)
    said: list[str] = []
    assert load_keys(str(strange), say=said.append).token != before.token
    assert said == [f"{kubeconfig} could be read by other users: the token in it is made anew"]


def test_keys_that_others_can_read_are_made_anew(strange: Path) -> None:
    before = load_keys(str(strange))
    (strange / ".kubepy/token").chmod(0o644)
    said: list[str] = []
    after = load_keys(str(strange), say=said.append)
    assert after.token != before.token
    assert said == [f"{strange}/.kubepy/token could be read by other users: made anew"]
    assert after.ca == before.ca


def test_keys_that_a_merge_brings_are_made_anew(strange: Path) -> None:
    before = load_keys(str(strange))
    (strange / ".kubepy/token").write_text("0" * 64)
    said: list[str] = []
    assert load_keys(str(strange), say=said.append).token not in (before.token, "0" * 64)
    assert said == [f"{strange}/.kubepy/token was not written by kubepy: made anew"]


@pytest.mark.parametrize("value", ["0", "no", "False", "off", "nobody"])
def test_environment_that_says_no_trusts_nothing(
    strange: Path, folder: Path, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = folder / "theirs"
    copy(strange, theirs)
    monkeypatch.setenv("KUBEPY_TRUST", value)
    assert at(theirs, "get", "cm").err == f"Warning: {theirs}/.kubepy {PUT_ASIDE}"


# --- trust ----------------------------------------------------------------------------------------


def test_trust_takes_back_what_was_put_aside(strange: Path, folder: Path) -> None:
    theirs = folder / "theirs"
    at(strange, "config", "set-context", "kubepy", "--namespace=kube-system")
    copy(strange, theirs)
    at(theirs, "get", "cm")
    assert at(theirs, "trust") == (
        ".kubepy.untrusted is .kubepy again, and what was made in its place is .kubepy.untrusted\n"
        f"{theirs} is trusted\n",
        "",
        0,
    )
    assert at(theirs, *SHOW_NAMESPACE) == ("kube-system", "", 0)


@pytest.mark.parametrize("by_flag", [True, False])
def test_trusted_by_request_is_used_as_it_is(
    strange: Path, folder: Path, by_flag: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = folder / "theirs"
    at(strange, "config", "set-context", "kubepy", "--namespace=kube-system")
    copy(strange, theirs)
    if not by_flag:
        monkeypatch.setenv("KUBEPY_TRUST", "1")
    flags = ["--trust"] if by_flag else []
    done = at(theirs, *flags, *SHOW_NAMESPACE)
    assert done == ("kube-system", "", 0)
    assert at(theirs, *flags, "create", "cm", "mine") == ("configmap/mine created\n", "", 0)
    assert not (theirs / ".kubepy.untrusted").exists()


def test_folder_cannot_be_made_without_a_place_for_the_key(
    bare: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").touch()
    monkeypatch.setattr(origin, "user_directory", lambda: str(folder / "file/kubepy"))
    done = bare("create", "cm", "a")
    assert done.status == 1
    assert "set $XDG_STATE_HOME, or KUBEPY_TRUST=1" in done.err
    monkeypatch.setenv("KUBEPY_TRUST", "1")
    assert bare("create", "cm", "a").status == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_live_folder_of_another_user_is_neither_used_nor_renamed(strange: Path) -> None:
    for path in (strange, strange / ".kubepy", *(strange / ".kubepy").iterdir()):
        os.chown(path, 65534, 65534)
    shutil.rmtree(origin.user_directory())
    origin._keys.clear()
    done = at(strange, "get", "cm", "-o", "name")
    assert done.out == "configmap/theirs\n"
    assert done.err == (
        f'Warning: {strange}/.kubepy belongs to another user, and is not used ("kubepy trust", or '
        "KUBEPY_TRUST=1, uses it)\n"
    )
    assert at(strange, "create", "cm", "mine").status == 1
    assert not (strange / ".kubepy.untrusted").exists()


def test_commands_at_once_put_a_stranger_aside_once(strange: Path, folder: Path) -> None:
    theirs = folder / "theirs"
    copy(strange, theirs)
    words = [sys.executable, "-m", "kubepy", "--state", str(theirs), "get", "cm", "-o", "name"]
    processes = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    answers = [process.communicate() for process in processes]
    assert {out for out, _ in answers} == {"configmap/theirs\n"}
    assert sum(PUT_ASIDE in err for _, err in answers) == 1
    assert sorted(path.name for path in theirs.glob(".kubepy*")) == [".kubepy", ".kubepy.untrusted"]


# --- webhooks -------------------------------------------------------------------------------------


@pytest.fixture
def hook() -> Iterator[Hook]:
    with serving() as server:
        yield server


def with_webhook(place: Path, hook: Hook, **fields: str) -> None:
    with open(place / "kubepy.yaml", "a") as file:
        file.write(f"webhooks: {{default/hook: '{hook.url}'}}\n")
    manifest = configuration(
        "ValidatingWebhookConfiguration", "hooks", rules=[rule("*", ("*",))], **fields
    )
    assert run("--state", str(place), "apply", "-f", "-", stdin=json.dumps(manifest)).status == 0


def test_no_webhook_of_a_clone_is_called(strange: Path, folder: Path, hook: Hook) -> None:
    with_webhook(strange, hook)
    at(strange, "create", "cm", "called")
    assert hook.requests
    theirs = folder / "theirs"
    clone(strange, theirs)
    hook.reviews.clear()
    at(theirs, "get", "pods")
    done = at(theirs, "create", "cm", "mine")
    assert done.status == 1
    assert done.err == (
        f"Warning: {theirs} {NOT_CALLED}"
        "error: failed to create configmap: Internal error occurred: failed calling webhook "
        '"hook.example.com": failed '
        'to call webhook: Post "https://hook.default.svc:443/?timeout=10s": kubepy calls no '
        "webhook of a state folder "
        "that was made elsewhere\n"
    )
    assert not hook.requests
    assert at(theirs, "plan", "create", "cm", "mine").status == 1
    assert not hook.requests
    assert at(theirs, "--trust", "create", "cm", "mine").status == 0
    assert hook.requests


def test_failure_policy_says_what_follows(strange: Path, folder: Path, hook: Hook) -> None:
    with_webhook(strange, hook, failurePolicy="Ignore")
    theirs = folder / "theirs"
    clone(strange, theirs)
    hook.reviews.clear()
    assert NOT_CALLED in at(theirs, "create", "cm", "mine").err
    assert at(theirs, "get", "cm", "mine").status == 0
    assert not hook.requests
    at(theirs, "trust")
    assert at(theirs, "create", "cm", "more") == ("configmap/more created\n", "", 0)
    assert hook.requests


def test_fork_of_a_clone_calls_no_webhook(strange: Path, folder: Path, hook: Hook) -> None:
    with_webhook(strange, hook)
    theirs, forked = folder / "theirs", folder / "forked"
    clone(strange, theirs)
    hook.reviews.clear()
    at(theirs, "fork", str(forked))
    assert NOT_CALLED in at(forked, "create", "cm", "mine").err
    assert not hook.requests


def test_init_in_a_clone_of_objects_calls_no_webhook(
    strange: Path, folder: Path, hook: Hook
) -> None:
    with_webhook(strange, hook)
    theirs = folder / "theirs"
    clone(strange, theirs)
    shutil.rmtree(theirs / ".kubepy")
    settings = (theirs / "kubepy.yaml").read_text()
    (theirs / "kubepy.yaml").unlink()
    hook.reviews.clear()
    at(theirs, "init")
    (theirs / "kubepy.yaml").write_text(settings)
    assert NOT_CALLED in at(theirs, "create", "cm", "mine").err
    assert not hook.requests
