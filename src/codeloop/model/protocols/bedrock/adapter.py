"""Models behind Amazon Bedrock's Converse: Claude, Nova, Llama, Mistral and others in one form."""

from collections.abc import AsyncGenerator
from urllib.parse import quote

from codeloop.model.chat import ModelEvent, ModelInfo, ModelRequest
from codeloop.model.protocols.bedrock.event_stream import EventStreamParser
from codeloop.model.protocols.bedrock.request import BedrockRequestEncoder
from codeloop.model.protocols.bedrock.response import BedrockReader
from codeloop.model.quirks import BEDROCK_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import EventParser, HttpModel
from codeloop.schema.limits import MODEL_ANSWER


class BedrockConverse(HttpModel):
    """A model at an endpoint; `/model/NAME/converse-stream` is added to the base URL."""

    def __init__(self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = BEDROCK_QUIRKS) -> None:
        key_headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        headers = {"accept": "application/vnd.amazon.eventstream", **key_headers}
        # The name may be an ARN, with slashes and colons.
        name = quote(info.api_id or info.id, safe="")
        super().__init__(info, endpoint, quirks, f"/model/{name}/converse-stream", headers)
        self._encoder = BedrockRequestEncoder(info, quirks)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Send the request and return its events until Finished. Closing the generator drops the connection."""
        return self._exchange(request.headers, self._encoder.encode(request), BedrockReader())

    def _make_parser(self) -> EventParser:
        return EventStreamParser(MODEL_ANSWER.value)
