"""What is pasted: texts as they are, long ones and images as chips, the clipboard,
another editor.
"""

import base64
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from textual import events

from codeloop.schema.bounds.tui import PROMPT_CLIPBOARD
from codeloop.schema.part import FileSource
from codeloop.schema.wire import replace
from codeloop.tui.editor.buffer import Buffer
from codeloop.tui.editor.chips import Chip, collapse_chips, escape_chips, expand_chips, find_chips
from codeloop.tui.widgets.prompt.prompt_messages import PromptSlashCommand, PromptSubmitted
from tests.tui.widgets.prompt.driver import Hand, prompting

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
LONG = "\n".join(f"line {number}" for number in range(120))


async def paste(hand: Hand, text: str) -> None:
    hand.app.post_message(events.Paste(text))
    await hand.pilot.pause()


def entry(hand: Hand):
    sent = hand.app.sent[-1]
    assert isinstance(sent, PromptSubmitted)
    return sent.entry


async def test_a_path_of_nobody_is_text(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        await paste(hand, "~nobody-is-called-so/a.png")
        assert hand.screen() == "▌ ~nobody-is-called-so/a.png"


@pytest.mark.slow
async def test_a_long_text_is_a_chip_that_moves_and_goes_as_one(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        await paste(hand, "short\r\ntext ")
        await paste(hand, LONG + "\n")
        assert hand.screen() == "▌ short\n▌ text [Pasted 120 lines]"
        await hand.press("backspace")
        await paste(hand, LONG)
        await hand.type(" then")
        assert hand.screen() == "▌ short\n▌ text [Pasted 120 lines] then"
        await hand.press("alt+b", "left", "backspace")
        assert hand.screen() == "▌ short\n▌ text  then"
        await hand.press("ctrl+underscore")
        await paste(hand, LONG.replace("line", "row"))
        assert hand.screen().endswith("[Pasted 120 lines][Pasted 120 lines #2] then")
        await paste(hand, "y" * 2_000)
        assert "[Pasted 2000 characters]" in hand.screen()
        await hand.press("backspace", "enter")
        await hand.until(lambda: hand.app.sent)
        assert entry(hand).text == f"short\ntext {LONG}{LONG.replace('line', 'row')} then"
        await hand.press("up")
        assert hand.screen().endswith("[Pasted 120 lines][Pasted 120 lines #2] then")
    async with prompting(tmp_path) as hand:
        await hand.press("up", "enter")
        await hand.until(lambda: hand.app.sent)
        assert entry(hand).text == f"short\ntext {LONG}{LONG.replace('line', 'row')} then"


async def test_an_image_goes_along_where_its_path_is_typed(tmp_path: Path) -> None:
    picture, other = tmp_path / "shot.png", tmp_path / "my shot.PNG"
    picture.write_bytes(PNG)
    other.write_bytes(PNG)
    text = f"why is {picture} not like '{other}'? /nowhere/at/all.png and shot.png are words"
    async with prompting(tmp_path / "store") as hand:
        hand.app.prompt.editor.buffer.insert(text)
        await hand.press("enter")
        await hand.until(lambda: hand.app.sent)
        sent = entry(hand)
        assert sent.text == text
        assert [file.filename for file in sent.files] == ["shot.png", "my shot.PNG"]
        for file, name in zip(sent.files, (picture, other), strict=True):
            assert base64.b64decode(file.url.removeprefix("data:image/png;base64,")) == PNG
            assert isinstance(file.source, FileSource)
            place = file.source.text
            assert sent.text[place.start : place.end] == place.value == str(name)


async def test_the_path_of_an_image_becomes_the_image(tmp_path: Path) -> None:
    picture = tmp_path / "my shot.png"
    picture.write_bytes(PNG)
    async with prompting(tmp_path / "store") as hand:
        await hand.type("see ")
        await paste(hand, str(picture).replace(" ", "\\ ") + " ")
        await paste(hand, f"'{picture}'")
        await paste(hand, picture.as_uri())
        await paste(hand, str(picture))
        assert hand.screen() == "▌ see [Image] [Image #2] [Image #3] [Image #4]"
        await hand.press("enter")
        await hand.until(lambda: hand.app.sent)
        sent = entry(hand)
        assert sent.text == "see [Image] [Image #2] [Image #3] [Image #4] "
        assert [file.filename for file in sent.files] == ["my shot.png"] * 4
        for file, label in zip(
            sent.files, ("[Image]", "[Image #2]", "[Image #3]", "[Image #4]"), strict=True
        ):
            assert base64.b64decode(file.url.removeprefix("data:image/png;base64,")) == PNG
            assert isinstance(file.source, FileSource)
            place = file.source.text
            assert sent.text[place.start : place.end] == place.value == label
        await paste(hand, f"{picture} is wrong")
        await paste(hand, "/no/such.png")
        assert hand.app.text == f"{picture} is wrong/no/such.png"
        await hand.press("ctrl+c")
        await hand.type("/model x ")
        await paste(hand, str(picture))
        await hand.press("enter")
        await hand.until(lambda: len(hand.app.sent) == 2)
        called = hand.app.sent[-1]
        assert isinstance(called, PromptSlashCommand)
        assert (called.words, len(called.files)) == ("x [Image]", 1)


async def test_mentions_are_placed_in_the_text_that_is_sent(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        await paste(hand, LONG)
        await paste(hand, " @src/main.py and @explore, not @nothing")
        await hand.press("enter")
        await hand.until(lambda: hand.app.sent)
        sent = entry(hand)
        (file,), (agent,) = sent.files, sent.agents
        assert isinstance(file.source, FileSource)
        assert agent.source is not None
        for place in (file.source.text, agent.source):
            assert sent.text[place.start : place.end] == place.value


async def test_ctrl_v_reads_the_clipboard_of_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tmp_path / "clip.png").write_bytes(PNG)
    tool = tools / "wl-paste"
    tool.write_text(
        f'#!/bin/sh\ncase "$*" in *image*) cat {tmp_path}/clip.png 2>/dev/null;; *) printf "from there";; esac\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
    monkeypatch.setattr(
        "codeloop.tui.terminal.clipboard.PROMPT_CLIPBOARD", replace(PROMPT_CLIPBOARD, value=60_000)
    )
    async with prompting(tmp_path / "store") as hand:
        await hand.press("ctrl+v")
        await hand.until(lambda: "[Image]" in hand.screen())
        (tmp_path / "clip.png").unlink()
        await hand.press("ctrl+v")
        await hand.until(lambda: hand.app.text.endswith("from there"))
        tool.unlink()
        monkeypatch.setenv("PATH", str(tools))
        await hand.press("ctrl+v")
        await hand.until(lambda: hand.app._notifications)
        assert "wl-paste" in next(iter(hand.app._notifications)).message


async def test_another_editor_changes_the_prompt_or_leaves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "edit"
    script.write_text('#!/bin/sh\n[ "$1" = -f ] && exit 3\nsed -i s/one/ONE/ "$1"\n')
    script.chmod(0o755)
    left = tmp_path / "temporary"
    left.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(left))
    async with prompting(tmp_path / "store") as hand:
        notes = hand.app._notifications
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.delenv("EDITOR", raising=False)
        await hand.type("one two ")
        await paste(hand, LONG)
        hand.app.prompt.run("editor_open")
        await hand.until(lambda: any("No editor is set" in note.message for note in notes))
        monkeypatch.setenv("EDITOR", f"{script} -f")
        hand.app.prompt.run("editor_open")
        await hand.until(lambda: any("ended with code 3" in note.message for note in notes))
        assert hand.screen() == "▌ one two [Pasted 120 lines]"
        monkeypatch.setenv("VISUAL", str(script))
        hand.app.prompt.run("editor_open")
        await hand.until(lambda: "ONE" in hand.app.text)
        assert hand.screen() == "▌ ONE two [Pasted 120 lines]"
        assert hand.app.text == f"ONE two {LONG}"
        assert list(left.iterdir()) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["type", "paste", "chip", "left", "erase", "undo", "redo"]),
            st.text(max_size=6),
        )
    )
)
def test_what_goes_in_comes_out(steps: list[tuple[str, str]]) -> None:
    """A chip behaves as its one character would, whatever is done around it,
    and is its text in the end.
    """
    buffer, model = Buffer(), Buffer()
    marks: dict[str, str] = {}
    for action, text in steps:
        for each in (buffer, model):
            match action:
                case "type":
                    each.type_text(text)
                case "paste":
                    each.insert(text)
                case "left":
                    each.move(each.find_previous_offset())
                case "erase":
                    each.delete(each.find_previous_offset(), each.cursor)
                case "undo":
                    each.undo()
                case "redo":
                    each.redo()
                case _:
                    pass
        if action == "chip":
            mark = chr(0xE000 + len(marks))
            marks[mark] = f"<{text}>"
            buffer.insert_chip(Chip("[Pasted]", f"<{text}>"))
            model.insert(mark)
        assert buffer.cursor == model.cursor
    meant = "".join(marks.get(char, char) for char in expand_chips(model.chips, model.text))
    assert expand_chips(buffer.chips, buffer.text) == meant
    assert len(find_chips(buffer.chips, buffer.text)) == len(
        {char for char in model.text if char in marks or char in model.chips}
    )


@example("\U0010fffd\U00100001")
@given(st.text(alphabet="ab\U00100000\U00100001\U0010fffd\n", max_size=12))
def test_a_text_may_hold_any_character(text: str) -> None:
    buffer = Buffer()
    buffer.insert_chip(Chip("[Pasted]", "content"))
    buffer.insert(text)
    assert expand_chips(buffer.chips, buffer.text) == "content" + text
    again = collapse_chips(buffer.chips, escape_chips(buffer.chips, "content" + text))
    assert expand_chips(buffer.chips, again) == "content" + text
