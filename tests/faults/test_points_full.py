"""A disk that is full or broken at a named point: said clearly, nothing lost, and it goes on afterwards."""

from pathlib import Path

import pytest

from tests.cli.program import Desk, result, serving
from tests.faults.store import parts
from tests.faults.twelve import Work, acknowledged_is_stored, broken, go_on, is_whole, prepare

SAID = {"enospc": "The disk is full: nothing more can be stored in ", "eio": "can't be read or written ("}
WORDS = {"enospc": "no space", "eio": "input/output error"}
STORE = [
    *[("store.begin", nth) for nth in (1, 3, 5, 20)],
    *[("store.outbox", nth) for nth in (1, 2, 5, 12, 30)],
    ("migration", 5),
]
TURN = [
    *[("step.start", 3), ("step.finish", 6), ("step.call_ready", 2), ("step.delta", 2)],
    *[("compaction.start", 1), ("compaction.summary", 1), ("compaction.done", 1), ("call.result", 2)],
]
TOOL = [("call.start", 2), ("call.effect", 6), ("files.write.before", 2), ("files.write.after", 4)]
QUICK = {("store.outbox", 12), ("step.finish", 6), ("files.write.after", 4)}
ERRORS = ("enospc", "eio")


def rows(*points: tuple[str, int]) -> list[object]:
    """Give each point with each error; all but a few are slow."""
    return [
        pytest.param(name, nth, error, marks=() if (name, nth) in QUICK and error == "enospc" else pytest.mark.slow)
        for name, nth in points
        for error in ERRORS
    ]


@pytest.mark.parametrize(("name", "nth", "error"), rows(*STORE))
def test_a_store_that_can_not_be_written_ends_the_turn_with_the_reason(
    tmp_path: Path, name: str, nth: int, error: str
) -> None:
    desk = Desk(tmp_path)
    with serving(Work(), validate=True) as server:
        prepare(desk, server)
        done = broken(desk, f"{name}:{nth}:{error}")
        ended = result(done)
        assert (ended["exitCode"], ended["reason"]) == (1, "error"), ended
        assert SAID[error] in ended["message"]
        assert str(desk.database()) in ended["message"]
        if name != "migration":
            acknowledged_is_stored(desk, done.stdout)
        told = [part["callID"] for part in parts(desk) if open_call(part)] if name != "migration" else []
        go_on(desk, server, told=told)
        is_whole(desk)


def open_call(part: dict[str, object]) -> bool:
    """Tell whether a part is a call that was left running."""
    state = part.get("state")
    return part["type"] == "tool" and isinstance(state, dict) and state.get("status") == "running"


@pytest.mark.parametrize(("name", "nth", "error"), rows(*TURN))
def test_an_error_in_the_turn_itself_ends_it_with_the_reason(tmp_path: Path, name: str, nth: int, error: str) -> None:
    desk = Desk(tmp_path)
    with serving(Work(), validate=True) as server:
        prepare(desk, server)
        done = broken(desk, f"{name}:{nth}:{error}")
        ended = result(done)
        assert (ended["exitCode"], ended["reason"]) == (1, "error"), ended
        assert WORDS[error] in ended["message"].lower()
        acknowledged_is_stored(desk, done.stdout)
        go_on(desk, server, told=[])
        is_whole(desk)


@pytest.mark.parametrize(("name", "nth", "error"), rows(*TOOL))
def test_an_error_in_a_tool_is_told_to_the_model_and_the_turn_goes_on(
    tmp_path: Path, name: str, nth: int, error: str
) -> None:
    desk = Desk(tmp_path)
    with serving(Work(), validate=True) as server:
        prepare(desk, server)
        ended = result(broken(desk, f"{name}:{nth}:{error}"))
        assert (ended["exitCode"], ended["reason"]) == (0, "done"), ended
        errors = [part["state"]["error"] for part in parts(desk) if part.get("state", {}).get("status") == "error"]
        assert any(WORDS[error] in text.lower() for text in errors), errors
        is_whole(desk)
        go_on(desk, server, told=[])
        is_whole(desk)
