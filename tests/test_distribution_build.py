"""Wheels and sdists: their versions, their contents, and the same bytes of the same commit.

A small repository is built, with the settings and the hooks of this one; `make release-check`
builds all of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import kubepy

PROJECT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text())
FILES = (
    ".git_archival.txt",
    ".gitattributes",
    ".gitignore",
    "LICENSE",
    "README.md",
    "completions",
    "kubepy/__init__.py",
    "kubepy/py.typed",
    "man/kubepy.1",
    "pyproject.toml",
    "tools/hatch_build.py",
)
IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false")


def run(*words: str, folder: Path, **more: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not special(name)}
    done = subprocess.run(
        words,
        cwd=folder,
        env={**environment, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def special(name: str) -> bool:
    """Return whether a variable changes what is built."""
    return name in ("SOURCE_DATE_EPOCH", "KUBEPY_REPOSITORY_URL") or name.startswith("SETUPTOOLS_")


def git(folder: Path, *words: str) -> None:
    run("git", *IDENTITY, *words, folder=folder)


def build(folder: Path, target: str = "wheel", **more: str) -> Path:
    """Build a wheel or an sdist of a folder, and return its path."""
    shutil.rmtree(folder / "dist", ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "-t", target, folder=folder, **more)
    (built,) = (folder / "dist").iterdir()
    return built


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def version_in_package(wheel: Path) -> str:
    namespace: dict[str, object] = {"__name__": "kubepy"}
    with zipfile.ZipFile(wheel) as archive:
        source = archive.read("kubepy/__init__.py").decode()
    exec(compile(source, "kubepy", "exec"), namespace)
    return str(namespace["__version__"])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit and no tag."""
    folder = tmp_path / "repository"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, folder / name)
        else:
            shutil.copy(PROJECT / name, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=one")
    return folder


# --- versions -------------------------------------------------------------------------------------


def test_version_of_clone_is_fallback_of_builds() -> None:
    fallback = SETTINGS["tool"]["hatch"]["version"]["raw-options"]["fallback_version"]
    assert kubepy.__version__ == fallback
    assert fallback.endswith(".dev0")


def test_build_of_tagged_commit_has_version_of_tag(repository: Path) -> None:
    git(repository, "tag", "v7.8.9")
    wheel = build(repository)
    assert metadata(wheel)["Version"] == version_in_package(wheel) == "7.8.9"
    assert "7.8.9" not in (repository / "kubepy/__init__.py").read_text()


def test_build_of_commit_without_tag_names_commit(repository: Path) -> None:
    wheel = build(repository)
    commit = run("git", "rev-parse", "--short=9", "HEAD", folder=repository).strip()
    expected = kubepy.__version__.replace(".dev0", f".dev1+g{commit}")
    assert metadata(wheel)["Version"] == version_in_package(wheel) == expected


def test_build_without_git_has_version_of_clone(repository: Path) -> None:
    shutil.rmtree(repository / ".git")
    wheel = build(repository)
    assert metadata(wheel)["Version"] == version_in_package(wheel) == kubepy.__version__


@pytest.mark.parametrize(
    ("tag", "version"), [("v7.8.9", "7.8.9"), ("unrelated", kubepy.__version__)]
)
def test_build_of_archive_has_version_of_tag_of_its_commit(
    repository: Path, tmp_path: Path, tag: str, version: str
) -> None:
    git(repository, "tag", "--annotate", "--message=x", tag)
    archive = tmp_path / "archive.tar"
    git(repository, "archive", f"--output={archive}", "HEAD")
    unpacked = tmp_path / "unpacked"
    with tarfile.open(archive) as packed:
        packed.extractall(unpacked, filter="data")
    assert metadata(build(unpacked))["Version"] == version


def test_wheel_built_from_sdist_is_wheel_built_from_commit(
    repository: Path, tmp_path: Path
) -> None:
    git(repository, "tag", "v7.8.9")
    address = {"KUBEPY_REPOSITORY_URL": "https://forge.example/o/r"}
    with tarfile.open(build(repository, "sdist", **address)) as sdist:
        sdist.extractall(tmp_path, filter="data")
    from_commit = build(repository, **address).read_bytes()
    assert build(tmp_path / "kubepy_cluster-7.8.9").read_bytes() == from_commit


# --- bytes and contents ---------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_build_in_another_folder_at_another_time_makes_same_bytes(
    repository: Path, tmp_path: Path, target: str
) -> None:
    other = tmp_path / "other folder"
    git(repository, "clone", "--quiet", ".", str(other))
    for path in other.rglob("*"):
        if ".git" not in path.parts:
            os.utime(path, (0, 0))
            path.chmod(path.stat().st_mode & 0o700)
    first, second = build(repository, target), build(other, target, TZ="Asia/Kathmandu")
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_wheel_holds_what_shells_type_checkers_and_man_look_for(repository: Path) -> None:
    git(repository, "tag", "v7.8.9")
    with zipfile.ZipFile(build(repository)) as archive:
        names = set(archive.namelist())
    share = "kubepy_cluster-7.8.9.data/data/share"
    assert names >= {
        "kubepy/py.typed",
        "kubepy_cluster-7.8.9.dist-info/licenses/LICENSE",
        f"{share}/bash-completion/completions/kubepy",
        f"{share}/fish/vendor_completions.d/kubepy.fish",
        f"{share}/zsh/site-functions/_kubepy",
        f"{share}/man/man1/kubepy.1",
    }


# --- addresses ------------------------------------------------------------------------------------


def test_build_names_no_address_of_its_own(repository: Path) -> None:
    described = metadata(build(repository))
    assert described.get_all("Project-URL") is None
    assert described.get_payload() == (PROJECT / "README.md").read_text()


def test_build_for_release_names_addresses_of_its_repository(repository: Path) -> None:
    git(repository, "tag", "v7.8.9")
    described = metadata(build(repository, KUBEPY_REPOSITORY_URL="https://forge.example/o/r/"))
    assert "Repository, https://forge.example/o/r" in (described.get_all("Project-URL") or [])
    text = str(described.get_payload())
    assert "](https://forge.example/o/r/blob/v7.8.9/docs/simulated.md)" in text
    assert "](https://forge.example/o/r/raw/v7.8.9/docs/pictures/timeline.svg)" in text
    assert "](docs/" not in text
