"""The bound on nested JSON is ours, so it is the same on every version of Python."""

import json

import pytest

from codeloop.schema.wire import MAX_JSON_DEPTH, check_json_depth

DEEPEST = MAX_JSON_DEPTH


def nest(levels: int, inside: str = "") -> str:
    half = levels // 2
    return '{"a":[' * half + "[" * (levels % 2) + inside + "]" * (levels % 2) + "]}" * half


@pytest.mark.parametrize(
    "text",
    [
        nest(DEEPEST),
        nest(DEEPEST - 1, json.dumps("[{" * 1_000)),
        nest(DEEPEST - 1, json.dumps('\\"[' * 1_000)),
        json.dumps([{"a": [number]} for number in range(10_000)]),
        "",
    ],
    ids=["levels", "in a string", "after escapes", "beside each other", "empty"],
)
def test_what_is_shallow_enough_passes(text: str) -> None:
    check_json_depth(text)
    check_json_depth(text.encode())
    check_json_depth(bytearray(text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        nest(DEEPEST + 1),
        json.dumps("]" * 1_000) + nest(DEEPEST + 1),
        "[" * 100_000,
        '{"\udc80":' * 1_000,
    ],
    ids=["one too many", "after a string", "never closed", "a lone surrogate"],
)
def test_what_is_nested_more_deeply_is_refused(text: str) -> None:
    with pytest.raises(RecursionError, match="256 levels"):
        check_json_depth(text)
