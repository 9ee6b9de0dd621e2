"""Watchers while the index is removed and files are edited under writers: they end with what is
there."""

from __future__ import annotations

import shutil
import threading
import time
from typing import Any

from .conftest import Api
from .test_watch import CONFIG_MAPS, config_map

NAMES = [f"object-{number}" for number in range(6)]
SECONDS = 30.0


class Informer(threading.Thread):
    """A client that lists and watches as client-go does, and lists again after 410.

    :ivar objects: the resourceVersions of the objects that it knows.
    :ivar problems: events that no server may send.
    """

    def __init__(self, api: Api) -> None:
        super().__init__(daemon=True)
        self.api = api
        self.objects: dict[str, str] = {}
        self.problems: list[str] = []
        self.listings = 0
        self.ends_at = ""
        self.start()

    def run(self) -> None:
        while True:
            self.listings += 1
            body = self.api.get(CONFIG_MAPS).json()
            if body["kind"] != "ConfigMapList":
                continue
            self.objects = {
                item["metadata"]["name"]: item["metadata"]["resourceVersion"]
                for item in body["items"]
            }
            if self._watch(body["metadata"]["resourceVersion"]):
                return

    def _watch(self, since: str) -> bool:
        """Watch until the end, or (False) until everything is to be listed again."""
        stream = self.api.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}")
        newest = int(since)
        while (event := stream.event(SECONDS)) is not None:
            if event["type"] == "ERROR":
                break
            metadata = event["object"]["metadata"]
            if int(metadata["resourceVersion"]) <= newest:
                self.problems.append(
                    f"{event['type']} {metadata['name']} {metadata['resourceVersion']} after "
                    f"{newest}"
                )
            newest = int(metadata["resourceVersion"])
            if (event["type"] == "ADDED") == (metadata["name"] in self.objects):
                self.problems.append(
                    f"{event['type']} {metadata['name']}: {self.objects.get(metadata['name'])}"
                )
            if event["type"] == "DELETED":
                self.objects.pop(metadata["name"], None)
            else:
                self.objects[metadata["name"]] = metadata["resourceVersion"]
            if metadata["name"] == "end":
                stream.close()
                return True
        stream.close()
        return False


def write(api: Api, number: int, until: float, answers: list[Any]) -> None:
    """Create, replace and delete objects until a moment."""
    step = number
    while time.monotonic() < until:
        step += 1
        name = NAMES[(step * 7 + number) % len(NAMES)]
        if step % 5 == 0:
            answer = api.delete(f"{CONFIG_MAPS}/{name}")
        else:
            body = config_map(name, step=str(step))
            answer = api.put(f"{CONFIG_MAPS}/{name}", body)
            if answer.status == 404:
                answer = api.post(CONFIG_MAPS, body)
        answers.append(answer.status)


def test_informers_end_with_what_is_there_whatever_happens_to_the_folder(api: Api) -> None:
    informers = [Informer(api) for _ in range(3)]
    answers: list[Any] = []
    until = time.monotonic() + 3.0
    writers = [
        threading.Thread(target=write, args=(api, number, until, answers)) for number in range(4)
    ]
    for writer in writers:
        writer.start()
    files = api.folder / "namespaces" / "default" / "configmaps"
    removals = 0
    while time.monotonic() < until:
        time.sleep(0.4)
        if removals < 3:
            removals += 1
            shutil.rmtree(api.folder / ".kubepy", ignore_errors=True)
        for file in files.glob("*.yaml"):
            try:
                text = file.read_text()
                if "edited" not in text:
                    file.write_text(text.replace("data:\n", "data:\n  edited: 'yes'\n", 1))
            except FileNotFoundError:
                continue
            break
    for writer in writers:
        writer.join()
    revisions: list[str] = []
    while (
        len(revisions) < 2 or revisions[-2] != revisions[-1]
    ):  # the last edits are recorded before the end
        time.sleep(1.0)  # as rarely as the files are looked at on a busy machine
        revisions.append(api.get(CONFIG_MAPS).json()["metadata"]["resourceVersion"])
    assert api.post(CONFIG_MAPS, config_map("end")).status == 201
    for informer in informers:
        informer.join(SECONDS)
        assert not informer.is_alive()
    listed = {
        item["metadata"]["name"]: item["metadata"]["resourceVersion"]
        for item in api.get(CONFIG_MAPS).json()["items"]
    }
    assert answers.count(200) > 10
    for informer in informers:
        assert informer.objects == listed
        assert not informer.problems
