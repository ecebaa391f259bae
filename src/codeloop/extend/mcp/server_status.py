"""The state of an MCP server, and the failure that keeps it from being used."""

import time
from typing import Literal, cast

from msgspec import Struct

from codeloop.extend.mcp.cache.last_failures import LastFailure
from codeloop.schema.limits import MCP_RETRY, MCP_RETRY_MOST, MCP_START

ServerState = Literal[
    "configured",
    "known",
    "starting",
    "connected",
    "needs_auth",
    "needs_client_registration",
    "failed",
    "disabled",
]
"""`configured`: what it offers was never listed; `known`: it was, and the server is not running.
`needs_auth`: the user has to sign in; `needs_client_registration`: and before that, to register
codeloop at the server's provider.
"""


class ServerStatus(Struct, frozen=True):
    """A server's state; `reason`: why the server can't be used, or that its tools have changed;
    "": neither.
    """

    state: ServerState
    reason: str = ""


class ServerFailures(Struct, frozen=True):
    """A server's last failure, and until when it is not retried automatically
    (`until`: monotonic seconds).

    `count`: the failures in a row.
    """

    reason: str = ""
    state: ServerState = "failed"
    challenge: str = ""
    count: int = 0
    until: float = 0.0

    @staticmethod
    def of(last: LastFailure | None) -> "ServerFailures":
        """Return the failure that was stored by an earlier run; it does not delay the next try."""
        if last is None:
            return ServerFailures()
        return ServerFailures(
            last.description, cast("ServerState", last.state), challenge=last.challenge
        )

    def with_failure(self, reason: str, *, is_silent: bool = False) -> "ServerFailures":
        """Return the failures with one more, after which the wait is twice as long.

        `is_silent`: it did not answer in time.
        """
        # Doubled each time, so that a broken server does not delay every call;
        # about half of the time is lost to one that never answers.
        wait = min(
            max(MCP_RETRY.seconds * 2**self.count, MCP_START.seconds if is_silent else 0),
            MCP_RETRY_MOST.seconds,
        )
        return ServerFailures(reason, count=self.count + 1, until=time.monotonic() + wait)

    def count_seconds_left(self) -> float:
        """Return the seconds left until the next try; 0 or less: now."""
        return self.until - time.monotonic()


def end_sentence(reason: str) -> str:
    """Return a reason with one full stop: it may be a program's own last line."""
    return reason if reason.endswith((".", "!", "?")) else f"{reason}."
