"""The policy of ``kubepy plan``: its flags, and the file ``kubepy-plan.yaml``."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kubepy.cli.errors import CliError
from kubepy.cli.files import read_string
from kubepy.insight.policy import PlanPolicy, parse_condition, parse_kinds, parse_policy
from kubepy.quoting import printable
from kubepy.storage import yaml

FILE = "kubepy-plan.yaml"


def policy_of(fail_on: Sequence[str] | None, fail_if: Sequence[str]) -> PlanPolicy:
    """Return the policy of a command line: that of the file, with the flags.

    :param fail_on: replaces the kinds of the file; None: the flag was not given.
    :param fail_if: is added to the conditions of the file.

    Raises CliError, OSError, FolderError.
    """
    path = find_file(os.getcwd())
    policy = read_policy(path) if path else PlanPolicy()
    if fail_on is not None:
        kinds = [kind for kind in fail_on if kind]
        policy = policy._replace(fail_on=parse_kinds("--fail-on", kinds))
    conditions = tuple(parse_condition("--fail-if", text) for text in fail_if)
    return policy._replace(fail_if=(*policy.fail_if, *conditions))


def find_file(folder: str) -> str:
    """Return the path of the policy file, "" where there is none: in a folder, or in one above it
    up to the root of its git repository."""
    for above in (folder, *folders_above(folder)):
        path = os.path.join(above, FILE)
        if os.path.isfile(path):
            return os.path.relpath(path, folder)
    return ""


def folders_above(folder: str) -> list[str]:
    """Return the folders above one, up to the root of its git repository; none outside of one."""
    above = []
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return []
        above.append(parent)
        folder = parent
    return above


def read_policy(path: str) -> PlanPolicy:
    """Read a policy file. Raises CliError, OSError, FolderError."""
    try:
        documents = yaml.load_all(read_string(path), unique_keys=True)
    except yaml.YamlError as error:
        raise CliError(f"{printable(path)}: {error}") from None
    if len(documents) > 1:
        raise CliError(f"{printable(path)}: must be one document, not {len(documents)}")
    return parse_policy(f"{path}: ", documents[0].object if documents else None)
