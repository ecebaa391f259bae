"""What a user is asked: a change, a command, for a subagent; edited, refused with words;
several questions.
"""

from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.event import PermissionAsked, QuestionAsked, SessionCreated, SessionInfo
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionInfo, QuestionOption, QuestionRequest
from codeloop.schema.wire import replace
from tests.tui.gallery import DIFF, NEW
from tests.tui.screens.album import SIZES, Album, told
from tests.tui.stored.play import Stored, stored

CHILD_ID = "ses_00000000000000000000000009"
COMMAND = """set -e
python3 -m venv .venv
.venv/bin/pip install --require-hashes -r requirements.txt
.venv/bin/python -m pytest -q tests/test_cart.py tests/test_money.py --maxfail=1 --durations=10 -p no:cacheprovider"""
QUESTIONS = [
    QuestionInfo(
        question="How should half cents be rounded?",
        header="Rounding",
        options=[
            QuestionOption(label="Half even", description="as banks do"),
            QuestionOption(label="Half up", description="as shops do"),
        ],
    ),
    QuestionInfo(
        question="Which currencies does the shop take? Each of them gets its own column in the report.",
        header="Currencies",
        options=[
            QuestionOption(label="EUR", description="for most of Europe"),
            QuestionOption(label="USD", description=""),
            QuestionOption(
                label="JPY",
                description="which has no cents, so that amounts are whole numbers throughout the code",
            ),
        ],
        multiple=True,
    ),
]


def permission(it: Stored, number: int, **given: Any) -> PermissionRequest:
    """Return a request of the session."""
    asked: dict[str, Any] = {
        "session_id": it.client.main,
        "always": [],
        "metadata": {},
        "patterns": [],
        **given,
    }
    return PermissionRequest(id=f"per_{number}", **asked)


def a_command(it: Stored) -> PermissionRequest:
    """Return a request to run a command of several lines."""
    given = {"command": COMMAND}
    return permission(
        it, 2, permission="bash", patterns=[COMMAND], always=["python3 -m venv *"], metadata=given
    )


async def ask(it: Stored, *requests: PermissionRequest | QuestionRequest) -> None:
    """Ask these, once nothing is asked any more."""
    view = it.ui.tab.view
    assert view is not None
    view.requests.clear()
    it.ui.tab.sync()
    await it.settle(lambda: it.ui.tab.panel.request is None)
    for request in requests:
        is_question = isinstance(request, QuestionRequest)
        it.say(
            QuestionAsked(properties=request)
            if is_question
            else PermissionAsked(properties=request)
        )
    panel = it.ui.tab.panel
    # Until it shows the request, it is as ready as it was for the one before.
    await it.settle(
        lambda: panel.request is not None and panel.is_ready and len(view.requests) == len(requests)
    )


@pytest.mark.slow
async def test_permissions(tmp_path: Path) -> None:
    async with stored(tmp_path, size=SIZES[0], client=told()) as it:
        album = Album(it)
        it.is_busy(busy=True)
        child = replace(
            it.client.session(),
            id=CHILD_ID,
            parent_id=it.client.main,
            title="Look for rounding",
            agent="explore",
        )
        it.say(SessionCreated(properties=SessionInfo(session_id=child.id, info=child)))
        given = {"permission": "edit", "patterns": ["src/cart.py"], "always": ["*"]}
        change = permission(it, 1, session_id=CHILD_ID, **given, metadata={"diff": DIFF})
        command = a_command(it)
        await ask(it, change, command)
        await album.take("asked-change", "1 of 2", "Allow once")
        await it.pilot.press("w", "w", "a")
        await album.take("asked-broad", "broad")
        await ask(it, command)
        await album.take("asked-command", "venv", "Allow once")
        await it.pilot.press("e")
        await album.take("asked-always", "Allow always:")
        await it.pilot.press("escape", "r")
        await it.pilot.press(*"Use uv")
        await album.take("asked-instead", "Use uv")
        await it.pilot.press("escape", "escape")
        await album.take("asked-sure", "again to reject")
        new = permission(it, 3, **given, metadata={"diff": DIFF + NEW})
        await ask(it, new)
        await album.take("asked-long", "rows are shown")
        await it.pilot.press("f")
        await it.settle(lambda: len(it.ui.screen_stack) == 2)
        await album.take("asked-whole", "Decimal(0)", "docs/cart.md")
        await it.pilot.press("escape")
        await it.settle(lambda: len(it.ui.screen_stack) == 1)
    assert not album.wrong, "\n".join(album.wrong)


@pytest.mark.slow
async def test_questions(tmp_path: Path) -> None:
    async with stored(tmp_path, size=SIZES[0], client=told()) as it:
        album = Album(it)
        it.is_busy(busy=True)
        await ask(it, QuestionRequest(id="que_9", session_id=it.client.main, questions=QUESTIONS))
        await album.take("questions", "Half even")
        await it.pilot.press("2", "1", "3")
        await album.take("questions-several", "[x]")
        await it.pilot.press("t")
        await it.pilot.press(*"CHF")
        await album.take("questions-own", "Your answer", "CHF")
        await it.pilot.press("enter", "tab")
        await album.take("questions-send", "Send these answers", "Half up")
    assert not album.wrong, "\n".join(album.wrong)
