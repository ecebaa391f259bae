"""Where pictures stand in a conversation: below their words, within the room there is,
or nowhere.
"""

import base64
import io

from PIL import Image

from codeloop.schema.part import FilePart
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.picture_rows import PictureBox, PictureRow, PictureSpace
from tests.tui.drawing import draw, plain, styled
from tests.tui.parts import done, file, prompt, text


class Store:
    """Has no pictures; each may take ten rows of the screen."""

    room = PictureBox(297, 10)

    def want(self, place: PictureSpace) -> None:
        raise AssertionError("a row is drawn, not shown")

    def drawn(self, row: PictureRow) -> Row:
        return row


def picture(width: int, height: int) -> FilePart:
    out = io.BytesIO()
    Image.new("1", (width, height)).save(out, "PNG")
    return file(
        "shot.png", url="data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
    )


def places(*files: FilePart, width: int = 80, store: Store | None = None) -> list[PictureSpace]:
    item = done("read", {"filePath": "shot.png"}, attachments=[*files])
    rows = draw(item, width, pictures=store or Store())
    return [row.space for row in rows if isinstance(row, PictureRow) and row.space is not None]


def test_a_picture_of_a_call_has_the_rows_below_its_words() -> None:
    found = places(picture(300, 100))
    assert found == [PictureSpace("prt_file", 30, 5, line, 2) for line in range(5)]
    shown = draw(
        done("read", {"filePath": "shot.png"}, attachments=[picture(300, 100)]), pictures=Store()
    )
    assert plain(shown).split("\n")[1].startswith("  [image shot.png 300x100")
    assert "{image=prt_file}" + " " * 30 in styled(shown)


def test_a_picture_of_a_prompt_stands_on_its_panel() -> None:
    rows = draw(prompt(text("Look."), picture(300, 100)), pictures=Store())
    assert [row.space.line for row in rows if isinstance(row, PictureRow) and row.space] == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert all(line.startswith("▌") for line in plain(rows).split("\n"))
    assert {sum(segment.cell_length for segment in row) for row in rows} == {80}
    undone = draw(prompt(text("Look."), picture(300, 100), is_undone=True), pictures=Store())
    assert not [row for row in undone if isinstance(row, PictureRow)]


def test_a_large_one_keeps_its_shape_within_the_width_and_the_height() -> None:
    assert {(place.columns, place.rows) for place in places(picture(4000, 400))} == {(78, 4)}
    assert {(place.columns, place.rows) for place in places(picture(400, 4000))} == {(2, 10)}
    assert {(place.columns, place.rows) for place in places(picture(4000, 400), width=40)} == {
        (38, 2)
    }


def test_what_is_too_large_or_says_no_size_stays_words() -> None:
    assert places(picture(5000, 4000)) == []
    assert places(file("shot.png", url="data:image/png;base64,AAAA")) == []
    assert places(file("shot.png", url="file:///tmp/shot.png")) == []
    assert places(file("paper.pdf", "application/pdf", "data:application/pdf;base64,AAAA")) == []


def test_a_picture_keeps_its_shape_within_the_room() -> None:
    assert PictureBox(20, 10).fit(1000, 500) == PictureBox(20, 5)
    assert PictureBox(20, 10).fit(100, 1000) == PictureBox(2, 10)
    assert PictureBox(20, 10).fit(20, 20) == PictureBox(2, 1), "a small one is not made larger"
