"""The commands of a conversation, as `/name words`."""

import shutil
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec import Struct

from codeloop.cli.chosen import check_agent, model_of
from codeloop.cli.exits import UsageProblem
from codeloop.cli.named import find
from codeloop.cli.reverting import redo_last, undo_last
from codeloop.cli.style import Look, dollars, when
from codeloop.client.client import Client
from codeloop.kit.plain import one_line
from codeloop.schema.command import Command
from codeloop.schema.limits import ATTACH_LISTED
from codeloop.schema.message import ModelRef, Session
from codeloop.schema.operation import (
    COMMAND_LIST,
    MESSAGE_DELETE,
    PART_UPDATE,
    SESSION_GET,
    SESSION_LIST,
    SESSION_QUEUED,
    SUMMARIZE,
    Operation,
)
from codeloop.schema.part import TextPart
from codeloop.schema.prompts import MessageWithParts, RunLimits
from codeloop.schema.wire import replace

WIDTH = 70


class Talk(Protocol):
    """What a command needs of the conversation. `agent` and `model` are for the prompts that follow."""

    agent: str | None
    model: ModelRef | None

    @property
    def client(self) -> Client:
        """What reaches the session's directory."""
        ...

    @property
    def session(self) -> Session | None:
        """The session, when there is one yet."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether something runs."""
        ...

    @property
    def limits(self) -> RunLimits:
        """What bounds a turn, and whether somebody can be asked."""
        ...

    @property
    def place(self) -> str:
        """Where the server is, and which directory of it this is."""
        ...

    def say(self, text: str, look: Look = "dim") -> None:
        """Show lines; what could steer the terminal is made inert."""
        ...

    async def enter(self, session: Session | None) -> None:
        """Go on with a session; None: with a new one, made by the next prompt."""
        ...

    async def begin(self, operation: Operation, shown: str, **args: Any) -> None:
        """Start what is answered when a turn ends; `shown`: the prompt, which may have to wait."""
        ...

    def leave(self) -> None:
        """End the conversation."""
        ...


class Slash(Struct, frozen=True):
    """A command: the words after its name, what it does, and that."""

    words: str
    text: str
    run: Callable[[Talk, str], Awaitable[None]]


async def _help(talk: Talk, words: str) -> None:
    del words
    rows = [(f"/{name} {row.words}".rstrip(), row.text) for name, row in COMMANDS.items()]
    rows += [("!COMMAND", "run a command line; the model sees it later"), ("@FILE", "in a prompt: attach a file")]
    commands: list[Command] = await talk.client.call(COMMAND_LIST)
    rows += [(f"/{row.name}", row.description or row.source or "") for row in commands if row.name not in COMMANDS]
    wide = max(len(name) for name, _ in rows)
    room = max(shutil.get_terminal_size().columns - wide - 5, 20)
    talk.say("\n".join(f"  {name.ljust(wide)}  {one_line(text, room)}".rstrip() for name, text in rows))
    talk.say("Ctrl-C ends the turn, a second one this program; Ctrl-D leaves. What is typed meanwhile is queued.")


async def _new(talk: Talk, words: str) -> None:
    del words
    await talk.enter(None)
    talk.say("The next prompt begins a new session.")


async def _sessions(talk: Talk, words: str) -> None:
    del words
    found: list[Session] = await talk.client.call(SESSION_LIST, scope="project", roots=True, limit=ATTACH_LISTED.value)
    own = talk.session.id if talk.session else ""
    lines = [
        f"{'*' if row.id == own else ' '} {row.id}  {when(row.time.updated)}  {one_line(row.title, WIDTH)}"
        for row in found
    ]
    talk.say("\n".join(lines) or "There is no session yet.")


async def _session(talk: Talk, words: str) -> None:
    if not words:
        raise UsageProblem("Say which: /session ID. /sessions lists them.")
    await talk.enter(await find(talk.client, words))


async def _agent(talk: Talk, words: str) -> None:
    await check_agent(talk.client, words)
    talk.agent = words
    talk.say(f"The next prompts are for {words}.")


async def _model(talk: Talk, words: str) -> None:
    talk.model = model_of(words)
    talk.say(f"The next prompts are for {words}.")


async def _undo(talk: Talk, words: str) -> None:
    del words
    await undo_last(
        talk.client, await _current(talk), dry_run=False, say=talk.say, warn=lambda text: talk.say(text, "red")
    )


async def _redo(talk: Talk, words: str) -> None:
    del words
    await redo_last(
        talk.client, await _current(talk), dry_run=False, say=talk.say, warn=lambda text: talk.say(text, "red")
    )


async def _compact(talk: Talk, words: str) -> None:
    del words
    session = await _current(talk)
    if session.model is None:
        raise UsageProblem("There is nothing to summarise yet.")
    await talk.begin(SUMMARIZE, "", provider_id=session.model.provider_id, model_id=session.model.id)


async def _status(talk: Talk, words: str) -> None:
    del words
    lines = [talk.place]
    agent, model = talk.agent, talk.model
    if talk.session is not None:
        session = await _current(talk)
        lines.append(f"{session.id}  {one_line(session.title, WIDTH)}  {dollars(session.cost or 0)}")
        agent = agent or session.agent
        if model is None and session.model is not None:
            model = ModelRef(provider_id=session.model.provider_id, model_id=session.model.id)
    chosen = f"{model.provider_id}/{model.model_id}" if model else "as configured"
    lines.append(f"agent {agent or 'as configured'}, model {chosen}, {'working' if talk.is_busy else 'idle'}")
    talk.say("\n".join(lines))


async def _queue(talk: Talk, words: str) -> None:
    session = await _current(talk)
    waiting: list[MessageWithParts] = await talk.client.call(SESSION_QUEUED, session_id=session.id)
    action, _, rest = words.partition(" ")
    number, _, text = rest.strip().partition(" ")
    if not words:
        lines = (f"  {at} {one_line(_text(row), WIDTH)}" for at, row in enumerate(waiting, 1))
        talk.say("\n".join(lines) or "No prompt waits.")
        return
    if action not in {"edit", "cancel"} or not number.isdecimal() or (action == "edit" and not text.strip()):
        raise UsageProblem("It is /queue, /queue edit N NEW WORDS, or /queue cancel N.")
    if len(number) > 6 or not 0 < int(number) <= len(waiting):
        raise UsageProblem(f"There is no prompt {number[:6]} that waits. /queue lists them.")
    chosen = waiting[int(number) - 1]
    if action == "cancel":
        await talk.client.call(MESSAGE_DELETE, session_id=session.id, message_id=chosen.info.id)
        talk.say("Cancelled.")
        return
    part = next((part for part in chosen.parts if isinstance(part, TextPart) and not part.synthetic), None)
    if part is None:
        raise UsageProblem("That prompt has no text. Cancel it with /queue cancel N.")
    await talk.client.call(
        PART_UPDATE,
        session_id=session.id,
        message_id=chosen.info.id,
        part_id=part.id,
        part=replace(part, text=text.strip()),
    )
    talk.say("Changed.")


async def _exit(talk: Talk, words: str) -> None:
    del words
    talk.leave()


async def _current(talk: Talk) -> Session:
    """Give the session as it is now. Raises UsageProblem when there is none yet."""
    if talk.session is None:
        raise UsageProblem("There is no session yet: it begins with the first prompt.")
    return await talk.client.call(SESSION_GET, session_id=talk.session.id)


def _text(message: MessageWithParts) -> str:
    return " ".join(part.text for part in message.parts if isinstance(part, TextPart) and not part.synthetic)


COMMANDS: dict[str, Slash] = {
    "help": Slash("", "list the commands", _help),
    "new": Slash("", "begin a new session", _new),
    "sessions": Slash("", "list the sessions of this project", _sessions),
    "session": Slash("ID", "go on with another session", _session),
    "agent": Slash("NAME", "the agent for the next prompts", _agent),
    "model": Slash("PROVIDER/MODEL", "the model for the next prompts", _model),
    "undo": Slash("", "take back what the last turn did to files", _undo),
    "redo": Slash("", "take the undo back", _redo),
    "compact": Slash("", "put a summary in the place of the conversation", _compact),
    "status": Slash("", "show server, session, agent and model", _status),
    "queue": Slash("[edit N WORDS | cancel N]", "list, change or cancel prompts that wait", _queue),
    "exit": Slash("", "leave; what runs goes on", _exit),
}
"""Those of the server come after these; where names are the same, these are meant."""
