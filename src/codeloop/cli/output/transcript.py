"""Prints a stored session: its prompts, answers, calls and costs, as they were shown when it ran.

Used by `codeloop session show`, and by conversations line by line for the messages before them.
"""

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from codeloop.cli.bootstrap import end_without_output
from codeloop.cli.output.markdown import Markdown
from codeloop.cli.output.streams import OutputQueue, OutputStream, open_standard_streams
from codeloop.cli.output.style import has_colour, paint
from codeloop.cli.output.text_view import COMPACTED_NOTE
from codeloop.cli.output.tool_call import format_call, format_heading
from codeloop.client.formatting import describe_spending
from codeloop.kit.text.readable_json import format_json_block
from codeloop.kit.text.terminal_text import escape_answer_controls, escape_controls
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.errors import MessageError, get_error_message
from codeloop.schema.message import NO_TOKENS, AssistantMessage, AssistantTime, Session, UserMessage
from codeloop.schema.part import (
    FilePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
    ToolStatePending,
)

# Shown below an answer that has no end: nobody completed it.
UNFINISHED_NOTE = (
    "! Not complete: it is still running, or codeloop was ended before it was. "
    "Its tokens are not counted yet."
)
SubagentMessages = Mapping[str, list[MessageWithParts]]
"""The messages of subagents by session id."""


def print_transcript(
    session: Session,
    messages: list[MessageWithParts],
    *,
    thinking: bool,
    queued_ids: Collection[str] = (),
    children: SubagentMessages = MappingProxyType({}),
) -> None:
    """Print a session on stdout, and notes about its summaries on stderr.

    `thinking`: print reasoning and summaries, too. `queued_ids`: the ids of prompts
    that wait for a running turn.
    """
    # Without an event loop, writing waits for the reader: a pager may read slowly.
    out, notes = open_standard_streams(OutputQueue())
    colour = has_colour(out.stream)
    out.write(paint(escape_controls(session.title), "bold", colour=colour) + "\n")
    for message in messages:
        match message.info:
            case UserMessage():
                out.write(
                    "\n"
                    + "".join(_format_prompt_part(part, colour=colour) for part in message.parts)
                )
                if message.info.id in queued_ids:
                    out.write(paint("  queued", "yellow", colour=colour) + "\n")
            case AssistantMessage(summary=True):
                text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
                notes.write(
                    paint(
                        COMPACTED_NOTE.format(len(text)), "yellow", colour=has_colour(notes.stream)
                    )
                    + "\n"
                )
                if thinking and text:
                    notes.write(
                        paint(escape_controls(text), "dim", colour=has_colour(notes.stream)) + "\n"
                    )
            case AssistantMessage(error=error, time=times):
                for part in message.parts:
                    out.write(_format_answer_part(part, out, colour=colour, thinking=thinking))
                    out.write(
                        "".join(
                            f"{line}\n"
                            for line in _list_subagent_lines(part, children, "    ", colour=colour)
                        )
                    )
                out.write(_format_end(error, times, colour=colour))
    sums = " · ".join(
        (*describe_spending(session.tokens or NO_TOKENS, session.cost or 0), session.id)
    )
    out.write("\n" + paint(sums, "dim", colour=colour) + "\n")
    if out.error is not None:
        end_without_output(out.error)


def _format_end(error: MessageError | None, times: AssistantTime, *, colour: bool) -> str:
    """Return the line about an answer that failed or was not finished; else ""."""
    if error is not None:
        text = f"! {escape_controls(get_error_message(error))}"
        return paint(text, "red", colour=colour) + "\n"
    if times.completed is None:
        return paint(UNFINISHED_NOTE, "yellow", colour=colour) + "\n"
    return ""


def _format_prompt_part(part: Part, *, colour: bool) -> str:
    match part:
        case TextPart(text=text) if not part.synthetic:
            return "".join(
                paint(f"> {line}", "cyan", colour=colour) + "\n"
                for line in escape_controls(text).splitlines()
            )
        case FilePart(filename=name, url=url):
            return paint(f"> [{escape_controls(name or url[:80])}]", "cyan", colour=colour) + "\n"
        case _:
            return ""


def _format_answer_part(part: Part, out: OutputStream, *, colour: bool, thinking: bool) -> str:
    match part:
        case TextPart(text=text) if text.strip():
            markdown = Markdown(styled=colour and out.stream.isatty(), columns=out.columns)
            answer = markdown.feed(escape_answer_controls(format_json_block(text)).rstrip("\n"))
            return answer + markdown.end() + "\n"
        case ReasoningPart(text=text) if thinking and text.strip():
            return paint(escape_answer_controls(text).rstrip("\n"), "dim", colour=colour) + "\n"
        case ToolPart():
            return "\n".join(format_call(part, colour=colour)) + "\n"
        case _:
            return ""


def _list_subagent_lines(
    part: Part, children: SubagentMessages, indent: str, *, colour: bool
) -> Iterator[str]:
    """Yield a line for each call of the subagent that `part` started,
    and the command that shows its session.
    """
    if (
        not isinstance(part, ToolPart)
        or part.tool != "task"
        or isinstance(part.state, ToolStatePending)
    ):
        return
    child = str((part.state.metadata or {}).get("sessionId", ""))
    for message in children.get(child, ()):
        for call in message.parts:
            if isinstance(call, ToolPart):
                yield f"{indent}{_format_mark(call, colour=colour)} {paint(format_heading(call), 'dim', colour=colour)}"
                yield from _list_subagent_lines(call, children, indent + "    ", colour=colour)
    if child in children:
        yield indent + paint(f"codeloop session show {child}", "dim", colour=colour)


def _format_mark(part: ToolPart, *, colour: bool) -> str:
    match part.state:
        case ToolStateCompleted():
            return paint("✓", "green", colour=colour)
        case ToolStateError():
            return paint("✗", "red", colour=colour)
        case _:
            return "…"
