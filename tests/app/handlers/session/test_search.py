"""Searching in titles, prompts and answers."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codeloop.app.handlers.session.search import search_sessions
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_UPDATE,
    CreateSession,
    UpdateSession,
)
from codeloop.schema.api.session_search import SESSION_SEARCH, SearchResult, SearchSessions
from codeloop.schema.errors import OperationError
from tests.support.scripted_project import (
    ScriptedProject,
    both_clients,
    make_answer,
    make_call,
    open_scripted_project,
)

__all__ = ["both_clients"]


async def search(it: ScriptedProject, query: str, **more: Any) -> SearchResult:
    return await it.client.call(SESSION_SEARCH, SearchSessions(query=query, **more))


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("the Whole thing", "whole THING"),
        ("a 100% sure bet", "100% s"),
        ("snake_case", "e_c"),
        ('he said "no"', 'd "no"'),
        ("C:\\temp", ":\\TEMP"),
        ("two\nlines", "two\nlines"),
        ("Größe ÄNDERN", "größe ändern"),
        ("日本語のテキスト", "のテ"),
        ("bang! mark", "g! m"),
        ("it's", "it's"),
        ("<b>&amp;", "<b>&"),
    ],
)
async def test_any_text_is_found_in_any_case(tmp_path: Path, said: str, query: str) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        await it.prompt(f"before {said} after", no_reply=True)
        await it.prompt("something else", no_reply=True)
        (hit,) = (await search(it, query)).hits
        assert hit.session.id == it.session_id
        (excerpt,) = hit.excerpts
        assert excerpt.text == f"before {said} after"
        assert (excerpt.role, excerpt.message_id) == ("user", it.view().entries[0].info.id)


async def test_bytes_that_are_no_text_are_looked_for_as_they_are_stored(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        await it.prompt("a name \udcff of bytes", no_reply=True)
        found = await search_sessions(it.project, SearchSessions(query="NAME \udcff of"))
        assert [hit.excerpts[0].text for hit in found.hits] == ["a name \\xff of bytes"]
        assert not (await search_sessions(it.project, SearchSessions(query="\udcfe"))).hits


@pytest.mark.parametrize("query", ["100%", "a_c", "type", "text", "prt_", "\\n"])
async def test_what_nobody_said_is_not_found(tmp_path: Path, query: str) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        await it.prompt("100 abc\nline", no_reply=True)
        result = await search(it, query)
        assert (result.hits, result.complete) == ([], True)


async def test_answers_and_titles_are_found_and_outputs_of_tools_are_not(tmp_path: Path) -> None:
    made = make_answer(make_call("bash", command="echo se''cret"), text="I look.")
    async with open_scripted_project(tmp_path, [made, ScriptedAnswer(text="It is a zebra.")]) as it:
        await it.client.call(
            SESSION_UPDATE, UpdateSession(session_id=it.session_id, title="About Zebras")
        )
        await it.prompt("go")
        (hit,) = (await search(it, "zebra")).hits
        assert hit.in_title
        assert [(e.role, e.text) for e in hit.excerpts] == [("assistant", "It is a zebra.")]
        assert (await search(it, "secret")).hits == []


async def test_only_some_words_around_are_shown(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        await it.prompt("x" * 500 + " needle " + "y" * 500, no_reply=True)
        (hit,) = (await search(it, "needle")).hits
        text = hit.excerpts[0].text
        assert len(text) < 150
        assert text.startswith("…x")
        assert text.endswith("y…")


async def test_the_newest_sessions_come_first_and_no_more_than_asked_for(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        for number in range(4):
            await it.client.call(SESSION_CREATE, CreateSession(title=f"needle {number}"))
            await asyncio.sleep(0.002)
        result = await search(it, "needle", limit=2)
        assert [hit.session.title for hit in result.hits] == ["needle 3", "needle 2"]
        assert not result.complete
        assert (await search(it, "needle", limit=5)).complete


@pytest.mark.parametrize("args", [{"query": " "}, {"query": "x" * 501}, {"query": "x", "limit": 0}])
async def test_a_bad_search_is_refused(tmp_path: Path, args: dict[str, Any]) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        with pytest.raises(OperationError) as raised:
            await it.client.call(SESSION_SEARCH, SearchSessions(**args))
        assert raised.value.kind == "BadRequest"
