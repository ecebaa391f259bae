"""What is known of a session is what is stored of it, also when events were missed,
or came while it was read.
"""

from pathlib import Path

import msgspec

from codeloop.app.prompt_parts import make_local_file_part
from codeloop.client.target import Target
from codeloop.schema.api.answers import PERMISSION_LIST, QUESTION_LIST
from codeloop.schema.api.session_inputs import PROMPT_ASYNC, FilePartInput, Prompt, TextPartInput
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_GET,
    SESSION_STATUS,
    CreateSession,
    SessionId,
)
from codeloop.schema.event import (
    Event,
    MessageInfo,
    MessageUpdated,
    PartInfo,
    PartUpdated,
    PermissionAnswer,
    PermissionReplied,
    SessionInfo,
    SessionUpdated,
)
from codeloop.schema.live_events import Idle, ServerConnected, SessionState, StatusChanged
from codeloop.schema.message import AssistantMessage, Revert
from codeloop.schema.operation import Gives, Operation, Takes
from codeloop.schema.part import TextPart
from codeloop.schema.wire import replace
from codeloop.tui.state.conversation_items import NoticeItem
from codeloop.tui.state.message_log import MessageLog
from codeloop.tui.state.open_sessions import OpenSessions
from codeloop.tui.state.session_view import SessionView
from tests.support.scripted_project import make_answer, make_call, open_scripted_project, wait_until
from tests.tui.stored.client import PLACE, StoredClient

STORED = StoredClient().messages()
OLDER, NEWER = STORED[:2], STORED[2:]
IDS = [message.info.id for message in STORED]


def log_of_all() -> MessageLog:
    log = MessageLog()
    log.add(STORED)
    return log


def test_what_was_removed_meanwhile_is_gone_and_what_is_older_stays() -> None:
    log = log_of_all()
    assert log.replace_newest(NEWER[:-1], is_all=False)
    assert log.ids == IDS[:-1]


def test_what_stands_before_a_hole_is_read_again() -> None:
    log = MessageLog()
    log.add(OLDER)
    assert not log.replace_newest(NEWER[1:], is_all=False)
    assert log.ids == IDS[3:]


def test_where_nothing_older_is_stored_nothing_older_is_known() -> None:
    log = log_of_all()
    assert not log.replace_newest(NEWER, is_all=True)
    assert log.ids == IDS[2:]


def test_an_event_that_came_while_messages_were_read_is_newer_than_they() -> None:
    view = SessionView(StoredClient().session())
    part = next(part for message in STORED for part in message.parts if isinstance(part, TextPart))
    newer = replace(part, text="All of it.")
    event = PartUpdated(properties=PartInfo(session_id=part.session_id, part=newer, time=1))
    view.load(STORED, None, [event])
    assert view.log.messages[part.message_id].parts[part.id] == newer


def test_a_step_of_a_subagent_counts_once_however_often_its_event_comes() -> None:
    session = StoredClient().session()
    view = SessionView(session)
    view.update_session(replace(session, id="ses_child", parent_id=session.id))
    answer = next(message.info for message in STORED if isinstance(message.info, AssistantMessage))
    event = MessageUpdated(properties=MessageInfo(session_id="ses_child", info=answer))
    view.apply_event(event)
    view.load(STORED, None, [event])
    assert view.children.summaries["ses_child"].steps == 1


async def test_what_another_terminal_asks_in_a_session_is_asked_here_too() -> None:
    client = StoredClient()
    asked = {
        "id": "per_1",
        "sessionID": client.main,
        "permission": "bash",
        "patterns": ["ls"],
        "metadata": {},
    }
    client.answers |= {
        PERMISSION_LIST.id: [{**asked, "always": []}],
        QUESTION_LIST.id: [],
        SESSION_STATUS.id: {},
    }
    target = Target(
        client,
        PLACE,
        lambda _session: client,
        lambda path: FilePartInput(mime="", url=path.as_uri()),
    )
    view = await OpenSessions(target, lambda _event: None, lambda _words: None).open(
        client.session()
    )
    assert not view.is_busy
    assert list(view.requests) == ["per_1"]


class SlowToTell(StoredClient):
    """A client whose answers arrive after the events that make them out of date."""

    def __init__(self, late: dict[str, Event]) -> None:
        super().__init__()
        self.late = late
        self.heard: list[Event] = []

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        answer = await super().call(operation, args)
        if (event := self.late.get(operation.id)) is not None:
            self.say(event)
            await wait_until(lambda: event in self.heard)
        return answer


async def test_what_ended_and_was_answered_while_a_session_was_read_is_over() -> None:
    main = StoredClient().main
    answer = PermissionAnswer(session_id=main, request_id="per_1", reply="once")
    client = SlowToTell(
        {
            SESSION_STATUS.id: StatusChanged(
                properties=SessionState(session_id=main, status=Idle())
            ),
            PERMISSION_LIST.id: PermissionReplied(properties=answer),
        }
    )
    asked = {
        "id": "per_1",
        "sessionID": main,
        "permission": "bash",
        "patterns": ["ls"],
        "metadata": {},
        "always": [],
    }
    client.answers |= {
        PERMISSION_LIST.id: [asked],
        QUESTION_LIST.id: [],
        SESSION_STATUS.id: {main: {"type": "busy"}},
    }
    target = Target(
        client,
        PLACE,
        lambda _session: client,
        lambda path: FilePartInput(mime="", url=path.as_uri()),
    )
    sessions = OpenSessions(target, client.heard.append, lambda _words: None)
    await sessions.start()
    view = await sessions.open(client.session())
    assert not view.is_busy
    assert not view.requests
    await sessions.stop()


async def test_a_title_and_an_answer_that_came_while_a_session_was_read_again_stay_though_the_reading_failed() -> (
    None
):
    client = SlowToTell({})
    main = client.main
    asked = {
        "id": "per_1",
        "sessionID": main,
        "permission": "bash",
        "patterns": ["ls"],
        "metadata": {},
        "always": [],
    }
    client.answers |= {
        PERMISSION_LIST.id: [asked],
        QUESTION_LIST.id: [],
        SESSION_STATUS.id: {main: {"type": "busy"}},
    }
    target = Target(
        client,
        PLACE,
        lambda _session: client,
        lambda path: FilePartInput(mime="", url=path.as_uri()),
    )
    sessions = OpenSessions(target, client.heard.append, lambda _words: None)
    await sessions.start()
    view = await sessions.open(client.session())
    newer = SessionInfo(session_id=main, info=replace(client.session(), title="Newer"))
    idle = StatusChanged(properties=SessionState(session_id=main, status=Idle()))
    client.late |= {SESSION_GET.id: SessionUpdated(properties=newer)}
    client.late |= {SESSION_STATUS.id: idle}
    del client.answers[QUESTION_LIST.id]
    client.say(ServerConnected())
    await wait_until(lambda: idle in client.heard)
    await wait_until(lambda: not sessions._tasks)
    assert (view.session.title, view.is_busy, list(view.requests)) == ("Newer", False, ["per_1"])
    await sessions.stop()


async def test_what_a_subagent_of_a_subagent_asked_before_its_session_was_opened_is_asked(
    tmp_path: Path,
) -> None:
    script = [make_answer(make_call("bash", command="touch a"))]
    async with open_scripted_project(tmp_path, script, permission={"bash": "ask"}) as it:
        child = await it.client.call(SESSION_CREATE, CreateSession(parent_id=it.session_id))
        grandchild = await it.client.call(SESSION_CREATE, CreateSession(parent_id=child.id))
        other = await it.client.call(SESSION_CREATE, CreateSession())
        prompt = Prompt(session_id=grandchild.id, parts=[TextPartInput(text="go")])
        await it.client.call(PROMPT_ASYNC, prompt)
        request = await it.question()
        target = Target(it.client, str(it.work), lambda _session: it.client, make_local_file_part)
        sessions = OpenSessions(target, lambda _event: None, lambda _words: None)
        for opened, shown in (
            (it.session_id, [request.id]),
            (child.id, [request.id]),
            (other.id, []),
        ):
            session = await it.client.call(SESSION_GET, SessionId(session_id=opened))
            assert list((await sessions.open(session)).requests) == shown


def test_an_undo_is_not_called_done_before_all_files_are_restored() -> None:
    session = StoredClient().session()
    view = SessionView(session)
    view.load(STORED, None)

    def shown(diff: str | None) -> str:
        view.update_session(replace(session, revert=Revert(message_id=IDS[0], diff=diff)))
        return "\n".join(
            item.text for item in view.list_items(IDS[0]) if isinstance(item, NoticeItem)
        )

    assert "Undoing" in shown(None)
    assert shown("") == "Undone from here on; /redo brings it back."


async def test_an_undo_that_was_missed_names_the_files_that_it_restored() -> None:
    client = StoredClient()
    client.answers |= {PERMISSION_LIST.id: [], QUESTION_LIST.id: [], SESSION_STATUS.id: {}}
    target = Target(
        client,
        PLACE,
        lambda _session: client,
        lambda path: FilePartInput(mime="", url=path.as_uri()),
    )
    sessions = OpenSessions(target, lambda _event: None, lambda _words: None)
    await sessions.start()
    view = await sessions.open(client.session())
    revert = Revert(message_id=IDS[2], diff="Index: cart.py\n")
    client.answers[f"{SESSION_GET.id} {client.main}"] = msgspec.to_builtins(
        replace(client.session(), revert=revert)
    )
    client.say(ServerConnected())
    await wait_until(lambda: view.display_state.undone_from == IDS[2])
    assert view.display_state.undone_files == ["cart.py"]
    await sessions.stop()
