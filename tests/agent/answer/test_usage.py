"""What a step has used: its failed tries too, the input and output that no service has counted."""

from pathlib import Path

import pytest

from codeloop.agent.answer.usage import Usage
from codeloop.model.chat import (
    Finished,
    ModelRequest,
    Prices,
    TextDelta,
    TextPiece,
    UserModelMessage,
)
from codeloop.model.testing.replay import SCRIPT_INFO
from codeloop.model.testing.script import RetryBlock, ScriptedAnswer, TextBlock, TokenCount
from codeloop.schema.api.session_reports import SESSION_STATS, StatsQuery
from codeloop.schema.errors import UnknownData, UnknownError
from codeloop.schema.message import NO_TOKENS, AssistantMessage
from codeloop.schema.wire import replace
from tests.support.scripted_project import open_scripted_project

PRICED = replace(SCRIPT_INFO, prices=Prices(input=1.0, output=2.0))
REQUEST = ModelRequest(system="s" * 400, messages=(UserModelMessage((TextPiece("ä" * 200),)),))


async def test_a_try_that_broke_off_and_was_repeated_is_paid_for(tmp_path: Path) -> None:
    tried = (TextBlock("word " * 300), RetryBlock(1, "The connection broke."), TextBlock("Done."))
    answer = ScriptedAnswer(content=tried, tokens=TokenCount(input=900, output=5))
    async with open_scripted_project(tmp_path, [answer], info=PRICED) as it:
        info = (await it.prompt()).info
        assert isinstance(info, AssistantMessage)
        assert (info.tokens.input, info.tokens.output, info.tokens.estimated) == (900, 5, None)
        assert info.retried is not None
        assert (info.retried.output, info.retried.estimated) == (375, info.retried.input + 375)
        assert info.cost == pytest.approx(
            (info.all_tokens.input + 2 * info.all_tokens.output) / 1e6
        )
        session = it.view().session
        assert (session.tokens, session.cost) == (info.all_tokens, pytest.approx(info.cost))
        total = (await it.client.call(SESSION_STATS, StatsQuery())).total
        assert (total.tokens, total.cost) == (info.all_tokens, pytest.approx(info.cost))


def test_a_request_that_nothing_came_of_has_used_nothing() -> None:
    usage = Usage(PRICED.prices, REQUEST)
    assert usage.total_tokens == NO_TOKENS
    usage.count_event(Finished("error", error=UnknownError(data=UnknownData(message="Refused."))))
    assert usage.total_tokens == NO_TOKENS


def test_what_the_service_counts_is_taken_and_the_rest_is_estimated_from_bytes() -> None:
    usage = Usage(PRICED.prices, REQUEST)
    usage.count_event(TextDelta("x" * 40))
    assert (usage.tokens.input, usage.tokens.output, usage.tokens.estimated) == (200, 10, 210)
    usage.count_event(Finished("stop", replace(NO_TOKENS, output=12)))
    assert (usage.tokens.input, usage.tokens.output, usage.tokens.estimated) == (200, 12, 200)
    usage.count_event(Finished("stop", replace(NO_TOKENS, input=150, output=12)))
    assert (usage.tokens.input, usage.tokens.output, usage.tokens.estimated) == (150, 12, None)
