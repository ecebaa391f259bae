"""Models under test, and their requests to the model server on a local socket."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from codeloop.model.chat import (
    CallReady,
    ChatModel,
    Finished,
    ModelEvent,
    ModelInfo,
    ModelMessage,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TextPiece,
    TokenLimits,
    UserModelMessage,
)
from codeloop.model.protocols.anthropic.adapter import AnthropicMessages
from codeloop.model.protocols.chat_completions.adapter import ChatCompletionsModel
from codeloop.model.protocols.responses.adapter import ResponsesModel
from codeloop.model.quirks import ANTHROPIC_QUIRKS, COMPATIBLE_QUIRKS, OPENAI_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from tests.support.model_server import ModelServer

API_KEY = "sk-test-0123456789abcdef"
HELLO: tuple[ModelMessage, ...] = (UserModelMessage((TextPiece("Hello"),)),)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class CollectedAnswer:
    """The events of one answer."""

    def __init__(self, events: list[ModelEvent]) -> None:
        self.events = events
        assert isinstance(events[-1], Finished)
        assert not any(isinstance(event, Finished) for event in events[:-1])
        self.end: Finished = events[-1]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def reasoning(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    @property
    def metadata(self) -> list[dict[str, Any]]:
        return [
            event.metadata
            for event in self.events
            if isinstance(event, ReasoningDelta) and event.metadata
        ]

    @property
    def ready(self) -> list[tuple[str, str, str]]:
        return [
            (event.id, event.name, event.arguments)
            for event in self.events
            if isinstance(event, CallReady)
        ]

    @property
    def message(self) -> str:
        assert self.end.error is not None
        return str(getattr(self.end.error.data, "message", ""))


async def send_request(model: ChatModel, *turns: ModelMessage, **request: Any) -> CollectedAnswer:
    """Send a request and read it to its end."""
    wanted = ModelRequest(
        system=request.pop("system", "Be brief."), messages=turns or HELLO, **request
    )
    return CollectedAnswer([event async for event in model.stream(wanted)])


Ask = Callable[..., Any]


@pytest.fixture
def asking() -> Ask:
    return send_request


@pytest.fixture
async def openai() -> AsyncGenerator[Callable[..., ChatCompletionsModel], None]:
    """Make models that speak chat completions; their connections are dropped at the end."""
    made: list[ChatCompletionsModel] = []

    def make(
        server: ModelServer | str, *, quirks: Quirks = COMPATIBLE_QUIRKS, **deadlines: Any
    ) -> ChatCompletionsModel:
        info = deadlines.pop("info", ModelInfo(provider_id="acme", id="m1", name="M1"))
        made.append(ChatCompletionsModel(info, make_endpoint(server, **deadlines), quirks))
        return made[-1]

    yield make
    for model in made:
        await model.aclose()


@pytest.fixture
async def responses() -> AsyncGenerator[Callable[..., ResponsesModel], None]:
    """Make models that speak Responses; their connections are dropped at the end."""
    made: list[ResponsesModel] = []

    def make(
        server: ModelServer | str, *, quirks: Quirks = OPENAI_QUIRKS, **deadlines: Any
    ) -> ResponsesModel:
        info = deadlines.pop(
            "info", ModelInfo(provider_id="openai", id="gpt-5", name="GPT", reasoning=True)
        )
        made.append(ResponsesModel(info, make_endpoint(server, **deadlines), quirks))
        return made[-1]

    yield make
    for model in made:
        await model.aclose()


@pytest.fixture
async def anthropic() -> AsyncGenerator[Callable[..., AnthropicMessages], None]:
    """Make models that speak messages; their connections are dropped at the end."""
    made: list[AnthropicMessages] = []

    def make(
        server: ModelServer | str, *, quirks: Quirks = ANTHROPIC_QUIRKS, **deadlines: Any
    ) -> AnthropicMessages:
        info = deadlines.pop(
            "info",
            ModelInfo(
                provider_id="anthropic",
                id="claude",
                name="Claude",
                limits=TokenLimits(output=8_000),
            ),
        )
        made.append(AnthropicMessages(info, make_endpoint(server, **deadlines), quirks))
        return made[-1]

    yield make
    for model in made:
        await model.aclose()


def make_endpoint(server: ModelServer | str, **given: Any) -> Endpoint:
    """Return an endpoint. A test of a deadline gives its own: these are never reached,
    however busy the machine is.
    """
    url = server if isinstance(server, str) else server.url
    values: dict[str, Any] = {
        "key": API_KEY,
        "connect": 60.0,
        "first_byte": 60.0,
        "idle": 60.0,
        **given,
    }
    return Endpoint(url, **values)
