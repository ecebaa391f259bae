"""A command that found nothing to run names at once what exists nearby."""

from pathlib import Path

import pytest

from codeloop.tool.builtin.shell.bash import BashParams, bash
from tests.tool.context import make_context


@pytest.mark.parametrize(
    ("printed", "note"),
    [
        ("Could not find '{root}/tests/t/a.test.js'", "Similar paths: t/a.test.js."),
        (
            "python: can't open file '{root}/a.test.js': [Errno 2] No such file or directory",
            "t/a.test.js",
        ),
        ('Error: No test files found: "tests/a.test.js"', "t/a.test.js"),
        ("No files matching the pattern 'a.test.js' were found.", "t/a.test.js"),
        ("sh: 0: cannot open a.test.js: No such file", "t/a.test.js"),
        ("npm error Could not read package.json: Error: ENOENT", "There is a package.json in web."),
        (
            "make: *** No targets specified and no makefile found.  Stop.",
            "There is a Makefile in build.",
        ),
    ],
)
async def test_what_is_near_is_named(tmp_path: Path, printed: str, note: str) -> None:
    ctx = make_context(tmp_path)
    root = ctx.workspace.directory
    for name in ("t/a.test.js", "web/package.json", "build/Makefile", "tests/b.js"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    (root / "printed").write_text(printed.format(root=root) + "\n")
    result = await bash.run(BashParams(command="cat printed; exit 1"), ctx)
    assert note in result.output


async def test_a_makefile_above_is_named(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    root = ctx.workspace.directory
    (root / "Makefile").touch()
    (root / "src").mkdir()
    await bash.run(BashParams(command="cd src"), ctx)
    result = await bash.run(BashParams(command="echo 'no makefile found'; exit 2"), ctx)
    assert "There is a Makefile in ." in result.output
