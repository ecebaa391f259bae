"""What a model reads of the tools that a person, a subagent or a search service answers:
golden files in `results/`.

They are renewed and read as those of `test_results.py`.
"""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from codeloop.app.toolbox import find_search_tools
from codeloop.extend.skills import make_skill_tool
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.answers import (
    QUESTION_REJECT,
    QUESTION_REPLY,
    AnswerQuestion,
    RejectQuestion,
)
from codeloop.schema.config import SearchConfig
from codeloop.schema.part import ToolPart, ToolStateCompleted
from codeloop.schema.wire import JSON
from codeloop.tool.toolbox import Toolbox
from tests.extend.settings import settings_of, write
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
    read_result,
    wait_until,
)
from tests.tool.builtin.test_websearch import Exa
from tests.tool.small_project import answer, small_project
from tests.tool.test_results import PNG, compare, piece, settled
from tests.tool.web_server import Answer, Request, json_answer, redirect, serving
from tests.tool.web_server import answer as reply_with

DONE = ScriptedAnswer(text="Done.")
COLOUR = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}],
}
SIZES = {**COLOUR, "question": "Which sizes?", "header": "Sizes", "multiple": True}
JOB = {
    "description": "Find the parser",
    "prompt": "Where is the parser?",
    "subagent_type": "general",
}
FOUND = ScriptedAnswer(text="It is in src/parser.py:12.")
WRITTEN = make_answer(make_call("write", filePath="new.py", content="A = 1\n"))
WRITTEN_PLAN = make_answer(
    make_call("write", filePath=".codeloop/plans/p.md", content="First this.\n")
)
SLOW = make_answer(make_call("bash", command="sleep 600"))


class Case(Struct, frozen=True):
    """A call, what the subagent then does, and what the person answers: choices,
    or words of refusal.

    `before`: the steps before the call.
    """

    given: dict[str, Any]
    subagent: tuple[ScriptedAnswer, ...] = ()
    answers: list[list[str]] | str | None = None
    agent: str = "build"
    before: tuple[ScriptedAnswer, ...] = ()


def planned(answers: list[list[str]] | str) -> Case:
    return Case({}, answers=answers, agent="plan", before=(WRITTEN_PLAN,))


CASES = {
    "question": [
        Case({"questions": [COLOUR, SIZES]}, answers=[["red"], ["small", "my own words"]]),
        Case({"questions": [COLOUR]}, answers=[[]]),
        Case({"questions": [COLOUR]}, answers="ask me later"),
        Case({"questions": [COLOUR]}, answers=""),
        Case({"questions": [{**COLOUR, "options": [], "custom": False}]}),
    ],
    "plan_exit": [
        planned([["Yes"]]),
        planned([["No"]]),
        planned([[]]),
        planned([["Leave the tests alone"]]),
        Case({}, agent="plan"),
    ],
    "task": [
        Case(JOB, (FOUND,)),
        Case(JOB, (WRITTEN, FOUND)),
        Case(JOB, (ScriptedAnswer(text=" "),) * 2),
        Case({**JOB, "run_in_background": True}, (FOUND,)),
        Case({**JOB, "subagent_type": "genral"}),
        Case({**JOB, "task_id": "ses_nowhere"}),
        Case(JOB, (make_answer(make_call("bash", command="true")),) * 3),
    ],
}


async def made(tmp_path: Path, tool: str, case: Case) -> ToolPart:
    """Make a call in a session of its own and return it with its result."""
    script = [*case.before, make_answer(make_call(tool, **case.given)), *case.subagent, DONE, DONE]
    async with open_scripted_project(tmp_path, script, agent={"general": {"steps": 2}}) as it:
        turn = asyncio.create_task(it.prompt(agent=case.agent))
        if case.answers is not None:
            await reply(it, case.answers)
        await turn
        await wait_until(lambda: not it.project.engine.supervisor.is_any_running)
        return it.calls()[len(case.before)]


async def reply(it: ScriptedProject, answers: list[list[str]] | str) -> None:
    await wait_until(lambda: it.project.store.list_pending_questions())
    (request,) = it.project.store.list_pending_questions()
    if isinstance(answers, str):
        await it.client.call(
            QUESTION_REJECT, RejectQuestion(request_id=request.id, message=answers)
        )
    else:
        await it.client.call(QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=answers))


def read_as(tool: str, given: dict[str, Any], part: ToolPart, tmp_path: Path) -> str:
    text = re.sub(r"\bses_(?!nowhere)\w+", "ses_ID", read_result(part))
    shown = {
        name: "ses_ID" if re.match("ses_(?!nowhere)", str(value)) else value
        for name, value in given.items()
    }
    return piece(tool, shown, text, tmp_path, done=isinstance(part.state, ToolStateCompleted))


@pytest.mark.slow
@pytest.mark.parametrize("tool", CASES)
async def test_a_model_reads_exactly_this_of_a_person_or_a_subagent(
    tmp_path: Path, tool: str
) -> None:
    pieces: list[str] = []
    for number, case in enumerate(CASES[tool]):
        folder = tmp_path / str(number)
        folder.mkdir()
        pieces.append(read_as(tool, case.given, await made(folder, tool, case), folder))
    compare(tool, pieces)


def is_calling(it: ScriptedProject, session_id: str) -> bool:
    parts = [
        part
        for entry in it.project.store.read_conversation(session_id).entries
        for part in entry.parts
    ]
    return any(isinstance(part, ToolPart) for part in parts)


async def asked_about(
    tmp_path: Path, subagent: Sequence[ScriptedAnswer], *, wait: bool, other: str = ""
) -> str:
    """Return what `task_output` says of a task in the background,
    that has ended or was ended with its project.
    """
    tmp_path.mkdir()
    background = make_answer(make_call("task", **JOB, run_in_background=True))
    async with open_scripted_project(tmp_path, [background, *subagent]) as it:
        await it.prompt()
        (child,) = it.project.store.list_sessions(parent=it.session_id)
        await wait_until(
            lambda: (
                not it.project.engine.supervisor.is_any_running
                if wait
                else is_calling(it, child.id)
            )
        )
    given = {"task_id": other or child.id}
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("task_output", **given)), DONE], session_id=child.parent_id
    ) as it:
        await it.prompt()
        return read_as("task_output", given, it.calls()[-1], tmp_path)


async def test_a_model_reads_exactly_this_of_a_task_in_the_background(tmp_path: Path) -> None:
    pieces = [
        await asked_about(tmp_path / "ended", [FOUND, FOUND], wait=True),
        await asked_about(tmp_path / "silent", [SLOW, DONE], wait=False),
        await asked_about(tmp_path / "other", [FOUND, FOUND], wait=True, other="ses_nowhere"),
        await asked_about(tmp_path / "command", [FOUND, FOUND], wait=True, other="bash_1"),
    ]
    compare("task_output", pieces)


async def tavily(request: Request, writer: asyncio.StreamWriter) -> None:
    """Answer a search, refuse it, or find nothing, as its words say."""
    query = request.json["query"]
    hits = [
        {"title": "asyncio.timeout", "url": "https://docs.test/timeout", "content": "Cancels  the\nblock.",
         "published_date": "2026-01-02"},
        {"title": None, "url": "https://blog.test/x", "content": "w" * (3000 if "long" in query else 30)},
    ]  # fmt: skip
    found = json_answer({"results": [] if "nothing" in query else hits})
    writer.write(
        reply_with("slow down", status="429 Too Many Requests") if "refused" in query else found
    )
    await writer.drain()


PAGES: dict[str, Answer] = {
    "/guide": reply_with(
        "<title>T</title><h1>Guide</h1><p>See <a href='/b'>more</a>.</p><script>x()</script>"
    ),
    "/old": redirect("/guide"),
    "/data.json": json_answer({"a": [1, 2]}),
    "/blank": reply_with("<html></html>"),
    "/picture.png": reply_with(PNG, "image/png"),
    "/program": reply_with(b"\x7fELF\0\0\1", "application/octet-stream"),
    "/private": reply_with("Log in.", status="403 Forbidden"),
    "/busy": reply_with("", status="429 Too Many Requests", retry_after="30"),
    "/large": reply_with("word " * 1_200_000, "text/plain"),
}
FETCHED: tuple[JSON, ...] = (
    {"url": "/guide"},
    {"url": "/guide", "format": "html"},
    {"url": "/old", "format": "text"},
    {"url": "/data.json"},
    {"url": "/blank"},
    {"url": "/picture.png"},
    {"url": "/program"},
    {"url": "/nowhere"},
    {"url": "/private"},
    {"url": "/busy"},
    {"url": "/large"},
)


@pytest.mark.slow
async def test_a_model_reads_exactly_this_of_a_page(tmp_path: Path) -> None:
    ctx = small_project(tmp_path)
    pieces: list[str] = []
    async with serving(PAGES) as server:
        given = [{**each, "url": server.url + each["url"]} for each in FETCHED]
        given += [
            {"url": f"localhost:{server.port}/guide"},
            {"url": "src/app.py"},
            {"url": "file:///etc/passwd"},
        ]
        for each in given:
            text, is_done = await answer(ctx, "webfetch", each)
            told = settled(piece("webfetch", each, text, tmp_path, done=is_done), tmp_path)
            told = told.replace(f"localhost:{server.port}", "localhost:PORT")
            # The length of a file's name is in them.
            pieces.append(re.sub(r"\b\d{5,7} (characters|bytes)", r"N \1", told))
    compare("webfetch", pieces)


async def test_a_model_reads_exactly_this_of_a_skill(tmp_path: Path) -> None:
    ctx = small_project(tmp_path)
    head = "---\nname: {}\ndescription: Reads PDFs\n---\n\n"
    write(
        tmp_path, "work/.claude/skills/pdf/SKILL.md", head.format("pdf") + "Run scripts/run.py.\n"
    )
    write(tmp_path, "work/.claude/skills/pdf/scripts/run.py", "print()\n")
    write(
        tmp_path, "work/.claude/skills/csv/SKILL.md", head.format("csv") + "Use the module csv.\n"
    )
    box = Toolbox((make_skill_tool(settings_of(tmp_path).skills),))
    pieces: list[str] = []
    for given in ({"name": "pdf"}, {"name": "csv"}, {"name": "PDF"}):
        text, is_done = await answer(ctx, "skill", given, box)
        pieces.append(piece("skill", given, text, tmp_path, done=is_done))
    compare("skill", pieces)


async def test_a_model_reads_exactly_this_of_a_search(tmp_path: Path) -> None:
    ctx = small_project(tmp_path)
    pieces: list[str] = []
    async with serving(tavily) as server:
        settings = SearchConfig(provider="tavily", base_url=server.url, api_key="k")
        box = Toolbox(find_search_tools(settings, {}))
        for given in (
            {"query": "timeout, long"},
            {"query": "nothing"},
            {"query": "refused"},
            {"query": " "},
        ):
            text, is_done = await answer(ctx, "websearch", given, box)
            pieces.append(piece("websearch", given, text, tmp_path, done=is_done))
    box = Toolbox(find_search_tools(SearchConfig(provider="tavily"), {}))
    text, is_done = await answer(ctx, "websearch", {"query": "without a key"}, box)
    compare(
        "websearch",
        [*pieces, piece("websearch", {"query": "without a key"}, text, tmp_path, done=is_done)],
    )


async def test_a_model_reads_exactly_this_of_a_search_for_code(tmp_path: Path) -> None:
    ctx = small_project(tmp_path)
    example = "## asyncio.timeout\n\nhttps://docs.test/timeout\n\n```python\nasync with asyncio.timeout(1): ...\n```"
    services = {
        "timeout": Exa(result={"content": [{"type": "text", "text": example}]}),
        "nothing": Exa(result={"content": [{"type": "text", "text": ""}]}),
        "refused": Exa(
            result={"isError": True, "content": [{"type": "text", "text": "rate limit"}]}
        ),
    }
    pieces: list[str] = []
    for query, exa in services.items():
        async with serving(exa) as server:
            box = Toolbox(find_search_tools(SearchConfig(provider="exa", base_url=server.url), {}))
            text, is_done = await answer(ctx, "codesearch", {"query": query}, box)
        pieces.append(piece("codesearch", {"query": query}, text, tmp_path, done=is_done))
    compare("codesearch", pieces)
