"""The file that a run's answers of models are recorded to: checked before the first request, named when complete.

Of each request it has a digest, so that a replay can tell whether it is asked the same.
"""

import fcntl
import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

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
from codeloop.schema.errors import CodeloopError, UsageProblem


class RecordingFile(Struct):
    """The file that a recording is written to. `is_whole`: it holds every answer so far."""

    path: Path
    is_whole: bool = True


@contextmanager
def open_recording(path: Path, *, replace: bool) -> Generator[RecordingFile]:
    """Open a recording and yield the file to write, `path` with `.part`. A whole recording gets its name at the end.

    Raises UsageProblem if the file exists and must not be replaced, CodeloopError if it can't be written.
    """
    # The target of a symbolic link: a rename would replace the link itself.
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise UsageProblem(f"The recording {path} is not a regular file. Choose another name.")
    if not replace and target.exists() and target.stat().st_size:
        raise UsageProblem(f"The recording {path} already exists. Choose another name, or replace it with --force.")
    # A killed run leaves a `.part` file, which nobody takes for a complete recording.
    part = target.with_name(f"{target.name}.part")
    # A recording holds prompts and code, so only its owner may read it. `O_NOFOLLOW`: nobody can divert it by a link.
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise CodeloopError(f"The recording {path} can't be written: {error.strerror}. Choose another file.") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageProblem(f"Another run is recording to {path}. Choose another name.") from None
        # Only now, with the lock: before, another run may still be writing here.
        os.ftruncate(descriptor, 0)
        record = RecordingFile(part)
        try:
            yield record
        finally:
            if record.is_whole and os.fstat(descriptor).st_size:
                part.replace(target)
            elif record.is_whole:
                part.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


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
