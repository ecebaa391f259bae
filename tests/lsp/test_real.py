"""The servers themselves: an edit, its error, the mend, and what they know."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codeloop.app.language import servers
from codeloop.lsp.client.diagnostic import format_new_diagnostics
from tests.lsp.real import CASES, Case, Real, real_server
from tests.support.patient_limits import LONG_LIMIT
from tests.tool.context import TestContext
from tests.tool.small_project import answer

pytestmark = pytest.mark.lsp
HANGS = 10
"""Seconds: an edit that took longer would have waited as if the server had to start."""


@pytest.fixture
async def real(tmp_path: Path, name: str) -> AsyncIterator[tuple[Real, TestContext]]:
    async with real_server(tmp_path, name) as found:
        yield found


async def warm(it: Real, case: Case) -> None:
    """Wait until the server has started and looked at the file."""
    (it.code / case.file).write_text(case.good)
    async with asyncio.timeout(300):
        await it.edit(case.file, case.good + "\n")
        await it.languages.wait_idle()
        await it.edit(case.file, case.good)
        await it.languages.wait_idle()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.bad])
async def test_an_edit_its_error_and_its_mend(real: tuple[Real, TestContext], name: str) -> None:
    it, case = real[0], CASES[name]
    await warm(it, case)
    found = ""
    for _ in range(5):  # a machine under load may take more than the second that an edit waits
        found = await it.edit(case.file, case.bad)
        assert it.seconds < HANGS
        if not found:
            await it.languages.wait_idle()
            # Some look at a text only after a second in which it has not changed.
            await asyncio.sleep(1.5)
            found = format_new_diagnostics(
                it.languages.take_late_diagnostics(), lambda path: path.name
            )
        if found:
            break
        await it.edit(case.file, case.good)
        await it.languages.wait_idle()
    assert case.words in found, it.logs[-5:]
    assert await it.edit(case.file, case.good) == ""
    await it.languages.wait_idle()
    assert await it.edit(case.file, case.good + "\n") == "", "clean again"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.asks])
async def test_what_a_server_knows(real: tuple[Real, TestContext], name: str) -> None:
    it, ctx = real
    case = CASES[name]
    await warm(it, case)
    wrong: list[str] = []
    for operation, line, symbol, words in case.asks:
        given = {
            "operation": operation,
            "filePath": case.file,
            "symbol": symbol or None,
            "newName": "renamed",
        }
        text, done = await answer(ctx, "lsp", {**given, "line": line})
        if not done or words not in text:
            wrong.append(f"{operation}: {text}")
    assert wrong == [], it.logs[-5:]


@pytest.mark.parametrize("name", ["ty", "basedpyright", "typescript"])
async def test_an_error_in_a_file_that_nobody_read(
    real: tuple[Real, TestContext], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "LSP_DEPENDENT_FILES_TIME", LONG_LIMIT)
    it, case = real[0], CASES[name]
    ending = Path(case.file).suffix
    imported = "from a import double\n" if ending == ".py" else 'import { double } from "./a";\n'
    (it.code / f"user{ending}").write_text(imported + "double(3)\n")
    await warm(it, case)
    found = await it.edit(case.file, case.good.replace("double", "twice"))
    if not found:
        await it.languages.wait_idle()
        found = format_new_diagnostics(it.languages.take_late_diagnostics(), lambda path: path.name)
    assert f"user{ending}:1: " in found, it.logs[-5:]
