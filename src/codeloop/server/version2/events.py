"""Translates the stored and live events of a project to those of version 2."""

from collections.abc import Callable, Container, Iterator, Sequence

from msgspec import to_builtins

from codeloop.schema import event as stored
from codeloop.schema import live_events as live
from codeloop.schema.errors import MessageAbortedError
from codeloop.schema.event import StampedEvent
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import (
    CompactionPart,
    Part,
    ReasoningPart,
    StepStartPart,
    TextPart,
    ToolPart,
)
from codeloop.schema.wire import JSON, encode_json
from codeloop.server.version2.event_changes import (
    Change,
    compare_sessions,
    describe_new,
    describe_step,
    find_time,
    name_item,
    translate_call,
    translate_directory_event,
    translate_session_event,
)
from codeloop.server.version2.event_state import AnswerSeen, PartSeen, SessionSeen
from codeloop.server.version2.inbox import describe_message
from codeloop.server.version2.session_forms import (
    translate_error,
    translate_finish,
    translate_model_ref,
    translate_tokens,
)

EVENTS_EACH = 64
"""Numbers of version 2 for each number of ours, since one event becomes several there."""
_VOLATILE = frozenset(
    {
        "session.usage.updated",
        "session.text.delta",
        "session.reasoning.delta",
        "session.tool.input.delta",
        "session.tool.progress",
        "session.compaction.delta",
        "session.status",
        "session.idle",
    }
)
_SECOND_VERSIONS = frozenset(
    {"session.tool.success", "session.tool.failed", "session.forked", "session.deleted"}
)
"""Events whose form has changed once."""
_MAX_SESSIONS = 1_000


class Translator:
    """Translates the events of one project, in their order.

    `find_parts`: returns the parts of a message that are stored, for an answer that was begun
    before this was made. `is_replay`: the events are read again, so there are no live ones.
    `announced`: prompts that clients were told of before they were stored.
    """

    def __init__(
        self,
        find_parts: Callable[[str, str], Sequence[Part]],
        *,
        is_replay: bool = False,
        announced: Container[str] = (),
    ) -> None:
        self._find_parts = find_parts
        self.is_replay = is_replay
        self._announced = announced
        self._sessions: dict[str, SessionSeen] = {}
        self._number = 0
        self._time = now_ms()
        """When what is told was done (ms since the epoch)."""

    def translate(self, stamped: StampedEvent, directory: str | None) -> list[JSON]:
        """Return the events of version 2 for an event."""
        if stamped.seq is not None:
            self._number = stamped.seq * EVENTS_EACH
        # One by one: each change has its own time.
        return [
            self.wrap(stamped.event.id, number, *change, directory)
            for number, change in enumerate(self._list_changes(stamped.event))
        ]

    def end_replay(self, session_id: str, directory: str | None, *, is_running: bool) -> list[JSON]:
        """Return the end of the last turn of a session that is read again."""
        seen = self._sessions.get(session_id)
        if seen is None:
            return []
        event_id = f"evt_end{self._number}"
        return [
            self.wrap(event_id, number, *change, directory)
            for number, change in enumerate(self._end(session_id, seen, is_running=is_running))
        ]

    def _end(self, session_id: str, seen: SessionSeen, *, is_running: bool) -> Iterator[Change]:
        yield from self._flush_prompt(session_id, seen)
        yield from self._end_last_answer(session_id, seen)
        if seen.is_executing and not is_running:
            yield from self._end_execution(session_id, seen)

    def wrap(
        self, event_id: str, number: int, kind: str, data: JSON, directory: str | None
    ) -> JSON:
        """Return an event with what all events have."""
        event: JSON = {
            "id": f"{event_id}_{number}" if number else event_id,
            "created": self._time,
            "type": kind,
            "data": data,
        }
        if directory is not None:
            event["location"] = {"directory": directory}
        if kind.startswith("session.") and kind not in _VOLATILE:
            version = 2 if kind in _SECOND_VERSIONS else 1
            session_id = data["sessionID"]
            event["durable"] = {
                "aggregateID": session_id,
                "seq": self._number,
                "version": version,
            }
            self._number += 1
        return event

    def _see(self, session_id: str) -> SessionSeen:
        seen = self._sessions.get(session_id)
        if seen is None:
            seen = self._sessions[session_id] = SessionSeen()
            if len(self._sessions) > _MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return seen

    def _list_changes(self, event: stored.Event) -> Iterator[Change]:
        session_id = stored.get_session_id(event)
        time = find_time(event) or (self._time if self.is_replay else now_ms())
        if session_id is None:
            self._time = time
            yield from translate_directory_event(event)
            return
        seen = self._see(session_id)
        prompt = seen.prompt
        match event:
            case stored.PartUpdated(properties=p) if (
                prompt is not None and p.part.message_id == prompt.id
            ):
                seen.prompt_parts.append(p.part)
                return
            case _:
                yield from self._flush_prompt(session_id, seen)
        self._time = time
        match event:
            case stored.SessionCreated(properties=p):
                seen.info = p.info
                yield "session.created", describe_new(p.info)
            case stored.SessionUpdated(properties=p):
                before, seen.info = seen.info, p.info
                yield from compare_sessions(before, p.info)
            case stored.SessionDeleted():
                self._sessions.pop(session_id, None)
                yield "session.deleted", {"sessionID": session_id}
            case _:
                yield from self._translate_turn(session_id, seen, event)

    def _translate_turn(
        self, session_id: str, seen: SessionSeen, event: stored.Event
    ) -> Iterator[Change]:
        match event:
            case stored.MessageUpdated(properties=p):
                if isinstance(p.info, AssistantMessage):
                    yield from self._translate_answer(session_id, seen, p.info)
                # A summary is added when the turn is over; what is read again has it already.
                elif p.info.id not in seen.prompts and (self.is_replay or p.info.summary is None):
                    seen.prompts = {*sorted(seen.prompts)[-8:], p.info.id}
                    seen.prompt, seen.prompt_parts = p.info, []
            case stored.PartUpdated(properties=p):
                yield from self._translate_part(session_id, seen, p.part)
            case live.PartDelta(properties=p):
                yield from self._translate_delta(session_id, seen, p)
            case stored.MessageRemoved(properties=p) if p.message_id in seen.inbox:
                seen.inbox.remove(p.message_id)
                yield "session.inbox.cancelled", name_item(session_id, p.message_id)
            case live.StatusChanged(properties=p):
                yield from self._translate_status(session_id, seen, p.status)
            case _:
                yield from translate_session_event(session_id, event)

    def _flush_prompt(self, session_id: str, seen: SessionSeen) -> Iterator[Change]:
        """Yield the event of a prompt, once all of its parts are known."""
        prompt, seen.prompt = seen.prompt, None
        if prompt is None:
            return
        self._time = prompt.time.created
        for part in seen.prompt_parts:
            if isinstance(part, CompactionPart):
                seen.reason = "auto" if part.auto else "manual"
                data = {"sessionID": session_id, "reason": seen.reason, "inputID": prompt.id}
                yield "session.compaction.started", data
                return
        item = describe_message(prompt.id, session_id, prompt.time.created, seen.prompt_parts)
        seen.inbox.append(prompt.id)
        if prompt.id in self._announced:
            return
        enqueued = {name: item[name] for name in ("type", "payload", "delivery")}
        yield "session.inbox.enqueued", {**name_item(session_id, prompt.id), "item": enqueued}

    def _translate_answer(
        self, session_id: str, seen: SessionSeen, info: AssistantMessage
    ) -> Iterator[Change]:
        answer = seen.answers.get(info.id)
        is_first = answer is None
        if answer is None:
            yield from self._end_last_answer(session_id, seen)
            answer = seen.answers[info.id] = AnswerSeen(is_summary=bool(info.summary))
            if len(seen.answers) > 1:
                # Only the last ones still change.
                seen.answers = dict(list(seen.answers.items())[-8:])
            if self.is_replay and seen.is_executing and seen.inbox:
                yield from self._end_execution(session_id, seen)
            self._time = info.time.created
            yield from self._start_execution(session_id, seen)
            for inbox_id in seen.inbox:
                yield "session.inbox.delivered", name_item(session_id, inbox_id)
            seen.inbox.clear()
            if not answer.is_summary:
                yield "session.step.started", describe_step(session_id, info)
        seen.last_answer = info
        # What is read again is complete from the beginning, and its parts follow.
        if not (self.is_replay and is_first):
            yield from self._end_answer(session_id, seen, info, answer)

    def _end_last_answer(self, session_id: str, seen: SessionSeen) -> Iterator[Change]:
        """Yield the end of an answer that is read again, if it was not yielded yet."""
        info = seen.last_answer
        if self.is_replay and info is not None and (answer := seen.answers.get(info.id)):
            yield from self._end_answer(session_id, seen, info, answer)

    def _end_answer(
        self, session_id: str, seen: SessionSeen, info: AssistantMessage, answer: AnswerSeen
    ) -> Iterator[Change]:
        """Yield the end of an answer that has ended, once."""
        if info.time.completed is None or answer.is_ended:
            return
        answer.is_ended = True
        self._time = info.time.completed
        if answer.is_summary:
            yield from self._end_compaction(session_id, seen, info)
            return
        ids = {"sessionID": session_id, "assistantMessageID": info.id}
        used = {"cost": info.cost, "tokens": translate_tokens(info.tokens)}
        if info.error is not None:
            yield "session.step.failed", {**ids, "error": translate_error(info.error), **used}
        else:
            yield "session.step.ended", {**ids, "finish": translate_finish(info.finish), **used}

    def _end_compaction(
        self, session_id: str, seen: SessionSeen, info: AssistantMessage
    ) -> Iterator[Change]:
        data = {"sessionID": session_id, "reason": seen.reason}
        if info.error is not None:
            yield "session.compaction.failed", {**data, "error": translate_error(info.error)}
            return
        parts = self._find_parts(session_id, info.id)
        text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
        used = {"cost": info.cost, "tokens": translate_tokens(info.tokens)}
        model = translate_model_ref(info)
        yield "session.compaction.ended", {**data, "model": model, "text": text, **used}

    def _find_answer(
        self, seen: SessionSeen, session_id: str, message_id: str
    ) -> AnswerSeen | None:
        """Return the answer that a part belongs to; None: it is no answer.
        One that was begun before is known by what is stored of it.
        """
        answer = seen.answers.get(message_id)
        if answer is not None or self.is_replay:
            return answer
        parts = self._find_parts(session_id, message_id)
        if not any(isinstance(part, StepStartPart | ToolPart) for part in parts):
            return None
        answer = seen.answers[message_id] = AnswerSeen()
        for part in parts[:-1]:
            self._note_part(answer, part)
        return answer

    def _note_part(self, answer: AnswerSeen, part: Part) -> None:
        """Note a part that clients have read with its message."""
        match part:
            case TextPart() | ReasoningPart():
                kind = "text" if isinstance(part, TextPart) else "reasoning"
                is_ended = part.time is None or part.time.end is not None
                answer.parts[part.id] = PartSeen(kind, answer.number(kind), is_ended=is_ended)
            case ToolPart():
                answer.parts[part.id] = PartSeen("tool", 0, str(part.state.__struct_config__.tag))
            case _:
                pass

    def _translate_part(self, session_id: str, seen: SessionSeen, part: Part) -> Iterator[Change]:
        if not isinstance(part, TextPart | ReasoningPart | ToolPart):
            return
        answer = self._find_answer(seen, session_id, part.message_id)
        if answer is None or answer.is_summary:
            return
        ids = {"sessionID": session_id, "assistantMessageID": part.message_id}
        if isinstance(part, ToolPart):
            yield from translate_call(ids, answer, part)
            return
        kind = "text" if isinstance(part, TextPart) else "reasoning"
        known = answer.parts.get(part.id)
        if known is None:
            known = answer.parts[part.id] = PartSeen(kind, answer.number(kind))
            yield f"session.{kind}.started", {**ids, "ordinal": known.ordinal}
        is_ended = part.time is None or part.time.end is not None
        if is_ended and not known.is_ended:
            known.is_ended = True
            data = {**ids, "ordinal": known.ordinal, "text": part.text}
            yield f"session.{kind}.ended", data

    def _translate_delta(
        self, session_id: str, seen: SessionSeen, delta: live.Delta
    ) -> Iterator[Change]:
        answer = self._find_answer(seen, session_id, delta.message_id)
        if answer is None:
            return
        if answer.is_summary:
            yield "session.compaction.delta", {"sessionID": session_id, "text": delta.delta}
            return
        known = answer.parts.get(delta.part_id)
        if known is None:
            return
        ids = {"sessionID": session_id, "assistantMessageID": delta.message_id}
        data = {**ids, "ordinal": known.ordinal, "delta": delta.delta}
        yield f"session.{known.kind}.delta", data

    def _translate_status(
        self, session_id: str, seen: SessionSeen, status: live.Status
    ) -> Iterator[Change]:
        match status:
            case live.Idle():
                if seen.is_executing:
                    yield from self._end_execution(session_id, seen)
            case live.Busy():
                yield from self._start_execution(session_id, seen)
            case live.Retry() if seen.last_answer is not None:
                error = {"type": "unknown", "message": status.message}
                data = {"sessionID": session_id, "assistantMessageID": seen.last_answer.id}
                more = {"attempt": status.attempt, "at": status.next, "error": error}
                yield "session.retry.scheduled", {**data, **more}
            case live.Retry():
                pass
        described: JSON = to_builtins(status)
        yield "session.status", {"sessionID": session_id, "status": described}

    def _start_execution(self, session_id: str, seen: SessionSeen) -> Iterator[Change]:
        if not seen.is_executing:
            seen.is_executing = True
            yield "session.execution.started", {"sessionID": session_id}

    def _end_execution(self, session_id: str, seen: SessionSeen) -> Iterator[Change]:
        seen.is_executing = False
        last = seen.last_answer
        error = None if last is None else last.error
        data: JSON = {"sessionID": session_id}
        match error:
            case None:
                yield "session.execution.succeeded", data
            case MessageAbortedError():
                yield "session.execution.interrupted", {**data, "reason": "user"}
            case _:
                yield "session.execution.failed", {**data, "error": translate_error(error)}


def make_event(kind: str, data: JSON, directory: str | None) -> JSON:
    """Return an event that only version 2 has. One that would be durable has the number 0:
    it is in no log.
    """
    event_id = new_id("evt")
    translator = Translator(lambda _session, _message: ())
    return translator.wrap(event_id, 0, kind, data, directory)


def make_frames(events: Sequence[JSON]) -> bytes:
    """Return events as Server-Sent Events write them."""
    return b"".join(b"data: %b\n\n" % encode_json(each) for each in events)
