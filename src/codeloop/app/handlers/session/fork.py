"""Handler that forks a session: its messages are copied, with new ids, to a new session."""

import re
from itertools import takewhile

from codeloop import __version__
from codeloop.agent.calls.call_rules import find_profile, keep_ceilings, list_ceilings, set_ceilings
from codeloop.agent.moves import is_open
from codeloop.app.handlers.session.session_copies import (
    choose_copy_time,
    give_new_ids,
    make_events,
    sum_usage,
)
from codeloop.app.project import Project
from codeloop.schema.api.session_requests import ForkSession
from codeloop.schema.errors import OperationError
from codeloop.schema.ids import make_slug, new_id
from codeloop.schema.jobs import JOBS_KEY
from codeloop.schema.message import FORK_KEY, Session, SessionTime
from codeloop.schema.permission import PROFILE_KEY
from codeloop.schema.wire import JSON, replace

_NUMBERED_TITLE = r"(?s)(.*) \(fork #(\d+)\)"


async def fork_session(project: Project, args: ForkSession) -> Session:
    """Copy a session up to a message, which is not copied, in one transaction;
    messages keep their times.

    The copy belongs to the directory of `project`. It has no parent, but no more permissions than
    the original, even if that is a subagent's session.
    Undone messages, and those of a running turn, are not copied.
    Raises OperationError (NotFoundError).
    """
    conversation = project.store.read_conversation(args.session_id)
    session = conversation.session
    undone_id = session.revert.message_id if session.revert else None
    end_ids = {args.message_id, undone_id} - {None}
    if args.message_id is not None and all(
        entry.info.id != args.message_id for entry in conversation.entries
    ):
        raise OperationError("NotFoundError", f"Message not found: {args.message_id}")
    entries = tuple(
        takewhile(
            lambda entry: entry.info.id not in end_ids and not is_open(entry), conversation.entries
        )
    )
    cost, tokens = sum_usage(entries)
    now = choose_copy_time(entries)
    project_root = project.settings.project_root
    copied_session = replace(
        session,
        id=new_id("ses"),
        slug=make_slug(),
        directory=project_root.directory_name,
        path=project_root.relative_path,
        title=_make_title(project, session.title),
        version=__version__,
        parent_id=None,
        metadata={**(_make_metadata(project, session) or {}), FORK_KEY: _describe_origin(args)},
        cost=cost,
        tokens=tokens,
        summary=None,
        share=None,
        revert=None,
        time=SessionTime(created=now, updated=now),
    )
    project.store.append(*make_events(copied_session, give_new_ids(entries, copied_session.id)))
    # The copy's requests begin with the same bytes, which the service has cached.
    facts = (
        project.store.facts.find(session.id)
        if copied_session.directory == session.directory
        else None
    )
    if facts is not None:
        project.store.facts.add(copied_session.id, facts)
    return copied_session


def _make_metadata(project: Project, session: Session) -> JSON | None:
    """Return the metadata of a copy, with the ceilings of the original's parents,
    since the copy has no parents.
    """
    engine = project.engine
    # Commands in the background stay those of the original.
    own_metadata = {
        key: value for key, value in (session.metadata or {}).items() if key != JOBS_KEY
    }
    metadata = set_ceilings(own_metadata or None, keep_ceilings(list_ceilings(engine, session.id)))
    if session.parent_id is None:
        return metadata
    # A subagent's session has its profile from its parent.
    return {**(metadata or {}), PROFILE_KEY: find_profile(engine, session.id)}


def _describe_origin(args: ForkSession) -> JSON:
    """Return the ids of the session and message that a copy was made from,
    for the copy's metadata.
    """
    return {
        "sessionID": args.session_id,
        **({"messageID": args.message_id} if args.message_id else {}),
    }


def _make_title(project: Project, title: str) -> str:
    """Return the next free title of a copy: `name (fork #1)`.
    A copy of a copy is numbered in the same way.
    """
    match = re.fullmatch(_NUMBERED_TITLE, title)
    start = f"{match[1] if match else title} (fork #"
    matches = (
        re.fullmatch(_NUMBERED_TITLE, each) for each in project.store.queries.list_titles(start)
    )
    used = [int(each[2]) for each in matches if each]
    return f"{start}{max(used, default=0) + 1})"
