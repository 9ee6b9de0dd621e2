"""Elastic tab stops."""

from kubepy.cli.runtime.tables import Layout, align


def test_column_is_as_wide_as_its_widest_cell_and_padding() -> None:
    assert align(["a\tb", "long\tc"], Layout(2)) == "a     b\nlong  c\n"


def test_line_without_cell_ends_column() -> None:
    assert align(["longer\t1", "break", "a\t2"], Layout(2)) == "longer  1\nbreak\na  2\n"


def test_columns_to_right_are_measured_block_by_block() -> None:
    lines = ["Port:\thttp\t80/TCP", "TargetPort:\t8080/TCP", "Port:\tdns\t53/UDP"]
    assert (
        align(lines, Layout(2))
        == "Port:        http  80/TCP\nTargetPort:  8080/TCP\nPort:        dns  53/UDP\n"
    )


def test_last_piece_of_line_belongs_to_no_column() -> None:
    assert align(["a\tvery long text", "b\tc"], Layout(3)) == "a   very long text\nb   c\n"


def test_empty_cells_keep_their_place() -> None:
    assert align(["Labels:\ta=b", "\tc=d"], Layout(2)) == "Labels:  a=b\n         c=d\n"


def test_columns_of_layout_that_remembers_never_get_narrower() -> None:
    layout = Layout(1, remembered=[])
    assert align(["long\tb\tc"], layout) == "long b c\n"
    assert align(["a\tb\tc", "break", "d\teeee\tf"], layout) == "a    b c\nbreak\nd    eeee f\n"
    assert align(["a\tb\tc"], layout) == "a    b    c\n"


def test_vertical_tab_ends_cell_too() -> None:
    assert align(["a\vb", "long\tc"], Layout(1)) == "a    b\nlong c\n"
