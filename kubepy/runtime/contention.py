"""Contention: controllers that undo each other's work, and how long they wait once it is clear that
this has no end.

A ReplicaSet whose pods name a node with a NoExecute taint makes a pod, taint eviction deletes it,
and so on; two autoscalers set the size of one Deployment back and forth. In a real cluster such
controllers go on as fast as they can. Here nothing else would ever be done at that moment, so after
about :data:`MOST_ROUNDS` rounds the controller whose work is undone waits: a second, then twice as
long after each further round, up to :data:`LONGEST_WAIT`. It is released by whatever may end the
contention: a change that somebody else than a controller makes, another spec of a node.

Two kinds are recognised. Neither bounds work that gets on, however much of it there is at one
moment:

- *pods*: what a controller creates is ended by another one before it has lived for a moment. A
  round is over when as many pods were undone as the owner has at a time.
- *specs*: a controller gives an object the very spec again that it gave it before another one
  changed it.

A third kind needs no wait, since time goes on: pods that live for a while, and are then ended by
another controller, again and again at intervals (a toleration that runs out). After
:data:`MOST_ROUNDS` rounds it is a contest, so that predictions know that it has no end.

The manager tells a :class:`Contention` of each write, and keeps its memory in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from kubepy.api.clock import format_micro_time, later, parse_time
from kubepy.api.meta import AnyObject, Object, controller_of, is_being_deleted, uid_of
from kubepy.api.objects.pods import is_pod_active, is_pod_ready, phase_of
from kubepy.api.values.goformat import format_duration
from kubepy.api.watch import WatchEvent
from kubepy.storage import Key

MOST_ROUNDS = 100
# Of an owner with many pods so many undone pods are enough, and at least so many rounds: 100 rounds
# of 10,000 pods would take minutes.
MANY_UNDONE = 2_000
FEWEST_ROUNDS = 3
LONGEST_WAIT = 1000.0  # seconds: that of a sync that fails again and again, too
MOMENT = 2.0  # seconds for which a pod must have been there to have lived
PATIENCE = 60.0  # seconds after a wait in which the next round still belongs to the contention
# Seconds between two rounds of a contest at intervals: with shorter ones the maker waits, and with
# longer ones nobody can tell it from what happens now and then.
SHORTEST_INTERVAL = 1.0
LONGEST_INTERVAL = 3600.0
FEW = 1000  # owners and objects that are kept in mind though nothing of theirs was undone
PODS = "pods"
NODES = "nodes"


class Party(NamedTuple):
    """A controller at work on one object: the name of the reconciler, and the key that it syncs."""

    reconciler: str
    key: Key


class Contest(NamedTuple):
    """Two controllers that undo each other's work.

    :ivar subject: the object that they are at odds about: the owner of the pods, or the object with
        the spec.
    :ivar maker: the one whose work is undone, and who waits; ``work``: what it does, as a
        predicate.
    :ivar undoer: the one who undoes it; ``undoing``: what it does.
    :ivar rounds: how often that has happened.
    :ivar interval: seconds from one round to the next where time goes on between them; else 0.
    """

    subject: Key
    maker: Party
    work: str
    undoer: Party
    undoing: str
    rounds: int
    interval: float = 0.0

    @property
    def sentence(self) -> str:
        """Say for a reader what happens: both controllers, and what each does to what."""
        if self.interval:
            return (
                f"two controllers undo each other's work on {self.subject.place} without end, "
                f"{self.times}: {self.deeds}"
            )
        return (
            f"two controllers undo each other's work on {self.subject.place}, {self.rounds} times "
            f"by now: "
            f"{self.deeds}; they wait longer after each further round"
        )

    @property
    def times(self) -> str:
        """How often it has happened, and how fast it does."""
        if not self.interval:
            return f"{self.rounds} times by now"
        interval = format_duration(round(self.interval, 1))
        return f"{self.rounds} times by now, every {interval}"

    @property
    def deeds(self) -> str:
        """Say what each of the two does."""
        return (
            f"{_named(self.maker, self.subject)} {self.work}, "
            f"{_named(self.undoer, self.subject)} {self.undoing}"
        )


def _named(party: Party, subject: Key) -> str:
    """Return the name of a controller, and that of its object where the subject does not tell."""
    if party.key == subject or party.key.resource == PODS:
        return party.reconciler
    return f"{party.reconciler} for {party.key.resource}/{party.key.name}"


class Wait(NamedTuple):
    """A contest whose maker waits.

    :ivar level: how many rounds there have been since the contest was recognised: each doubles the
        wait.
    :ivar until: the moment at which the maker may go on.
    :ivar is_released: it may go on because something has changed, and nobody knows yet whether that
        ends the contest.
    """

    contest: Contest
    level: int
    until: datetime
    is_released: bool = False

    @property
    def seconds(self) -> float:
        return min(2.0 ** min(self.level, 30), LONGEST_WAIT)

    @property
    def is_longest(self) -> bool:
        return self.seconds == LONGEST_WAIT

    def is_over(self, now: datetime) -> bool:
        """Return whether the maker has gone on so long ago that what is undone now is another
        matter."""
        return now > later(self.until, self.seconds + PATIENCE)


class Cycle(NamedTuple):
    """A contest at intervals.

    :ivar at: the moment of its last round.
    """

    contest: Contest
    at: datetime

    def is_over(self, now: datetime) -> bool:
        """Return whether the next round should have come by now."""
        return now > later(self.at, 2 * self.contest.interval + PATIENCE)


class EndedPods:
    """The pods of an owner that one controller has ended, whether or not they had lived.

    :ivar number: how many; ``begun`` and ``at``: when it ended the first and the last of them.
    """

    def __init__(self, undoer: str, now: datetime) -> None:
        self.undoer = undoer
        self.number = 1
        self.begun = self.at = now

    def goes_on(self, undoer: str, now: datetime) -> bool:
        """Return whether a pod that is ended now belongs to the same rounds."""
        return self.undoer == undoer and now <= later(self.at, LONGEST_INTERVAL)


class PodsOfOwner:
    """The pods that a controller has made for an owner.

    :ivar active: how many of them are there; ``most``: how many there were at a time.
    :ivar undone: how many were ended by others before they lived, less those that time makes up
        for.
    :ivar at: when ``undone`` was counted last.
    :ivar ended: those that another controller has ended, however long they had lived.
    """

    def __init__(self, maker: Party, now: datetime) -> None:
        self.maker = maker
        self.active = 0
        self.most = 0
        self.undone = 0.0
        self.at = now
        self.ended: EndedPods | None = None

    def end(self, undoer: str, now: datetime) -> tuple[int, float]:
        """Count a pod that another controller has ended; return how many rounds it has ended by
        now, and the seconds from one to the next."""
        if self.ended is None or not self.ended.goes_on(undoer, now):
            self.ended = EndedPods(undoer, now)
            return 0, 0.0
        self.ended.number += 1
        self.ended.at = now
        rounds = self.ended.number // max(self.most, 1)
        return rounds, (now - self.ended.begun).total_seconds() / max(rounds - 1, 1)

    def add(self) -> None:
        self.active += 1
        self.most = max(self.most, self.active)

    def remove(self) -> None:
        self.active = max(self.active - 1, 0)

    def undo(self, now: datetime) -> None:
        """Count an undone pod. A round a second is no burst: a real cluster has time for it."""
        passed = max((now - self.at).total_seconds(), 0.0)
        self.undone = max(self.undone - passed * self.most, 0.0) + 1
        self.at = now

    @property
    def rounds(self) -> int:
        return round(self.undone / max(self.most, 1))

    @property
    def is_endless(self) -> bool:
        if self.undone >= MOST_ROUNDS * self.most:
            return True
        if self.undone < MANY_UNDONE:
            return False
        return self.undone >= FEWEST_ROUNDS * self.most


class SpecOfObject:
    """The specs that controllers have given an object.

    :ivar given: the last spec of each; ``last``: who gave the present one.
    :ivar undone: how often the spec of each was undone.
    """

    def __init__(self) -> None:
        self.given: dict[Party, Object] = {}
        self.last: Party | None = None
        self.undone: dict[Party, int] = {}


class Contention:
    """Notices contests among the writes of controllers, and has makers wait.

    :param now: the cluster's time.
    :param hold: keeps a party from its key until a moment; the flag says that the wait does not get
        longer any more.
    :param release: lets a party go on at once.
    :ivar noticed: the contests because of which somebody waits since this was last emptied, by
        their subjects.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        hold: Callable[[Party, datetime, bool], None],
        release: Callable[[Party], None],
    ) -> None:
        self._now = now
        self._hold = hold
        self._release = release
        self._owners: dict[str, PodsOfOwner] = {}  # by uid
        self._specs: dict[Key, SpecOfObject] = {}
        self._waits: dict[tuple[Key, Party], Wait] = {}  # by subject and maker
        self._cycles: dict[Key, Cycle] = {}  # by subject
        self.noticed: dict[Key, Contest] = {}

    def note(self, change: WatchEvent, party: Party) -> None:
        """Take notice of a write that a controller has made."""
        if change.key.resource == PODS:
            self._note_pod(change, party)
        elif (
            change.old is not None
            and change.new is not None
            and _has_new_spec(change.old, change.new)
        ):
            self._note_spec(change.key, change.old, change.new, party)
        elif change.old is not None and change.new is None:
            self._note_deletion(change.key, change.old)

    def _note_deletion(self, key: Key, old: Object) -> None:
        """Forget an object that has gone, and its pods unless some were undone."""
        self._specs.pop(key, None)
        uid = uid_of(old)
        pods = self._owners.get(uid)
        if pods is not None and not pods.undone:
            del self._owners[uid]

    def change_outside(self) -> None:
        """Let all makers go on: somebody else than a controller has changed something."""
        self._release_all()
        self._cycles.clear()
        for pods in self._owners.values():
            pods.ended = None

    def _release_all(self, beside: Key | None = None) -> None:
        """Let all makers go on but those that are at odds about one object."""
        now = self._now()
        for place, wait in self._waits.items():
            if wait.until > now and wait.contest.subject != beside:
                self._waits[place] = wait._replace(until=now, is_released=True)
                self._release(wait.contest.maker)

    # --- pods

    def _note_pod(self, change: WatchEvent, party: Party) -> None:
        pod = change.old or change.new
        controller = controller_of(pod) if pod is not None else None
        if pod is None or controller is None:
            return
        if change.old is None:
            pods = self._owners.get(controller["uid"])
            if pods is None:
                pods = self._owners[controller["uid"]] = self._new_owner(party)
            pods.add()
        elif is_pod_active(change.old) and (change.new is None or not is_pod_active(change.new)):
            self._note_end(controller["uid"], change.old, change.new, party)

    def _new_owner(self, maker: Party) -> PodsOfOwner:
        """Begin with an owner; forget others if there are many."""
        if len(self._owners) >= FEW:
            self._owners = {
                uid: pods for uid, pods in self._owners.items() if pods.undone or pods.ended
            }
        return PodsOfOwner(maker, self._now())

    def _note_end(self, owner: str, old: Object, new: Object | None, party: Party) -> None:
        """Take notice of a pod that a controller has ended."""
        pods = self._owners.get(owner)
        if pods is None:
            return
        pods.remove()
        now = self._now()
        maker = pods.maker
        if party.reconciler == maker.reconciler or _is_counted_by_owner(old, new):
            return
        work = "creates pods"
        undoing = _end_of(new)
        rounds, interval = pods.end(party.reconciler, now)
        if rounds >= MOST_ROUNDS and interval >= SHORTEST_INTERVAL:
            contest = Contest(maker.key, maker, work, party, undoing, rounds, interval)
            self._cycles[maker.key] = Cycle(contest, now)
        if _has_lived(old, now):
            return
        pods.undo(now)
        contest = Contest(maker.key, maker, work, party, undoing, pods.rounds)
        self._note_round(contest, now, is_endless=pods.is_endless)

    # --- specs

    def _note_spec(self, key: Key, old: Object, new: Object, party: Party) -> None:
        if key.resource == NODES:
            self._release_all(beside=key)
        if len(self._specs) >= FEW:
            self._specs = {key: spec for key, spec in self._specs.items() if len(spec.given) > 1}
        spec = self._specs.setdefault(key, SpecOfObject())
        maker = spec.last
        if maker is not None and maker != party and spec.given.get(party) == new["spec"]:
            rounds = spec.undone[maker] = spec.undone.get(maker, 0) + 1
            field, was, becomes = first_difference(old["spec"], new["spec"])
            contest = Contest(key, maker, f"sets {field} to {was}", party, f"to {becomes}", rounds)
            self._note_round(contest, self._now(), is_endless=rounds >= MOST_ROUNDS)
        spec.given[party], spec.last = new["spec"], party

    # --- waits

    def _note_round(self, contest: Contest, now: datetime, *, is_endless: bool) -> None:
        """Have the maker wait, longer than last time, where the contest has no end."""
        place = contest.subject, contest.maker
        wait = self._waits.get(place)
        if wait is not None and wait.is_over(now):
            del self._waits[place]
            wait = None
        if wait is None:
            if not is_endless:
                return
            wait = Wait(contest, 0, now)
        elif now >= wait.until:
            same = contest if wait.is_released else wait.contest
            wait = Wait(
                same._replace(rounds=wait.contest.rounds + 1),
                wait.level + 1,
                now,
            )

        if wait.until <= now:
            wait = wait._replace(until=later(now, wait.seconds))
        self._waits[place] = wait
        self._hold(contest.maker, wait.until, wait.is_longest)
        self.noticed[contest.subject] = wait.contest

    # --- memory

    def remember(self) -> Any:
        """Return the memory as JSON; something false for none."""
        now = self._now()
        owners = [
            [
                uid,
                _party_to_json(pods.maker),
                pods.active,
                pods.most,
                pods.undone,
                format_micro_time(pods.at),
            ]
            for uid, pods in self._owners.items()
            if pods.undone
        ]
        waits = [
            [
                *_contest_to_json(wait.contest),
                wait.level,
                format_micro_time(wait.until),
                wait.is_released,
            ]
            for wait in self._waits.values()
            if not wait.is_over(now)
        ]
        cycles = [
            [
                *_contest_to_json(cycle.contest),
                cycle.contest.interval,
                format_micro_time(cycle.at),
            ]
            for cycle in self._cycles.values()
            if not cycle.is_over(now)
        ]
        memory = {"owners": owners, "waits": waits, "cycles": cycles}
        return {name: part for name, part in memory.items() if part}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on from what ``remember`` returned in another process."""
        for uid, maker, active, most, undone, at in memory.get("owners", ()):
            pods = self._owners[uid] = PodsOfOwner(_party_from_json(maker), parse_time(at))
            pods.active = active
            pods.most = most
            pods.undone = undone
        for wait in waits_of(memory):
            self._waits[wait.contest.subject, wait.contest.maker] = wait
            if wait.until > self._now():
                self._hold(wait.contest.maker, wait.until, wait.is_longest)
        for cycle in cycles_of(memory):
            self._cycles[cycle.contest.subject] = cycle


def cycles_of(memory: Mapping[str, Any]) -> list[Cycle]:
    """Read the contests at intervals from the memory of a :class:`Contention`."""
    return [
        Cycle(_contest_from_json(contest)._replace(interval=interval), parse_time(at))
        for *contest, interval, at in memory.get("cycles", ())
    ]


def waits_of(memory: Mapping[str, Any]) -> list[Wait]:
    """Read the waits from the memory of a :class:`Contention`."""
    return [
        Wait(_contest_from_json(contest), level, parse_time(until), is_released)
        for *contest, level, until, is_released in memory.get("waits", ())
    ]


def _has_new_spec(old: Object, new: Object) -> bool:
    """Tell whether a write has changed what is asked for, and not only what was observed. Nodes
    have no generation."""
    if new["kind"] == "Node":
        return bool(old.get("spec") != new.get("spec"))
    generation = new["metadata"].get("generation")
    if generation is None:
        return False
    if generation == old["metadata"].get("generation"):
        return False
    return "spec" in old


def _has_lived(pod: AnyObject, now: datetime) -> bool:
    created = pod["metadata"].get("creationTimestamp")
    if not bool(created):
        return False
    if not is_pod_ready(pod):
        return False
    return (now - parse_time(created)).total_seconds() >= MOMENT


def _is_counted_by_owner(old: AnyObject, new: AnyObject | None) -> bool:
    """Tell whether the end of a pod is what it was made for: a Job counts pods that succeed, and
    those that fail."""
    controller = controller_of(old)
    is_of_job = controller is not None and controller["kind"] == "Job"
    if not is_of_job:
        return False
    if new is None:
        return False
    return not is_being_deleted(new)


def _end_of(pod: AnyObject | None) -> str:
    """Return what was done to a pod, as a predicate."""
    if pod is None or is_being_deleted(pod):
        return "deletes them"
    status = pod.get("status") or {}
    end = f"ends them: {phase_of(pod)}"
    if status.get("reason"):
        end += f", {status['reason']}"
    return end


def first_difference(old: Any, new: Any, path: str = "spec") -> tuple[str, Any, Any]:
    """Return the first field in which two specs differ, and its values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            before = old.get(name)
            after = new.get(name)
            if before != after:
                return first_difference(before, after, f"{path}.{name}")
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, before in enumerate(old):
            after = new[index]
            if before != after:
                return first_difference(before, after, f"{path}[{index}]")
    return path, _shown(old), _shown(new)


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "something else"
    return str(value)


# --- JSON -----------------------------------------------------------------------------------------


def _party_to_json(party: Party) -> list[str]:
    return [party.reconciler, *party.key]


def _party_from_json(words: list[str]) -> Party:
    return Party(words[0], Key(*words[1:]))


def _contest_to_json(contest: Contest) -> list[Any]:
    return [
        list(contest.subject),
        _party_to_json(contest.maker),
        contest.work,
        _party_to_json(contest.undoer),
        contest.undoing,
        contest.rounds,
    ]


def _contest_from_json(parts: list[Any]) -> Contest:
    subject, maker, work, undoer, undoing, rounds = parts
    return Contest(
        Key(*subject), _party_from_json(maker), work, _party_from_json(undoer), undoing, rounds
    )
