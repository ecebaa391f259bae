"""The table of the built-in tools, and what models are told of tools that nobody has called yet."""

import sys
from pathlib import Path
from subprocess import run

import pytest

from codeloop.app.language.servers import choose_servers
from codeloop.app.settings import find_settings
from codeloop.app.toolbox import (
    BUILTIN_PARAMETERS_FILE,
    BUILTIN_TOOLS,
    has_language_server,
    list_builtin_tools,
)
from codeloop.lsp.servers.choice import select_servers
from codeloop.lsp.servers.server_row import load_server_rows
from codeloop.schema.bounds import language_tools
from codeloop.schema.wire import JSON, replace
from codeloop.tool.tool import BuiltinTool
from scripts.build_tools import encode_tool_schemas
from tests.support.scripted_project import make_startup


def test_the_file_of_parameters_says_what_the_tools_take() -> None:
    assert BUILTIN_PARAMETERS_FILE.read_bytes() == encode_tool_schemas(), "run `make tools`"


@pytest.mark.parametrize("row", list_builtin_tools(), ids=lambda row: row.name)
def test_a_row_says_what_its_tool_says(row: BuiltinTool) -> None:
    assert row.implementation.name == row.name
    assert (row.spec, row.permission) == (row.implementation.spec, row.implementation.permission)


@pytest.mark.parametrize(
    ("program", "command", "disabled", "is_there"),
    [
        ("server", ["./server"], False, True),
        ("env/bin/server", ["server"], False, True),
        ("vendor/bin/server", ["server"], False, True),
        ("vendor/bin/server", ["server"], True, False),
        ("src/server", ["server"], False, False),
    ],
)
def test_a_language_server_is_offered_where_it_would_be_found(
    tmp_path: Path, program: str, command: list[str], disabled: bool, is_there: bool
) -> None:
    work = tmp_path / "work"
    (work / program).parent.mkdir(parents=True)
    (work / program).touch(0o755)
    (work / "a.x").touch()
    servers = {"mine": {"command": command, "extensions": [".x"], "disabled": disabled}}
    settings = find_settings(
        replace(make_startup(tmp_path / "home", work, lsp=servers), trust=True)
    )
    assert has_language_server(settings) is is_there
    assert (
        any(each.state == "found" and each.row.name == "mine" for each in choose_servers(settings))
        is is_there
    )


@pytest.mark.parametrize(
    ("name", "entry", "file", "is_there"),
    [
        ("pyright", {"command": ["./server"]}, "a.py", True),
        ("pyright", {"command": ["./server"], "extensions": [".x"]}, "a.py", False),
        ("ty", {"extensions": [".x"]}, "a.x", True),
        ("ty", {"extensions": [".x"]}, "a.py", False),
        ("ty", {"command": ["./gone"]}, "a.py", False),
        ("deno", {"command": ["./server"]}, "a.ts", True),
        ("ruff", {"command": ["./server"], "extensions": [".x"]}, "a.x", False),
    ],
)
def test_a_known_language_server_counts_as_it_is_configured(
    tmp_path: Path, name: str, entry: JSON, file: str, is_there: bool
) -> None:
    work = tmp_path / "work"
    (work / ".venv" / "bin").mkdir(parents=True)
    for program in ("server", ".venv/bin/ty"):
        (work / program).touch(0o755)
    (work / file).touch()
    others = {each.name: {"disabled": True} for each in load_server_rows() if each.name != name}
    start = make_startup(tmp_path / "home", work, lsp={**others, name: entry})
    settings = find_settings(
        replace(start, trust=True, environment={**start.environment, "PATH": "/nowhere"})
    )
    usable = [each for each in choose_servers(settings) if not each.row.is_linter]
    assert bool(select_servers(usable, work / file, work)) is is_there
    assert has_language_server(settings) is is_there


@pytest.mark.parametrize(
    ("file", "is_there"),
    [
        ("packages/b/src/main.x", True),
        ("services/go/cmd/server/main.x", True),
        ("packages/b/node_modules/c/main.x", False),
        (".cache/main.x", False),
        ("packages/b/src/main.y", False),
    ],
)
def test_a_language_server_is_offered_for_what_lies_below_the_top(
    tmp_path: Path, file: str, is_there: bool
) -> None:
    work = tmp_path / "work"
    (work / file).parent.mkdir(parents=True)
    (work / file).touch()
    (tmp_path / "server").touch(0o755)
    servers = {"mine": {"command": [str(tmp_path / "server")], "extensions": [".x"]}}
    settings = find_settings(
        replace(make_startup(tmp_path / "home", work, lsp=servers), trust=True)
    )
    assert has_language_server(settings) is is_there


@pytest.mark.parametrize(
    ("program", "file", "is_there"),
    [
        ("ruff", "a.py", False),
        ("vscode-eslint-language-server", "eslint.config.js", False),
        ("ty", "a.py", True),
    ],
)
def test_a_linter_alone_answers_no_questions(
    tmp_path: Path, program: str, file: str, is_there: bool
) -> None:
    """It has no definitions or references, and what it reports comes with each edit."""
    work = tmp_path / "work"
    (work / ".venv" / "bin").mkdir(parents=True)
    (work / ".venv" / "bin" / program).touch(0o755)
    (work / file).touch()
    start = make_startup(tmp_path / "home", work)
    settings = find_settings(
        replace(start, trust=True, environment={**start.environment, "PATH": "/nowhere"})
    )
    assert any(each.state == "found" for each in choose_servers(settings))
    assert has_language_server(settings) is is_there


def test_no_more_folders_are_looked_at_for_a_language_server_than_the_limit_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    for name in "abc":
        (work / name).mkdir(parents=True)
    (work / "c" / "deep").mkdir()
    (work / "c" / "deep" / "main.x").touch()
    (tmp_path / "server").touch(0o755)
    servers = {"mine": {"command": [str(tmp_path / "server")], "extensions": [".x"]}}
    settings = find_settings(
        replace(make_startup(tmp_path / "home", work, lsp=servers), trust=True)
    )
    assert has_language_server(settings)
    monkeypatch.setattr(
        language_tools,
        "LSP_SEARCHED_FOLDERS",
        replace(language_tools.LSP_SEARCHED_FOLDERS, value=4),
    )
    assert not has_language_server(settings)


def test_what_is_only_offered_is_not_imported() -> None:
    program = (
        "import sys; from codeloop.app.toolbox import make_toolbox; "
        "make_toolbox().list_specs('m'); print(*sys.modules)"
    )
    loaded = run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {f"codeloop.{target.partition(':')[0]}" for target in BUILTIN_TOOLS.values()} & set(
        loaded
    ) == set()
