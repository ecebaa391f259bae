"""Imports of instruction files, rules in `.claude/rules`,
CLAUDE.local.md: read as Claude Code reads them.
"""

from pathlib import Path

import pytest

from codeloop.config.instruction_rules import find_rules_for, list_imports, split_rule
from codeloop.config.instructions import Instructions, read_instructions
from codeloop.schema.config import Config
from tests.config.conftest import World


def read(world: World, *, trusted: bool = True, directory: str = "") -> Instructions:
    return read_instructions(world.place(directory), world.paths, Config(), trusted=trusted)


def texts(found: Instructions) -> list[str]:
    return [file.text for file in found.files]


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        ("See @docs/a.md and @~/b.md, or @./c.md.", ["docs/a.md", "~/b.md", "./c.md"]),
        ("- @a\\ b.md\n@c.md", ["a b.md", "c.md"]),
        ("mail a@b.md, `@code.md`, ``@x `@y.md` ``", []),
        ("```\n@a.md\n```\n~~~sh\n@b.md\n~~~\n@c.md", ["c.md"]),
    ],
)
def test_imports_are_words_outside_of_code(text: str, imports: list[str]) -> None:
    assert list_imports(text) == imports


def test_imports_follow_their_file_over_four_hops_and_each_once(world: World) -> None:
    world.write("CLAUDE.md", "top @docs/1.md @docs/1.md")
    for number in range(1, 7):
        world.write(
            f"docs/{number}.md", f"{number} @{number + 1}.md @../CLAUDE.md @types/node @someone"
        )
    found = read(world)
    assert [text[:3].strip() for text in texts(found)] == ["top", "1 @", "2 @", "3 @", "4 @"]
    assert [warning.partition("@")[2] for warning in found.warnings] == [
        "5.md is more than 4 imports away: not read."
    ]


@pytest.mark.parametrize("trusted", [True, False])
def test_a_project_imports_no_other_file_of_the_user(world: World, *, trusted: bool) -> None:
    world.write(world.paths.claude_home / "mine.md", "mine")
    world.write(world.root.parent / "other/notes.md", "other")
    world.write(".env", "KEY=1")
    world.write("link.md", "")
    (world.root / "link.md").unlink()
    (world.root / "link.md").symlink_to(world.root.parent / "other/notes.md")
    outside = world.root.parent / "other/notes.md"
    world.write(
        "CLAUDE.md",
        f"@{world.paths.claude_home}/mine.md @{outside} @.env @link.md @../other/notes.md @gone.md",
    )
    found = read(world, trusted=trusted)
    assert texts(found)[1:] == (["mine"] if trusted else [])
    assert len(found.warnings) == (5 if trusted else 6)
    assert all("not read" in warning for warning in found.warnings)


def test_the_user_s_own_file_imports_any(world: World) -> None:
    world.write(world.root.parent / "other/notes.md", "other")
    world.write(world.paths.claude_home / "CLAUDE.md", f"own @{world.root.parent}/other/notes.md")
    assert texts(read(world, trusted=False))[1:] == ["other"]


def test_rules_for_all_files_and_the_local_file_come_after_the_folder_s_own(world: World) -> None:
    world.write("CLAUDE.md", "own")
    world.write("CLAUDE.local.md", "local")
    world.write(".claude/rules/style.md", "---\ndescription: d\n---\nstyle")
    world.write(".claude/rules/deep/er.md", "deeper")
    world.write(".claude/rules/web.md", "---\npaths: src/**/*.{ts,tsx}, *.css\n---\nweb")
    assert texts(read(world)) == ["own", "local", "deeper", "style"]


def test_rules_for_some_files_are_found_with_these(tmp_path: Path) -> None:
    rules = tmp_path / ".claude/rules"
    rules.mkdir(parents=True)
    (rules / "web.md").write_text("---\npaths:\n  - src/**/*.{ts,tsx}\n  - '*.css'\n---\nweb")
    (rules / "all.md").write_text("all")
    (rules / "bad.md").write_text("---\npaths: '[x'\n---\nbad")
    assert [*find_rules_for(tmp_path / "src/a/b.ts", tmp_path)] == [rules / "web.md"]
    assert [*find_rules_for(tmp_path / "a.css", tmp_path)] == [rules / "web.md"]
    assert [*find_rules_for(tmp_path / "src/b.py", tmp_path)] == []
    assert split_rule("no head") == split_rule("---\n---\nno head")
