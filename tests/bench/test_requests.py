"""What the bench says about recorded requests."""

import json

from bench import requests
from bench.requests import Request


def body(*messages: dict[str, str], **rest: object) -> bytes:
    return json.dumps({"model": "m", "messages": list(messages), **rest}, ensure_ascii=False).encode()


SYSTEM = {"role": "system", "content": 'Be brief. \u00e9\u4f60 "messages": [1, 2'}
HELLO = {"role": "user", "content": "hello ] }"}
ANSWER = {"role": "assistant", "content": "hi"}
AGAIN = {"role": "user", "content": "again"}


def at_once(*bodies: bytes) -> list[Request]:
    return [Request(0.0, 0.0, body) for body in bodies]


def test_a_session_that_only_grows_continues_every_request() -> None:
    grown = at_once(body(SYSTEM, HELLO), body(SYSTEM, HELLO, ANSWER, AGAIN), body(SYSTEM, HELLO, ANSWER, AGAIN, ANSWER))
    assert requests.continued(grown) == 1


def test_the_last_message_of_the_earlier_request_may_change() -> None:
    marked = {**HELLO, "cache": "here"}
    assert requests.continued(at_once(body(SYSTEM, marked), body(SYSTEM, HELLO, ANSWER))) == 1


def test_a_change_before_the_last_message_breaks_the_prefix() -> None:
    changed = {**SYSTEM, "content": "Be brief. It is 12:01."}
    requests_seen = at_once(body(SYSTEM, HELLO), body(changed, HELLO, ANSWER), body(changed, HELLO, ANSWER, AGAIN))
    assert requests.continued(requests_seen) == 0.5


def test_the_same_values_in_other_bytes_break_the_prefix() -> None:
    other = json.dumps({"messages": [SYSTEM, HELLO, ANSWER], "model": "m"}).encode()
    assert requests.continued(at_once(body(SYSTEM, HELLO), other)) == 0


def test_one_request_has_nothing_to_continue() -> None:
    assert requests.continued(at_once(body(SYSTEM, HELLO))) is None


def test_overhead_is_the_compact_json_of_system_prompt_and_tools() -> None:
    system = {"role": "system", "content": "\u00e9"}
    tools = [{"type": "function", "function": {"name": "bash"}}]
    expected = len('{"role":"system","content":"\u00e9"}'.encode()) + len(
        '[{"type":"function","function":{"name":"bash"}}]'
    )
    assert requests.overhead(Request(0.0, 0.0, body(system, HELLO, tools=tools))) == expected


def test_a_late_step_is_compared_by_medians_with_an_early_one() -> None:
    times = [0.0]
    for step in range(1, requests.LATE_STEPS.stop + 2):
        slow = 0.004 if step in requests.LATE_STEPS else 0.002
        times.append(times[-1] + (1.0 if step in {7, 995} else slow))
    ratio = requests.late_to_early([Request(at, at, b"{}") for at in times])
    assert ratio is not None
    assert abs(ratio - 2) < 1e-6


def test_a_session_that_is_too_short_has_no_late_step() -> None:
    assert requests.late_to_early([Request(float(at), float(at), b"{}") for at in range(100)]) is None
