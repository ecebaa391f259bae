"""Symbolic links in `glob`, `list` and `grep`: shown, followed within the project,
and never out of it.
"""

from pathlib import Path

import pytest

from codeloop.permission.gate import Denied
from codeloop.tool.builtin.search.glob import GlobParams, glob
from codeloop.tool.builtin.search.grep import GrepParams, grep
from codeloop.tool.builtin.search.list_ import ListParams, list_
from tests.tool.context import TestContext, make_context


@pytest.fixture
def ctx(tmp_path: Path) -> TestContext:
    """A project whose folder `app` links to a file beside it, to folders in and out of it,
    to itself and to nothing.
    """
    made = make_context(tmp_path)
    root = made.workspace.root
    for name in ("AGENTS.md", "app/own.py", "shared/lib.py", "app/build/ignored.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("needle\n")
    (root / "app/.gitignore").write_text("build\nskipped.py\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret.py").write_text("needle\n")
    links = {
        "CLAUDE.md": "../AGENTS.md",
        "shared": "../shared",
        "loop": "..",
        "out": "../../elsewhere",
        "dead.py": "gone.py",
        "same.py": "own.py",
        "skipped.py": "own.py",
    }
    for name, target in links.items():
        (root / "app" / name).symlink_to(target)
    return made


async def find(ctx: TestContext, pattern: str, path: str = "app") -> set[str]:
    result = await glob.run(GlobParams(pattern=pattern, path=path), ctx)
    return set(result.output.partition("\n\n")[0].splitlines())


async def test_glob_shows_links_with_their_targets_and_enters_folders_of_the_project(
    ctx: TestContext,
) -> None:
    assert await find(ctx, "*.md") == {"app/CLAUDE.md -> ../AGENTS.md"}
    assert await find(ctx, "*.py") == {
        "app/own.py",
        "app/shared/lib.py",
        "app/dead.py -> gone.py",
        "app/same.py -> own.py",
    }
    assert await find(ctx, "shared/*.py") == {"app/shared/lib.py"}
    assert await find(ctx, "app/shared/**", ".") == {"app/shared/lib.py"}


async def test_a_pattern_by_way_of_a_link_that_leads_out_is_asked_about(ctx: TestContext) -> None:
    ctx.deny = ("external_directory",)
    with pytest.raises(Denied):
        await find(ctx, "out/*.py")


async def test_list_shows_links(ctx: TestContext) -> None:
    output = (await list_.run(ListParams(path="app"), ctx)).output
    for line in (
        "CLAUDE.md -> ../AGENTS.md",
        "out -> ../../elsewhere",
        "loop -> ..",
        "dead.py -> gone.py",
        "own.py",
    ):
        assert f"  {line}\n" in output
    assert "skipped" not in output
    assert "(the link out leads out of the project and was not followed)" in output


async def test_grep_follows_links_to_what_it_does_not_reach_otherwise(ctx: TestContext) -> None:
    output = (await grep.run(GrepParams(pattern="needle", path="app", mode="files"), ctx)).output
    heading, *rest = output.splitlines()
    assert heading == "3 files"
    assert set(rest[:3]) == {"app/own.py", "app/CLAUDE.md", "app/shared/lib.py"}
    assert rest[3:] == ["", "(The link out leads out of the project and was not followed.)"]
    output = (
        await grep.run(GrepParams(pattern="needle", path="app", mode="files", include="*.md"), ctx)
    ).output
    assert output.splitlines()[:2] == ["1 file", "app/CLAUDE.md"]
    output = (await grep.run(GrepParams(pattern="needle", mode="files"), ctx)).output
    assert "3 files" in output, "each once: what the links lead to is found in its own place"


async def test_links_are_followed_where_only_their_own_path_passes_the_filter(
    ctx: TestContext,
) -> None:
    root = ctx.workspace.root
    (root / "notes.md").symlink_to("app/own.py")
    (root / "deep").symlink_to("app/build/..")
    for include, found in (
        ("CLAUDE.md", {"app/CLAUDE.md"}),
        ("notes.md", {"notes.md"}),
        ("same.py", {"app/same.py"}),
        ("deep/*.py", {"deep/own.py"}),
        ("{deep,shared}/*.py", {"deep/own.py", "shared/lib.py"}),
        ("*/own.py", {"app/own.py"}),
        ("!*.py", {"AGENTS.md", "notes.md"}),
    ):
        params = GrepParams(pattern="needle", mode="files", include=include)
        output = (await grep.run(params, ctx)).output
        assert set(output.split("\n\n")[0].splitlines()[1:]) == found, include
    assert await find(ctx, "{deep,shared}/*.py", ".") == {"deep/own.py", "shared/lib.py"}
