"""Build the documentation site in build/site with Zensical (`make site`).

The pages are those of docs/ and of ``ROOT_PAGES``. They are copied to build/pages/docs, with two
additions that Markdown files on their own can't have:

* Below a fenced block that stands behind the comment ``<!-- run -->``, and below every block of the
  pages about causes, there is a link that runs its commands in the browser. It is left out where
  there is no build/browser (`make browser`), and for lines that need more than kubepy.
* ``nav`` in site/zensical.toml has patterns of folders (``"why/*.md",``), and entries of pages that
  may be missing; each stands on a line of its own.

build/browser, the page with a terminal, becomes the folder browser/ of the site.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from urllib.parse import quote

PROJECT = Path(__file__).resolve().parent.parent
DOCS = PROJECT / "docs"
SOURCE = PROJECT / "site"
CONFIGURATION = SOURCE / "zensical.toml"
STYLES = SOURCE / "site.css"
PAGES = PROJECT / "build" / "pages"
BUILT = PROJECT / "build" / "site"
TERMINAL = PROJECT / "build" / "browser"  # the page with a terminal
RUN_WHOLE = "why/"  # pages of which every block is a story of its own, in a new cluster
# Pages that lie elsewhere in the project, as far as they are there, and their names in the site.
ROOT_PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "packaging/README.md": "packaging.md",
}

PATTERN = re.compile(r'^( *)"([\w/-]+)/\*\.md",$')
ENTRY = re.compile(r'^ *\{ ".*" = "([\w/-]+\.md)" \},$')
BLOCK = re.compile(r"^(<!-- run -->\n)?(```console\n(.*?)^```\n)", re.DOTALL | re.MULTILINE)
# What the terminal of the page takes: a command of kubepy without the means of a shell.
TAKEN = re.compile(r"(kubepy|kubectl) (?:[^|;&<>$`'\"]|'[^'\n]*'|\"[^\"$`\n]*\")+")
OF_NEW_CLUSTER = "kubepy init "  # the page has one already


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

    def with_link(block: re.Match[str]) -> str:
        is_marked = block[1] or path.startswith(RUN_WHOLE)
        commands = commands_of(block[3]) if is_marked else []
        if not commands:
            return block[2]
        return f"{block[2]}\n{run_link(commands, to_root)}\n"

    return BLOCK.sub(with_link, text)


def run_link(commands: list[str], to_root: str) -> str:
    """Return the link that runs commands in the browser."""
    fragment = "&".join(f"cmd={quote(command, safe='')}" for command in commands)
    address = f"{to_root}{TERMINAL.name}/index.html#{fragment}"
    return f'<a class="kubepy-run" href="{escape(address)}">Run it in the browser</a>\n'


def commands_of(content: str) -> list[str]:
    """Return the commands of a console block; none where one of them needs a shell."""
    commands = re.findall(r"^\$ (.*(?:\n> .*)*)", content, re.MULTILINE)
    commands = [command for command in commands if not command.startswith(OF_NEW_CLUSTER)]
    if all(TAKEN.fullmatch(command) for command in commands):
        return commands
    return []


def root_page(name: str) -> str:
    """Return the Markdown of a page that does not lie in docs, as if it did."""
    to_docs = "../" * name.count("/") + "docs/"
    text = (PROJECT / name).read_text().replace(f"]({to_docs}", "](")
    to_root = "../" * name.count("/")
    for other, page in ROOT_PAGES.items():
        text = text.replace(f"]({to_root}{other}", f"]({page}")
    return text


def write_pages() -> None:
    """Write build/pages: the configuration, and all pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    folder = PAGES / "docs"
    shutil.copytree(DOCS, folder)
    for name, page in ROOT_PAGES.items():
        if (PROJECT / name).exists():
            (folder / page).write_text(root_page(name))
    shutil.copy(STYLES, folder)
    has_terminal = TERMINAL.is_dir()
    for page in folder.rglob("*.md"):
        path = page.relative_to(folder).as_posix()
        page.write_text(page_text(page.read_text(), path, has_terminal))
    (PAGES / "zensical.toml").write_text(configuration(CONFIGURATION.read_text(), folder))


def main() -> int:
    program = Path(sys.executable).with_name("zensical")
    if not program.exists():
        print("Zensical is not installed: `make site` installs it", file=sys.stderr)
        return 1
    write_pages()
    done = subprocess.run([program, "build", "--strict", "--clean"], cwd=PAGES, check=False)
    if done.returncode:
        return done.returncode
    shutil.rmtree(BUILT, ignore_errors=True)
    (PAGES / "site").rename(BUILT)
    if TERMINAL.is_dir():
        shutil.copytree(TERMINAL, BUILT / TERMINAL.name)
    print(f"{BUILT.relative_to(PROJECT)} has the site: python3 -m http.server -d build/site")
    return 0


if __name__ == "__main__":
    sys.exit(main())
