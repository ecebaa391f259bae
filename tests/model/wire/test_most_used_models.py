"""Tests that the most used models are asked as docs/models.md says, by a strict server."""

import json
from typing import Any
from urllib.parse import unquote

import pytest

from codeloop.kit.lazy import load_object
from codeloop.model.catalog.services import find_protocol
from codeloop.model.catalog.variants import list_variants
from codeloop.model.chat import ModelInfo, ToolSpec
from codeloop.model.providers import ADAPTERS
from codeloop.model.quirks import find_quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.tool.toolbox import edits_by_patch
from scripts.build_models import describe_cache, find_models, takes_temperature
from tests.support.adapter_rows import ADAPTER_ROWS, API_KEY
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.models import send_request

TOOL = ToolSpec(
    "read",
    "Read a file.",
    {"type": "object", "properties": {"path": {"type": "string", "minLength": 1}}},
)
BASES = {row.protocol: row.base for row in ADAPTER_ROWS.values()}
MODELS = find_models()
ASKED: dict[str, Any] = {"tools": (TOOL,), "max_tokens": 4_000, "session_id": "ses_1"}


def keys_of(value: Any) -> set[str]:
    """Return the names of all fields in a JSON value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {
        *(value if isinstance(value, dict) else ()),
        *(name for each in inner for name in keys_of(each)),
    }


@pytest.mark.parametrize("info", MODELS, ids=[info.ref for info in MODELS])
async def test_each_model_is_asked_as_its_row_says_with_every_effort(info: ModelInfo) -> None:
    protocol, quirks = find_protocol(info), find_quirks(info)
    assert protocol is not None
    async with ModelServer([Answer(text="ok")]) as server:
        endpoint = Endpoint(server.url.removesuffix("/v1") + BASES[protocol], key=API_KEY)
        model: Any = load_object(ADAPTERS[protocol])(info, endpoint, quirks)
        for options in ({}, *list_variants(info).values()):
            got = await send_request(model, **ASKED, temperature=0.5, options=options)
            assert got.text == "ok", got.end.error
        await model.aclose()
    sent = server.requests[0]
    named, tools = keys_of(sent.json), sent.json.get("tools") or sent.json["toolConfig"]
    assert ("temperature" in named) == takes_temperature(info, quirks)
    assert not quirks.refused_keywords & keys_of(tools)
    assert info.id in unquote(sent.path) + json.dumps(sent.json)
    cache = describe_cache(info, quirks)
    assert (cache == "marks") == bool({"cache_control", "cachePoint"} & named)
    assert (cache == "`prompt_cache_key`") == ("prompt_cache_key" in named)
    assert edits_by_patch(info.id) == ("gpt-" in info.id and "gpt-oss" not in info.id)
