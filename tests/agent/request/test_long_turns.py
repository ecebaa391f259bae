"""A step of a long turn costs what a step of a short one does: no function goes
through the whole conversation.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

import pytest

from codeloop.agent.answer.usage import TokenEstimate
from codeloop.agent.engine import TurnSettings
from codeloop.agent.moves import AskModel, decide_next_move
from codeloop.agent.request.request_cache import RequestCache
from codeloop.model.chat import ModelInfo, ModelRequest, Prices, TokenLimits, ToolSpec
from codeloop.model.protocols.anthropic.request import AnthropicRequestEncoder
from codeloop.model.protocols.bedrock.request import BedrockRequestEncoder
from codeloop.model.protocols.chat_completions.request import ChatCompletionsRequestEncoder
from codeloop.model.protocols.google.request import GoogleRequestEncoder
from codeloop.model.protocols.google_interactions.request import InteractionRequestEncoder
from codeloop.model.protocols.responses.request import ResponsesRequestEncoder
from codeloop.model.quirks import ANTHROPIC_QUIRKS, Quirks
from codeloop.schema.event import PartInfo, PartUpdated, make_message_updated
from codeloop.schema.message import AssistantTime
from codeloop.schema.part import TextPart, ToolPart, ToolStateCompleted, ToolTime
from codeloop.schema.wire import replace
from codeloop.store.conversation_view import ConversationView
from tests.store.states import assistant, session, user

INFO = ModelInfo(
    provider_id="p",
    id="claude-m",
    name="M",
    limits=TokenLimits(context=10_000_000, output=8_000),
    prices=Prices(3, 15, 0.3, 3.75, is_known=True),
)
MARKED = Quirks(cache_marked_models=("claude*",), truncates_answers=True)


BASH = ToolSpec(
    name="bash", description="Runs a command.", parameters={"type": "object", "properties": {}}
)


class Encoder(Protocol):
    def encode(self, request: ModelRequest) -> bytes: ...


ENCODERS: dict[str, Callable[[], Encoder]] = {
    "chat completions": lambda: ChatCompletionsRequestEncoder(INFO, Quirks(truncates_answers=True)),
    "chat completions with cache marks": lambda: ChatCompletionsRequestEncoder(INFO, MARKED),
    "responses": lambda: ResponsesRequestEncoder(INFO, Quirks()),
    "anthropic": lambda: AnthropicRequestEncoder(INFO, ANTHROPIC_QUIRKS),
    "bedrock": lambda: BedrockRequestEncoder(INFO, Quirks()),
    "google": lambda: GoogleRequestEncoder(INFO, Quirks()),
    "google interactions": lambda: InteractionRequestEncoder(INFO, Quirks()),
}


class Turn:
    """A turn that grows by steps, and what a run keeps of it."""

    def __init__(self, make_encoder: Callable[[], Encoder]) -> None:
        self.make_encoder = make_encoder
        self.view = ConversationView(session())
        prompt = user(self.view.session.id, "msg_00000")
        self.view.apply(make_message_updated(prompt))
        self.put(
            TextPart(
                id="prt_00000", session_id=prompt.session_id, message_id=prompt.id, text="Work."
            )
        )
        self.cache, self.estimate, self.encoder = RequestCache(), TokenEstimate(), make_encoder()

    def put(self, part: TextPart | ToolPart) -> None:
        self.view.apply(
            PartUpdated(properties=PartInfo(session_id=part.session_id, part=part, time=1))
        )

    def add_step(self, number: int) -> None:
        session_id = self.view.session.id
        answer = replace(
            assistant(session_id, "msg_00000"),
            id=f"msg_{number:05}",
            time=AssistantTime(created=1 + number, completed=2 + number),
            finish="tool-calls",
        )
        state = ToolStateCompleted(
            input={"command": f"echo {number}"},
            output="x",
            title="",
            metadata={},
            time=ToolTime(start=1, end=2),
        )
        self.view.apply(make_message_updated(answer))
        self.put(
            ToolPart(
                id=f"prt_{number:05}",
                session_id=session_id,
                message_id=answer.id,
                call_id=f"c{number}",
                tool="bash",
                state=state,
            )
        )

    def ask(self, now: int) -> bytes:
        conversation = self.view.take_snapshot()
        assert isinstance(decide_next_move(conversation, TurnSettings()), AskModel)
        assert not self.cache.select_outputs_to_drop(conversation, INFO, now)
        request = ModelRequest(
            system="s",
            messages=self.cache.get_messages(conversation, INFO, now),
            tools=(BASH,),
            session_id="ses_1",
        )
        assert self.estimate.estimate(request)
        return self.encoder.encode(request)


def count_calls(function: Callable[[], object]) -> int:
    """Return how many functions ran, those of C included."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(trace)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("name", ENCODERS)
def test_a_step_runs_as_many_functions_after_200_steps_as_after_20(name: str) -> None:
    turn = Turn(ENCODERS[name])
    counts: dict[int, int] = {}
    for number in range(1, 204):
        turn.add_step(number)
        if number in {20, 202}:
            turn.ask(number + 10)
        if number in {21, 203}:
            counts[number] = count_calls(lambda: turn.ask(214))
    assert counts[203] <= counts[21] * 1.1, counts
    body = turn.ask(700)
    fresh = Turn(ENCODERS[name])
    fresh.view = turn.view
    assert fresh.ask(700) == body, "what is extended is what is made anew"


def test_the_newest_prompt_is_known_after_each_change_of_a_conversation() -> None:
    turn = Turn(ENCODERS["google"])
    for number in range(1, 4):
        turn.add_step(number)
    assert turn.view.take_snapshot().find_newest_prompt() == 0
    later = user(turn.view.session.id, "msg_00005", at=50)
    turn.view.apply(make_message_updated(later))
    assert turn.view.take_snapshot().find_newest_prompt() == 4
    earlier = user(turn.view.session.id, "msg_00001b", at=2)
    turn.view.apply(make_message_updated(earlier))
    assert turn.view.take_snapshot().find_newest_prompt() == 5, "one was put before it"
