"""Write the table of the shell's programs into docs/shell.md (`make docs`)."""

from pathlib import Path

from kubepy.shell.utilities import UTILITIES
from kubepy.shell.utilities.program import Program

PAGE = Path(__file__).resolve().parent.parent / "docs" / "shell.md"
BEGIN = "<!-- programs: begin -->\n"
END = "<!-- programs: end -->\n"


def table() -> str:
    """Return the table: each program with the options that it knows."""
    rows = ["| program | options |", "| --- | --- |"]
    rows += [f"| `{name}` | {_options(name)} |" for name in sorted(UTILITIES)]
    return "".join(f"{row}\n" for row in rows)


def _options(name: str) -> str:
    utility = UTILITIES[name]()
    if not isinstance(utility, Program):
        raise TypeError(f"{name} declares no options")
    declared = list(utility.declared)
    if utility.style.old_count:
        declared.append("-NUM")
    return " ".join(f"`{option}`" for option in declared) or "none"


def page_with_table(page: str) -> str:
    """Return the page with the table of today."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
