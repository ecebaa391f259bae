"""The slash commands of a conversation line by line that report something: status, cost,
context and so on.

Each is called with the conversation and the words after the command's name;
`slash_commands.py` has the table.
"""

from codeloop.cli.chat.conversation import LineConversation
from codeloop.client.formatting import format_cost, format_time
from codeloop.client.slash.jobs import format_jobs, parse_ended_job
from codeloop.client.slash.reports import (
    format_context_report,
    format_cost_report,
    format_memory_report,
)
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.jobs import JOB_END, JOB_LIST, JobId
from codeloop.schema.api.project import MEMORY_LIST
from codeloop.schema.api.session_reports import SESSION_CONTEXT, SESSION_COST
from codeloop.schema.api.session_requests import SESSION_LIST, ListSessions, SessionId
from codeloop.schema.api.session_search import SESSION_FIND, FindInSession
from codeloop.schema.errors import UsageProblem
from codeloop.schema.limits import ATTACH_LISTED
from codeloop.schema.operation import NoArguments

# Characters of a title or a prompt on a line.
TITLE_CHARS = 70


async def show_memory(chat: LineConversation, _words: str) -> None:
    """Show the notes that the project remembers."""
    chat.show_text(
        "\n".join(format_memory_report(await chat.client.call(MEMORY_LIST, NoArguments())))
    )


async def list_sessions(chat: LineConversation, _words: str) -> None:
    """List the sessions of the project, with a mark at the present one."""
    sessions = await chat.client.call(
        SESSION_LIST, ListSessions(scope="project", roots=True, limit=ATTACH_LISTED.value)
    )
    current_id = chat.session.id if chat.session else ""
    shows_directory = len({session.directory for session in sessions}) > 1
    lines = [
        f"{'*' if session.id == current_id else ' '} {session.id}  {format_time(session.time.updated)}  "
        + one_line(session.title, TITLE_CHARS)
        + (f"  {session.directory}" if shows_directory else "")
        for session in sessions
    ]
    chat.show_text("\n".join(lines) or "No sessions yet.")


async def show_status(chat: LineConversation, _words: str) -> None:
    """Show the session, its agent and model, and whether a turn runs."""
    lines = [chat.location]
    agent, model = chat.agent, chat.options.model
    if chat.session is not None:
        session = await chat.load_session()
        lines.append(
            f"{session.id}  {one_line(session.title, TITLE_CHARS)}  {format_cost(session.cost or 0, session.tokens)}"
        )
        agent = agent or session.agent
        if model is None and session.model is not None:
            model = f"{session.model.provider_id}/{session.model.id}"
    state = "working" if chat.is_busy else "idle"
    lines.append(f"agent {agent or 'as configured'}, model {model or 'as configured'}, {state}")
    chat.show_text("\n".join(lines))


async def show_context(chat: LineConversation, _words: str) -> None:
    """Show what fills the window of the model."""
    session_context = await chat.client.call(
        SESSION_CONTEXT, SessionId(session_id=(await chat.load_session()).id)
    )
    chat.show_text("\n".join(format_context_report(session_context)))


async def show_cost(chat: LineConversation, _words: str) -> None:
    """Show what the session has used, by model."""
    session_cost = await chat.client.call(
        SESSION_COST, SessionId(session_id=(await chat.load_session()).id)
    )
    chat.show_text("\n".join(format_cost_report(session_cost)))


async def show_jobs(chat: LineConversation, words: str) -> None:
    """Show what runs in the background; `end ID` ends it."""
    if job_id := parse_ended_job(words):
        await chat.client.call(JOB_END, JobId(job_id=job_id))
        chat.show_text(f"{job_id} was ended.")
        return
    chat.show_text("\n".join(format_jobs(await chat.client.call(JOB_LIST, NoArguments()))))


async def find_text(chat: LineConversation, words: str) -> None:
    """Show where the conversation contains the words."""
    if not words:
        raise UsageProblem("Name the text: /find TEXT.")
    result = await chat.client.call(
        SESSION_FIND, FindInSession(session_id=(await chat.load_session()).id, query=words)
    )
    rows = [
        f"  {format_time(hit.created)}  {hit.tool or hit.kind:10} {one_line(hit.text, TITLE_CHARS * 2)}"
        for hit in result.found[-ATTACH_LISTED.value :]
    ]
    chat.show_text(
        "\n".join(
            [*rows, f"{len(result.found)} found" + ("" if result.complete else ", and maybe more")]
        )
    )
