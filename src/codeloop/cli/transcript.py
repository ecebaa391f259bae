"""A stored session as text: prompts, answers, calls and sums, in the form in which they ran."""

from collections.abc import Collection

from codeloop.cli.output import Outlet, standard
from codeloop.cli.style import count, dollars, has_colour, paint
from codeloop.cli.toolview import lines
from codeloop.kit.plain import inert
from codeloop.schema.errors import error_message
from codeloop.schema.message import AssistantMessage, Session, UserMessage
from codeloop.schema.part import FilePart, Part, ReasoningPart, TextPart, ToolPart
from codeloop.schema.prompts import MessageWithParts


def transcript(
    session: Session, messages: list[MessageWithParts], *, thinking: bool, queued: Collection[str] = ()
) -> None:
    """Print a session on stdout; `queued`: the ids of prompts that wait for a running turn to take them up."""
    out, _ = standard(Outlet())
    colour = has_colour(out.stream)
    out.write(paint(inert(session.title), "bold", colour=colour) + "\n")
    for message in messages:
        match message.info:
            case UserMessage():
                out.write("\n" + "".join(_user(part, colour=colour) for part in message.parts))
                if message.info.id in queued:
                    out.write(paint("  queued", "yellow", colour=colour) + "\n")
            case AssistantMessage(error=error):
                out.write("".join(_assistant(part, colour=colour, thinking=thinking) for part in message.parts))
                if error is not None:
                    out.write(paint(f"! {inert(error_message(error))}", "red", colour=colour) + "\n")
    tokens = session.tokens
    whole = tokens.input + tokens.cache.read + tokens.cache.write if tokens else 0
    used = f"{count(whole)} in, {count(tokens.output)} out" if tokens else ""
    sums = " · ".join(filter(None, [used, dollars(session.cost or 0), session.id]))
    out.write("\n" + paint(sums, "dim", colour=colour) + "\n")


def _user(part: Part, *, colour: bool) -> str:
    match part:
        case TextPart(text=text) if not part.synthetic:
            return "".join(paint(f"> {line}", "cyan", colour=colour) + "\n" for line in inert(text).splitlines())
        case FilePart(filename=name, url=url):
            return paint(f"> [{inert(name or url[:80])}]", "cyan", colour=colour) + "\n"
        case _:
            return ""


def _assistant(part: Part, *, colour: bool, thinking: bool) -> str:
    match part:
        case TextPart(text=text) if text.strip():
            return inert(text).rstrip("\n") + "\n"
        case ReasoningPart(text=text) if thinking and text.strip():
            return paint(inert(text).rstrip("\n"), "dim", colour=colour) + "\n"
        case ToolPart():
            return "\n".join(lines(part, colour=colour)) + "\n"
        case _:
            return ""
