"""What is seldom seen: a full sidebar, forty columns, few colours, messages, lists without rows,
the first start.
"""

from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from codeloop.schema.live_events import Toast, ToastShown
from codeloop.schema.message import Todo
from codeloop.tui.actions.show_dialog import make_context
from codeloop.tui.commands import COMMANDS_BY_ID
from codeloop.tui.dialogs.mcp import PASTE_HINT
from codeloop.tui.dialogs.parts.sign_in_screen import SignInScreen
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.dialogs.profiles import create_profile_picker
from codeloop.tui.dialogs.providers.custom_server import CustomServerSetup
from codeloop.tui.editor.vim.vim import Vim
from codeloop.tui.keys.keymap import Keymap
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.prompt.history.stored_prompt import StoredPrompt
from tests.tui.screens.album import SIZES, Album, told
from tests.tui.screens.test_asking import a_command, ask
from tests.tui.stored.client import StoredClient
from tests.tui.stored.play import Stored, stored

SMALL = SIZES[:1]
NARROW = ((40, 20),)
TODOS = [
    Todo(content="Find out why the total is wrong", status="completed", priority="high"),
    Todo(
        content="Apply the discount last, with decimals, and round at the end",
        status="in_progress",
        priority="high",
    ),
    Todo(content="Run the tests", status="pending", priority="medium"),
    Todo(content="Rewrite everything", status="cancelled", priority="low"),
]
TOASTS = (
    Toast(message="The last answer is copied.", variant="info", duration=600_000),
    Toast(
        message="It did not answer within 5 s.",
        variant="warning",
        title="Extension guard",
        duration=600_000,
    ),
    Toast(
        message="Anthropic refused the key. Enter another one with /connect.",
        variant="error",
        duration=600_000,
    ),
)
ABOUT = "The key is stored for OpenAI alone, and tried at once with one short request."
PAGE = "https://tracker.example.com/oauth/authorize?response_type=code&client_id=codeloop&state=0123456789abcdef"


def full(client: StoredClient) -> None:
    """Let the session have changed more files than the sidebar has rows for."""
    one = client.answers[f"session.diff {client.main}"][0]
    names = [f"src/shop/{'orders/' * (number % 4)}module_{number}.py" for number in range(34)]
    client.answers[f"session.diff {client.main}"] = [
        {**one, "file": name, "additions": 7 * number, "deletions": number % 5}
        for number, name in enumerate(names)
    ]


async def shown(
    it: Stored, screen: Screen[Any], album: Album, name: str, *texts: str, **given: Any
) -> None:
    """Take a snapshot of a dialog, and close it."""
    it.ui.push_screen(screen)
    await it.settle(lambda: len(it.ui.screen_stack) == 2)
    await album.take(name, *texts, **given)
    it.ui.pop_screen()
    await it.settle(lambda: len(it.ui.screen_stack) == 1)


def colours(it: Stored) -> Any:
    """Return what gives dialogs the colours that are in use."""

    def now() -> Styles:
        return it.ui.appearance.styles

    return now


@pytest.mark.slow
async def test_other_dialogs(tmp_path: Path) -> None:
    client = told()
    client.answers |= {"mcp.status": {}}
    async with stored(tmp_path, size=SIZES[0], client=client) as it:
        album, styles = Album(it), colours(it)
        await shown(it, create_profile_picker("auto", styles), album, "profiles", "yolo")
        await shown(
            it,
            SignInScreen("tracker", PAGE, PASTE_HINT, styles),
            album,
            "sign-in",
            "Sign in at tracker",
        )
        key = TextInput("Key for OpenAI", styles, "sk-0123", about=ABOUT, is_secret=True)
        await shown(it, key, album, "key", "Key for OpenAI")
        adding = it.ui.start_task(CustomServerSetup(make_context(it.ui), ()).add_server())
        await it.settle(lambda: len(it.ui.screen_stack) == 2)
        await album.take("own-server", "base URL")
        await it.pilot.press("escape")
        await adding
        it.ui.run_command(COMMANDS_BY_ID["mcp_list"])
        await it.settle(lambda: len(it.ui.screen_stack) == 2)
        await album.take("empty", "No MCP server")
        await it.pilot.press("escape")
        await it.settle(lambda: len(it.ui.screen_stack) == 1)
        it.ui.run_command(COMMANDS_BY_ID["command_list"])
        await it.settle(lambda: len(it.ui.screen_stack) == 2)
        await it.pilot.press(*"ses")
        await album.take("filtered", "Switch session", "Fork the session")
        await it.pilot.press(*"xyz")
        await album.take("nothing", "Nothing matches")
        await it.pilot.press("escape")
        await it.settle(lambda: len(it.ui.screen_stack) == 1)
        it.ui.run_command(COMMANDS_BY_ID["settings"])
        await it.sees("diff_style")
        await it.pilot.press(*"diff_s", "enter")
        await it.settle(lambda: len(it.ui.screen_stack) == 3)
        await album.take("setting", "split", "unified", is_at_rest=False)
    assert not album.wrong, "\n".join(album.wrong)


@pytest.mark.slow
async def test_messages_and_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The pictures of the menu take a busy machine long.
    monkeypatch.setattr("codeloop.tui.keys.key_dispatcher.MENU_READING_SECONDS", 600.0)
    client = told()
    full(client)
    async with stored(tmp_path, size=SIZES[0], client=client, toasts=True) as it:
        album, prompt = Album(it), it.ui.tab.prompt
        it.todos(TODOS)
        await album.take("sidebar", "[-] Rewrite", sizes=SIZES[1:])
        for kept in (
            StoredPrompt("fix the test"),
            StoredPrompt("make test", "shell"),
            StoredPrompt("write the docs\nof the cart"),
        ):
            prompt.store.add_to_history(kept)
        await it.pilot.press("ctrl+r")
        await album.take("history", "! make test")
        await it.pilot.press("escape", "exclamation_mark")
        await album.take("shell-empty", "A shell command")
        await it.pilot.press("escape")
        editor = prompt.editor
        editor.vim = Vim(editor.buffer, editor.run_key_action)
        await it.pilot.press(*"whole words", "escape", "v", "b")
        await album.take("vim", "VISUAL")
        editor.vim = None
        prompt.clear()
        it.ui.keymap = Keymap(
            {name: ",".join(keys) for name, keys in it.ui.keymap.keys.items()}, {}, 600.0
        )
        await it.pilot.press("ctrl+x")
        await album.take("leader", "ctrl+x …", "Show a subagent")
        await it.pilot.press("escape")
        it.say(*(ToastShown(properties=toast) for toast in TOASTS))
        await album.take("toasts", "is copied", "guard", "/connect")
    assert not album.wrong, "\n".join(album.wrong)


@pytest.mark.slow
async def test_few_columns_and_few_colours(tmp_path: Path) -> None:
    async with stored(tmp_path, size=SIZES[0], client=told()) as it:
        album = Album(it)
        for theme in ("monochrome", "system", "high-contrast"):
            await album.take(f"theme-{theme}", "Then it is rounded", sizes=SIZES, theme=theme)
        await album.take("narrow", "Then it is rounded", sizes=NARROW)
        it.ui.run_command(COMMANDS_BY_ID["command_list"])
        await it.settle(lambda: len(it.ui.screen_stack) == 2)
        for theme in ("monochrome", "system", "high-contrast"):
            await album.take(f"palette-{theme}", "Switch session", sizes=SMALL, theme=theme)
        await album.take("palette-narrow", "Switch session", sizes=NARROW)
        await it.pilot.press("escape")
        await it.settle(lambda: len(it.ui.screen_stack) == 1)
        it.is_busy(busy=True)
        await ask(it, a_command(it))
        for theme in ("monochrome", "system", "high-contrast"):
            await album.take(f"asked-{theme}", "Allow once", sizes=SMALL, theme=theme)
        await album.take("asked-narrow", "Allow once", sizes=NARROW)
    assert not album.wrong, "\n".join(album.wrong)


@pytest.mark.slow
async def test_the_first_start(tmp_path: Path) -> None:
    client = told()
    client.answers["config.get"] = {}
    client.answers["config.providers"] = {"providers": [], "default": {}}
    known = client.answers["provider.list"]
    client.answers["provider.list"] = {**known, "connected": []}
    async with stored(tmp_path, size=SIZES[0], resumed=False, client=client) as it:
        album = Album(it)
        await album.take("first-start", "Where do your models come from?")
        await it.pilot.press("escape")
        await it.settle(lambda: len(it.ui.screen_stack) == 1)
        await album.take("no-model", "Ask, or describe a task", "no model: /connect")
    assert not album.wrong, "\n".join(album.wrong)
