"""Messages made of parts, as a session stores them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import Part, ToolPart, ToolStart, ToolStateRunning
from codeloop.schema.wire import replace
from tests.tui import parts
from tests.tui.stored.client import StoredClient
from tests.tui.stored.play import NOW

Said = MessageWithParts


class Talk:
    """Turns like those of the stored session, whose parts and errors are given.
    `messages` are all so far.
    """

    def __init__(self, client: StoredClient) -> None:
        known = client.messages()
        self._client = client
        self._prompt = next(each.info for each in known if isinstance(each.info, UserMessage))
        self._answer = next(
            each.info for each in reversed(known) if isinstance(each.info, AssistantMessage)
        )
        self.messages: list[Said] = []

    def prompt(self, *given: Part, **changed: Any) -> Said:
        """Let a user say something."""
        name, at = self._next()
        return self._add(
            replace(self._prompt, id=name, time=replace(self._prompt.time, created=at), **changed),
            given,
        )

    def answer(self, *given: Part, is_over: bool = True, **changed: Any) -> Said:
        """Let the model say something to the last prompt; `is_over`: nothing follows it."""
        name, at = self._next()
        parent = next(
            each.info.id for each in reversed(self.messages) if isinstance(each.info, UserMessage)
        )
        time = replace(self._answer.time, created=at, completed=at + 900 if is_over else None)
        finish = "stop" if is_over else None
        info = {"id": name, "parent_id": parent, "time": time, "finish": finish, **changed}
        return self._add(replace(self._answer, **info), given)

    def keep(self) -> None:
        """Store them in place of what the session held."""
        self._client.answers[f"session.messages {self._client.main}"] = msgspec.to_builtins(
            self.messages
        )

    def _next(self) -> tuple[str, int]:
        number = 20 + len(self.messages)
        return f"msg_{number:026}", int(NOW * 1000) + 1000 * (number - 120)

    def _add(self, info: Any, given: Sequence[Part]) -> Said:
        ids = {"session_id": self._client.main, "message_id": info.id}
        own = [
            _now(replace(part, id=f"prt_{info.id[-6:]}{at:06}", **ids))
            for at, part in enumerate(given)
        ]
        self.messages.append(MessageWithParts(info=info, parts=own))
        return self.messages[-1]


def _now(part: Part) -> Part:
    """Return a part as if the clock that it was made by were the one that stands still."""
    if not isinstance(part, ToolPart) or not isinstance(part.state, ToolStateRunning):
        return part
    start = part.state.time.start - parts.NOW + int(NOW * 1000)
    return replace(part, state=replace(part.state, time=ToolStart(start=start)))
