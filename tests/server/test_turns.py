"""What a turn does on the wire: the events of `GET /event` in the order in
which clients expect them.
"""

import asyncio
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.model.chat import ModelEvent, ModelRequest
from codeloop.model.testing.replay import ScriptedModel
from codeloop.model.testing.script import CallBlock, ScriptedAnswer, ScriptedBlock, ScriptedCall
from codeloop.model.wrappers.retrying_model import RetryingModel
from codeloop.schema.bounds.server import SERVER_TURN_ANSWER
from codeloop.schema.errors import APIError, APIErrorData, ContextOverflowError, OverflowData
from codeloop.schema.ids import new_id, now_ms
from tests.server.support.hearing import Event, Hearing, hearing, of
from tests.server.support.serving import Served, served
from tests.support.scripted_project import make_answer, make_call

ASK = [
    {"permission": "bash", "pattern": "*", "action": "ask"},
    {"permission": "edit", "pattern": "*", "action": "ask"},
]
BEGIN = ["user", "text 'go'", "session.updated", "status busy"]
"""A prompt is stored, and its turn begins."""
STEP = ["status busy", "assistant", "step-start"]
END = ["status idle", "session.idle"]


def texts(*pieces: str) -> list[str]:
    """Return the lines of a text that streams in."""
    whole = "".join(pieces)
    return ["text ''", *(f"delta text {piece!r}" for piece in pieces), f"text {whole!r} end"]


async def titled(it: Served, **more: Any) -> str:
    """Make a session that has its title, so that none is made."""
    return (await it.post("/session", {"title": "T", **more}))["id"]


async def send(it: Served, session: str, text: str = "go") -> None:
    """Say something without waiting for the end."""
    body = {"parts": [{"type": "text", "text": text}]}
    await it.post(f"/session/{session}/prompt_async", body, status=204)


async def test_a_plain_answer(tmp_path: Path) -> None:
    async with (
        served(tmp_path, [ScriptedAnswer(reasoning="Hm.", text="Hello.", deltas=2)]) as it,
        hearing(it) as heard,
    ):
        session = await titled(it)
        answer = await it.prompt(session)
        lines = await heard.idle(session)
        reasoning = ["reasoning ''", "delta text 'H'", "delta text 'm.'", "reasoning 'Hm.' end"]
        finish = ["step-finish stop", "assistant stop completed", "session.updated"]
        told = ["user diffs 0"]
        wanted = [*STEP, *reasoning, *texts("Hel", "lo."), *finish, *told, *END]
        assert lines == ["session.created", *BEGIN, *wanted]
        last = of(heard.events, "message.updated")[-2]["info"]
        assert answer["info"] == last
        assert heard.events[0]["type"] == "server.connected"
        updated = of(heard.events, "session.updated")[0]["info"]
        assert (updated["agent"], updated["model"]["id"]) == ("build", answer["info"]["modelID"])


async def test_the_answer_to_an_init_is_held_back_as_that_to_a_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = msgspec.structs.replace(SERVER_TURN_ANSWER, value=300)
    monkeypatch.setattr("codeloop.server.application.SERVER_TURN_ANSWER", wait)
    async with served(tmp_path, [ScriptedAnswer(text="Done.")]) as it, hearing(it) as heard:
        session = await titled(it)
        began = asyncio.get_running_loop().time()
        body = {"providerID": "scripted", "modelID": "scripted", "messageID": new_id("msg")}
        await it.post(f"/session/{session}/init", body)
        assert asyncio.get_running_loop().time() - began > 0.29
        assert "session.idle" in heard.lines(session)


async def test_a_first_prompt_gets_its_title_by_an_event(tmp_path: Path) -> None:
    async with served(tmp_path, [ScriptedAnswer(text="Hello.")]) as it, hearing(it) as heard:
        session = await it.session()
        assert (await it.get(f"/session/{session}"))["title"].startswith("New session - ")
        await it.prompt(session, "Look at the tests")
        await heard.idle(session)
        assert "Look at the tests" in [
            each["info"]["title"] for each in of(heard.events, "session.updated")
        ]


@pytest.mark.slow
async def test_four_steps_with_tools(tmp_path: Path) -> None:
    edit = make_call("edit", filePath="calc.py", oldString="a - b", newString="a + b")
    slow = "echo one; until rm go 2>/dev/null; do sleep 0.02; done; echo two"
    script = [
        make_answer(make_call("read", filePath="calc.py"), text="Let me look."),
        make_answer(edit),
        make_answer(make_call("bash", command=slow)),
        ScriptedAnswer(text="Fixed."),
    ]
    async with served(tmp_path, script) as it, hearing(it) as heard:
        (it.work / "calc.py").write_text("def add(a, b):\n    return a - b\n")
        session = await titled(it)
        await send(it, session)
        await heard.until(
            lambda _: any(output(state) == "one\n" for state in states(heard, "bash"))
        )
        (it.work / "go").touch()
        heard_lines = [
            line
            for line in await heard.idle(session)
            if line not in {"edit running", "bash running"}
        ]
        lines, counted = without_counts(heard_lines)
        assert counted == 3, "each step with calls stores what it has used before they end"
        done = ["step-finish tool-calls", "assistant tool-calls completed"]
        first = [
            *STEP,
            *texts("Let me look."),
            "read pending",
            "read running",
            "read completed",
            *done,
        ]
        second = [*STEP, "edit pending", "edit completed", "patch", *done]
        third = [*STEP, "bash pending", "bash completed", *done]
        last = [
            *STEP,
            *texts("Fixed."),
            "step-finish stop",
            "assistant stop completed",
            "session.updated",
        ]
        # The answer is stored again with the facts of its turn.
        told = ["assistant stop completed", "user diffs 1", "session.updated"]
        assert lines == ["session.created", *BEGIN, *first, *second, *third, *last, *told, *END]
        (diff,) = of(heard.events, "message.updated")[-1]["info"]["summary"]["diffs"]
        assert (diff["file"], diff["additions"], diff["deletions"], diff["status"]) == (
            "calc.py",
            1,
            1,
            "modified",
        )
        assert await it.get(f"/session/{session}/diff", messageID=answered(heard)) == [diff]
        summary = of(heard.events, "session.updated")[-1]["info"]["summary"]
        assert summary == {"additions": 1, "deletions": 1, "files": 1}
        shown = [
            state.get("metadata", {}).get("output")
            for state in states(heard, "bash")
            if "metadata" in state
        ]
        assert shown[0] == "one\n"
        assert shown[-1] == "one\ntwo\n"
        assert "file.edited" in [event["type"] for event in heard.events]
        patch = next(part for part in parts(heard) if part["type"] == "patch")
        assert patch["files"] == [str(it.work / "calc.py")]


def without_counts(lines: list[str]) -> tuple[list[str], int]:
    """Return the lines but those that store what an unfinished step has used,
    and how often it did.
    """
    pairs = [
        at for at, pair in enumerate(pairwise(lines)) if pair == ("assistant", "session.updated")
    ]
    return [line for at, line in enumerate(lines) if at not in pairs and at - 1 not in pairs], len(
        pairs
    )


def parts(heard: Hearing) -> list[Event]:
    return [each["part"] for each in of(heard.events, "message.part.updated")]


def states(heard: Hearing, tool: str) -> list[Event]:
    return [
        part["state"] for part in parts(heard) if part["type"] == "tool" and part["tool"] == tool
    ]


def answered(heard: Hearing) -> str:
    """Return the id of the last prompt that was answered."""
    infos = [each["info"] for each in of(heard.events, "message.updated")]
    return next(info["parentID"] for info in reversed(infos) if info["role"] == "assistant")


async def test_an_edit_that_is_allowed_once(tmp_path: Path) -> None:
    edit = make_call("edit", filePath="a.py", oldString="1", newString="2")
    async with (
        served(tmp_path, [make_answer(edit), ScriptedAnswer(text="Done.")]) as it,
        hearing(it) as heard,
    ):
        (it.work / "a.py").write_text("1\n")
        session = await titled(it, permission=ASK)
        await send(it, session)
        (asked,) = await heard.asked()
        assert (asked["permission"], asked["patterns"], asked["always"]) == (
            "edit",
            ["a.py"],
            ["*"],
        )
        assert asked["metadata"]["filepath"] == str(it.work / "a.py")
        assert "+2" in asked["metadata"]["diff"]
        assert set(asked["tool"]) == {"messageID", "callID"}
        assert (await it.get("/permission")) == [asked]
        assert states(heard, "edit")[-1]["status"] == "running"
        assert await it.post(f"/permission/{asked['id']}/reply", {"reply": "once"}) is True
        lines = await heard.idle(session)
        place = lines.index("permission.asked")
        assert lines[place + 1] == "permission.replied once"
        assert "edit completed" in lines[place:]
        assert (it.work / "a.py").read_text() == "2\n"
        assert await it.get("/permission") == []


@pytest.mark.slow
async def test_always_settles_what_else_it_covers(tmp_path: Path) -> None:
    made = [make_call("bash", f"c{n}", command=f"echo {n}") for n in range(3)]
    again = make_answer(make_call("bash", command="echo again"))
    async with (
        served(tmp_path, [make_answer(*made), again, ScriptedAnswer(text="Ran.")]) as it,
        hearing(it) as heard,
    ):
        session = await titled(it, permission=ASK)
        await send(it, session)
        asked = (await heard.asked())[0]
        assert (asked["patterns"], asked["always"]) == (["echo 0"], ["echo *"])
        assert asked["metadata"]["command"] == "echo 0"
        await it.post(f"/permission/{asked['id']}/reply", {"reply": "always"})
        lines = await heard.idle(session)
        assert lines.count("permission.asked") == lines.count("permission.replied always") == 1
        assert lines.count("bash completed") == 4


async def test_an_answer_for_the_session_is_an_always_with_a_scope_and_is_revoked(
    tmp_path: Path,
) -> None:
    first, again = (make_answer(make_call("bash", command=f"echo {n}")) for n in range(2))
    async with (
        served(tmp_path, [first, again, ScriptedAnswer(text="Ran.")]) as it,
        hearing(it) as heard,
    ):
        session = await titled(it, permission=ASK)
        await send(it, session)
        (asked,) = await heard.asked()
        await it.post(f"/permission/{asked['id']}/reply", {"reply": "always", "scope": "session"})
        lines = await heard.idle(session)
        assert lines.count("permission.asked") == lines.count("permission.replied always") == 1
        (grant,) = (await it.get("/permission/rules"))["grants"]
        assert (grant["id"], grant["sessionID"], grant["directory"]) == (asked["id"], session, "")
        assert (await it.http.delete(f"/permission/grant/{grant['id']}")).status_code == 200
        assert (await it.get("/permission/rules"))["grants"] == []


async def test_a_rejection_ends_the_turn_after_the_step(tmp_path: Path) -> None:
    refused = make_answer(make_call("bash", command="touch x"))
    async with (
        served(tmp_path, [refused, ScriptedAnswer(text="Never said.")]) as it,
        hearing(it) as heard,
    ):
        session = await titled(it, permission=ASK)
        await send(it, session)
        (asked,) = await heard.asked()
        await it.post(f"/permission/{asked['id']}/reply", {"reply": "reject"})
        lines = await heard.idle(session)
        rejected = ["permission.replied reject", "bash error", "step-finish tool-calls"]
        done = [*["assistant tool-calls completed"] * 2, "user diffs 0", *END]
        assert lines[lines.index("permission.asked") + 1 :] == [*rejected, *done]
        assert not (it.work / "x").exists()


@pytest.mark.slow
async def test_a_rejection_with_words_goes_on(tmp_path: Path) -> None:
    refused = make_answer(make_call("bash", command="touch x"))
    async with (
        served(tmp_path, [refused, ScriptedAnswer(text="Otherwise.")]) as it,
        hearing(it) as heard,
    ):
        session = await titled(it, permission=ASK)
        await send(it, session)
        (asked,) = await heard.asked()
        await it.post(
            f"/permission/{asked['id']}/reply", {"reply": "reject", "message": "use another way"}
        )
        lines = await heard.idle(session)
        assert "text 'Otherwise.' end" in lines
        assert "use another way" in states(heard, "bash")[-1]["error"]


QUESTION = {"question": "Which?", "header": "One", "options": [{"label": "A", "description": "a"}]}


@pytest.mark.parametrize("reply", ["answered", "rejected"])
async def test_a_question_of_the_model(tmp_path: Path, reply: str) -> None:
    script = [
        make_answer(make_call("question", questions=[QUESTION])),
        ScriptedAnswer(text="Good."),
    ]
    async with served(tmp_path, script) as it, hearing(it) as heard:
        session = await titled(it)
        await send(it, session)
        (asked,) = await heard.asked("question")
        assert asked["questions"] == [QUESTION]
        assert [each["id"] for each in await it.get("/question")] == [asked["id"]]
        if reply == "answered":
            assert await it.post(f"/question/{asked['id']}/reply", {"answers": [["A"]]}) is True
        else:
            assert await it.post(f"/question/{asked['id']}/reject") is True
        lines = await heard.idle(session)
        after = lines[lines.index("question.asked") + 1 :]
        state = states(heard, "question")[-1]
        if reply == "answered":
            assert after[:2] == ["question.replied", "question completed"]
            assert (state["title"], state["metadata"]["answers"]) == ("Asked 1 question", [["A"]])
            assert "text 'Good.' end" in after
        else:
            assert after[:3] == ["question.rejected", "question error", "step-finish tool-calls"]
            assert after[-2:] == END
            assert len(it.model.requests) == 1


async def test_a_queued_prompt_enters_the_running_turn(tmp_path: Path) -> None:
    first = make_answer(make_call("bash", command="until [ -e go ]; do sleep 0.01; done"))
    async with served(tmp_path, [first, ScriptedAnswer(text="Both.")]) as it, hearing(it) as heard:
        session = await titled(it)
        asking = asyncio.create_task(it.prompt(session, "one"))
        await heard.line("bash running", session)
        other = asyncio.create_task(it.prompt(session, "two"))
        await heard.line("text 'two'", session)
        (it.work / "go").touch()
        one, two = await asyncio.gather(asking, other)
        assert one["info"] == two["info"]
        lines = await heard.idle(session)
        assert lines.count("session.idle") == 1
        prompts = [
            info["id"]
            for each in of(heard.events, "message.updated")
            if is_new_prompt(info := each["info"])
        ]
        assert one["info"]["parentID"] == prompts[1]


def is_new_prompt(info: Event) -> bool:
    return info["role"] == "user" and "summary" not in info


SLOW = ScriptedAnswer(text="word " * 6_000, deltas=6_000, delay_ms=10)
BASH = make_answer(make_call("bash", command="echo begun; sleep 77"))


async def test_an_abort_in_the_middle_of_text(tmp_path: Path) -> None:
    async with served(tmp_path, [SLOW]) as it, hearing(it) as heard:
        session = await titled(it)
        asking = asyncio.create_task(it.prompt(session))
        await heard.line("delta text 'word '", session)
        assert await it.get("/session/status") == {session: {"type": "busy"}}
        assert await it.post(f"/session/{session}/abort") is True
        answer = await asking
        assert answer["info"]["error"] == {
            "name": "MessageAbortedError",
            "data": {"message": "Aborted"},
        }
        lines = await heard.idle(session)
        ended = [
            "assistant MessageAbortedError completed",
            "session.updated",
            "session.error MessageAbortedError",
        ]
        closed = [*ended, "user diffs 0", *END]
        assert lines[-len(closed) :] == closed
        assert lines[-len(closed) - 1].endswith("end")
        assert await it.get("/session/status") == {}


async def test_an_abort_of_a_command(tmp_path: Path) -> None:
    async with served(tmp_path, [BASH]) as it, hearing(it) as heard:
        session = await titled(it)
        await send(it, session)
        await heard.until(
            lambda _: any("begun" in output(state) for state in states(heard, "bash"))
        )
        await it.post(f"/session/{session}/abort")
        lines = await heard.idle(session)
        closed = [
            "bash error",
            "assistant MessageAbortedError completed",
            "session.error MessageAbortedError",
        ]
        assert [line for line in lines if line in closed] == closed
        state = states(heard, "bash")[-1]
        assert state["metadata"]["interrupted"] is True
        assert "begun" in output(state)


def output(state: Event) -> str:
    return (state.get("metadata") or {}).get("output", "")


async def test_an_abort_while_somebody_is_asked(tmp_path: Path) -> None:
    async with (
        served(tmp_path, [make_answer(make_call("bash", command="touch x"))]) as it,
        hearing(it) as heard,
    ):
        session = await titled(it, permission=ASK)
        await send(it, session)
        (asked,) = await heard.asked()
        await it.post(f"/session/{session}/abort")
        lines = await heard.idle(session)
        assert "permission.replied reject" in lines
        assert await it.get("/permission") == []
        late = await it.post(f"/permission/{asked['id']}/reply", {"reply": "once"}, status=404)
        assert (late["_tag"], late["requestID"]) == ("PermissionNotFoundError", asked["id"])


class HeldModel(ScriptedModel):
    """A model that fails once, and whose next answer waits until `is_seen` is set."""

    def __init__(self, error: APIError) -> None:
        super().__init__([ScriptedAnswer(error=error), ScriptedAnswer(text="Now.")])
        self.is_seen = asyncio.Event()
        self.has_failed = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        if self.has_failed:
            await self.is_seen.wait()
        self.has_failed = True
        async for event in super().stream(request):
            yield event


async def test_a_try_that_failed_shows_when_the_next_one_comes(tmp_path: Path) -> None:
    headers = {"retry-after-ms": "150"}
    data = APIErrorData(
        message="busy now", is_retryable=True, status_code=503, response_headers=headers
    )
    script, is_shown = HeldModel(APIError(data=data)), asyncio.Event()

    async def sleep(seconds: float) -> None:
        await asyncio.gather(asyncio.sleep(seconds), is_shown.wait())

    async with served(tmp_path, RetryingModel(script, sleep=sleep)) as it, hearing(it) as heard:
        session = await titled(it)
        begun = now_ms()
        await send(it, session)
        await heard.line("status retry 1 busy now", session)
        status = (await it.get("/session/status"))[session]
        assert (status["type"], status["attempt"], status["message"]) == ("retry", 1, "busy now")
        assert 150 <= status["next"] - begun < 60_000
        is_shown.set()
        await heard.line("status busy", session, 3)
        assert now_ms() >= status["next"] - 5
        assert "text ''" not in heard.lines(session)  # the service has not answered yet
        script.is_seen.set()
        lines = await heard.idle(session)
        waited = lines.index("status retry 1 busy now")
        assert lines[waited : waited + 3] == ["status retry 1 busy now", "status busy", "text ''"]


async def test_an_abort_while_a_request_waits_to_be_sent_again(tmp_path: Path) -> None:
    data = APIErrorData(message="busy now", is_retryable=True, status_code=503)
    async with (
        served(
            tmp_path, RetryingModel(ScriptedModel([ScriptedAnswer(error=APIError(data=data))]))
        ) as it,
        hearing(it) as heard,
    ):
        session = await titled(it)
        await send(it, session)
        await heard.line("status retry 1 busy now", session)
        await it.post(f"/session/{session}/abort")
        assert (await heard.idle(session))[-2:] == END
        assert await it.get("/session/status") == {}


async def test_an_error_of_the_models_service(tmp_path: Path) -> None:
    error = APIError(data=APIErrorData(message="bad request", is_retryable=False, status_code=400))
    async with served(tmp_path, [ScriptedAnswer(error=error)]) as it, hearing(it) as heard:
        session = await titled(it)
        answer = await it.prompt(session)
        lines = await heard.idle(session)
        failed = ["assistant APIError completed", "session.error APIError", "user diffs 0", *END]
        assert lines[-len(failed) :] == failed
        (shown,) = of(heard.events, "session.error")
        wanted = {"message": "bad request", "isRetryable": False, "statusCode": 400}
        assert answer["info"]["error"] == shown["error"] == {"name": "APIError", "data": wanted}


async def test_a_summary_that_was_asked_for(tmp_path: Path) -> None:
    script = [ScriptedAnswer(text="One."), ScriptedAnswer(kind="side", text="The note.")]
    async with served(tmp_path, script) as it, hearing(it) as heard:
        session = await titled(it)
        await it.prompt(session)
        await heard.idle(session)
        heard.forget()
        model = {"providerID": "scripted", "modelID": "scripted"}
        assert await it.post(f"/session/{session}/summarize", model) is True
        lines = await heard.idle(session)
        summary = [
            "text 'The note.' end",
            "step-finish stop",
            "assistant summary stop completed",
            "session.updated",
        ]
        begin = ["user", "compaction", "status busy", "status busy", "assistant summary"]
        assert lines == [*begin, *summary, "session.compacted", "user diffs 0", *END]


async def test_a_conversation_that_is_too_long_is_summarised_and_goes_on(tmp_path: Path) -> None:
    long = ContextOverflowError(data=OverflowData(message="too long"))
    script = [
        ScriptedAnswer(text="One."),
        ScriptedAnswer(error=long),
        ScriptedAnswer(kind="side", text="The note."),
        ScriptedAnswer(text="Two."),
    ]
    async with served(tmp_path, script) as it, hearing(it) as heard:
        session = await titled(it)
        await it.prompt(session, "first")
        answer = await it.prompt(session, "second")
        assert answer["parts"][1]["text"] == "Two."
        lines = await heard.idle(session, 2)
        order = [
            "session.error ContextOverflowError",
            "compaction",
            "assistant summary",
            "session.compacted",
        ]
        assert [line for line in lines if line in order] == order
        (compaction,) = [part for part in parts(heard) if part["type"] == "compaction"]
        assert (compaction["auto"], compaction["overflow"]) == (True, True)
        assert lines[lines.index("session.compacted") + 1 :].count("text 'second'") == 1


async def test_a_subagent_shows_its_session_before_it_works(tmp_path: Path) -> None:
    task = make_call("task", description="Explore", prompt="find add", subagent_type="general")
    script = [make_answer(task), ScriptedAnswer(text="In calc.py."), ScriptedAnswer(text="Found.")]
    async with served(tmp_path, script) as it, hearing(it) as heard:
        session = await titled(it)
        await it.prompt(session)
        await heard.idle(session)
        (made,) = [
            each["info"]
            for each in of(heard.events, "session.created")
            if "parentID" in each["info"]
        ]
        assert (made["parentID"], made["title"]) == (session, "Explore (@general subagent)")
        assert made["permission"] == [{"permission": "task", "pattern": "*", "action": "deny"}]
        first = next(state for state in states(heard, "task") if "metadata" in state)
        assert first["status"] == "running"
        assert first["title"] == "Explore"
        assert first["metadata"]["parentSessionId"] == session
        assert first["metadata"]["sessionId"] == made["id"]
        assert set(first["metadata"]["model"]) == {"modelID", "providerID"}
        child = [line for line in heard.lines(made["id"]) if line != "session.updated"]
        stop = ["step-finish stop", "assistant stop completed", *END]
        assert child == [
            "session.created",
            "user",
            "text 'find add'",
            *STEP,
            *texts("In calc.py."),
            *stop,
        ]
        kinds = [event["type"] for event in heard.events]
        ended = kinds.index("session.idle")
        assert states(heard, "task")[-1]["status"] == "completed"
        done = next(at for at, event in enumerate(heard.events) if is_done(event, "task"))
        assert ended < done
        assert f'<task id="{made["id"]}" state="completed">' in states(heard, "task")[-1]["output"]
        assert [each["id"] for each in await it.get(f"/session/{session}/children")] == [made["id"]]


def is_done(event: Event, tool: str) -> bool:
    part = event["properties"].get("part", {})
    return part.get("tool") == tool and part["state"]["status"] == "completed"


async def test_arguments_that_stream_in_show_a_pending_call(tmp_path: Path) -> None:
    content: tuple[ScriptedBlock, ...] = (
        CallBlock(ScriptedCall("bash", {"command": "true"}), deltas=4, ms=40),
    )
    async with (
        served(tmp_path, [ScriptedAnswer(content=content), ScriptedAnswer(text="Ok.")]) as it,
        hearing(it) as heard,
    ):
        session = await titled(it)
        await it.prompt(session)
        await heard.idle(session)
        assert states(heard, "bash")[0] == {"status": "pending", "input": {}, "raw": ""}
