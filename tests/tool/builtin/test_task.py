"""Handing work to subagents in a real project: side by side, taken up again, in the background."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.chat import ModelInfo, Prices
from codeloop.model.testing.script import ScriptedAnswer, TokenCount
from codeloop.schema.message import AssistantMessage, Session
from codeloop.schema.part import TextPart, ToolStateCompleted, ToolStateError
from tests.support.scripted_project import (
    ScriptedProject,
    list_texts,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)

INFO = ModelInfo(provider_id="p", id="m", name="M", prices=Prices(input=10))
DONE = ScriptedAnswer(text="Done.")


def answer(text: str) -> ScriptedAnswer:
    return ScriptedAnswer(text=text, tokens=TokenCount(input=1000))


def handed(prompt: str, **more: Any) -> dict[str, Any]:
    return {"description": "look around", "prompt": prompt, "subagent_type": "general", **more}


def children(it: ScriptedProject) -> list[Session]:
    return it.project.store.list_sessions(parent=it.session_id)


@pytest.mark.parametrize(
    ("prompt", "sent"),
    [
        ("/check a.py b.py", "Check a.py b.py, after (run `git status`)."),
        ("/etc/hosts has an odd line", "/etc/hosts has an odd line"),
        ("See /check", "See /check"),
    ],
)
async def test_a_slash_command_is_the_prompt_of_a_subagent(
    tmp_path: Path, prompt: str, sent: str
) -> None:
    script = [make_answer(make_call("task", **handed(prompt))), DONE, DONE]
    command = {"check": {"template": "Check $ARGUMENTS, after !`git status`."}}
    async with open_scripted_project(tmp_path, script, command=command) as it:
        await it.prompt()
        (child,) = children(it)
        first = it.project.store.read_conversation(child.id).entries[0]
        assert [part.text for part in first.parts if isinstance(part, TextPart)] == [sent]


async def test_several_tasks_of_one_step_run_and_each_gives_its_last_words(tmp_path: Path) -> None:
    script = [
        make_answer(
            make_call("task", "a", **handed("One.")), make_call("task", "b", **handed("Two."))
        ),
        answer("x"),
        answer("y"),
        DONE,
    ]
    async with open_scripted_project(tmp_path, script, info=INFO) as it:
        await it.prompt()
        first, second = it.calls()
        assert isinstance(first.state, ToolStateCompleted)
        assert isinstance(second.state, ToolStateCompleted)
        ids = {first.state.metadata["sessionId"], second.state.metadata["sessionId"]}
        assert ids == {child.id for child in children(it)}
        assert {"x", "y"} == {state.output.split("\n")[2] for state in (first.state, second.state)}
        assert all('state="completed"' in text for text in it.results())
        own = sum(
            entry.info.cost
            for entry in it.view().entries
            if isinstance(entry.info, AssistantMessage)
        )
        assert own > 0
        theirs = sum(one.cost or 0 for one in children(it))
        assert it.project.store.get_session(it.session_id).cost == pytest.approx(own + theirs)


async def test_a_task_is_taken_up_again_by_its_id(tmp_path: Path) -> None:
    script: list[ScriptedAnswer] = [
        make_answer(make_call("task", **handed("One."))),
        answer("x"),
        DONE,
    ]
    async with open_scripted_project(tmp_path, script, info=INFO) as it:
        await it.prompt()
        (child,) = children(it)
    again = [make_answer(make_call("task", **handed("More.", task_id=child.id))), answer("z"), DONE]
    async with open_scripted_project(tmp_path, again, info=INFO, session_id=child.parent_id) as it:
        await it.prompt()
        assert [one.id for one in children(it)] == [child.id]
        assert f'<task id="{child.id}" state="completed">\n<task_result>\nz\n' in it.results()[-1]
        prompts = [list_texts(turn) for turn in it.model.requests[1].messages]
        assert prompts == [["One."], ["x"], ["More."]]


async def test_before_more_than_four_start_their_number_and_model_are_shown(tmp_path: Path) -> None:
    script = [
        make_answer(*(make_call("task", f"t{at}", **handed(f"{at}")) for at in range(6))),
        *[answer("x")] * 4,
        DONE,
    ]
    async with open_scripted_project(tmp_path, script, info=INFO) as it:
        turn = asyncio.ensure_future(it.prompt())
        request = await it.question()
        model = f"{INFO.provider_id}/{INFO.id}"
        assert {key: request.metadata[key] for key in ("more", "models")} == {
            "more": 2,
            "models": [model],
        }
        turn.cancel()
        await asyncio.wait([turn])


async def test_a_task_of_another_session_is_not_taken_up(tmp_path: Path) -> None:
    script = [
        make_answer(
            make_call("task", **handed("One.", task_id="ses_none")),
            make_call("task_output", task_id="ses_none"),
        ),
        DONE,
    ]
    async with open_scripted_project(tmp_path, script, info=INFO) as it:
        await it.prompt()
        assert "There is no subagent session ses_none" in it.results()[0]
        assert "There is no task ses_none in" in it.results()[1]
        assert children(it) == []


async def test_an_unknown_or_primary_agent_is_refused_with_those_there_are(tmp_path: Path) -> None:
    script = [
        make_answer(
            *(
                make_call("task", **{**handed("x"), "subagent_type": name})
                for name in ("build", "nobody")
            )
        ),
        DONE,
    ]
    async with open_scripted_project(tmp_path, script, info=INFO, permission={"task": "ask"}) as it:
        await it.prompt()  # nobody answers: a question would not end
        assert all("general" in text and "no subagent named" in text for text in it.results())
        assert all(isinstance(part.state, ToolStateError) for part in it.calls())


async def test_a_task_in_the_background_returns_at_once_and_is_asked_about_later(
    tmp_path: Path,
) -> None:
    slow = make_answer(make_call("bash", command="while [ ! -e go ]; do sleep 0.02; done"))
    script = [make_answer(make_call("task", **handed("One.", run_in_background=True))), slow]
    async with open_scripted_project(
        tmp_path, [*script, DONE, answer("late words")], info=INFO
    ) as it:
        await it.prompt()
        (child,) = children(it)
        assert f'<task id="{child.id}" state="running">' in it.results()[0]
        (it.work / "go").touch()
        await wait_until(lambda: not it.project.engine.supervisor.is_any_running)
    ask = [make_answer(make_call("task_output", task_id=child.id)), DONE]
    async with open_scripted_project(tmp_path, ask, info=INFO, session_id=child.parent_id) as it:
        await it.prompt()
        text = it.results()[-1]
        assert text.startswith(f'<task id="{child.id}" state="done">\n<task_result>\nlate words\n')
        assert text.endswith("\n</task_result>\n</task>")


async def test_a_task_that_is_still_running_says_what_it_said_so_far(tmp_path: Path) -> None:
    slow = make_answer(make_call("bash", command="sleep 600"), text="Looking.")
    async with open_scripted_project(
        tmp_path,
        [make_answer(make_call("task", **handed("One.", run_in_background=True))), slow, DONE],
        info=INFO,
    ) as it:
        await it.prompt()
        (child,) = children(it)
    ask = [make_answer(make_call("task_output", task_id=child.id)), DONE]
    async with open_scripted_project(tmp_path, ask, info=INFO, session_id=child.parent_id) as it:
        await it.prompt()
        assert "Looking." in it.results()[-1]
        assert 'state="cancelled"' in it.results()[-1], "closing the project ended it"


async def test_each_kind_of_subagent_can_be_denied(tmp_path: Path) -> None:
    script = [make_answer(make_call("task", **handed("x"))), DONE]
    async with open_scripted_project(
        tmp_path, script, info=INFO, permission={"task": {"general": "deny"}}
    ) as it:
        await it.prompt()
        assert isinstance(it.calls()[0].state, ToolStateError)
        assert children(it) == []
