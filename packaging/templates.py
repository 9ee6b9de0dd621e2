"""The files that name a release: its notes, the Homebrew formula, krew's manifest and archive.

Their templates hold @NAMES@, which are filled in when the release is known: its version, the
checksums of what was built, and where it is published ($KUBEPY_REPOSITORY_URL).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.version import Version

PROJECT = Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT / "tools"))
from hatch_build import with_addresses  # noqa: E402  # found by the line above

PACKAGING = PROJECT / "packaging"
# Stands for the address where nothing is published.
NOWHERE = "https://forge.example/OWNER/REPO"
NAME = re.compile(r"@([A-Z0-9_]+)@")


class TemplateError(Exception):
    """What is missing for a file, in one line."""


def section_of(changes: str, version: str) -> tuple[str, str]:
    """Return the title of a version in CHANGELOG.md ("0.4.0 (2026-11-23)") and what is below it.

    Versions before a release have the section "Unreleased". Raises TemplateError.
    """
    base = Version(version)
    wanted = "Unreleased" if base.is_devrelease or base.is_prerelease else version
    for section in re.split(r"^## ", changes, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        if title.split(" ")[0] == wanted:
            return title, text.strip() + "\n"
    raise TemplateError(f"CHANGELOG.md has no section '## {wanted}'")


def semantic(version: str) -> str:
    """Return a version as krew reads it: v0.5.0, v0.5.0-dev.12."""
    parsed = Version(version)
    numbers = ".".join(map(str, parsed.release))
    if parsed.pre is not None:
        return f"v{numbers}-{parsed.pre[0]}.{parsed.pre[1]}"
    if parsed.dev is not None:
        return f"v{numbers}-dev.{parsed.dev}"
    return f"v{numbers}"


def fill(folder: Path, version: str, sdist: Path, wheel: Path) -> Iterator[Path]:
    """Write all files that name a release into a folder; yields their paths."""
    repository = os.environ.get("KUBEPY_REPOSITORY_URL", "").rstrip("/") or NOWHERE
    archive = folder / f"kubectl-kubepy-{version}.tar.gz"
    archive.write_bytes(krew_archive(wheel))
    yield archive

    values = {
        "VERSION": version,
        "TAG": f"v{version}",
        "SEMANTIC": semantic(version),
        "REPOSITORY": repository,
        "RELEASE": f"{repository}/releases/download/v{version}",
        "SDIST": sdist.name,
        "SDIST_SHA256": digest(sdist.read_bytes()),
        "ARCHIVE": archive.name,
        "ARCHIVE_SHA256": digest(archive.read_bytes()),
    }
    for template in (PACKAGING / "homebrew/kubepy.rb.in", PACKAGING / "krew/kubepy.yaml.in"):
        path = folder / template.stem
        path.write_text(filled(template.read_text(), values))
        yield path

    notes = folder / "NOTES.md"
    _, text = section_of((PROJECT / "CHANGELOG.md").read_text(), version)
    notes.write_text(with_addresses(text, repository, f"v{version}"))
    yield notes


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its names filled in. Raises TemplateError for a name without value."""

    def value_of(name: re.Match[str]) -> str:
        if name[1] not in values:
            raise TemplateError(f"a template has the name {name[0]}, which has no value")
        return values[name[1]]

    return NAME.sub(value_of, template)


def krew_archive(wheel: Path) -> bytes:
    """Return the archive that krew unpacks: the launcher, the wheel and the licence.

    The same files make the same bytes.
    """
    members = [
        ("kubectl-kubepy", 0o755, (PACKAGING / "krew/kubectl-kubepy").read_bytes()),
        ("LICENSE", 0o644, (PROJECT / "LICENSE").read_bytes()),
        (wheel.name, 0o644, wheel.read_bytes()),
    ]
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, mode, content in members:
            member = tarfile.TarInfo(name)
            member.mode, member.size = mode, len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
