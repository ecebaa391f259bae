"""What an edit says of the callers of a function that it changed."""

from pathlib import Path

import pytest

from codeloop.tool.builtin.files.edit import EditParams, edit
from codeloop.tool.builtin.files.read import ReadParams, read
from codeloop.tool.files.edit_finisher import FileChange
from codeloop.tool.files.function_callers import describe_callers, list_changed_functions
from tests.tool.context import make_context

OLD = "def add_up(first, second=0):\n    return first + second\n"


async def change(tmp_path: Path, new: str) -> str:
    """Edit a function of `a.py`, which `b.py`, `lib/c.py` and a text call;
    return the last line of the result.
    """
    ctx = make_context(tmp_path)
    for name, text in {
        "a.py": OLD,
        "b.py": "x = add_up(1)\n",
        "lib/c.py": "add_up(2)\n",
        "d.md": "add_up(3)\n",
    }.items():
        file = ctx.workspace.directory / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    await read.run(ReadParams("a.py"), ctx)
    return (await edit.run(EditParams("a.py", OLD.partition("\n")[0], new), ctx)).output.split(
        "\n"
    )[-1]


@pytest.mark.parametrize(
    "new",
    [
        "def add_up(second, first):",
        "def add_up(first, second, third):",
        "def add(first, second=0):",
    ],
)
async def test_an_edit_names_the_files_that_call_what_it_changed(tmp_path: Path, new: str) -> None:
    assert await change(tmp_path, new) == "`add_up(` also occurs in b.py, lib/c.py."


async def test_an_edit_that_no_caller_notices_says_nothing(tmp_path: Path) -> None:
    assert (
        await change(tmp_path, "def add_up(first: int, second: int = 0, *, third=None):")
        == "Edited a.py: line 1"
    )


@pytest.mark.parametrize(
    ("suffix", "before", "after", "is_changed"),
    [
        ("py", "def run_all(a, b=1): ...", "def run_all(a, b=2, *rest, **more): ...", False),
        ("py", "async def run_all(a): ...", "async def run_all(a, b): ...", True),
        (
            "py",
            "def run_all(\n    self,\n    a: dict[str, int],\n): ...",
            "def run_all(self, a): ...",
            False,
        ),
        ("py", "def run_all(a=1): ...", "def run_all(a): ...", True),
        ("py", "def test_all(a): ...", "def test_all(): ...", False),
        ("py", "def run(): ...\ndef run(a): ...", "def run(b): ...\ndef run(a): ...", False),
        (
            "ts",
            "export function loadAll(a: string, b?: number) {",
            "export function loadAll(a: string) {",
            True,
        ),
        ("ts", "function loadAll(a: string) {", "function loadAll(a: URL, b?: number) {", False),
        ("go", "func (s *Shop) Sum(a int) int {", "func (s *Shop) Sum(a int, b int) int {", True),
        (
            "rs",
            "pub fn sum_all(a: &[u8]) -> u8 {",
            "pub fn sum_all<T>(a: &[u8], b: u8) -> u8 {",
            True,
        ),
        ("rs", "pub fn sum_all(a: &[u8]) -> u8 {", "pub fn sum_all(a: &[u8]) -> u16 {", False),
        ("py", "def run_all(a, b=1): ...", "def run_all(a, c=0, b=1): ...", True),
        ("py", "def run_all(a, *rest): ...", "def run_all(a, b=1, *rest): ...", True),
        (
            "py",
            "def run_all(a, *, b=1, **more): ...",
            "def run_all(a, c=2, *, d=3, b=1, **more): ...",
            False,
        ),
        ("py", "def run_all(a, b): ...", "def run_all(a, *, b): ...", True),
        (
            "ts",
            "function loadAll(a: string) {",
            "function loadAll(a: string, done: () => void) {",
            True,
        ),
        (
            "ts",
            "function loadAll(a: string) {",
            "function loadAll(a: string, done: () => void = skip) {",
            False,
        ),
        (
            "ts",
            "function loadAll(a: string) {",
            "function loadAll(a: string, ...rest: string[]) {",
            False,
        ),
        ("go", "func Sum(a int) int {", "func Sum(a int, shop *Shop) int {", True),
        ("go", "func Sum(a int) int {", "func Sum(a int, rest ...int) int {", False),
        ("kt", "fun sumAll(a: Int) {", "fun sumAll(a: Int, b: Int?) {", True),
        ("md", "def run_all(a): ...", "def run_all(b): ...", False),
    ],
)
def test_parameters_that_matter_to_callers_are_known(
    suffix: str, before: str, after: str, *, is_changed: bool
) -> None:
    assert bool(list_changed_functions(f".{suffix}", before, after)) is is_changed


async def test_files_that_an_error_names_are_not_named_again(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    for name in ("b.py", "c.py"):
        (ctx.workspace.directory / name).write_text("x = add_up(1)\n")
    target = ctx.workspace.resolve("a.py")
    change = FileChange(target, None, b"", OLD, OLD.replace("second=0", "second"))
    assert await describe_callers(ctx, [change], "1 new error:\nb.py:1: Argument missing") == (
        "`add_up(` also occurs in c.py."
    )
