"""Draws the terminal UI at work on a stored session: a recording, and pictures that stand still.

In the project's folder: python -m scripts.record_ui docs/assets
"""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from codeloop.schema.api.session_messages import SESSION_MESSAGES
from codeloop.schema.api.session_requests import SESSION_TODO, SessionId
from codeloop.schema.api.session_search import SESSION_FIND, TextMatch, TextMatches
from codeloop.schema.api.session_undo import SESSION_DIFF
from codeloop.schema.event import PermissionAnswer, PermissionAsked, PermissionReplied
from codeloop.schema.part import TextPart, ToolPart
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.wire import replace
from codeloop.tui.themes.theme_loader import load_theme
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry
from scripts.terminal_svg import Line, draw_svg
from tests.tui.screens.album import told
from tests.tui.stored.client import StoredClient
from tests.tui.stored.play import running, stored

SCREEN_SIZE = (120, 36)
ALT_TEXTS = {
    "tui": "The terminal UI at work: the agent reads two files, fixes one line, asks before it runs the test, runs it.",
    "tui-question": "The terminal UI asks before a command runs: what it is, and the keys that answer.",
    "tui-find": "Finding a text in the conversation: the places are marked and counted.",
    "tui-first-run": "The first start of the terminal UI: a list of services and local servers to choose a model from.",
}
"""The alternative text of each picture, for screen readers."""
TODO_STATES = ("completed", "in_progress", "pending")
SEARCH_TEXT = "price"
"""The text that is searched for in the picture `tui-find`."""
Frame = tuple[Sequence[Line], float]
"""A screen, and the seconds for which it is shown."""


async def record_session(folder: Path) -> tuple[list[Frame], Frame]:
    """Return the screens of the first turn of the stored session,
    and the one of a search in it afterwards.
    """
    client = StoredClient()
    messages, main = client.messages(), client.main
    (asked,) = msgspec.convert(client.answers["permission.asked"], list[PermissionRequest])
    todos = await client.call(SESSION_TODO, SessionId(session_id=main))
    diff = client.answers[f"{SESSION_DIFF.id} {main}"]
    client.answers |= {
        f"{name.id} {main}": [] for name in (SESSION_MESSAGES, SESSION_TODO, SESSION_DIFF)
    }
    frames: list[Frame] = []
    async with stored(folder, size=SCREEN_SIZE, client=client) as it:

        async def take(seconds: float, *texts: str) -> None:
            await it.sees(*texts)
            frames.append((it.lines(), seconds))

        prompt, look, edit, test, done, end = messages[:6]
        words = "".join(part.text for part in prompt.parts if isinstance(part, TextPart))
        it.session(title="New session", cost=None, tokens=None)
        await take(1.5, "New session", "Ask, or describe a task")
        it.ui.tab.prompt.set_entry(PromptEntry(words))
        await take(1.5, words)
        it.ui.tab.prompt.clear()
        it.session(cost=None)
        it.is_busy(busy=True)
        it.message(prompt)
        it.message(look, look.parts[:2])
        await take(1.5, "Thought")
        it.message(look)
        await take(1.8, "grep", "read")
        it.message(edit, [part for part in edit.parts if isinstance(part, ToolPart)])
        it.todos(
            [replace(each, status=status) for each, status in zip(todos, TODO_STATES, strict=True)]
        )
        await take(2.5, "+1 -1", "[>] Mend")
        calls = [part for part in test.parts if isinstance(part, ToolPart)]
        it.message(test, [running(part) for part in calls])
        it.say(PermissionAsked(properties=asked))
        await take(3, "Allow once", "reject")
        answer = PermissionAnswer(session_id=main, request_id=asked.id, reply="once")
        it.say(PermissionReplied(properties=answer))
        client.answers[f"{SESSION_DIFF.id} {main}"] = diff
        it.message(test)
        await take(2, "Ran 1 test")
        it.message(done)
        it.message(end)
        it.todos(todos)
        it.is_busy(busy=False)
        it.session()
        await take(5, "The test passes", "Changed files")
        matches = [
            TextMatch(
                message_id=end.info.id,
                part_id=part.id,
                ordinal=number,
                kind="answer",
                created=0,
                text=SEARCH_TEXT,
            )
            for part in end.parts
            if isinstance(part, TextPart)
            for number in range(part.text.count(SEARCH_TEXT))
        ]
        client.answers[f"{SESSION_FIND.id} {main}"] = TextMatches(found=matches, complete=True)
        it.ui.tab.prompt.set_entry(PromptEntry(f"/find {SEARCH_TEXT}"))
        await it.pilot.press("enter")
        await it.sees(f"{len(matches)} of {len(matches)}")
        return frames, (it.lines(), 0.0)


async def draw_first_run(folder: Path) -> Sequence[Line]:
    """Return the screen of the first start, without a model."""
    client = told()
    client.answers |= {"config.get": {}, "config.providers": {"providers": [], "default": {}}}
    client.answers["provider.list"] = {**client.answers["provider.list"], "connected": []}
    async with stored(folder, size=(100, 20), resumed=False, client=client) as it:
        await it.sees("Where do your models come from?")
        return it.lines()


def main(arguments: list[str]) -> int:
    """Take the folder to write to; return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m scripts.record_ui FOLDER\n")
        return 2
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as another:
        frames, found = asyncio.run(record_session(Path(folder)))
        first = asyncio.run(draw_first_run(Path(another)))
    asked = next(
        frame
        for frame in frames
        if "Allow once" in "".join(part.text for line in frame[0] for part in line)
    )
    background = load_theme("codeloop", "dark").background
    pictures = {
        "tui": frames[-1],
        "tui-question": asked,
        "tui-find": found,
        "tui-first-run": (first, 0.0),
    }
    for name, frame in pictures.items():
        (Path(arguments[0]) / f"{name}.svg").write_text(
            draw_svg([frame], background, ALT_TEXTS[name]), encoding="utf-8"
        )
    (Path(arguments[0]) / "tui-recording.svg").write_text(
        draw_svg(frames, background, ALT_TEXTS["tui"]), encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
