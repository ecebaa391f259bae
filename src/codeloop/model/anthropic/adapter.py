"""Models behind Anthropic's messages protocol."""

from collections.abc import AsyncGenerator

from codeloop.model.anthropic.request import AnthropicBody
from codeloop.model.anthropic.response import AnthropicReader
from codeloop.model.chat import ModelEvent, ModelInfo, ModelRequest
from codeloop.model.quirks import ANTHROPIC, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import HttpModel

VERSION = "2023-06-01"


class AnthropicMessages(HttpModel):
    """One model at one endpoint; `/messages` is added to its base URL, which ends in /v1 for the official one."""

    def __init__(self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = ANTHROPIC) -> None:
        key = {"x-api-key": endpoint.key} if endpoint.key else {}
        super().__init__(info, endpoint, quirks, "/messages", {"anthropic-version": VERSION, **key})
        self._body = AnthropicBody(info, quirks)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Send the request and return its events until Finished. Closing the generator drops the connection."""
        return self._exchange(request.headers, self._body.encode(request), AnthropicReader())
