"""What the bench says about recorded requests."""

import json

from bench import recorded_requests
from bench.recorded_requests import RecordedRequest


def body(*messages: dict[str, str], **rest: object) -> bytes:
    return json.dumps(
        {"model": "m", "messages": list(messages), **rest}, ensure_ascii=False
    ).encode()


SYSTEM = {"role": "system", "content": 'Be brief. \u00e9\u4f60 "messages": [1, 2'}
HELLO = {"role": "user", "content": "hello ] }"}
ANSWER = {"role": "assistant", "content": "hi"}
AGAIN = {"role": "user", "content": "again"}


def at_once(*bodies: bytes) -> list[RecordedRequest]:
    return [RecordedRequest(0.0, 0.0, body) for body in bodies]


def test_a_session_that_only_grows_continues_every_request() -> None:
    grown = at_once(
        body(SYSTEM, HELLO),
        body(SYSTEM, HELLO, ANSWER, AGAIN),
        body(SYSTEM, HELLO, ANSWER, AGAIN, ANSWER),
    )
    assert recorded_requests.compute_prefix_share(grown) == 1


def test_the_last_message_of_the_earlier_request_may_change() -> None:
    marked = {**HELLO, "cache": "here"}
    assert (
        recorded_requests.compute_prefix_share(
            at_once(body(SYSTEM, marked), body(SYSTEM, HELLO, ANSWER))
        )
        == 1
    )


def test_a_change_before_the_last_message_breaks_the_prefix() -> None:
    changed = {**SYSTEM, "content": "Be brief. It is 12:01."}
    requests_seen = at_once(
        body(SYSTEM, HELLO), body(changed, HELLO, ANSWER), body(changed, HELLO, ANSWER, AGAIN)
    )
    assert recorded_requests.compute_prefix_share(requests_seen) == 0.5


def test_the_same_values_in_other_bytes_break_the_prefix() -> None:
    other = json.dumps({"messages": [SYSTEM, HELLO, ANSWER], "model": "m"}).encode()
    assert recorded_requests.compute_prefix_share(at_once(body(SYSTEM, HELLO), other)) == 0


def test_one_request_has_nothing_to_continue() -> None:
    assert recorded_requests.compute_prefix_share(at_once(body(SYSTEM, HELLO))) is None


def test_overhead_is_the_compact_json_of_system_prompt_and_tools() -> None:
    system = {"role": "system", "content": "\u00e9"}
    tools = [{"type": "function", "function": {"name": "bash"}}]
    expected = len('{"role":"system","content":"\u00e9"}'.encode()) + len(
        '[{"type":"function","function":{"name":"bash"}}]'
    )
    assert (
        recorded_requests.measure_overhead(
            RecordedRequest(0.0, 0.0, body(system, HELLO, tools=tools))
        )
        == expected
    )


def test_a_late_step_is_compared_by_medians_with_an_early_one() -> None:
    times = [0.0]
    for step in range(1, recorded_requests.LATE_STEPS.stop + 2):
        slow = 0.004 if step in recorded_requests.LATE_STEPS else 0.002
        times.append(times[-1] + (1.0 if step in {7, 995} else slow))
    ratio = recorded_requests.compare_late_step([RecordedRequest(at, at, b"{}") for at in times])
    assert ratio is not None
    assert abs(ratio - 2) < 1e-6


def test_a_session_that_is_too_short_has_no_late_step() -> None:
    assert (
        recorded_requests.compare_late_step(
            [RecordedRequest(float(at), float(at), b"{}") for at in range(100)]
        )
        is None
    )
