"""What is sent anew although a cache holds it is counted with its cause;
codeloop itself is never that cause.
"""

import json
from pathlib import Path

import pytest

from bench.prefix_cache import (
    PHASES,
    Phase,
    SentRequest,
    install_with_clock,
    list_resent,
    record_session,
    split_request,
)
from bench.recorded_requests import RecordedRequest

FIRST, SWITCHED = Phase("a"), Phase("b", ("--agent", "plan"), "switched")


def sent(at: float, *segments: str, phase: Phase = FIRST) -> SentRequest:
    return SentRequest(at, tuple(segment.encode() for segment in segments), phase)


def message(text: str) -> str:
    return json.dumps({"role": "user", "content": text})


@pytest.mark.parametrize(
    ("requests", "found"),
    [
        ([sent(0, "t", "s", "m"), sent(1, "t", "s", "m", "more")], []),
        ([sent(0, "t", "s", "m"), sent(1, "u", "s", "m")], [("the tools differ", 3, True, True)]),
        (
            [sent(0, "t", "s", "m"), sent(1, "t", "x", "m")],
            [("the system prompt differs", 2, True, True)],
        ),
        (
            [sent(0, "t", "s", "m"), sent(301, "t", "x", "m")],
            [("the system prompt differs", 2, False, False)],
        ),
        (
            [sent(0, "t", "s", "m"), sent(1, "u", "x", "m", phase=SWITCHED)],
            [("another agent has other tools and another system prompt", 3, True, False)],
        ),
        (
            [sent(0, "t", "s", message("one")), sent(1, "t", "s", message("two"))],
            [("message 2 (user) differs", len('one"}'), True, True)],
        ),
        (
            [
                sent(0, "t", "s", "m"),
                sent(1, "u", "s", "m", phase=SWITCHED),
                sent(2, "t", "s", "m", phase=SWITCHED),
            ],
            1,
        ),
    ],
)
def test_what_repeats_no_cached_request_is_counted_with_its_cause(
    requests: list[SentRequest], found: list[tuple[str, int, bool, bool]] | int
) -> None:
    listed = [
        (each.cause, each.size, each.is_cached, each.is_ours) for each in list_resent(requests)
    ]
    assert (listed if isinstance(found, list) else len(listed)) == found


def test_a_request_is_split_in_the_order_of_caches() -> None:
    body = {"messages": [{"role": "system", "content": "s"}], "tools": [1], "model": "m"}
    parts = split_request(RecordedRequest(0, 0, json.dumps(body).encode()))
    assert parts == (b"[1]", b'{"role": "system", "content": "s"}')


@pytest.mark.slow
def test_a_session_that_goes_on_in_every_way_sends_nothing_anew_by_itself(tmp_path: Path) -> None:
    requests = record_session(install_with_clock(tmp_path))
    assert len(requests) == 31
    assert [phase for phase in PHASES if not any(each.phase is phase for each in requests)] == []
    resent = list_resent(requests)
    assert [each for each in resent if each.is_ours] == []
    assert {each.situation for each in resent if each.is_cached} == {
        "switched to another agent",
        "switched back",
    }
    # Outputs that later ones repeat are left out once the cache is cold,
    # and then nothing is lost by it.
    cold = {each.situation: each.cause for each in resent if not each.is_cached}
    assert cold == dict.fromkeys(
        ("after a pause of six minutes", "a command of nine minutes"),
        "outputs that were superseded are left out",
    )
