"""Thinking and calls of one answer go back to the service as they came: in order, unchanged,
also after an import.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, serving
from tests.support.answers import Answer

Block = dict[str, Any]
BLOCKS: list[Block] = [
    {
        "type": "thinking",
        "thinking": "  First\n\tthe file. größe 漢字 \u2028 ",
        "signature": "c2ln/1+==",
    },
    {"type": "text", "text": "I look."},
    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"filePath": "a.txt"}},
    {"type": "redacted_thinking", "data": "cmVk/Q=="},
    {"type": "thinking", "thinking": "", "signature": "c2ln/2=="},
    {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"filePath": "b.txt"}},
    {"type": "thinking", "thinking": "Both.\n", "signature": "c2ln/3=="},
    {"type": "text", "text": "And now?"},
    {"type": "tool_use", "id": "toolu_3", "name": "read", "input": {"filePath": "a.txt"}},
]
"""Of one answer, as a model with interleaved thinking makes them."""
STARTS: dict[str, Block] = {
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
    "text": {"type": "text", "text": ""},
}


def list_events(blocks: list[Block]) -> tuple[str, ...]:
    """Return the data of the events of an answer."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    events: list[Block] = [{"type": "message_start", "message": {"usage": usage}}]
    for index, block in enumerate(blocks):
        start = STARTS.get(block["type"], {**block, "input": {}} if "input" in block else block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        deltas: list[Block] = []
        if thought := block.get("thinking"):
            deltas += [
                {"type": "thinking_delta", "thinking": part} for part in (thought[:4], thought[4:])
            ]
        if "signature" in block:
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        if "text" in block:
            deltas.append({"type": "text_delta", "text": block["text"]})
        if "input" in block:
            deltas.append({"type": "input_json_delta", "partial_json": json.dumps(block["input"])})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage}]
    return tuple(map(json.dumps, [*events, {"type": "message_stop"}]))


def read_answer(body: bytes) -> list[Block]:
    """Return the blocks of the first answer in a request, without cache marks."""
    turn = next(each for each in json.loads(body)["messages"] if each["role"] == "assistant")
    return [
        {name: value for name, value in block.items() if name != "cache_control"}
        for block in turn["content"]
    ]


def make_desk(folder: Path, url: str) -> Desk:
    desk = Desk(folder)
    for name in ("a.txt", "b.txt"):
        (desk.work / name).write_text(f"{name}\n")
    models = {
        "m": {"tool_call": True, "reasoning": True, "limit": {"context": 100_000, "output": 8_000}}
    }
    provider = {
        "npm": "@ai-sdk/anthropic",
        "options": {"baseURL": url, "apiKey": "k"},
        "models": models,
    }
    desk.configure(model="one/m", provider={"one": provider}, permission="allow")
    return desk


@pytest.mark.slow
def test_thinking_and_calls_go_back_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    answers = [
        Answer(events=list_events(BLOCKS)),
        Answer(text="Done."),
        Answer(text="Again."),
        Answer(text="There."),
    ]
    (tmp_path / "other").mkdir()
    with serving(answers) as server:
        desk, other = make_desk(tmp_path, server.url), make_desk(tmp_path / "other", server.url)
        done = desk.run("run", "--format", "json", "read both")
        assert done.returncode == 0, done.stderr
        assert desk.run("run", "--continue", "again").returncode == 0
        session = json.loads(done.stdout.splitlines()[0])["sessionID"]
        exported = desk.run("export", session)
        (tmp_path / "session.json").write_text(exported.stdout)
        imported = other.run("import", str(tmp_path / "session.json"))
        assert imported.returncode == 0, imported.stderr
        went_on = other.run("run", "--session", session, "and here")
        assert went_on.returncode == 0, went_on.stderr
        sent = [request.body for request in server.requests if b'"tool_use"' in request.body]
    assert [read_answer(body) for body in sent] == [BLOCKS] * 3
