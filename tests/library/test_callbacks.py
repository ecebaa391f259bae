"""What a program answers and carries out itself: permissions, questions, functions as tools."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import codeloop
from codeloop.extension import tool
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_requests import SESSION_STATUS
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import NOBODY_MESSAGE
from tests.library.opened import Open, here, opened
from tests.support.scripted_project import make_answer, make_call

__all__ = ["opened"]
SAYS = ScriptedAnswer(text="It is done.")
WRITES = make_answer(make_call("write", filePath="notes.txt", content="one\n"))
ASKS = {"permission": {"edit": "ask"}}


async def asked_with(opened: Open, answer: Any, *answers: ScriptedAnswer) -> tuple[list[str], str]:
    """Return what `answer` was asked, and the result of the call."""
    seen: list[str] = []

    def on_permission(question: codeloop.PermissionQuestion) -> Any:
        seen.append(f"{question.tool} {question}")
        return answer

    async with opened(
        [WRITES, *(answers or (SAYS,))], on_permission=on_permission, **ASKS
    ) as project:
        session = await project.session()
        answered = await session.ask("write notes")
        return seen, answered.tools[0].output


async def test_a_callback_allows(opened: Open) -> None:
    assert await asked_with(opened, answer=True) == (
        ["write edit: notes.txt"],
        "Created notes.txt: 1 line",
    )


async def test_a_callback_denies_with_words_and_the_turn_goes_on(opened: Open) -> None:
    seen, output = await asked_with(opened, codeloop.Deny("Not today."))
    assert len(seen) == 1
    assert "Not today." in output


@pytest.mark.parametrize("answer", [codeloop.Allow(always=True), codeloop.Allow(session=True)])
async def test_allowed_always_or_for_the_session_is_asked_once(
    opened: Open, answer: codeloop.Allow
) -> None:
    more = make_answer(make_call("write", filePath="notes.txt", content="two\n"))
    seen, _ = await asked_with(opened, answer, more, SAYS)
    assert len(seen) == 1


async def test_without_a_callback_it_is_refused(opened: Open) -> None:
    async with opened([WRITES, SAYS], **ASKS) as project:
        answer = await project.ask("write notes")
        assert (answer.text, answer.tools[0].output) == ("It is done.", NOBODY_MESSAGE)


async def test_what_a_callback_raises_stops_the_turn_and_is_raised(opened: Open) -> None:
    async def on_permission(_: codeloop.PermissionQuestion) -> bool:
        raise LookupError("no policy for this")

    async with opened([WRITES, SAYS], on_permission=on_permission, **ASKS) as project:
        with pytest.raises(LookupError, match="no policy for this"):
            await project.ask("write notes")
        assert await project.client.call(SESSION_STATUS, NoArguments()) == {}


async def test_the_model_is_answered_and_offered_to_ask_only_where_somebody_answers(
    opened: Open,
) -> None:
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    asks = make_answer(
        make_call(
            "question",
            questions=[{"question": "Which colour?", "header": "Colour", "options": options}],
        )
    )
    seen: list[codeloop.ModelQuestion] = []

    def on_question(question: codeloop.ModelQuestion) -> str:
        seen.append(question)
        return "Blue"

    async with opened([asks, SAYS, asks, asks]) as project:
        session = await project.session(on_question=on_question)
        answer = await session.ask("paint it")
        assert "Blue" in answer.tools[0].output
        assert [(each.question, [choice.label for choice in each.choices]) for each in seen] == [
            ("Which colour?", ["Red", "Blue"])
        ]
        with pytest.raises(
            codeloop.TurnFailed, match="calls the tool `question`, which does not exist"
        ):
            await project.ask("paint it")
        careless: Any = bool
        with pytest.raises(
            codeloop.CodeloopError, match=r"on_question returned True\. Return a text"
        ):
            await (await project.session(on_question=careless)).ask("paint it")


@dataclass
class Order:
    """What is bought."""

    item: str
    count: int = 1


async def test_functions_are_tools(opened: Open) -> None:
    loop_thread = asyncio.get_running_loop()

    async def buy(order: Order, ctx: codeloop.Context) -> dict[str, object]:
        """Buy something.

        Args:
            order: what to buy
        """
        assert asyncio.get_running_loop() is loop_thread
        ctx.report(title=f"buying {order.item}")
        return {
            "title": "Bought",
            "output": f"{order.count} x {order.item}",
            "metadata": {"agent": ctx.agent},
        }

    @tool(name="shout")
    def loud(text: str) -> str:
        """Say it loud."""
        return text.upper()

    def fails() -> None:
        """Fail."""
        raise ValueError("out of order")

    made = make_answer(
        make_call("buy", order={"item": "tea", "count": 2}),
        make_call("shout", text="hi"),
        make_call("fails"),
        make_call("buy", order=3),
    )
    async with opened([made, SAYS, SAYS], tools=[buy, loud, fails]) as project:
        session = await project.session()
        answer = await session.ask("go shopping")
        bought, shouted, failed, wrong = answer.tools
        assert (bought.title, bought.output, bought.metadata["agent"]) == (
            "Bought",
            "2 x tea",
            "build",
        )
        assert (shouted.tool, shouted.output) == ("shout", "HI")
        first, *trace = failed.output.splitlines()
        assert (failed.state, first) == ("failed", "fails raised ValueError: out of order")
        assert trace == [
            f'  File "{__file__}", line {fails.__code__.co_firstlineno + 2}, in fails',
            trace[1],
        ]
        assert trace[1].strip() == 'raise ValueError("out of order")'
        assert wrong.state == "failed"
        assert "order" in wrong.output


async def test_the_profile_plan_allows_functions_that_only_read(opened: Open) -> None:
    @tool(read_only=True)
    def look() -> str:
        """Look."""
        return "seen"

    def change() -> str:
        """Change something."""
        return "changed"

    options: dict[str, Any] = {"tools": [look, change], "profile": "plan"}
    async with opened(
        [
            make_answer(make_call("look")),
            SAYS,
            make_answer(make_call("change")),
            make_answer(make_call("change")),
        ],
        **options,
    ) as project:
        session = await project.session()
        assert [(use.state, use.output) for use in (await session.ask("look")).tools] == [
            ("completed", "seen")
        ]
        with pytest.raises(
            codeloop.TurnFailed, match="calls the tool `change`, which does not exist"
        ):
            await session.ask("change")
        for warnings in (project.warnings, session.warnings):
            assert warnings[-1] == (
                "The profile read-only does not offer these functions to the model: change. "
                "Mark those that only read with @codeloop.extension.tool(read_only=True)."
            )
        assert (await project.session(profile="auto")).warnings == ()


RULES: list[tuple[Any, dict[str, str]]] = [
    ({"bash": "deny"}, {"bash": "gone", "look": "done"}),
    ({"bash": {"*": "ask"}}, {"bash": "asked", "look": "done"}),
    ({"bash": {"*": "deny", "echo *": "allow"}}, {"bash": "done"}),
    ({"bash": {"*": "allow", "echo *": "deny"}}, {"bash": "refused"}),
    ({"bash": {"*": "ask", "<read-only>": "allow"}}, {"bash": "done"}),
    ({"look": "ask"}, {"look": "asked", "bash": "done"}),
    ({"l*": "deny"}, {"look": "gone"}),
    ({"*": "ask"}, {"look": "asked", "bash": "asked"}),
]


@pytest.mark.parametrize(("rules", "outcomes"), RULES, ids=[str(rules) for rules, _ in RULES])
async def test_rules_of_a_session_count_as_those_of_the_configuration(
    tmp_path: Path, rules: Any, outcomes: dict[str, str]
) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    for name, outcome in outcomes.items():
        asked: list[str] = []

        def on_permission(question: codeloop.PermissionQuestion, asked: list[str] = asked) -> bool:
            asked.append(question.permission)
            return True

        made = (
            make_call("bash", command="echo hello", description="greet")
            if name == "bash"
            else make_call("look")
        )
        options: dict[str, Any] = {
            "permission": rules,
            "on_permission": on_permission,
            "tools": [look],
        }
        answers = [make_answer(made), make_answer(made) if outcome == "gone" else SAYS]
        async with here(tmp_path, answers, **options) as project:
            if outcome == "gone":
                with pytest.raises(
                    codeloop.TurnFailed, match=f"calls the tool `{name}`, which does not exist"
                ):
                    await project.ask("go")
                continue
            (use,) = (await project.ask("go")).tools
            assert (use.state == "failed") == (outcome == "refused"), use.output
            assert asked == ([name] if outcome == "asked" else [])


async def test_a_function_asks_and_is_refused(opened: Open) -> None:
    reached: list[str] = []

    def deploy(ctx: codeloop.Context) -> str:
        """Deploy the project."""
        ctx.wait(ctx.ask("deploy", ["production"]))
        reached.append("deployed")
        return "deployed"

    settings = {"permission": {"deploy": {"production": "deny"}}}
    async with opened(
        [make_answer(make_call("deploy")), SAYS], tools=[deploy], settings=settings
    ) as project:
        answer = await project.ask("deploy")
        assert (answer.tools[0].state, reached) == ("failed", [])
        assert "deploy production" in answer.tools[0].output


async def test_what_is_sent_meanwhile_is_taken_up_by_the_turn_that_runs(opened: Open) -> None:
    sessions: list[codeloop.AgentSession] = []

    async def nudge(ctx: codeloop.Context) -> str:
        """Send a prompt while the turn runs."""
        await sessions[0].send("and this too")
        with pytest.raises(codeloop.CodeloopError, match="Use `await`"):
            ctx.wait(asyncio.get_running_loop().create_future())
        return "sent"

    async with opened([make_answer(make_call("nudge")), SAYS], tools=[nudge]) as project:
        sessions.append(await project.session())
        answer = await sessions[0].ask("do it")
        said = await sessions[0].messages()
        assert [each.text for each in said if each.role == "user"] == ["do it", "and this too"]
        assert (answer.text, answer.tools[0].output) == ("It is done.", "sent")


async def test_a_function_is_cancelled_with_its_turn(opened: Open) -> None:
    ended = asyncio.Event()
    begun = asyncio.Event()

    async def waits() -> str:
        """Wait for ever."""
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()
        return ""

    async with opened([make_answer(make_call("waits")), SAYS], tools=[waits]) as project:
        task = asyncio.create_task(project.ask("wait"))
        await asyncio.wait_for(begun.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(ended.wait(), 60)
