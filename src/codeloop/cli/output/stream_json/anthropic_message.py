"""Messages and token counts in the form of Anthropic's API,
in which lines of stream-json contain them.
"""

from codeloop.schema.message import AssistantMessage, Tokens
from codeloop.schema.wire import JSON


def make_usage(tokens: Tokens | None) -> JSON:
    """Make the `usage` of a message. `tokens`: None while they are not known, which counts as 0."""
    return {
        "input_tokens": tokens.input if tokens else 0,
        "cache_creation_input_tokens": tokens.cache.write if tokens else 0,
        "cache_read_input_tokens": tokens.cache.read if tokens else 0,
        "output_tokens": tokens.output if tokens else 0,
    }


def make_message(message_id: str, info: AssistantMessage | None, content: list[JSON]) -> JSON:
    """Make a message of the model. `info`: the stored message; None: it is not known.
    `content`: its blocks.
    """
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": "" if info is None else f"{info.provider_id}/{info.model_id}",
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": make_usage(None if info is None else info.tokens),
    }
