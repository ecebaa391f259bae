"""Derives a hook's decision from its exit code, its JSON output, or the verdict of a model."""

import re
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from codeloop.extend.hooks.hooks import HookFailed
from codeloop.kit.text.plain_output import to_plain_text
from codeloop.schema.wire import JSON, Wire, decode_json

# As in Claude Code: 2 refuses, every other code but 0 is a failure of the hook.
_REFUSAL_CODE = 2
# The message of a failed hook is one line for the user, so its output is cut.
_MAX_OUTPUT_CHARS = 300


# What runners and readers of arguments print before they say what is wrong.
_PREAMBLE = r"(?:(?:(?:Using|Resolved|usage:|Usage:|Try)\ .*|[ \t]+(?!\u00d7).*)?\n)*"
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))
_START_FAILURES = re.compile(
    r"""
      \S*python[\d.]*:\ can't\ open\ file\ .*
    | \S*sh:\ 0:\ (?:cannot|can't)\ open\ .*
    | (?P<script>\S+):\ (?:line\ )?\d+:\ (?i:syntax\ error).*
    | Can't\ open\ perl\ script\ .*
    # uv and uvx: what they can't download or resolve, and options that they don't take.
    | (?:error:\ |\s*\u00d7\ )(?:Failed\ to|Could\ not|No\ solution|No\ interpreter|Request\ failed|Unable\ to).*
    | error:\ (?:unexpected\ argument|unrecognized\ subcommand|the\ argument|a\ value\ is\ required).*
    | make(?:\[\d+\])?:\ \*\*\*\ No\ (?:rule|targets).*
    # What argparse and click say to arguments that the program does not take.
    | (?P<program>\S+):\ error:\ (?:unrecognized\ arguments|the\ following\ arguments\ are\ required|argument\ ).*
    | Error:\ (?:No\ such\ (?:option|command)|Missing\ (?:argument|option)|Got\ unexpected).*
    """,
    re.VERBOSE,
)
"""What shells, interpreters and runners print when they end with 2 before the script has begun."""


def find_start_failure(errors: str, command: str) -> str:
    """Return the line that says that a hook's program could not start; "" if none does.

    It is the first: a script that has begun may quote the same of a tool that it runs. For the
    same reason a script or program that the line names has to be one of the hook's command.
    """
    preamble = re.match(_PREAMBLE, errors)
    found = _START_FAILURES.match(errors, preamble.end() if preamble is not None else 0)
    if found is None:
        return ""
    name = (found["script"] or found["program"] or "").rpartition("/")[2]
    is_own = not name or name in _SHELLS or name in re.split(r"[\s\"'/;|&()]+", command)
    return found[0].strip() if is_own else ""


class EventOutput(Wire):
    """The part `hookSpecificOutput` of a hook's output: its keys depend on the event."""

    permission_decision: Literal["allow", "deny", "ask"] | None = None
    permission_decision_reason: str | None = None
    additional_context: str | None = None
    updated_input: JSON | None = None
    decision: JSON | None = None


class HookOutput(Wire, rename="camel"):
    """The JSON that a hook prints. `continue: false` ends the turn."""

    continues: bool = msgspec.field(default=True, name="continue")
    stop_reason: str | None = None
    system_message: str | None = None
    decision: str | None = None
    reason: str | None = None
    hook_specific_output: EventOutput = EventOutput()


class HookDecision(Struct, frozen=True):
    """A hook's decision. `refusal_reason`: the reason why the hook refuses; None if it does not.

    `ends_turn`: the turn ends, too. `permission`: the hook's answer to whether a call is allowed.
    `context`: text for the model. `updated_input`: the arguments that replace those of a call.
    `user_message`: text for the user.
    """

    refusal_reason: str | None = None
    ends_turn: bool = False
    permission: Literal["allow", "ask"] | None = None
    context: str | None = None
    updated_input: JSON | None = None
    user_message: str | None = None


def decide_by_output(
    code: int, output: bytes, errors: str, *, is_context: bool, command: str = ""
) -> HookDecision:
    """Derive a decision from the exit code and output of a hook's `command`.
    `is_context`: output that is not JSON goes to the model.

    Raises HookFailed: the exit code is neither 0 nor 2, the program could not start,
    or the JSON is invalid.
    """
    text = output.decode("utf-8", "replace").lstrip("\ufeff").strip()
    # Programs colour their errors; the model and the user get plain text.
    errors = to_plain_text(errors).text.strip()
    if code == _REFUSAL_CODE and not text and (why := find_start_failure(errors, command)):
        raise HookFailed(
            f"its program could not start, so it has decided nothing: {why[:_MAX_OUTPUT_CHARS]}"
        )
    if code == _REFUSAL_CODE:
        return HookDecision(refusal_reason=errors or text or "The hook gave no reason.")
    if code != 0:
        raise HookFailed(
            f"it ended with exit code {code}: {(errors or text or 'no output')[:_MAX_OUTPUT_CHARS]}"
        )
    if not text.startswith("{"):
        return HookDecision(context=text or None) if is_context else HookDecision()
    try:
        return _read_decision(decode_json(text, HookOutput))
    except (msgspec.DecodeError, RecursionError) as error:
        # Text may begin with a brace without being JSON;
        # JSON with wrong values is an error of the script.
        if is_context and not isinstance(error, msgspec.ValidationError):
            return HookDecision(context=text)
        raise HookFailed(f"its output is invalid: {error}") from error


def decide_by_verdict(ok: bool, reason: str, *, ends_turn: bool) -> HookDecision:
    """Derive a decision from a model's verdict. `ends_turn`: a refusal ends the turn."""
    if ok:
        return HookDecision()
    return HookDecision(
        refusal_reason=to_plain_text(reason).text.strip() or "The hook gave no reason.",
        ends_turn=ends_turn,
    )


def _read_decision(output: HookOutput) -> HookDecision:
    event_output = output.hook_specific_output
    decision = HookDecision(
        context=event_output.additional_context,
        updated_input=event_output.updated_input,
        user_message=output.system_message,
    )
    answer = _parse_permission_answer(event_output.decision)
    older_verdict = {"approve": "allow", "block": "deny"}.get(output.decision or "")
    verdict = event_output.permission_decision or answer.behavior or older_verdict
    if not output.continues:
        reason = output.stop_reason or output.reason or "The hook ended the turn."
        return msgspec.structs.replace(decision, refusal_reason=reason, ends_turn=True)
    match verdict:
        case "deny":
            reason = event_output.permission_decision_reason or answer.message or output.reason
            return msgspec.structs.replace(
                decision,
                refusal_reason=reason or "The hook gave no reason.",
                ends_turn=answer.interrupts,
            )
        case "allow" | "ask":
            return msgspec.structs.replace(decision, permission=verdict)
        case _:
            return decision


class _PermissionAnswer(NamedTuple):
    """The answer to a permission request. `behavior`: allow or deny; `message`: why;
    `interrupts`: the turn ends.
    """

    behavior: Any = None
    message: str | None = None
    interrupts: bool = False


def _parse_permission_answer(decision: JSON | None) -> _PermissionAnswer:
    if decision is None:
        return _PermissionAnswer()
    message = decision.get("message")
    return _PermissionAnswer(
        behavior=decision.get("behavior"),
        message=message if isinstance(message, str) else None,
        interrupts=decision.get("interrupt") is True,
    )
