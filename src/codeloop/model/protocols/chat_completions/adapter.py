"""Models behind OpenAI's chat completions protocol: OpenAI itself, most other services,
local servers.
"""

from collections.abc import AsyncGenerator

from codeloop.model.chat import ModelEvent, ModelInfo, ModelRequest
from codeloop.model.protocols.chat_completions.request import ChatCompletionsRequestEncoder
from codeloop.model.protocols.chat_completions.response import ChatCompletionsReader
from codeloop.model.quirks import COMPATIBLE_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import HttpModel


class ChatCompletionsModel(HttpModel):
    """A model at an endpoint; `/chat/completions` is added to the base URL,
    which mostly ends in /v1.
    """

    def __init__(
        self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = COMPATIBLE_QUIRKS
    ) -> None:
        key_headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        super().__init__(info, endpoint, quirks, "/chat/completions", key_headers)
        self._encoder = ChatCompletionsRequestEncoder(info, quirks)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Send the request and return its events until Finished.
        Closing the generator drops the connection.
        """
        return self._exchange(
            self._make_request_headers(request),
            self._encoder.encode(request),
            ChatCompletionsReader(),
        )
