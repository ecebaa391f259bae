"""Whatever is stored, a service that checks the pairing of calls and results takes what is sent."""

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.agent.request.projection import (
    INTERRUPTED_MARK,
    NO_RESULT,
    make_file_piece,
    make_model_messages,
    project_conversation,
)
from codeloop.agent.request.request_cache import RequestCache
from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    ImagePiece,
    ModelInfo,
    ReasoningPiece,
    ResultPiece,
    TextPiece,
    ToolModelMessage,
    UserModelMessage,
)
from codeloop.model.wire.encoding import sanitize_call_id
from codeloop.schema.errors import ErrorText, MessageAbortedError
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import (
    FilePart,
    Part,
    ReasoningPart,
    Span,
    StepStartPart,
    TextPart,
    ToolPart,
    ToolStart,
    ToolState,
    ToolStateCompleted,
    ToolStateError,
    ToolStatePending,
    ToolStateRunning,
    ToolTime,
)
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, Entry
from tests.store.states import assistant, session, user
from tests.support.examples import scale_examples
from tests.support.scripted_project import check_turns

SESSION = session()
OF: dict[str, Any] = {"id": "prt_1", "session_id": SESSION.id, "message_id": "msg_1"}
BLIND = ModelInfo(provider_id="p", id="blind", name="B")
SEEING = ModelInfo(
    provider_id="p", id="seeing", name="S", input=frozenset({"text", "image", "pdf"})
)
TIME = ToolTime(start=1, end=2)
PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()
ABORTED = MessageAbortedError(data=ErrorText(message="Aborted"))


def file(mime: str, url: str, name: str | None = "a") -> FilePart:
    return FilePart(mime=mime, url=url, filename=name, **OF)


def answer(
    *parts: Part, finish: str | None = "stop", error: Any = None, done: int | None = 3
) -> Entry:
    info = assistant(SESSION.id, "msg_parent", at=2, done=done)
    return Entry(replace(info, finish=finish, error=error), parts)


def tool(state: ToolState, call_id: str = "c", name: str = "bash") -> ToolPart:
    return ToolPart(call_id=call_id, tool=name, state=state, **OF)


WORDS = st.sampled_from(["", " ", "\n", "hello", "ä\u2028", "x" * 50])
OBJECTS = st.dictionaries(
    st.text(max_size=3), st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=3
)
FILES = st.builds(
    file,
    st.sampled_from(["image/png", "application/pdf", "text/plain", "audio/wav", ""]),
    st.sampled_from(
        [
            PNG,
            "data:text/plain;base64,???",
            "data:,a%20b",
            "file:///a",
            "",
            "data:image/png;base64,",
        ]
    ),
    st.sampled_from([None, "", "a.png"]),
)
STATES = st.one_of(
    st.builds(ToolStatePending, input=st.just({}), raw=st.just("")),
    st.builds(ToolStateRunning, input=OBJECTS, time=st.just(ToolStart(start=1))),
    st.builds(
        ToolStateCompleted, input=OBJECTS, output=WORDS, title=st.just(""), metadata=st.just({}), time=st.just(TIME),
        attachments=st.one_of(st.none(), st.lists(FILES, max_size=2)),
    ),
    st.builds(
        ToolStateError, input=OBJECTS, error=st.sampled_from(["no", "Interrupted"]), time=st.just(TIME),
        metadata=st.sampled_from([None, {}, {"interrupted": True, "output": "so far"}, {"interrupted": True}]),
    ),
)  # fmt: skip
CALL_IDS = st.sampled_from(["", "a", "a_1", "a_2", "b", "call_1", "call_2"])
PARTS = st.lists(
    st.one_of(
        st.builds(lambda words: TextPart(text=words, **OF), WORDS),
        st.builds(
            lambda words, meta: ReasoningPart(text=words, time=Span(start=1), metadata=meta, **OF),
            WORDS,
            OBJECTS,
        ),
        st.builds(tool, STATES, CALL_IDS, st.sampled_from(["bash", "read", "invalid"])),
        st.just(StepStartPart(**OF)),
        FILES,
    ),
    max_size=6,
)
DONE = st.builds(
    lambda parts, error: answer(*parts, error=error), PARTS, st.sampled_from([None, None, ABORTED])
)
OPEN = st.builds(lambda parts: answer(*parts, finish=None, done=None), PARTS)
ASKED = st.builds(lambda parts: Entry(user(SESSION.id), tuple(parts)), PARTS)
MODELS = st.sampled_from([BLIND, SEEING])


@pytest.mark.slow
@settings(max_examples=scale_examples(120))
@given(entries=st.lists(st.one_of(ASKED, DONE, OPEN), max_size=6), info=MODELS)
def test_every_call_is_paired_and_no_turn_is_empty(entries: list[Entry], info: ModelInfo) -> None:
    turns = project_conversation(entries, info)
    check_turns(turns)
    made = [piece.id for turn in turns if isinstance(turn, AssistantModelMessage) for piece in turn.content
            if isinstance(piece, CallPiece)]  # fmt: skip
    stored = [part for entry in entries if isinstance(entry.info, AssistantMessage) for part in entry.parts
              if isinstance(part, ToolPart)]  # fmt: skip
    assert len(made) == len(stored), "no call is lost"


@pytest.mark.slow
@settings(max_examples=scale_examples(25))
@given(
    entries=st.lists(st.one_of(ASKED, DONE), max_size=6),
    more=st.lists(st.one_of(ASKED, DONE, OPEN), max_size=3),
)
def test_a_longer_conversation_only_adds_turns(entries: list[Entry], more: list[Entry]) -> None:
    short = project_conversation(entries, SEEING)
    assert project_conversation([*entries, *more], SEEING)[: len(short)] == short


@pytest.mark.slow
@settings(max_examples=scale_examples(50))
@given(
    entries=st.lists(st.one_of(ASKED, DONE), min_size=1, max_size=6),
    more=st.lists(DONE, max_size=3),
)
def test_a_prefix_gives_the_same_objects_for_what_has_not_changed(
    entries: list[Entry], more: list[Entry]
) -> None:
    prefix = RequestCache()
    short = prefix.get_messages(Conversation(SESSION, tuple(entries)), SEEING, 1)
    long = prefix.get_messages(Conversation(SESSION, (*entries, *more)), SEEING, 1)
    assert all(a is b for a, b in zip(short, long, strict=False))
    assert long == project_conversation([*entries, *more], SEEING)


@pytest.mark.parametrize(
    "ids", [["call_0"], ["bash:0", "bash_0"], [""], ["x" * 70 + "1", "x" * 70 + "2"], ["a", "a"]]
)
def test_ids_of_calls_are_unique_over_a_whole_request(ids: list[str]) -> None:
    done = ToolStateCompleted(input={}, output="out", title="", metadata={}, time=TIME)
    entries = [
        answer(
            *(replace(tool(done, name="bash"), call_id=each) for each in ids), finish="tool-calls"
        )
        for _ in range(12)
    ]
    turns = project_conversation(entries, SEEING)
    check_turns(turns)
    asked = (turn for turn in turns if isinstance(turn, AssistantModelMessage))
    calls = [piece.id for turn in asked for piece in turn.content if isinstance(piece, CallPiece)]
    results = [
        piece.call_id
        for turn in turns
        if isinstance(turn, ToolModelMessage)
        for piece in turn.content
    ]
    assert calls == results
    assert len({sanitize_call_id(each)[:64] for each in calls}) == len(calls) == 12 * len(ids)
    # Step by step, with the last one taken back once, the requests are the same.
    cache = RequestCache()
    for count in (*range(1, 13), 5, 12):
        messages = cache.get_messages(Conversation(SESSION, tuple(entries[:count])), SEEING, 0)
        assert messages == project_conversation(entries[:count], SEEING)


def test_a_prefix_makes_a_changed_entry_anew_and_all_for_another_model() -> None:
    prefix = RequestCache()
    before = answer(tool(ToolStatePending(input={}, raw="")), finish="tool-calls", done=None)
    done = ToolStateCompleted(input={}, output="ok", title="", metadata={}, time=TIME)
    after = Entry(before.info, (tool(done),))
    told = prefix.get_messages(Conversation(SESSION, (before,)), BLIND, 1)[1]
    assert isinstance(told, ToolModelMessage)
    assert told.content[0].output == NO_RESULT
    told = prefix.get_messages(Conversation(SESSION, (after,)), BLIND, 1)[1]
    assert isinstance(told, ToolModelMessage)
    assert told.content[0].output == "ok"
    picture = Entry(user(SESSION.id), (file("image/png", PNG),))
    view = Conversation(SESSION, (picture,))
    kinds = [
        type(prefix.get_messages(view, info, 1)[0].content[0]) for info in (BLIND, SEEING, BLIND)
    ]
    assert kinds == [TextPiece, ImagePiece, TextPiece]


def test_an_answer_is_sent_back_with_its_thinking_text_calls_and_results() -> None:
    done = ToolStateCompleted(
        input={"command": "ls"}, output="", title="", metadata={}, time=TIME, attachments=None
    )
    entry = answer(
        ReasoningPart(text="hm", time=Span(start=1, end=2), metadata={"signature": "s"}, **OF),
        TextPart(text="Look.", **OF),
        tool(done),
        finish="tool-calls",
    )
    assert make_model_messages(entry, BLIND) == (
        AssistantModelMessage(
            (
                ReasoningPiece("hm", {"signature": "s"}),
                TextPiece("Look."),
                CallPiece("c", "bash", '{"command":"ls"}'),
            ),
            "scripted/script",
        ),
        ToolModelMessage((ResultPiece("c", "bash", "(no output)"),)),
    )


@pytest.mark.parametrize("entry", [answer(error=ABORTED), answer(finish=None, done=None)])
def test_a_broken_answer_is_sent_as_text_with_a_mark_and_without_its_thinking(entry: Entry) -> None:
    parts = (ReasoningPart(text="hm", time=Span(start=1), **OF), TextPart(text="half a", **OF))
    (turn,) = make_model_messages(Entry(entry.info, parts), BLIND)
    assert turn.content == (TextPiece("half a"), TextPiece(INTERRUPTED_MARK))
    assert make_model_messages(Entry(entry.info, parts[:1]), BLIND) == ()


def test_ignored_text_and_other_peoples_parts_are_not_sent() -> None:
    hidden = TextPart(text="secret", ignored=True, **OF)
    assert make_model_messages(Entry(user(SESSION.id), (hidden, StepStartPart(**OF))), BLIND) == ()
    assert make_model_messages(
        Entry(user(SESSION.id), (TextPart(text="made", synthetic=True, **OF),)), BLIND
    ) == (UserModelMessage((TextPiece("made"),)),)


def test_what_a_tool_attaches_follows_its_result() -> None:
    done = ToolStateCompleted(
        input={},
        output="Image",
        title="",
        metadata={},
        time=TIME,
        attachments=[file("image/png", PNG)],
    )
    turns = make_model_messages(answer(tool(done, name="read"), finish="tool-calls"), SEEING)
    assert [type(turn) for turn in turns] == [
        AssistantModelMessage,
        ToolModelMessage,
        UserModelMessage,
    ]
    assert turns[2].content == (
        TextPiece("Attached by the tool read:"),
        ImagePiece("image/png", "iVBORw==", "a"),
    )


@pytest.mark.parametrize(
    ("part", "info", "piece"),
    [
        (file("image/png", PNG), SEEING, ImagePiece("image/png", "iVBORw==", "a")),
        (file("image/png", PNG), BLIND, TextPiece("[a: p/blind does not take this image/png]")),
        (
            file("application/pdf", "data:application/pdf;base64,AA=="),
            SEEING,
            ImagePiece("application/pdf", "AA==", "a"),
        ),
        (
            file("audio/wav", "data:audio/wav;base64,AA=="),
            SEEING,
            TextPiece("[a: p/seeing does not take this audio/wav]"),
        ),
        (file("text/plain", "data:text/plain;base64,aGk="), BLIND, TextPiece("[a]\nhi")),
        (file("text/plain", "data:,a%20b"), BLIND, TextPiece("[a]\na b")),
        (
            file("image/png", "data:image/png;base64,!!"),
            SEEING,
            TextPiece("[a: image/png, its data is broken]"),
        ),
        (
            file("image/png", "data:image/png;base64,"),
            SEEING,
            TextPiece("[a: image/png, its data is broken]"),
        ),
        (
            file("image/png", "file:///x.png", None),
            SEEING,
            TextPiece("[attachment: image/png, see file:///x.png]"),
        ),
    ],
)
def test_an_attachment_is_shown_as_the_model_can_read_it(
    part: FilePart, info: ModelInfo, piece: TextPiece | ImagePiece
) -> None:
    assert make_file_piece(part, info) == piece
