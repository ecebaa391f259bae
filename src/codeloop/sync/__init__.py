"""The library without asyncio: the same classes and functions,
for programs that do not use `async`.

    import codeloop.sync

    with codeloop.sync.open(".") as project:
        print(project.ask("What does this project do?"))

The event loop runs in a thread of its own, so that this also works where a loop is running already.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar, Unpack, cast, overload

from codeloop.client.client import Client
from codeloop.library.events import Answer, SessionEvent
from codeloop.library.opening import connect_to, open_directory
from codeloop.library.options import ConnectOptions, OpenOptions, SessionOptions, TurnLimits
from codeloop.library.project import AgentProject
from codeloop.library.session import AgentSession, Files, SaidMessage

T = TypeVar("T")


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A daemon thread, so that the program can end without closing the project.
        self._thread = threading.Thread(target=self._loop.run_forever, name="codeloop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its value. If the wait is interrupted, as by Ctrl-C,
        the work is cancelled.
        """
        tasks: list[asyncio.Task[T]] = []
        has_ended = threading.Event()

        def start() -> None:
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(lambda _: has_ended.set())

        self._loop.call_soon_threadsafe(start)
        try:
            has_ended.wait()
        finally:
            # Waiting for the cancelled coroutine lets it clean up, such as stop its turn.
            if not has_ended.is_set():
                self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                has_ended.wait()
        return tasks[0].result()

    def close(self) -> None:
        """End the loop and its thread."""
        # As `asyncio.run` does at its end.
        self.run(self._loop.shutdown_asyncgens())
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def open(
    directory: "str | os.PathLike[str]" = ".", **options: Unpack[OpenOptions]
) -> "Generator[SyncProject]":
    """Open the project of a directory in this process, while the `with` block runs;
    see `codeloop.open`.
    """
    with _open_project(open_directory(directory, **options)) as project:
        yield project


@contextmanager
def connect(url: str, **options: Unpack[ConnectOptions]) -> "Generator[SyncProject]":
    """Connect to a server, while the `with` block runs; see `codeloop.connect`."""
    with _open_project(connect_to(url, **options)) as project:
        yield project


@contextmanager
def _open_project(opening: AbstractAsyncContextManager[AgentProject]) -> "Generator[SyncProject]":
    thread = LoopThread()
    try:
        project = thread.run(_enter_context(opening))
        try:
            yield SyncProject(thread, project)
        finally:
            thread.run(_exit_context(opening))
    finally:
        thread.close()


# `async with` can't be used here, as its two ends are two calls of `LoopThread.run`.
async def _enter_context(opening: AbstractAsyncContextManager[AgentProject]) -> AgentProject:
    return await opening.__aenter__()


async def _exit_context(opening: AbstractAsyncContextManager[AgentProject]) -> None:
    await opening.__aexit__(None, None, None)


class SyncProject:
    """An open project; see `AgentProject`."""

    def __init__(self, thread: LoopThread, project: AgentProject) -> None:
        self._thread = thread
        self._project = project

    @property
    def directory(self) -> str:
        """The absolute path of the directory."""
        return self._project.directory

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the configuration and the options, such as what was ignored, and why."""
        return self._project.warnings

    @property
    def client(self) -> Client:
        """The client of the project, which has every operation of the HTTP API;
        its methods need asyncio.
        """
        return self._project.client

    def session(
        self,
        session_id: str | None = None,
        *,
        title: str | None = None,
        **options: Unpack[SessionOptions],
    ) -> "SyncSession":
        """Start a session, or resume the one with this id."""
        session = self._thread.run(self._project.session(session_id, title=title, **options))
        return SyncSession(self._thread, session)

    def last(self, **options: Unpack[SessionOptions]) -> "SyncSession":
        """Resume the session of this directory that was changed last."""
        return SyncSession(self._thread, self._thread.run(self._project.last(**options)))

    def sessions(self, limit: int = 100) -> "list[SyncSession]":
        """Return the sessions of this directory, the last changed first, at most `limit`."""
        return [
            SyncSession(self._thread, each)
            for each in self._thread.run(self._project.sessions(limit))
        ]

    @overload
    def ask(
        self, prompt: str, *, files: Files = (), limits: TurnLimits | None = None
    ) -> Answer[None]: ...
    @overload
    def ask(
        self, prompt: str, *, result: type[T], files: Files = (), limits: TurnLimits | None = None
    ) -> Answer[T]: ...
    def ask(
        self,
        prompt: str,
        *,
        result: type[Any] | None = None,
        files: Files = (),
        limits: TurnLimits | None = None,
    ) -> Answer[Any]:
        """Send a prompt in a new session and return the answer; see `AgentSession.ask`."""
        if result is None:
            return self._thread.run(self._project.ask(prompt, files=files, limits=limits))
        kind = cast("type[object]", result)
        return self._thread.run(self._project.ask(prompt, result=kind, files=files, limits=limits))


class SyncSession:
    """A conversation; see `AgentSession`."""

    def __init__(self, thread: LoopThread, session: AgentSession) -> None:
        self._thread = thread
        self._session = session

    @property
    def id(self) -> str:
        """The id of the session: `project.session(id)` resumes it."""
        return self._session.id

    @property
    def title(self) -> str:
        """The title of the session, as of the last turn."""
        return self._session.title

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the options: what was ignored, and why."""
        return self._session.warnings

    @property
    def cost(self) -> float:
        """The total cost of the session in dollars, as of the last turn."""
        return self._session.cost

    @overload
    def ask(
        self, prompt: str, *, files: Files = (), limits: TurnLimits | None = None
    ) -> Answer[None]: ...
    @overload
    def ask(
        self, prompt: str, *, result: type[T], files: Files = (), limits: TurnLimits | None = None
    ) -> Answer[T]: ...
    def ask(
        self,
        prompt: str,
        *,
        result: type[Any] | None = None,
        files: Files = (),
        limits: TurnLimits | None = None,
    ) -> Answer[Any]:
        """Send a prompt, wait until the agent is done, and return its answer;
        Ctrl-C stops the turn.
        """
        if result is None:
            return self._thread.run(self._session.ask(prompt, files=files, limits=limits))
        kind = cast("type[object]", result)
        return self._thread.run(self._session.ask(prompt, result=kind, files=files, limits=limits))

    def stream(
        self, prompt: str, *, files: Files = (), limits: TurnLimits | None = None
    ) -> Generator[SessionEvent, None, None]:
        """Send a prompt and yield the events of its turn; leaving the loop early stops the turn."""
        events = self._session.stream(prompt, files=files, limits=limits)
        try:
            while (event := self._thread.run(_next_event(events))) is not None:
                yield event
        finally:
            self._thread.run(events.aclose())

    def send(self, prompt: str) -> None:
        """Add a prompt to the running turn, which includes it in its next step;
        see `AgentSession.send`.
        """
        self._thread.run(self._session.send(prompt))

    def stop(self) -> None:
        """Stop the running turn."""
        self._thread.run(self._session.stop())

    def messages(self) -> list[SaidMessage]:
        """Return all messages of the session, oldest first."""
        return self._thread.run(self._session.messages())

    def fork(self) -> "SyncSession":
        """Return a copy of the session, which can be continued independently."""
        return SyncSession(self._thread, self._thread.run(self._session.fork()))

    def undo(self) -> list[str]:
        """Undo the last turn; return lines that say what was done."""
        return self._thread.run(self._session.undo())

    def redo(self) -> list[str]:
        """Redo the turn that was undone last; return lines that say what was done."""
        return self._thread.run(self._session.redo())

    def delete(self) -> None:
        """Delete the session with all its messages."""
        self._thread.run(self._session.delete())


async def _next_event(events: AsyncGenerator[SessionEvent, None]) -> SessionEvent | None:
    return await anext(events, None)
