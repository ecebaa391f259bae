"""Models behind Anthropic's messages protocol."""

from collections.abc import AsyncGenerator

from codeloop.model.anthropic.request import AnthropicBody
from codeloop.model.anthropic.response import AnthropicReader
from codeloop.model.chat import ModelEvent, ModelInfo, ModelRequest
from codeloop.model.quirks import ANTHROPIC, Quirks
from codeloop.model.wire.encoding import lowered
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.errors import Failures
from codeloop.model.wire.exchange import Exchange
from codeloop.net.client import OriginClient

PATH = "/messages"
VERSION = "2023-06-01"


class AnthropicMessages:
    """One model at one endpoint; `/messages` is added to its base URL, which ends in /v1 for the official one."""

    def __init__(self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = ANTHROPIC) -> None:
        self._info = info
        self._http = OriginClient(endpoint.base_url, endpoint.connect, endpoint.first_byte)
        self._body = AnthropicBody(info, quirks)
        self._exchange = Exchange(self._http, endpoint, Failures(info, endpoint, PATH))
        self._headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "user-agent": "codeloop",
            "anthropic-version": VERSION,
            **({"x-api-key": endpoint.key} if endpoint.key else {}),
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
        return self._exchange.run(self._headers, self._body.encode(request), AnthropicReader())

    async def aclose(self) -> None:
        """Drop the connections that are kept for further requests."""
        await self._http.aclose()
