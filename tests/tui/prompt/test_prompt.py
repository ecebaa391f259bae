"""The prompt as a person uses it: keys in, a prompt out."""

from pathlib import Path

from tests.tui.prompt.driver import prompting


async def test_keys_become_a_prompt_and_enter_sends_it(tmp_path: Path) -> None:
    async with prompting(tmp_path) as hand:
        assert hand.screen() == "▌ Ask, or name a task"
        await hand.type("hello")
        assert hand.screen() == "▌ hello"
        await hand.press("enter")
        await hand.until(lambda: hand.app.texts == ["hello"])
        assert hand.screen() == "▌ Ask, or name a task"
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


async def test_the_prompt_grows_to_a_third_of_the_screen_and_wraps_between_words(tmp_path: Path) -> None:
    async with prompting(tmp_path, size=(30, 15)) as hand:
        await hand.type("some words that do not fit into one row")
        assert hand.screen() == "▌ some words that do not fit\n▌ into one row"
        await hand.type("\n3\n4\n5\n6\n7")
        assert hand.screen() == "▌ 3\n▌ 4\n▌ 5\n▌ 6\n▌ 7"
        await hand.press(*["up"] * 5)
        assert hand.screen().splitlines()[0] == "▌ into one row"
