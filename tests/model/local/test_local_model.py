"""Tests of the context length of local servers, and of requests that do not fit in it."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from codeloop.model.chat import (
    AssistantModelMessage,
    ChatModel,
    ModelInfo,
    TextPiece,
    TokenLimits,
    ToolSpec,
    UserModelMessage,
)
from codeloop.model.local.context_length import LocalContext, find_context_reader
from codeloop.model.local.local_model import LocalModel
from codeloop.model.testing.replay import ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall, TokenCount
from codeloop.schema.errors import APIError, ContextOverflowError, OverflowData
from codeloop.schema.wire import JSON
from tests.model.local_server import http
from tests.support.models import send_request

TOOLS = tuple(ToolSpec(f"tool{number}", "x" * 400, {"type": "object"}) for number in range(40))


class Server:
    """Answers by path; `asked` has the paths, and the body of each POST."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Any]] = []
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            (
                line.split(":")[1]
                for line in head.split("\r\n")
                if line.startswith("Content-Length")
            ),
            "0",
        )
        body = await reader.readexactly(int(length))
        path = head.split(" ")[1]
        self.asked.append((path, json.loads(body) if body else None))
        answer = self.answers.get(path)
        answer = answer(self) if callable(answer) else answer
        status = "404 Not Found" if answer is None else "200 OK"
        writer.write(http(json.dumps(answer or {}).encode(), status))
        await writer.drain()
        writer.close()


@asynccontextmanager
async def serving(answers: dict[str, Any]) -> AsyncGenerator[Server]:
    served = Server(answers)
    server = await asyncio.start_server(served.handle, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield served
    finally:
        server.close()


async def context(provider: str, model: str, answers: dict[str, Any]) -> LocalContext:
    async with serving(answers) as server:
        read = find_context_reader(provider, server.url)
        assert read is not None
        return await read(server.url, model)


@pytest.mark.parametrize(
    "info", [[1], "x", {"a.context_length": "long"}, {"a.context_length": [2]}, {"b": 1}, None]
)
async def test_what_ollama_says_in_another_form_is_no_length(info: object) -> None:
    running = {"models": [{"name": "m:latest", "context_length": 4_096}]}
    found = await context(
        "ollama", "m", {"/api/show": {"model_info": info, "x": 1}, "/api/ps": running}
    )
    assert (found.loaded_tokens, found.max_tokens) == (4_096, 0)


SHOWN: JSON = {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960}}


async def test_ollama_says_what_it_has_loaded_a_model_with() -> None:
    running = {
        "models": [
            {"name": "other", "context_length": 9},
            {"name": "qwen3:latest", "context_length": 4_096},
        ]
    }
    found = await context("ollama", "qwen3", {"/api/ps": running, "/api/show": SHOWN})
    assert (found.loaded_tokens, found.max_tokens) == (4_096, 40_960)
    assert "OLLAMA_CONTEXT_LENGTH=32768" in found.remedy


async def test_ollama_is_made_to_load_a_model_that_is_not_loaded() -> None:
    def running(server: Server) -> JSON:
        is_loaded = ("/api/generate", {"model": "qwen3:8b"}) in server.asked
        return {"models": [{"model": "qwen3:8b", "context_length": 8_192}] if is_loaded else []}

    found = await context(
        "ollama", "qwen3:8b", {"/api/ps": running, "/api/show": SHOWN, "/api/generate": {}}
    )
    assert found.loaded_tokens == 8_192


@pytest.mark.parametrize(
    ("provider", "path", "answer", "remedy"),
    [
        (
            "lmstudio",
            "/api/v0/models/qwen3",
            {"state": "loaded", "loaded_context_length": 4_096, "max_context_length": 16_384},
            "lms load qwen3 --context-length 16384",
        ),
        ("llama.cpp", "/props", {"default_generation_settings": {"n_ctx": 4_096}}, "-c 32768"),
        (
            "vllm",
            "/v1/models",
            {"data": [{"id": "qwen3", "max_model_len": 4_096}]},
            "--max-model-len",
        ),
        (
            "sglang",
            "/v1/models",
            {"data": [{"id": "qwen3", "max_model_len": 4_096}]},
            "--context-length",
        ),
    ],
)
async def test_each_server_is_asked_in_its_own_way(
    provider: str, path: str, answer: JSON, remedy: str
) -> None:
    found = await context(provider, "qwen3", {path: answer})
    assert found.loaded_tokens == 4_096
    assert remedy in found.remedy


async def test_the_query_of_a_base_url_is_part_of_the_request() -> None:
    read = find_context_reader("vllm", "")
    assert read is not None
    async with serving(
        {"/v1/models?tenant=a": {"data": [{"id": "qwen3", "max_model_len": 4_096}]}}
    ) as server:
        assert (await read(f"{server.url}?tenant=a", "qwen3")).loaded_tokens == 4_096


@pytest.mark.parametrize("provider", ["ollama", "lmstudio", "llama.cpp", "vllm"])
async def test_a_server_that_says_nothing_leaves_it_unknown(provider: str) -> None:
    assert (await context(provider, "qwen3", {})).loaded_tokens == 0


def test_a_server_under_another_name_is_known_by_its_port() -> None:
    assert find_context_reader("mine", "http://127.0.0.1:11434/v1") is find_context_reader(
        "ollama", ""
    )
    assert find_context_reader("mine", "http://127.0.0.1:9999/v1") is None


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("llamacpp", "llama.cpp"),
        ("my-llama-cpp", "llama.cpp"),
        ("lm-studio", "lmstudio"),
        ("vLLM-coder", "vllm"),
    ],
)
def test_a_server_is_known_by_the_users_own_name_for_it(name: str, server: str) -> None:
    assert find_context_reader(name, "http://127.0.0.1:9999/v1") is find_context_reader(server, "")


def local(loaded: int, known: int = 0, *answers: ScriptedAnswer) -> tuple[LocalModel, list[str]]:
    asked: list[str] = []

    async def read(url: str, model: str) -> LocalContext:
        asked.append(f"{url} {model}")
        return LocalContext(loaded, 40_960, "Do this.")

    info = ModelInfo(
        provider_id="ollama", id="qwen3", name="Qwen", limits=TokenLimits(context=known)
    )
    inner: ChatModel = ScriptedModel(
        answers or [ScriptedAnswer(text="one"), ScriptedAnswer(text="two")], info=info
    )
    return LocalModel(inner, read, "http://h/v1"), asked


async def test_tools_that_do_not_fit_are_refused_with_the_remedy() -> None:
    model, _ = local(4_096)
    got = await send_request(model, tools=TOOLS)
    assert isinstance(got.end.error, APIError)
    assert not got.end.error.data.is_retryable
    assert "4,096" in got.message
    assert got.message.endswith("Do this.")


async def test_a_conversation_that_does_not_fit_is_to_be_compacted() -> None:
    model, _ = local(16_384)
    turns = (
        UserModelMessage((TextPiece("x" * 100_000),)),
        AssistantModelMessage((TextPiece("y"),)),
        UserModelMessage((TextPiece("z"),)),
    )
    got = await send_request(model, *turns, tools=TOOLS)
    assert isinstance(got.end.error, ContextOverflowError)
    assert model.info.limits.context == 16_384


async def test_what_fits_is_asked_and_the_server_once() -> None:
    model, asked = local(32_768, known=131_072)
    assert (await send_request(model, tools=TOOLS)).text == "one"
    assert (await send_request(model, tools=TOOLS)).text == "two"
    assert asked == ["http://h/v1 qwen3"]
    assert model.info.limits.context == 32_768


async def test_without_an_answer_the_model_is_asked_all_the_same() -> None:
    model, asked = local(0)
    assert (await send_request(model, tools=TOOLS)).text == "one"
    assert (await send_request(model, tools=TOOLS)).text == "two"
    assert len(asked) == 2
    assert model.info.limits.context == 0


FILLED = TokenCount(input=16_000, output=383)
CUT_CALL = ScriptedCall("write", '{"filePath": "a', complete=False)


async def test_an_answer_that_fills_the_context_ends_with_the_remedy() -> None:
    model, _ = local(16_384, 0, ScriptedAnswer(text="one", finish="length", tokens=FILLED))
    got = await send_request(model, tools=TOOLS)
    assert got.text == "one"
    assert isinstance(got.end.error, APIError)
    assert not got.end.error.data.is_retryable
    assert "16,000" in got.message
    assert got.message.endswith("Do this.")


@pytest.mark.parametrize(
    "answer",
    [
        ScriptedAnswer(text="one", finish="length", tokens=TokenCount(input=1_000, output=383)),
        ScriptedAnswer(calls=(CUT_CALL,), finish="length", tokens=FILLED),
    ],
    ids=["the output limit", "a cut call"],
)
async def test_another_end_at_a_limit_is_left_as_it_is(answer: ScriptedAnswer) -> None:
    model, _ = local(16_384, 0, answer)
    got = await send_request(model, tools=TOOLS)
    assert (got.end.reason, got.end.error) == ("length", None)


async def test_a_request_that_the_server_finds_too_long_ends_with_the_remedy() -> None:
    error = ContextOverflowError(data=OverflowData(message="It is too long."))
    model, _ = local(16_384, 0, ScriptedAnswer(error=error))
    assert (await send_request(model, tools=TOOLS)).message == "It is too long. Do this."
