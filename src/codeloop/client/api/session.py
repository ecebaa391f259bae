"""The operations of `session`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.live import Status
from codeloop.schema.message import FileDiff, Session, Todo
from codeloop.schema.operation import (
    ABORT,
    COMMAND,
    MESSAGE_DELETE,
    MESSAGE_GET,
    PROMPT,
    PROMPT_ASYNC,
    SESSION_CHILDREN,
    SESSION_CREATE,
    SESSION_DELETE,
    SESSION_DIFF,
    SESSION_EVERYTHING,
    SESSION_FORK,
    SESSION_GET,
    SESSION_IMPORT,
    SESSION_INIT,
    SESSION_LIST,
    SESSION_MESSAGES,
    SESSION_QUEUED,
    SESSION_REVERT,
    SESSION_SEARCH,
    SESSION_SHARE,
    SESSION_SHELL,
    SESSION_STATS,
    SESSION_STATUS,
    SESSION_TODO,
    SESSION_UNREVERT,
    SESSION_UNSHARE,
    SESSION_UPDATE,
    SUMMARIZE,
)
from codeloop.schema.prompts import InitSession, MessageWithParts, Prompt, RunCommand, RunShell, Summarize
from codeloop.schema.sessions import (
    AskSessionDiff,
    AskStats,
    CreateSession,
    ForkSession,
    ImportedSession,
    ImportSession,
    ListEverything,
    ListMessages,
    ListSessions,
    OfOneMessage,
    OfOneSession,
    RevertedSession,
    RevertSession,
    SearchResult,
    SearchSessions,
    Stats,
    UnrevertSession,
    UpdateSession,
)


async def create(client: Client, args: CreateSession | None = None) -> Session:
    """POST /session.

    Makes a session; everything may be left out.
    """
    return await client.call(SESSION_CREATE, **(asdict(args) if args else {}))


async def list_(client: Client, args: ListSessions | None = None) -> list[Session]:
    """GET /session.

    Newest change first, only sessions of this project.

    `path`: those at or below this directory of the work tree, "" for all; `scope="project"`: all. Else `directory`:
    those of exactly that directory; the top of a repository's work tree stands for all. `start`: changed at or after
    (ms since the epoch); `search`: in the title; `roots`: no child sessions.
    """
    return await client.call(SESSION_LIST, **(asdict(args) if args else {}))


async def status(client: Client) -> dict[str, Status]:
    """GET /session/status."""
    return await client.call(SESSION_STATUS)


async def search(client: Client, args: SearchSessions) -> SearchResult:
    """GET /session/search.

    Looks for a text in titles, prompts and answers; case does not matter.
    """
    return await client.call(SESSION_SEARCH, **asdict(args))


async def everything(client: Client, args: ListEverything | None = None) -> list[Session]:
    """GET /session/everything.

    Sessions of every project, newest change first.
    """
    return await client.call(SESSION_EVERYTHING, **(asdict(args) if args else {}))


async def stats(client: Client, args: AskStats | None = None) -> Stats:
    """GET /session/stats.

    Sums over this project, or over `everything` that is stored. `days`: today and so many days before, less one.
    """
    return await client.call(SESSION_STATS, **(asdict(args) if args else {}))


async def import_(client: Client, args: ImportSession) -> ImportedSession:
    """POST /session/import.

    A session as `export` writes it, read as it is: an object `info`, a list `messages` of `{info, parts}`.
    """
    return await client.call(SESSION_IMPORT, **asdict(args))


async def get(client: Client, args: OfOneSession) -> Session:
    """GET /session/{sessionID}."""
    return await client.call(SESSION_GET, **asdict(args))


async def update(client: Client, args: UpdateSession) -> Session:
    """PATCH /session/{sessionID}.

    Changes what is given. `permission` takes the place of the session's rules.
    """
    return await client.call(SESSION_UPDATE, **asdict(args))


async def delete(client: Client, args: OfOneSession) -> bool:
    """DELETE /session/{sessionID}."""
    return await client.call(SESSION_DELETE, **asdict(args))


async def children(client: Client, args: OfOneSession) -> list[Session]:
    """GET /session/{sessionID}/children."""
    return await client.call(SESSION_CHILDREN, **asdict(args))


async def todo(client: Client, args: OfOneSession) -> list[Todo]:
    """GET /session/{sessionID}/todo."""
    return await client.call(SESSION_TODO, **asdict(args))


async def fork(client: Client, args: ForkSession) -> Session:
    """POST /session/{sessionID}/fork.

    Copies a session: all of it, or the messages before one.
    """
    return await client.call(SESSION_FORK, **asdict(args))


async def queued(client: Client, args: OfOneSession) -> list[MessageWithParts]:
    """GET /session/{sessionID}/queued."""
    return await client.call(SESSION_QUEUED, **asdict(args))


async def messages(client: Client, args: ListMessages) -> list[MessageWithParts]:
    """GET /session/{sessionID}/message.

    The newest `limit` messages (all without it), or those older than the cursor `before`.
    """
    return await client.call(SESSION_MESSAGES, **asdict(args))


async def message(client: Client, args: OfOneMessage) -> MessageWithParts:
    """GET /session/{sessionID}/message/{messageID}."""
    return await client.call(MESSAGE_GET, **asdict(args))


async def delete_message(client: Client, args: OfOneMessage) -> bool:
    """DELETE /session/{sessionID}/message/{messageID}."""
    return await client.call(MESSAGE_DELETE, **asdict(args))


async def prompt(client: Client, args: Prompt) -> MessageWithParts:
    """POST /session/{sessionID}/message."""
    return await client.call(PROMPT, **asdict(args))


async def prompt_async(client: Client, args: Prompt) -> None:
    """POST /session/{sessionID}/prompt_async."""
    await client.call(PROMPT_ASYNC, **asdict(args))


async def command(client: Client, args: RunCommand) -> MessageWithParts:
    """POST /session/{sessionID}/command.

    Runs a command by name. `arguments`: what was typed after it; `model`: `provider/model`.
    """
    return await client.call(COMMAND, **asdict(args))


async def summarize(client: Client, args: Summarize) -> bool:
    """POST /session/{sessionID}/summarize.

    Puts a summary in the place of the conversation; nothing is deleted.
    """
    return await client.call(SUMMARIZE, **asdict(args))


async def abort(client: Client, args: OfOneSession) -> bool:
    """POST /session/{sessionID}/abort."""
    return await client.call(ABORT, **asdict(args))


async def revert(client: Client, args: RevertSession) -> RevertedSession:
    """POST /session/{sessionID}/revert.

    Takes a session back to before a message, or to before the step that holds a part of it.

    `dry_run`: only tell what would become of the files.
    """
    return await client.call(SESSION_REVERT, **asdict(args))


async def unrevert(client: Client, args: UnrevertSession) -> RevertedSession:
    """POST /session/{sessionID}/unrevert.

    Takes a reverted session forward again, with its files. `dry_run` as in RevertSession.
    """
    return await client.call(SESSION_UNREVERT, **asdict(args))


async def diff(client: Client, args: AskSessionDiff) -> list[FileDiff]:
    """GET /session/{sessionID}/diff.

    What the turn of one prompt changed; without it, what a revert has undone.
    """
    return await client.call(SESSION_DIFF, **asdict(args))


async def shell(client: Client, args: RunShell) -> MessageWithParts:
    """POST /session/{sessionID}/shell.

    Runs a command line as a person (not the model) types it; it becomes a message that the model sees later.
    """
    return await client.call(SESSION_SHELL, **asdict(args))


async def init(client: Client, args: InitSession) -> bool:
    """POST /session/{sessionID}/init.

    Has the model write the project's AGENTS.md.
    """
    return await client.call(SESSION_INIT, **asdict(args))


async def share(client: Client, args: OfOneSession) -> Session:
    """POST /session/{sessionID}/share."""
    return await client.call(SESSION_SHARE, **asdict(args))


async def unshare(client: Client, args: OfOneSession) -> Session:
    """DELETE /session/{sessionID}/share."""
    return await client.call(SESSION_UNSHARE, **asdict(args))
