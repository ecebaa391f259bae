"""A language server: one process, started at first use, ended when unused,
given up after repeated failures.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeloop.kit.program import Program
from codeloop.lsp.client.capabilities import make_workspace_folder
from codeloop.lsp.client.client import LanguageClient, ServerSetup
from codeloop.lsp.client.connection import ErrorAnswer, ServerGone
from codeloop.lsp.client.server_settings import ServerSettings
from codeloop.lsp.servers.choice import ServerChoice
from codeloop.lsp.servers.environments import Places, fill_places
from codeloop.lsp.servers.server_row import ServerRow
from codeloop.schema.bounds.language_tools import LSP_CRASHES, LSP_MEMORY, LSP_START, LSP_STOP
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

StartServer = Callable[[ServerChoice, Path], Awaitable[Program]]
_BYTES_PER_MB = 1_000_000


class ServerUnavailable(CodeloopError):
    """A server can't be used; the text is the reason."""


class ServerCallbacks(Struct, frozen=True):
    """The functions that a server calls. `start` starts its program;
    `log` adds a line to the log of a server.

    `on_change` is called when its state changes, `on_report` with its name and the file that it has
    reported on. `warn` shows the user a line. `watch` is called with whether any server watches
    files. `find_dependents` returns the files that seem to use a file; None: the search took too
    long. `find_places` returns the values of the places in the settings of a server,
    for a root of the project. `explain` returns what the sandbox refused to a server that has
    failed with a reason, as a sentence with what allows it; "": nothing.
    """

    start: StartServer
    log: Callable[[str, str], None]
    on_change: Callable[[], None]
    on_report: Callable[[str, Path], None]
    warn: Callable[[str], None]
    watch: Callable[[bool], None]
    find_dependents: Callable[[Path, ServerRow], Awaitable[list[Path] | None]]
    find_places: Callable[[ServerRow, Path], Places] = lambda _row, _root: {}
    explain: Callable[[ServerChoice, Path, str], str] = lambda _choice, _root, _reason: ""


class LanguageServer:
    """One server. `lock`: the lock for changing its documents;
    `client`: set while it is connected.
    """

    def __init__(self, choice: ServerChoice, root: Path, callbacks: ServerCallbacks) -> None:
        self.choice = choice
        self.roots = [root]
        """The project roots that it serves; its program runs in the first."""
        self.client: LanguageClient | None = None
        self.lock = asyncio.Lock()
        self.failure_reason = ""
        self.restart_requested_at = time.time()
        """When the user last asked to restart it, or when it was created."""
        self.used_at = time.monotonic()
        self.fresh_paths: set[Path] = set()
        """The files with unread reports."""
        self.callbacks = callbacks
        self._failures = 0
        self._opening: asyncio.Task[LanguageClient] | None = None
        self._closing: set[asyncio.Future[None]] = set()
        """Programs being ended after their connection closed."""

    @property
    def name(self) -> str:
        """The name of the server's row."""
        return self.choice.row.name

    @property
    def root(self) -> Path:
        """The folder in which its program runs."""
        return self.roots[0]

    def add_root(self, root: Path) -> None:
        """Add a root of the project to those that it serves; only for a row that is `shared`."""
        if root not in self.roots:
            self.roots.append(root)
            if self.client is not None:
                self._add_folders(self.client)

    def _add_folders(self, client: LanguageClient) -> None:
        """Notify the server of roots that it does not know yet."""
        if self.choice.row.shared != "folders":
            return
        new_roots = [root for root in self.roots if root not in client.setup.roots]
        if new_roots:
            # The handler of `workspace/workspaceFolders` answers from this list.
            client.setup.roots.extend(new_roots)
            event = {"added": [make_workspace_folder(root) for root in new_roots], "removed": []}
            client.connection.notify("workspace/didChangeWorkspaceFolders", {"event": event})

    @property
    def state(self) -> Literal["waiting", "starting", "connected", "failed"]:
        """Its current state, for the user."""
        if self.client is not None:
            return "connected"
        if self._opening is not None:
            return "starting"
        return "failed" if self.is_given_up else "waiting"

    @property
    def is_given_up(self) -> bool:
        """Whether it failed so often that only the user starts it again."""
        return self._failures >= LSP_CRASHES.value

    async def connect(self) -> LanguageClient:
        """Return the client of the server, which is started if it does not run.
        Raises ServerUnavailable.
        """
        self.used_at = time.monotonic()
        if self.client is not None:
            return self.client
        if self.is_given_up:
            raise ServerUnavailable(
                f"The language server {self.name} was given up: {self.failure_reason}."
            )
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self.callbacks.on_change()
        opening = self._opening
        try:
            # Others may wait for the same start: a caller that is cancelled must not end it.
            return await asyncio.shield(opening)
        except (ErrorAnswer, ServerGone, OSError, TimeoutError) as error:
            raise ServerUnavailable(
                f"The language server {self.name} can't be started: {self.failure_reason}."
            ) from error
        except asyncio.CancelledError:
            if opening.cancelled():
                raise ServerUnavailable(f"The language server {self.name} was ended.") from None
            raise

    async def stop(self) -> None:
        """End the server; the next use starts it again."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait({opening})
        client, self.client = self.client, None
        if client is not None:
            await client.shut_down()
            client.connection.mark_lost("it was ended")
            await client.connection.pipes.close()
            self.callbacks.on_change()
        if self._closing:
            await asyncio.wait(self._closing)

    async def restart(self) -> None:
        """End the server, and forget its failures, so that the next use starts it
        even if it was given up.
        """
        await self.stop()
        self._failures, self.failure_reason = 0, ""

    async def fail(self, reason: str) -> None:
        """Record a failure, and end the server."""
        self._record_failure(reason)
        await self.stop()

    async def check_memory(self) -> None:
        """End the server for good if it uses too much memory."""
        if self.client is None:
            return
        used_megabytes = await self.client.connection.pipes.measure_memory() // _BYTES_PER_MB
        allowed_megabytes = LSP_MEMORY.value // _BYTES_PER_MB
        if used_megabytes > allowed_megabytes:
            # This failure is the last one: started again, the server would use as much memory.
            self._failures = LSP_CRASHES.value - 1
            await self.fail(
                f"it used {used_megabytes:,} MB of memory, {allowed_megabytes:,} are allowed"
            )

    async def _open(self) -> LanguageClient:
        row = self.choice.row
        started_at = time.monotonic()
        try:
            pipes = await self.callbacks.start(self.choice, self.root)
            roots = self.roots.copy() if row.shared == "folders" else [self.root]
            setup = ServerSetup(
                roots=roots,
                initialization=fill_places(
                    row.initialization, self.callbacks.find_places(row, self.root)
                ),
                settings=ServerSettings(self._find_settings, row.answers),
                settle_seconds=row.settle,
                repeats_reports=row.repeats,
                pull_method=row.pull_method,
            )
            client = LanguageClient(pipes, setup, self._handle_report)
            listening = asyncio.create_task(client.connection.listen())
            try:
                await client.initialize(LSP_START.seconds)
            except (ErrorAnswer, ServerGone, TimeoutError, asyncio.CancelledError):
                await pipes.close()
                await asyncio.wait({listening}, timeout=LSP_STOP.seconds)
                raise
        except TimeoutError:
            self._record_failure(f"it did not answer within {LSP_START.seconds:.0f} s")
            raise
        except (ErrorAnswer, ServerGone, OSError) as error:
            self._record_failure(str(error).rstrip(".") or "it can't be run")
            raise
        finally:
            # Otherwise the server was stopped meanwhile,
            # and another task may be opening it again by now.
            if self._opening is asyncio.current_task():
                self._opening = None
        self.client = client
        self.callbacks.log(
            self.name,
            f"connected in {time.monotonic() - started_at:.2f} s: {' '.join(self.choice.command)}",
        )
        listening.add_done_callback(lambda _: self._handle_connection_loss(client))
        self.callbacks.on_change()
        return client

    def _find_settings(self, root: Path) -> JSON:
        row = self.choice.row
        return fill_places(row.settings, self.callbacks.find_places(row, root))

    def _handle_connection_loss(self, client: LanguageClient) -> None:
        """Handle the end of a connection: a failure, unless the server was stopped."""
        # Stopped by us, or replaced by a newer connection.
        if self.client is not client:
            return
        self.client = None
        self._record_failure(client.connection.loss_reason)
        closing = asyncio.ensure_future(client.connection.pipes.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _record_failure(self, reason: str) -> None:
        self._failures += 1
        if note := self.callbacks.explain(self.choice, self.root, reason):
            reason = f"{reason}. {note}"
        self.failure_reason = reason
        self.callbacks.log(self.name, f"failed: {reason}")
        if self.is_given_up:
            self.callbacks.warn(
                f"The language server {self.name} is given up: {reason}. `codeloop lsp log {self.name}` shows what it "
                f"said, `codeloop lsp restart {self.name}` tries again."
            )
        self.callbacks.on_change()

    def _handle_report(self, path: Path) -> None:
        self.fresh_paths.add(path)
        self.callbacks.on_report(self.name, path)
