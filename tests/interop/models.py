"""A model service for other programs to be driven with: what it answers depends
on what was said last.

python -m tests.interop.models: prints its base URL, serves until it is stopped.
"""

import json
from typing import Any

from tests.support.answers import Answer, Call
from tests.support.http_connection import ReceivedRequest
from tests.support.model_server import ModelServer, run_model_server

WRITE_CALL = Call("write", json.dumps({"filePath": "note.txt", "content": "kept\n"}), "call_write")
SAY_CALL = Call(
    "bash", json.dumps({"command": "echo said > said.txt", "description": "Say it"}), "call_say"
)


ANSWER_DELAY = 0.5
"""Seconds before an answer, as a service needs them: `run --attach` does not wait
until its event stream is open.
"""


def choose(received: ReceivedRequest) -> Answer:
    """Answer a result with the end, a wish to write with two calls, all else with a word."""
    body: dict[str, Any] = json.loads(received.body)
    last = body["messages"][-1]
    if "tools" not in body:
        return Answer(text="A short title")
    if last["role"] == "tool":
        return Answer(text="Done.", hang=ANSWER_DELAY)
    if body["model"] == "sleeper":
        return Answer(hang=600)
    if calls := _parse_calls(last["content"]):
        return Answer(calls=calls)
    if "show the request" in json.dumps(last["content"]):
        return Answer(text=received.body.decode())
    if "spell the request" in json.dumps(
        last["content"]
    ):  # in a form in which nothing of it is found and replaced
        return Answer(text=received.body.hex())
    if "write" in json.dumps(last["content"]):
        return Answer(calls=(WRITE_CALL, SAY_CALL), hang=ANSWER_DELAY)
    return Answer(text="Hello.", hang=ANSWER_DELAY)


def _parse_calls(content: Any) -> tuple[Call, ...]:
    """Return the calls that a prompt asks for, each in a line such as `call
    read {"filePath": "x"}`.
    """
    text = (
        content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    )
    lines = [line[5:].partition(" ") for line in text.splitlines() if line.startswith("call ")]
    return tuple(
        Call(name, arguments or "{}", f"call_{number}")
        for number, (name, _, arguments) in enumerate(lines)
    )


if __name__ == "__main__":
    run_model_server(ModelServer(choose, record=False))
