"""Which formatter a file has: by the configuration, else by what the project itself says."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.schema.config import FormatterConfig
from codeloop.workspace.format.formatter_rows import FORMATTER_ROWS
from codeloop.workspace.format.formatters import Formatters
from codeloop.workspace.workspace import Workspace


class Tree:
    """A work tree with files and programs, in a folder of its own; `bin` is on the PATH."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.bin = folder / "bin"
        self.workspace = Workspace(
            self.root, self.root, folder / "scratch", {"PATH": str(self.bin)}
        )

    def add(self, *names: str, text: str = "") -> None:
        for name in names:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def install(self, *names: str, where: Path | None = None) -> None:
        for name in names:
            path = (where or self.bin) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("#!/bin/sh\n")
            path.chmod(0o755)

    def formatters(self, configured: Any = None) -> Formatters:
        return Formatters(
            self.workspace, msgspec.convert(configured, bool | dict[str, FormatterConfig] | None)
        )

    def names(self, file: str, configured: Any = None) -> list[str]:
        return [each.name for each in self.formatters(configured).find_formatters(self.root / file)]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.root.mkdir()
    made.install(*{row.command[0] for row in FORMATTER_ROWS})
    return made


@pytest.mark.parametrize("row", FORMATTER_ROWS, ids=lambda row: row.name)
def test_each_formatter_is_found_by_each_of_its_files(tree: Tree, row: Any) -> None:
    for marker in row.markers:
        name, _, text = marker.partition(":")
        tree.add(name, text=text)
        assert tree.names(f"src/deep/a{row.extensions[0]}") == [row.name], marker
        (tree.root / name).unlink()
        assert tree.names(f"a{row.extensions[0]}") == []


def test_a_project_that_says_nothing_has_no_formatter(tree: Tree) -> None:
    tree.add("pyproject.toml", text="[project]\nname = 'x'\n")
    tree.add("package.json", text='{"name": "x"}')
    assert [
        name for row in FORMATTER_ROWS for end in row.extensions for name in tree.names(f"a{end}")
    ] == []


def test_one_of_several_that_a_project_names_formats_a_file(tree: Tree) -> None:
    tree.add("pyproject.toml", text="[tool.ruff]\nline-length = 100\n[tool.black]\n")
    assert tree.names("a.py") == ["black"]
    assert tree.names("a.py", {"black": {"disabled": True}}) == ["ruff"]
    assert tree.names("a.py", False) == []


def test_one_that_is_not_installed_is_as_if_nothing_was_said(tree: Tree) -> None:
    tree.add("pyproject.toml", text="[tool.ruff]\n[tool.black]\n")
    (tree.bin / "black").unlink()
    assert tree.names("a.py") == ["ruff"]


def test_the_nearest_environment_of_the_project_comes_before_the_path(tree: Tree) -> None:
    tree.add(".prettierrc", "package.json")
    tree.install("prettier", where=tree.root / "node_modules" / ".bin")
    tree.install("prettier", where=tree.root / "web" / "node_modules" / ".bin")
    commands = [
        tree.formatters().find_formatters(tree.root / name)[0].command
        for name in ("web/src/a.ts", "a.ts")
    ]
    assert [command[0] for command in commands] == [
        str(tree.root / "web/node_modules/.bin/prettier"),
        str(tree.root / "node_modules/.bin/prettier"),
    ]
    assert commands[0][1:] == ("--stdin-filepath", str(tree.root / "web/src/a.ts"))


def test_the_configuration_of_the_reference_works(tree: Tree) -> None:
    tree.install("my-fmt")
    configured = {
        "prettier": {"disabled": True},
        "gofmt": {},
        "mine": {
            "command": ["my-fmt", "--fix", "$FILE"],
            "environment": {"A": "1"},
            "extensions": [".md", ".txt"],
        },
        "other": {"command": ["./fmt.sh", "$FILE"], "extensions": [".txt"]},
        "gone": {"command": ["no-such", "$FILE"], "extensions": [".x"]},
        "empty": {"extensions": [".x"]},
    }
    tree.add(".prettierrc", "fmt.sh")
    (tree.root / "fmt.sh").chmod(0o755)
    assert tree.names("a.md", configured) == ["mine"]
    assert tree.names("a.ts", configured) == []
    assert tree.names("a.go", configured) == ["gofmt"]
    mine, other = tree.formatters(configured).find_formatters(tree.root / "a.txt")
    assert mine.command == (str(tree.bin / "my-fmt"), "--fix", str(tree.root / "a.txt"))
    assert (mine.environment["A"], mine.is_filter, mine.folder) == ("1", False, tree.root)
    assert other.command[0] == str(tree.root / "fmt.sh")
    assert [
        each.obstacle for each in tree.formatters(configured).find_formatters(tree.root / "a.x")
    ] == [
        "there is no no-such, neither in the project nor on the PATH",
        "the configuration has no command for it",
    ]


def test_a_formatter_gets_no_variable_but_those_of_tools_and_its_own(tree: Tree) -> None:
    tree.add(".prettierrc")
    tree.workspace.environment |= {"MY_TOKEN": "secret", "GOPATH": "/go"}
    (found,) = tree.formatters(
        {"prettier": {"environment": {"A": "1"}, "sandbox": False}}
    ).find_formatters(tree.root / "a.ts")
    assert found.environment == {"PATH": str(tree.bin), "GOPATH": "/go", "A": "1"}
    assert found.sandbox is False


def test_a_known_one_with_a_command_of_its_own_changes_the_file_in_place(tree: Tree) -> None:
    (found,) = tree.formatters(
        {"ruff": {"command": ["ruff", "check", "--fix", "$FILE"]}}
    ).find_formatters(tree.root / "a.py")
    assert (found.is_filter, found.success_codes) == (False, (0, 1))


def test_the_edition_of_rust_is_that_of_the_nearest_manifest_that_names_one(tree: Tree) -> None:
    tree.add("Cargo.toml", text='[workspace.package]\nedition = "2024"\n')
    tree.add("one/Cargo.toml", text="[package]\nedition.workspace = true\n")
    tree.add("two/Cargo.toml", text='[package]\nedition = "2018"\n')
    commands = [
        tree.formatters().find_formatters(tree.root / name / "src/a.rs")[0].command[1:]
        for name in ("one", "two")
    ]
    assert commands == [("--edition", "2024"), ("--edition", "2018")]


@pytest.mark.parametrize("name", ["../a.py", ".git/hooks/a.py", ".codeloop/tool/a.py"])
def test_what_is_outside_or_protected_is_never_formatted(tree: Tree, name: str) -> None:
    assert tree.formatters({"ruff": {}}).find_formatters((tree.root / name).resolve()) == []


def test_the_states_say_which_would_format_a_file(tree: Tree) -> None:
    tree.add("ruff.toml", ".prettierrc", "go.mod")
    (tree.bin / "gofmt").unlink()
    configured = {
        "prettier": {"disabled": True},
        "mine": {"command": ["no-such"], "extensions": [".x"]},
        "shfmt": {},
    }
    states = {state.name: state for state in tree.formatters(configured).list_states()}
    assert [name for name, state in states.items() if state.is_enabled] == ["ruff", "shfmt"]
    assert states["mine"].extensions == (".x",)
    assert not any(state.is_enabled for state in tree.formatters(False).list_states())
