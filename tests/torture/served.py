"""``kubepy serve`` with eight clients that write and watchers that note what they see, while faults
happen.

A point is a round. Clients retry what was not answered; each writes objects of its own, so it knows
what must be there, and all of them increment a counter. Watchers list, watch, and resume from their
last resourceVersion. At the end nothing acknowledged may be lost, all watchers must agree, and each
must have seen every change exactly once.

killed       the server is killed with SIGKILL and started anew on its port, again and again
checkouts    ``git checkout`` of an older state and back
edits        files are edited by hand and broken, ``.kubepy`` is removed, another process applies objects
two-servers  two servers on one folder, with clients and watchers of each
controller   ``controller --watch`` runs already; it is killed, and the server's controllers take over
"""  # noqa: E501

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.storage.yaml import dump
from tests.copies import copy_with_index
from tests.server.conftest import ServerProcess

from .runner import Loss, Outcome, Point, Section

CLIENTS, WATCHERS = 8, 3
OBJECTS = 3  # of each client
SECONDS = 3.5  # that the clients work
ANSWER_SECONDS = 15.0
CATCH_UP_SECONDS = 15.0
ROUNDS = 200
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
COUNTER, END = "counter", "the-end"
UNKNOWN = 0  # the status of a request that was not answered
KILLS = 4
LOGGED = "Warning: "  # lines about the files that others have written
MENDED = "note: "  # lines about a broken file that is in order again, or gone


def config_map(name: str, value: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"a": value},
    }


def value_of(obj: dict[str, Any] | None) -> str | None:
    return None if obj is None else (obj.get("data") or {}).get("a", "")


def revision_of(obj: dict[str, Any]) -> int:
    return int(obj["metadata"]["resourceVersion"])


class Round:
    """What the threads of a round share."""

    def __init__(self, servers: list[ServerProcess], others: list[Process], seed: str) -> None:
        self.servers = servers
        self.others = others
        self.seed = seed
        self.stop = threading.Event()  # the clients
        self.end = threading.Event()  # the watchers
        self.losses: list[str] = []
        self.acknowledged: list[tuple[str, int, str]] = []
        self.counted: list[bool] = []  # each increment of the counter: whether it was acknowledged

    def request(
        self,
        connection: HTTPSConnection | None,
        server: int,
        method: str,
        path: str,
        body: Any = None,
    ) -> tuple[HTTPSConnection | None, int, Any]:
        """Send a request; return the connection for the next one, the status, and the object."""
        headers = {
            "Authorization": f"Bearer {self.servers[server].token}",
            "Content-Type": "application/json",
        }
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        try:
            connection = connection or self.connect(server)
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, HTTPException):
            if connection is not None:
                connection.close()
            time.sleep(0.02)
            return None, UNKNOWN, None
        status = json.loads(data)
        if response.status == 500 or "Traceback" in str(status.get("message")):
            self.losses.append(
                f"{method} {path} is answered with {response.status}: {status.get('message')}"
            )
        if response.status >= 500 or response.status == 429:
            return connection, UNKNOWN, None
        return connection, response.status, status

    def connect(self, server: int) -> HTTPSConnection:
        one = self.servers[server]
        return HTTPSConnection(*one.address, context=one.tls(), timeout=ANSWER_SECONDS)


class Client(threading.Thread):
    """A client that writes objects of its own, and notes what the server has acknowledged."""

    def __init__(self, around: Round, number: int) -> None:
        super().__init__()
        self._round = around
        self._server = number % len(around.servers)
        self._chance = random.Random(f"{around.seed} client {number}")
        self._connection: HTTPSConnection | None = None
        self._values = 0
        self.name = f"c{number}"
        self.objects: dict[str, str | None] = {f"{self.name}-{key}": None for key in range(OBJECTS)}

    def run(self) -> None:
        try:
            while not self._round.stop.is_set():
                if self._chance.random() < 0.2:
                    self._count()
                else:
                    self._write(self._chance.choice(sorted(self.objects)))
        except Exception as error:
            self._round.losses.append(f"client {self.name}: {type(error).__name__}: {error}")
        if self._connection is not None:
            self._connection.close()

    def _request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        self._connection, status, obj = self._round.request(
            self._connection, self._server, method, path, body
        )
        return status, obj

    def _read(self, name: str) -> dict[str, Any] | None:
        """Return an object as soon as the server answers, None if there is none."""
        end = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < end:
            status, obj = self._request("GET", f"{MAPS}/{name}")
            if status != UNKNOWN:
                return obj if status == 200 else None
        raise TimeoutError("the server does not come back")

    def _write(self, name: str) -> None:
        """Change an object that this client alone writes, in a way that must succeed."""
        before, path = self.objects[name], f"{MAPS}/{name}"
        self._values += 1
        value: str | None = f"{self.name}.{self._values}"
        if before is None:
            method, body, path = "POST", config_map(name, str(value)), MAPS
        else:
            method = self._chance.choice(("PUT", "PATCH", "PATCH", "DELETE"))
            body = {"PUT": config_map(name, str(value)), "PATCH": {"data": {"a": value}}}.get(
                method
            )
            value = None if method == "DELETE" else value
        status, obj = self._request(method, path, body)
        if status == UNKNOWN:
            seen = value_of(self._read(name))
            if seen not in (before, value):
                self._round.losses.append(
                    f"{name} was {before}, {method} of {value} was not answered: it is {seen}"
                )
            self.objects[name] = seen
        elif status not in (200, 201):
            message = obj.get("message")
            self._round.losses.append(
                f"{name} is {before}, and {method} is answered with {status}: {message}"
            )
            self.objects[name] = value_of(self._read(name))
        else:
            self.objects[name] = value
            if value is not None:
                self._round.acknowledged.append((name, revision_of(obj), value))

    def _count(self) -> None:
        counter = self._read(COUNTER)
        if counter is None:
            self._round.losses.append("the counter is gone")
            return
        counter["data"] = {"a": str(int(counter["data"]["a"]) + 1)}
        status, obj = self._request("PUT", f"{MAPS}/{COUNTER}", counter)
        if status in (200, UNKNOWN):
            self._round.counted.append(status == 200)
            if status == 200:
                self._round.acknowledged.append((COUNTER, revision_of(obj), counter["data"]["a"]))
        elif status != 409:
            self._round.losses.append(f"counting is answered with {status}: {obj.get('message')}")


class Event(NamedTuple):
    type: str
    name: str
    revision: int
    value: str | None


class Stretch(NamedTuple):
    """What a watcher has seen from a list on, until its revision was too old."""

    start: int
    listed: dict[str, str | None]
    events: list[Event]


class Watcher(threading.Thread):
    """A client that lists and watches, and resumes from the last resourceVersion that it has
    seen."""

    def __init__(self, around: Round, number: int) -> None:
        super().__init__()
        self._round = around
        self._server = number % len(around.servers)
        self._chance = random.Random(f"{around.seed} watcher {number}")
        self.name = f"w{number}"
        self.stretches: list[Stretch] = []
        self.revision = 0  # 0: a list comes first

    def run(self) -> None:
        try:
            while not self._round.end.is_set():
                try:
                    if not self.revision:
                        self._list()
                    self._watch()
                except (OSError, HTTPException):
                    time.sleep(0.02)
        except Exception as error:
            self._round.losses.append(f"watcher {self.name}: {type(error).__name__}: {error}")

    def _list(self) -> None:
        connection, status, listed = self._round.request(None, self._server, "GET", MAPS)
        if connection is not None:
            connection.close()
        if status == 200:
            self.revision = int(listed["metadata"]["resourceVersion"])
            items = {item["metadata"]["name"]: value_of(item) for item in listed["items"]}
            self.stretches.append(Stretch(self.revision, items, []))

    def _watch(self) -> None:
        if not self.revision:
            return
        connection = self._round.connect(self._server)
        seconds = self._chance.choice((1, 2, 30))
        try:
            connection.request(
                "GET",
                f"{MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&"
                f"resourceVersion={self.revision}",
                headers={"Authorization": f"Bearer {self._round.servers[self._server].token}"},
            )
            response = connection.getresponse()
            if response.status == 410:
                self.revision = 0
            while (
                response.status == 200
                and not self._round.end.is_set()
                and (line := response.readline())
            ):
                if not self._note(json.loads(line)):
                    return
        finally:
            connection.close()

    def _note(self, event: dict[str, Any]) -> bool:
        obj = event["object"]
        if event["type"] == "ERROR":
            if obj["code"] != 410:
                self._round.losses.append(f"watcher {self.name} is told: {obj.get('message')}")
            self.revision = 0
            return False
        self.revision = revision_of(obj)
        if event["type"] != "BOOKMARK":
            value = None if event["type"] == "DELETED" else value_of(obj)
            self.stretches[-1].events.append(
                Event(event["type"], obj["metadata"]["name"], self.revision, value)
            )
            if obj["metadata"]["name"] == END:
                self._round.end.wait(CATCH_UP_SECONDS)
                return False
        return True

    def has_seen_the_end(self) -> bool:
        return any(
            event.name == END for stretch in self.stretches[-1:] for event in stretch.events
        ) or (bool(self.stretches) and END in self.stretches[-1].listed)


# --- checks ---------------------------------------------------------------------------------------


def check_watchers(
    stretches: dict[str, list[Stretch]],
    acknowledged: Iterable[tuple[str, int, str]],
    final: dict[str, str | None],
    scenario: Scenario,
) -> Iterator[str]:
    """Yield what is wrong in the histories of watchers: order, duplicates, losses, differences
    between them.

    :param final: the objects at the end.
    """
    history: dict[tuple[str, int], Event] = {}
    for watcher, own in stretches.items():
        for event in (event for stretch in own for event in stretch.events):
            known = history.setdefault((event.name, event.revision), event)
            if known.value != event.value or (known.type == "DELETED") != (event.type == "DELETED"):
                yield f"watcher {watcher} has seen {event}, another {known}"
    for watcher, own in stretches.items():
        for stretch in own:
            yield from (
                f"watcher {watcher} {loss}" for loss in _check_stretch(stretch, history, scenario)
            )
        if own and (seen := _state_after(own[-1])) != final:
            yield (
                f"watcher {watcher} ends with {seen.items() - final.items()} instead of "
                f"{final.items() - seen.items()}"
            )
    if scenario.coalesced:
        return
    first = min((own[0].start for own in stretches.values() if own), default=0)
    last = max((revision for _, revision in history), default=0)
    has_gaps = all(len(own) > 1 for own in stretches.values())
    for name, revision, value in acknowledged:
        seen = history.get((name, revision))
        if first < revision <= last and (seen.value != value if seen else not has_gaps):
            yield f"no watcher has seen {name} of {revision} with {value}: {seen}"


def _state_after(stretch: Stretch) -> dict[str, str | None]:
    state = dict(stretch.listed)
    for event in stretch.events:
        if event.type == "DELETED":
            state.pop(event.name, None)
        else:
            state[event.name] = event.value
    return state


def _check_stretch(
    stretch: Stretch, history: dict[tuple[str, int], Event], scenario: Scenario
) -> Iterator[str]:
    revisions: dict[str, int] = {}
    present = set(stretch.listed)
    previous = stretch.start
    for event in stretch.events:
        if event.revision <= revisions.get(event.name, stretch.start):
            yield f"has seen {event} after {revisions.get(event.name, stretch.start)}"
        if event.revision < previous:
            yield f"has seen {event} after something of {previous}"
        previous = revisions[event.name] = event.revision
        if (event.type == "ADDED") == (event.name in present) and event.name not in scenario.broken:
            state = (
                f"was {'' if event.name in present else 'not '}there, after a list of "
                f"{stretch.start}"
            )
            earlier = [
                other
                for other in stretch.events[: stretch.events.index(event)]
                if other.name == event.name
            ]
            yield f"has seen {event}, though {event.name} {state} and {earlier}"
        (present.discard if event.type == "DELETED" else present.add)(event.name)
    seen = {(event.name, event.revision) for event in stretch.events}
    for name, revision in [] if scenario.coalesced else sorted(history, key=lambda key: key[1]):
        if stretch.start < revision <= previous and (name, revision) not in seen:
            yield f"has missed {history[name, revision]} between {stretch.start} and {previous}"


def check_objects(
    around: Round, clients: list[Client], listed: dict[str, str | None]
) -> Iterator[str]:
    """Yield what is not there as its client knows it."""
    for name, value in (
        (name, value) for client in clients for name, value in client.objects.items()
    ):
        if listed.get(name) != value:
            yield f"{name} is {listed.get(name)}, not {value}"
    count, acknowledged = int(listed.get(COUNTER) or -1), sum(around.counted)
    if not acknowledged <= count <= len(around.counted):
        yield (
            f"the counter is at {count} after {acknowledged} acknowledged of "
            f"{len(around.counted)} increments"
        )


# --- faults ---------------------------------------------------------------------------------------

Fault = Callable[[Round, Path, random.Random], None]


def _kill(around: Round, state: Path, chance: random.Random) -> None:
    """Kill the server and start it anew; the port, the CA and the token must be the same."""
    server = around.servers[0]
    port, token, certificates = server.address[1], server.token, server.config["clusters"]
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.2, 2 * SECONDS / KILLS))
        around.servers[0].stop(signal.SIGKILL)
        around.servers[0] = again = ServerProcess(state, "--controllers=off", f"--port={port}")
        if (again.token, again.config["clusters"]) != (token, certificates):
            around.losses.append("a server that is started anew has another CA or token")


def _git(state: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-C", str(state), *words],
        check=True,
        capture_output=True,
    )


def _check_out(around: Round, state: Path, chance: random.Random) -> None:
    """Go back and forth between two commits, in which objects are added, changed and removed."""
    for number in range(6):
        time.sleep(chance.uniform(0.1, SECONDS / 6))
        older = number % 2 == 0
        _git(state, "checkout", "-q", "-f", "older" if older else "newer")
        expected = {"kept": "1", "removed": "1"} if older else {"kept": "2", "added": "2"}
        _await_objects(around, expected, {"kept", "removed", "added"}, "checkout")


def _await_objects(around: Round, expected: dict[str, str], names: set[str], fault: str) -> None:
    """Wait until the server shows objects as the files have them."""
    end, seen = time.monotonic() + CATCH_UP_SECONDS, None
    while time.monotonic() < end:
        items = around.servers[0].request("GET", MAPS).json().get("items") or []
        seen = {
            item["metadata"]["name"]: value_of(item)
            for item in items
            if item["metadata"]["name"] in names
        }
        if seen == expected:
            return
    around.losses.append(f"after {fault} the server shows {seen}, not {expected}")


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text)
    temporary.replace(path)


def _edit(around: Round, state: Path, chance: random.Random) -> None:
    """Edit, break and mend a file; remove .kubepy; apply an object with the command line."""
    [path] = state.rglob("kept.yaml")
    for number in range(3, 6):
        time.sleep(chance.uniform(0.1, 0.4))
        text = path.read_text()
        _replace(path, "{" + text)
        time.sleep(chance.uniform(0.05, 0.2))
        _replace(path, text.replace("a: ", f"a: '{number}' #", 1))
        _await_objects(around, {"kept": str(number)}, {"kept"}, "an edit")
        _replace(path.parent / f"added-{number}.yaml", dump(config_map(f"added-{number}", "x")))
        _await_objects(around, {f"added-{number}": "x"}, {f"added-{number}"}, "a new file")
        if number == 4:
            while (state / ".kubepy").exists():  # others are making files in it
                shutil.rmtree(state / ".kubepy", ignore_errors=True)
        manifest = state.parent / "applied.yaml"
        manifest.write_text(dump(config_map(f"applied-{number}", "y")))
        done = subprocess.run(
            [sys.executable, "-m", "kubepy", "--state", str(state), "apply", "-f", str(manifest)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            around.losses.append(f"kubepy apply ends with {done.stderr}")
        _await_objects(around, {f"applied-{number}": "y"}, {f"applied-{number}"}, "kubepy apply")


def _wait(around: Round, state: Path, chance: random.Random) -> None:
    time.sleep(SECONDS)


def _scale(around: Round, state: Path, chance: random.Random) -> None:
    """Scale a Deployment up and down; half way the process that runs the controllers is killed, and
    the server's own take over."""
    [controller] = around.others
    try:
        labels = {"app": "web"}
        answer = around.servers[0].request(
            "POST",
            DEPLOYMENTS,
            {
                "metadata": {"name": "web"},
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "c", "image": "i"}]},
                    },
                },
            },
        )
        if answer.status != 201:
            around.losses.append(f"the Deployment is refused: {answer.body!r}")
        for replicas in (3, 1, 4):
            _, status, _ = around.request(
                None, 0, "PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": replicas}}
            )
            end = time.monotonic() + CATCH_UP_SECONDS
            while (
                ready := around.servers[0]
                .request("GET", f"{DEPLOYMENTS}/web")
                .json()["status"]
                .get("readyReplicas")
            ) != replicas and time.monotonic() < end:
                time.sleep(0.05)
            controller.kill()
            if ready != replicas:
                around.losses.append(f"{ready} of {replicas} replicas are ready (scaled: {status})")
        pods = [
            pod
            for pod in around.servers[0]
            .request("GET", "/api/v1/namespaces/default/pods")
            .json()["items"]
            if "deletionTimestamp" not in pod["metadata"]
        ]
        if len(pods) != 4:
            around.losses.append(f"there are {len(pods)} pods, not 4")
    finally:
        controller.kill()
        if errors := controller.communicate()[1]:
            around.losses.append(f"the controller says {errors}")


class Scenario(NamedTuple):
    """A fault, and what may be otherwise than without it.

    :param log: the beginnings of the lines that the server's log may have.
    :param coalesced: other processes write the same objects: several changes of one may come as
        one.
    :param broken: objects whose files cannot be read for a while: lists leave them out meanwhile,
        watches do not.
    :param controllers: another process runs the controllers, which the server would as well.
    """

    fault: Fault
    servers: int = 1
    log: tuple[str, ...] = ()
    coalesced: bool = False
    broken: frozenset[str] = frozenset()
    controllers: bool = False


Process = subprocess.Popen[str]
SCENARIOS = {
    "killed": Scenario(_kill),
    "checkouts": Scenario(_check_out, log=(LOGGED, MENDED)),
    "edits": Scenario(
        _edit, log=(LOGGED, MENDED, "error: controllers: "), broken=frozenset(("kept",))
    ),
    "two-servers": Scenario(_wait, servers=2, coalesced=True),
    "controller": Scenario(_scale, controllers=True, coalesced=True),
}


# --- running a point ---


def set_up(name: str, place: Path, seed: int) -> list[Point]:
    """Make a folder with two commits; the newer one is checked out."""
    state = place / "state"
    cluster = make_cluster(state, {})
    client = cluster.client
    client.create("nodes", {"metadata": {"name": "n"}})
    for other, value in ((COUNTER, "0"), ("kept", "1"), ("removed", "1")):
        client.create("configmaps", config_map(other, value), namespace="default")
    cluster.close()
    if name == "checkouts":
        _git(state, "init", "-q", "-b", "older")
        (state / ".git" / "info" / "exclude").write_text(
            f".kubepy\n{COUNTER}.yaml\nc[0-9]*-[0-9].yaml\n{END}.yaml\n"
        )
        _git(state, "add", "-A")
        _git(state, "commit", "-qm", "older")
        _git(state, "checkout", "-q", "-b", "newer")
        cluster = open_cluster(state)
        kept = cluster.client.get("configmaps", "kept", namespace="default")
        cluster.client.update("configmaps", {**kept, "data": {"a": "2"}}, namespace="default")
        cluster.client.delete("configmaps", "removed", namespace="default")
        cluster.client.create("configmaps", config_map("added", "2"), namespace="default")
        cluster.close()
        _git(state, "add", "-A")
        _git(state, "commit", "-qm", "newer")
    return [Point(name, str(number)) for number in range(ROUNDS)]


@contextmanager
def _serving(
    state: Path, scenario: Scenario
) -> Iterator[tuple[list[ServerProcess], list[Process]]]:
    servers: list[ServerProcess] = []
    others: list[Process] = []
    try:
        if scenario.controllers:
            others.append(_start_controllers(state))
        for _ in range(scenario.servers):
            servers.append(
                ServerProcess(state, f"--controllers={'on' if scenario.controllers else 'off'}")
            )
        yield servers, others
    finally:
        for process in (*others, *(server.process for server in servers)):
            if process.poll() is None:
                process.kill()
            with suppress(ValueError):
                process.communicate()


def _start_controllers(state: Path) -> Process:
    process = subprocess.Popen(
        [sys.executable, "-m", "kubepy", "--state", str(state), "controller", "--watch", "-q"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + CATCH_UP_SECONDS
    while not (state / ".kubepy" / "manager.lock.holder").exists() and time.monotonic() < end:
        time.sleep(0.01)
    return process


def run(point: Point, place: Path, folder: Path, seed: int) -> Outcome:
    state, scenario = folder / "state", SCENARIOS[point.scenario]
    copy_with_index(place / "state", state)
    with _serving(state, scenario) as (servers, others):
        around = Round(servers, others, f"{seed} {point.name}")
        clients = [Client(around, number) for number in range(CLIENTS)]
        watchers = [Watcher(around, number) for number in range(WATCHERS)]
        for thread in (*watchers, *clients):
            thread.start()
        try:
            scenario.fault(around, state, random.Random(around.seed))
        finally:
            around.stop.set()
            for client in clients:
                client.join()
            _end(around, watchers)
        final = {
            item["metadata"]["name"]: value_of(item)
            for item in around.servers[0].request("GET", MAPS).json()["items"]
        }
        around.losses += check_objects(around, clients, final)
        around.losses += check_watchers(
            {watcher.name: watcher.stretches for watcher in watchers},
            around.acknowledged,
            final,
            scenario,
        )
        around.losses += _check_servers(servers, scenario)
    around.losses += _check_folder(state)
    losses = [loss.replace(f"{folder}/", "") for loss in dict.fromkeys(around.losses)]
    return Outcome(
        len(around.acknowledged), [Loss(point.scenario, point.name, loss) for loss in losses]
    )


def _end(around: Round, watchers: list[Watcher]) -> None:
    """Make a last change, and wait until all watchers have seen it."""
    around.servers[0].request("POST", MAPS, config_map(END, ""))
    end = time.monotonic() + CATCH_UP_SECONDS
    while not all(watcher.has_seen_the_end() for watcher in watchers) and time.monotonic() < end:
        time.sleep(0.02)
    around.losses += [
        f"watcher {watcher.name} has not seen the last change"
        for watcher in watchers
        if not watcher.has_seen_the_end()
    ]
    around.end.set()
    for watcher in watchers:
        watcher.join()


def _check_servers(servers: list[ServerProcess], scenario: Scenario) -> Iterator[str]:
    for server in servers:
        status, log = server.stop()
        if status:
            yield f"the server ends with {status}"
        for line in log.splitlines():
            if not line.startswith(scenario.log or ("\0",)):
                yield f"the server logs {line}"


def _check_folder(state: Path) -> Iterator[str]:
    done = subprocess.run(
        [sys.executable, "-m", "kubepy", "--state", str(state), "fsck"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        yield f"kubepy fsck: {done.stdout}{done.stderr}"


SECTION = Section("served", tuple(SCENARIOS), set_up, run, minutes=4, alone=True)
