"""Tests of the limit of an answer: the field of each service,
sent where the user or the service needs it.
"""

import json
from typing import Any

import msgspec
import pytest

from codeloop.model.catalog.catalog import Catalog
from codeloop.model.catalog.overrides import apply_overrides
from codeloop.model.chat import ImagePiece, ModelRequest, UserModelMessage
from codeloop.model.protocols.chat_completions.request import ChatCompletionsRequestEncoder
from codeloop.model.quirks import find_quirks
from codeloop.schema.provider_config import ProviderConfig
from codeloop.schema.wire import JSON
from tests.support.models import HELLO


def limits_in(ref: str, request: ModelRequest | None = None, **config: Any) -> JSON:
    """Return the fields of a body that limit the answer, with this configuration of the model."""
    provider_id, _, name = ref.partition("/")
    known = Catalog().find_provider(provider_id)
    row = msgspec.convert({"models": {name: config}}, ProviderConfig)
    info = apply_overrides(
        known.models if known else {}, row, provider_id, "@ai-sdk/openai-compatible"
    )[name]
    encoder = ChatCompletionsRequestEncoder(info, find_quirks(info))
    body = json.loads(encoder.encode(request or ModelRequest(system="s", messages=HELLO)))
    return {field: value for field, value in body.items() if field.startswith("max_")}


LIMIT: JSON = {"context": 64_000, "output": 5_000}


@pytest.mark.parametrize(
    ("ref", "field"),
    [
        ("mine/m", "max_tokens"),
        ("ollama/m", "max_tokens"),
        ("vllm/m", "max_tokens"),
        ("mistral/devstral-latest", "max_tokens"),
        ("openrouter/openai/gpt-6-luna", "max_tokens"),
        ("moonshotai/kimi-k3", "max_tokens"),
        ("zai/glm-5.3", "max_tokens"),
        ("alibaba/qwen3.8-max", "max_tokens"),
        ("togetherai/zai-org/GLM-5.3", "max_tokens"),
        ("groq/openai/gpt-oss-120b", "max_completion_tokens"),
        ("cerebras/gpt-oss-120b", "max_completion_tokens"),
        ("azure/kimi-k2.7-code", "max_completion_tokens"),
        ("github-copilot/claude-opus-5.5", "max_completion_tokens"),
        ("openai/gpt-4o", "max_completion_tokens"),
    ],
)
def test_an_answer_is_as_long_as_the_configuration_says_in_each_services_own_field(
    ref: str, field: str
) -> None:
    assert limits_in(ref, limit=LIMIT) == {field: 5_000}
    assert limits_in(ref, ModelRequest(system="s", messages=HELLO, max_tokens=7), limit=LIMIT) == {
        field: 7
    }
    assert limits_in(ref, limit=LIMIT, options={"maxTokens": 9}) == {"max_tokens": 9}
    assert limits_in(ref) == {}


def test_a_service_that_cuts_answers_short_is_told_what_the_model_can_say() -> None:
    assert limits_in("deepseek/deepseek-v4-pro") == {"max_tokens": 32_000}
    assert limits_in("fireworks-ai/m") == {"max_tokens": 32_000}


def test_a_limit_leaves_room_for_the_request() -> None:
    """A service refuses a request that would be too long with its answer;
    base64 of images is not text.
    """
    large = ModelRequest(system="x" * 180_000, messages=HELLO)
    assert 1_024 <= limits_in("mine/m", large, limit=LIMIT)["max_tokens"] < 5_000
    assert (
        limits_in("mine/m", ModelRequest(system="x" * 190_000, messages=HELLO), limit=LIMIT) == {}
    )
    pictures = ModelRequest(
        system="s", messages=(UserModelMessage((ImagePiece("image/png", "A" * 400_000),)),)
    )
    assert limits_in("mine/m", pictures, limit=LIMIT) == {"max_tokens": 5_000}
    assert limits_in("mine/m", large, limit={"output": 5_000}) == {"max_tokens": 5_000}
