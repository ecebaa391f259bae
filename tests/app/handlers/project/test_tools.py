"""Tools, servers of other protocols, the client's log, and what there is nothing of."""

import logging
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.mcp import MCP_STATUS, RESOURCE_LIST
from codeloop.schema.api.project import (
    CAPABILITIES,
    CONSOLE,
    FORMATTER_STATUS,
    LOG,
    LSP_STATUS,
    TOOL_IDS,
    TOOL_LIST,
    WORKSPACE_LIST,
    WORKSPACE_STATUS,
    ConsoleState,
    ExperimentalCapabilities,
    ToolListQuery,
    WriteLog,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CLIENT_LOG
from codeloop.schema.operation import AnyOperation, NoArguments
from codeloop.schema.wire import replace
from tests.server.support.serving import served
from tests.support.scripted_project import make_startup, open_in_process, open_scripted_project

SERVERS = {
    "on": {"type": "local", "command": ["x"]},
    "off": {"type": "local", "command": ["x"], "enabled": False},
}


async def test_a_model_is_listed_the_tools_that_it_is_offered_in_a_turn(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="Done.")], permission={"webfetch": "deny"}
    ) as it:
        listed = await it.client.call(TOOL_LIST, ToolListQuery(provider="scripted", model="script"))
        ids = await it.client.call(TOOL_IDS, NoArguments())
        await it.prompt()
        offered = it.model.requests[0].tools
        assert [each.id for each in listed] == [spec.name for spec in offered if spec.name in ids]
        assert [(each.description, each.parameters) for each in listed] == [
            (spec.description, spec.parameters) for spec in offered
        ]
        assert "webfetch" not in [each.id for each in listed]
        assert {"webfetch", "apply_patch", "bash", "task"} <= set(ids)
        bash = next(each for each in listed if each.id == "bash")
        assert (bash.parameters["type"], "command" in bash.parameters["required"]) == (
            "object",
            True,
        )


async def test_the_tools_of_a_model_of_the_catalog_suit_it_and_an_unknown_one_is_refused(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        names = [
            each.id
            for each in await it.client.call(
                TOOL_LIST, ToolListQuery(provider="openai", model="gpt-5-mini")
            )
        ]
        assert "apply_patch" in names
        assert "edit" not in names
        for provider, model in (("openai", "gpt-none"), ("nobody", "m"), ("openai", "")):
            with pytest.raises(CodeloopError):
                await it.client.call(TOOL_LIST, ToolListQuery(provider=provider, model=model))
    async with served(tmp_path) as server:
        await server.get("/experimental/tool", 400, provider="nobody", model="m")
        await server.get("/experimental/tool", 400)


async def test_what_there_is_nothing_of_is_empty(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        rows: list[AnyOperation] = [LSP_STATUS, WORKSPACE_LIST, WORKSPACE_STATUS]
        for operation in rows:
            assert await it.client.call(operation, NoArguments()) == []
        assert await it.client.call(RESOURCE_LIST, NoArguments()) == {}
        assert await it.client.call(MCP_STATUS, NoArguments()) == {}
        assert await it.client.call(CONSOLE, NoArguments()) == ConsoleState(
            console_managed_providers=[], switchable_org_count=0
        )


@pytest.mark.parametrize("trusted", [True, False])
async def test_the_formatters_are_listed_with_whether_they_would_run(
    tmp_path: Path, trusted: bool
) -> None:
    work = tmp_path / "work"
    (work / "node_modules" / ".bin").mkdir(parents=True)
    (work / ".prettierrc").touch()
    for name in ("prettier", "mine"):
        program = work / "node_modules" / ".bin" / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    own = {"mine": {"command": ["mine", "$FILE"], "extensions": [".x"]}, "ruff": {"disabled": True}}
    start = replace(make_startup(tmp_path / "home", work, formatter=own), trust=trusted)
    async with open_in_process(start, None) as (_, client):
        states = {state.name: state for state in await client.call(FORMATTER_STATUS, NoArguments())}
    assert [name for name, state in states.items() if state.enabled] == (
        ["prettier", "mine"] if trusted else []
    )
    assert states["mine"].extensions == [".x"]
    assert ".ts" in states["prettier"].extensions


async def test_no_further_routes_are_promised(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        assert await it.client.call(CAPABILITIES, NoArguments()) == ExperimentalCapabilities(
            background_subagents=False
        )


@pytest.mark.parametrize(
    ("level", "number"),
    [("debug", 10), ("info", 20), ("warn", logging.WARNING), ("error", logging.ERROR)],
)
async def test_a_clients_line_is_logged_at_its_level(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, level: Any, number: int
) -> None:
    caplog.set_level(logging.DEBUG, "codeloop.client")
    async with open_scripted_project(tmp_path, []) as it:
        assert (
            await it.client.call(
                LOG, WriteLog(service="ui", level=level, message="it broke", extra={"a": [1]})
            )
            is True
        )
    lines = [record for record in caplog.records if record.name == "codeloop.client"]
    assert [(record.levelno, record.getMessage()) for record in lines] == [
        (number, 'ui: it broke {"a":[1]}')
    ]


@pytest.mark.parametrize(
    "text", ["a\x1b[2Jb", "one\nERROR two", "\u202eabc", "x" * 100_000, "%s %d"]
)
async def test_a_line_can_neither_steer_a_terminal_nor_forge_another_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    caplog.set_level(logging.DEBUG, "codeloop.client")
    async with open_scripted_project(tmp_path, []) as it:
        extra: dict[str, Any] = {text: text}
        await it.client.call(LOG, WriteLog(service=text, level="info", message=text, extra=extra))
    line = next(
        record.getMessage() for record in caplog.records if record.name == "codeloop.client"
    )
    assert line.isprintable()
    assert len(line) <= CLIENT_LOG.value
