"""One MCP server: its state, its listing, its consent, and requests,
which start the server if needed.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from codeloop.extend.mcp.cache.last_failures import LastFailure, LastFailures
from codeloop.extend.mcp.cache.listing import Listing, Listings, diff_listings, has_new_text
from codeloop.extend.mcp.consent import Approvals, StartConsent, make_consent_need
from codeloop.extend.mcp.definition import LocalDefinition, ServerDefinition
from codeloop.extend.mcp.server_requests import ChangeCallbacks, ServerRequests
from codeloop.extend.mcp.server_status import ServerFailures, ServerStatus, end_sentence
from codeloop.extend.mcp.transport.connection import ServerConnection
from codeloop.extend.mcp.transport.failures import (
    ProgramEnded,
    RegistrationNeeded,
    ServerFailed,
    SignInNeeded,
    describe_error,
    find_cause,
    list_request_errors,
)
from codeloop.extend.mcp.transport.latest_listing import LatestListing
from codeloop.extend.mcp.transport.transports import ServerDependencies, ServerTarget, connect
from codeloop.schema.limits import MCP_CALL, MCP_RETRY
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, replace
from codeloop.tool.tool import ToolContext
from codeloop.workspace.process.program_log import ProgramLog

if TYPE_CHECKING:
    from mcp import Client

# Versions are dates in ISO form, so they can be compared as text.
LAST_VERSION_WITH_REQUESTS = "2025-11-25"
"""The last protocol version in which servers can send requests."""
_NOT_FOUND_STATUS = 404
_LOG = logging.getLogger("codeloop.mcp")


class ServerRecords(Struct, frozen=True):
    """The stores on disk shared by all servers."""

    listings: Listings
    approvals: Approvals
    failures: LastFailures


class McpServer:
    """One MCP server. `changed` is called when its state or its tools change."""

    def __init__(
        self,
        definition: ServerDefinition,
        dependencies: ServerDependencies,
        records: ServerRecords,
        log: ProgramLog,
        changed: Callable[[], None],
    ) -> None:
        self.definition = definition
        self.log = log
        self.listing = records.listings.get(definition.listing_key)
        self.consent = StartConsent(definition, dependencies, records.approvals)
        self.records = records
        self._changed = changed
        self._requests = ServerRequests(
            definition.name,
            dependencies.project.root,
            log,
            ChangeCallbacks(
                on_lists=lambda: self._latest.note_change(), on_resource=lambda _uri: changed()
            ),
        )
        self._connection: ServerConnection | None = None
        self._opening: asyncio.Task[tuple[ServerConnection, Listing]] | None = None
        self._latest = LatestListing(self._handle_changed_lists)
        self._failures = ServerFailures.of(records.failures.get(definition.digest))
        self.is_off = False
        """Whether the user has switched the server off; then no call starts it."""

    @property
    def name(self) -> str:
        """The name that it is configured under."""
        return self.definition.name

    @property
    def status(self) -> ServerStatus:
        """The server's current state."""
        if self.definition.problem:
            return ServerStatus("failed", self.definition.problem)
        if not self.definition.is_enabled or self.is_off:
            return ServerStatus(
                "disabled", "it was switched off" if self.is_off else "`enabled` is false"
            )
        if self._opening is not None:
            return ServerStatus("starting")
        if self._connection is not None and self._connection.is_open:
            return ServerStatus(
                "connected",
                "its tools have changed since they were agreed to" if self.pending_patch else "",
            )
        if self._failures.reason:
            return ServerStatus(self._failures.state, self._failures.reason)
        return ServerStatus("configured" if self.listing is None else "known")

    @property
    def pending_patch(self) -> str:
        """The diff from the approved tools to the current ones; "" if there is nothing new."""
        if (
            self.listing is None
            or self._latest.listing is None
            or not has_new_text(self.listing, self._latest.listing)
        ):
            return ""
        return diff_listings(self.listing, self._latest.listing)

    @property
    def challenge(self) -> str | None:
        """The challenge of a request refused for lack of a sign-in, or None."""
        return self._failures.challenge if self._failures.state == "needs_auth" else None

    @property
    def is_running(self) -> bool:
        """Return whether it is connected, or about to be."""
        return self._opening is not None or (
            self._connection is not None and self._connection.is_open
        )

    async def find_needs(self) -> tuple[Need, ...]:
        """Return the permission for a start if the user has not agreed to the server's definition,
        or to its code.
        """
        patch = "" if self.is_running else await self.consent.check()
        return (make_consent_need(self.name, patch),) if patch else ()

    async def connect(self, *, is_patient: bool = False) -> Listing:
        """Connect now and return its listing; the caller must have the consent of `find_needs`.

        Earlier failures are ignored, unless `is_patient`: then a recently failed
        server is not started yet.
        Raises ServerFailed.
        """
        # The user asked for this connection: it is tried at once.
        if not is_patient:
            self._failures = ServerFailures()
        if not self.is_running:
            # Notes the state that is approved once the server has started;
            # the caller has handled the differences.
            await self.consent.check()
        await self._ensure_connected()
        return self._latest.listing or Listing()

    async def disconnect(self) -> None:
        """End the connection; the next request starts the server again."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait({opening})
        connection, self._connection = self._connection, None
        self._failures = ServerFailures()
        if connection is not None:
            await connection.close()
            self._changed()

    async def request(
        self, make: "Callable[[Client, Any], Awaitable[Any]]", ctx: ToolContext | None
    ) -> JSON:
        """Make a request, connecting first where needed.
        `make` takes the client and a callback for its progress.

        Consent to changed tools is asked for first. `ctx`: the tool call that it is for; None: it
        is for none, so nobody is asked, or shown its progress.
        Raises ServerFailed, Denied, Rejected.
        """
        for is_last_try in (False, True):
            connection = await self._ensure_connected()
            if ctx is not None:
                await self.settle(ctx)
            try:
                with self._requests.answer_for(ctx):
                    return await self._send(connection, make, ctx)
            except list_request_errors() as error:
                is_lost = connection.transport == "http" and connection.status == _NOT_FOUND_STATUS
                if not is_lost or is_last_try:
                    raise self._convert_error(connection, error) from error
                # 404: the server has lost the session, such as by a restart,
                # and did nothing: it is asked once more.
                await self.disconnect()
        raise AssertionError("the second time returns or raises")

    async def settle(self, ctx: ToolContext) -> None:
        """Wait for changed lists, and ask for consent to the changes.

        Raises Denied, Rejected.
        """
        await self._latest.settle()
        if patch := self.pending_patch:
            await ctx.ask(make_consent_need(self.name, patch))
            self._adopt_listing(is_agreed=True)

    async def _send(
        self,
        connection: ServerConnection,
        make: "Callable[[Client, Any], Awaitable[Any]]",
        ctx: ToolContext | None,
    ) -> JSON:
        def report(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            if ctx is not None:
                ctx.report(
                    title=message or share,
                    metadata={"progress": progress, "total": total, "message": message},
                )

        timeout = self.definition.config.timeout if self.definition.config is not None else None
        return await connection.request(
            make, timeout / 1000 if timeout else MCP_CALL.seconds, report
        )

    def _convert_error(self, connection: ServerConnection, error: BaseException) -> ServerFailed:
        """Convert a failed request to ServerFailed, and record whether the server is gone."""
        error = connection.fatal or error
        text = describe_error(error, connection.refusal)
        if isinstance(find_cause(error), SignInNeeded | RegistrationNeeded):
            self._connection = None
            self.fail(error)
            return ServerFailed(describe_refusal(self))
        if not connection.is_open:
            reason = text if connection.fatal is not None else connection.end_reason or text
            last_line = f" Its last line: {self.log.last_line}" if self.log.last_line else ""
            note = self.explain(self.log.recent_text)
            last_line = f"{end_sentence(last_line)} {note}." if note else last_line
            self._connection = None
            self._record_failure(self._failures.with_failure(reason))
            return ServerFailed(
                f"The MCP server {self.name} is gone: {reason}.{last_line} The next call starts it again."
            )
        return ServerFailed(f"The MCP server {self.name} answered with an error: {text}")

    async def _ensure_connected(self) -> ServerConnection:
        if self._connection is not None and self._connection.is_open:
            return self._connection
        if self.definition.config is None or not self.definition.is_enabled or self.is_off:
            raise ServerFailed(describe_refusal(self))
        wait = self._failures.count_seconds_left()
        # A short wait is awaited here; a long one is an answer for the model.
        if 0 < wait <= MCP_RETRY.seconds:
            await asyncio.sleep(wait)
        elif wait > 0:
            raise ServerFailed(
                f"The MCP server {self.name} can't be used: {end_sentence(self._failures.reason)} "
                f"It is not started again within {wait:.0f} s."
            )
        if self._opening is None:
            target = ServerTarget(
                definition=self.definition,
                config=self.definition.config,
                known=self.listing,
                log=self.log,
                callbacks=self._requests.make_client_callbacks(),
            )
            self._opening = asyncio.create_task(connect(target, self.consent.dependencies))
            self._opening.add_done_callback(self._finish_opening)
            self._changed()
        # Kept in a local variable: `_finish_opening` clears the attribute.
        opening = self._opening
        await asyncio.wait({opening})
        if self._connection is None:
            raise ServerFailed(describe_refusal(self))
        return self._connection

    def _finish_opening(self, opening: "asyncio.Task[tuple[ServerConnection, Listing]]") -> None:
        """Handle the outcome of connecting."""
        # After `disconnect` another start may be under way already.
        if self._opening is opening:
            self._opening = None
        if opening.cancelled():
            return
        error = opening.exception()
        if error is not None:
            self.fail(error)
            return
        self._connection, self._latest.listing = opening.result()
        self._latest.fetch = self._connection.fetch_listing
        self._connection.on_end = self._changed
        self._failures = ServerFailures()
        # Other processes show the last failure in their lists.
        self.records.failures.put(self.definition.digest, None)
        self.consent.approve()
        self._adopt_listing()
        self._changed()

    def fail(self, error: BaseException) -> None:
        """Record why the server can't be used."""
        cause = find_cause(error)
        reason = describe_error(error)
        match cause:
            case SignInNeeded() if cause.can_sign_in:
                advice = f"run `codeloop mcp auth {self.name}`"
                self._record_failure(
                    ServerFailures(advice, "needs_auth", challenge=cause.challenge)
                )
            case RegistrationNeeded():
                self._record_failure(ServerFailures(reason, "needs_client_registration"))
            case _:
                # The log of a responding server holds warnings of its libraries,
                # which are not the cause.
                if isinstance(cause, ProgramEnded | TimeoutError) and self.log.last_line:
                    reason = f"{reason}; its last line: {self.log.last_line}"
                note = self.explain(f"{reason}\n{self.log.recent_text}")
                reason = f"{end_sentence(reason)} {note}" if note else reason
                is_silent = isinstance(cause, TimeoutError)
                self._record_failure(self._failures.with_failure(reason, is_silent=is_silent))

    def explain(self, text: str, given: Sequence[str] = ()) -> str:
        """Return a line on what its sandbox refused, by what it says to a call's texts; or ""."""
        # Imported late: most servers fail at nothing.
        from codeloop.extend.mcp.transport.server_refusals import explain_server_refusals

        return explain_server_refusals(self.definition, self.consent.dependencies, text, given)

    def _record_failure(self, failures: ServerFailures) -> None:
        self._failures = failures
        if _LOG.hasHandlers():
            _LOG.warning(
                "MCP server %s: %s: %s", self.definition.name, failures.state, failures.reason
            )
        last = LastFailure(
            state=failures.state,
            reason=failures.reason,
            at=time.time(),
            challenge=failures.challenge,
        )
        self.records.failures.put(self.definition.digest, last)
        self._changed()

    def _adopt_listing(self, *, is_agreed: bool = False) -> None:
        """Store the server's latest listing, unless the user must agree first."""
        # New texts reach the model only after the user has agreed: a server could otherwise
        # slip instructions in later.
        if not is_agreed and self.pending_patch:
            return
        latest = self._latest.listing
        if latest is not None and latest != self.listing:
            self.listing = latest
            self.records.listings.put(self.definition.listing_key, latest)
            self._changed()

    async def watch(self, uri: str, ctx: ToolContext) -> None:
        """Subscribe a session to changes of a resource that it has read,
        if the server offers that.
        """
        self._requests.watch(uri, ctx)
        if self._connection is not None:
            # A server that refuses the subscription is still usable; its changes just go unnoticed.
            with suppress(*list_request_errors()):
                await self._connection.watch(uri)

    def _handle_changed_lists(self) -> None:
        """Adopt the lists that the server has changed,
        or say that the user is asked to agree to them.
        """
        self._adopt_listing()
        self._changed()
        if self.pending_patch and not self._latest.is_awaited:
            self._requests.notify(
                f"The tools of the MCP server {self.name} have changed. With your next call of it the user is asked to "
                "agree, and you are told which are new."
            )


def is_sandboxed(server: McpServer) -> bool | None:
    """Return whether a server's program runs in a sandbox, as far as known; None: it is remote."""
    config = server.definition.config
    if not isinstance(config, LocalDefinition):
        return None
    return server.consent.dependencies.program_sandboxes.is_sandboxed(config.effective_sandbox)


async def downgrade_protocol(server: McpServer) -> bool:
    """End a connection, so that the next one uses a version in which servers can send requests.

    Later processes start with that version. Returns whether it changed; a configured version stays.
    """
    config = server.definition.config
    is_configured = config is not None and config.protocol is not None
    if (
        server.listing is None
        or server.listing.protocol <= LAST_VERSION_WITH_REQUESTS
        or is_configured
    ):
        return False
    server.listing = replace(server.listing, protocol=LAST_VERSION_WITH_REQUESTS)
    server.records.listings.put(server.definition.listing_key, server.listing)
    await server.disconnect()
    return True


def describe_refusal(server: McpServer) -> str:
    """Return the message for the model that a server can't be called now: the reason,
    and what to do about it.
    """
    status = server.status
    if status.state == "needs_auth":
        return (
            f"The MCP server {server.name} wants the user to sign in. Ask the user to run `codeloop mcp auth "
            f"{server.name}`, or to choose it under /mcp in the terminal UI; after that, call it again."
        )
    return f"The MCP server {server.name} can't be used: {end_sentence(status.reason or 'it was stopped')}"
