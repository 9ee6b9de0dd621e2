"""The folder of a challenge: a state folder with the broken cluster, and in it the file by which it
is judged.

The file is in the state folder itself, so that a fork of the cluster can be judged as well.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from kubepy.api.clock import format_exact_time
from kubepy.apiserver.strict_fields import field_error, parse_fields, parse_text, shown
from kubepy.controlplane.open import copy_cluster
from kubepy.demo.preparation import prepare
from kubepy.demo.scenarios import Scenario, ScenarioFile, scenario_file
from kubepy.quoting import printable
from kubepy.storage import FolderError, yaml

RECORD = "challenge.txt"  # in the state folder
STATE = "state"  # the state folder in the folder of a challenge: commands find it there
HEAD = "# A challenge of kubepy demo: kubepy demo grade judges the cluster in this folder by it.\n"
FOR_AUTHORS = ("solution", "mistakes")  # fields that a learner does not get
_FIELDS = ("name", "seed", "began", "challenge")


class Challenge(NamedTuple):
    """A challenge that somebody is at work on.

    :ivar file: without the solution.
    :ivar began: the cluster's time at which the learner has begun, RFC 3339.
    """

    file: ScenarioFile
    seed: int
    began: str

    def scenario(self) -> Scenario:
        """Return the challenge with the values that the seed has drawn."""
        return self.file.drawn(self.seed, self.began)


def make_challenge(file: ScenarioFile, seed: int, folder: str) -> Scenario:
    """Make the broken cluster of a challenge in the folder ``state`` of a new folder. Raises
    FolderError where that is not new, or the challenge fails."""
    if os.path.lexists(folder) and not _is_empty_folder(folder):
        raise FolderError(printable(f"{folder}: is there already: name another folder"))
    cluster, scenario = prepare(file, seed)
    place = os.path.join(folder, STATE)
    try:
        os.makedirs(folder, exist_ok=True)
        with cluster._open() as local:
            copy_cluster(local, place)
        began = format_exact_time(cluster.now)
        _write_record(place, Challenge(file, seed, began))
    except OSError as error:
        raise FolderError(printable(f"{error.filename or folder}: {error.strerror}")) from None
    return scenario


def _is_empty_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.listdir(path)


def _write_record(place: str, challenge: Challenge) -> None:
    file = challenge.file
    shown_fields = {key: value for key, value in file.value.items() if key not in FOR_AUTHORS}
    record = {
        "name": file.name,
        "seed": challenge.seed,
        "began": challenge.began,
        "challenge": shown_fields,
    }
    with open(os.path.join(place, RECORD), "w", encoding="utf-8") as output:
        output.write(HEAD + yaml.dump(record))


def read_challenge(place: str) -> Challenge:
    """Read the challenge of a state folder. Raises FolderError where there is none, or its file was
    damaged."""
    path = os.path.join(place, RECORD)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        raise FolderError(
            printable(f"{place}: is no challenge: it has no {RECORD} (kubepy demo challenge NAME)")
        ) from None
    except UnicodeDecodeError:
        raise FolderError(printable(f"{path}: not UTF-8")) from None
    except OSError as error:
        raise FolderError(printable(f"{path}: {error.strerror}")) from None
    try:
        documents = yaml.load_all(text, unique_keys=True)
    except yaml.YamlError as error:
        raise FolderError(f"{printable(path)}: {error}") from None
    value = documents[0].object if len(documents) == 1 else None
    parsers = {
        "name": parse_text,
        "seed": _parse_seed,
        "began": parse_text,
        "challenge": _parse_map,
    }
    fields = parse_fields(f"{path}: ", value, parsers, _FIELDS)
    scenario = scenario_file(fields["name"], f"{path}: challenge", fields["challenge"])
    challenge = Challenge(scenario, fields["seed"], fields["began"])
    challenge.scenario()
    return challenge


def _parse_seed(path: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise field_error(path, f"{shown(value)} is not a whole number")
    return value


def _parse_map(path: str, value: object) -> object:
    if not isinstance(value, dict):
        raise field_error(path, "must be a map")
    return value
