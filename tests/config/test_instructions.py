"""AGENTS.md, CLAUDE.md and `instructions`: found in order, bounded, never a failure."""

import os
from pathlib import Path

import pytest

from codeloop.config import instructions as module
from codeloop.config.instructions import Instructions, read_instructions
from codeloop.schema.config import Config
from tests.config.conftest import World


def read(world: World, *patterns: str, directory: str = "", trusted: bool = True) -> Instructions:
    return read_instructions(
        world.place(directory), world.paths, Config(instructions=list(patterns)), trusted=trusted
    )


def texts(found: Instructions) -> list[str]:
    return [file.text for file in found.files]


def test_nothing_there_is_nothing_read(world: World) -> None:
    assert read(world) == Instructions((), ())


def test_the_global_file_is_the_first_of_three(world: World) -> None:
    world.write(world.paths.claude_home / "CLAUDE.md", "claude")
    assert texts(read(world)) == ["claude"]
    world.write(world.paths.opencode_config / "AGENTS.md", "reference")
    assert texts(read(world)) == ["reference"]
    world.write(world.paths.config / "AGENTS.md", "own")
    assert texts(read(world)) == ["own"]


def test_each_folder_down_to_the_directory_adds_one_file(world: World) -> None:
    world.write("AGENTS.md", "root")
    world.write("CLAUDE.md", "not read beside the other")
    world.write("a/CLAUDE.md", "a")
    world.write("a/b/AGENTS.md", "b")
    world.write("a/b/c/AGENTS.md", "below")
    world.write("z/AGENTS.md", "beside")
    world.write(world.top / "AGENTS.md", "above")
    assert texts(read(world, directory="a/b")) == ["root", "a", "b"]


def test_named_files_come_last_and_only_once(world: World) -> None:
    world.write("AGENTS.md", "root")
    for name in (
        "docs/b.md",
        "docs/a.md",
        "docs/deep/er/c.md",
        "docs/a.txt",
        ".hidden/d.md",
        ".cursor/rules/e.md",
    ):
        world.write(name, name)
    world.write("node_modules/x/f.md", "never")
    world.write(world.paths.home / "mine.md", "mine")
    found = read(
        world, "docs/*.md", "docs/b.md", "./AGENTS.md", "~/mine.md", ".cursor/rules/*.md", "**/*.md"
    )
    assert texts(found) == [
        "root",
        "docs/a.md",
        "docs/b.md",
        "mine",
        ".cursor/rules/e.md",
        "docs/deep/er/c.md",
    ]
    assert found.warnings == ()


def test_a_name_is_looked_for_from_the_directory_up_to_the_root(world: World) -> None:
    world.write("rules.md", "root rules")
    world.write("a/rules.md", "rules of a")
    assert texts(read(world, "rules.md", directory="a/b")) == ["rules of a", "root rules"]


def test_absolute_patterns_are_read(world: World) -> None:
    world.write(world.top / "elsewhere/x.md", "x")
    assert texts(read(world, f"{world.top}/else*/*.md")) == ["x"]


def test_patterns_without_a_match_are_warnings_and_addresses_are_left_to_those_of_the_configuration(
    world: World,
) -> None:
    found = read(world, "https://example.com/rules.md", "none/*.md", "none.md")
    assert found.files == ()
    assert found.warnings == tuple(
        f"instructions: no readable file matches {pattern!r}."
        for pattern in ("none/*.md", "none.md")
    )


def test_what_can_not_be_read_is_a_warning_and_the_next_name_counts(world: World) -> None:
    (world.root / "AGENTS.md").write_bytes(b"caf\xe9")
    world.write("CLAUDE.md", "fine")
    (world.root / "a").mkdir()
    os.mkfifo(world.root / "a/AGENTS.md")
    (world.root / "a/b/AGENTS.md").mkdir(parents=True)
    found = read(world, directory="a/b")
    assert texts(found) == ["fine"]
    assert ["not UTF-8" in found.warnings[0], "not a regular file" in found.warnings[1]] == [
        True,
        True,
    ]


def test_a_long_file_is_cut_between_characters(world: World) -> None:
    for blanks in range(4):
        world.write("AGENTS.md", "x" * blanks + "€" * 40_000)
        found = read(world)
        assert found.files[0].text == "x" * blanks + "€" * ((65_536 - blanks) // 3)
        assert "only its start" in found.warnings[0]


def test_a_link_out_of_a_project_is_not_followed_trusted_or_not(world: World) -> None:
    secret = world.write(world.top / "secret/id.md", "secret")
    (world.root / "AGENTS.md").symlink_to(secret)
    (world.root / "docs").symlink_to(secret.parent)
    (world.root / "inner.md").symlink_to(world.write("real.md", "inside"))
    found = read(world, "docs/*.md", "inner.md", trusted=False)
    assert texts(found) == ["inside"]
    assert [warning.split(" ")[0] for warning in found.warnings[:2]] == [
        str(world.root / "AGENTS.md"),
        str(world.root / "docs/id.md"),
    ]
    (world.root / "CLAUDE.md").symlink_to(secret)
    assert texts(read(world, "docs/*.md", "docs/id.md", "AGENTS.md", "inner.md", trusted=True)) == [
        "inside"
    ]
    # As the configuration itself spells it.
    assert texts(read(world, "../secret/id.md", trusted=True)) == ["secret"]
    assert texts(read(world, "../secret/id.md", trusted=False)) == []


def test_an_untrusted_project_s_own_files_are_read(world: World) -> None:
    world.write("AGENTS.md", "data")
    world.write(world.paths.config / "AGENTS.md", "own")
    assert texts(read(world, trusted=False)) == ["own", "data"]


def test_reading_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = type(module.INSTRUCTION_FILES)
    for number in range(8):
        world.write(f"docs/{number}.md", str(number))
    monkeypatch.setattr(
        module, "INSTRUCTION_FILES", limit("config.instruction_files", 3, "count", "")
    )
    found = read(world, "docs/*.md")
    assert texts(found) == ["0", "1", "2"]
    assert len(found.warnings) == 5


def test_looking_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        world.write(f"docs/{number}/x.md", "x")
    limit = type(module.INSTRUCTION_ENTRIES)
    monkeypatch.setattr(
        module, "INSTRUCTION_ENTRIES", limit("config.instruction_entries", 25, "count", "")
    )
    found = read(world, "**/*.md")
    assert 0 < len(found.files) < 8
    assert found.warnings == ("instructions: stopped after 25 files and folders.",)


def test_a_very_deep_tree_is_only_searched_so_far(world: World) -> None:
    world.write("d/" * 40 + "a.md", "near")
    world.write("d/" * 140 + "a.md", "far")
    assert texts(read(world, "**/*.md")) == ["near"]


def test_paths_are_given_as_they_were_found(world: World) -> None:
    world.write("AGENTS.md", "\ufefftext")
    (file,) = read(world).files
    assert (file.path, file.text) == (Path(world.root / "AGENTS.md"), "text")
