"""A picture is shown on a screen of its own, and Enter goes back to the program."""

import base64
import io
import os
import pty
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from PIL import Image
from textual.app import App

from codeloop.tui.render.picture_rows import PictureBox
from codeloop.tui.terminal.pictures.picture_view import make_picture_screen, show_picture
from tests.tui.parts import file

PROGRAM = """
import os, sys
os.open(os.ttyname(0), os.O_RDWR)  # the terminal of this session, from now on
from textual.app import App
from codeloop.schema.part import FilePart
from codeloop.tui.terminal.pictures.picture_view import show_picture

class Small(App):
    async def on_mount(self):
        self.run_worker(self.show())

    async def show(self):
        url = "data:image/png;base64," + sys.argv[1]
        part = FilePart(id="p", session_id="s", message_id="m", mime="image/png", url=url, filename="dot.png")
        self.exit(message="told: " + repr(await show_picture(self, part)))

Small().run()
"""
DEADLINE = 60.0


def dot() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (10, 20), (0, 0, 255)).save(out, "PNG")
    return out.getvalue()


def run(*, answer: bytes, until: bytes, **environment: str) -> bytes:
    """Run the program on a terminal, answer when it has shown something,
    and return all that it showed.
    """
    leader, follower = pty.openpty()
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, base64.b64encode(dot()).decode()],
        stdin=follower, stdout=follower, stderr=follower, env=kept | environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    shown, end, is_answered = b"", time.monotonic() + DEADLINE, False
    try:
        while time.monotonic() < end:
            try:
                piece = os.read(leader, 65_536)
            except OSError:
                break
            shown += piece
            if not is_answered and until in shown:
                os.write(leader, answer)
                is_answered = True
        return shown
    finally:
        process.kill()
        process.wait()
        os.close(leader)


def test_the_screen_holds_the_picture_and_how_to_go_back() -> None:
    shown = make_picture_screen(file("a\x1b.png"), dot(), "kitty", PictureBox(80, 24))
    assert shown.startswith("\x1b[2J\x1b[H[image a␛.png")
    assert "Press any key to go back." in shown
    assert "c=1,r=1," in shown


@pytest.mark.slow
def test_a_terminal_that_can_shows_it_until_a_key() -> None:
    shown = run(answer=b"\x1b", until=b"\x1b_Gq=2,a=T", TERM="xterm-kitty")
    assert b"Press any key to go back." in shown
    assert b"told: ''" in shown


@pytest.mark.slow
def test_elsewhere_a_copy_is_left_and_its_place_told(tmp_path: Path) -> None:
    shown = run(answer=b"", until=b"told: ", TERM="xterm-256color", TMPDIR=str(tmp_path))
    assert b"A copy is at " in shown
    assert [path.read_bytes() for path in tmp_path.glob("picture-*.png")] == [dot()]


async def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: Path) -> str:
    """Show a picture on a desktop whose viewer can't be started; return what the user is told."""
    viewer = tmp_path / ("open" if sys.platform == "darwin" else "xdg-open")
    viewer.write_text(f"#!{tmp_path}/missing\n")
    viewer.chmod(0o755)
    for name, value in {"TERM": "dumb", "DISPLAY": ":0", "PATH": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    picture = file("a.png", url=f"data:image/png;base64,{base64.b64encode(dot()).decode()}")
    return await show_picture(App[None](), picture)


async def test_a_viewer_that_does_not_start_is_told_with_the_place_of_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = await show(tmp_path, monkeypatch, tmp_path)
    (copy,) = tmp_path.glob("picture-*.png")
    assert message.endswith(
        f"can't be started: No such file or directory. A copy of the picture is at {copy}."
    )


async def test_a_copy_that_can_not_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = await show(tmp_path, monkeypatch, tmp_path / "missing")
    assert message.startswith("[image a.png 10x20, ")
    assert message.endswith("] can't be shown: No such file or directory.")


def test_what_is_gone_is_said() -> None:
    with pytest.raises(ValueError, match="decoded"):
        make_picture_screen(file("a.png"), b"nothing", "sixel", PictureBox(80, 24))
