"""What a recording stores of a request, so that a replay can tell whether it is asked the same."""

import hashlib

from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    ModelMessage,
    ModelRequest,
    ToolModelMessage,
    UserModelMessage,
)
from codeloop.model.testing.project_paths import ProjectPaths
from codeloop.model.testing.script import RecordedRequest, RequestKind
from codeloop.model.testing.scripted_model import classify_request


class RequestDigester:
    """Digests requests for a recording, which stores only what is new since the last request of the same kind."""

    def __init__(self) -> None:
        self._message_counts: dict[RequestKind, int] = {}

    def digest_request(self, request: ModelRequest, paths: ProjectPaths) -> RecordedRequest:
        """Return the record of a request: digests, and the shape of the messages that are new in it."""
        kind = classify_request(request)
        count_before = self._message_counts.get(kind)
        self._message_counts[kind] = len(request.messages)
        if count_before is not None and count_before <= len(request.messages):
            new = request.messages[count_before:]
        else:
            # The first request, or one after a compaction.
            new = request.messages[-1:]
        return RecordedRequest(
            digest=_digest(_mask_paths(repr(new), paths)),
            system=_digest(request.system),
            messages=tuple(_describe_message(message) for message in new),
            tools=tuple(tool.name for tool in request.tools),
        )


def _describe_message(message: ModelMessage) -> str:
    match message:
        case UserModelMessage():
            return "a prompt"
        case AssistantModelMessage(content=content):
            calls = [piece.name for piece in content if isinstance(piece, CallPiece)]
            return f"calls of {' and '.join(calls)}" if calls else "an answer"
        case ToolModelMessage(content=content):
            return f"{len(content)} results"


def _mask_paths(text: str, paths: ProjectPaths) -> str:
    """Replace the project's paths by placeholders, so that the text is the same in every directory."""
    for path, word in ((paths.directory, "{directory}"), (paths.root, "{root}")):
        text = text.replace(path, word) if len(path) > 1 else text
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
