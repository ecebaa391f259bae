"""Parses a hook's decision: from its exit code, JSON, or a model's verdict."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from codeloop.extend.hooks.hooks import HookFailed
from codeloop.kit.text.terminal_output import to_plain_text
from codeloop.schema.wire import JSON, Wire

_BLOCKS = 2
"""The exit code that refuses."""
_SHOWN = 300


class EventOutput(Wire):
    """`hookSpecificOutput`."""

    permission_decision: Literal["allow", "deny", "ask"] | None = None
    permission_decision_reason: str | None = None
    additional_context: str | None = None
    updated_input: JSON | None = None
    decision: JSON | None = None


class HookOutput(Wire, rename="camel"):
    """A hook's JSON output."""

    goes_on: bool = msgspec.field(default=True, name="continue")
    stop_reason: str | None = None
    system_message: str | None = None
    decision: str | None = None
    reason: str | None = None
    hook_specific_output: EventOutput = EventOutput()


class HookDecision(Struct, frozen=True):
    """A hook's decision. `refused`: the reason of a refusal; `ends`: the turn ends as well.

    `context`: for the model. `told`: for the user. `permission`: of a call.
    """

    refused: str | None = None
    ends: bool = False
    permission: Literal["allow", "ask"] | None = None
    context: str | None = None
    updated: JSON | None = None
    told: str | None = None


def decision_of(code: int, output: bytes, errors: str, *, is_context: bool) -> HookDecision:
    """Derive a decision from exit code and output. `is_context`: non-JSON output is for the model.

    Raises HookFailed: another exit code, or invalid JSON.
    """
    text = output.decode("utf-8", "replace").strip()
    errors = to_plain_text(errors).text.strip()
    if code == _BLOCKS:
        return HookDecision(refused=errors or text or "The hook gave no reason.")
    if code != 0:
        raise HookFailed(f"it ended with exit code {code}: {(errors or text or 'no output')[:_SHOWN]}")
    if not text.startswith("{"):
        return HookDecision(context=text or None) if is_context else HookDecision()
    try:
        return _read_decision(msgspec.json.decode(text, type=HookOutput))
    except msgspec.DecodeError as error:
        if is_context and not isinstance(error, msgspec.ValidationError):
            return HookDecision(context=text)
        raise HookFailed(f"its output is invalid: {error}") from error


def verdict_of(ok: bool, reason: str, *, ends: bool) -> HookDecision:
    """Derive a decision from a model's verdict. `ends`: one that refuses ends the turn."""
    if ok:
        return HookDecision()
    return HookDecision(refused=to_plain_text(reason).text.strip() or "The hook gave no reason.", ends=ends)


def _read_decision(output: HookOutput) -> HookDecision:
    own = output.hook_specific_output
    decision = HookDecision(context=own.additional_context, updated=own.updated_input, told=output.system_message)
    behavior, message, interrupts = _permission_request(own.decision)
    verdict = own.permission_decision or behavior or {"approve": "allow", "block": "deny"}.get(output.decision or "")
    if not output.goes_on:
        reason = output.stop_reason or output.reason or "The hook ended the turn."
        return msgspec.structs.replace(decision, refused=reason, ends=True)
    match verdict:
        case "deny":
            reason = own.permission_decision_reason or message or output.reason or "The hook gave no reason."
            return msgspec.structs.replace(decision, refused=reason, ends=interrupts)
        case "allow" | "ask":
            return msgspec.structs.replace(decision, permission=verdict)
        case _:
            return decision


def _permission_request(decision: JSON | None) -> tuple[Any, str | None, bool]:
    """Return the action on a question, the reason, and whether the turn ends with it."""
    if decision is None:
        return None, None, False
    message = decision.get("message")
    return decision.get("behavior"), message if isinstance(message, str) else None, decision.get("interrupt") is True
