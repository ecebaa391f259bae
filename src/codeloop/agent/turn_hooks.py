"""`TurnHooks`: the points of a turn where extensions take part,
and what happens there without extensions.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from codeloop.model.chat import ModelInfo, ModelRequest
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import Part
from codeloop.schema.permission import Action, PermissionRequest
from codeloop.store.conversation import Entry
from codeloop.store.store import Store
from codeloop.tool.call_session import ToolHooks


class HasStopReason(Protocol):
    """A type with a reason, as the end of a turn has: `agent.moves.Stop` is one."""

    @property
    def reason(self) -> str:
        """The reason why it ended; "done": the model had nothing more to do."""
        ...


T = TypeVar("T", bound=HasStopReason)


class TurnHooks(ToolHooks):
    """The null object of a project's hooks: no extension is asked, and everything stays as it is.

    With extensions it is an `agent.hooks.extension_hooks.ExtensionHooks`, whose methods raise
    HookRefused when one of them refuses what is about to happen.
    """

    @property
    def permission_verdict(self) -> Callable[[PermissionRequest], Awaitable[Action]] | None:
        """Decides a permission question before the user is asked; None: nobody does."""
        return None

    async def run_turn(self, run: Callable[[], Awaitable[T]], store: Store, session_id: str) -> T:
        """Run a turn of a session, and run on when an extension asks for more."""
        del store, session_id
        return await run()

    async def change_prompt(
        self, message: UserMessage, parts: Sequence[Part], parent: str | None = None
    ) -> tuple[UserMessage, list[Part]]:
        """Change a prompt before it is stored. `parent`: the session whose call sends it
        to a subagent, if one does.
        """
        del parent
        return message, list(parts)

    async def change_request(
        self, store: Store, user: UserMessage, info: ModelInfo, request: ModelRequest
    ) -> ModelRequest:
        """Return a step's request; `user` is the prompt that it answers."""
        del store, user, info
        return request

    async def complete_texts(self, store: Store, info: AssistantMessage) -> None:
        """Store each text of an answer with the extensions' changes."""

    async def change_title_request(
        self,
        store: Store,
        session_id: str,
        info: ModelInfo,
        request: ModelRequest,
        prompt: str,
        max_chars: int,
    ) -> ModelRequest:
        """Return the request for a title, which holds at most `max_chars`
        characters of `prompt`.
        """
        del store, session_id, info, prompt, max_chars
        return request

    async def change_history(
        self, session_id: str, entries: tuple[Entry, ...]
    ) -> tuple[Entry, ...]:
        """Change the messages that a compaction summarises."""
        del session_id
        return entries

    async def change_summary_request(
        self, user: UserMessage, info: ModelInfo, request: ModelRequest, *, auto: bool
    ) -> ModelRequest:
        """Return the request for the summary of a compaction."""
        del user, info, auto
        return request

    async def list_texts_after_summary(
        self, user: UserMessage, info: ModelInfo, *, overflow: bool
    ) -> list[str] | None:
        """Return the texts to add after a summary; None: the turn ends there."""
        del user, info, overflow
        return []


NO_HOOKS = TurnHooks()
