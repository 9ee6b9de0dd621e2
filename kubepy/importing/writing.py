"""The new cluster in its place: a state folder, or an etcd."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from kubepy.controlplane.open import copy_cluster, is_in_etcd
from kubepy.importing.errors import SourceError
from kubepy.storage.processes import is_alive

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubepy.apiserver.cluster import LocalCluster

SETTINGS = "kubepy.yaml"


def write_cluster(cluster: LocalCluster, place: str, comment: Callable[[str], str]) -> None:
    """Write a cluster that is in memory into a new place.

    A folder is made beside its place and renamed when it is whole, so that an end at any moment
    leaves nothing half made there. Raises StorageError.

    :param comment: adds comments to the text of ``kubepy.yaml``.
    """
    if is_in_etcd(place):
        copy_cluster(cluster, place)
        return
    target = os.path.abspath(place)
    parent, name = os.path.split(target)
    beside = os.path.join(parent, f".{name}.import-{os.getpid()}")
    _remove_leftovers(parent, f".{name}.import-")
    try:
        copy_cluster(cluster, beside)
        _comment(os.path.join(beside, SETTINGS), comment)
        os.rename(beside, target)
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise SourceError(f"{error.filename or place}: {error.strerror}") from error
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _remove_leftovers(parent: str, prefix: str) -> None:
    """Remove the folders that killed imports into this place have left beside it."""
    if not os.path.isdir(parent):
        return
    for name in os.listdir(parent):
        process = name.removeprefix(prefix)
        is_number = process.isascii() and process.isdigit()
        if name.startswith(prefix) and is_number and not is_alive(process):
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)


def comment_settings(folder: str, comment: Callable[[str], str]) -> None:
    """Add comments to the settings of a cluster that is in a folder; one in etcd has none."""
    path = os.path.join(folder, SETTINGS)
    if is_in_etcd(folder) or not os.path.isfile(path):
        return
    try:
        _comment(path, comment)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from error


def _comment(path: str, comment: Callable[[str], str]) -> None:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    commented = comment(text)
    if commented != text:
        beside = f"{path}.import-{os.getpid()}"
        with open(beside, "w", encoding="utf-8") as file:
            file.write(commented)
        os.replace(beside, path)
