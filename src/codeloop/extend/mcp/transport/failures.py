"""The errors of MCP servers, and their descriptions in one line for the user or the model."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from codeloop.net.wait_hints import read_wait
from codeloop.schema.errors import CodeloopError

if TYPE_CHECKING:
    import httpx2

CONNECTION_CLOSED = -32000
"""The code of requests whose connection has ended."""


PACKAGE_REFUSAL = "Server returned an error response"
"""What the package says of every status from 400 whose body is not of the protocol."""


class ServerFailed(CodeloopError):
    """A server can't be used now; the text says why, and what to do."""


class ProgramEnded(CodeloopError):
    """The program of a local server ended by itself; the end of its output may say why."""


class SignInNeeded(CodeloopError):
    """The server requires a sign-in. `can_sign_in`: by OAuth, not by a configured header.

    `challenge`: the header `WWW-Authenticate` of the refusal.
    """

    def __init__(self, message: str, *, can_sign_in: bool = False, challenge: str = "") -> None:
        super().__init__(message)
        self.can_sign_in = can_sign_in
        self.challenge = challenge


class RegistrationNeeded(CodeloopError):
    """The server takes only clients that its owner has registered."""


def list_leaves(error: BaseException) -> list[BaseException]:
    """Return the errors inside a group at any depth; a plain error itself."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    inside = cast("BaseExceptionGroup[BaseException]", error).exceptions
    return [leaf for each in inside for leaf in list_leaves(each)]


def find_cause(error: BaseException | None) -> BaseException | None:
    """Return the most informative error of a group: one of ours, else the first."""
    if error is None:
        return None
    leaves = list_leaves(error)
    # Our own errors may be wrapped by the package's, as their cause.
    causes = [
        each
        for leaf in leaves
        for each in (leaf, leaf.__cause__)
        if isinstance(each, CodeloopError)
    ]
    return causes[0] if causes else leaves[0]


def describe_error(error: BaseException | None, refusal: str = "") -> str:
    """Return an error as text. `refusal`: the HTTP status in words, for one that only says so."""
    root_cause = find_cause(error)
    match root_cause:
        case None:
            return "the connection ended"
        case TimeoutError():
            return str(root_cause) or "it did not answer in time"
        case OSError() if root_cause.strerror:
            return root_cause.strerror
        case Exception() if host := _find_unreachable_host(root_cause):
            return f"{host} can't be reached: {root_cause or type(root_cause).__name__}"
        # By name: importing pydantic only to compare a class would take long.
        case ValueError() if type(root_cause).__name__ == "ValidationError":
            return f"what it sent is not of the protocol's form{_name_field(root_cause)}"
        case _:
            text = str(root_cause).strip().partition("\n")[0]
            if text == PACKAGE_REFUSAL and refusal:
                return refusal
            return text or type(root_cause).__name__


def _name_field(error: ValueError) -> str:
    """Return the first field that a validation found wrong, in brackets; "" if none is known."""
    list_errors: Callable[[], list[dict[str, Any]]] | None = getattr(error, "errors", None)
    errors = list_errors() if list_errors is not None else []
    path: tuple[Any, ...] = errors[0].get("loc", ()) if errors else ()
    return f" (at {'.'.join(map(str, path))})" if path else ""


def _find_unreachable_host(error: Exception) -> str:
    """Return the host that could not be connected to; "" for any other error."""
    # If the package was never imported, the error can't be one of its.
    if "httpx2" not in sys.modules:
        return ""
    import httpx2

    if not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
        return ""
    try:
        return error.request.url.netloc.decode()
    # httpx raises RuntimeError where an error was made without its request.
    except RuntimeError:
        return ""


def describe_status(answer: "httpx2.Response") -> str:
    """Return what a server answered instead of a message, with the wait that it asks for."""
    import time

    wait = read_wait(answer.headers, time.time(), is_limited=True)
    advice = f", and asks to wait {max(wait, 1):.0f} s" if wait is not None else ""
    return f"{answer.status_code} {answer.reason_phrase}".rstrip() + advice


def make_refusal(challenge: str) -> "httpx2.Response":
    """Return a refusing response with this header, for the package."""
    import httpx2

    return httpx2.Response(401, headers={"WWW-Authenticate": challenge} if challenge else {})


def list_request_errors() -> tuple[type[Exception], ...]:
    """Return the exception types of failed requests. Imports the package `mcp`, loaded by then."""
    import anyio
    import httpx2
    from mcp import MCPError

    package = (
        MCPError,
        anyio.ClosedResourceError,
        anyio.BrokenResourceError,
        httpx2.HTTPError,
        ExceptionGroup,
    )
    return (*package, CodeloopError, ValueError, RuntimeError, OSError, TimeoutError)
