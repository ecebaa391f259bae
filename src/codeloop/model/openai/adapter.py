"""Models behind OpenAI's chat completions protocol: OpenAI itself, most other services, local servers."""

from collections.abc import AsyncGenerator

from codeloop.model.chat import ModelEvent, ModelInfo, ModelRequest
from codeloop.model.openai.request import OpenAIBody
from codeloop.model.openai.response import OpenAIReader
from codeloop.model.quirks import COMPATIBLE, Quirks
from codeloop.model.wire.encoding import lowered
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.errors import Failures
from codeloop.model.wire.exchange import Exchange
from codeloop.net.client import OriginClient

PATH = "/chat/completions"


class OpenAIChat:
    """One model at one endpoint; `/chat/completions` is added to its base URL, which mostly ends in /v1."""

    def __init__(self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = COMPATIBLE) -> None:
        self._info = info
        self._http = OriginClient(endpoint.base_url, endpoint.connect, endpoint.first_byte)
        self._body = OpenAIBody(info, quirks)
        self._exchange = Exchange(self._http, endpoint, Failures(info, endpoint, PATH))
        self._headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "user-agent": "codeloop",
            **({"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}),
            **lowered(quirks.headers),
            **lowered(info.headers),
            **lowered(endpoint.headers),
        }

    @property
    def info(self) -> ModelInfo:
        """What is known of the model."""
        return self._info

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Send the request and give events until Finished. Closing the generator drops the connection."""
        return self._exchange.run(self._headers, self._body.encode(request), OpenAIReader())

    async def aclose(self) -> None:
        """Drop the connections that are kept for further requests."""
        await self._http.aclose()
