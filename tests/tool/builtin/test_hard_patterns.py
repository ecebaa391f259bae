"""Searches in files of Windows, over lines, for paths with backslashes,
and in folders called `[id]`.
"""

from pathlib import Path

import pytest

from codeloop.tool.builtin.search.glob import GlobParams, glob
from codeloop.tool.builtin.search.grep import GrepParams, grep
from tests.tool.context import TestContext, make_context


@pytest.fixture
def ctx(tmp_path: Path) -> TestContext:
    made = make_context(tmp_path)
    root = made.workspace.root
    (root / "windows.txt").write_bytes(
        b"one\r\nTARGET\r\nstart {\r\n x\r\n} end\r\npath C:\\new\\x\r\n"
    )
    folder = root / "app/(private)/[lang]"
    folder.mkdir(parents=True)
    (folder / "page.{id}.tsx").write_text("needle\n")
    (folder / "other.ts").write_text("needle\n")
    return made


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("TARGET$", "2: TARGET"),
        ("^one$", "1: one"),
        (r"TARGET\nstart", "2: TARGET\n3: start {"),
        ("TARGET\nstart", "2: TARGET\n3: start {"),
        ("start {\n x", "3: start {\n4:  x"),
        (r"start \{[\s\S]*?end", "3: start {\n4:  x\n5: } end"),
        (r"(?s)start.*end", "3: start {\n4:  x\n5: } end"),
        (r"C:\new", r"6: path C:\new\x"),
        (r"TARGET[^\n]*$", "2: TARGET"),
    ],
)
async def test_patterns_mean_the_same_whatever_ends_a_line(
    ctx: TestContext, pattern: str, lines: str
) -> None:
    assert f"windows.txt\n{lines}" in (await grep.run(GrepParams(pattern=pattern), ctx)).output


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("app/(private)/[lang]/**", ["other.ts", "page.{id}.tsx"]),
        ("app/(private)/[lang]/*.tsx", ["page.{id}.tsx"]),
        ("**/[lang]/*.{ts,js}", ["other.ts"]),
        ("app/**/page.{id}.tsx", ["page.{id}.tsx"]),
        ("app/(private)/[lang]/page.{id}.tsx", ["page.{id}.tsx"]),
        ("app/**/oth[e]r.ts", ["other.ts"]),
    ],
)
async def test_folders_with_brackets_are_found_by_their_names(
    ctx: TestContext, pattern: str, names: list[str]
) -> None:
    for output in (
        (await glob.run(GlobParams(pattern=pattern), ctx)).output,
        (
            await grep.run(GrepParams(pattern="needle", include=pattern, mode="files"), ctx)
        ).output.partition("\n")[2],
    ):
        assert sorted(output.splitlines()) == [f"app/(private)/[lang]/{name}" for name in names]


async def test_a_class_that_matches_is_a_class(ctx: TestContext) -> None:
    (ctx.workspace.root / "a.py").touch()
    assert (await glob.run(GlobParams(pattern="[ab].py"), ctx)).output == "a.py"
