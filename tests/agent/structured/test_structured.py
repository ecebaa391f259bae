"""Answers as JSON of a schema: taken from a tool or from text, corrected, refused;
with all that a turn may hold.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from codeloop.agent.structured import validation
from codeloop.model.chat import ModelInfo, TokenLimits
from codeloop.model.testing.replay import SCRIPT_INFO
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall, TokenCount
from codeloop.schema.api.session_inputs import ABORT, RunLimits
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import (
    APIError,
    APIErrorData,
    MessageAbortedError,
    OperationError,
    StructuredOutputError,
)
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.wire import replace
from tests.support.scripted_project import make_answer, make_call, open_scripted_project, wait_until

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
    "required": ["name", "count"],
}
FORMAT = {"type": "json_schema", "schema": SCHEMA}
GOOD = {"name": "a", "count": 3}
NATIVE = replace(SCRIPT_INFO, provider_id="openai", id="gpt-6")


def text(value: Any) -> ScriptedAnswer:
    return ScriptedAnswer(text=value if isinstance(value, str) else json.dumps(value))


def structured(**given: Any) -> ScriptedAnswer:
    return make_answer(ScriptedCall("StructuredOutput", given, ""))


def of(answer: Any) -> AssistantMessage:
    assert isinstance(answer.info, AssistantMessage)
    return answer.info


@pytest.mark.slow
async def test_tools_work_before_the_answer_which_a_tool_takes(tmp_path: Path) -> None:
    answers = [make_answer(make_call("glob", pattern="*"), text="I look."), structured(**GOOD)]
    async with open_scripted_project(tmp_path, answers) as it:
        answer = await it.prompt("count", format=FORMAT)
        first, second = it.model.requests
    assert of(answer).structured == GOOD
    assert of(answer).error is None
    assert of(answer).finish == "stop"
    assert answer.stop is not None
    assert answer.stop.reason == "done"
    assert first.tools[-1].name == "StructuredOutput"
    assert first.tools[-1].parameters == SCHEMA
    assert first.body == {"tool_choice": "required"}
    assert second.tools == first.tools


@pytest.mark.slow
async def test_an_answer_that_is_wrong_is_corrected_by_the_model_who_reads_why(
    tmp_path: Path,
) -> None:
    answers = [structured(name="a", count=0), text("I am done."), structured(**GOOD)]
    async with open_scripted_project(tmp_path, answers) as it:
        answer = await it.prompt("count", format=FORMAT)
        told = it.results()[0]
        prompts = [entry for entry in it.view().entries if isinstance(entry.info, UserMessage)]
        last = str(it.model.requests[-1].messages[-1])
    assert of(answer).structured == GOOD
    assert "`count`: 0 is less than the minimum of 1" in told
    assert len(prompts) == 2
    assert getattr(prompts[1].parts[0], "synthetic", None) is True
    assert "it is not JSON alone" in last
    assert "StructuredOutput" in last


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [structured(name=1), text("no"), text({"name": "a"}), text("")])
async def test_it_fails_clearly_after_so_many_corrections(
    tmp_path: Path, wrong: ScriptedAnswer
) -> None:
    async with open_scripted_project(tmp_path, [wrong, wrong, structured(**GOOD)]) as it:
        answer = await it.prompt("count", format={**FORMAT, "retryCount": 1})
        assert len(it.model.requests) == 2
    error = of(answer).error
    assert isinstance(error, StructuredOutputError)
    assert error.data.retries == 1
    assert "2 tries" in error.data.message
    assert of(answer).structured is None
    assert answer.stop is not None
    assert answer.stop.reason == "error"


@pytest.mark.slow
@pytest.mark.parametrize(
    "said", [json.dumps(GOOD), f"```json\n{json.dumps(GOOD)}\n```", f"\n {json.dumps(GOOD)}\n"]
)
@pytest.mark.parametrize("info", [SCRIPT_INFO, NATIVE, replace(SCRIPT_INFO, tool_call=False)])
async def test_text_that_is_the_json_counts_whatever_was_asked_for(
    tmp_path: Path, said: str, info: ModelInfo
) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text=said, kind="main" if info.tool_call else "side")], info=info
    ) as it:
        assert of(await it.prompt("count", format=FORMAT)).structured == GOOD
        asked = it.model.requests[0]
    assert ("response_format" in asked.body) == (info is NATIVE)
    assert ("StructuredOutput" in [tool.name for tool in asked.tools]) == (info is SCRIPT_INFO)


@pytest.mark.slow
async def test_a_service_that_refuses_the_format_is_asked_by_a_tool(tmp_path: Path) -> None:
    refused = APIError(
        data=APIErrorData(message="unknown field", is_retryable=False, status_code=400)
    )
    answers = [
        ScriptedAnswer(error=refused),
        make_answer(make_call("glob", pattern="*")),
        structured(**GOOD),
    ]
    async with open_scripted_project(tmp_path, answers, info=NATIVE) as it:
        assert of(await it.prompt("count", format=FORMAT)).structured == GOOD
        bodies = [list(request.body) for request in it.model.requests]
    assert bodies == [["response_format"], ["tool_choice"], ["tool_choice"]]


@pytest.mark.slow
async def test_a_model_without_tools_whose_format_is_refused_is_never_told_to_call_one(
    tmp_path: Path,
) -> None:
    refused = APIError(
        data=APIErrorData(message="unknown field", is_retryable=False, status_code=400)
    )
    answers = [ScriptedAnswer(error=refused), text("no"), text(GOOD)]
    sides = [replace(answer, kind="side") for answer in answers]
    async with open_scripted_project(tmp_path, sides, info=replace(NATIVE, tool_call=False)) as it:
        assert of(await it.prompt("count", format=FORMAT)).structured == GOOD
        correction = str(it.model.requests[-1].messages[-1])
    assert "Answer with the whole JSON" in correction
    assert "StructuredOutput" not in correction


@pytest.mark.slow
async def test_an_answer_that_is_no_object_comes_in_one(tmp_path: Path) -> None:
    schema = {
        "type": "array",
        "items": {"$ref": "#/$defs/row"},
        "$defs": {"row": {"type": "integer"}},
    }
    async with open_scripted_project(
        tmp_path, [structured(result=[1, "2"]), structured(result=[1, 2])]
    ) as it:
        answer = await it.prompt("count", format={"type": "json_schema", "schema": schema})
        told = it.results()[0]
    assert of(answer).structured == [1, 2]
    assert "`[1]`: '2' is not of type 'integer'" in told


@pytest.mark.slow
async def test_prompts_after_it_are_answered_as_text_and_subagents_too(tmp_path: Path) -> None:
    task = make_call("task", description="d", prompt="look", subagent_type="general")
    answers = [make_answer(task), text("from the child"), structured(**GOOD), text("plain")]
    async with open_scripted_project(tmp_path, answers) as it:
        assert of(await it.prompt("count", format=FORMAT)).structured == GOOD
        assert of(await it.prompt("and now")).structured is None
        offered = [request.tools[-1].name == "StructuredOutput" for request in it.model.requests]
    assert offered == [True, False, True, False]


@pytest.mark.slow
async def test_it_outlives_compaction_and_a_prompt_that_comes_meanwhile(tmp_path: Path) -> None:
    small = replace(SCRIPT_INFO, limits=TokenLimits(context=8_000, output=1_000))
    full = make_answer(make_call("glob", pattern="*"))
    full = replace(full, tokens=TokenCount(input=7_000, output=10))
    note = ScriptedAnswer(text="The note.", kind="side")
    answers = [
        make_answer(make_call("glob", pattern="a*")),
        full,
        note,
        make_answer(make_call("glob", pattern="b*")),
        text("no"),
        structured(**GOOD),
    ]
    async with open_scripted_project(tmp_path, answers, info=small) as it:
        asking = asyncio.create_task(it.prompt("count", format=FORMAT))
        await wait_until(lambda: it.model.requests)
        await it.prompt("and the tests", no_reply=True)
        assert of(await asking).structured == GOOD
        offered = [request.tools[-1].name for request in it.model.requests if request.tools]
    assert offered == ["StructuredOutput"] * 5


@pytest.mark.slow
async def test_a_limit_and_an_abort_end_it_as_they_end_others(tmp_path: Path) -> None:
    answers = [
        text("no"),
        text("no"),
        ScriptedAnswer(text="slow " * 50, delay_ms=500),
        text("plain"),
    ]
    async with open_scripted_project(tmp_path, answers) as it:
        limited = await it.prompt("count", format=FORMAT, limits=RunLimits(steps=2))
        assert limited.stop is not None
        assert limited.stop.reason == "limit"
        asking = asyncio.create_task(it.prompt("count", format=FORMAT))
        await wait_until(lambda: len(it.model.requests) == 3)
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        assert isinstance(of(await asking).error, MessageAbortedError)
        after = of(await it.prompt("go on"))
    assert (after.structured, after.error) == (None, None)


@pytest.mark.slow
async def test_no_rule_takes_away_the_tool_that_takes_the_answer(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [structured(**GOOD)]) as it:
        answer = await it.prompt("count", format=FORMAT, tools={"*": False})
        offered = [tool.name for tool in it.model.requests[0].tools]
    assert of(answer).structured == GOOD
    assert offered == ["StructuredOutput"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"type": "json_schema", "schema": {"type": "objekt"}}, "`type`: 'objekt' is not valid"),
    (
        {"type": "json_schema", "schema": {"properties": {"a": {"pattern": "("}}}},
        "`properties.a.pattern`",
    ),
    ({"type": "json_schema", "schema": {"$ref": "#/$defs/none"}}, "is not in the schema"),
    ({"type": "json_schema", "schema": {"items": {"$dynamicRef": "#none"}}}, "`items.$dynamicRef`"),
    ({"type": "json_schema", "schema": {"$schema": ["a"]}}, "`$schema`: it is not the address"),
    ({"type": "json_schema", "schema": {"$ref": "http://127.0.0.1:9/x"}}, "nothing is fetched"),
    ({"type": "json_schema", "schema": {"$ref": "file:///etc/passwd"}}, "nothing is fetched"),
    ({"type": "json_schema", "schema": {"description": "x" * 300_000}}, "longer than"),
    ({"type": "json_schema", "schema": []}, "a JSON object"),
    ({"type": "json_schema"}, "format.schema is missing"),
    ({"type": "json_schema", "schema": {}, "retryCount": -1}, "retryCount"),
    ({"type": "json_schema", "schema": {}, "retryCount": 1.5}, "retryCount"),
    ({"type": "yaml"}, "format.type"),
    ({}, "format.type"),
]


@pytest.mark.slow
async def test_a_dynamic_reference_is_followed() -> None:
    schema = {
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {"name": {"type": "string"}, "below": {"$dynamicRef": "#node"}},
    }
    assert await validation.find_schema_problems(schema, {}) == []
    assert await validation.find_value_problems(schema, {"below": {"name": "a"}}, {}) == []
    (problem,) = await validation.find_value_problems(schema, {"below": {"name": 1}}, {})
    assert problem.path == ("below", "name")


@pytest.mark.slow
async def test_a_number_that_is_too_large_is_named_as_the_reason() -> None:
    (problem,) = await validation.find_value_problems({"multipleOf": 0.1}, 10**400, {})
    assert problem.message == "it has a number that is too large to be checked"


@pytest.mark.slow
async def test_a_format_that_is_wrong_is_refused(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        for wrong, said in WRONG:
            with pytest.raises(OperationError) as refused:
                await it.prompt("count", format=wrong)
            assert refused.value.kind == "BadRequest"
            assert said in str(refused.value)
        assert it.view().entries == ()


@pytest.mark.slow
async def test_a_pattern_that_runs_away_is_ended_by_its_processor_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(validation, "SCHEMA_TIME", replace(validation.SCHEMA_TIME, value=1_000))
    # So that the clock is not what ends it.
    monkeypatch.setattr(validation, "_MAX_CLOCK_FACTOR", 600)
    problems = await validation.find_value_problems(
        {"type": "string", "pattern": "^(a+)+$"}, "a" * 40 + "!", {}
    )
    assert [problem.message for problem in problems] == [
        "checking it takes more than 1 s. Make its patterns simpler."
    ]
