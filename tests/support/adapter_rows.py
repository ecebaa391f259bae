"""A row for every adapter, with a model, for the tests that all adapters have to pass."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codeloop.kit.lazy import load_object
from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    CallReady,
    ChatModel,
    ModelEvent,
    ModelInfo,
    ReasoningDelta,
    ReasoningPiece,
    TextDelta,
    TextPiece,
    TokenLimits,
)
from codeloop.model.providers import ADAPTERS
from codeloop.model.quirks import find_quirks
from codeloop.model.wire.endpoint import Endpoint

API_KEY = "sk-test-0123456789abcdef"
VERTEX_PATH = "/v1/projects/p/locations/global/publishers"


@dataclass(frozen=True)
class AdapterRow:
    """One adapter. `overflow`, `busy`: the body of the error for a request that is too long,
    and for too many requests.

    `base`: the path of its base URL. `signs`: signatures of thinking must be sent back.
    `counts_thoughts`: answers have the number of thinking tokens;
    `counts_written`: that of tokens written to the cache.
    """

    info: ModelInfo
    overflow: str
    busy: str
    base: str = "/v1"
    signs: bool = True
    counts_thoughts: bool = True
    counts_written: bool = True

    def open(self, url: str, **given: Any) -> Any:
        """Return a model that uses a server, whose URL ends in /v1."""
        values: dict[str, Any] = {
            "key": API_KEY,
            "connect": 60.0,
            "first_byte": 60.0,
            "idle": 60.0,
            **given,
        }
        endpoint = Endpoint(url.removesuffix("/v1") + self.base, **values)
        adapter: Any = load_object(ADAPTERS[self.protocol])
        model: ChatModel = adapter(self.info, endpoint, find_quirks(self.info))
        return model

    @property
    def protocol(self) -> Any:
        """The protocol's name."""
        return self.info.protocol


def make_model_info(protocol: str, provider: str, npm: str, name: str) -> ModelInfo:
    """Return a model that can do everything."""
    return ModelInfo(
        provider_id=provider,
        id=name,
        name=name,
        npm=npm,
        protocol=protocol,
        limits=TokenLimits(200_000, 8_000),
        reasoning=True,
        input=frozenset({"text", "image", "pdf"}),
    )


def make_error(**fields: Any) -> str:
    """Return an error's body."""
    return json.dumps({"error": fields})


def make_anthropic_error(kind: str, message: str) -> str:
    """Return the body of an error in Anthropic's form."""
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}})


ANTHROPIC_LONG_MESSAGE = "prompt is too long: 210000 tokens > 200000 maximum"
GOOGLE_LONG = make_error(
    code=400,
    message="The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
    status="INVALID_ARGUMENT",
)
GOOGLE_BUSY = make_error(
    code=429, message="Resource has been exhausted (e.g. check quota).", status="RESOURCE_EXHAUSTED"
)
OPENAI_LONG = make_error(
    message="Your input exceeds the context window of this model. Please adjust your input and try again.",
    type="invalid_request_error",
    code="context_length_exceeded",
)
OPENAI_BUSY = make_error(
    message="Rate limit reached for gpt-5.4", type="tokens", code="rate_limit_exceeded"
)
ADAPTER_ROWS = {
    "chat": AdapterRow(
        make_model_info("openai-chat", "acme", "@ai-sdk/openai-compatible", "m1"),
        overflow=make_error(
            message="This model's maximum context length is 8 tokens",
            code="context_length_exceeded",
        ),
        busy=make_error(message="Rate limit reached", type="rate_limit_error"),
        signs=False,
        counts_written=False,
    ),
    "responses": AdapterRow(
        make_model_info("openai-responses", "openai", "@ai-sdk/openai", "gpt-5.4"),
        overflow=OPENAI_LONG,
        busy=OPENAI_BUSY,
        counts_written=False,
    ),
    "copilot-responses": AdapterRow(
        make_model_info("openai-responses", "github-copilot", "@ai-sdk/github-copilot", "gpt-5.4"),
        overflow=OPENAI_LONG,
        busy=OPENAI_BUSY,
        counts_written=False,
    ),
    "azure-chat": AdapterRow(
        make_model_info("openai-chat", "azure", "@ai-sdk/azure", "deepseek-v4"),
        overflow=OPENAI_LONG,
        busy=OPENAI_BUSY,
        signs=False,
        counts_written=False,
    ),
    "anthropic": AdapterRow(
        make_model_info(
            "anthropic-messages", "anthropic", "@ai-sdk/anthropic", "claude-sonnet-4-5"
        ),
        overflow=make_anthropic_error("invalid_request_error", ANTHROPIC_LONG_MESSAGE),
        busy=make_anthropic_error("rate_limit_error", "This request would exceed your rate limit."),
        counts_thoughts=False,
    ),
    "vertex-claude": AdapterRow(
        make_model_info(
            "anthropic-vertex",
            "google-vertex",
            "@ai-sdk/google-vertex/anthropic",
            "claude-sonnet-4-5@20250929",
        ),
        overflow=make_anthropic_error("invalid_request_error", ANTHROPIC_LONG_MESSAGE),
        busy=GOOGLE_BUSY,
        base=f"{VERTEX_PATH}/anthropic",
        counts_thoughts=False,
    ),
    "google": AdapterRow(
        make_model_info("google-generate-content", "google", "@ai-sdk/google", "gemini-3.5-flash"),
        overflow=GOOGLE_LONG,
        busy=GOOGLE_BUSY,
        base="/v1beta",
        counts_written=False,
    ),
    "vertex-gemini": AdapterRow(
        make_model_info(
            "google-generate-content", "google-vertex", "@ai-sdk/google-vertex", "gemini-3.5-flash"
        ),
        overflow=GOOGLE_LONG,
        busy=GOOGLE_BUSY,
        base=f"{VERTEX_PATH}/google",
        counts_written=False,
    ),
    "interactions": AdapterRow(
        make_model_info("google-interactions", "google", "@ai-sdk/google", "gemini-9-pro"),
        overflow=GOOGLE_LONG,
        busy=GOOGLE_BUSY,
        base="/v1beta",
        counts_written=False,
    ),
    "bedrock": AdapterRow(
        make_model_info(
            "bedrock-converse",
            "amazon-bedrock",
            "@ai-sdk/amazon-bedrock",
            "us.anthropic.claude-sonnet-4-5-v1:0",
        ),
        overflow=json.dumps({"message": "Input is too long for requested model."}),
        busy=json.dumps({"message": "Too many requests, please wait before trying again."}),
        base="",
        counts_thoughts=False,
    ),
}
"""By name, which is the id of its tests."""


def fold_turn(events: Sequence[ModelEvent], origin: str) -> AssistantModelMessage:
    """Return the message that the agent makes of an answer, and sends back."""
    pieces: list[TextPiece | ReasoningPiece | CallPiece] = []
    last: tuple[type, int] | None = None
    for event in events:
        match event:
            case TextDelta(text=text, block=block):
                if last == (TextDelta, block) and isinstance(piece := pieces[-1], TextPiece):
                    pieces[-1] = TextPiece(piece.text + text)
                else:
                    pieces.append(TextPiece(text))
                last = (TextDelta, block)
            case ReasoningDelta(text=text, block=block, metadata=metadata):
                if last == (ReasoningDelta, block) and isinstance(
                    piece := pieces[-1], ReasoningPiece
                ):
                    pieces[-1] = ReasoningPiece(piece.text + text, {**piece.metadata, **metadata})
                else:
                    pieces.append(ReasoningPiece(text, metadata))
                last = (ReasoningDelta, block)
            case CallReady(id=call, name=name, arguments=arguments):
                pieces.append(CallPiece(call, name, arguments))
                last = None
            case _:
                continue
    return AssistantModelMessage(tuple(pieces), origin)
