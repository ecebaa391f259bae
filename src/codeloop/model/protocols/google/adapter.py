"""Models behind Google's generateContent: Gemini by API key, and Gemini on Vertex AI."""

from collections.abc import AsyncGenerator
from urllib.parse import quote

from codeloop.model.chat import ModelEvent, ModelInfo, ModelRequest
from codeloop.model.protocols.google.request import GoogleRequestEncoder
from codeloop.model.protocols.google.response import GoogleReader
from codeloop.model.quirks import GOOGLE_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import HttpModel


class GoogleGenerateContent(HttpModel):
    """A model at an endpoint; `/models/NAME:streamGenerateContent` is added to the base URL."""

    def __init__(self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = GOOGLE_QUIRKS) -> None:
        name = quote(info.api_id or info.id, safe="@")
        key_headers = {"x-goog-api-key": endpoint.key} if endpoint.key else {}
        # Without `alt=sse` the service streams one large JSON array.
        super().__init__(
            info, endpoint, quirks, f"/models/{name}:streamGenerateContent?alt=sse", key_headers
        )
        self._encoder = GoogleRequestEncoder(info, quirks)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Send the request and return its events until Finished.
        Closing the generator drops the connection.
        """
        return self._exchange(request.headers, self._encoder.encode(request), GoogleReader())
