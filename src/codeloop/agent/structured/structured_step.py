"""A step whose answer must be JSON of a given schema: asks the model for it,
and checks the answer.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

import msgspec

from codeloop.agent.engine import Engine
from codeloop.agent.moves import list_turn_entries
from codeloop.agent.request.request_cache import RequestCache
from codeloop.agent.structured.validation import Problem, find_value_problems
from codeloop.model.chat import ChatModel, Finished, ModelEvent, ModelInfo, ModelRequest, ToolSpec
from codeloop.model.quirks import find_quirks
from codeloop.model.wire.structured_output import (
    AnswerShape,
    make_answer_shape,
    make_forced_call_fields,
    make_format_fields,
)
from codeloop.schema.bounds.structured import STRUCTURED_REPORTED_MISTAKES, STRUCTURED_RETRIES
from codeloop.schema.errors import APIError, StructuredData, StructuredOutputError
from codeloop.schema.event import StoredEvent, make_message_updated, make_part_updated
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import (
    STRUCTURED_OUTPUT_TOOL,
    Part,
    TextPart,
    ToolPart,
    ToolState,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.schema.wire import JSON, decode_json, replace
from codeloop.store.conversation import Entry, make_next_prompt
from codeloop.tool.tool import Tool, ToolContext, ToolFailure, ToolResult
from codeloop.tool.toolbox import Toolbox

TOOL_DESCRIPTION = """Gives the answer of this turn, as data: the arguments are read by a program.
Do the work first, with the other tools. Then call this once, alone, with the whole answer."""
TOOL_INSTRUCTIONS = (
    "The user wants the answer as data. "
    f"When the work is done, give it by calling {STRUCTURED_OUTPUT_TOOL}; text is not read."
)
TEXT_INSTRUCTIONS = (
    "The user wants the answer as data. Your last message must be JSON alone, "
    "no other text, as this schema says:"
)
WRONG_ANSWER_NOTE = "That is not the answer that was asked for:\n{problems}\n"
RETRY_BY_TOOL = f"Call {STRUCTURED_OUTPUT_TOOL} with the whole answer, corrected."
RETRY_BY_TEXT = "Answer with the whole JSON, corrected, and nothing else."
WRONG_ANSWER_KEY = "wrongAnswer"
"""Metadata key of a call, or of a generated prompt's part: what was wrong with an answer."""
# HTTP statuses with which services refuse a format or a schema.
_FORMAT_REFUSAL_STATUSES = frozenset({400, 404, 415, 422, 501})


class CheckedAnswer(NamedTuple):
    """An answer after its check, how its stream ended, and further events to store.

    `continues`: another step follows, unless `finished` has an error.
    """

    info: AssistantMessage
    finished: Finished
    continues: bool
    extra_events: list[StoredEvent]


class StructuredStep:
    """Asks for the format of a prompt in the request of a step, and checks the answer."""

    def __init__(
        self, engine: Engine, info: AssistantMessage, answer_format: JSON, cache: RequestCache
    ) -> None:
        """`answer_format`: as in `answer_format.py`."""
        self._engine = engine
        self._info = info
        self._format = answer_format
        self._shape: AnswerShape = make_answer_shape(answer_format["schema"])
        self._retries: int = answer_format.get("retryCount", STRUCTURED_RETRIES.value)
        self._cache = cache
        self._retry_instructions = RETRY_BY_TOOL
        tool = Tool(
            STRUCTURED_OUTPUT_TOOL,
            TOOL_DESCRIPTION,
            msgspec.Struct,
            self._take_answer,
            schema=self._shape.schema,
        )
        self._spec = tool.spec
        other_tools = (each for each in engine.toolbox.tools if each.name != STRUCTURED_OUTPUT_TOOL)
        self.toolbox = Toolbox(
            (*other_tools, tool), engine.toolbox.fit_specs, engine.toolbox.find_tool
        )
        """The tools of the step: with the one that takes the answer."""

    def prepare(self, model: ChatModel, request: ModelRequest) -> tuple[ChatModel, ModelRequest]:
        """Return the model and the request that ask for the format in the way
        the service supports.
        """
        info = model.info
        fields = (
            make_format_fields(info, find_quirks(info), self._shape)
            if self._cache.takes_format
            else None
        )
        schema = msgspec.json.encode(self._shape.schema).decode()
        as_text = replace(request, system=f"{request.system}\n\n{TEXT_INSTRUCTIONS}\n{schema}")
        fallback_request = self._ask_by_tool(info, request) if info.tool_call else as_text
        fallback_instructions = RETRY_BY_TOOL if info.tool_call else RETRY_BY_TEXT
        if fields is None:
            self._retry_instructions = fallback_instructions
            return model, fallback_request

        def fall_back() -> None:
            self._cache.takes_format = False
            self._retry_instructions = fallback_instructions

        self._retry_instructions = RETRY_BY_TEXT
        return _FallbackModel(model, fallback_request, fall_back), replace(as_text, body=fields)

    def _ask_by_tool(self, info: ModelInfo, request: ModelRequest) -> ModelRequest:
        tools: list[ToolSpec] = [
            each for each in request.tools if each.name != STRUCTURED_OUTPUT_TOOL
        ]
        return replace(
            request,
            system=f"{request.system}\n\n{TOOL_INSTRUCTIONS}",
            tools=(*tools, self._spec),
            body=make_forced_call_fields(info, find_quirks(info), request.options),
        )

    async def finish(
        self, info: AssistantMessage, finished: Finished, *, has_called: bool
    ) -> CheckedAnswer:
        """Check the answer of the step. `has_called`: it made calls.

        The turn ends with the value in the answer's `structured`,
        or with an error after too many wrong answers.
        """
        unchanged = CheckedAnswer(info, finished, has_called, [])
        if finished.error is not None:
            return unchanged
        conversation = self._engine.store.read_context(info.session_id)
        entries, parts = list_turn_entries(conversation), conversation.find_parts(info.id)
        accepted = [
            part.state.input
            for part in _list_answers(parts)
            if isinstance(part.state, ToolStateCompleted)
        ]
        if accepted:
            answer = replace(info, structured=self._shape.unwrap(accepted[-1]))
            return CheckedAnswer(
                answer, Finished("stop", finished.tokens), continues=False, extra_events=[]
            )
        # A cut or filtered answer is not worth checking; the reason says more.
        if finished.reason not in {"stop", "tool-calls"}:
            return unchanged
        # The model still works with other tools; only wrong calls of the answer
        # tool count as tries.
        if has_called:
            wrong_calls = [
                part.state for part in parts if isinstance(part, ToolPart) and _is_wrong(part)
            ]
            if wrong_calls and _count_wrong_answers(entries) > self._retries:
                failure = self._make_failure(finished, _read_reason(wrong_calls[-1]))
                return CheckedAnswer(info, failure, continues=True, extra_events=[])
            return unchanged
        text = "\n".join(
            part.text for part in parts if isinstance(part, TextPart) and not part.synthetic
        ).strip()
        value, problems = await self._read_answer(text)
        if not problems:
            return CheckedAnswer(
                replace(info, structured=value), finished, continues=False, extra_events=[]
            )
        problems_text = format_problems(problems)
        if _count_wrong_answers(entries) >= self._retries:
            failure = self._make_failure(finished, problems_text)
            return CheckedAnswer(info, failure, continues=False, extra_events=[])
        return CheckedAnswer(
            info, finished, continues=True, extra_events=self._make_repair_events(problems_text)
        )

    async def _take_answer(self, value: Any, _ctx: ToolContext) -> ToolResult:
        problems = await find_value_problems(
            self._format["schema"], self._shape.unwrap(value), self._engine.workspace.environment
        )
        if problems:
            text = format_problems(problems)
            raise ToolFailure(
                f"{WRONG_ANSWER_NOTE.format(problems=text)}{RETRY_BY_TOOL}",
                {WRONG_ANSWER_KEY: text},
            )
        return ToolResult("Structured Output", "Taken: this is the answer.", {"valid": True})

    async def _read_answer(self, text: str) -> tuple[Any, list[Problem]]:
        """Return the value that a text holds as JSON, and its problems."""
        try:
            value = self._shape.unwrap(decode_json(_strip_fence(text)))
        except (msgspec.DecodeError, RecursionError) as error:
            return None, [
                Problem((), f"it is not JSON alone ({error})" if text else "there is none")
            ]
        problems = await find_value_problems(
            self._format["schema"], value, self._engine.workspace.environment
        )
        return value, problems

    def _make_failure(self, finished: Finished, why: str) -> Finished:
        retries = self._retries
        tries = "1 try" if not retries else f"{retries + 1} tries"
        message = f"The model did not give the output that was asked for, in {tries}:\n{why}"
        error = StructuredOutputError(data=StructuredData(message=message, retries=retries))
        return Finished("error", finished.tokens, error)

    def _make_repair_events(self, problems: str) -> list[StoredEvent]:
        """Return the events that tell the model what was wrong, so that it answers once more."""
        conversation = self._engine.store.read_context(self._info.session_id)
        prompt = make_next_prompt(conversation, format=self._format)
        part = TextPart(
            id=new_id("prt"),
            session_id=prompt.session_id,
            message_id=prompt.id,
            text=f"{WRONG_ANSWER_NOTE.format(problems=problems)}{self._retry_instructions}",
            synthetic=True,
            metadata={WRONG_ANSWER_KEY: problems},
        )
        return [make_message_updated(prompt), make_part_updated(part)]


class _FallbackModel:
    """A model that sends `fallback_request` when its service refuses the format
    of the first request.
    """

    def __init__(
        self, model: ChatModel, fallback_request: ModelRequest, fall_back: Callable[[], None]
    ) -> None:
        self._model = model
        self._fallback_request = fallback_request
        self._fall_back = fall_back

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        has_begun = False
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                # Only a refusal before the first event: other events have been passed on
                # and can't be taken back.
                if not has_begun and isinstance(event, Finished) and is_refused(event):
                    break
                has_begun = True
                yield event
            else:
                return
        self._fall_back()
        async with aclosing(self._model.stream(self._fallback_request)) as events:
            async for event in events:
                yield event


def format_problems(problems: Sequence[Problem]) -> str:
    """Format problems, one a line; beyond a limit only their number is given."""
    lines = [f"- {problem}" for problem in problems[: STRUCTURED_REPORTED_MISTAKES.value]]
    omitted = len(problems) - len(lines)
    if omitted:
        lines.append(f"- and {omitted} more")
    return "\n".join(lines)


def is_refused(event: Finished) -> bool:
    """Return whether a service refused the requested format."""
    error = event.error
    return isinstance(error, APIError) and error.data.status_code in _FORMAT_REFUSAL_STATUSES


def _list_answers(parts: Sequence[Part]) -> list[ToolPart]:
    return [
        part for part in parts if isinstance(part, ToolPart) and part.tool == STRUCTURED_OUTPUT_TOOL
    ]


def _is_wrong(part: Part) -> bool:
    """Return whether a part is an answer that was not taken."""
    if isinstance(part, ToolPart) and part.tool == "invalid":
        return part.state.input.get("tool") == STRUCTURED_OUTPUT_TOOL
    return (
        isinstance(part, ToolPart)
        and part.tool == STRUCTURED_OUTPUT_TOOL
        and isinstance(part.state, ToolStateError)
    )


def _read_reason(state: ToolState) -> str:
    """Return the reason why an answer that was given by a call was not accepted;
    "": there is none.
    """
    match state:
        case (
            ToolStateError(metadata=metadata, error=text)
            | ToolStateCompleted(metadata=metadata, output=text)
        ):
            return str((metadata or {}).get(WRONG_ANSWER_KEY) or text)
        case _:
            return ""


def _count_wrong_answers(entries: Sequence[Entry]) -> int:
    """Return how many answers of a turn were wrong, as far as they are stored."""
    parts = [part for entry in entries for part in entry.parts]
    repairs = [
        part
        for part in parts
        if isinstance(part, TextPart) and WRONG_ANSWER_KEY in (part.metadata or {})
    ]
    return len(repairs) + sum(map(_is_wrong, parts))


def _strip_fence(text: str) -> str:
    """Return the JSON of a text that is one block of code, else the text."""
    first, _, rest = text.partition("\n")
    body, fence, after = rest.rpartition("```")
    return body if first.startswith("```") and fence and not after.strip() else text
