"""The session of a conversation, and its prompts: those that were typed here, and those of other clients."""

import asyncio
from collections.abc import Callable

from codeloop.cli.output.style import Look
from codeloop.schema.errors import error_message
from codeloop.schema.event import Event, MessageUpdated, PartUpdated, SessionDeleted, SessionUpdated
from codeloop.schema.live_events import SessionErrored
from codeloop.schema.message import AssistantMessage, Session, UserMessage
from codeloop.schema.part import FilePart, TextPart

Say = Callable[[str, Look], object]
"""Shows a line to the person."""


class Prompts:
    """Shows a prompt when its turn comes after waiting, or when another client sent it.

    `session` is the session as last seen.
    """

    def __init__(self, session: Session, say: Say) -> None:
        self.session = session
        self._say = say
        self._waiting: dict[str, str] = {}
        """Our prompts that wait for the model, by message id."""
        self._waiting_stored: dict[str, asyncio.Future[None]] = {}
        self._others: set[str] = set()
        self._shown_ids: set[str] = set()

    def expect(self, message_id: str, text: str) -> asyncio.Future[None]:
        """Return a future for the storing of the prompt of this id; `text` is shown when its turn comes, "" never."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting_stored[message_id] = future
        self._waiting[message_id] = text
        return future

    def take(self, event: Event) -> None:
        """Take in an event of the session."""
        match event:
            case SessionUpdated(properties=p):
                self.session = p.info
            case SessionDeleted():
                self._say(f"The session {self.session.id} was deleted. /new starts another one.", "yellow")
            case MessageUpdated(properties=p) if isinstance(p.info, UserMessage):
                future = self._waiting_stored.pop(p.info.id, None)
                if future is not None and not future.done():
                    future.set_result(None)
                elif future is None and p.info.id not in self._waiting:
                    self._others.add(p.info.id)
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                if text := self._waiting.get(p.info.parent_id):
                    self._waiting[p.info.parent_id] = ""
                    self._say(f"> {text}", "cyan")
            case PartUpdated(properties=p) if self._waiting.get(p.part.message_id):
                if isinstance(p.part, TextPart) and not p.part.synthetic:  # one that waits may be changed
                    self._waiting[p.part.message_id] = p.part.text
            case PartUpdated(properties=p) if p.part.message_id in self._others and p.part.id not in self._shown_ids:
                self._shown_ids.add(p.part.id)
                self._show(p.part)
            case SessionErrored(properties=p):
                self._say(error_message(p.error), "red")
            case _:
                pass

    def _show(self, part: object) -> None:
        match part:
            case TextPart(text=text) if not part.synthetic:
                self._say("\n".join(f"> {line}" for line in text.splitlines()), "cyan")
            case FilePart(filename=name, url=url):
                self._say(f"> [{name or url[:80]}]", "cyan")
            case _:
                pass
