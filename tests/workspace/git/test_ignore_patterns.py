"""Patterns of .gitignore, against git's own answers."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codeloop.kit.paths import join_relative
from codeloop.workspace.git.ignore_patterns import (
    list_user_excludes,
    parse_attributes,
    parse_ignore_file,
)
from tests.support.examples import scale_examples
from tests.workspace.snapshot.trees_on_disk import git, names_in, snapshots_of, taken, write

PIECES = [
    "a",
    "b",
    "ab",
    "*",
    "**",
    "***",
    "?",
    "[ab]",
    "[!a]",
    "[a-b]",
    "\\a",
    "a*",
    "*b",
    "a**",
    "{a}",
    "[[:alpha:]]",
]
PATTERNS = st.builds(
    lambda sign, start, parts, end: sign + start + "/".join(parts) + end,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "/"]),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=3),
    st.sampled_from(["", "", "/", " ", "\r"]),
)
FILES = ["a", "b", "ab", "x/a", "x/b", "a1/b", "b1/ab/a", "x/y/a", "x/y/ab", "ab1/a/b/a"]


@pytest.mark.slow
@settings(max_examples=scale_examples(30))
@given(top=st.lists(PATTERNS, max_size=4), below=st.lists(PATTERNS, max_size=2))
@example(top=["*", "!x/", "!a"], below=["!b"])
@example(top=["x/**", "!x/y/**"], below=[])
@example(top=["a", "a**/b"], below=[])
async def test_what_is_ignored_is_what_git_ignores(top: list[str], below: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "work"
        rules = {".gitignore": "\n".join(top) + "\n", "x/.gitignore": "\n".join(below) + "\n"}
        write(root, {**dict.fromkeys(FILES, "1"), **rules})
        git(root, "init", "-q")
        snapshots = snapshots_of(root, Path(name))
        found = names_in(snapshots, (await taken(snapshots)).tree)
        listed = git(root, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
        assert found == sorted(each for each in listed if each)


def test_lines_that_say_nothing_are_passed_over() -> None:
    assert parse_ignore_file(b"# comment\n\n   \n[\n\\\n\\\\\\\n", "").lines == ()


def test_only_attributes_that_convert_count() -> None:
    found = parse_attributes(
        b"* text=auto\n*.bin filter=lfs diff=lfs -text\n*.bat eol=crlf\n", "", ("filter", "eol")
    )
    assert found.decide("x.bin", "x.bin", is_folder=False)
    assert found.decide("d/x.bat", "x.bat", is_folder=False)
    assert found.decide("x.txt", "x.txt", is_folder=False) is None
    assert join_relative("", os.curdir) == "."


def test_a_mark_of_utf8_at_the_start_is_no_part_of_a_pattern() -> None:
    assert parse_ignore_file(b"\xef\xbb\xbfa.txt\n", "").decide("a.txt", "a.txt", is_folder=False)
    assert parse_attributes(b"\xef\xbb\xbf*.a filter=x\n", "", ("filter",)).decide(
        "b.a", "b.a", is_folder=False
    )


@pytest.mark.parametrize(
    ("setting", "other"),
    [("~/mine", ""), ('"~/mine"', ""), ("/etc/all", ""), ("~/late", "~/early"), ("", "~/early")],
)
def test_the_users_file_of_patterns_is_the_one_that_git_takes(
    tmp_path: Path, setting: str, other: str
) -> None:
    (tmp_path / ".config/git").mkdir(parents=True)
    for file, value in ((".gitconfig", setting), (".config/git/config", other)):
        (tmp_path / file).write_text(f"[core]\n\texcludesFile = {value}\n" if value else "")
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    command = ["git", "config", "--global", "--type=path", "core.excludesfile"]
    taken = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    if setting:
        assert list_user_excludes(environment) == (Path(taken.stdout.strip()),)
    assert list_user_excludes(environment) == (
        Path((setting or other).strip('"').replace("~", str(tmp_path))),
    )


def test_without_a_setting_the_users_patterns_are_in_the_folder_of_gits_settings(
    tmp_path: Path,
) -> None:
    assert list_user_excludes({"HOME": str(tmp_path)}) == (tmp_path / ".config/git/ignore",)
    assert list_user_excludes({"HOME": str(tmp_path), "XDG_CONFIG_HOME": "/x"}) == (
        Path("/x/git/ignore"),
    )
    assert list_user_excludes({}) == ()
