"""The prompt as a user uses it: keys in, a prompt out."""

from pathlib import Path

import pytest

from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.part import FilePartSourceText, FileSource
from codeloop.tui.editor.line_layout import LineLayout
from codeloop.tui.widgets.prompt.history.draft_keeper import RESTORE_NOTE
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry
from codeloop.tui.widgets.prompt.prompt_messages import PromptSubmitted
from codeloop.tui.widgets.prompt.prompt_settings import PromptSettings
from tests.tui.widgets.prompt.driver import QueueServer, prompting


async def test_keys_become_a_prompt_and_enter_sends_it(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        assert hand.screen() == "▌ Ask, or describe a task"
        await hand.type("hello")
        assert hand.screen() == "▌ hello"
        await hand.press("enter")
        await hand.until(lambda: hand.app.texts == ["hello"])
        assert hand.screen() == "▌ Ask, or describe a task"
        await hand.press("enter", "space", "enter")
        await hand.press("ctrl+c")
        for key in ("shift+enter", "ctrl+enter", "alt+enter", "ctrl+j"):
            await hand.press("a", key)
        await hand.type("last\\")
        await hand.press("enter")
        await hand.type("line")
        assert hand.app.text == "a\na\na\na\nlast\nline"
        await hand.press("enter")
        await hand.until(lambda: hand.app.texts == ["hello", "a\na\na\na\nlast\nline"])


async def test_the_prompt_grows_to_a_third_of_the_screen_and_wraps_between_words(
    tmp_path: Path,
) -> None:
    async with prompting(tmp_path, size=(30, 15)) as hand:
        await hand.type("some words that do not fit into one row")
        assert hand.screen() == "▌ some words that do not fit\n▌ into one row"
        await hand.type("\n3\n4\n5\n6\n7")
        assert hand.screen() == "▌ 3\n▌ 4\n▌ 5\n▌ 6\n▌ 7"
        await hand.press(*["up"] * 5)
        assert hand.screen().splitlines()[0] == "▌ into one row"


@pytest.mark.slow
async def test_readline_keys_move_cut_and_put_back(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        buffer = hand.app.prompt.editor.buffer
        await hand.type("one two-three four")
        for key, place in (
            ("ctrl+a", 0),
            ("alt+f", 3),
            ("ctrl+right", 7),
            ("alt+f", 13),
            ("alt+b", 8),
            ("ctrl+left", 4),
            ("ctrl+f", 5),
            ("ctrl+b", 4),
            ("ctrl+e", 18),
            ("home", 0),
            ("end", 18),
        ):
            await hand.press(key)
            assert buffer.cursor == place, key
        await hand.press("ctrl+w")
        assert hand.app.text == "one two-three "
        await hand.press("alt+backspace", "ctrl+y", "ctrl+y")
        assert hand.app.text == "one two-three two-three "
        await hand.press("ctrl+a", "alt+d", "ctrl+k")
        assert hand.app.text == ""
        await hand.press(
            "ctrl+y", "ctrl+u", "ctrl+underscore", "ctrl+underscore", "ctrl+underscore"
        )
        assert hand.app.text == " two-three two-three "
        await hand.press("alt+r", "alt+r")
        assert hand.app.text == " two-three two-three "
        await hand.press("ctrl+a", "ctrl+d", "delete", "end", "backspace", "ctrl+h")
        assert hand.app.text == "wo-three two-thre"
        await hand.press("shift+home", "x")
        assert hand.app.text == "x"
        await hand.press("enter")


async def test_what_is_selected_is_copied_and_otherwise_ctrl_c_clears(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        await hand.type("one two")
        await hand.press("shift+left", "shift+left", "ctrl+c")
        assert hand.app.clipboard == "wo"
        assert hand.app.text == "one two"
        await hand.press("right", "ctrl+c")
        assert hand.app.text == ""
        await hand.press("ctrl+underscore")
        assert hand.app.text == "one two"


async def test_the_mouse_points_and_selects(tmp_path: Path) -> None:
    async with prompting(tmp_path, size=(30, 15)) as hand:
        await hand.type("one two\n漢字 three")
        editor = hand.app.prompt.editor
        await hand.pilot.click(editor, offset=(4 + 2, 0))
        assert editor.buffer.cursor == 4
        await hand.pilot.click(editor, offset=(2 + 3, 1))
        assert editor.buffer.cursor == 9
        await hand.pilot.mouse_down(editor, offset=(2, 0))
        await hand.pilot.hover(editor, offset=(2 + 3, 0))
        await hand.pilot.mouse_up(editor, offset=(2 + 3, 0))
        assert editor.buffer.selection == (0, 3)
        await hand.pilot.click(editor, offset=(2 + 5, 0), times=2)
        assert editor.buffer.selection == (4, 7)
        await hand.pilot.click(editor, offset=(2 + 6, 1), times=3)
        assert editor.buffer.selection == (8, 16)
        await hand.pilot.press("x")
        assert editor.buffer.text == "one two\nx"


async def test_shell_mode_begins_with_an_exclamation_mark_and_ends_with_escape(
    tmp_path: Path,
) -> None:
    async with prompting(tmp_path) as hand:
        editor = hand.app.prompt.editor
        await hand.type("!ls -l")
        assert editor.mode == "shell"
        assert editor.has_class("-shell")
        assert hand.app.text == "ls -l"
        await hand.press("backspace")
        assert editor.mode == "shell"
        await hand.press("escape")
        assert editor.mode == "prompt"
        await hand.press("ctrl+a", "!", "enter")
        await hand.until(lambda: hand.app.sent)
        sent = hand.app.sent[0]
        assert isinstance(sent, PromptSubmitted)
        assert (sent.entry.text, sent.entry.mode) == ("ls -", "shell")
        assert editor.mode == "prompt"
        await hand.press("!", "backspace")
        assert editor.mode == "prompt"
        await hand.type("a!")
        assert (hand.app.text, editor.mode) == ("a!", "prompt")


async def test_history_comes_back_with_the_arrow_keys(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        for line in ("one", "two\nlines", "!make"):
            await hand.type(line)
            await hand.press("enter")
        await hand.type("draft")
        await hand.press("up")
        assert (hand.app.text, hand.app.prompt.editor.mode) == ("make", "shell")
        await hand.press("up")
        assert (hand.app.text, hand.app.prompt.editor.mode) == ("two\nlines", "prompt")
        await hand.press("up")
        assert hand.app.text == "two\nlines"
        await hand.type("!")
        await hand.press("up")
        assert hand.app.text == "one"
        await hand.press("up", "down")
        assert hand.app.text == "two!\nlines"
        await hand.press("down", "down", "down", "down")
        assert (hand.app.text, hand.app.prompt.editor.mode) == ("draft", "prompt")
        await hand.press("enter")
        await hand.until(lambda: len(hand.app.sent) == 4)
    async with prompting(tmp_path) as hand:
        await hand.press("up", "up", "up")
        assert hand.app.text == "two\nlines"


@pytest.mark.slow
async def test_history_is_searched_as_it_is_typed(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        for line in ("fix the test", "write the docs", "fix the bug", "!make test"):
            await hand.type(line)
            await hand.press("enter")
        await hand.type("dra")
        await hand.press("ctrl+r")
        assert hand.screen().split() == ["▌", "dra", "nothing", "in", "the", "history", "fits"]
        await hand.press("backspace", "backspace", "backspace")
        await hand.type("fix")
        assert hand.screen().split() == [
            "fix",
            "the",
            "bug",
            "fix",
            "the",
            "test",
            "▌",
            "fix",
            "history",
        ]
        await hand.press("ctrl+r", "enter")
        assert hand.screen() == "▌ fix the test"
        assert hand.app.text == "fix the test"
        assert hand.app.texts[4:] == []
        await hand.press("ctrl+c", "ctrl+r")
        assert "  ! make test" in hand.screen()
        await hand.press("down", "tab")
        assert hand.app.text == "fix the bug"
        await hand.press("ctrl+r")
        await hand.type("zzz")
        await hand.press("escape")
        assert hand.app.text == "fix the bug"
        await hand.press("ctrl+r", "z", "ctrl+c")
        assert hand.app.text == "fix the bug"
        await hand.press("ctrl+r", "s", "enter")
        assert (hand.app.text, hand.app.texts[4:]) == ("fix the bugs", [])
        await hand.press("backspace", "enter")
        await hand.until(lambda: hand.app.texts[4:] == ["fix the bug"])


async def test_what_is_put_aside_comes_back(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        await hand.type("for later")
        await hand.press("alt+s")
        assert hand.app.text == ""
        await hand.type("!now")
        await hand.press("alt+shift+s")
        assert (hand.app.text, hand.app.prompt.editor.mode) == ("for later", "prompt")
        await hand.press("alt+shift+s")
        assert (hand.app.text, hand.app.prompt.editor.mode) == ("now", "shell")


async def test_a_command_is_told_from_a_prompt(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        for line in (
            "/model a/b",
            "/new",
            "  /new",
            "/etc/hosts is broken",
            "/tmp is full",
            "/models",
        ):
            await hand.type(line)
            await hand.press("enter")
        await hand.until(lambda: len(hand.app.sent) == 6)
        assert hand.app.texts == [
            "/model a/b",
            "/new ",
            "  /new",
            "/etc/hosts is broken",
            "/tmp is full",
            "/models ",
        ]
        await hand.type("/nwe")
        await hand.press("enter")
        await hand.until(lambda: hand.app.text == "/nwe")
        notes = [note.message for note in hand.app._notifications]
        assert notes == [
            "Unknown command: /nwe. Did you mean `/new`? To send it as a prompt, put a space first."
        ]


async def test_what_other_programs_call_a_command_is_understood(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        await hand.type("/reset")
        await hand.press("enter")
        await hand.until(lambda: hand.app.text == "/reset")
        (note,) = hand.app._notifications
        assert "Did you mean `/new`?" in note.message


async def test_keys_choose_whether_a_prompt_steers_or_waits(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        await hand.type("a")
        await hand.press("enter", "b", "ctrl+s")
        await hand.until(lambda: len(hand.app.sent) == 2)
        assert [each.delivery for each in hand.app.sent if isinstance(each, PromptSubmitted)] == [
            "steer",
            "queue",
        ]


async def test_the_keys_are_the_persons(tmp_path: Path) -> None:
    keys = {"input_submit": "ctrl+return", "input_newline": "return", "history_search": "none"}
    async with prompting(tmp_path, PromptSettings(keys=keys)) as hand:
        await hand.type("a")
        await hand.press("enter", "b", "ctrl+r", "ctrl+enter")
        await hand.until(lambda: hand.app.texts == ["a\nb"])


async def test_vi_keys_when_they_are_wanted(tmp_path: Path) -> None:
    async with prompting(tmp_path, PromptSettings(vim=True)) as hand:
        await hand.type("one two")
        assert "NORMAL" not in hand.screen()
        await hand.press("escape", "b", "c", "w", "x", "escape")
        assert hand.app.text == "one x"
        assert hand.screen().endswith(" NORMAL")
        await hand.press("v", "b", "b")
        assert hand.screen().endswith(" VISUAL")
        assert hand.app.prompt.editor.selection == (0, 5)
        await hand.press("escape", "enter")
        await hand.until(lambda: hand.app.texts == ["one x"])
        await hand.type("typed again")
        assert hand.app.text == "typed again"
        await hand.press("escape", "k")
        assert hand.app.text == "one x"


@pytest.mark.slow
async def test_right_to_left_wide_and_joined_characters_stay_as_they_were_typed(
    tmp_path: Path,
) -> None:
    text = "שלום עולם العربية 漢字 e\u0301👍🏽👨\u200d👩\u200d👧🇩🇪 \u202ehidden"
    async with prompting(tmp_path, size=(40, 20)) as hand:
        await hand.type(text)
        assert "<U+202E>hidden" in hand.screen()
        buffer = hand.app.prompt.editor.buffer
        steps = 0
        while buffer.cursor:
            await hand.press("left")
            steps += 1
        # The hidden character belongs to the blank before it.
        assert steps == len(text) - 1 - 1 - 4 - 1 - 1
        assert "\u202e" not in hand.screen()
        await hand.press("enter")
        await hand.until(lambda: hand.app.texts == [text])


async def test_waiting_prompts_are_shown_and_can_be_taken_back(tmp_path: Path) -> None:
    server = QueueServer("fix the tests first")
    async with prompting(tmp_path, size=(70, 20)) as hand:
        queue = hand.app.prompt.queue
        queue.open_session(server, "ses_1")
        queue.add(PromptEntry("then write\nthe docs"))
        queue.add(PromptEntry("make", "shell"))
        # The rows are there before the prompt has grown to show them all.
        await hand.until(
            lambda: "fix the tests first" in hand.screen() and "↑ edits" in hand.screen()
        )
        assert hand.screen() == (
            "  at the next step  fix the tests first\n"
            "  after this turn  then write the docs\n"
            "  after this turn  ! make                                     ↑ edits\n"
            "▌ Ask, or describe a task"
        )
        await hand.press("up")
        assert (hand.app.text, hand.app.prompt.editor.mode) == ("make", "shell")
        await hand.press("ctrl+c")
        released = queue.pop_next()
        assert released is not None
        assert released.text == "then write\nthe docs"
        await hand.press("up")
        await hand.until(lambda: hand.app.text == "fix the tests first")
        assert server.waiting == []
        await hand.until(lambda: hand.screen() == "▌ fix the tests first")
        server.add("again")
        await queue.reload()
        await hand.type(" and more")
        server.is_working_on_it = True
        await hand.pilot.click(queue, offset=(3, 0))
        await hand.until(lambda: hand.app._notifications)
        assert hand.app.text == "fix the tests first and more"
        queue.add(PromptEntry("for after a crash"))
    hand.app.prompt.store.drafts.close()
    async with prompting(tmp_path, size=(40, 20)) as hand:
        hand.app.prompt.queue.open_session(QueueServer(), "ses_1")
        assert [entry.text for entry in hand.app.prompt.queue.local_prompts] == [
            "for after a crash"
        ]


async def test_a_prompt_added_while_the_screen_is_laid_out_gets_its_row(tmp_path: Path) -> None:
    async with prompting(tmp_path, size=(70, 20)) as hand:
        queue = hand.app.prompt.queue
        queue.open_session(QueueServer(), "ses_1")
        queue.add(PromptEntry("one"))
        await hand.until(lambda: "one" in hand.screen())
        queue.add(PromptEntry("two"))
        # The editor, a neighbour, has the screen laid out before the request of
        # the queue is carried out.
        hand.app.prompt.editor.refresh(layout=True)
        hand.app.prompt.editor._check_refresh()
        hand.app.screen._refresh_layout()
        queue.add(PromptEntry("three"))
        await hand.until(lambda: "three" in hand.screen())
        assert queue.size.height == 3


@pytest.mark.parametrize("to_editor", [True, False])
async def test_a_switch_of_the_session_leaves_withdrawn_prompts_to_their_own(
    tmp_path: Path, to_editor: bool
) -> None:
    server = QueueServer("one", "two")
    async with prompting(tmp_path) as hand:
        queue = hand.app.prompt.queue
        queue.open_session(server, "ses_1")
        queue.add(PromptEntry("three"))
        await queue.reload()
        server.before_delete = lambda: queue.open_session(QueueServer(), "ses_2")
        await queue.withdraw_unread(queue.server_prompts, to_editor=to_editor)
        assert {each.session_id for each in server.deleted} == {"ses_1"}
        assert (queue.local_prompts, hand.app.text) == ([], "")
        queue.open_session(server, "ses_1")
        assert [entry.text for entry in queue.local_prompts] == ["one", "two", "three"]


async def test_a_prompt_that_was_sent_is_edited_again_with_its_images(tmp_path: Path) -> None:
    place = FilePartSourceText(value="[Image]", start=4, end=11)
    image = FilePartInput(
        mime="image/png",
        url="data:image/png;base64,AA==",
        filename="a.png",
        source=FileSource(path="a.png", text=place),
    )
    loose = FilePartInput(mime="image/png", url="data:image/png;base64,BB==", filename="b.png")
    async with prompting(tmp_path) as hand:
        hand.app.prompt.set_entry(PromptEntry("see [Image] now", files=(image, loose)))
        assert hand.screen() == "▌ see [Image] now [Image #2]"
        await hand.press("enter")
        await hand.until(lambda: hand.app.sent)
        sent = hand.app.sent[0]
        assert isinstance(sent, PromptSubmitted)
        assert [file.url for file in sent.entry.files] == [image.url, loose.url]


@pytest.mark.slow
async def test_drafts_are_kept_by_session_and_come_back(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        keeping = hand.app.prompt.draft_keeper
        keeping.switch_session("ses_1")
        await hand.type("one")
        keeping.switch_session("ses_2")
        assert hand.app.text == ""
        await hand.type("!two")
        keeping.switch_session("ses_1")
        assert (hand.app.text, hand.app.prompt.editor.mode) == ("one", "prompt")
        keeping.adopt_session("ses_3")
        keeping.switch_session("ses_1")
        assert hand.app.text == ""
        await hand.press("x", "enter")
        assert hand.app.prompt.store.drafts.load("ses_1") is None
    hand.app.prompt.store.drafts.close()
    async with prompting(tmp_path) as hand:
        keeping = hand.app.prompt.draft_keeper
        for session, text in (("ses_1", ""), ("ses_2", "two"), ("ses_3", "one")):
            keeping.switch_session(session)
            assert hand.app.text == text
        await hand.until(
            lambda: [note.message for note in hand.app._notifications] == [RESTORE_NOTE] * 2
        )


async def test_a_folder_that_cannot_be_written_costs_no_word(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    async with prompting(tmp_path / "file") as hand:
        await hand.type("hello")
        await hand.press("alt+s")
        assert hand.app.text == "hello"
        await hand.press("enter")
        await hand.until(lambda: hand.app.texts == ["hello"])
        await hand.until(
            lambda: any("can't be" in note.message for note in hand.app._notifications)
        )


async def test_a_command_is_typed_in_the_place_of_a_prompt_that_an_undo_put_back(
    tmp_path: Path,
) -> None:
    async with prompting(tmp_path) as hand:
        back = PromptEntry("fix it")
        hand.app.prompt.set_entry(back, is_undone=True)
        await hand.type("/")
        assert hand.app.text == "/"
        await hand.press("ctrl+underscore")
        assert hand.app.text == "fix it"
        hand.app.prompt.set_entry(back, is_undone=True)
        await hand.type(" in src/")
        assert hand.app.text == "fix it in src/"
        hand.app.prompt.set_entry(back, is_undone=True)
        await hand.press("home")
        await hand.type("/")
        assert hand.app.text == "/fix it"


async def test_what_was_typed_before_the_session_was_there_goes_along(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        keeping = hand.app.prompt.draft_keeper
        keeping.switch_session("ses_1")
        await hand.type("a draft")
        keeping.switch_session("new")
        await hand.type("!ls -la")
        keeping.switch_session("ses_1")
        assert (hand.app.text, hand.app.prompt.editor.mode) == ("ls -la", "shell")
        await hand.press("enter")
        assert keeping.pop_stash()
        assert hand.app.text == "a draft", "the session's own draft was put aside"
        assert hand.app.prompt.store.drafts.load("new") is None


def test_the_cursor_has_a_cell_before_anything_is_laid_out() -> None:
    layout = LineLayout(dict)
    assert (layout.locate(0), layout.locate(7), layout.find_offset(0, 3), layout.get_row(0)) == (
        (0, 0),
        (0, 0),
        0,
        (0, ""),
    )
    layout.update("ab cd", 4)
    assert (layout.row_count, layout.locate(5)) == (2, (1, 2))
