"""Follows the events of a directory, for extensions,
and runs the hook `notification` for questions to the user.
"""

from collections.abc import AsyncGenerator
from pathlib import Path

from codeloop.kit.text.undecodable import escape_undecodable
from codeloop.schema.errors import GapError, HookRefused
from codeloop.schema.event import Event, PermissionAsked, QuestionAsked, get_session_id
from codeloop.schema.wire import JSON
from codeloop.store.store import Store
from codeloop.tool.call_session import HookRunner


async def follow_directory(store: Store, directory: Path) -> AsyncGenerator[Event]:
    """Yield the new events of a directory and its sessions, without end.

    A follower that is too far behind continues at the newest event.
    """
    directory_name = escape_undecodable(str(directory))
    # By session: whether it belongs to the directory.
    belongs_here: dict[str, bool] = {}
    while True:
        try:
            async for event in store.follow():
                session_id = get_session_id(event.event)
                if session_id is None:
                    if event.directory in {None, directory_name}:
                        yield event.event
                    continue
                if session_id not in belongs_here:
                    session = store.find_session(session_id)
                    # The last event of a removed session comes when it is no longer in the store;
                    # it counts as ours.
                    belongs_here[session_id] = (
                        session is None or session.directory == directory_name
                    )
                if belongs_here[session_id]:
                    yield event.event
        # The store drops followers that are too far behind.
        except GapError:
            continue


async def send_notifications(hooks: HookRunner, store: Store, directory: Path) -> None:
    """Run the hook `notification` for each permission or question that waits for the user,
    until cancelled.
    """
    async for event in follow_directory(store, directory):
        report: JSON | None = None
        match event:
            case PermissionAsked(properties=request):
                message = f"codeloop needs your permission: {request.permission} {', '.join(request.patterns)}"
                report = {
                    "sessionID": request.session_id,
                    "type": "permission_prompt",
                    "message": message,
                }
            case QuestionAsked(properties=request):
                message = "codeloop asks you a question"
                report = {
                    "sessionID": request.session_id,
                    "type": "elicitation_dialog",
                    "message": message,
                }
            case _:
                pass
        if report is not None:
            try:
                await hooks.run("notification", report, {})
            # A notification can't be refused.
            except HookRefused:
                continue
