"""Which servers there are, and which may run where."""

from pathlib import Path

import pytest

from codeloop.app.language.servers import find_dependents
from codeloop.lsp.servers.choice import ProgramSearch, list_servers, select_servers
from codeloop.lsp.servers.server_row import load_server_rows
from codeloop.schema.config import LspServerConfig
from tests.tool.context import make_context


def place(root: Path, *, trusted: bool = True, path: str = "") -> ProgramSearch:
    return ProgramSearch(
        root, root, is_trusted=trusted, path=path, installed=root.parent / "installed"
    )


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def states(
    root: Path,
    configured: dict[str, LspServerConfig] | bool | None = None,
    *,
    trusted: bool = True,
    path: str = "",
) -> dict[str, str]:
    found = list_servers(configured, place(root, trusted=trusted, path=path))
    return {each.row.name: each.state for each in found}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_more_than_thirty_are_known_each_once() -> None:
    names = [row.name for row in load_server_rows()]
    assert len(names) == len(set(names)) > 30
    for row in load_server_rows():
        assert row.languages, row.name
        assert row.commands, row.name
        assert row.install, row.name


def test_one_of_a_kind_serves_and_linters_beside_it(root: Path, tmp_path: Path) -> None:
    for name in ("basedpyright-langserver", "ty", "ruff", "pylsp"):
        program(tmp_path / "bin", name)
    found = list_servers(None, place(root, path=str(tmp_path / "bin")))
    assert [each.row.name for each, _ in select_servers(found, root / "a.py", root)] == [
        "basedpyright",
        "ruff",
    ]
    program(root / ".venv/bin", "ty")
    found = list_servers(None, place(root, path=str(tmp_path / "bin")))
    assert [each.row.name for each, _ in select_servers(found, root / "a.py", root)] == [
        "ty",
        "ruff",
    ], "a project's own first"
    assert select_servers(found, root / "a.txt", root) == []


def test_nothing_of_an_untrusted_project_runs(root: Path, tmp_path: Path) -> None:
    program(root / ".venv/bin", "ty")
    program(root / "node_modules/.bin", "bash-language-server")
    assert {"ty", "bash"} <= {name for name, state in states(root).items() if state == "found"}
    everything = f"{root}/.venv/bin:{root}/node_modules/.bin"
    assert set(states(root, trusted=False, path=everything).values()) == {"missing"}, (
        "not by way of PATH either"
    )
    (tmp_path / "link").symlink_to(root / ".venv/bin")
    assert states(root, trusted=False, path=str(tmp_path / "link"))["ty"] == "missing"


def test_what_runs_code_of_the_project_wants_trust(root: Path, tmp_path: Path) -> None:
    for name in ("rust-analyzer", "typescript-language-server", "gopls"):
        program(tmp_path / "bin", name)
    found = states(root, trusted=False, path=str(tmp_path / "bin"))
    assert (found["rust-analyzer"], found["typescript"], found["gopls"]) == (
        "untrusted",
        "untrusted",
        "found",
    )


def test_the_nearest_root_counts_and_none_above_the_work_tree(root: Path, tmp_path: Path) -> None:
    program(tmp_path / "bin", "ty")
    (tmp_path / "pyproject.toml").touch()
    (root / "lib" / "src").mkdir(parents=True)
    found = list_servers(None, place(root, path=str(tmp_path / "bin")))
    assert select_servers(found, root / "lib/src/a.py", root)[0][1] == root
    (root / "lib" / "pyproject.toml").touch()
    assert select_servers(found, root / "lib/src/a.py", root)[0][1] == root / "lib"


def test_one_that_needs_its_configuration_serves_only_there(root: Path, tmp_path: Path) -> None:
    for name in ("deno", "typescript-language-server"):
        program(tmp_path / "bin", name)
    found = list_servers(None, place(root, path=str(tmp_path / "bin")))
    assert [each.row.name for each, _ in select_servers(found, root / "a.ts", root)] == [
        "typescript"
    ]
    (root / "deno.json").touch()
    assert [each.row.name for each, _ in select_servers(found, root / "a.ts", root)] == ["deno"]


def test_the_configuration_changes_adds_and_disables(root: Path, tmp_path: Path) -> None:
    program(tmp_path / "bin", "ty")
    own = program(tmp_path / "bin", "mine")
    configured = {
        "ty": LspServerConfig(disabled=True),
        "mine": LspServerConfig(
            command=[str(own), "--stdio"], extensions=[".py", ".my"], env={"A": "b"}
        ),
    }
    found = list_servers(configured, place(root, path=str(tmp_path / "bin")))
    ((mine, _),) = select_servers(found, root / "a.py", root)
    assert mine.command == (str(own), "--stdio")
    assert (mine.row.languages[".my"], mine.row.environment) == ("my", {"A": "b"})
    assert set(states(root, False).values()) == {"disabled"}


async def test_files_that_import_one_come_before_those_that_only_name_it(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    root, (row,) = ctx.workspace.root, [each for each in load_server_rows() if each.name == "ty"]
    (root / "billing").mkdir()
    texts = {
        "total.py": "", "words.py": "# the total", "one.py": "from billing import total", "two.py": "import total as t",
        "three.py": "from billing import (\n    total,\n    other)", "four.py": "import totally",
        "notes.txt": "import total",
    }  # fmt: skip
    for name, text in texts.items():
        (root / name).write_text(text + "\n")
    found = await find_dependents(ctx.workspace, root / "total.py", row)
    assert {path.name for path in found or ()} == {"one.py", "two.py", "three.py"}
    for name in ("one.py", "two.py", "three.py"):
        (root / name).unlink()
    found = await find_dependents(ctx.workspace, root / "total.py", row)
    assert [path.name for path in found or ()] == ["words.py"]
    await ctx.workspace.close()
    ctx.store.close()
