"""Stores the file changes of steps; also of those that a kill of their process cut off,
once that is found.
"""

from codeloop.agent.answer.answer_lifecycle import make_finish_part
from codeloop.agent.recovery import recover
from codeloop.schema.event import StoredEvent, make_part_updated
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import PatchPart, StepFinishPart
from codeloop.store.store import Store
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.snapshot.step_recorder import StepChanges, StepRecorder


def make_change_events(
    info: AssistantMessage, changes: StepChanges, *, is_complete: bool
) -> list[StoredEvent]:
    """Return the events that store the files that a step changed;
    for one that is not complete, its end as well.
    """
    events: list[StoredEvent] = []
    if changes.files:
        patch = PatchPart(
            id=new_id("prt"),
            session_id=info.session_id,
            message_id=info.id,
            hash=changes.before,
            files=list(changes.files),
        )
        events.append(make_part_updated(patch))
    if not is_complete and (changes.files or changes.unrecorded):
        events.append(make_part_updated(make_finish_part(info, "error", changes)))
    return events


async def close_cut_off_steps(
    store: Store, snapshots: Snapshots, own_session: str | None = None
) -> None:
    """Close the steps of this work tree whose process was killed: what they changed is recorded,
    so it can be undone.

    Call it before anything else changes files. `own_session`: a session whose turn
    this process begins just now.
    """
    for message_id in snapshots.open_steps.list_ids():
        step = snapshots.open_steps.read(message_id)
        if (
            step is not None
            and step.session_id != own_session
            and store.leases.is_held(step.session_id)
        ):
            continue
        recorder = StepRecorder(snapshots, "", message_id)
        session = store.find_session(step.session_id) if step is not None else None
        entry = (
            store.read_conversation(session.id).find_entry(message_id)
            if session is not None
            else None
        )
        if step is None or entry is None or not isinstance(entry.info, AssistantMessage):
            recorder.forget()
            continue
        if not any(isinstance(part, StepFinishPart) for part in entry.parts):
            recorder.resume(step, snapshots.open_steps.find_end(message_id))
            changes = await recorder.finish()
            events = (
                make_change_events(entry.info, changes, is_complete=False)
                if changes is not None
                else []
            )
            if any(isinstance(part, PatchPart) for part in entry.parts):
                # The process was killed between storing the patch and the end.
                events = events[-1:]
            if events:
                store.append(*events)
        if entry.info.time.completed is None:
            recover(
                store,
                step.session_id,
                (store.read_conversation(step.session_id).find_entry(message_id) or entry,),
            )
        recorder.forget()
