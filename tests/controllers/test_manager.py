"""The manager, with reconcilers made for these tests and with all controllers."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubepy.api.meta import Object, name_of
from kubepy.controlplane import (
    NAMES,
    RECONCILERS,
    build_manager,
    new_reconcilers,
    reconciler_names,
    timekeeping,
)
from kubepy.controlplane.manager import CheckpointStore, ListWatch, Manager
from kubepy.controlplane.open import open_cluster
from kubepy.runtime.checkpoint import (
    CHECKPOINT,
    MEMORIES,
    WITH_MEMORIES,
    Checkpoint,
    Pending,
    dump,
    latest,
    load,
    parse,
    save,
    settled_checkpoint,
)
from kubepy.runtime.pacing import Pacing
from kubepy.runtime.reconcile import EVERY_RESOURCE, Context, Handler, Informers, Key, WatchEvent
from kubepy.storage import ConflictError
from kubepy.storage.view import RecordedView
from tests.controllers.conftest import Lab

CONFIG_MAPS = "configmaps"


class Copier:
    """A reconciler that keeps a copy ``copy-of-x`` of every ConfigMap ``x``, and records ``events``
    and ``synced``."""

    name = "copier"

    def __init__(self, context: Context, resource: str = CONFIG_MAPS) -> None:
        self.context = context
        self.queue = context.new_queue()
        self.resource = resource
        self.events: list[tuple[str, bool, bool]] = []
        self.synced: list[str] = []
        self.before_sync: Callable[[str], None] = lambda _: None

    def handlers(self) -> Mapping[str, Handler]:
        return {self.resource: self._changed}

    def _changed(self, event: WatchEvent) -> None:
        if event.key.resource == CONFIG_MAPS and event.key.namespace == "default":
            self.events.append((event.key.name, event.old is not None, event.new is not None))
            self.queue.add(event.key)

    def sync(self, key: Key) -> None:
        self.synced.append(key.name)
        self.before_sync(key.name)
        informers = self.context.informers
        if key.name.startswith("copy-of-") or informers.get(*key) is None:
            return
        copy = f"copy-of-{key.name}"
        if informers.get(CONFIG_MAPS, "default", copy) is None:
            self.context.client.create(
                CONFIG_MAPS,
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": copy}},
                namespace="default",
            )


class Toy:
    """A manager of one Copier over a lab's cluster; each new one stands for a new process."""

    def __init__(self, lab: Lab, resource: str = CONFIG_MAPS) -> None:
        store = lab.cluster.store
        context = Context(lab.client, Informers(), lab.cluster.clock, Pacing())
        self.copier = Copier(context, resource)
        checkpoints = CheckpointStore(
            lambda: store.meta("toy"), lambda text: store.set_values({"toy": text})
        )
        self.manager = Manager(
            context,
            [self.copier],
            source=ListWatch(RecordedView(store)),
            checkpoints=checkpoints,
        )


def copies(lab: Lab) -> list[str]:
    return [name for name in lab.names(CONFIG_MAPS, "default") if name.startswith("copy-of-")]


def verbs(summary) -> list[tuple[str, str]]:
    return [(change.verb, change.key.name) for change in summary.changes()]


class RefreshedCopier(Copier):
    """A copier that goes by a file as well, by whose change it looks at ``a`` again."""

    is_changed = False

    def refresh(self) -> None:
        if self.is_changed:
            self.queue.add(Key(CONFIG_MAPS, "default", "a"))
        self.is_changed = False


def test_reconciler_refreshes_what_it_goes_by_whenever_changes_are_looked_for(lab):
    lab.config_map("a")
    context = Context(lab.client, Informers(), lab.cluster.clock, Pacing())
    copier = RefreshedCopier(context)
    manager = Manager(context, [copier], source=ListWatch(RecordedView(lab.cluster.store)))
    manager.run_until_settled()
    assert copier.synced == ["a", "copy-of-a"]
    manager.poll()
    assert not manager.has_work()
    copier.is_changed = True
    manager.poll()
    assert manager.has_work()
    manager.run_until_settled()
    assert copier.synced == ["a", "copy-of-a", "a"]


def test_sync_sees_what_one_before_it_wrote(lab):
    lab.config_map("a")
    toy = Toy(lab)
    summary = toy.manager.run_until_settled()
    assert toy.copier.synced == ["a", "copy-of-a"]
    assert toy.copier.events == [("a", False, True), ("copy-of-a", False, True)]
    assert verbs(summary) == [("created", "copy-of-a")]


def test_wildcard_watches_every_resource_but_events(lab):
    toy = Toy(lab, EVERY_RESOURCE)
    lab.config_map("a")
    toy.manager.run_until_settled()
    assert copies(lab) == ["copy-of-a"]


def test_manager_goes_on_where_last_one_stopped(lab):
    lab.config_map("a")
    Toy(lab).manager.run_until_settled()
    lab.config_map("b")
    toy = Toy(lab)
    toy.manager.run_until_settled()
    assert toy.copier.synced == ["b", "copy-of-b"]


def test_unchanged_cluster_is_not_listed(lab, monkeypatch):
    lab.config_map("a")
    Toy(lab).manager.run_until_settled()
    monkeypatch.setattr(lab.client, "list", None)
    toy = Toy(lab)
    assert verbs(toy.manager.run_until_settled()) == []
    assert toy.copier.synced == []


def test_deletion_between_two_runs_is_seen_with_last_state(lab):
    lab.config_map("a")
    Toy(lab).manager.run_until_settled()
    lab.client.delete(CONFIG_MAPS, "a", namespace="default")
    toy = Toy(lab)
    toy.manager.run_until_settled()
    assert toy.copier.events == [("a", True, False)]


def test_manager_that_is_stopped_early_loses_nothing(lab):
    for name in ("a", "b", "c"):
        lab.config_map(name)
    first = Toy(lab)
    first.copier.before_sync = lambda _: first.copier.queue.add_after(
        Key(CONFIG_MAPS, "default", "later"), 60
    )
    answers = iter([False, False, True])
    first.manager.run_until_settled(done=lambda: next(answers, True))
    toy = Toy(lab)
    toy.manager.run_until_settled()
    assert copies(lab) == ["copy-of-a", "copy-of-b", "copy-of-c"]
    lab.pass_time(60)
    last = Toy(lab)
    last.manager.run_until_settled()
    assert last.copier.synced == ["later"]


def test_error_is_told_and_tried_again_and_does_not_keep_others_waiting(lab):
    lab.config_map("a")
    lab.config_map("b")
    toy = Toy(lab)

    def fail_on_a(name: str) -> None:
        if name == "a":
            raise ValueError("no\nluck")

    toy.copier.before_sync = fail_on_a
    summary = toy.manager.run_until_settled()
    assert copies(lab) == ["copy-of-b"]
    tries = [(failure.reconciler, failure.key.name, failure.error) for failure in summary.failures]
    assert (
        tries == [("copier", "a", "ValueError: no luck")] * 6
    )  # back-offs of up to 0.1 s take no time
    assert [(due.key.name, (due.time - lab.now).total_seconds()) for due in summary.due] == [
        ("a", 0.16)
    ]
    lab.pass_time(1)
    Toy(lab).manager.run_until_settled()
    assert copies(lab) == ["copy-of-a", "copy-of-b"]


def test_running_clock_short_back_offs_are_awaited(lab):
    lab.cluster.clock.own = None
    lab.config_map("a")
    toy = Toy(lab)
    failures = iter([True, True, False])

    def fail_twice(name: str) -> None:
        if name == "a" and next(failures, False):
            raise ValueError("not yet")

    toy.copier.before_sync = fail_twice
    summary = toy.manager.run_until_settled()
    assert copies(lab) == ["copy-of-a"]
    assert len(summary.failures) == 2
    assert summary.due == []


def test_quiet_for_waits_for_what_falls_due_in_time_and_tells_of_rest(lab):
    lab.cluster.clock.own = None
    lab.config_map("a")
    toy = Toy(lab)
    soon, late = Key(CONFIG_MAPS, "default", "soon"), Key(CONFIG_MAPS, "default", "late")
    toy.copier.queue.add_after(soon, 0.3)
    toy.copier.queue.add_after(late, 60)
    summary = toy.manager.run_until_settled(quiet_for=0.5)
    assert toy.copier.synced[-1] == "soon"
    assert [due.key for due in summary.due] == [late]


def test_object_that_was_made_and_removed_again_does_not_show(lab):
    lab.config_map("a")
    toy = Toy(lab)

    def remove_copy(name: str) -> None:
        if name == "copy-of-a" and copies(lab):
            lab.client.delete(CONFIG_MAPS, "copy-of-a", namespace="default")

    toy.copier.before_sync = remove_copy
    assert verbs(toy.manager.run_until_settled()) == []


def test_object_replaced_by_another_of_its_name_arrives_as_deleted_and_added(lab):
    lab.config_map("a")
    toy = Toy(lab)
    toy.manager.run_until_settled()
    toy.copier.events.clear()
    lab.client.delete(CONFIG_MAPS, "a", namespace="default")
    lab.config_map("a")
    toy.manager.run_until_settled()
    assert toy.copier.events == [("a", True, False), ("a", False, True)]


def test_batch_that_conflicts_with_edit_from_outside_is_done_again(lab, tmp_path):
    lab.config_map("a")
    toy = Toy(lab)
    toy.manager.run_until_settled()
    file = tmp_path / "state/namespaces/default/configmaps/a.yaml"

    def edit(name: str) -> None:
        if name == "a" and "edited" not in file.read_text():
            file.write_text(file.read_text() + 'data:\n  edited: "yes"\n')
            obj = lab.client.get(CONFIG_MAPS, "a", namespace="default")
            lab.client.update(CONFIG_MAPS, {**obj, "data": {"ours": "yes"}}, namespace="default")

    toy.copier.before_sync = edit
    lab.client.delete(CONFIG_MAPS, "copy-of-a", namespace="default")
    toy.copier.queue.add(Key(CONFIG_MAPS, "default", "a"))
    toy.manager.run_until_settled()
    assert lab.client.get(CONFIG_MAPS, "a", namespace="default")["data"] == {"edited": "yes"}
    assert copies(lab) == ["copy-of-a"]


def test_batch_that_fails_leaves_no_trace_in_what_manager_knows(lab):
    lab.config_map("a")
    toy = Toy(lab)

    def interrupt(name: str) -> None:
        if name == "copy-of-a":
            raise KeyboardInterrupt

    toy.copier.before_sync = interrupt
    with pytest.raises(KeyboardInterrupt):
        toy.manager.run_until_settled()
    assert copies(lab) == []
    toy.copier.before_sync = lambda _: None
    toy.manager.run_until_settled()
    assert copies(lab) == ["copy-of-a"]


@pytest.mark.parametrize("begins", [False, True], ids=["before it begins", "in a sync"])
def test_deletion_of_object_never_read_is_handed_over_after_failed_batch(lab, monkeypatch, begins):
    """Let a process that has read no object, since it began with a checkpoint, fail once after
    another has deleted."""
    lab.config_map("a")
    Toy(lab).manager.run_until_settled()
    toy = Toy(lab)
    toy.manager.run_until_settled()
    lab.client.delete(CONFIG_MAPS, "a", namespace="default")

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(
            *(toy.copier, "before_sync") if begins else (lab.client, "observe_from"), fail
        )
        with pytest.raises(KeyboardInterrupt):
            toy.manager.run_until_settled()
    toy.copier.events.clear()
    toy.manager.run_until_settled()
    assert ("a", True, False) in toy.copier.events


def test_write_of_another_after_commit_that_fails_is_heard_of(lab, monkeypatch):
    """Let another process delete an object whose deletion gets the revision of a write that was
    never committed."""
    lab.config_map("a")
    lab.config_map("b")
    Toy(lab).manager.run_until_settled()
    toy = Toy(lab)
    toy.manager.run_until_settled()
    begin = lab.cluster.store.fresh_transaction

    @contextmanager
    def fail_and_delete(max_age: float = 0.0) -> Iterator[Any]:
        monkeypatch.undo()
        with suppress(RuntimeError), begin(max_age) as changes:
            yield changes
            raise RuntimeError("the disk is full")
        lab.client.delete(CONFIG_MAPS, "b", namespace="default")
        raise ConflictError("another process was faster")

    lab.client.delete(CONFIG_MAPS, "copy-of-a", namespace="default")
    toy.copier.queue.add(Key(CONFIG_MAPS, "default", "a"))
    monkeypatch.setattr(lab.cluster.store, "fresh_transaction", fail_and_delete)
    toy.manager.run_until_settled()
    assert ("b", True, False) in toy.copier.events
    assert copies(lab) == ["copy-of-a", "copy-of-b"]


def test_cluster_without_its_own_folder_is_listed_anew(tmp_path):
    lab = Lab(tmp_path / "state")
    lab.config_map("a")
    Toy(lab).manager.run_until_settled()
    lab.cluster.close()
    shutil.rmtree(tmp_path / "state/.kubepy")
    again = _reopened(tmp_path / "state")
    toy = Toy(again)
    toy.manager.run_until_settled()
    assert sorted(toy.copier.synced) == ["a", "copy-of-a"]
    again.cluster.close()


def _reopened(folder: Path) -> Lab:

    lab = Lab.__new__(Lab)
    lab.cluster = open_cluster(folder)
    lab.client = lab.cluster.client
    return lab


def test_watch_takes_up_what_others_write_until_it_is_stopped(lab):
    toy = Toy(lab)
    rounds = []

    def settled(summary) -> None:
        rounds.append(verbs(summary))
        if len(rounds) < 3:
            lab.config_map(f"a{len(rounds)}")

    toy.manager.run(lambda: len(rounds) == 3, settled)
    assert rounds == [[], [("created", "copy-of-a1")], [("created", "copy-of-a2")]]


def test_manager_that_listens_works_at_once_when_something_changes(lab):
    toy, start = Toy(lab), time.monotonic()
    waits: list[float] = []

    def listen(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 2:
            lab.config_map("a")
        return True

    toy.manager.poller.listen = listen
    toy.manager.run(lambda: bool(copies(lab)))
    assert len(waits) == 2
    assert time.monotonic() - start < 10.0


class Naps:
    """A clock that only notes how long somebody sleeps."""

    own = None

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.mark.parametrize(("reads_folder", "deaf"), [(True, [1.0]), (False, [0.25])])
def test_poller_without_a_folder_is_deaf_for_no_longer_than_a_slow_poll_took(
    monkeypatch: pytest.MonkeyPatch, reads_folder: bool, deaf: list[float]
) -> None:
    now = [10.0]

    def poll() -> None:
        now[0] += 0.25  # on a busy machine

    monkeypatch.setattr(timekeeping, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    naps = Naps()
    poller = timekeeping.Poller(naps, poll, lambda: False)  # type: ignore[arg-type]
    poller.listen = lambda seconds: True
    poller.reads_folder = reads_folder
    poller.wait(1.0)
    assert naps.seconds == []
    poller.wait(1.0)
    assert naps.seconds == deaf


def test_watch_outlives_what_passes(lab):
    toy = Toy(lab)
    failed: list[str] = []
    lab.config_map("a")
    answers = iter([True, True, False])

    def fail_at_first(name: str) -> None:
        if name == "a" and next(answers, False):
            raise _OtherWriterError(f"busy {len(failed) + 1}")

    original = lab.client.observe_from

    def observe_from(revision: int) -> None:
        fail_at_first("a")
        original(revision)

    lab.client.observe_from = observe_from  # type: ignore[method-assign]
    toy.manager.run(
        lambda: bool(copies(lab)),
        transient=(_OtherWriterError,),
        failed=lambda why: failed.append(str(why)),
    )
    assert failed == ["busy 1", "busy 2"]


class _OtherWriterError(Exception):
    pass


def test_checkpoints_survive_being_written_down(lab):
    key = Key("pods", "default", "a")
    checkpoint = Checkpoint(
        7, (Pending("copier", key, lab.now), Pending("copier", key, None)), {"copier": {"x": 1}}
    )
    assert parse(dump(checkpoint, ["copier"]), ["copier"]) == checkpoint
    assert parse(dump(checkpoint, ["copier"]), ["another"]) is None
    assert parse(None, ["copier"]) is None


def test_checkpoint_parts_are_those_of_one_save(lab):
    store, checkpoint = lab.cluster.store, Checkpoint(7, (), {"copier": {"x": 1}})
    save(store, dump(checkpoint, ["copier"]))
    assert parse(load(store), ["copier"]) == checkpoint
    head = json.loads(store.meta(CHECKPOINT))
    assert latest(store.meta(CHECKPOINT)) == checkpoint._replace(memories={})
    store.set_values({MEMORIES: None})
    assert parse(load(store), ["copier"]) is None, (
        "without its memories a checkpoint counts for nothing"
    )
    other = {
        **head,
        "version": WITH_MEMORIES,
        "memories": {"copier": {"y": 2}},
    }  # as it was before there were parts
    store.set_values({CHECKPOINT: json.dumps(other), MEMORIES: '{"copier":{"x":1}}'})
    assert parse(load(store), ["copier"]) == checkpoint._replace(memories={"copier": {"y": 2}})


# --- all controllers


def test_reconciler_names_match_their_checkpoint_names(lab):
    context = Context(lab.client, Informers(), lab.cluster.clock, Pacing(), lab.cluster.scheme)
    assert tuple(new_reconciler(context).name for _, new_reconciler in RECONCILERS) == NAMES
    assert tuple(one.name for one in new_reconcilers(context)) == reconciler_names(
        lab.cluster.settings
    )


def test_daemon_set_comes_up_and_then_all_is_quiet(lab):
    for number in (1, 2, 3):
        lab.node(f"node-{number}")
    lab.daemon_set("agent")
    summary = lab.settle()
    assert (
        lab.client.get("daemonsets.apps", "agent", namespace="default")["status"]["numberAvailable"]
        == 3
    )
    assert sorted(lab.pods_by_node()) == ["node-1", "node-2", "node-3"]
    assert [verb for verb, name in verbs(summary) if name.startswith("agent-")].count(
        "created"
    ) == 4
    assert settled_checkpoint(lab.cluster, 0) is not None
    assert verbs(lab.settle()) == []


def test_same_start_and_same_commands_give_same_end(tmp_path):
    ends = []
    for name in ("one", "two"):
        lab = Lab(tmp_path / name)
        for number in (1, 2, 3):
            lab.node(f"node-{number}")
        lab.daemon_set("agent", updateStrategy={"rollingUpdate": {"maxUnavailable": 2}})
        lab.settle()
        lab.change("daemonsets.apps", "agent", _set_image, "default")
        lab.settle()
        ends.append(
            {
                str(file.relative_to(tmp_path / name)): file.read_text()
                for file in sorted((tmp_path / name / "namespaces").rglob("*.yaml"))
            }
        )
        lab.cluster.close()
    assert ends[0] == ends[1]


def _set_image(obj: Object) -> None:
    obj["spec"]["template"]["spec"]["containers"][0]["image"] = "agent:2"


def test_daemon_set_is_not_looked_at_again_when_node_is_deleted(lab):
    """Delete a node while no manager runs: the status stays as it was until something about the
    DaemonSet changes."""
    lab.node("node-1")
    lab.node("node-2")
    lab.daemon_set("agent")
    lab.settle()
    lab.client.delete("nodes", "node-2")
    lab.settle()
    assert (
        lab.client.get("daemonsets.apps", "agent", namespace="default")["status"][
            "desiredNumberScheduled"
        ]
        == 2
    )
    lab.change(
        "daemonsets.apps",
        "agent",
        lambda obj: obj["metadata"]["annotations"].update(a="b"),
        "default",
    )
    lab.settle()
    assert (
        lab.client.get("daemonsets.apps", "agent", namespace="default")["status"][
            "desiredNumberScheduled"
        ]
        == 1
    )


def test_taking_files_back_takes_cluster_back(lab, tmp_path):
    lab.node("node-1")
    lab.daemon_set("agent")
    lab.settle()
    file = tmp_path / "state/namespaces/default/daemonsets.apps/agent.yaml"
    before = file.read_text()
    lab.change("daemonsets.apps", "agent", _set_image, "default")
    lab.settle()
    assert lab.pods_by_node()["node-1"]["spec"]["containers"][0]["image"] == "agent:2"
    file.write_text(before)
    lab.settle()
    assert lab.pods_by_node()["node-1"]["spec"]["containers"][0]["image"] == "agent:1"
    assert [name_of(pod) for pod in lab.client.list("pods").items] == [
        name_of(lab.pods_by_node()["node-1"])
    ]


def test_daemon_set_larger_than_one_burst_gets_all_pods(lab):
    with lab.client.joined():
        for number in range(300):
            lab.node(f"node-{number}")
    lab.daemon_set("agent")
    build_manager(lab.cluster).run_until_settled()
    assert len(lab.pods_by_node()) == 300


def test_key_due_during_poll_is_not_waited_for(lab, monkeypatch):
    """Let a sync fall due between the look for work and the look at the clock: the wait must not
    become negative."""
    toy = Toy(lab)
    toy.manager.run_until_settled()
    lab.cluster.clock.own = None
    toy.copier.queue.add_after(Key(CONFIG_MAPS, "default", "late"), 0.001)
    monkeypatch.setattr(
        toy.manager, "_work", lambda done, work=toy.manager._work: (work(done), time.sleep(0.002))
    )
    toy.manager.run_until_settled(1.0)
    assert toy.copier.synced == ["late"]


def test_summary_has_only_what_was_committed(lab, monkeypatch):
    """Let the first commit fail: its file was edited meanwhile. Its copy has another name than that
    which is made then."""
    lab.config_map("a")
    toy = Toy(lab)
    begin = lab.cluster.store.fresh_transaction

    @contextmanager
    def fail_and_edit(max_age: float = 0.0) -> Iterator[Any]:
        monkeypatch.undo()
        with suppress(RuntimeError), begin(max_age) as changes:
            yield changes
            raise RuntimeError("a file was edited")
        lab.client.delete(CONFIG_MAPS, "a", namespace="default")
        lab.config_map("b")
        raise ConflictError("a file was edited")

    monkeypatch.setattr(lab.cluster.store, "fresh_transaction", fail_and_edit)
    changes = toy.manager.run_until_settled().changes()
    assert [(change.verb, change.key.name) for change in changes] == [("created", "copy-of-b")]
