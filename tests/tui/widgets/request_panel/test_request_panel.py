"""The panel over a real project: what a model wants to do waits for a key that was
typed after it could be read.
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import msgspec
import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from codeloop.client.questions.requester import find_requester
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.answers import QUESTION_LIST
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionInfo, QuestionOption, QuestionRequest
from codeloop.tui.actions.send import send_answer
from codeloop.tui.state.session_view import Request
from codeloop.tui.widgets.request_panel.form import FormAnswer
from codeloop.tui.widgets.request_panel.request_panel import WITHDRAWN_NOTICE, RequestPanel
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)
from tests.tui.stage import Stage, staged


class Asked(Stage):
    """A prompt, and the panel above it."""

    def __init__(self, settle: float) -> None:
        self.prompt = Input()
        self.panel = RequestPanel(self.colours, lambda: settle)
        self.answers: list[FormAnswer] = []
        super().__init__(self.panel, self.prompt)

    def on_mount(self) -> None:
        self.prompt.focus()

    def on_request_panel_answered(self, answered: RequestPanel.Answered) -> None:
        self.answers.append(answered.answer)
        self.prompt.focus()

    def on_request_panel_input_for_prompt(self, early: RequestPanel.InputForPrompt) -> None:
        if early.is_command:
            self.prompt.focus()
        self.prompt.post_message(early.event)

    async def ready(self) -> None:
        await wait_until(lambda: self.panel.is_ready)
        self.panel.draw()

    async def typed(self, pilot: Pilot[None], *keys: str) -> None:
        await pilot.press(*keys)
        await pilot.pause()


@asynccontextmanager
async def asked(settle: float = 0.01) -> AsyncGenerator[tuple[Asked, Pilot[None]]]:
    app = Asked(settle)
    async with staged(app) as pilot:
        yield app, pilot


def command(
    line: str, *, number: int = 1, always: tuple[str, ...] = ("git push *",)
) -> PermissionRequest:
    return PermissionRequest(
        id=f"per_{number}",
        session_id="ses_1",
        permission="bash",
        patterns=[line],
        metadata={"command": line},
        always=list(always),
    )


async def show(app: Asked, request: Request, it: ScriptedProject, waiting: int = 1) -> None:
    app.panel.show(request, await find_requester(it.client, request), waiting)
    await app.ready()
    await wait_until(lambda: "Allow once" in app.shown() or "asks" in app.shown())


async def finished(task: asyncio.Task[MessageWithParts]) -> str:
    async with asyncio.timeout(60):
        return "".join(getattr(part, "text", "") for part in (await task).parts)


@pytest.mark.slow
async def test_each_answer_to_a_command_does_what_it_says(tmp_path: Path) -> None:
    lines = ["touch a.txt", "touch b.txt", "touch bc.txt", "touch d.txt"]
    made = [make_answer(make_call("bash", command=line, description="writes")) for line in lines]
    async with (
        open_scripted_project(
            tmp_path, [*made, ScriptedAnswer(text="All done.")], permission={"bash": "ask"}
        ) as it,
        asked() as (app, pilot),
    ):
        turn = asyncio.create_task(it.prompt())
        request = await it.question()
        await show(app, request, it, 2)
        assert "Run a command (bash)" in app.shown()
        assert "│ touch a.txt" in app.shown()
        assert "1 of 2" in app.shown()
        await app.typed(pilot, "y")
        assert await send_answer(it.client, request, app.answers[-1])
        await wait_until(lambda: (it.work / "a.txt").exists())

        request = next(iter(await _next(it, request)))
        await show(app, request, it)
        await app.typed(pilot, "e")
        assert app.focused is app.panel.query_one(Input)
        app.panel.query_one(Input).value = "touch b*"
        await app.typed(pilot, "enter")
        assert "every `touch b*` in this project" in app.shown()
        await app.typed(pilot, "a")
        assert app.answers[-1].always == ("touch b*",)
        assert await send_answer(it.client, request, app.answers[-1])
        assert it.project.store.permissions.list_all_grants()[0].patterns == ["touch b*"]

        request = next(iter(await _next(it, request)))
        assert request.patterns == ["touch d.txt"], "what was allowed always is not asked about"
        await show(app, request, it)
        await app.typed(pilot, "r", *"use d", "enter")
        assert app.answers[-1] == FormAnswer("reject", "use d")
        assert await send_answer(it.client, request, app.answers[-1])
        assert await finished(turn) == "All done."
        assert not await send_answer(it.client, request, FormAnswer("once"))
        assert [(it.work / name).exists() for name in ("b.txt", "bc.txt", "d.txt")] == [
            True,
            True,
            False,
        ]
        assert "use d" in it.results()[-1]


async def _next(it: ScriptedProject, before: PermissionRequest) -> list[PermissionRequest]:
    def others() -> list[PermissionRequest]:
        return [
            each for each in it.project.store.list_pending_permissions() if each.id != before.id
        ]

    await wait_until(others)
    return others()


def early_key(key: str) -> events.Key:
    """A key that was pressed before the panel was drawn."""
    event = events.Key(key, key)
    event.time = 0.0
    return event


@pytest.mark.slow
async def test_a_key_that_came_too_early_answers_nothing_and_goes_to_the_prompt(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked(settle=600) as (app, pilot):
        request = command("git push")
        app.panel.show(request, await find_requester(it.client, request))
        await app.typed(pilot, "y", "e", "s", "enter")
        app.panel.post_message(events.Paste(", all of it"))
        await pilot.pause()
        assert not app.answers
        assert app.prompt.value == "yes, all of it"


@pytest.mark.slow
async def test_in_a_series_an_answer_that_came_too_early_is_dropped_and_words_are_not(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        for number, keys in enumerate((["y", "y"], ["y", "e", "s"])):
            first, second = (
                msgspec.structs.replace(command("git push"), id=f"per_{number}{at}")
                for at in range(2)
            )
            await show(app, first, it)
            await app.typed(pilot, "y")
            await wait_until(lambda count=number + 1: len(app.answers) == count)
            app.panel.show(second, await find_requester(it.client, second))
            for key in keys:
                app.panel.post_message(early_key(key))
            await pilot.pause()
            assert app.prompt.value == ("" if number == 0 else "yes")
            app.panel.hide()


async def test_an_answer_that_was_typed_before_the_next_question_came_is_held_as_well(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        first, second = (
            msgspec.structs.replace(command("git push"), id=f"per_{at}") for at in range(2)
        )
        assert not app.panel.is_in_series
        await show(app, first, it)
        await app.typed(pilot, "y")
        await wait_until(lambda: len(app.answers) == 1)
        app.panel._answered_at = monotonic()
        assert app.panel.is_in_series
        requester = await find_requester(it.client, second)
        app.panel.show(second, requester, early_text="y")
        for key in ("e", "s"):
            app.panel.post_message(early_key(key))
        await pilot.pause()
        assert app.prompt.value == "yes"


@pytest.mark.slow
async def test_the_first_enter_beside_a_draft_is_taken_for_a_mistake(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        request = command("git push")
        app.panel.show(request, await find_requester(it.client, request), has_draft=True)
        await app.ready()
        await app.typed(pilot, "enter")
        assert not app.answers
        assert "Text stands in the prompt" in app.shown()
        assert "Press enter again, or y, to choose." in " ".join(app.shown().split())
        await app.typed(pilot, "enter")
        assert app.answers == [FormAnswer("once")]


async def test_the_first_enter_beside_a_draft_does_not_name_a_key_that_a_question_lacks(
    tmp_path: Path,
) -> None:
    question = QuestionInfo(
        question="Which?", header="One", options=[QuestionOption(label="Red", description="")]
    )
    request = QuestionRequest(id="que_1", session_id="ses_1", questions=[question])
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        app.panel.show(request, await find_requester(it.client, request), has_draft=True)
        await app.ready()
        await app.typed(pilot, "enter")
        assert "Press enter again to choose." in " ".join(app.shown().split())
        await app.typed(pilot, "enter")
        assert app.answers == [FormAnswer(answers=(("Red",),))]


async def test_after_an_early_key_the_first_enter_answers_nothing(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command("git push"), it)
        app.panel.post_message(early_key("x"))
        await pilot.pause()
        await app.ready()
        await app.typed(pilot, "enter")
        assert not app.answers


async def test_a_key_that_waited_while_the_panel_was_drawn_does_not_answer_it(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        early = events.Key("y", "y")
        await show(app, command("git push"), it)
        app.panel.post_message(early)
        await pilot.pause()
        assert not app.answers
        assert app.prompt.value == "y"
        await app.ready()
        await app.typed(pilot, "n")
        assert app.answers == [FormAnswer("reject")]


async def test_escape_rejects_only_when_it_is_pressed_twice(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command("git push"), it)
        await app.typed(pilot, "escape")
        assert "again to reject it and stop the turn" in app.shown()
        await app.typed(pilot, "down", "escape")
        assert not app.answers
        await app.typed(pilot, "escape")
        assert app.answers == [FormAnswer("reject")]


async def test_words_that_are_no_keys_are_what_to_do_instead_and_none_is_lost(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command("git push"), it)
        for letter in "steer me":  # all at once, as a program pastes or a slow machine reads them
            app.panel.post_message(events.Key("space" if letter == " " else letter, letter))
        await wait_until(lambda: app.focused is app.panel.query_one(Input))
        await app.typed(pilot, "enter")
        assert app.answers == [FormAnswer("reject", "steer me")]


@pytest.mark.parametrize("line", ["/models all", "!ls y"])
async def test_a_command_is_no_answer_and_goes_to_the_prompt(tmp_path: Path, line: str) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command("git push"), it)
        for letter in line:
            app.panel.post_message(events.Key("space" if letter == " " else letter, letter))
        await wait_until(lambda: app.prompt.value == line)
        assert app.focused is app.prompt
        app.panel.focus()
        await wait_until(lambda: app.focused is app.panel)
        await pilot.pause()
        await app.ready()
        await app.typed(pilot, "r", *"use", "enter")
        assert app.answers == [FormAnswer("reject", "use")]


@pytest.mark.slow
async def test_a_command_for_the_model_to_read_goes_to_the_prompt_too(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command("git push"), it)
        await app.typed(pilot, "r", *"/help", "enter")
        await wait_until(lambda: app.prompt.value == "/help")
        assert "That is a command, not an answer" in app.shown()
        assert not app.answers


async def test_always_has_to_be_chosen_twice_where_it_allows_much(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command("git push", always=("git *",)), it)
        await app.typed(pilot, "a")
        assert "That is broad: every `git *` in this project." in " ".join(app.shown().split())
        await app.typed(pilot, "down", "up", "a")
        assert not app.answers
        await app.typed(pilot, "a")
        assert app.answers == [FormAnswer("always")]


async def test_a_change_is_drawn_as_a_diff_and_all_of_a_strange_one_as_text(tmp_path: Path) -> None:
    diff = "Index: a.py\n===\n--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n x = 1\n-print(x)\n+print(y)\n"
    request = PermissionRequest(
        id="per_7",
        session_id="ses_1",
        permission="edit",
        patterns=["a.py"],
        metadata={"diff": diff},
        always=["*"],
    )
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, _):
        await show(app, request, it)
        assert "Change a.py" in app.shown()
        assert "│ 2 + print(y)" in app.shown()
        strange = msgspec.structs.replace(
            request, id="per_8", metadata={"diff": diff + "+rm -rf\n+hidden\n"}
        )
        await show(app, strange, it)
        await wait_until(lambda: "│ +rm -rf" in app.shown() and "│ +hidden" in app.shown())


@pytest.mark.slow
async def test_an_edited_pattern_that_is_wider_is_told_and_sent_as_such(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command("git push", always=("git push *", "npm publish *")), it)
        await app.typed(pilot, "e")
        app.panel.query_one(Input).value = "git *"
        await app.typed(pilot, "enter")
        app.panel.query_one(Input).value = ""
        await app.typed(pilot, "enter")
        assert "every `git *` in this project" in app.shown()
        assert "wider than what was offered" in app.shown()
        await app.typed(pilot, "enter")
        assert app.answers == [FormAnswer("always", always=("git *",), wider=True)]


@pytest.mark.slow
async def test_all_of_a_long_command_can_be_read_and_the_choices_stay(tmp_path: Path) -> None:
    long = "\n".join(f"echo line {number}" for number in range(60))
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command(long), it)
        assert re.search(r"[0-9]+ of 60 rows are shown: pgdn scrolls", app.shown())
        seen: set[str] = set()
        for _ in range(8):
            assert "y Allow once" in app.shown()
            assert "n Reject, and stop the turn" in app.shown()
            seen |= set(re.findall("│ (echo line [0-9]+)", app.shown()))
            await app.typed(pilot, "pagedown")
        assert len(seen) == 60
        await app.typed(pilot, "f")
        await app.sees("│ echo line 12", "esc")
        assert "Allow once" not in app.shown()
        await app.typed(pilot, "escape")
        await app.sees("y Allow once")
        assert app.answers == []
        await pilot.resize_terminal(40, 24)
        await pilot.pause()
        assert "y Allow once" in app.shown()


async def test_what_stands_behind_many_blanks_is_announced(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, _):
        for hidden in (" " * 3_000, "\n" * 300):
            await show(app, command(f"git status{hidden}; rm -rf x", always=()), it)
            assert "rm -rf x" not in app.shown()
            assert "rows are shown: pgdn scrolls" in app.shown()


@pytest.mark.slow
async def test_what_was_answered_elsewhere_closes(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command("git push"), it)
        app.panel.withdraw("per_other")
        assert app.panel.display
        await app.typed(pilot, "f")
        assert len(app.screen_stack) == 2
        app.panel.withdraw("per_1")
        await pilot.pause()
        assert len(app.screen_stack) == 1
        assert not app.panel.display
        assert [each.message for each in app._notifications] == [WITHDRAWN_NOTICE]


async def test_a_click_on_a_choice_takes_it(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command("git push", always=()), it)
        await pilot.click("#request-choices", offset=(6, 0))
        await pilot.pause()
        assert app.answers == [FormAnswer("once")]


async def test_a_click_also_has_to_be_made_twice_where_it_allows_much(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command("git push", always=("git *",)), it)
        for row in (1, 1):
            assert not app.answers
            await pilot.click("#request-choices", offset=(6, row))
            await pilot.pause()
        assert app.answers == [FormAnswer("always", scope="session")]


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (("s", "s"), FormAnswer("always", scope="session")),
        (("s", "enter"), FormAnswer("always", scope="session")),
        (("2",), FormAnswer("always", scope="session")),
        (("3",), FormAnswer("always")),
        (("s", "up", "enter"), FormAnswer("once")),
    ],
)
async def test_an_answer_for_the_session_is_chosen_by_its_key_twice(
    tmp_path: Path, keys: tuple[str, ...], answer: FormAnswer
) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command("npm test", always=("npm test *",)), it)
        await app.typed(pilot, *keys[:1])
        assert not app.answers or len(keys) == 1
        await app.typed(pilot, *keys[1:])
        assert app.answers == [answer]


@pytest.mark.parametrize("word", ["stop", "save it", "say no"])
async def test_a_word_that_begins_with_the_key_of_the_session_is_what_to_do_instead(
    tmp_path: Path, word: str
) -> None:
    async with open_scripted_project(tmp_path, []) as it, asked() as (app, pilot):
        await show(app, command("npm test", always=("npm test *",)), it)
        await app.typed(pilot, *("space" if letter == " " else letter for letter in word), "enter")
        assert app.answers == [FormAnswer("reject", word)]


QUESTIONS = [
    {
        "question": "Which database?",
        "header": "Database",
        "options": [
            {"label": "SQLite", "description": "one file"},
            {"label": "PostgreSQL", "description": "a server"},
        ],
    },
    {
        "question": "Which checks?",
        "header": "Checks",
        "multiple": True,
        "options": [
            {"label": "ruff", "description": "lint"},
            {"label": "pytest", "description": "tests"},
        ],
    },
    {"question": "Which name?", "header": "Name", "options": []},
]


@pytest.mark.slow
async def test_questions_of_the_model_are_answered_one_after_the_other(tmp_path: Path) -> None:
    script = [
        make_answer(make_call("question", questions=QUESTIONS)),
        ScriptedAnswer(text="All done."),
    ]
    async with open_scripted_project(tmp_path, script) as it, asked() as (app, pilot):
        turn = asyncio.create_task(it.prompt())
        requests = await it.client.call(QUESTION_LIST, NoArguments())
        while not requests:
            await asyncio.sleep(0.005)
            requests = await it.client.call(QUESTION_LIST, NoArguments())
        await show(app, requests[0], it)
        assert "Database   Checks   Name   Send" in app.shown()
        assert "│ Which database?" in app.shown()
        await app.typed(pilot, "2")
        assert "✓ Database" in app.shown()
        assert "space or enter mark   enter again go on" in app.shown()
        await app.typed(pilot, "1", "down", "space", "t", *"mypy", "enter")
        assert "[x] ruff" in app.shown()
        assert "[x] Your own words: mypy" in app.shown()
        await app.typed(pilot, "enter")  # what is marked stays so, and the next question is shown
        await app.typed(pilot, *"loop", "enter")  # words that begin with no key are an answer
        assert "→ PostgreSQL" in app.shown()
        assert "→ ruff, pytest, mypy" in app.shown()
        await app.typed(pilot, "enter")
        assert await send_answer(it.client, requests[0], app.answers[-1])
        assert await finished(turn) == "All done."
        assert all(word in it.results()[0] for word in ("PostgreSQL", "ruff, pytest, mypy", "loop"))
