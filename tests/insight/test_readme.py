"""The picture on the first screen of README.md, which is made by commands."""

from pathlib import Path

from tools import draw_timeline

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_readme_picture_is_what_the_command_draws() -> None:
    assert draw_timeline.PICTURE.read_text() == draw_timeline.picture(), "run `make docs`"
    assert f"]({draw_timeline.PICTURE.relative_to(draw_timeline.ROOT)})" in README
