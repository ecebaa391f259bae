"""The TurnHooks of a project with extensions: calls their hooks during a turn,
and applies their changes.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from codeloop.agent.hooks.request_hooks import (
    MESSAGES_HOOK,
    apply_parameter_hooks,
    apply_request_hooks,
    describe_model,
    transform_history,
    transform_prompt,
)
from codeloop.agent.request.window import read_own_text
from codeloop.agent.turn_hooks import T, TurnHooks
from codeloop.extend.hooks.hooks import Hooks
from codeloop.model.chat import ModelInfo, ModelRequest, TextPiece, UserModelMessage
from codeloop.schema.bounds.extension import HOOK_STOPS
from codeloop.schema.event import make_message_updated, make_part_updated
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import Part, TextPart
from codeloop.schema.permission import Action, PermissionRequest
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import Entry, make_next_prompt
from codeloop.store.store import Store

MESSAGE_HOOK, START_HOOK, STOP_HOOK = "chat.message", "session.start", "session.stop"
ASK_HOOK, ENVIRONMENT_HOOK, COMPLETE_HOOK = (
    "permission.ask",
    "shell.env",
    "experimental.text.complete",
)
COMPACTING_HOOK, CONTINUE_HOOK = (
    "experimental.session.compacting",
    "experimental.compaction.autocontinue",
)


class ExtensionHooks(TurnHooks):
    """Calls the hooks of extensions, and those of the configuration's rows in `hooks`,
    which are handlers like them.

    A method does nothing when there is no handler of its hook.
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    @property
    def runner(self) -> Hooks:
        """See ToolHooks."""
        return self._hooks

    @property
    def permission_verdict(self) -> Callable[[PermissionRequest], Awaitable[Action]] | None:
        """See TurnHooks."""
        return self._decide_permission if self._hooks.has_handler(ASK_HOOK) else None

    async def _decide_permission(self, request: PermissionRequest) -> Action:
        payload: JSON = msgspec.to_builtins(request)
        # Plugins read these older names of the same values.
        payload |= {
            "type": request.permission,
            "pattern": request.patterns,
            "title": ", ".join(request.patterns),
        }
        if request.tool is not None:
            payload |= {"messageID": request.tool.message_id, "callID": request.tool.call_id}
        status: Action = (await self._hooks.run(ASK_HOOK, payload, {"status": "ask"}))["status"]
        return status

    async def collect_shell_variables(self, payload: JSON) -> dict[str, str]:
        """See ToolHooks."""
        if not self._hooks.has_handler(ENVIRONMENT_HOOK):
            return {}
        variables: dict[str, str] = (await self._hooks.run(ENVIRONMENT_HOOK, payload, {"env": {}}))[
            "env"
        ]
        return variables

    async def run_turn(self, run: Callable[[], Awaitable[T]], store: Store, session_id: str) -> T:
        """See TurnHooks. An extension can continue a turn at most `HOOK_STOPS` times."""
        times = 0
        while True:
            before = _find_last_answer(store, session_id)
            stop = await run()
            answer = _find_last_answer(store, session_id)
            if not self._hooks.has_handler(STOP_HOOK) or stop.reason != "done":
                return stop
            if answer is None or (before is not None and answer.info.id == before.info.id):
                # There is no new answer: the user ran a shell command, which no model answers.
                return stop
            if isinstance(answer.info, AssistantMessage) and answer.info.summary:
                return stop
            payload = {
                "sessionID": session_id,
                "parentID": store.get_session(session_id).parent_id,
                "active": times > 0,
                "text": read_own_text(answer),
            }
            # "continue": the prompt for another step;
            # "ends": a hook wants none, whatever others say.
            output = await self._hooks.run(STOP_HOOK, payload, {"continue": None})
            reason: str | None = output["continue"]
            if reason is None or output.get("ends") or times == HOOK_STOPS.value:
                return stop
            _store_reason(store, session_id, reason)
            times += 1

    async def change_prompt(
        self, message: UserMessage, parts: Sequence[Part], parent: str | None = None
    ) -> tuple[UserMessage, list[Part]]:
        """See TurnHooks. A prompt keeps its ids and its time: stored data refers to them."""
        if not self._hooks.has_handler(MESSAGE_HOOK):
            return message, list(parts)
        model = {"providerID": message.model.provider_id, "modelID": message.model.model_id}
        payload: JSON = {
            "sessionID": message.session_id,
            "parentID": parent,
            "messageID": message.id,
            "agent": message.agent,
            "model": model,
            "variant": message.model.variant,
        }
        current = {"message": msgspec.to_builtins(message), "parts": msgspec.to_builtins(parts)}
        output = await self._hooks.run(MESSAGE_HOOK, payload, current)
        changed_message = msgspec.convert(output["message"], UserMessage)
        changed_message = replace(
            changed_message, id=message.id, session_id=message.session_id, time=message.time
        )
        return changed_message, msgspec.convert(output["parts"], list[Part])

    async def change_request(
        self, store: Store, user: UserMessage, info: ModelInfo, request: ModelRequest
    ) -> ModelRequest:
        """See TurnHooks."""
        return await apply_request_hooks(self._hooks, store, user, info, request)

    async def complete_texts(self, store: Store, info: AssistantMessage) -> None:
        """See TurnHooks."""
        if not self._hooks.has_handler(COMPLETE_HOOK):
            return
        for part in store.read_context(info.session_id).find_parts(info.id):
            if not isinstance(part, TextPart) or part.synthetic or not part.text:
                continue
            payload = {"sessionID": info.session_id, "messageID": info.id, "partID": part.id}
            text = (await self._hooks.run(COMPLETE_HOOK, payload, {"text": part.text}))["text"]
            if text != part.text:
                store.append(make_part_updated(replace(part, text=text)))

    async def change_title_request(
        self,
        store: Store,
        session_id: str,
        info: ModelInfo,
        request: ModelRequest,
        prompt: str,
        max_chars: int,
    ) -> ModelRequest:
        """See TurnHooks."""
        entries = store.read_context(session_id).entries
        user = next(
            (entry.info for entry in reversed(entries) if isinstance(entry.info, UserMessage)), None
        )
        if user is None:
            return request
        # Extensions get the whole prompt; it is cut afterwards, since they may lengthen it.
        message = UserModelMessage(
            (TextPiece((await transform_prompt(self._hooks, user, prompt))[:max_chars]),)
        )
        return await apply_parameter_hooks(
            self._hooks, user, "title", info, replace(request, messages=(message,))
        )

    async def change_history(
        self, session_id: str, entries: tuple[Entry, ...]
    ) -> tuple[Entry, ...]:
        """See TurnHooks."""
        if not self._hooks.has_handler(MESSAGES_HOOK):
            return entries
        changed_entries = await transform_history(self._hooks, session_id, entries)
        return entries if changed_entries is None else changed_entries

    async def change_summary_request(
        self, user: UserMessage, info: ModelInfo, request: ModelRequest, *, auto: bool
    ) -> ModelRequest:
        """See TurnHooks. Extensions add to the words that ask for the summary, or replace them."""
        if self._hooks.has_handler(COMPACTING_HOOK):
            payload = {"sessionID": user.session_id, "auto": auto}
            output = await self._hooks.run(COMPACTING_HOOK, payload, {"context": []})
            *before, last = request.messages
            texts = [piece.text for piece in last.content if isinstance(piece, TextPiece)]
            prompt: str | None = output.get("prompt")
            new_texts = (*output["context"], *texts) if prompt is None else (prompt,)
            text = "\n\n".join(filter(None, new_texts))
            if text:
                request = replace(request, messages=(*before, UserModelMessage((TextPiece(text),))))
        return await apply_parameter_hooks(self._hooks, user, "compaction", info, request)

    async def list_texts_after_summary(
        self, user: UserMessage, info: ModelInfo, *, overflow: bool
    ) -> list[str] | None:
        """See TurnHooks."""
        if self._hooks.has_handler(CONTINUE_HOOK):
            payload: JSON = {
                "sessionID": user.session_id,
                "agent": user.agent,
                "model": describe_model(info),
                "provider": {"source": "custom", "info": {"id": info.provider_id}, "options": {}},
                "message": msgspec.to_builtins(user),
                "overflow": overflow,
            }
            if not (await self._hooks.run(CONTINUE_HOOK, payload, {"enabled": True}))["enabled"]:
                return None
        return await self.list_start_texts(user.session_id, "compact")

    async def list_start_texts(self, session_id: str, source: str) -> list[str]:
        """Return the texts to add when a session starts, or restarts with a summary.

        `source`: "startup", "resume" or "compact". Raises HookRefused: the model must not be asked.
        """
        if not self._hooks.has_handler(START_HOOK):
            return []
        output = await self._hooks.run(
            START_HOOK, {"sessionID": session_id, "source": source}, {"context": []}
        )
        texts: list[str] = output["context"]
        return [text for text in texts if text.strip()]


def _find_last_answer(store: Store, session_id: str) -> Entry | None:
    entries = store.read_context(session_id).entries
    return next(
        (entry for entry in reversed(entries) if isinstance(entry.info, AssistantMessage)), None
    )


def _store_reason(store: Store, session_id: str, reason: str) -> None:
    """Store why the turn goes on, as the prompt that the model answers next."""
    conversation = store.read_context(session_id)
    message = make_next_prompt(conversation)
    part = TextPart(
        id=new_id("prt"), session_id=session_id, message_id=message.id, text=reason, synthetic=True
    )
    store.append(make_message_updated(message), make_part_updated(part))
