"""Every screen at two sizes, in a dark and in a light theme,
over a project that is always the same.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.schema.event import PermissionAsked, QuestionAsked
from codeloop.schema.message import FORK_KEY
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionRequest
from codeloop.tui.commands import COMMANDS_BY_ID
from codeloop.tui.dialogs.export import EXPORT_FORMATS
from codeloop.tui.dialogs.parts.confirm import Confirm
from codeloop.tui.dialogs.trust import TrustScreen
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.prompt.history.stored_prompt import StoredPrompt
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry
from tests.tui.screens.album import SIZES, Album, told
from tests.tui.stored.client import StoredClient
from tests.tui.stored.play import NOW, Stored, stored

TRUST = """codeloop.json wants:
+ hook  after each edit: ./format.sh
+ server  tracker: npx tracker-mcp
+ provider  mine: https://models.example.com/v1
"""
DIALOGS = {
    "palette": ("command_list", "Switch session"),
    "help": ("help", "Keys and commands"),
    "sessions": ("session_list", "Why is the start slow?"),
    "timeline": ("session_timeline", "ask me"),
    "diff": ("session_changes", "cart.py"),
    "servers": ("mcp_list", "wants you to sign in"),
    "subagents": ("session_child_first", "Look for other totals"),
    "tree": ("session_tree", "before “ask"),
    "effort": ("variant_list", "as the service decides"),
    "stash": ("stash_list", "A thing for later"),
    "models": ("model_list", "Claude Sonnet 5"),
    "agents": ("agent_list", "plan"),
    "themes": ("theme_list", "codeloop"),
    "settings": ("settings", "Settings"),
    "providers": ("provider_connect", "OpenAI"),
    "export": ("session_export", EXPORT_FORMATS[0][2]),
    "rename": ("session_rename", "confirm"),
    "delete": ("session_delete", "of its subagents"),
}
"""The command that opens each, and what is on the screen when it is complete."""

PREVIEWED = {
    "sessions": "rounded half up",
    "timeline": "rounded half up",
    "diff": "return sum(price",
    "subagents": "only cart.py",
}
"""What the preview shows where there is room for one."""
CHILD, FORKED = "ses_00000000000000000000000004", "ses_00000000000000000000000005"


async def asked(it: Stored) -> tuple[Any, Any]:
    """Return the question before a command, and the model's question."""
    answers = it.client.answers
    permission = msgspec.convert(answers["permission.asked"], list[PermissionRequest])
    question = msgspec.convert(answers["question.asked"], list[QuestionRequest])
    return permission[0], question[0]


async def conversation(it: Stored, album: Album) -> None:
    await album.take("conversation", "Then it is rounded")
    # On the larger screen there is nothing to scroll.
    await it.pilot.resize_terminal(80, 24)
    await it.sees("Then it is rounded")
    it.ui.run_command(COMMANDS_BY_ID["messages_first"])
    await album.take("beginning", "Thought")
    it.ui.run_command(COMMANDS_BY_ID["messages_last"])
    it.ui.run_command(COMMANDS_BY_ID["status_view"])
    await album.take("status", "theme codeloop")
    it.ui.tab.clear_notices()
    it.ui.run_command(COMMANDS_BY_ID["session_new"])
    await album.take("tabs", "2 New session", "Ask, or describe a task")
    it.ui.run_command(COMMANDS_BY_ID["tab_close"])
    await it.sees("Then it is rounded")


async def typing(it: Stored, album: Album) -> None:
    prompt = it.ui.tab.prompt
    prompt.set_entry(
        PromptEntry(
            "A first line, which is long enough to be wrapped where the terminal is narrow.\nAnd two."
        )
    )
    await album.take("prompt", "And two.")
    for name, text, shown in (
        ("commands", "/th", "/themes"),
        ("files", "see @car", "cart.py"),
        ("shell", "!make", "make"),
    ):
        prompt.clear()
        await it.pilot.press(
            *(
                {"/": "slash", "@": "at", "!": "exclamation_mark", " ": "space"}.get(c, c)
                for c in text
            )
        )
        await album.take(name, shown)
        await it.pilot.press("escape")
    prompt.clear()
    await it.pilot.press("escape")


def a_subagent(client: StoredClient) -> None:
    """Let the session have a subagent."""
    answers = client.answers
    prompt, *_, answer = answers[f"session.messages {client.main}"]
    said = {**answer["parts"][1], "text": "`total` is called by **only cart.py**, and by its test."}
    child = {
        "id": CHILD,
        "parentID": client.main,
        "agent": "explore",
        "title": "Look for other totals",
    }
    answers[f"session.get {CHILD}"] = {**answers[f"session.get {client.main}"], **child}
    answers[f"session.children {client.main}"] = [answers[f"session.get {CHILD}"]]
    answers |= {f"session.todo {CHILD}": [], f"session.diff {CHILD}": []}
    answers[f"session.children {CHILD}"] = []
    answers[f"session.messages {CHILD}"] = [prompt, {**answer, "parts": [said]}]


def a_fork(client: StoredClient) -> None:
    """Let there be a fork of the session, from before its last prompt."""
    answers, main = client.answers, client.main
    prompt = next(
        each
        for each in reversed(answers[f"session.messages {main}"])
        if each["info"]["role"] == "user"
    )
    origin = {FORK_KEY: {"sessionID": main, "messageID": prompt["info"]["id"]}}
    session = {
        **answers[f"session.get {main}"],
        "id": FORKED,
        "title": "Rounding half even",
        "metadata": origin,
    }
    answers["session.list"] = [*answers["session.list"], session]
    answers |= {
        f"session.get {FORKED}": session,
        f"session.messages {FORKED}": [],
        "session.message": prompt,
    }


async def dialogs(it: Stored, album: Album) -> None:
    it.client.answers |= {
        name: it.client.answers[name.replace("list", "asked")]
        for name in ("permission.list", "question.list")
    }
    a_subagent(it.client)
    a_fork(it.client)
    it.ui.tab.prompt.store.push_stash(
        StoredPrompt("A thing for later, that was half written", at=int(NOW - 7200) * 1000)
    )
    for name, (command, shown) in DIALOGS.items():
        it.ui.run_command(COMMANDS_BY_ID[command])
        await it.settle(lambda: len(it.ui.screen_stack) == 2)
        await album.take(name, shown, beside=PREVIEWED.get(name, ""))
        if name == "subagents":
            await it.pilot.press("enter")
            await it.settle(lambda: len(it.ui.screen_stack) == 1)
            await album.take("child", "2 Look for other totals", "only cart.py")
            it.ui.run_command(COMMANDS_BY_ID["tab_close"])
            await it.sees("Then it is rounded")
            continue
        if name == "servers":
            await it.pilot.press("down", "down", "down")
            await album.take("server-failed", "there is no such program")
        if name == "diff":
            await it.pilot.press("enter")
            await album.take("reading", "pgdn scroll")
        await it.pilot.press("escape")
        await it.settle(lambda: len(it.ui.screen_stack) == 1)

    def colours() -> Styles:
        return it.ui.appearance.styles

    for name, screen, shown in (
        ("trust", TrustScreen(TRUST, colours), "tracker-mcp"),
        (
            "confirm",
            Confirm("Overwrite the file?", "notes.md exists already.", "overwrite", colours),
            "overwrite",
        ),
    ):
        it.ui.push_screen(screen)
        await it.settle(lambda: len(it.ui.screen_stack) == 2)
        await album.take(name, shown)
        it.ui.pop_screen()
        await it.settle(lambda: len(it.ui.screen_stack) == 1)


async def questions(it: Stored, album: Album) -> None:
    command, question = await asked(it)
    it.is_busy(busy=True)
    for name, event, shown in (
        ("permission", PermissionAsked(properties=command), "Allow once"),
        ("question", QuestionAsked(properties=question), "Half even"),
    ):
        it.say(event)
        await it.settle(lambda: it.ui.tab.panel.request is not None and it.ui.tab.panel.is_ready)
        await album.take(name, shown, "reject")
        assert it.ui.tab.view is not None
        it.ui.tab.view.requests.clear()
        it.ui.tab.sync()
        await it.settle(lambda: it.ui.tab.panel.request is None)


PARTS = (
    *(pytest.param(part, marks=pytest.mark.slow) for part in (conversation, typing, dialogs)),
    questions,
)


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
async def test_every_screen_is_as_it_was_when_somebody_looked_at_it(
    tmp_path: Path, part: Callable[[Stored, Album], Awaitable[None]]
) -> None:
    async with stored(tmp_path, size=SIZES[0], client=told()) as it:
        album = Album(it)
        await part(it, album)
    assert not album.wrong, "\n".join(album.wrong)


@pytest.mark.slow
async def test_the_first_screen_is_as_it_was(tmp_path: Path) -> None:
    async with stored(tmp_path, size=SIZES[0], resumed=False, client=told()) as it:
        album = Album(it)
        await album.take("first", "Ask, or describe a task")
        it.ui.run_command(COMMANDS_BY_ID["tour"])
        await album.take("tour", "Five keys")
    assert not album.wrong, "\n".join(album.wrong)
