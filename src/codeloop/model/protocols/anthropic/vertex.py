"""Claude on Vertex AI: Anthropic's messages at a path of Google's, authorised by Google's credentials."""

from urllib.parse import quote

from codeloop.model.chat import ModelInfo
from codeloop.model.protocols.anthropic.adapter import AnthropicMessages, Route
from codeloop.model.quirks import ANTHROPIC, Quirks
from codeloop.model.wire.endpoint import Endpoint

VERSION = "vertex-2023-10-16"


class VertexMessages(AnthropicMessages):
    """One model at one endpoint; the model is in the path, and the version in the body."""

    def __init__(self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = ANTHROPIC) -> None:
        headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        path = f"/models/{quote(info.api_id or info.id, safe='@')}:streamRawPredict"
        super().__init__(info, endpoint, quirks, Route(path, headers, {"anthropic_version": VERSION}))
