"""The text and reasoning of a streaming answer: shown at once, checkpointed now and then,
stored when complete.
"""

import time

from codeloop.kit import fault_injection
from codeloop.schema.event import PartGone, PartRemoved, make_part_updated
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.limits import CHECKPOINT_INTERVAL
from codeloop.schema.live_events import Delta, PartDelta
from codeloop.schema.part import ReasoningPart, Span, TextPart
from codeloop.schema.wire import JSON, replace
from codeloop.store.store import Store


class AnswerDraft:
    """Folds deltas into parts. At most one part is open;
    a new block or type closes it and opens the next.
    """

    def __init__(self, store: Store, session_id: str, message_id: str) -> None:
        self._store = store
        self._session_id = session_id
        self._message_id = message_id
        self._open_part: TextPart | ReasoningPart | None = None
        self._block = 0
        """The service's number of the block that the open part belongs to."""
        self._pieces: list[str] = []
        self._metadata: JSON = {}
        self._stored_at = 0.0
        """When the open part was last stored (`time.monotonic`)."""
        self._part_ids: list[str] = []
        self._stale_part_ids: list[str] = []
        """The parts of abandoned attempts, which are still in the store."""

    def add_text(self, delta: str, block: int, metadata: JSON) -> None:
        """Add text; what `metadata` holds goes back to the provider unchanged."""
        if not isinstance(self._open_part, TextPart) or self._block != block:
            if not delta:
                # A block without text has nothing to send back to the service.
                return
            self._start(TextPart, block)
        self._metadata.update(metadata)
        if delta:
            self._add(delta)

    def add_reasoning(self, delta: str, block: int, metadata: JSON) -> None:
        """Add thinking; what `metadata` holds goes back to the provider unchanged."""
        if not isinstance(self._open_part, ReasoningPart) or self._block != block:
            self._start(ReasoningPart, block)
        self._metadata.update(metadata)
        if delta:
            self._add(delta)

    def adopt_part(self, part_id: str) -> None:
        """Add a part made elsewhere (a started call) to this attempt,
        so that a restart removes it.
        """
        self._drop_stale()
        self._part_ids.append(part_id)

    def restart(self) -> None:
        """Start a new attempt: earlier parts are removed as soon as something new comes,
        and stay if nothing does.
        """
        self.close()
        self._stale_part_ids += self._part_ids
        self._part_ids = []

    def close(self) -> None:
        """Store the open part as complete."""
        if self._open_part is None:
            return
        part = self._build_part()
        start = part.time.start if part.time else now_ms()
        self._store.append(
            make_part_updated(replace(part, time=Span(start=start, end=max(now_ms(), start))))
        )
        self._open_part = None

    def _start(self, part_type: type[TextPart] | type[ReasoningPart], block: int) -> None:
        self.close()
        self._drop_stale()
        part = part_type(
            id=new_id("prt"),
            session_id=self._session_id,
            message_id=self._message_id,
            text="",
            time=Span(start=now_ms()),
        )
        self._store.append(make_part_updated(part))
        self._part_ids.append(part.id)
        self._open_part, self._block, self._pieces, self._metadata = part, block, [], {}
        self._stored_at = time.monotonic()

    def _add(self, delta: str) -> None:
        """Show a piece of the open part at once; store the part now and then,
        for the case of a crash.
        """
        part = self._open_part
        if part is None:
            return
        self._pieces.append(delta)
        self._store.publish_live(
            PartDelta(
                properties=Delta(
                    session_id=self._session_id,
                    message_id=self._message_id,
                    part_id=part.id,
                    field="text",
                    delta=delta,
                )
            )
        )
        fault_injection.pass_point("step.delta")
        if time.monotonic() - self._stored_at >= CHECKPOINT_INTERVAL.seconds:
            self._store.append(make_part_updated(self._build_part()))
            self._stored_at = time.monotonic()

    def _build_part(self) -> TextPart | ReasoningPart:
        """Return the open part with all of its text so far."""
        if self._open_part is None:
            raise AssertionError("no part is open")
        self._pieces = ["".join(self._pieces)]
        return replace(self._open_part, text=self._pieces[0], metadata=self._metadata or None)

    def _drop_stale(self) -> None:
        """Remove the parts of abandoned attempts from the store."""
        if not self._stale_part_ids:
            return
        removals = [
            PartGone(session_id=self._session_id, message_id=self._message_id, part_id=part_id)
            for part_id in self._stale_part_ids
        ]
        self._store.append(*(PartRemoved(properties=properties) for properties in removals))
        self._stale_part_ids = []
