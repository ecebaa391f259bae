"""Every kind of item becomes rows that fit, in every state."""

import pytest

from codeloop.schema.errors import (
    ErrorText,
    MessageAbortedError,
    ProviderAuthData,
    ProviderAuthError,
)
from codeloop.schema.part import AgentPart
from codeloop.schema.wire import replace
from codeloop.tui.state.conversation_items import Item, NoticeItem, SummaryItem
from tests.tui.drawing import draw, plain, renderer, styled
from tests.tui.gallery import ITEMS
from tests.tui.parts import end, file, prompt, running, text, thought


@pytest.mark.parametrize("width", [10, 40, 80, 140])
@pytest.mark.parametrize("item", [pytest.param(item, id=name) for name, item in ITEMS.items()])
def test_rows_fit_whatever_the_item(item: Item, width: int) -> None:
    assert draw(item, width)


def test_a_prompt_has_a_bar_and_hides_what_the_program_added() -> None:
    item = prompt(text("Fix the tests\nplease"), text("SECRET", synthetic=True), file("shot.png"))
    assert plain(draw(item, 30)) == "▌ Fix the tests\n▌ please\n▌ [image shot.png]"


def test_a_prompt_is_filled_to_its_width_with_the_panel() -> None:
    assert styled(draw(prompt(text("Hi")), 8)) == (
        "{primary on background_panel}▌{text on background_panel} Hi    "
    )


def test_a_prompt_that_was_taken_back_is_struck_through() -> None:
    assert "strike" in styled(draw(prompt(text("Hi"), is_undone=True)))


def test_a_mentioned_agent_is_a_chip() -> None:
    agent = AgentPart(id="p", session_id="s", message_id="m", name="review")
    assert "[@review]" in plain(draw(prompt(text("Ask @review"), agent)))


def test_thinking_is_one_row_until_it_is_opened_and_none_when_it_is_not_wanted() -> None:
    closed = thought("First I look.\n\nThen I think.")
    assert plain(draw(closed, 60)) == "▸ Thought for 3.2 s: First I look.  3 lines"
    assert "toggle=prt_think" in styled(draw(closed))
    opened = thought("First I look.\n\nThen I think.", is_open=True)
    assert plain(draw(opened, 60)) == "▾ Thought for 3.2 s\n  First I look.\n\n  Then I think."
    assert draw(closed, thinking=False) == []


def test_thinking_that_goes_on_shows_its_latest_line() -> None:
    assert (
        plain(draw(thought("First I look.\nThen I", seconds=None), 60))
        == "▸ Thinking: Then I  2 lines"
    )


def test_the_end_of_a_turn_tells_who_how_long_and_how_much() -> None:
    assert plain(draw(end(), 100)) == (
        "  build · claude-sonnet · 34.0 s · 3 steps · 48.2k in (41.0k cached), 1.8k out · $0.0421"
    )


def test_an_error_is_shown_with_what_to_do_and_an_abort_as_a_word() -> None:
    def refused(message: str) -> str:
        error = ProviderAuthError(data=ProviderAuthData(provider_id="openai", message=message))
        return plain(
            draw(end(error=error, tokens_in=0, cached_tokens=0, tokens_out=0, cost=0.0), 100)
        )

    stored = refused("It is the stored key. Replace it: `codeloop auth login openai`.")
    assert stored.splitlines()[1] == "▌ Here /connect does that."
    variable = refused("It comes from the environment variable KEY. Set KEY to another key.")
    assert variable.splitlines() == [
        "▌ It comes from the environment variable KEY. Set KEY to another key.",
        "  build · claude-sonnet · 34.0 s · 3 steps",
    ]
    aborted = plain(
        draw(end(error=MessageAbortedError(data=ErrorText(message="Aborted by the user"))))
    )
    assert "· stopped ·" in aborted
    assert "Aborted by the user" not in aborted


def test_a_summary_is_a_line_until_it_is_opened() -> None:
    assert (
        plain(draw(SummaryItem("k", "What was done."), 40))
        == "─────── ▸ conversation compacted ───────"
    )
    assert "What was done." in plain(draw(SummaryItem("k", "What was done.", is_open=True)))


def test_a_notice_has_a_bar_in_its_colour() -> None:
    assert styled(draw(NoticeItem("k", "Careful", "warning"))) == "{warning}▌ {text}Careful"


def test_only_what_runs_changes_with_time() -> None:
    drawing = renderer()
    assert drawing.shows_time(running("bash", {"command": "sleep 9"}))
    assert not drawing.shows_time(prompt(text("Hi")))


def test_nothing_foreign_reaches_the_terminal_as_a_control() -> None:
    evil = "a\x1b[2Jb\x07\u202ec"
    for item in (
        prompt(text(evil)),
        thought(evil, is_open=True),
        NoticeItem("k", evil),
        SummaryItem("k", evil, is_open=True),
    ):
        shown = plain(draw(item))
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_a_long_prompt_shows_its_beginning_and_its_end_until_it_is_opened() -> None:
    said = prompt(text("\n".join(f"line {number}" for number in range(1, 201))))
    folded = plain(draw(said))
    assert len(folded.split("\n")) == 21
    assert "line 10\n▌ … 180 more rows; a click shows them\n▌ line 191" in folded.replace(
        " \n", "\n"
    )
    assert f"toggle={said.key}" in styled(draw(said))
    opened = plain(draw(replace(said, is_open=True)))
    assert "line 100" in opened
    assert opened.endswith("show less")
