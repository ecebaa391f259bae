"""The formatters themselves, as far as they can be installed here: each changes what it should,
by its row.
"""

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.format.formatters import FormattedFile, Formatters
from codeloop.workspace.format.run_formatters import format_files
from codeloop.workspace.workspace import Workspace
from tests.support.installed_programs import install_npm_programs, install_python_programs

pytestmark = pytest.mark.lsp
C = "int f() { return 1; }\n"
SHELL = "if true; then\n        echo a\nfi\n"
RUST = "struct A;\nimpl A {\n    async fn f(&self) -> u8 {\n        1\n    }\n}\n"
# Of each: the file that says that it is used, what an edit wrote, and what is to be there then.
CASES = {
    "ruff": ("ruff.toml", "", "a.py", "x = { 'a':1 }\n", 'x = {"a": 1}\n'),
    "black": ("pyproject.toml", "[tool.black]\n", "a.py", "x = { 'a':1 }\n", 'x = {"a": 1}\n'),
    "yapf": (
        ".style.yapf",
        "[style]\nbased_on_style = pep8\n",
        "a.py",
        "x = { 'a':1 }\n",
        "x = {'a': 1}\n",
    ),
    "prettier": (".prettierrc", "{}", "a.ts", "let a:  number=1\n", "let a: number = 1;\n"),
    "biome": ("biome.json", "{}", "a.ts", "let a:  number=1\n", "let a: number = 1;\n"),
    "clang-format": (".clang-format", "BasedOnStyle: LLVM\n", "a.c", "int  f( ){return 1;}\n", C),
    "shfmt": (
        ".editorconfig",
        "root = true\n[*.sh]\nindent_style = space\nindent_size = 8\n",
        "a.sh",
        SHELL.replace(" " * 8, ""),
        SHELL,
    ),
    "taplo": ("taplo.toml", "", "a.toml", "a   =  1\n", "a = 1\n"),
    "gofmt": (
        "go.mod",
        "module a\n",
        "a.go",
        "package a\nfunc f( ) {}\n",
        "package a\n\nfunc f() {}\n",
    ),
    "rustfmt": (
        "Cargo.toml",
        '[package]\nedition = "2021"\n',
        "src/a.rs",
        RUST.replace("        1", "1"),
        RUST,
    ),
}
PYTHON = {
    "black": "black",
    "yapf": "yapf",
    "clang-format": "clang-format",
    "shfmt": "shfmt-py",
    "taplo": "taplo",
}
NPM = {"prettier": "prettier", "biome": "@biomejs/biome"}


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    for name in ("work/src", "scratch"):
        (tmp_path / name).mkdir(parents=True)
    home = str(Path.home())
    environment = {"PATH": f"{home}/.cargo/bin:/usr/local/bin:/usr/bin:/bin", "HOME": home}
    work = tmp_path / "work"
    # The programs are linked into the project, and the sandbox shows nothing through
    # such a link by itself.
    config = SandboxConfig(readable=[f"{home}/.cache", str(Path(sys.executable).parent.parent)])
    made = Workspace(work, work, tmp_path / "scratch", environment, config)
    yield made
    await made.shells.close()


async def formatted(workspace: Workspace, name: str, text: str) -> FormattedFile:
    marker, settings, file, _, _ = CASES[name]
    (workspace.root / marker).write_text(settings)
    (workspace.root / file).write_text(text)
    programs = workspace.root / "node_modules" / ".bin"
    programs.mkdir(parents=True, exist_ok=True)
    if not (programs / name).exists():
        (programs / name).symlink_to(program(name))
    found = Formatters(workspace, None).find_formatters(workspace.root / file)
    assert [each.name for each in found] == [name]
    (done,) = (await format_files(workspace, {workspace.root / file: found}, 120)).values()
    return done


def program(name: str) -> str:
    """Return where a formatter is; it is installed for the tests when it can be.
    Skips the test when it can't.
    """
    folder: Path | None = Path(sys.executable).parent if name == "ruff" else None
    if name in PYTHON:
        folder = install_python_programs(PYTHON[name])
    if name in NPM:
        folder = install_npm_programs(NPM[name])
    found = shutil.which(
        name,
        path=str(folder) if folder else f"{Path.home()}/.cargo/bin:/usr/local/bin:/usr/bin:/bin",
    )
    if (
        not found
        or subprocess.run([found, "--help"], capture_output=True, check=False).returncode > 2
    ):
        pytest.skip(f"{name} can't be had here")
    return found


@pytest.mark.parametrize("name", CASES)
async def test_a_formatter_formats_once_and_leaves_what_is_formatted(
    workspace: Workspace, name: str
) -> None:
    _, _, file, ugly, pretty = CASES[name]
    done = await formatted(workspace, name, ugly)
    assert (done.changed_by, done.problems) == ((name,), ())
    assert (workspace.root / file).read_text() == pretty
    again = await formatted(workspace, name, pretty)
    assert (again.changed_by, again.problems) == ((), ())


@pytest.mark.parametrize("name", [name for name in CASES if name not in {"clang-format", "yapf"}])
async def test_what_a_formatter_can_t_read_stays_as_written(
    workspace: Workspace, name: str
) -> None:
    broken = "def f(:\n let func ( {{{\n if then fi ]\n"
    done = await formatted(workspace, name, broken)
    assert done.changed_by == ()
    assert len(done.problems) == 1
    assert done.problems[0].startswith(f"{name} failed: ")
    assert (workspace.root / CASES[name][2]).read_text() == broken
