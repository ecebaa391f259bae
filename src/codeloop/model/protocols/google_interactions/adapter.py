"""Models behind Google's Interactions API."""

from collections.abc import AsyncGenerator

from codeloop.model.chat import ModelEvent, ModelInfo, ModelRequest
from codeloop.model.protocols.google_interactions.request import InteractionRequestEncoder
from codeloop.model.protocols.google_interactions.response import InteractionReader
from codeloop.model.quirks import INTERACTIONS_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import HttpModel

API_REVISION = "2026-05-20"
"""The dated version of the API whose requests and events are implemented here."""


class GoogleInteractions(HttpModel):
    """A model at an endpoint; `/interactions` is added to the base URL."""

    def __init__(
        self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = INTERACTIONS_QUIRKS
    ) -> None:
        key_headers = {"x-goog-api-key": endpoint.key} if endpoint.key else {}
        super().__init__(
            info, endpoint, quirks, "/interactions", {"api-revision": API_REVISION, **key_headers}
        )
        self._encoder = InteractionRequestEncoder(info, quirks)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Send the request and return its events until Finished.
        Closing the generator drops the connection.
        """
        return self._exchange(request.headers, self._encoder.encode(request), InteractionReader())
