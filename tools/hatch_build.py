"""Hooks of hatchling, which builds the wheel and the sdist (``[tool.hatch]`` in pyproject.toml).

docs/decisions/version-from-tag.md says why they are there.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

MODULE = "kubepy/__init__.py"
LITERAL = re.compile(r'^__version__ = "[^"]*"$', re.MULTILINE)
# Where a release is published: https://HOST/OWNER/REPO. Without it, nothing is said of addresses.
REPOSITORY = "KUBEPY_REPOSITORY_URL"
# A link or picture of Markdown to a file of the repository: neither an address nor a heading.
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<path>(?!#|[a-z]+:)[^)\s]+)\)")


class Metadata(MetadataHookInterface):
    """Take the README as description, and the addresses of the repository from the environment."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add ``readme`` and ``urls`` to the metadata of the project."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = os.environ.get(REPOSITORY, "").rstrip("/")
        if repository:
            tag = f"v{metadata['version']}"
            text = with_addresses(text, repository, tag)
            metadata["urls"] = addresses(repository, tag)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class Version(BuildHookInterface[Any]):
    """Write the version of the build into the package, in place of that of the clone.

    The file of the clone is not touched, and an editable installation shows what stands there.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build with a changed copy of ``kubepy/__init__.py``."""
        if version == "editable":
            return
        source = Path(self.root, MODULE).read_text(encoding="utf-8")
        line = f'__version__ = "{self.metadata.version}"'
        changed, count = LITERAL.subn(line, source)
        if count != 1:
            raise ValueError(f"{MODULE}: {count} lines begin with '__version__ =', and not one")

        self._folder = tempfile.TemporaryDirectory()
        copy = Path(self._folder.name, "__init__.py")
        copy.write_text(changed, encoding="utf-8")
        build_data["force_include"][str(copy)] = MODULE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copy."""
        if version != "editable":
            self._folder.cleanup()


def with_addresses(text: str, repository: str, tag: str) -> str:
    """Return Markdown whose links into the repository work elsewhere, as on PyPI's page."""

    def replace(link: re.Match[str]) -> str:
        kind = "raw" if link["picture"] else "blob"
        return f"{link['picture']}[{link['text']}]({repository}/{kind}/{tag}/{link['path']})"

    return LINK.sub(replace, text)


def addresses(repository: str, tag: str) -> dict[str, str]:
    """Return the addresses that an index shows beside the project."""
    return {
        "Repository": repository,
        "Documentation": f"{repository}/tree/{tag}/docs",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
