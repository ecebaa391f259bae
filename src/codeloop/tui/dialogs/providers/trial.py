"""Tries out a model by asking it for one word."""

from asyncio import timeout

from codeloop.schema.api.session_inputs import Prompt, RunLimits, TextPartInput
from codeloop.schema.api.session_requests import CreateSession, SessionId
from codeloop.schema.bounds.tui import PROVIDER_TRY
from codeloop.schema.errors import MessageError, UnknownData, UnknownError
from codeloop.schema.message import AssistantMessage, ModelRef
from codeloop.schema.operation import PROMPT, SESSION_CREATE, SESSION_DELETE
from codeloop.tui.dialogs.parts.context import DialogContext


async def try_model(context: DialogContext, model: ModelRef) -> MessageError | None:
    """Ask a model for one word in a session that is deleted again; return what went wrong."""
    client = context.client
    session = await client.call(SESSION_CREATE, CreateSession(title="Trying a provider"))
    try:
        prompt = Prompt(
            session_id=session.id,
            parts=[TextPartInput(text="Answer with the word: ready")],
            model=model,
            tools={"*": False},
            limits=RunLimits(steps=1, attended=False),
        )
        async with timeout(PROVIDER_TRY.value / 1000):
            answer = await client.call(PROMPT, prompt)
        return answer.info.error if isinstance(answer.info, AssistantMessage) else None
    except TimeoutError:
        seconds = PROVIDER_TRY.value // 1000
        return UnknownError(data=UnknownData(message=f"It did not answer in {seconds} s. The key is kept; try again."))
    finally:
        await client.call(SESSION_DELETE, SessionId(session_id=session.id))
