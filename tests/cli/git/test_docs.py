"""Commands of the page about git print the output shown there; each chapter is run in a folder of
its own."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.git.conftest import PROGRAM
from tests.conformance.test_conformance import RUNNER

PAGE = Path(__file__).parents[3] / "docs" / "git.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CHAPTERS = dict(part.split("\n", 1) for part in PAGE.read_text().split("\n## ")[1:])


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_git_page_commands_print_their_output(chapter: str, tmp_path: Path) -> None:
    env = {
        "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "TZ": "UTC",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_AUTHOR_NAME": "me",
        "GIT_AUTHOR_EMAIL": "me@localhost",
        "GIT_COMMITTER_NAME": "me",
        "GIT_COMMITTER_EMAIL": "me@localhost",
    }
    blocks = BLOCK.findall(CHAPTERS[chapter])
    assert blocks
    for block in blocks:
        _, steps, _ = RUNNER.parse(block)
        for command, wanted in steps:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=env,
                text=True,
                capture_output=True,
                check=False,
            )
            said = done.stdout.replace(str(tmp_path), "/home/me/lab").splitlines()
            said, wanted = (RUNNER.mask(lines) for lines in (said, wanted))
            if "rollout status" in command:  # its progress lines depend on the machine's speed
                said, wanted = said[-1:], wanted[-1:]
            assert said == wanted, f"{command}\n{done.stdout}{done.stderr}"
