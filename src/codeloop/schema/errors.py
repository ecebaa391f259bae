"""Errors as they are stored in a message and sent in `session.error`,
and the exceptions that all rooms raise.
"""

from typing import Literal

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.wire import Wire

MAX_LOGGED_CHARACTERS = 300
"""Characters of an error in the log: it may quote what a command printed."""
_REQUEST_ID_HEADERS = ("request-id", "x-request-id", "x-amzn-requestid", "cf-ray")
"""Headers with a service's id of a request: Anthropic's, OpenAI's, Amazon's and Cloudflare's."""


class ErrorText(Wire):
    """The data of most errors."""

    message: str


class APIErrorData(Wire):
    """The answer of the model's service. `metadata` holds the `url` without its query."""

    message: str
    is_retryable: bool
    status_code: int | None = None
    response_headers: dict[str, str] | None = None
    response_body: str | None = None
    metadata: dict[str, str] | None = None


class ProviderAuthData(Wire):
    """The provider that refused a key, or has none."""

    provider_id: str
    message: str


class OverflowData(Wire):
    """The request was longer than the model's context."""

    message: str
    response_body: str | None = None


class StructuredData(Wire):
    """The model did not give the asked-for structure."""

    message: str
    retries: int


class UnknownData(Wire):
    """Anything unforeseen; `ref` finds it in the log."""

    message: str
    ref: str | None = None


class Nothing(Wire):
    """An empty object."""


class APIError(Wire, tag_field="name", tag="APIError"):
    """The service failed or could not be reached."""

    data: APIErrorData


class MessageAbortedError(Wire, tag_field="name", tag="MessageAbortedError"):
    """The user, a signal or a deadline stopped the turn."""

    data: ErrorText


class ContextOverflowError(Wire, tag_field="name", tag="ContextOverflowError"):
    """The conversation is longer than the model's context."""

    data: OverflowData


class ProviderAuthError(Wire, tag_field="name", tag="ProviderAuthError"):
    """No key, or one that the service refuses."""

    data: ProviderAuthData


class MessageOutputLengthError(Wire, tag_field="name", tag="MessageOutputLengthError"):
    """The answer reached the model's output limit."""

    data: Nothing


class StructuredOutputError(Wire, tag_field="name", tag="StructuredOutputError"):
    """The asked-for structure did not come."""

    data: StructuredData


class ContentFilterError(Wire, tag_field="name", tag="ContentFilterError"):
    """The service withheld the answer."""

    data: ErrorText


class UnknownError(Wire, tag_field="name", tag="UnknownError"):
    """Anything unforeseen."""

    data: UnknownData


MessageError = (
    APIError
    | MessageAbortedError
    | ContextOverflowError
    | ProviderAuthError
    | MessageOutputLengthError
    | StructuredOutputError
    | ContentFilterError
    | UnknownError
)


def describe_failure(error: MessageError) -> str:
    """Return a line for the log: an error's kind, the status and the request's id
    where there are any, its text.
    """
    details = ""
    if isinstance(error, APIError):
        headers = error.data.response_headers or {}
        request = next((headers[name] for name in _REQUEST_ID_HEADERS if name in headers), "")
        details = f" (status {error.data.status_code or 'none'}{f', request {request}' if request else ''})"
    return f"{type(error).__name__}{details}: {one_line(get_error_message(error), MAX_LOGGED_CHARACTERS)}"


def get_error_message(error: MessageError) -> str:
    """Return the line that users are shown for an error."""
    match error:
        case MessageOutputLengthError():
            return "The answer reached the model's output limit. Ask it to go on."
        case _:
            return error.data.message


ErrorKind = Literal[
    "NotFoundError",
    "BadRequest",
    "SessionBusyError",
    "PermissionNotFoundError",
    "QuestionNotFoundError",
    "PtyNotFoundError",
    "PtyForbiddenError",
    "McpServerNotFoundError",
    "McpUnsupportedOAuthError",
    "ProjectNotFoundError",
    "ProjectCopyError",
    "VcsApplyError",
    "WorktreeNotGitError",
    "WorktreeCreateFailedError",
    "WorktreeStartCommandFailedError",
    "WorktreeRemoveFailedError",
    "WorktreeResetFailedError",
    "UnknownError",
]


class CodeloopError(Exception):
    """Something that a user or a client asked for can't be done;
    the message says what happened and what to do next.
    """


class HookRefused(CodeloopError):
    """An extension refuses what was about to happen, or failed to decide; the message says why.

    `ends`: the turn is to end as well.
    """

    def __init__(self, message: str, *, ends: bool = False) -> None:
        super().__init__(message)
        self.ends = ends


class GapError(CodeloopError):
    """The events that a follower asks for are no longer kept: it has to read the state again."""


class UsageProblem(CodeloopError):
    """A command was called wrongly; the message says how to call it."""


class OperationError(CodeloopError):
    """An operation was refused; `kind` is the wire's name of the reason (each has one HTTP status).

    `data`: further fields of the error that some kinds have, by their names on the wire.
    """

    def __init__(self, kind: ErrorKind, message: str, **data: str | bool) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.data = data


class SessionNotFound(OperationError):
    """There is no session with this id: it was never made, or it is deleted."""

    def __init__(self, session_id: str) -> None:
        super().__init__("NotFoundError", f"Session not found: {session_id}")
        self.session_id = session_id
        """The id that was asked for."""
