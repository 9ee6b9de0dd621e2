"""Locks: one writer at a time, released when their process dies, with a holder that everybody can
see."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from kubepy.storage import FolderError, Key, LockTimeoutError
from kubepy.storage.errors import RemovedIndexError
from kubepy.storage.folder.locks import Lock
from kubepy.storage.folder.store import FolderStore
from tests.stores import changes

from .conftest import config_map, create, key, names

HOLD = """
import sys, time
from pathlib import Path
from kubepy.storage.folder.store import FolderStore
store = FolderStore(Path(sys.argv[1]))
with {lock}:
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def hold_in_another(folder: Path) -> Callable[[str], subprocess.Popen[str]]:
    started = []

    def hold(lock: str) -> subprocess.Popen[str]:
        script = folder.parent / "holder.py"
        script.write_text(HOLD.format(lock=lock))
        process = subprocess.Popen(
            [sys.executable, script, folder], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield hold  # type: ignore[misc]
    for process in started:
        process.kill()
        process.communicate()


Hold = Callable[[str], "subprocess.Popen[str]"]


def test_writer_that_waits_too_long_learns_holder(
    open_store: Callable[..., FolderStore], hold_in_another: Hold
) -> None:
    create(open_store(), config_map("a"))
    process = hold_in_another("store.transaction()")
    store = open_store(lock_timeout=0.2)
    told = rf"lock is held by process {process.pid} \(holder\.py .*\) \(waited 0\.2 s\)"
    with pytest.raises(LockTimeoutError, match=told):
        create(store, config_map("b"))
    assert names(store.list("configmaps").objects) == ["a"]
    process.kill()
    process.wait()
    create(store, config_map("b"))
    assert names(store.list("configmaps").objects) == ["a", "b"]


def test_writer_waits_longer_while_holder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others, mine = Lock(str(tmp_path / "lock")), Lock(str(tmp_path / "lock"))
    others.acquire(0)
    left = iter(range(4))

    def too_late(timeout: float) -> bool:
        """Let another process take the lock first, several times."""
        time.sleep(timeout)
        others.release()
        if next(left, None) is None:
            return Lock.try_acquire(mine, timeout)
        others.acquire(0)
        return False

    monkeypatch.setattr(mine, "try_acquire", too_late)
    assert mine.acquire_in_turn(0.2) is False
    mine.release()


def test_held_lock_names_its_holder_and_dies_with_it(
    store: FolderStore, hold_in_another: Hold
) -> None:
    assert store.holder("manager.lock") is None
    process = hold_in_another('store.hold("manager.lock")')
    assert (store.holder("manager.lock") or "").startswith(f"process {process.pid} (holder.py ")
    told = f"manager.lock is held by process {process.pid}"
    with pytest.raises(LockTimeoutError, match=told), store.hold("manager.lock"):
        pass
    create(store, config_map("a"))
    process.kill()
    process.wait()
    assert store.holder("manager.lock") is None
    with store.hold("manager.lock"):
        assert store.holder("manager.lock") is not None
    assert store.holder("manager.lock") is None


WORK = """
import json, sys
from pathlib import Path
from kubepy.storage import ConflictError, Key
from kubepy.storage.folder.store import FolderStore
store, number = FolderStore(Path(sys.argv[1])), int(sys.argv[2])
counter = Key("configmaps", "default", "counter")

def increment():
    found = store.get(counter)
    with store.transaction() as transaction:
        value = {"kind": "ConfigMap", "metadata": {"name": "counter", "namespace": "default"},
                 "data": {"n": found["data"]["n"] + 1}}
        transaction.update(counter, value, expected=found["metadata"]["resourceVersion"])

conflicts, revisions = 0, []
for step in range(15):
    while True:
        try:
            increment()
            break
        except ConflictError:
            conflicts += 1
    with store.transaction() as transaction:
        name = f"made-{number}-{step}"
        made = transaction.create(Key("pods", "default", name), {"metadata": {"name": name, "namespace": "default"}})
    listed = store.list("pods")
    assert name in [obj["metadata"]["name"] for obj in listed.objects]
    assert all(int(obj["metadata"]["resourceVersion"]) <= listed.revision for obj in listed.objects)
    revisions.append(listed.revision)
assert revisions == sorted(revisions)
print(json.dumps(conflicts))
"""  # noqa: E501


def test_processes_writing_at_once_lose_nothing(store: FolderStore, folder: Path) -> None:
    start = {
        "kind": "ConfigMap",
        "metadata": {"name": "counter", "namespace": "default"},
        "data": {"n": 0},
    }
    create(store, start)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORK, folder, str(number)], stdout=subprocess.PIPE, text=True
        )
        for number in range(4)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert all(json.loads(output) >= 0 for output in outputs)
    assert store.get(key("counter"))["data"] == {"n": 60}  # type: ignore[index]
    expected = sorted(f"made-{number}-{step}" for number in range(4) for step in range(15))
    assert names(store.list("pods").objects) == expected
    assert store.revision == 1 + 60 + 60
    assert {change.key for change in changes(store, 1) if change.key.resource == "pods"} == {
        Key("pods", "default", name) for name in expected
    }


OWN_FILES = (
    "lock",
    "lock.holder",
    "manager.lock",
    "manager.lock.holder",
    "index.db",
    "index.db-wal",
    "index.db-journal",
)


@pytest.mark.parametrize("name", OWN_FILES)
def test_link_in_own_folder_is_never_followed(folder: Path, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    own = folder / ".kubepy"
    (own / name).unlink(missing_ok=True)
    (own / name).symlink_to(victim)
    store = FolderStore(folder)
    assert store.list("configmaps").objects == []
    with pytest.raises(FolderError, match=rf"{name} is a symbolic link"), store.transaction():
        pass
    with (
        pytest.raises(FolderError, match=rf"{name} is a symbolic link"),
        store.hold("manager.lock"),
    ):
        pass
    assert store.holder("manager.lock") is None
    store.close()
    assert victim.read_text() == "precious"
    (own / name).unlink()


def test_folder_that_goes_while_it_is_locked_does_not_come_back(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".kubepy").mkdir(exist_ok=True)
    acquire = FileLock.acquire

    def move_and_acquire(self: FileLock, *args: object, **options: object) -> object:
        folder.rename(tmp_path / "moved")
        return acquire(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FileLock, "acquire", move_and_acquire)
    with pytest.raises(RemovedIndexError):
        Lock(str(folder / ".kubepy" / "lock")).acquire(1.0)
    assert [path.name for path in tmp_path.iterdir()] == ["moved"]
