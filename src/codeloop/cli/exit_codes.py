"""The exit codes of the command line, and which errors and endings of a turn have which;
docs/cli.md lists them.
"""

from codeloop.cli.bootstrap import INTERRUPTED_EXIT_CODE
from codeloop.model.errors import ModelUnavailable
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.errors import (
    APIError,
    CodeloopError,
    ContextOverflowError,
    MessageError,
    ProviderAuthError,
    StructuredOutputError,
    UsageProblem,
)

DONE = 0
ERROR = 1
USAGE = 2
PROVIDER = 3
LIMIT = 4
DENIED = 5
UNSTRUCTURED = 6
NOT_DONE = 7
# The code of `timeout(1)`.
TIMEOUT = 124
INTERRUPTED = INTERRUPTED_EXIT_CODE

# By the reasons of `StopReason` in `agent/moves.py`, but `error`: for that,
# the error in the answer decides.
CODES_BY_STOP_REASON = {
    "done": DONE,
    "idle": DONE,
    "length": PROVIDER,
    "filtered": PROVIDER,
    "limit": LIMIT,
    "loop": LIMIT,
    "rejected": DENIED,
    "question": DENIED,
    "not_done": NOT_DONE,
    "aborted": INTERRUPTED,
    # The session goes on elsewhere: another process has moved it.
    "moved": INTERRUPTED,
}


def choose_error_code(error: CodeloopError) -> int:
    """Return the exit code for an error that ended a command."""
    match error:
        case UsageProblem():
            return USAGE
        case ModelUnavailable():
            return PROVIDER
        case _:
            return ERROR


def choose_turn_code(answer: MessageWithParts) -> int:
    """Return the exit code for a turn that has ended: by its stop reason,
    else by the error in its answer.
    """
    reason = answer.stop.reason if answer.stop else "done"
    if reason in CODES_BY_STOP_REASON:
        return CODES_BY_STOP_REASON[reason]
    # Only the message of an assistant has an error.
    error: MessageError | None = getattr(answer.info, "error", None)
    if isinstance(error, StructuredOutputError):
        return UNSTRUCTURED
    return (
        PROVIDER
        if isinstance(error, APIError | ContextOverflowError | ProviderAuthError)
        else ERROR
    )
