"""Exports a session as a trajectory in ATIF, the Agent Trajectory Interchange Format
of evaluation harnesses.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from codeloop import __version__
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.errors import get_error_message
from codeloop.schema.message import NO_TOKENS, AssistantMessage, Session, Tokens
from codeloop.schema.part import (
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.schema.wire import JSON

ATIF_VERSION = "ATIF-v1.6"


def export_atif(session: Session, messages: Sequence[MessageWithParts]) -> JSON:
    """Return the trajectory: a step for each message, with its calls and their results."""
    steps = [
        {"step_id": number, **_convert_message(message)}
        for number, message in enumerate(messages, 1)
    ]
    last = next(
        (each.info for each in reversed(messages) if isinstance(each.info, AssistantMessage)), None
    )
    agent: JSON = {"name": "codeloop", "version": __version__}
    if last is not None:
        agent |= {"model_name": _format_model(last), "extra": {"agent": last.agent}}
    totals = {
        f"total_{name}": value for name, value in _count_tokens(session.tokens or NO_TOKENS).items()
    }
    final: JSON = {**totals, "total_cost_usd": session.cost or 0.0, "total_steps": len(steps)}
    return {
        "schema_version": ATIF_VERSION,
        "session_id": session.id,
        "agent": agent,
        "steps": steps,
        "final_metrics": final,
    }


def _convert_message(message: MessageWithParts) -> JSON:
    info = message.info
    texts = [part.text for part in message.parts if isinstance(part, TextPart) and part.text]
    step: JSON = {
        "timestamp": datetime.fromtimestamp(info.time.created / 1000, UTC).isoformat(),
        "source": "agent" if isinstance(info, AssistantMessage) else "user",
        "message": "\n\n".join(texts),
    }
    if not isinstance(info, AssistantMessage):
        return step
    step |= {
        "model_name": _format_model(info),
        "metrics": {**_count_tokens(info.tokens), "cost_usd": info.cost},
    }
    if info.error is not None:
        step["extra"] = {"error": get_error_message(info.error)}
    if thoughts := [
        part.text for part in message.parts if isinstance(part, ReasoningPart) and part.text
    ]:
        step["reasoning_content"] = "\n\n".join(thoughts)
    if calls := [part for part in message.parts if isinstance(part, ToolPart)]:
        step["tool_calls"] = [
            {
                "tool_call_id": call.call_id,
                "function_name": call.tool,
                "arguments": call.state.input,
            }
            for call in calls
        ]
        step["observation"] = {
            "results": [
                {"source_call_id": call.call_id, "content": _find_result(call)} for call in calls
            ]
        }
    return step


def _find_result(call: ToolPart) -> str:
    """Return the result of a call as the model read it; "": the call has not ended."""
    match call.state:
        case ToolStateCompleted(output=output):
            return output
        case ToolStateError() as state:
            return state.for_model
        case _:
            return ""


def _format_model(info: AssistantMessage) -> str:
    return f"{info.provider_id}/{info.model_id}"


def _count_tokens(tokens: Tokens) -> JSON:
    """Return the token counts by ATIF's names."""
    # ATIF counts cached tokens as a part of the prompt; ours are counted apart.
    cached_tokens = tokens.cache.read + tokens.cache.write
    return {
        "prompt_tokens": tokens.input + cached_tokens,
        "completion_tokens": tokens.output,
        "cached_tokens": tokens.cache.read,
    }
