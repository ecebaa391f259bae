"""Models behind OpenAI's Responses protocol: OpenAI itself, Azure, xAI,
GitHub Copilot and some gateways.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from codeloop.model.chat import Finished, ModelEvent, ModelInfo, ModelRequest
from codeloop.model.protocols.responses.request import (
    INCLUDE_FEATURE,
    PHASE_FEATURE,
    SUMMARY_FEATURE,
    THINKING_FEATURE,
    ResponsesRequestEncoder,
)
from codeloop.model.protocols.responses.response import ResponsesReader
from codeloop.model.quirks import OPENAI_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import HttpModel
from codeloop.schema.errors import APIError

REFUSAL_PATTERNS = (
    (r"reasoning[. ]summar(?:y|ies)", SUMMARY_FEATURE),
    (
        r"invalid_encrypted_content|encrypted content.{0,60}(?:could not|cannot|can't|failed)",
        THINKING_FEATURE,
    ),
    (
        r"item with id .?rs_\w+.{0,20}not found|item '?rs_\w+'? of type 'reasoning'",
        THINKING_FEATURE,
    ),
    (r"encrypted.?content.{0,40}not supported", INCLUDE_FEATURE),
    (
        r"(?:unknown|unsupported|unrecognized).{0,20}(?:parameter|argument|field).{0,40}phase",
        PHASE_FEATURE,
    ),
)
"""Patterns of a 400's text -> the optional feature that was refused.

This request and all that follow are sent without it: accounts without a verified organization get
no summaries, and many gateways support a part of the protocol only.
"""


class ResponsesModel(HttpModel):
    """A model at an endpoint; `/responses` is added to the base URL, which mostly ends in /v1."""

    def __init__(self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = OPENAI_QUIRKS) -> None:
        key_headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        super().__init__(info, endpoint, quirks, "/responses", key_headers)
        self._encoder = ResponsesRequestEncoder(info, quirks)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Send the request and yield its events until Finished.
        Closing the generator drops the connection.

        When the service refuses an optional feature, the request is sent again without it.
        """
        # Ends, since each feature can be omitted only once.
        while True:
            body = self._encoder.encode(request)
            async with aclosing(
                self._exchange(self._make_request_headers(request), body, ResponsesReader())
            ) as events:
                async for event in events:
                    if isinstance(event, Finished) and self._omit_refused(event):
                        break
                    yield event
                else:
                    return

    def _omit_refused(self, end: Finished) -> bool:
        """Omit a feature that the service refused from further requests;
        return whether there was one.
        """
        if not isinstance(end.error, APIError) or end.error.data.status_code != 400:
            return False
        message = f"{end.error.data.message} {end.error.data.response_body or ''}"
        feature = next(
            (
                feature
                for pattern, feature in REFUSAL_PATTERNS
                if re.search(pattern, message, re.IGNORECASE)
            ),
            None,
        )
        return feature is not None and self._encoder.omit(feature)
