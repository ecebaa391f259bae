"""Recording what a step changes, so that it can be undone: before a call may write, and when the step is over."""

from collections.abc import Callable

from codeloop.agent.recovery import part_event
from codeloop.schema.event import StoredEvent
from codeloop.schema.ids import new_id
from codeloop.schema.live_events import Toast, ToastShown
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import PatchPart
from codeloop.schema.permission import Need
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.snapshot.step_recorder import StepRecorder


class Recording:
    """The changes of one step. Without snapshots it does nothing."""

    def __init__(self, snapshots: Snapshots | None = None, tell: Callable[[ToastShown], None] = lambda _: None) -> None:
        self._recorder = StepRecorder(snapshots) if snapshots is not None else None
        self._tell = tell

    async def allowed(self, need: Need) -> None:
        """Note what is about to change."""
        if self._recorder is not None and need.writes is not None:
            await self._recorder.before(need.writes.files, everything=need.writes.ignored)

    async def finish(self, info: AssistantMessage) -> tuple[str | None, list[StoredEvent]]:
        """Return the state after the step (None: not recorded), and the part that names the files it changed."""
        if self._recorder is None:
            return None, []
        recorded = await self._recorder.finish()
        for note in self._recorder.notes:
            self._tell(ToastShown(properties=Toast(message=note, variant="warning")))
        if recorded is None:
            return None, []
        if not recorded.files:
            return recorded.after, []
        patch = PatchPart(
            id=new_id("prt"),
            session_id=info.session_id,
            message_id=info.id,
            hash=recorded.before,
            files=list(recorded.files),
        )
        return recorded.after, [part_event(patch)]
