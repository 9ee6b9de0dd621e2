"""The steps of a release, up to where it would be published; docs/releasing.md describes them.

Run `make release-check`: it runs the steps one after another, and `.github/workflows/release.yaml`
runs the same ones. A step alone: `python packaging/release.py STEP`.

build    build sdist and wheel twice from the commit, into dist/, and compare the bytes
inspect  look at names, versions, metadata and contents
try      install the wheel into an empty environment and use it (--python PROGRAM, --wheel FILE)
sbom     write a bill of materials (CycloneDX) of the wheel and what it is installed with
files    write the notes of the release, and fill in the Homebrew formula and the krew manifest
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.version import Version

sys.path.insert(0, str(Path(__file__).parent))
import templates

PROJECT = Path(__file__).parents[1]
DIST = PROJECT / "dist"  # what is published, and nothing else
EXTRAS = PROJECT / "build" / "release"  # what a release has besides
CHANGELOG = PROJECT / "CHANGELOG.md"
FIRST_USE = PROJECT / "packaging" / "first-use.sh"
BIN = Path(sys.executable).parent
# The most that a wheel may take once it is installed, with what it needs and without pip, in MB.
INSTALLED_LIMIT = 40
IN_WHEEL = (
    "kubepy/py.typed",
    "{data}/share/bash-completion/completions/kubepy",
    "{data}/share/fish/vendor_completions.d/kubepy.fish",
    "{data}/share/man/man1/kubepy.1",
    "{data}/share/man/man1/kubepy-plan.1",
    "{data}/share/zsh/site-functions/_kubepy",
    "{info}/licenses/LICENSE",
)
NO_PAIRS: Mapping[str, str] = {}


class ReleaseError(Exception):
    """What keeps a release from being made, in one line."""


def run(*words: str | Path, folder: Path = PROJECT, more: Mapping[str, str] = NO_PAIRS) -> str:
    """Run a program and return what it prints; its errors are shown as they come. Raises
    ReleaseError where it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout, end="")
        raise ReleaseError(f"{' '.join(map(str, words))}: exit status {done.returncode}")
    return done.stdout


# --- build ----------------------------------------------------------------------------------------


def build() -> None:
    """Build twice, in different folders and environments, and keep the first result.

    Clones are built, so that nothing counts but the commit: files that git does not know would
    become part of an sdist.
    """
    if run("git", "status", "--porcelain", "--untracked-files=no"):
        print("note: what is built is the last commit; changes since then are left out")
    with tempfile.TemporaryDirectory() as scratch:
        first, second = Path(scratch, "first"), Path(scratch, "another folder")
        _build_into(first, from_sdist=True, umask="022", more={"TZ": "UTC"})
        surroundings = {"TZ": "Asia/Kathmandu", "SOURCE_DATE_EPOCH": "86400", "LC_ALL": "C"}
        _build_into(second, from_sdist=False, umask="077", more=surroundings)
        names = _compare(first / "dist", second / "dist")

        for folder in (DIST, EXTRAS):  # which may hold files of another version
            shutil.rmtree(folder, ignore_errors=True)
        DIST.mkdir()
        for name in names:
            shutil.copyfile(first / "dist" / name, DIST / name)
            print(f"{_digest(DIST / name)}  {name}")


def _build_into(folder: Path, *, from_sdist: bool, umask: str, more: Mapping[str, str]) -> None:
    """Build sdist and wheel of a clone of the commit in a new folder, into its `dist`.

    :param from_sdist: build the wheel from the sdist, as an installation does that has no wheel.
    """
    source = folder / "source"
    run("git", "clone", "--quiet", "--no-hardlinks", PROJECT, source)
    commit = run("git", "rev-parse", "HEAD").strip()
    run("git", "checkout", "--quiet", "--detach", commit, folder=source)
    kinds = "" if from_sdist else "--sdist --wheel"
    # Whoever builds again does not know the time of our commit: archives have hatchling's own.
    script = (
        f'umask {umask}; unset SOURCE_DATE_EPOCH; exec "$0" -m build --no-isolation {kinds} "$@"'
    )
    run("bash", "-c", script, sys.executable, "--outdir", folder / "dist", source, more=more)


def _compare(first: Path, second: Path) -> list[str]:
    names = sorted(path.name for path in first.iterdir())
    others = sorted(path.name for path in second.iterdir())
    if names != others:
        raise ReleaseError(f"two builds of a commit are called {names} and {others}")
    for name in names:
        if _digest(first / name) != _digest(second / name):
            raise ReleaseError(f"{name}: two builds of a commit differ; see diffoscope")
    return names


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- what was built -------------------------------------------------------------------------------


def _one(pattern: str) -> Path:
    paths = list(DIST.glob(pattern))
    if len(paths) != 1:
        raise ReleaseError(f"dist/ holds {len(paths)} files {pattern}, and not one: run `build`")
    return paths[0]


def _wheel() -> Path:
    return _one("kubepy_cluster-*.whl")


def _sdist() -> Path:
    return _one("kubepy_cluster-*.tar.gz")


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def _version() -> Version:
    return Version(_metadata(_wheel())["Version"])


def inspect() -> None:
    """Look at metadata and contents, and whether tag, version and CHANGELOG are of one mind."""
    wheel, sdist, version = _wheel(), _sdist(), _version()
    print(run(BIN / "twine", "--no-color", "check", "--strict", wheel, sdist), end="")
    print(run(BIN / "check-wheel-contents", wheel), end="")
    _inspect_contents(wheel, version)
    _inspect_sdist(sdist, version)
    _inspect_tag(version)


def _inspect_contents(wheel: Path, version: Version) -> None:
    base = wheel.name.removesuffix("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        source = archive.read("kubepy/__init__.py").decode()
    wanted = {name.format(data=f"{base}.data/data", info=f"{base}.dist-info") for name in IN_WHEEL}
    if missing := sorted(wanted - names):
        raise ReleaseError(f"{wheel.name} lacks {', '.join(missing)}")
    if f'__version__ = "{version}"' not in source:
        raise ReleaseError(f"{wheel.name}: kubepy.__version__ is not {version}")
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 1e6:.1f} MB")


def _inspect_sdist(sdist: Path, version: Version) -> None:
    """Find LICENSE and the version in an sdist, which pip may have to build from."""
    base = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as archive:
        names = set(archive.getnames())
        source = archive.extractfile(f"{base}/kubepy/__init__.py")
        text = source.read().decode() if source else ""
    for name in ("LICENSE", "PKG-INFO", "README.md", "man/kubepy.1", "tools/hatch_build.py"):
        if f"{base}/{name}" not in names:
            raise ReleaseError(f"{sdist.name} lacks {name}")
    if f'__version__ = "{version}"' not in text:
        raise ReleaseError(f"{sdist.name}: kubepy.__version__ is not {version}")
    print(f"{sdist.name}: {len(names)} files, {sdist.stat().st_size / 1e6:.1f} MB")


def _inspect_tag(version: Version) -> None:
    """Compare the version with the tag of the commit, and the tag with the CHANGELOG."""
    tags = run("git", "tag", "--points-at", "HEAD", "--list", "v[0-9]*").split()
    if not tags:
        print(f"{version}: the commit has no tag v*; this is no release")
        return
    if [f"v{version}"] != tags:
        raise ReleaseError(f"the tags of the commit are {', '.join(tags)}, the version {version}")
    if version.is_devrelease or version.is_prerelease:
        print(f"{version}: before a release; the CHANGELOG need not have it")
        return
    title, _ = templates.section_of(CHANGELOG.read_text(), str(version))
    if not re.search(r"\(\d{4}-\d\d-\d\d\)$", title):
        raise ReleaseError(f"CHANGELOG.md has no section '## {version} (YYYY-MM-DD)'")
    print(f"{version}: tag and CHANGELOG agree")


# --- an empty environment -------------------------------------------------------------------------


def _environment(folder: Path, python: str, *requirements: str) -> Path:
    """Make an environment without pip, install into it, and return its folder of programs."""
    run(python, "-m", "venv", "--without-pip", folder)
    quiet = ("--quiet", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", folder, "install", *quiet, *requirements)
    return folder / "bin"


def try_wheel(python: str, wheel: Path) -> None:
    """Install the wheel where nothing else is, and do with it what a first user does."""
    version = _metadata(wheel)["Version"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "environment")
        bin = _environment(folder, python, str(wheel))
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
        if size > INSTALLED_LIMIT:
            raise ReleaseError(f"{wheel.name} takes {size:.0f} MB, more than {INSTALLED_LIMIT}")
        more = {"PATH": f"{bin}:{os.environ['PATH']}", "HOME": scratch, "KUBEPY_STATE": ""}
        said = run(
            "bash",
            "-eu",
            "-o",
            "pipefail",
            FIRST_USE,
            bin,
            version,
            folder=Path(scratch),
            more=more,
        )
        print(said, end="")
        print(f"{wheel.name}: works with {run(python, '--version').strip()}, {size:.0f} MB")


# --- a bill of materials --------------------------------------------------------------------------


def sbom() -> None:
    """Write what the wheel is installed with, the extras of `serve` and `mcp` included.

    The wheel holds no code of others: the bill says which versions this release was tried with.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "environment")
        _environment(folder, sys.executable, f"kubepy-cluster[serve,mcp] @ {_wheel().as_uri()}")
        output = ("--output-reproducible", "--of", "JSON", "--output-file", "-")
        bill = json.loads(run(BIN / "cyclonedx-py", "environment", folder, *output))
    text = json.dumps(_about_kubepy(bill), indent=2) + "\n"
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ReleaseError(f"the bill of materials is not valid: {error}")

    EXTRAS.mkdir(parents=True, exist_ok=True)
    path = EXTRAS / "kubepy-cluster.cdx.json"
    path.write_text(text)
    print(f"{path.name}: {len(bill['components'])} components beside kubepy")


def _about_kubepy(bill: dict[str, Any]) -> dict[str, Any]:
    """Return a bill of an environment as one about kubepy, which is a component of it.

    It leaves out where the wheel lay when it was installed.
    """
    components = bill["components"]
    subject = next(one for one in components if one["name"] == "kubepy-cluster")
    subject.pop("externalReferences", None)
    subject.update(type="application", purl=f"pkg:pypi/kubepy-cluster@{subject['version']}")
    bill["components"] = [one for one in components if one is not subject]
    bill["metadata"]["component"] = subject
    return bill


# --- files that name a release --------------------------------------------------------------------


def files() -> None:
    """Write the notes of the release, and what Homebrew and krew take."""
    version = _version()
    EXTRAS.mkdir(parents=True, exist_ok=True)
    for path in templates.fill(EXTRAS, str(version), _sdist(), _wheel()):
        print(f"{path.relative_to(PROJECT)}")


# --- command line ---------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a step of a release.")
    parser.add_argument("step", choices=["build", "inspect", "try", "sbom", "files"])
    parser.add_argument("--python", default=sys.executable, help="try: the Python to use")
    parser.add_argument("--wheel", type=Path, help="try: another wheel than that in dist/")
    options = parser.parse_args()
    print(f"--- {options.step}", flush=True)
    try:
        if options.step == "try":
            try_wheel(options.python, (options.wheel or _wheel()).resolve())
        else:
            {"build": build, "inspect": inspect, "sbom": sbom, "files": files}[options.step]()
    except (ReleaseError, templates.TemplateError) as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
