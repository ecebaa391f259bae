"""What real servers say of the first thing that they are asked or shown,
also where the code lies below the top.
"""

import asyncio
from pathlib import Path

import pytest

from codeloop.lsp import diagnostics_tracker, server, server_pool
from codeloop.lsp.client import client
from tests.lsp.real import CASES, real_server
from tests.support.patient_limits import LONG_LIMIT
from tests.tool.small_project import answer

pytestmark = [pytest.mark.lsp, pytest.mark.parametrize("name", list(CASES))]
BELOW = "packages/app"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has to start is waited for as long as a loaded machine needs."""
    long = LONG_LIMIT
    monkeypatch.setattr(server_pool, "LSP_FIRST_DIAGNOSTICS_TIME", long)
    monkeypatch.setattr(client, "LSP_REQUEST", long)
    monkeypatch.setattr(server, "LSP_START", long)


@pytest.fixture
def late_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has something to say is waited for."""
    monkeypatch.setattr(diagnostics_tracker, "LSP_LATE_DIAGNOSTICS_TIME", LONG_LIMIT)


@pytest.mark.usefixtures("late_reports")
@pytest.mark.parametrize("folder", ["", BELOW], ids=["top", "below"])
async def test_the_first_edit_of_an_existing_file_tells_its_error(
    tmp_path: Path, name: str, folder: str
) -> None:
    async with real_server(tmp_path, name, folder) as (it, _):
        case = CASES[name]
        (it.code / case.file).write_text(case.good)
        assert case.words in await it.edit(case.file, case.bad), it.logs[-5:]


@pytest.mark.usefixtures("late_reports")
async def test_a_new_file_tells_its_error(tmp_path: Path, name: str) -> None:
    async with real_server(tmp_path, name, BELOW) as (it, _):
        case = CASES[name]
        assert case.words in await it.edit(case.file, case.bad), it.logs[-5:]


async def test_a_first_edit_that_is_right_says_nothing(tmp_path: Path, name: str) -> None:
    async with real_server(tmp_path, name, BELOW) as (it, _):
        case = CASES[name]
        (it.code / case.file).write_text(case.good)
        assert await it.edit(case.file, case.good + "\n") == ""
        async with asyncio.timeout(60):
            await it.languages.wait_idle()
        assert it.languages.take_late_diagnostics() == []


async def test_the_first_definition_is_right(tmp_path: Path, name: str) -> None:
    wanted = [ask for ask in CASES[name].asks if ask[0] == "definition"]
    if not wanted:
        pytest.skip(f"{name} knows no definitions")
    async with real_server(tmp_path, name, BELOW) as (it, ctx):
        case = CASES[name]
        (it.code / case.file).write_text(case.good)
        operation, line, symbol, words = wanted[0]
        path = f"{BELOW}/{case.file}"
        text, done = await answer(
            ctx, "lsp", {"operation": operation, "filePath": path, "symbol": symbol, "line": line}
        )
        assert done, text
        assert words in text, it.logs[-5:]
