"""Sends a request whose answer is plain text, without tools: for a title,
a summary or a verdict.
"""

from contextlib import aclosing

from codeloop.agent.answer.usage import Usage
from codeloop.model.chat import ChatModel, Finished, ModelRequest, RetryScheduled, TextDelta


async def ask_for_text(
    model: ChatModel, request: ModelRequest, usage: Usage
) -> tuple[str, Finished]:
    """Send a request for plain text, counting it; return the text and how the request ended."""
    pieces: list[str] = []
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            usage.count_event(event)
            match event:
                case TextDelta(text=text):
                    pieces.append(text)
                case RetryScheduled():
                    pieces.clear()
                case Finished():
                    return "".join(pieces).strip(), event
                case _:
                    pass
    # The service closed the stream without a reason; the answer counts as complete.
    usage.count_event(Finished("stop"))
    return "".join(pieces).strip(), Finished("stop")
