"""The running turns of this process: at most one task for each session."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, Literal, Protocol, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.agent.answer.live_status import show_error, show_status
from codeloop.agent.engine import Engine, Policy, model_ref
from codeloop.agent.loop import run
from codeloop.agent.moves import Stop, next_move
from codeloop.agent.title import find_missing_title, is_untitled, make_title, store_first_line
from codeloop.agent.turn_diffs import store_diffs
from codeloop.schema.bounds.session import STOP_ALL_TIME, STOP_POLL
from codeloop.schema.errors import CodeloopError, OperationError, UnknownData, UnknownError
from codeloop.schema.live_events import Busy, Idle, SessionIdle, SessionRef
from codeloop.schema.message import describe_move
from codeloop.schema.wire import replace
from codeloop.store.stop_request import get_session_stop_file, request_stop, wait_for_stop
from codeloop.tool.toolbox import Toolbox

T = TypeVar("T")
First = Callable[[], Awaitable[None]]
"""What a turn does before its loop."""


class Rounds(Protocol):
    """Sends the model on until a goal is reached: `agent.goal.goal_rounds.GoalRounds`, which few turns need."""

    async def begin(self, engine: Engine, session_id: str) -> None:
        """Look at what there is before the work begins."""
        ...

    def limit_engine(self, engine: Engine, session_id: str) -> Engine:
        """Return the engine of the next round."""
        ...

    async def end_round(self, engine: Engine, session_id: str, stop: Stop) -> Stop | None:
        """Return how the turn ends; None: it goes on."""
        ...


class SessionRun(Struct, weakref=True):
    """The activity of one session in this process.

    `idle`, `running` once a prompt has woken it, `stopping` from an abort until what there was is stored, `restoring`
    while undo puts its files back. Apart from that, prompts are prepared before they are stored, and titles are made.
    """

    state: Literal["idle", "running", "stopping", "restoring"] = "idle"
    turn: asyncio.Task[Stop] | None = None
    """The task of a session that is running or stopping."""
    preparing: set[asyncio.Task[Any]] = struct_field(default_factory=set[asyncio.Task[Any]])
    naming: set[asyncio.Task[None]] = struct_field(default_factory=set[asyncio.Task[None]])
    late_title: asyncio.Task[None] | None = None
    """Makes a title between turns."""
    is_named: bool = False
    """Whether a model has given a title."""


class Runs:
    """Starts, joins and aborts turns. The store is the queue: a running turn takes up what is sent meanwhile.

    `on_end` is called after each turn.
    """

    def __init__(self, engine: Engine, on_end: Callable[[], None] = lambda: None) -> None:
        self._engine = engine
        self._on_end = on_end
        self.toolbox_of: Callable[[str], Toolbox] = lambda _: engine.toolbox
        """The tools that a turn of a session begins with."""
        self._runs: WeakValueDictionary[str, SessionRun] = WeakValueDictionary()
        """By session; what goes on in one holds it."""
        self._tasks: set[asyncio.Task[Any]] = set()
        """Turns and titles: what they wait for may hold nothing, and then the loop would lose them."""

    def _run(self, session_id: str) -> SessionRun:
        run = self._runs.get(session_id)
        if run is None:
            run = self._runs[session_id] = SessionRun()
        return run

    def wake(
        self, session_id: str, policy: Policy, first: First | None = None, rounds: Rounds | None = None
    ) -> asyncio.Task[Stop]:
        """Return the session's running turn, or start one, which does `first` before anything else.

        `rounds`: the goal that it works for, if it has one. Where a subagent works on the session, the turn begins
        after it. Raises OperationError when another process works on the session, or its files are put back.
        """
        run = self._run(session_id)
        if run.turn is None:
            self.check_free(session_id)
            self._engine.store.leases.acquire(session_id)
            if run.late_title is not None:  # a model on this machine answers one request at a time
                run.late_title.cancel()
            engine = replace(self._engine, policy=policy, toolbox=self.toolbox_of(session_id))
            run.turn = self._begin(self._drive(run, session_id, engine, first, rounds))
            run.state = "running"
            show_status(self._engine, session_id, Busy())
        return run.turn

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def any_running(self) -> bool:
        """Whether a turn runs or is about to, or a title is made during one; one made between turns can wait."""
        return any(
            run.turn is not None or run.preparing or run.naming - {run.late_title} for run in self._runs.values()
        )

    def is_running(self, session_id: str) -> bool:
        """Return whether a turn of the session runs in this process."""
        return self._run(session_id).turn is not None

    def works_on(self, session_id: str) -> bool:
        """Return whether a turn of the session runs or will, a subagent works on it, or its files are put back."""
        run = self._run(session_id)
        return run.state != "idle" or bool(run.preparing) or self._engine.tasks.find_task(session_id) is not None

    def check_free(self, session_id: str) -> None:
        """Raise OperationError (SessionBusyError) when a session was moved away, or its files are put back."""
        if moved := describe_move(self._engine.store.get_session(session_id)):
            raise OperationError("SessionBusyError", moved)
        if self._run(session_id).state == "restoring":
            raise OperationError(
                "SessionBusyError", f"Session {session_id} is busy: its files are put back. Try again in a moment."
            )

    @asynccontextmanager
    async def lock(self, session_id: str, *, forgets: bool = False) -> AsyncGenerator[None]:
        """Keep turns from a session, here and in other processes, while its files are put back.

        `forgets`: its conversation is undone with them, so its model needs no note of them.
        Raises OperationError (SessionBusyError) when something works on it.
        """
        self.check_free(session_id)
        if self.works_on(session_id):
            raise OperationError("SessionBusyError", f"Session {session_id} is busy. Abort its turn first.")
        run = self._run(session_id)
        with self._hold_lease(session_id):
            run.state, log = "restoring", self._engine.workspace.read_log
            if forgets:
                log.begin_own_change(session_id)
            try:
                yield
            finally:
                log.end_own_change(session_id)
                run.state = "idle"

    @contextmanager
    def _hold_lease(self, session_id: str) -> Generator[None]:
        """Keep other processes from a session. Raises OperationError when one of them works on it."""
        leases = self._engine.store.leases
        leases.acquire(session_id)
        renewing = asyncio.create_task(leases.keep_renewing(session_id))
        try:
            yield
        finally:
            renewing.cancel()
            # Whoever waits for this work may begin a turn, which keeps the lease: so it is released a moment later.
            asyncio.get_running_loop().call_soon(self._release, session_id)

    def _release(self, session_id: str) -> None:
        if not self.works_on(session_id):
            with suppress(CodeloopError):
                self._engine.store.leases.release(session_id)

    async def before_turn(self, session_id: str, work: asyncio.Task[T]) -> T:
        """Run the work that comes before a prompt is stored; it ends with its caller.

        Raises OperationError when it is aborted, or another process works on the session.
        """
        run = self._run(session_id)
        run.preparing.add(work)
        try:
            with self._hold_lease(session_id):
                await asyncio.wait([work])
            if work.cancelled():
                raise OperationError("BadRequest", "Aborted before anything was sent.")
            return work.result()
        finally:
            run.preparing.discard(work)
            work.cancel()

    async def abort(self, session_id: str) -> None:
        """Stop the session's turn, its preparation and its title, and wait until what there was is stored."""
        run = self._run(session_id)
        await _cancel_preparation(run)
        await self._engine.tasks.cancel(session_id)
        turn = run.turn
        if turn is None:
            return
        await asyncio.sleep(0)  # a task that is cancelled before it has begun would not clean up after itself
        if run.turn is turn and run.state == "running":  # a task that is cancelled twice would store nothing
            run.state = "stopping"
            turn.cancel()
        await asyncio.wait([turn])
        await _cancel_preparation(run)

    async def abort_anywhere(self, session_id: str) -> bool:
        """Stop the session's turn in this process, or in another one of this machine; return whether none runs now."""
        await self.abort(session_id)
        leases = self._engine.store.leases
        if leases.find_other_holder(session_id) is None:
            return True
        file = get_session_stop_file(self._engine.stop_file, session_id)
        try:
            request_stop(file)
            for _ in range(STOP_ALL_TIME.value // STOP_POLL.value):
                await asyncio.sleep(STOP_POLL.seconds)
                if leases.find_other_holder(session_id) is None:
                    break
            file.unlink(missing_ok=True)
        except OSError as error:
            message = f"Another process works on the session and can't be told to stop: {error}"
            raise OperationError("UnknownError", message) from error
        return leases.find_other_holder(session_id) is None

    async def close(self) -> None:
        """Stop every turn."""
        for session_id in list(self._runs):
            await self.abort(session_id)

    async def _drive(
        self, run: SessionRun, session_id: str, engine: Engine, first: First | None, rounds: Rounds | None
    ) -> Stop:
        """Run a turn from its first to its last event: whatever goes wrong ends it with an error that is shown."""
        renewing = asyncio.create_task(self._engine.store.leases.keep_renewing(session_id))
        stopping = self._begin(self._watch_stop_file(session_id))
        try:
            await self._after_subagent(session_id)
            self._title(run, engine, session_id)
            if first is not None:
                await first()
            if rounds is not None:
                await rounds.begin(engine, session_id)
            stop = await _turn(engine, session_id, rounds)
            if stop.reason not in {"aborted", "error"}:
                self._title(run, engine, session_id, is_turn_over=True)
        except asyncio.CancelledError:
            return Stop("aborted", "Aborted")
        except CodeloopError as error:
            return self._fail(session_id, str(error))
        except Exception as error:
            return self._fail(session_id, f"{type(error).__name__}: {error}")
        else:
            return stop
        finally:
            run.state, run.turn = "idle", None
            renewing.cancel()
            stopping.cancel()
            with suppress(CodeloopError):
                self._engine.store.leases.release(session_id)
            show_status(self._engine, session_id, Idle())
            self._engine.store.publish_live(SessionIdle(properties=SessionRef(session_id=session_id)))
            self._on_end()

    async def _watch_stop_file(self, session_id: str) -> None:
        stop_file = self._engine.stop_file
        await wait_for_stop(stop_file, get_session_stop_file(stop_file, session_id))
        await self.abort(session_id)

    async def _after_subagent(self, session_id: str) -> None:
        """Wait for a subagent that works on the session; what it does not take up is left to the turn."""
        subagent_task = self._engine.tasks.find_task(session_id)
        if subagent_task is not None:
            await asyncio.wait([subagent_task])
            self._engine.store.leases.acquire(session_id)
            show_status(self._engine, session_id, Busy())

    def _fail(self, session_id: str, message: str) -> Stop:
        show_error(self._engine, session_id, UnknownError(data=UnknownData(message=message)))
        return Stop("error", message)

    def _title(self, run: SessionRun, engine: Engine, session_id: str, *, is_turn_over: bool = False) -> None:
        """Name the session by its first prompt, and ask for a better title; no turn waits for that."""
        view = self._engine.store.read_context(session_id)
        untitled = find_missing_title(view.entries, view.session.title)
        if untitled is None or not (is_turn_over or is_untitled(view.session.title)):
            return
        prompt, message = untitled
        store_first_line(self._engine, session_id, prompt)
        ask = partial(make_title, engine, session_id, prompt, model_ref(message.model), is_turn_over=is_turn_over)
        task = self._begin(_name(run, ask, set(run.naming)))
        run.naming.add(task)
        run.late_title = task if is_turn_over else None
        task.add_done_callback(lambda task: run.naming.discard(task))


async def _name(run: SessionRun, ask: Callable[[], Awaitable[bool]], earlier: set[asyncio.Task[None]]) -> None:
    """Ask for a title, unless one that was asked for earlier has come."""
    if earlier:
        await asyncio.wait(earlier)
    run.is_named = run.is_named or await ask()


async def _cancel_preparation(run: SessionRun) -> None:
    """Stop the preparation of prompts, and the making of titles."""
    for work in (*run.preparing, *run.naming):
        work.cancel()
        await asyncio.wait([work])


async def _turn(engine: Engine, session_id: str, rounds: Rounds | None) -> Stop:
    """Run a turn, and report what it changed, whatever ends it; a prompt that comes meanwhile is answered too."""
    try:
        while True:
            limited_engine = engine if rounds is None else rounds.limit_engine(engine, session_id)
            stop = await engine.hooks.run_turn(run, limited_engine, session_id)
            with suppress(CodeloopError):
                await store_diffs(engine, session_id)
            if not isinstance(next_move(engine.store.read_context(session_id), limited_engine.policy), Stop):
                continue
            if rounds is None:
                return stop
            if (end := await rounds.end_round(engine, session_id, stop)) is not None:
                return end
    except asyncio.CancelledError:
        with suppress(CodeloopError):
            await store_diffs(engine, session_id)
        raise
