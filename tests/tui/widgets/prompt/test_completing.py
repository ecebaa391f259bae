"""Completion: what the list shows, and which keys take from it."""

import asyncio
from pathlib import Path

import pytest

from codeloop.tui.widgets.prompt.completion.candidates import rank_names
from codeloop.tui.widgets.prompt.completion.trigger import find_trigger, format_mention
from tests.tui.widgets.prompt.driver import Answers, prompting


async def test_commands_are_listed_with_what_they_do(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        await hand.type("/")
        await hand.until(lambda: "/new" in hand.screen())
        assert hand.screen() == (
            "  /new                   start a new session\n"
            "  /model PROVIDER/MODEL  set the model\n"
            "  /models                list the models\n"
            "  /themes [NAME]         choose a theme\n"
            "  /p:greet $1 $2         greets somebody (who [how])\n"
            "▌ /"
        )
        await hand.type("mo")
        assert hand.screen().splitlines()[0].startswith("  /model PROVIDER/MODEL")
        await hand.press("enter")
        assert hand.app.text == "/model "
        assert hand.screen().splitlines()[0].startswith("  /model PROVIDER/MODEL")
        await hand.type("a/b")
        await hand.press("enter")
        await hand.until(lambda: hand.app.texts == ["/model a/b"])
        await hand.type("/ne")
        await hand.until(lambda: "/new" in hand.screen())
        await hand.press("enter")
        await hand.until(lambda: hand.app.texts[1:] == ["/new "])
        await hand.type("/the")
        await hand.press("enter")
        await hand.until(lambda: hand.app.texts[2:] == ["/themes "])
        await hand.type("/ne")
        await hand.press("tab")
        assert hand.app.text == "/new "
        await hand.press("ctrl+c")
        await hand.type("/mo")
        await hand.press("down", "tab")
        assert hand.app.text == "/models "
        await hand.press("ctrl+c")
        await hand.type("/model")
        await hand.press("enter")
        await hand.until(lambda: hand.app.texts[3:] == ["/model "])


async def test_arguments_of_a_command_are_completed_and_enter_sends_what_is_typed(
    tmp_path: Path,
) -> None:
    async with prompting(tmp_path) as hand:
        await hand.type("/p:greet Al")
        await hand.until(lambda: "Alan Kay" in hand.screen())
        assert hand.screen() == "  Alan      who\n  Alan Kay  who\n▌ /p:greet Al"
        await hand.press("down", "down", "enter")
        assert hand.app.text == "/p:greet Alan Kay "
        await hand.type("A")
        await hand.until(lambda: "  Ada" in hand.screen() and "how" in hand.screen())
        await hand.press("tab")
        assert hand.app.text == "/p:greet Alan Kay Ada "
        await hand.type("x")
        await hand.press("enter")
        await hand.until(lambda: hand.app.texts == ["/p:greet Alan Kay Ada x"])


async def test_tab_asks_a_server_that_typing_does_not_start(tmp_path: Path) -> None:
    completer = Answers()
    completer.is_connected = False
    async with prompting(tmp_path, completer=completer) as hand:
        await hand.type("/p:greet Ad")
        await hand.until(lambda: ("p:greet", "Ad", False) in completer.wanted)
        assert hand.screen().splitlines()[0].startswith("  /p:greet $1 $2")
        await hand.press("tab")
        await hand.until(lambda: "  Ada  who" in hand.screen())
        assert completer.wanted[-1] == ("p:greet", "Ad", True)
        await hand.press("tab")
        assert hand.app.text == "/p:greet Ada "
        await hand.type("/model x")
        assert not [each for each in completer.wanted if each[0] == "model"]


async def test_escape_closes_the_list_until_another_word_begins(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        await hand.type("look at @ma")
        await hand.until(lambda: "src/main.py" in hand.screen())
        await hand.press("escape")
        assert hand.screen() == "▌ look at @ma"
        await hand.type("i")
        await hand.pilot.pause(0.1)
        assert hand.screen() == "▌ look at @mai"
        await hand.type(" @ot")
        await hand.until(lambda: "src/other.py" in hand.screen())
        await hand.press("enter")
        assert hand.app.text == "look at @mai @src/other.py "
        assert hand.app.sent == []


@pytest.mark.slow
async def test_files_folders_agents_and_symbols_are_mentioned(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        await hand.type("@")
        await hand.until(lambda: "explore" in hand.screen() and "README.md" in hand.screen())
        await hand.type("expl")
        await hand.press("tab")
        assert hand.app.text == "@explore "
        await hand.type("@sr")
        await hand.until(lambda: " src/" in hand.screen())
        await hand.press("tab")
        assert hand.app.text == "@explore @src/"
        await hand.type("ma")
        await hand.until(lambda: "src/main.py" in hand.screen())
        await hand.type("#10-20")
        await hand.press("tab")
        assert hand.app.text == "@explore @src/main.py#10-20 "
        await hand.type("@file.t")
        await hand.until(lambda: "my file.txt" in hand.screen())
        await hand.press("tab")
        assert hand.app.text == '@explore @src/main.py#10-20 @"my file.txt" '
        await hand.press(*"@docs:no")
        await hand.until(lambda: "docs:note://today" in hand.screen())
        await hand.press("tab")
        assert hand.app.text.endswith(" @docs:note://today ")
        await hand.type("@start")
        await hand.until(lambda: "start_engine" in hand.screen())
        await hand.press("tab")
        assert hand.app.text.endswith(" @src/main.py#3-9 ")
        assert hand.screen().splitlines()[-1].endswith("@src/main.py#3-9")


async def test_what_is_typed_in_full_is_sent_by_one_enter(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        await hand.type("see @README.md")
        await hand.until(lambda: len(hand.screen().splitlines()) == 2)
        await hand.press("enter")
        await hand.until(lambda: hand.app.texts == ["see @README.md"])


async def test_tab_before_the_answer_takes_it_when_it_comes_and_typing_never_waits(
    tmp_path: Path,
) -> None:
    class Slow(Answers):
        gate = asyncio.Event()

        async def find_files(self, query: str) -> list[str]:
            await self.gate.wait()
            return await super().find_files(query)

    completer = Slow()
    async with prompting(tmp_path, completer=completer) as hand:
        await hand.type("@oth")
        await hand.press("tab")
        assert hand.app.text == "@oth"
        completer.gate.set()
        await hand.until(lambda: hand.app.text == "@src/other.py ")
        assert completer.asked[-1] == "oth"  # a busy machine may have asked for its beginning, too


async def test_a_click_takes_a_row(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        await hand.type("/mo")
        await hand.until(lambda: "/models" in hand.screen())
        await hand.pilot.click("CompletionPopup", offset=(3, 1))
        assert hand.app.text == "/models "


async def test_names_that_were_taken_before_come_first(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        for _ in range(2):
            await hand.type("@test_")
            await hand.until(lambda: "tests/test_main.py" in hand.screen())
            await hand.press("tab", "ctrl+c")
    async with prompting(tmp_path) as hand:
        await hand.type("@ma")
        await hand.until(lambda: "src/main.py" in hand.screen())
        assert hand.screen().splitlines()[0] == "  tests/test_main.py"


async def test_more_rows_than_fit_are_scrolled_and_names_are_inert(tmp_path: Path) -> None:
    completer = Answers()
    completer.names = [f"file{number:02}.py" for number in range(30)] + ["evil\x1b[31m\u202e.py"]
    async with prompting(tmp_path, completer=completer, size=(40, 16)) as hand:
        await hand.type("@f")
        await hand.until(lambda: "file00" in hand.screen())
        assert len(hand.screen().splitlines()) == 9
        await hand.press("up")
        assert hand.screen().splitlines()[7].split() == ["file29.py", "30", "of", "30", "↑"]
        await hand.press("ctrl+c")
        await hand.type("@evil")
        await hand.until(lambda: "evil␛[31m<U+202E>.py" in hand.screen())


def test_what_is_in_the_middle_of_being_typed() -> None:
    def kind(text: str) -> str:
        found = find_trigger(text, len(text))
        return f"{found.kind} {found.query}{found.range} {found.start}" if found else ""

    assert kind("/mo") == "command mo 0"
    assert kind("/model x") == "arguments model 0"
    assert kind("/model @x") == "mention x 7"
    assert kind("/a/b") == ""
    assert kind("a /mo") == ""
    assert kind("a @b") == "mention b 2"
    assert kind("(@b") == "mention b 1"
    assert kind("me@b") == ""
    assert kind("a @b ") == ""
    assert kind('a @"b c') == "mention b c 2"
    assert kind("a @b.py#3-") == "mention b.py#3- 2"
    assert kind("@a\n@b") == "mention b 3"
    assert [format_mention(name) for name in ("a/b.py", "a b", "it's", "dot.")] == [
        "@a/b.py",
        '@"a b"',
        '@"it\'s"',
        '@"dot."',
    ]


def test_the_better_fit_comes_first() -> None:
    assert rank_names("mo", ["demo", "model", "my-module", "mxo", "none"]) == [
        "model",
        "my-module",
        "demo",
        "mxo",
    ]
    assert rank_names("", ["b", "a"]) == ["b", "a"]
