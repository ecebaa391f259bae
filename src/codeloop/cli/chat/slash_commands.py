"""The commands of a conversation, as `/name words`."""

import shutil
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from msgspec import Struct

from codeloop.cli.exit_codes import UsageProblem
from codeloop.cli.output.style import Look, dollars, when
from codeloop.cli.target.named import find
from codeloop.cli.target.selection import check_agent, check_model, model_of
from codeloop.cli.undo_redo import redo_last, undo_last
from codeloop.client.client import Client
from codeloop.kit.terminal_text import one_line
from codeloop.schema.api.session_inputs import MessageWithParts, RunLimits, Summarize
from codeloop.schema.api.session_requests import ListSessions, MessageId, SessionId, UpdatePart
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
    NoArguments,
)
from codeloop.schema.part import TextPart
from codeloop.schema.wire import replace

WIDTH = 70


Send = Callable[[Client, str], Coroutine[Any, Any, object]]
"""Sends something to a session, named by its id."""


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
        """Where the server is, if it is one, and which directory this is."""
        ...

    def say(self, text: str, look: Look = "dim") -> None:
        """Show lines; what could steer the terminal is made inert."""
        ...

    async def enter(self, session: Session | None) -> None:
        """Go on with a session; None: with a new one, made by the next prompt."""
        ...

    async def begin(self, send: Send, shown: str = "", message_id: str | None = None) -> None:
        """Send what is answered when a turn ends, to the session, which may have to be made.

        `shown`: the prompt, which may have to wait; `message_id`: what it will be stored as.
        """
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
    commands = await talk.client.call(COMMAND_LIST, NoArguments())
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
    found = await talk.client.call(SESSION_LIST, ListSessions(scope="project", roots=True, limit=ATTACH_LISTED.value))
    own = talk.session.id if talk.session else ""
    several = len({row.directory for row in found}) > 1
    lines = [
        f"{'*' if row.id == own else ' '} {row.id}  {when(row.time.updated)}  {one_line(row.title, WIDTH)}"
        + (f"  {row.directory}" if several else "")
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
    model = model_of(words)
    if model is not None:
        await check_model(talk.client, model)
    talk.model = model
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
    provider_id, model_id = session.model.provider_id, session.model.id

    async def send(client: Client, session_id: str) -> None:
        await client.call(SUMMARIZE, Summarize(session_id=session_id, provider_id=provider_id, model_id=model_id))

    await talk.begin(send)


async def _status(talk: Talk, words: str) -> None:
    del words
    lines = [talk.place]
    agent, model = talk.agent, talk.model
    if talk.session is not None:
        session = await _current(talk)
        lines.append(f"{session.id}  {one_line(session.title, WIDTH)}  {dollars(session.cost or 0, session.tokens)}")
        agent = agent or session.agent
        if model is None and session.model is not None:
            model = ModelRef(provider_id=session.model.provider_id, model_id=session.model.id)
    chosen = f"{model.provider_id}/{model.model_id}" if model else "as configured"
    lines.append(f"agent {agent or 'as configured'}, model {chosen}, {'working' if talk.is_busy else 'idle'}")
    talk.say("\n".join(lines))


async def _queue(talk: Talk, words: str) -> None:
    session = await _current(talk)
    waiting = await talk.client.call(SESSION_QUEUED, SessionId(session_id=session.id))
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
        await talk.client.call(MESSAGE_DELETE, MessageId(session_id=session.id, message_id=chosen.info.id))
        talk.say("Cancelled.")
        return
    part = next((part for part in chosen.parts if isinstance(part, TextPart) and not part.synthetic), None)
    if part is None:
        raise UsageProblem("That prompt has no text. Cancel it with /queue cancel N.")
    await talk.client.call(
        PART_UPDATE,
        UpdatePart(
            session_id=session.id,
            message_id=chosen.info.id,
            part_id=part.id,
            part=replace(part, text=text.strip()),
        ),
    )
    talk.say("Changed.")


async def _exit(talk: Talk, words: str) -> None:
    del words
    talk.leave()


async def _current(talk: Talk) -> Session:
    """Return the session as it is now. Raises UsageProblem when there is none yet."""
    if talk.session is None:
        raise UsageProblem("There is no session yet: it begins with the first prompt.")
    return await talk.client.call(SESSION_GET, SessionId(session_id=talk.session.id))


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
    "status": Slash("", "show directory, session, agent and model", _status),
    "queue": Slash("[edit N WORDS | cancel N]", "list, change or cancel prompts that wait", _queue),
    "exit": Slash("", "leave; what runs on a server goes on", _exit),
}
"""Those of the server come after these; where names are the same, these are meant."""
