"""Assembles tool calls from the pieces of a stream: to which call a piece belongs,
and when a call is complete.
"""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec import field as struct_field

from codeloop.model.chat import CallDelta, CallReady, CallStarted, ModelEvent
from codeloop.schema.limits import TOOL_ARGUMENTS
from codeloop.schema.wire import decode_json


def is_object_text(text: str) -> bool:
    """Return whether the text is a complete JSON object."""
    # Most texts are incomplete, and this is cheaper than decoding them.
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(decode_json(text), dict)
    except (msgspec.DecodeError, RecursionError):
        return False


def format_arguments(value: Any) -> str:
    """Return arguments as text: services send a string, null, nothing,
    or (against the protocol) the value itself.
    """
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


class OpenCall(Struct):
    """A call that may not be complete yet. `pieces`: of its arguments; `size`: their characters.

    `is_started`, `is_ready`: whether CallStarted and CallReady were returned for it.
    """

    id: str
    name: str = ""
    pieces: list[str] = struct_field(default_factory=list[str])
    size: int = 0
    is_started: bool = False
    is_ready: bool = False

    @property
    def arguments(self) -> str:
        """The arguments so far, JSON text."""
        # Kept joined: some services name the call with each piece,
        # and then all so far is read each time.
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    @property
    def is_complete(self) -> bool:
        """Whether the arguments so far are a complete JSON object;
        those that are too long only get longer.
        """
        return self.is_too_long or is_object_text(self.arguments)

    @property
    def is_too_long(self) -> bool:
        """Whether the call is refused for the length of its arguments,
        so that no more of them is kept.
        """
        return self.size > TOOL_ARGUMENTS.value


class ToolCallAssembler:
    """Collects the calls of one answer, in the order in which they began. Their ids are unique.

    If a protocol doesn't say to which call a piece belongs, `add_piece` finds it: by index, by id,
    else the last. Services reuse an index for another call, repeat or leave out ids and names, and
    send a call in one piece or many.
    """

    def __init__(self) -> None:
        self.calls: list[OpenCall] = []
        self._by_index: dict[int, OpenCall] = {}
        self._by_id: dict[str, OpenCall] = {}
        self._last: OpenCall | None = None

    def add_piece(self, index: Any, call_id: str, name: str, text: str) -> list[ModelEvent]:
        """Take a piece of a call. Return its events, after those of the earlier calls
        if it begins a new one.
        """
        open_call = self._find_call(index, call_id)
        if open_call is None or self._begins_new_call(open_call, call_id, name, text):
            events = [event for call in self.calls for event in self.complete_call(call)]
            open_call, events_of_start = self.open_call(call_id, name)
            events += events_of_start
            self._by_id.setdefault(call_id or open_call.id, open_call)
        else:
            events = self.add_name(open_call, name)
        if isinstance(index, int):
            self._by_index[index] = open_call
        self._last = open_call
        return events + self.add_arguments(open_call, text)

    def open_call(self, call_id: str, name: str) -> tuple[OpenCall, list[ModelEvent]]:
        """Begin a call; return it and its events. A missing id is made from its position,
        a repeated one numbered.
        """
        ids = {call.id for call in self.calls}
        wanted_id = call_id or f"call_{len(self.calls)}"
        unique_id, number = wanted_id, 1
        while unique_id in ids:
            number += 1
            unique_id = f"{wanted_id}_{number}"
        call = OpenCall(unique_id)
        self.calls.append(call)
        return call, self.add_name(call, name)

    def add_name(self, call: OpenCall, name: str) -> list[ModelEvent]:
        """Take a name, or a further piece of one; repeated names and empty ones change nothing."""
        if not name or call.name == name or call.is_ready:
            return []
        # Before the arguments some services stream a name in pieces;
        # others repeat all of it each time.
        if not call.pieces:
            call.name = name if name.startswith(call.name) else call.name + name
        elif not call.name:
            call.name = name
        if call.is_started:
            return []
        call.is_started = True
        arguments = call.arguments
        return [
            CallStarted(call.id, call.name),
            *([CallDelta(call.id, arguments)] if arguments else []),
        ]

    def add_arguments(self, call: OpenCall, text: str) -> list[ModelEvent]:
        """Take more arguments; they are returned as an event once the name is known."""
        if not text or call.is_ready or call.is_too_long:
            return []
        call.size += len(text)
        # One character more than is allowed shows that it is too long.
        text = text[: TOOL_ARGUMENTS.value + 1]
        call.pieces.append(text)
        return [CallDelta(call.id, text)] if call.is_started else []

    def complete_call(self, call: OpenCall) -> list[ModelEvent]:
        """Make the call ready if its arguments are complete,
        now that the service goes on to something else.
        """
        # First what costs nothing: an answer may have hundreds of calls.
        if call.is_ready or not call.name:
            return []
        return self._make_ready(call) if call.is_complete else []

    def finish_calls(self, *, complete: bool) -> list[ModelEvent]:
        """End the answer; return the events of the calls that became ready by it.

        `complete`: the answer was not cut, so all calls are ready;
        else only those whose arguments are complete.
        """
        events: list[ModelEvent] = []
        for call in self.calls:
            if complete or call.is_complete:
                events += self._make_ready(call)
        return events

    @property
    def has_ready_call(self) -> bool:
        """Whether at least one call is complete."""
        return any(call.is_ready for call in self.calls)

    def _make_ready(self, call: OpenCall) -> list[ModelEvent]:
        if call.is_ready:
            return []
        events: list[ModelEvent] = [] if call.is_started else [CallStarted(call.id, call.name)]
        call.is_ready = call.is_started = True
        # Calls without arguments come with an empty text.
        return [*events, CallReady(call.id, call.name, call.arguments.strip() or "{}")]

    def _find_call(self, index: Any, call_id: str) -> OpenCall | None:
        if isinstance(index, int):
            return self._by_index.get(index)
        return self._by_id.get(call_id) if call_id else self._last

    def _begins_new_call(self, open_call: OpenCall, call_id: str, name: str, text: str) -> bool:
        """Return whether the piece begins a new call although its index or
        id leads to a known one.
        """
        if not name and not text.strip():
            return False
        # A new id alone is not a new call: some services change the id of a
        # call from piece to piece.
        if call_id and self._by_id.get(call_id) is not open_call:
            has_other_name = name != "" and open_call.name not in {"", name}
            return has_other_name or open_call.is_complete
        return bool(name) and bool(text.strip()) and open_call.is_complete
