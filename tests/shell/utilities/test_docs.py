"""docs/shell.md lists the programs and their options as they are."""

from __future__ import annotations

from tools.list_programs import PAGE, page_with_table


def test_page_lists_programs_as_they_are() -> None:
    page = PAGE.read_text()
    assert page == page_with_table(page), "run `make docs`"
