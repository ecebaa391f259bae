"""Order, deadline, failures and refusals of handlers."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import Struct

from codeloop.extend.hooks.hooks import HookFailed, Hooks
from codeloop.schema.errors import HookRefused
from codeloop.schema.wire import JSON

Does = Callable[[JSON, JSON], Awaitable[Any]]
BEFORE, AFTER = "tool.execute.before", "tool.execute.after"


class Doing(Struct, frozen=True):
    """A handler that does one thing at one hook."""

    does: Does
    label: str = "the extension x"
    names: frozenset[str] = frozenset((BEFORE,))
    policy: frozenset[str] = frozenset()
    is_project: bool = False
    may_allow: bool = True
    seconds: float | None = None

    async def call(self, name: str, given: JSON, output: JSON) -> JSON:
        return await self.does(given, output)


def adding(text: str) -> Does:
    async def add(_given: JSON, output: JSON) -> JSON:
        return {"args": {"text": output["args"]["text"] + text}}

    return add


def raising(error: BaseException) -> Does:
    async def fail(_given: JSON, _output: JSON) -> JSON:
        raise error

    return fail


def answering(answer: Any) -> Does:
    async def answer_it(_given: JSON, _output: JSON) -> Any:
        return answer

    return answer_it


async def hanging(_given: JSON, output: JSON) -> JSON:
    output["args"]["text"] = "too late"
    await asyncio.sleep(1000)
    return output


async def test_each_handler_sees_what_the_one_before_it_made_the_persons_first() -> None:
    hooks = Hooks([Doing(adding("p"), is_project=True), Doing(adding("a")), Doing(adding("b"))])
    assert await hooks.run(BEFORE, {}, {"args": {"text": "-"}}) == {"args": {"text": "-abp"}}


async def test_nothing_is_asked_that_no_handler_wants() -> None:
    hooks = Hooks([Doing(raising(ValueError("never")))])
    assert hooks.has_handler(BEFORE)
    assert not hooks.has_handler(AFTER)
    assert await hooks.run(AFTER, {}, {"title": "t"}) == {"title": "t"}
    hooks.set_handlers(())
    assert not hooks.has_handler(BEFORE)


@pytest.mark.parametrize(
    ("does", "says"),
    [
        (hanging, "did not answer in 0.05 s"),
        (raising(HookFailed("its process is gone")), "its process is gone"),
        (answering(None), "answer is invalid"),
        (answering(["a", "list"]), "answer is invalid"),
        (answering({"args": "rm -rf /"}), "args: Expected `object`"),
        (answering({"args": {"what": object()}}), "answer is invalid"),
        (raising(asyncio.CancelledError()), "was ended while it worked"),
    ],
)
async def test_a_handler_that_fails_is_named_once_and_passed_over(does: Does, says: str) -> None:
    told: list[str] = []
    hooks = Hooks([Doing(does), Doing(adding("!"))], told.append, seconds=0.05)
    for _ in range(2):
        assert await hooks.run(BEFORE, {"sessionID": "one"}, {"args": {"text": "-"}}) == {
            "args": {"text": "-!"}
        }
    assert len(told) == 1
    assert "the extension x" in told[0]
    assert says in told[0]
    await hooks.run(BEFORE, {"sessionID": "two"}, {"args": {"text": "-"}})
    assert len(told) == 2


@pytest.mark.parametrize("does", [hanging, raising(HookFailed("gone")), answering({"args": 1})])
async def test_a_policy_that_fails_refuses(does: Does) -> None:
    hooks = Hooks([Doing(does, policy=frozenset((BEFORE,)))], seconds=0.05)
    with pytest.raises(
        HookRefused, match=r"the extension x decides about tool\.execute\.before, and could not"
    ):
        await hooks.run(BEFORE, {}, {"args": {}})


@pytest.mark.parametrize(
    "name", ["tool.execute.before", "command.execute.before", "permission.ask", "chat.message"]
)
async def test_what_an_author_raises_before_something_happens_is_a_refusal(name: str) -> None:
    hooks = Hooks([Doing(raising(ValueError("not on Fridays")), names=frozenset((name,)))])
    with pytest.raises(HookRefused, match="Refused by the extension x: not on Fridays"):
        await hooks.run(name, {}, {})


async def test_what_an_author_raises_elsewhere_is_a_failure_unless_it_is_a_policy() -> None:
    told: list[str] = []
    names = frozenset((AFTER,))
    result = {"title": "t", "output": "o", "metadata": {}}
    assert (
        await Hooks([Doing(raising(ValueError("no")), names=names)], told.append).run(
            AFTER, {}, result
        )
        == result
    )
    assert "ValueError: no" in told[0]
    with pytest.raises(HookRefused):
        await Hooks([Doing(raising(ValueError("no")), names=names, policy=names)]).run(
            AFTER, {}, result
        )


async def test_a_handler_with_a_deadline_of_its_own_may_take_longer() -> None:
    async def slow(_given: JSON, output: JSON) -> JSON:
        await asyncio.sleep(0.05)
        return {"args": {"text": output["args"]["text"] + "slow"}}

    hooks = Hooks([Doing(slow, seconds=30)], seconds=0.001)
    assert await hooks.run(BEFORE, {}, {"args": {"text": ""}}) == {"args": {"text": "slow"}}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("chat.params", {"maxOutputTokens": "many"}),
        ("chat.params", {"temperature": "hot"}),
        ("chat.headers", {"headers": {"x": "a\r\nb: c"}}),
        ("command.execute.before", {"parts": [{"type": "nothing"}]}),
        ("permission.ask", {"status": "perhaps"}),
        ("tool.definition", {"parameters": []}),
        ("shell.env", {"env": {"A B": "x"}}),
        ("session.stop", {"continue": 1}),
    ],
)
async def test_an_answer_of_another_type_than_its_hook_has_is_passed_over(
    name: str, wrong: JSON
) -> None:
    said: list[str] = []
    hooks = Hooks([Doing(answering(wrong), names=frozenset((name,)))], said.append)
    assert await hooks.run(name, {}, {}) == {}
    told = "answer is invalid" if name == "permission.ask" else "answer at .* is left out: "
    assert re.search(told, said[0])


async def test_what_is_wrong_in_an_answer_is_left_out_alone_and_named() -> None:
    said: list[str] = []
    before = {"temperature": 0.5, "topP": None, "options": {}}
    answer = {"temperature": 1, "topP": "high", "options": {"a": 1}}
    hooks = Hooks([Doing(answering(answer), names=frozenset(("chat.params",)))], said.append)
    expected = {"temperature": 1, "topP": None, "options": {"a": 1}}
    assert await hooks.run("chat.params", {}, before) == expected
    assert "the extension x: a part of its answer at chat.params is left out: topP: " in said[0]


async def test_a_part_of_a_message_that_is_none_loses_no_other() -> None:
    said: list[str] = []
    name = "experimental.chat.messages.transform"
    info = {
        "id": "msg_1",
        "sessionID": "ses_1",
        "role": "user",
        "time": {"created": 1},
        "agent": "build",
        "model": {"providerID": "p", "modelID": "m"},
    }
    good = {"type": "text", "text": "hi", "id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1"}
    parts = [good, {"type": "text", "text": 7}, {"type": "text", "text": "added"}]
    answer = {"messages": [{"info": info, "parts": parts}]}
    hooks = Hooks([Doing(answering(answer), names=frozenset((name,)))], said.append)
    before = {"messages": [{"info": info, "parts": [good]}]}
    (message,) = (await hooks.run(name, {}, before))["messages"]
    assert [part["text"] for part in message["parts"]] == ["hi", "added"]
    assert f"at {name} is left out: messages[0].parts[1]: " in said[0]


async def test_an_answer_that_comes_after_its_handler_is_gone_is_not_kept() -> None:
    async def late(_given: JSON, _output: JSON) -> JSON:
        hooks.set_handlers((Doing(answering({"description": "new"}), names=definition),))
        return {"description": "old"}

    definition = frozenset(("tool.definition",))
    hooks = Hooks([Doing(late, names=definition)])
    now = {"description": "", "parameters": {}}
    assert (await hooks.run_cached("tool.definition", {}, now))["description"] == "old"
    assert (await hooks.run_cached("tool.definition", {}, now))["description"] == "new"


async def test_a_turn_that_is_cancelled_ends_the_handler() -> None:
    ended = asyncio.Event()
    begun = asyncio.Event()

    async def work(_given: JSON, _output: JSON) -> JSON:
        begun.set()
        try:
            await asyncio.sleep(1000)
        finally:
            ended.set()
        return {}

    running = asyncio.create_task(Hooks([Doing(work)]).run(BEFORE, {}, {}))
    await begun.wait()
    running.cancel()
    await asyncio.wait([running])
    await asyncio.wait_for(ended.wait(), 60)
    assert running.cancelled()
