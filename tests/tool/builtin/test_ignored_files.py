"""A search that finds nothing says so otherwise than one whose files were
left out by an ignore file.
"""

from pathlib import Path

from codeloop.tool.builtin.search.glob import GlobParams, glob
from codeloop.tool.builtin.search.list_ import ListParams, list_
from tests.tool.context import make_context


async def test_ignored_files_are_told_from_none(tmp_path: Path) -> None:
    context = make_context(tmp_path)
    folder = context.workspace.directory
    (folder / ".gitignore").write_text("build/\n*.log\n")
    for name in ("build/a.js", "logs/a.log", "empty/b.log", "a.log", "b.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("")
    (folder / "empty/b.log").unlink()
    for pattern, count in (
        ("*.log", "2 files are"),
        ("build/**", "1 file is"),
        ("**/*.js", "1 file is"),
    ):
        output = (await glob.run(GlobParams(pattern=pattern), context)).output
        assert output.startswith(f"No files found\n\n({count} there, but left out by .gitignore")
    assert (await glob.run(GlobParams(pattern="*.py"), context)).output == "No files found"
    assert (await glob.run(GlobParams(pattern="*.txt"), context)).output == "b.txt"
    assert (
        "1 file is there, but left out"
        in (await list_.run(ListParams(path="logs"), context)).output
    )
    assert (await list_.run(ListParams(path="empty"), context)).output == "empty/\n  (no files)"
