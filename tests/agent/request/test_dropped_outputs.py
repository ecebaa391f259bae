"""Superseded outputs leave a warm request where the model's prices make that cheaper,
and for good.
"""

import pytest

from codeloop.agent.request.request_cache import RequestCache
from codeloop.model.chat import ModelInfo, Prices, ToolModelMessage
from codeloop.schema.part import ToolPart, ToolStateCompleted
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, Entry
from tests.store.states import user
from tests.tool.test_superseded_outputs import INFO, SESSION, part, read, step

CLAUDE = Prices(3, 15, 0.3, 3.75, is_known=True)
NO_DISCOUNT = Prices(1, 4, 1, 0, is_known=True)


def turn(steps: int, *, again: bool) -> list[Entry]:
    """Return a turn of so many reads of 6,000 characters, of one file or each of another."""
    files = ("/w/a" if again else f"/w/{number}" for number in range(steps))
    parts = [read(number, path) for number, path in enumerate(files)]
    long = [replace(each, state=replace(each.state, output="x" * 6_000)) for each in parts]
    made = [step(number * 1_000, each) for number, each in enumerate(long, 1)]
    named = [
        Entry(replace(entry.info, id=f"msg_{n:04}"), entry.parts) for n, entry in enumerate(made, 1)
    ]
    return [Entry(user(SESSION.id, "msg_0000"), ()), *named]


def find(steps: int, prices: Prices, *, again: bool = True) -> list[ToolPart]:
    view = Conversation(SESSION, tuple(turn(steps, again=again)))
    return RequestCache().select_outputs_to_drop(view, replace(INFO, prices=prices), 99)


@pytest.mark.parametrize(
    ("steps", "prices", "is_worth"),
    [
        (1, NO_DISCOUNT, False),
        (7, NO_DISCOUNT, False),
        (8, NO_DISCOUNT, True),
        (8, CLAUDE, False),
        (16, CLAUDE, True),
        (15, NO_DISCOUNT, False),
        (16, Prices(), False),
    ],
)
def test_the_prices_decide(steps: int, prices: Prices, *, is_worth: bool) -> None:
    assert len(find(steps, prices)) == (steps - 1) * is_worth
    assert not find(steps, prices, again=False), "what nothing superseded stays"


@pytest.mark.parametrize("steps", range(1, 8))
def test_a_later_turn_is_not_checked_before_its_own_eighth_step(steps: int) -> None:
    later = [
        Entry(replace(entry.info, id=f"msg_1{n:03}"), entry.parts)
        for n, entry in enumerate(turn(steps, again=True))
    ]
    view = Conversation(SESSION, (*turn(8, again=True), *later))
    assert not RequestCache().select_outputs_to_drop(view, replace(INFO, prices=NO_DISCOUNT), 99)


def test_what_left_stays_out_and_the_request_grows_on_from_there() -> None:
    info: ModelInfo = replace(INFO, prices=NO_DISCOUNT)
    cache, entries = RequestCache(), turn(8, again=True)

    def outputs(now: int) -> list[str]:
        turns = cache.get_messages(Conversation(SESSION, tuple(entries)), info, now)
        return [
            piece.output[:12]
            for each in turns
            if isinstance(each, ToolModelMessage)
            for piece in each.content
        ]

    assert outputs(8_500) == ["x" * 12] * 8
    marked = {
        each.id: each
        for each in cache.select_outputs_to_drop(Conversation(SESSION, tuple(entries)), info, 9_000)
    }
    entries[:] = [
        Entry(entry.info, tuple(marked.get(p.id, p) for p in entry.parts)) for entry in entries
    ]
    assert outputs(9_000) == [*["[superseded:"] * 7, "x" * 12]
    entries.append(
        Entry(replace(step(9_000).info, id="msg_0009"), (part(9, "bash", command="true"),))
    )
    assert outputs(10_000)[:8] == [*["[superseded:"] * 7, "x" * 12]
    assert outputs(10_000) == [
        piece.output[:12]
        for each in RequestCache().get_messages(Conversation(SESSION, tuple(entries)), info, 10_000)
        if isinstance(each, ToolModelMessage)
        for piece in each.content
    ], "another process sends the same"
    assert all(
        isinstance(each.state, ToolStateCompleted) and len(each.state.output) == 6_000
        for each in marked.values()
    )
