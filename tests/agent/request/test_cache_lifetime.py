"""A cache is kept for an hour where the session so far would have cost less with it,
and what that costs is counted.
"""

from pathlib import Path

import pytest

from codeloop.agent.request.cache_lifetime import saves_with_hour_cache
from codeloop.model.chat import Prices
from codeloop.model.testing.replay import SCRIPT_INFO
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.event import make_message_updated
from codeloop.schema.message import AssistantMessage, CacheTokens, Tokens
from codeloop.schema.wire import replace
from codeloop.store.conversation import Entry
from tests.store.states import assistant
from tests.support.scripted_project import open_scripted_project

CLAUDE = replace(SCRIPT_INFO, prices=Prices(4.0, 20.0, 0.4, 5.0, is_known=True))
FREE = replace(SCRIPT_INFO, prices=Prices(2.0, 6.0, 0.5, 2.0, is_known=True))
MINUTE = 60_000


def steps(*given: tuple[int, int]) -> list[Entry]:
    """Return answers by the minute they were asked for and the tokens of their context."""
    found: list[Entry] = []
    for minute, size in given:
        info = assistant("ses_1", "msg_1")
        tokens = Tokens(input=0, output=10, reasoning=0, cache=CacheTokens(read=size, write=0))
        time = replace(info.time, created=1_000_000_000 + minute * MINUTE)
        found.append(Entry(replace(info, tokens=tokens, time=time), ()))
    return found


@pytest.mark.parametrize(
    ("given", "hour"),
    [
        ((), False),
        (((0, 10_000), (1, 12_000), (5, 20_000)), False),  # no pause
        # 10,000 tokens once more cost more than 12,000 for an hour.
        (
            ((0, 10_000), (8, 12_000)),
            True,
        ),
        (((0, 10_000), (70, 12_000)), False),  # an hour would not have been long enough
        (((0, 2_000), (8, 2_500), (9, 60_000)), False),  # the pause was early, and much came since
        (((0, 2_000), (8, 2_500), (9, 60_000), (20, 61_000)), True),
    ],
)
def test_an_hour_is_chosen_by_what_it_would_have_cost(
    given: tuple[tuple[int, int], ...], hour: bool
) -> None:
    assert saves_with_hour_cache(steps(*given), CLAUDE) is hour
    assert not saves_with_hour_cache(steps(*given), FREE)


async def test_a_session_with_a_pause_asks_for_an_hour_from_its_next_prompt_on(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="Done.")] * 3, info=CLAUDE
    ) as it:
        await it.prompt("one")
        await it.prompt("two")
        entries = it.project.store.read_context(it.session_id).entries
        answers = [entry.info for entry in entries if isinstance(entry.info, AssistantMessage)]
        for info, minutes in zip(answers, (20, 1), strict=True):
            tokens = Tokens(input=0, output=5, reasoning=0, cache=CacheTokens(read=0, write=9_000))
            time = replace(info.time, created=info.time.created - minutes * MINUTE)
            it.project.store.append(make_message_updated(replace(info, tokens=tokens, time=time)))
        await it.prompt("three")
        assert [request.wants_hour_cache for request in it.model.requests] == [False, False, True]
