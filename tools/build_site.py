"""Build the documentation site in build/site with Zensical (`make site`).

The pages are those of docs/, CONTRIBUTING.md and CHANGELOG.md. They are copied to build/pages/docs,
with two additions that Markdown files on their own can't have:

* Below a fenced block that stands behind the comment ``<!-- run -->`` there is a link that runs its
  commands in the browser, where site/browser/ has the page that can do so.
* ``nav`` in site/zensical.toml has patterns of folders (``"why/*.md",``), and entries of pages that
  may be missing; each stands on a line of its own.

Everything else that lies in site/ is copied to the site as it is.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

PROJECT = Path(__file__).resolve().parent.parent
DOCS = PROJECT / "docs"
SOURCE = PROJECT / "site"
CONFIGURATION = SOURCE / "zensical.toml"
STYLES = SOURCE / "site.css"
PAGES = PROJECT / "build" / "pages"
BUILT = PROJECT / "build" / "site"
TERMINAL = "browser"  # the folder of the page with a terminal
ROOT_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}

PATTERN = re.compile(r'^( *)"([\w/-]+)/\*\.md",$')
ENTRY = re.compile(r'^ *\{ ".*" = "([\w/-]+\.md)" \},$')
RUNNABLE = re.compile(r"^<!-- run -->\n(```(\w+)\n(.*?)^```\n)", re.DOTALL | re.MULTILINE)


def configuration(text: str, folder: Path) -> str:
    """Return the configuration with the pages that a folder has."""
    return "".join(f"{line}\n" for line in _lines(text, folder))


def _lines(text: str, folder: Path) -> Iterator[str]:
    for line in text.splitlines():
        pattern = PATTERN.match(line)
        entry = ENTRY.match(line)
        if pattern is not None:
            indentation, name = pattern.groups()
            for page in pages_of(folder / name):
                yield f'{indentation}"{name}/{page.name}",'
        elif entry is None or (folder / entry[1]).exists():
            yield line


def pages_of(folder: Path) -> list[Path]:
    """Return the pages of a folder, README.md before the others."""
    return sorted(folder.glob("*.md"), key=lambda page: (page.name != "README.md", page.name))


def page_text(text: str, path: str, has_terminal: bool) -> str:
    """Return the Markdown of a page of the site.

    :param path: of the page in the site's folder: ``why/crash-loop.md``.
    :param has_terminal: whether the site has a page with a terminal, to which links may lead.
    """
    for name, page in ROOT_PAGES.items():
        text = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(name)}", rf"](\1{page}", text)
    if not has_terminal:
        return text
    to_root = "../" * path.count("/")
    return RUNNABLE.sub(lambda block: f"{block[1]}\n{run_link(block, to_root)}\n", text)


def run_link(block: re.Match[str], to_root: str) -> str:
    """Return the link that runs the commands of a fenced block."""
    _, language, content = block.groups()
    commands = commands_of(language, content)
    address = f"{to_root}{TERMINAL}/index.html#cmd={quote(commands, safe='')}"
    return f'<a class="kubepy-run" href="{address}">Run it in the browser</a>\n'


def commands_of(language: str, content: str) -> str:
    """Return the commands of a block, a line each: those behind ``$`` where output is shown."""
    lines = content.splitlines()
    if language == "console":
        lines = [line[2:] for line in lines if line.startswith(("$ ", "> "))]
    return "\n".join(lines)


def root_page(name: str) -> str:
    """Return the Markdown of a page that lies in the project's root folder, for the folder of
    docs."""
    return (PROJECT / name).read_text().replace("](docs/", "](")


def write_pages() -> None:
    """Write build/pages: the configuration, and all pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    folder = PAGES / "docs"
    shutil.copytree(DOCS, folder)
    for name, page in ROOT_PAGES.items():
        (folder / page).write_text(root_page(name))
    shutil.copy(STYLES, folder)
    has_terminal = (SOURCE / TERMINAL).is_dir()
    for page in folder.rglob("*.md"):
        path = page.relative_to(folder).as_posix()
        page.write_text(page_text(page.read_text(), path, has_terminal))
    (PAGES / "zensical.toml").write_text(configuration(CONFIGURATION.read_text(), folder))


def add_static_files() -> None:
    """Copy what lies in site/ beside the configuration."""
    for entry in SOURCE.iterdir():
        if entry.is_dir():
            shutil.copytree(entry, BUILT / entry.name, dirs_exist_ok=True)


def main() -> int:
    write_pages()
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=PAGES, check=False)
    if done.returncode:
        return done.returncode
    shutil.rmtree(BUILT, ignore_errors=True)
    (PAGES / "site").rename(BUILT)
    add_static_files()
    print(f"{BUILT.relative_to(PROJECT)} has the site: python3 -m http.server -d build/site")
    return 0


if __name__ == "__main__":
    sys.exit(main())
