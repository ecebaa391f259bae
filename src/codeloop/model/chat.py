"""The interface of a language model (`ChatModel`): its metadata, requests and events.
All that call a model use it.

Errors are values: a stream never raises for what the service or the network did;
it ends with `Finished`.
"""

from collections.abc import AsyncGenerator
from typing import Literal, Protocol

import msgspec

from codeloop.schema.errors import MessageError
from codeloop.schema.message import NO_TOKENS, Tokens
from codeloop.schema.wire import JSON

LONG_REQUEST_TOKENS = 200_000
"""The prices of `context_over_200k`, the older form of price tiers, apply to longer requests."""
HOUR_WRITE_PRICE_FACTOR = 2.0
"""The price of tokens written to a cache that is kept for an hour,
as a multiple of the input price (Anthropic).
"""
SERVICE_TIER_FACTORS = {"flex": 0.5, "batch": 0.5, "priority": 2.0}
"""Service tier -> the factor by which it multiplies the standard prices.
A `PriceTier` is something else.
"""


class Prices(msgspec.Struct, frozen=True):
    """Dollars per million tokens. `is_known`: False where neither catalog nor
    configuration names a price.

    `reasoning`: the price of reasoning tokens; None: that of `output`. `tiers`: the prices of
    longer requests, the shortest first.
    """

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    reasoning: float | None = None
    is_known: bool = False
    tiers: "tuple[PriceTier, ...]" = ()

    def compute_cost(self, tokens: Tokens) -> float:
        """Return the price of a request in dollars. Reasoning is part of `output`,
        one-hour writes of `cache.write`.
        """
        prices = self.select_tier(tokens)
        reasoning = tokens.reasoning if prices.reasoning is not None else 0
        dollars = (
            tokens.input * prices.input
            + (tokens.output - reasoning) * prices.output
            + reasoning * (prices.reasoning or 0.0)
            + tokens.cache.read * prices.cache_read
            + tokens.cache.write * prices.cache_write
            + tokens.cache.hour_write * (prices.hour_write - prices.cache_write)
        )
        return dollars * SERVICE_TIER_FACTORS.get(tokens.tier, 1.0) / 1_000_000

    def select_tier(self, tokens: Tokens) -> "Prices":
        """Return the prices that apply to a request of this length;
        services bill a whole request by one tier.
        """
        for tier in reversed(self.tiers):
            if tokens.context > tier.above_tokens:
                return tier.prices
        return self

    @property
    def hour_write(self) -> float:
        """The price of tokens that are written to a cache which is kept for an hour."""
        # Where writing costs no more than input, the service has no caches of different lifetimes.
        return (
            self.input * HOUR_WRITE_PRICE_FACTOR
            if self.cache_write > self.input
            else self.cache_write
        )


class PriceTier(msgspec.Struct, frozen=True):
    """The prices of a whole request whose context has more than `above_tokens` tokens."""

    above_tokens: int
    prices: Prices


class TokenLimits(msgspec.Struct, frozen=True):
    """A model's limits in tokens: of its context, of an answer (`output`), of a request (`input`).
    0: unknown.
    """

    context: int = 0
    output: int = 0
    input: int = 0


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A model's metadata. `npm` names its wire protocol in the catalog's terms.

    `tool_call`, `reasoning`, `temperature`, `attachment`: whether it calls tools, thinks,
    and accepts the others.
    """

    provider_id: str
    id: str
    name: str
    npm: str = "@ai-sdk/openai-compatible"
    protocol: str = ""
    """The configured protocol; empty: that of `npm`."""
    api_id: str = ""
    """The service's name of the model; empty: the same as `id`."""
    limits: TokenLimits = TokenLimits()
    answer_limit: int = 0
    """The most tokens of an answer, by the configuration; 0: not configured."""
    prices: Prices = Prices()
    tool_call: bool = True
    reasoning: bool = False
    temperature: bool = True
    attachment: bool = False
    input: frozenset[str] = frozenset({"text"})
    """Modalities the model reads: text, image, pdf, audio, video."""
    reasoning_field: str = ""
    """The field of an assistant message in which thinking is sent back (`interleaved.field`
    of the catalog).
    """
    status: str = "active"
    """`active`, or another of the catalog's, such as `beta` or `deprecated`."""
    release_date: str = ""
    family: str = ""
    options: JSON = {}
    headers: dict[str, str] = {}
    variants: dict[str, JSON] = {}
    """Variants of the configuration: options by name; `disabled` removes one."""
    small: bool | None = None
    """Whether it gets few tools and a short prompt, by the configuration;
    None: the size in its name decides.
    """

    @property
    def ref(self) -> str:
        """`provider/model`."""
        return f"{self.provider_id}/{self.id}"


class TextPiece(msgspec.Struct, frozen=True, tag="text"):
    """Text of the user or the model. `metadata`: what the adapter stored with an answer's text,
    given back to it.
    """

    text: str
    metadata: JSON = {}


class ReasoningPiece(msgspec.Struct, frozen=True, tag="reasoning"):
    """Earlier thinking of the model, to be sent back; `metadata` as in TextPiece."""

    text: str
    metadata: JSON = {}


class ImagePiece(msgspec.Struct, frozen=True, tag="image"):
    """An attachment, an image or a PDF: base64 data of the given mime type.

    Recordings have the names of these classes in their digests (see `testing/replay.py`).
    """

    mime: str
    data: str
    filename: str = ""


class CallPiece(msgspec.Struct, frozen=True, tag="call"):
    """A tool call that the model made; `arguments` is always a JSON object's text."""

    id: str
    name: str
    arguments: str


class ResultPiece(msgspec.Struct, frozen=True, tag="result"):
    """The result of a call."""

    call_id: str
    name: str
    output: str
    error: bool = False


class UserModelMessage(msgspec.Struct, frozen=True, tag="user"):
    """A message of the user; never empty."""

    content: tuple[TextPiece | ImagePiece, ...]


class AssistantModelMessage(msgspec.Struct, frozen=True, tag="assistant"):
    """An answer of the model; never empty. `origin`: the `provider/model` that made it."""

    content: tuple[TextPiece | ReasoningPiece | CallPiece, ...]
    origin: str = ""


class ToolModelMessage(msgspec.Struct, frozen=True, tag="tool"):
    """The results of all calls of the answer before it, in the order of the calls."""

    content: tuple[ResultPiece, ...]


ModelMessage = UserModelMessage | AssistantModelMessage | ToolModelMessage


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as the model sees it; `parameters` is an inlined JSON Schema of an object.

    `origin`: who brings it, for messages, such as `the MCP server docs`; "": codeloop.
    """

    name: str
    description: str
    parameters: JSON
    origin: str = ""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. Messages are immutable, so an adapter may cache the encoding of
    a message by its identity.
    """

    system: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    session_id: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    options: JSON = {}
    """Further fields of the request's body, in the names of the configuration;
    adapters translate some of them.
    """
    body: JSON = {}
    """Fields of the body in the protocol's own names; they override all others."""
    headers: dict[str, str] = {}
    """Further headers of this request."""
    wants_hour_cache: bool = False
    """Whether to cache the beginning of the request for an hour, at a higher price,
    where the service supports it.
    """
    max_attempts: int | None = None
    """The most attempts, fewer than usual where another model can take over;
    None: as often as usual.
    """


class TextDelta(msgspec.Struct, frozen=True):
    """A piece of text. A new `block` number starts a block;
    `metadata`, if not empty, is merged into the block's.
    """

    text: str
    block: int = 0
    metadata: JSON = {}


class ReasoningDelta(msgspec.Struct, frozen=True):
    """A piece of thinking; `metadata` (signature, redacted data), if not empty,
    is merged into the block's.
    """

    text: str
    block: int = 0
    metadata: JSON = {}


class CallStarted(msgspec.Struct, frozen=True):
    """A tool call begins; its arguments stream in."""

    id: str
    name: str


class CallDelta(msgspec.Struct, frozen=True):
    """A piece of a call's arguments (JSON text)."""

    id: str
    text: str


class CallReady(msgspec.Struct, frozen=True):
    """The call is complete as sent. `arguments` may not be JSON: the runner of the call checks."""

    id: str
    name: str
    arguments: str


class RetryScheduled(msgspec.Struct, frozen=True):
    """The request is sent again at `at` (ms since the epoch);
    events of the last attempt no longer count.

    `attempt`: the number of the failed attempt, or 1 if the first one waits for a rate limit. 0:
    none failed, but the request or the model was changed, as `message` explains.
    `tokens`: the service's counts of that attempt.
    """

    attempt: int
    message: str
    at: int
    tokens: Tokens = NO_TOKENS


class UsageUpdate(msgspec.Struct, frozen=True):
    """The service's token counts so far, if reported before the end."""

    tokens: Tokens


FinishReason = Literal["stop", "tool-calls", "length", "content-filter", "cut", "error"]


class Finished(msgspec.Struct, frozen=True):
    """The last event of every stream.

    `cut`: the connection broke after complete calls had arrived,
    so that trying again would repeat them.
    `error`: the request failed; the field `error` says why.
    """

    reason: FinishReason
    tokens: Tokens = NO_TOKENS
    error: MessageError | None = None


ModelEvent = (
    TextDelta
    | ReasoningDelta
    | CallStarted
    | CallDelta
    | CallReady
    | UsageUpdate
    | RetryScheduled
    | Finished
)


class ChatModel(Protocol):
    """A language model.

    Implementations: an adapter for each wire protocol, wrappers (retries, queues, local servers),
    and those of tests.
    """

    @property
    def info(self) -> ModelInfo:
        """The model's metadata."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Send the request and yield events until `Finished`.
        Closing the generator closes the connection.
        """
        ...
