"""What is left out of requests: only what a later call gave again, only when the cache is cold,
and for good.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.agent.request.request_cache import RequestCache
from codeloop.model.chat import ModelInfo, ToolModelMessage
from codeloop.model.quirks import find_quirks, get_cache_lifetime
from codeloop.schema.message import AssistantTime
from codeloop.schema.part import (
    CompactionPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
    ToolTime,
)
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, Entry
from codeloop.tool.superseded_outputs import (
    CALLED_AGAIN_NOTE,
    CHANGED_NOTE,
    READ_AGAIN_NOTE,
    RUN_AGAIN_NOTE,
    UNCHANGED_KEY,
    CacheAge,
    find_superseded,
)
from tests.store.states import assistant, session, user

SESSION = session()
INFO = ModelInfo(provider_id="p", id="m", name="M")
LONG = "x" * 400
LIFE = get_cache_lifetime("p")
MINUTE = 60_000


def part(
    number: int, tool: str, output: str = LONG, metadata: Any = None, **given: Any
) -> ToolPart:
    state = ToolStateCompleted(
        input=given, output=output, title="", metadata=metadata or {}, time=ToolTime(start=0, end=0)
    )
    return ToolPart(
        id=f"prt_{number:04}",
        session_id=SESSION.id,
        message_id="m",
        call_id=f"c{number}",
        tool=tool,
        state=state,
    )


def read(number: int, path: str, first: int = 1, last: int = 100, **metadata: Any) -> ToolPart:
    display = {"path": path, "lineStart": first, "lineEnd": last, "text": ""}
    return part(number, "read", metadata={"display": display, **metadata}, filePath=path)


def step(created: int, *parts: ToolPart, summary: bool = False, provider: str = "p") -> Entry:
    info = replace(
        assistant(SESSION.id, "msg_0"),
        provider_id=provider,
        time=AssistantTime(created=created, completed=created + 1),
        finish="tool-calls",
        summary=summary or None,
    )
    return Entry(replace(info, path=replace(info.path, cwd="/w")), parts)


def notes(*parts: ToolPart) -> dict[int, str]:
    """Return what is left out of one step a call, by the call's number."""
    found = find_superseded([step(number, each) for number, each in enumerate(parts)])
    return {int(name.removeprefix("prt_")): line for name, line in found.items()}


BASH = {"command": "pytest -q"}


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([read(1, "/w/a"), read(2, "/w/a")], {1: READ_AGAIN_NOTE.format(path="a")}),
        ([read(1, "/w/a", 5, 9), read(2, "/w/a", 1, 50)], {1: READ_AGAIN_NOTE.format(path="a")}),
        ([read(1, "/w/a", 1, 50), read(2, "/w/a", 5, 9)], {}),
        ([read(1, "/w/a"), read(2, "/w/b")], {}),
        ([read(1, "/w/a"), read(2, "/w/a", **{UNCHANGED_KEY: True})], {}),
        ([read(1, "/w/a"), read(2, "/w/a", outputPath="/t")], {}),
        ([read(1, "/w/a"), part(2, "edit", filePath="a")], {1: CHANGED_NOTE.format(path="a")}),
        ([read(1, "/w/a"), part(2, "write", filePath="/w/./a")], {1: CHANGED_NOTE.format(path="a")}),
        (
            [read(1, "/w/a"), part(2, "apply_patch", patchText="*** Update File: a\n@@")],
            {1: CHANGED_NOTE.format(path="a")},
        ),
        ([part(1, "edit", filePath="a"), read(2, "/w/a")], {}),
        ([part(1, "bash", **BASH), part(2, "bash", **BASH)], {1: RUN_AGAIN_NOTE}),
        ([part(1, "bash", **BASH), part(2, "bash", command="cd b"), part(3, "bash", **BASH)], {}),
        ([part(1, "bash", command="cd /w && ls"), part(2, "bash", command="cd /w && ls")], {1: RUN_AGAIN_NOTE}),
        ([part(1, "bash", command="cd b && ls"), part(2, "bash", command="cd b && ls")], {}),
        ([part(1, "bash", **BASH), part(2, "bash", **BASH, workdir="b")], {}),
        ([part(1, "bash", **BASH, run_in_background=True), part(2, "bash", **BASH, run_in_background=True)], {}),
        ([part(1, "grep", pattern="x"), part(2, "grep", pattern="x")], {1: CALLED_AGAIN_NOTE}),
        ([part(1, "grep", pattern="x"), part(2, "grep", pattern="x", path="b")], {}),
        ([part(1, "task", prompt="x"), part(2, "task", prompt="x")], {}),
        ([part(1, "bash", "short", **BASH), part(2, "bash", **BASH)], {}),
        ([read(1, "/o/a\n[x]"), read(2, "/o/a\n[x]")], {1: READ_AGAIN_NOTE.format(path="/o/a [x]")}),
    ],
)  # fmt: skip
def test_only_what_a_later_call_gave_again_is_superseded(
    calls: list[ToolPart], expected: dict[int, str]
) -> None:
    assert notes(*calls) == expected


def test_a_call_that_failed_supersedes_nothing() -> None:
    failed = replace(
        part(2, "bash", **BASH),
        state=ToolStateError(input=BASH, error="", time=ToolTime(start=0, end=0)),
    )
    assert notes(part(1, "bash", **BASH), failed) == {}


def sent(entries: list[Entry], now: int, cache: RequestCache | None = None) -> list[str]:
    """Return the results that a request made `now` holds."""
    turns = (cache or RequestCache()).get_messages(Conversation(SESSION, tuple(entries)), INFO, now)
    return [
        piece.output
        for turn in turns
        if isinstance(turn, ToolModelMessage)
        for piece in turn.content
    ]


def test_outputs_stay_while_the_cache_is_warm_and_go_once_it_is_cold_for_good() -> None:
    entries = [step(1, part(1, "bash", **BASH)), step(2, part(2, "bash", **BASH))]
    assert sent(entries, 2 + LIFE) == [LONG, LONG]
    assert sent(entries, 3 + LIFE) == [RUN_AGAIN_NOTE, LONG]
    entries.append(step(3 + LIFE, part(3, "bash", **BASH)))
    assert sent(entries, 4 + LIFE) == [RUN_AGAIN_NOTE, LONG, LONG]


def test_each_provider_s_cache_is_waited_for() -> None:
    entries = [
        step(1, part(1, "bash", **BASH), provider="openai"),
        step(2, part(2, "bash", **BASH)),
    ]
    assert get_cache_lifetime("openai") > LIFE
    assert sent(entries, 3 + LIFE) == [LONG, LONG]
    assert sent(entries, 2 + get_cache_lifetime("openai")) == [RUN_AGAIN_NOTE, LONG]


@pytest.mark.parametrize(
    ("provider", "npm", "model"),
    [
        ("google", "@ai-sdk/google", "gemini-3-pro"),
        ("google-vertex", "@ai-sdk/google-vertex", "gemini-3-pro"),
        ("google-vertex-anthropic", "@ai-sdk/google-vertex/anthropic", "claude-sonnet-4-5"),
        ("amazon-bedrock", "@ai-sdk/amazon-bedrock", "claude-sonnet-4-5"),
        ("anthropic", "@ai-sdk/anthropic", "claude-sonnet-4-5"),
        ("openai", "@ai-sdk/openai", "gpt-5"),
    ],
)
def test_a_provider_s_cache_lives_as_long_as_that_of_its_protocol(
    provider: str, npm: str, model: str
) -> None:
    info = ModelInfo(provider_id=provider, id=model, name=model, npm=npm)
    assert get_cache_lifetime(provider) == find_quirks(info).cache_minutes * MINUTE


def test_a_compaction_leaves_out_what_its_tail_holds_twice() -> None:
    ask = user(SESSION.id)
    ask = replace(ask, time=replace(ask.time, created=4))
    tail = [step(2, part(1, "bash", **BASH)), step(3, part(2, "bash", **BASH))]
    asked = CompactionPart(
        id="prt_9",
        session_id=SESSION.id,
        message_id=ask.id,
        auto=True,
        tail_start_id=tail[0].info.id,
    )
    entries = [step(1), *tail, Entry(ask, (asked,)), replace(step(5, summary=True), parts=())]
    entries[-1] = replace(entries[-1], info=replace(entries[-1].info, finish="stop"))
    assert sent(entries, 6) == [RUN_AGAIN_NOTE, LONG]


def test_when_old_outputs_were_pruned_superseded_ones_go_too() -> None:
    old, first, second = (
        part(1, "bash", command="x"),
        part(2, "bash", **BASH),
        part(3, "bash", **BASH),
    )
    entries = [step(1, old), step(2, first), step(3, second)]
    assert sent(entries, 9) == [LONG, LONG, LONG]
    assert isinstance(old.state, ToolStateCompleted)
    pruned = replace(old, state=replace(old.state, time=ToolTime(start=0, end=0, compacted=5)))
    entries[0] = replace(entries[0], parts=(pruned,))
    assert sent(entries, 9)[1:] == [RUN_AGAIN_NOTE, LONG]
    assert sent([*entries, step(9, part(4, "bash", **BASH))], 10)[1:] == [
        RUN_AGAIN_NOTE,
        LONG,
        LONG,
    ]


CALLS = st.one_of(
    st.builds(lambda path, first, size: ("read", path, first, first + size), st.sampled_from("ab"), st.integers(1, 9),
              st.integers(1, 9)),
    st.builds(lambda path: ("edit", path), st.sampled_from("ab")),
    st.builds(lambda command: ("bash", command), st.sampled_from(["pytest", "ls", "cd x", "cd /w && ls"])),
)  # fmt: skip
WAITS = st.sampled_from([1, MINUTE, LIFE - 1, LIFE, LIFE + 1, 60 * MINUTE])


def made(number: int, call: Any) -> ToolPart:
    match call:
        case ("read", path, first, last):
            return read(number, f"/w/{path}", first, last)
        case ("edit", path):
            return part(number, "edit", filePath=path)
        case (_, command):
            return part(number, "bash", command=command)
        case _:
            raise AssertionError(call)


@pytest.mark.slow
@given(st.lists(st.tuples(WAITS, st.lists(CALLS, min_size=1, max_size=3)), min_size=1, max_size=12))
def test_whatever_was_called_and_when(steps: list[tuple[int, list[Any]]]) -> None:
    """Warm: each request begins with the one before. After a restart: the same. Left out:
    superseded, and for good.
    """
    cache, entries, before, number, now, last = RequestCache(), list[Entry](), list[str](), 0, 1, 0
    dropped: set[int] = set()
    for wait, step_calls in steps:
        now += wait
        view = Conversation(SESSION, tuple(entries))
        turns = cache.get_messages(view, INFO, now)
        assert turns == RequestCache().get_messages(view, INFO, now)
        results = [
            piece.output
            for turn in turns
            if isinstance(turn, ToolModelMessage)
            for piece in turn.content
        ]
        if now - last <= LIFE or not entries:
            assert results[: len(before)] == before
        gone = {place for place, text in enumerate(results) if text.startswith("[superseded: ")}
        assert dropped <= gone
        assert gone <= {int(name.removeprefix("prt_")) for name in find_superseded(entries)}
        before, dropped, last = results, gone, now
        parts = [made(number + place, call) for place, call in enumerate(step_calls)]
        number += len(parts)
        entries.append(step(now, *parts))


def test_the_age_of_a_cache_is_the_same_step_by_step_and_at_once() -> None:
    entries = [step(1), step(2 + LIFE), step(3 + LIFE), step(4 + 3 * LIFE)]
    age = CacheAge()
    for count in range(len(entries) + 1):
        age = age.advance(entries[:count])
    assert age == CacheAge().advance(entries)
    assert age.cold_entries == 3
