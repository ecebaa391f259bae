"""The model server refuses what the real services refuse,
so that a test that it accepts something means something.
"""

import json
from typing import Any

import pytest

from bench.protocols import anthropic, chat_completions

CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
USER = {"role": "user", "content": "x"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": ""}
USE = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {}}],
}
USED = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}


@pytest.mark.parametrize(
    ("messages", "is_valid"),
    [
        ([USER], True),
        ([USER, CALLED, RESULT, USER], True),
        ([], False),
        ([USER, CALLED], False),
        ([USER, CALLED, USER], False),
        ([USER, RESULT], False),
        ([USER, CALLED, RESULT, RESULT], False),
        ([USER, {"role": "assistant", "content": ""}], False),
        ([USER, {**CALLED, "tool_calls": [CALL, CALL]}, RESULT], False),
        (
            [
                USER,
                {
                    **CALLED,
                    "tool_calls": [{**CALL, "function": {"name": "read", "arguments": '{"a'}}],
                },
                RESULT,
            ],
            False,
        ),
        (
            [
                USER,
                {**CALLED, "tool_calls": [{**CALL, "function": {"name": "", "arguments": "{}"}}]},
                RESULT,
            ],
            False,
        ),
    ],
)
def test_chat_completions(messages: list[Any], is_valid: bool) -> None:
    body = json.dumps({"model": "m", "messages": messages}).encode()
    assert (chat_completions.check_request("/v1/chat/completions", body) is None) is is_valid


@pytest.mark.parametrize(
    ("messages", "is_valid"),
    [
        ([USER], True),
        ([USER, USE, USED], True),
        ([USE, USED], False),
        ([USER, USE], False),
        ([USER, USE, USER], False),
        ([USER, USER], False),
        ([USER, {"role": "assistant", "content": "y"}, USED], False),
        ([USER, {"role": "assistant", "content": []}], False),
        ([USER, {"role": "assistant", "content": [{"type": "text", "text": " "}]}], False),
        ([USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}], False),
        (
            [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}] * 5}],
            False,
        ),
    ],
)
def test_messages(messages: list[Any], is_valid: bool) -> None:
    body = json.dumps({"model": "m", "max_tokens": 1, "messages": messages}).encode()
    assert (anthropic.check_request("/v1/messages", body) is None) is is_valid
