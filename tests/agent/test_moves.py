"""What comes next, decided from what is stored."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.agent.engine import TurnSettings
from codeloop.agent.moves import (
    REJECTED_KEY,
    AskModel,
    Recover,
    Stop,
    decide_next_move,
    list_turn_steps,
)
from codeloop.agent.recovery import list_open_calls
from codeloop.schema.errors import APIError, APIErrorData, ErrorText, MessageAbortedError
from codeloop.schema.message import AssistantMessage, Session
from codeloop.schema.part import ToolPart, ToolStateError, ToolStatePending, ToolTime
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, Entry
from tests.store.states import assistant, session, user

SESSION: Session = session()
UNBOUND = TurnSettings()
API = APIError(data=APIErrorData(message="down", is_retryable=False))


def asked(at: int = 1) -> Entry:
    return Entry(user(SESSION.id, at=at))


def answered(
    finish: str | None, at: int = 2, *, cost: float = 0.0, error: Any = None, done: bool = True
) -> Entry:
    info = assistant(SESSION.id, "msg_parent", at=at, done=at if done else None)
    return Entry(replace(info, finish=finish, cost=cost, error=error))


def view(*entries: Entry) -> Conversation:
    spent = sum(entry.info.cost for entry in entries if isinstance(entry.info, AssistantMessage))
    return Conversation(replace(SESSION, cost=spent), entries)


def with_call(entry: Entry, metadata: dict[str, Any] | None) -> Entry:
    state = ToolStateError(input={}, error="no", time=ToolTime(start=1, end=1), metadata=metadata)
    part = ToolPart(
        id="prt_1", session_id="s", message_id=entry.info.id, call_id="c", tool="bash", state=state
    )
    return Entry(entry.info, (part,))


def stopped(entries: tuple[Entry, ...], settings: TurnSettings = UNBOUND) -> Stop:
    move = decide_next_move(view(*entries), settings)
    assert isinstance(move, Stop)
    return move


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ((), "idle"),
        ((asked(), answered("stop")), "done"),
        ((asked(), answered("tool-calls"), answered("stop")), "done"),
        ((asked(), answered("length")), "length"),
        ((asked(), answered("content-filter")), "filtered"),
        ((asked(), answered(None, error=API)), "error"),
        (
            (asked(), answered(None, error=MessageAbortedError(data=ErrorText(message="Aborted")))),
            "aborted",
        ),
        ((asked(), with_call(answered("tool-calls"), {REJECTED_KEY: True})), "rejected"),
    ],
)
def test_a_turn_stops(entries: tuple[Entry, ...], reason: str) -> None:
    assert stopped(entries).reason == reason


@pytest.mark.parametrize(
    ("entries", "steps"),
    [
        ((asked(),), 0),
        ((asked(), answered("tool-calls")), 1),
        ((asked(), answered("cut")), 1),
        ((asked(), answered("tool-calls"), answered("tool-calls")), 2),
        ((asked(), answered("stop"), asked()), 0),
        ((asked(), answered("tool-calls"), asked()), 1),
        ((asked(), answered(None, error=API), asked()), 0),
        ((asked(), with_call(answered("tool-calls"), {"denied": True})), 1),
        ((asked(), with_call(answered("tool-calls"), {REJECTED_KEY: True}), asked()), 1),
    ],
)
def test_the_model_is_asked_and_steps_are_counted_within_the_turn(
    entries: tuple[Entry, ...], steps: int
) -> None:
    move = decide_next_move(view(*entries), TurnSettings())
    assert isinstance(move, AskModel)
    users = [entry.info for entry in entries if not isinstance(entry.info, AssistantMessage)]
    assert move.user == users[-1]
    assert len(list_turn_steps(view(*entries))) == steps


def test_the_error_of_the_service_is_said() -> None:
    assert stopped((asked(), answered(None, error=API))).message == "down"


def test_what_is_open_is_settled_first_wherever_it_stands_in_the_turn() -> None:
    left = answered(None, done=False)
    for entries in (
        (asked(), left),
        (asked(), left, asked()),
        (asked(), answered("tool-calls"), left, asked()),
    ):
        assert decide_next_move(view(*entries), TurnSettings(max_steps=0)) == Recover((left,))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (TurnSettings(max_steps=2), "The limit of 2 steps is reached."),
        (
            TurnSettings(max_cost=0.5, cost_before=9.0),
            "The limit of $0.50 is reached: $0.60 spent.",
        ),
        (
            TurnSettings(max_cost=0, cost_before=9.0),
            "Nothing is left of the limit of cost, so no request was made.",
        ),
        (
            TurnSettings(max_cost=1e-05, cost_before=9.0),
            "The limit of $0.00001 is reached: $0.60 spent.",
        ),
        (TurnSettings(max_steps=1), "The limit of 1 step is reached."),
        (TurnSettings(max_tokens=0), "The limit of 0 tokens is reached: 0 used."),
    ],
)
def test_limits_count_the_steps_of_the_turn_only(settings: TurnSettings, words: str) -> None:
    before = (asked(), answered("stop", cost=9.0))
    spent = (asked(), answered("tool-calls", cost=0.3), answered("tool-calls", cost=0.3))
    assert stopped((*before, *spent), settings) == Stop("limit", words)
    roomy = TurnSettings(max_steps=3, max_cost=0.7, cost_before=9.0, max_tokens=1)
    assert isinstance(decide_next_move(view(*before, *spent), roomy), AskModel)


def test_a_finished_turn_is_done_whatever_its_limits() -> None:
    assert (
        stopped((asked(), answered("stop", cost=9.0)), TurnSettings(max_steps=1, max_cost=1)).reason
        == "done"
    )


def test_calls_without_a_result_are_open() -> None:
    part = ToolPart(
        id="p",
        session_id="s",
        message_id="m",
        call_id="c",
        tool="t",
        state=ToolStatePending(input={}, raw=""),
    )
    closed = with_call(answered("stop"), None).parts[0]
    assert list_open_calls((part, closed)) == [part]


ENTRIES = st.lists(
    st.one_of(
        st.builds(asked),
        st.builds(
            answered, st.sampled_from(["stop", "tool-calls", "cut", "length", None]), done=st.just(value=True),
            error=st.sampled_from([None, None, API]),
        ),
        st.builds(answered, st.none(), done=st.just(value=False)),
    ),
    max_size=12,
)  # fmt: skip


@pytest.mark.slow
@given(entries=ENTRIES, more=ENTRIES, steps=st.one_of(st.none(), st.integers(0, 5)))
def test_what_came_before_a_finished_turn_does_not_count(
    entries: list[Entry], more: list[Entry], steps: int | None
) -> None:
    before = (*entries, answered("stop"))
    turn = (asked(), *more)
    assert decide_next_move(
        view(*before, *turn), TurnSettings(max_steps=steps)
    ) == decide_next_move(view(*turn), TurnSettings(max_steps=steps))


@pytest.mark.slow
@given(entries=ENTRIES)
def test_settling_leads_to_a_move_that_is_not_settling(entries: list[Entry]) -> None:
    move = decide_next_move(view(*entries), TurnSettings())
    if not isinstance(move, Recover):
        return
    closed = [
        Entry(
            replace(entry.info, error=API, time=replace(entry.info.time, completed=9)), entry.parts
        )
        if entry in move.entries and isinstance(entry.info, AssistantMessage)
        else entry
        for entry in entries
    ]
    assert not isinstance(decide_next_move(view(*closed), TurnSettings()), Recover)
