"""The running turns of a project: at most one for each session.
Handlers start, await and abort them.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.agent.answer.live_status import show_error, show_status
from codeloop.agent.engine import Engine, TurnSettings
from codeloop.agent.loop import Rounds, run_turn
from codeloop.agent.moves import Stop
from codeloop.agent.title import find_prompts_for_title, is_untitled, make_title, store_first_line
from codeloop.schema.errors import CodeloopError, OperationError, UnknownData, UnknownError
from codeloop.schema.installation import check_installation, find_change
from codeloop.schema.live_events import Busy, Idle, SessionIdle, SessionRef
from codeloop.schema.message import describe_relocation, format_model_ref
from codeloop.schema.wire import replace
from codeloop.store.lease import get_session_stop_file, request_stop_elsewhere, wait_for_stop
from codeloop.tool.toolbox import Toolbox

if TYPE_CHECKING:
    from codeloop.workspace.process.background_jobs import Job

T = TypeVar("T")
FirstWork = Callable[[], Awaitable[None]]
"""Work that a turn does before the model is asked, such as the user's shell command."""


class SessionRun(Struct, weakref=True):
    """The activity of one session in this process.

    `state`: `running` from the prompt that started its turn, `stopping` from an abort until the
    results so far are stored, `locked` while an undo changes its files or messages, else `idle`. In
    any state, prompts may be prepared.
    """

    state: Literal["idle", "running", "stopping", "locked"] = "idle"
    turn: asyncio.Task[Stop] | None = None
    """The task of a session that is running or stopping."""
    preparations: set[asyncio.Task[Any]] = struct_field(default_factory=set[asyncio.Task[Any]])
    """The tasks that prepare prompts before these are stored: they read files, ask hooks,
    fill in commands.
    """
    title_tasks: set[asyncio.Task[None]] = struct_field(default_factory=set[asyncio.Task[None]])
    late_title: asyncio.Task[None] | None = None
    """The task that makes a title between turns."""
    has_title: bool = False
    """Whether a model has made a title."""


class Runs:
    """Starts, joins and aborts turns. `on_end` is called after each turn.

    There is no queue besides the store: a running turn finds the prompts that
    were stored meanwhile.
    """

    def __init__(self, engine: Engine, on_end: Callable[[], None] = lambda: None) -> None:
        self._engine = engine
        self._on_end = on_end
        self.choose_toolbox: Callable[[str], Toolbox] = lambda _: engine.toolbox
        """Returns the tools for a turn of the session with this id."""
        self._runs: WeakValueDictionary[str, SessionRun] = WeakValueDictionary()
        """By session id. Only tasks hold a run, so that runs of idle sessions
        go away by themselves.
        """
        self._tasks: set[asyncio.Task[Any]] = set()
        """All turns and titles: the event loop holds tasks only weakly,
        and could lose one that just waits.
        """
        self._settings_to_go_on: dict[str, TurnSettings] = {}
        """The settings of the last turn of sessions whose commands still run,
        past their timeout.
        """

    def _get_run(self, session_id: str) -> SessionRun:
        run = self._runs.get(session_id)
        if run is None:
            run = self._runs[session_id] = SessionRun()
        return run

    def start_or_join_turn(
        self,
        session_id: str,
        settings: TurnSettings,
        first_work: FirstWork | None = None,
        rounds: Rounds | None = None,
    ) -> asyncio.Task[Stop]:
        """Return the session's running turn as it is; or start one, with these settings,
        which does `first_work` first.

        `rounds`: the rounds of the turn's goal, if it has one. If a subagent works on the session,
        the turn begins after it. Raises OperationError when another process works on the session,
        or it is locked.
        """
        run = self._get_run(session_id)
        if run.turn is None:
            self.check_free(session_id)
            self._engine.store.leases.acquire(session_id)
            # A model on this machine answers one request at a time,
            # and the turn must not wait for a title.
            if run.late_title is not None:
                run.late_title.cancel()
            engine = replace(
                self._engine, turn_settings=settings, toolbox=self.choose_toolbox(session_id)
            )
            run.turn = self._start_task(self._drive(run, session_id, engine, first_work, rounds))
            run.state = "running"
            show_status(self._engine, session_id, Busy())
        return run.turn

    def _start_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def is_any_running(self) -> bool:
        """Whether a turn runs or is prepared, or a title is made during one.
        A title between turns can be cancelled.
        """
        return any(
            run.turn is not None or run.preparations or run.title_tasks - {run.late_title}
            for run in self._runs.values()
        )

    def list_running(self) -> list[str]:
        """Return the sessions whose turn runs in this process."""
        return [session_id for session_id, run in self._runs.items() if run.turn is not None]

    def is_running(self, session_id: str) -> bool:
        """Return whether a turn of the session runs in this process."""
        return self._get_run(session_id).turn is not None

    def is_working_on(self, session_id: str) -> bool:
        """Return whether the session has a running or prepared turn, a working subagent,
        or a lock (`lock_session`).
        """
        run = self._get_run(session_id)
        return (
            run.state != "idle"
            or bool(run.preparations)
            or self._engine.supervisor.find_task(session_id) is not None
        )

    def check_free(self, session_id: str) -> None:
        """Raise OperationError (SessionBusyError) if a session was moved away, or is locked.

        Raises InstallationChanged: no work starts with a package that was replaced.
        """
        check_installation()
        if moved := describe_relocation(self._engine.store.get_session(session_id)):
            raise OperationError("SessionBusyError", moved)
        if self._get_run(session_id).state == "locked":
            raise OperationError(
                "SessionBusyError",
                f"Session {session_id} is busy: an undo changes it. Try again in a moment.",
            )

    @asynccontextmanager
    async def lock_session(
        self, session_id: str, *, is_conversation_undone: bool = False
    ) -> AsyncGenerator[None]:
        """Keep turns from a session, here and in other processes,
        while its files are restored or messages removed.

        `is_conversation_undone`: the conversation is undone with the files, so the model needs no
        note of their change. Raises OperationError (SessionBusyError) when something
        works on the session.
        """
        self.check_free(session_id)
        if self.is_working_on(session_id):
            raise OperationError(
                "SessionBusyError", f"Session {session_id} is busy. Abort its turn first."
            )
        run = self._get_run(session_id)
        read_log = self._engine.workspace.read_log
        with self._hold_lease(session_id):
            run.state = "locked"
            if is_conversation_undone:
                read_log.begin_own_change(session_id)
            try:
                yield
            finally:
                read_log.end_own_change(session_id)
                run.state = "idle"

    @contextmanager
    def _hold_lease(self, session_id: str) -> Generator[None]:
        """Keep other processes from a session. Raises OperationError if one of them works on it."""
        leases = self._engine.store.leases
        leases.acquire(session_id)
        lease_task = asyncio.create_task(leases.keep_renewing(session_id))
        try:
            yield
        finally:
            lease_task.cancel()
            # The caller may start a turn next, which goes on with this lease.
            # So it is released a moment later.
            asyncio.get_running_loop().call_soon(self._drop_lease_if_idle, session_id)

    def _drop_lease_if_idle(self, session_id: str) -> None:
        if not self.is_working_on(session_id):
            # A lease that can't be dropped, for example on a full disk, expires.
            with suppress(CodeloopError):
                self._engine.store.leases.release(session_id)

    async def run_before_turn(self, session_id: str, work: asyncio.Task[T]) -> T:
        """Await work that must be done before a prompt is stored; it is cancelled with its caller.

        Raises OperationError if it is aborted, or another process works on the session.
        """
        run = self._get_run(session_id)
        run.preparations.add(work)
        try:
            with self._hold_lease(session_id):
                await asyncio.wait([work])
            if work.cancelled():
                raise OperationError("BadRequest", "Aborted before anything was sent.")
            return work.result()
        finally:
            run.preparations.discard(work)
            work.cancel()

    def go_on_after(self, job: "Job") -> None:
        """Go on with the session of a command that has ended after its turn: the turn
        had given up waiting for it.
        """
        settings = self._settings_to_go_on.get(job.session)
        is_news = job.is_overdue and job.status == "exited" and not job.is_end_known
        if settings is not None and is_news and not self.is_working_on(job.session):
            # Another process works on the session, or it is locked: then the
            # next prompt tells of it.
            from codeloop.agent.ended_commands import remind_of_ended_commands

            with suppress(CodeloopError):
                self.start_or_join_turn(
                    job.session,
                    settings,
                    partial(remind_of_ended_commands, self._engine, job.session),
                )

    async def abort(self, session_id: str) -> None:
        """Stop the session's turn, preparations and titles,
        and wait until the results so far are stored.
        """
        self._settings_to_go_on.pop(session_id, None)
        run = self._get_run(session_id)
        await _cancel_preparations_and_titles(run)
        await self._engine.supervisor.cancel(session_id)
        turn = run.turn
        if turn is None:
            return
        # A task that is cancelled before its first step never reaches its `finally`.
        await asyncio.sleep(0)
        # A second cancellation would interrupt the turn while it stores its results.
        if run.turn is turn and run.state == "running":
            run.state = "stopping"
            turn.cancel()
        await asyncio.wait([turn])
        await _cancel_preparations_and_titles(run)

    async def abort_anywhere(self, session_id: str) -> bool:
        """Stop the session's turn in this or another process of this machine;
        return whether none runs any more.
        """
        await self.abort(session_id)
        leases = self._engine.store.leases
        if leases.find_other_holder(session_id) is None:
            return True
        file = get_session_stop_file(self._engine.stop_file, session_id)
        await request_stop_elsewhere(leases, session_id, file)
        return leases.find_other_holder(session_id) is None

    async def close(self) -> None:
        """Stop every turn."""
        # A copy, since runs leave the dictionary as their tasks end.
        for session_id in list(self._runs):
            await self.abort(session_id)

    async def _drive(
        self,
        run: SessionRun,
        session_id: str,
        engine: Engine,
        first_work: FirstWork | None,
        rounds: Rounds | None,
    ) -> Stop:
        """Run a turn from its first to its last event.
        Whatever goes wrong ends it with an error that users see.
        """
        lease_task = asyncio.create_task(self._engine.store.leases.keep_renewing(session_id))
        stop_file_task = self._start_task(self._watch_stop_file(session_id))
        try:
            await self._wait_for_subagent(session_id)
            self._start_naming(run, engine, session_id)
            if first_work is not None:
                await first_work()
            if rounds is not None:
                await rounds.begin(engine, session_id)
            stop = await run_turn(engine, session_id, rounds)
            if engine.workspace.has_jobs and engine.workspace.shells.jobs.list_overdue(session_id):
                self._settings_to_go_on[session_id] = engine.turn_settings
            if stop.reason not in {"aborted", "error"}:
                self._start_naming(run, engine, session_id, is_turn_over=True)
        except asyncio.CancelledError:
            return Stop("aborted", "Aborted")
        except CodeloopError as error:
            return self._fail(session_id, str(error))
        except Exception as error:
            return self._fail(
                session_id, str(find_change(error) or f"{type(error).__name__}: {error}")
            )
        else:
            return stop
        finally:
            run.state, run.turn = "idle", None
            lease_task.cancel()
            stop_file_task.cancel()
            with suppress(CodeloopError):
                self._engine.store.leases.release(session_id)
            show_status(self._engine, session_id, Idle())
            self._engine.store.publish_live(
                SessionIdle(properties=SessionRef(session_id=session_id))
            )
            self._on_end()

    async def _watch_stop_file(self, session_id: str) -> None:
        stop_file = self._engine.stop_file
        await wait_for_stop(stop_file, get_session_stop_file(stop_file, session_id))
        await self.abort(session_id)

    async def _wait_for_subagent(self, session_id: str) -> None:
        """Wait for a subagent that works on the session.
        Prompts that it has not answered are left to the turn.
        """
        subagent_task = self._engine.supervisor.find_task(session_id)
        if subagent_task is not None:
            await asyncio.wait([subagent_task])
            self._engine.store.leases.acquire(session_id)
            show_status(self._engine, session_id, Busy())

    def _fail(self, session_id: str, message: str) -> Stop:
        """Show users that a turn has failed, and return its end."""
        show_error(self._engine, session_id, UnknownError(data=UnknownData(message=message)))
        return Stop("error", message)

    def _start_naming(
        self, run: SessionRun, engine: Engine, session_id: str, *, is_turn_over: bool = False
    ) -> None:
        """Name the session by its first prompt, and ask a model for a better
        title in the background.
        """
        conversation = self._engine.store.read_context(session_id)
        prompts = find_prompts_for_title(conversation.entries, conversation.session.title)
        if prompts is None or not (is_turn_over or is_untitled(conversation.session.title)):
            return
        first_text, last_prompt = prompts
        store_first_line(self._engine, session_id, first_text)
        model = format_model_ref(last_prompt.model)
        ask_model = partial(
            make_title, engine, session_id, first_text, model, is_turn_over=is_turn_over
        )
        task = self._start_task(_make_title_once(run, ask_model, set(run.title_tasks)))
        run.title_tasks.add(task)
        run.late_title = task if is_turn_over else None
        task.add_done_callback(lambda task: run.title_tasks.discard(task))


async def _make_title_once(
    run: SessionRun,
    ask_model: Callable[[], Awaitable[bool]],
    earlier_tasks: set[asyncio.Task[None]],
) -> None:
    """Ask a model for a title, unless an earlier task brings one."""
    if earlier_tasks:
        await asyncio.wait(earlier_tasks)
    if not run.has_title:
        run.has_title = await ask_model()


async def _cancel_preparations_and_titles(run: SessionRun) -> None:
    """Cancel the preparations of prompts and the making of titles, and wait for their end."""
    for work in (*run.preparations, *run.title_tasks):
        work.cancel()
        await asyncio.wait([work])
