import os
from pathlib import Path
from typing import Any

import pytest

from codeloop.permission.gate import Denied
from codeloop.tool.builtin.search.grep import GrepParams, grep
from codeloop.tool.tool import ToolFailure, ToolResult
from tests.tool.context import TestContext, make_context


@pytest.fixture
def ctx(tmp_path: Path) -> TestContext:
    made = make_context(tmp_path)
    for age, (name, text) in enumerate(
        {"old.py": "x = 1\nneedle\n", "new.py": "needle a\nb\nneedle c\n"}.items()
    ):
        path = made.workspace.root / name
        path.write_text(text)
        os.utime(path, (1_000_000 + age, 1_000_000 + age))
    return made


async def run(ctx: TestContext, pattern: str, **more: Any) -> ToolResult:
    return await grep.run(GrepParams(pattern=pattern, **more), ctx)


async def test_matches_are_shown_by_file_newest_first(ctx: TestContext) -> None:
    result = await run(ctx, "needle")
    assert result.output == (
        "3 matches in 2 files\nnew.py\n1: needle a\n3: needle c\n\nold.py\n2: needle"
    )
    assert result.title == "needle"
    assert result.metadata == {
        "matches": 3,
        "files": 2,
        "truncated": False,
        "display": [
            {"path": "new.py", "lines": [[1, True, "needle a"], [3, True, "needle c"]]},
            {"path": "old.py", "lines": [[2, True, "needle"]]},
        ],
    }


async def test_the_pattern_is_asked_for(ctx: TestContext) -> None:
    await run(ctx, "needle", path=".", include="*.py")
    (need,) = ctx.asked
    assert (need.permission, need.patterns, need.always) == ("grep", ("needle",), ("*",))
    assert need.metadata == {"pattern": "needle", "path": ".", "include": "*.py"}


async def test_nothing_found_is_a_fixed_line(ctx: TestContext) -> None:
    result = await run(ctx, "absent")
    assert (result.output, result.metadata) == (
        "No matches found",
        {"matches": 0, "truncated": False},
    )


async def test_context_lines_are_marked(ctx: TestContext) -> None:
    result = await run(ctx, "a$", context=1, path="new.py")
    assert result.output.splitlines()[2:] == ["1: needle a", "2- b"]


async def test_before_and_after_stand_beside_context_and_groups_are_parted(
    ctx: TestContext,
) -> None:
    (ctx.workspace.root / "long.py").write_text("".join(f"{n}\n" for n in range(1, 31)))
    assert (await run(ctx, "^(5|7|20)$", path="long.py", before=1)).output == (
        "3 matches in 1 file\nlong.py\n4- 4\n5: 5\n6- 6\n7: 7\n--\n19- 19\n20: 20"
    )
    assert (await run(ctx, "^5$", path="long.py", context=2, after=1)).output.splitlines()[2:] == [
        "3- 3", "4- 4", "5: 5", "6- 6",
    ]  # fmt: skip


async def test_a_function_and_what_follows_it_fit_and_a_cut_is_said(ctx: TestContext) -> None:
    (ctx.workspace.root / "long.py").write_text("".join(f"{n}\n" for n in range(1, 301)))
    whole = (await run(ctx, "^5$", path="long.py", after=90)).output.splitlines()
    assert (whole[0], whole[-1]) == ("1 match in 1 file", "95- 95")
    cut = (await run(ctx, "^5$", path="long.py", after=200)).output.splitlines()
    assert (cut[0], cut[-1]) == (
        "1 match in 1 file (with 100 lines around a match, which is the most)",
        "105- 105",
    )


async def test_lock_files_are_left_out_beside_others_and_shown_by_name(ctx: TestContext) -> None:
    (ctx.workspace.root / "yarn.lock").write_text("needle\n" * 500)
    result = await run(ctx, "needle")
    assert result.output.startswith(
        "3 matches in 2 files (500 more in yarn.lock left out; with it as path they are shown)\nnew.py\n1: needle a"
    )
    assert "yarn.lock: 500" in (await run(ctx, "needle", mode="count")).output
    for only in ({"path": "yarn.lock"}, {"include": "*.lock"}):
        assert (await run(ctx, "needle", **only)).output.startswith(
            "500 matches in 1 file (the first 100; narrow the pattern)"
        )
    (ctx.workspace.root / "yarn.lock").write_text("needle\n")
    assert "yarn.lock\n1: needle" in (await run(ctx, "needle")).output


async def test_what_lies_outside_of_the_directory_has_an_absolute_path(tmp_path: Path) -> None:
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    (root / "top.py").write_text("needle\n")
    (root / "sub" / "own.py").write_text("needle\n")
    ctx = make_context(tmp_path, root=root, directory=root / "sub")
    found = await run(ctx, "needle", path="..", mode="files")
    assert set(found.output.splitlines()) == {"2 files", "own.py", f"{root}/top.py"}


async def test_files_and_count_modes(ctx: TestContext) -> None:
    assert (await run(ctx, "needle", mode="files")).output == "2 files\nnew.py\nold.py"
    assert (
        await run(ctx, "needle", mode="count")
    ).output == "3 matches in 2 files\nnew.py: 2\nold.py: 1"


async def test_at_most_a_hundred_matches_are_shown(ctx: TestContext) -> None:
    (ctx.workspace.root / "many.py").write_text("needle\n" * 500)
    result = await run(ctx, "needle", context=1)
    assert result.output.startswith("503 matches in 3 files (100 shown, of each file some,")
    assert result.output.count(": needle") == 100
    assert {"matches": 503, "files": 3, "truncated": True}.items() <= result.metadata.items()


async def test_what_is_no_expression_is_searched_for_as_plain_text_and_that_is_said(
    ctx: TestContext,
) -> None:
    (ctx.workspace.root / "call.py").write_text("a(b)\n")
    found = await run(ctx, "a(")
    assert found.output == (
        "1 match in 1 file\ncall.py\n1: a(b)\n\n"
        "(Searched for as plain text, as it is not a valid regular expression: unclosed group.)"
    )


async def test_outside_is_asked_about_first(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=["external_directory"])
    with pytest.raises(Denied):
        await run(ctx, "root", path="/etc/passwd")
    assert (ctx.asked[0].patterns, ctx.asked[0].always) == (("/etc/passwd",), ("/etc/*",))
    assert ctx.asked[0].metadata == {"filepath": "/etc/passwd", "parentDir": "/etc"}


async def test_a_denied_search_reads_nothing(tmp_path: Path) -> None:
    with pytest.raises(Denied):
        await run(make_context(tmp_path, deny=["grep:secret*"]), "secret")


async def test_a_missing_path_is_refused(ctx: TestContext) -> None:
    with pytest.raises(ToolFailure, match="There is no file or folder"):
        await run(ctx, "x", path="missing")


async def test_env_files_are_left_out_of_a_folder_and_asked_about_by_name(ctx: TestContext) -> None:
    root = ctx.workspace.root
    (root / "sub").mkdir()
    for name in (".env", "sub/.env.local", "a.env.example"):
        (root / name).write_text("needle KEY\n")
    (root / "link").symlink_to(".env")
    result = await run(ctx, "needle KEY")
    assert "\na.env.example\n1: " in result.output
    assert "2 files that match are left out" in result.output
    assert "env.local" not in result.output
    assert (
        "No matches found (2 files"
        in (await run(ctx, "needle KEY", include="{.env,.env.*}")).output
    )
    ctx.asked.clear()
    await run(ctx, "needle KEY", path="link")
    assert [(need.permission, need.patterns) for need in ctx.asked] == [
        ("grep", ("needle KEY",)),
        ("read", (".env",)),
    ]


CART = """\
TOTAL = 1


class Cart:
    def price(self):
        total = 0
        return total

    def clear(self):
        '''Empty it,

        for good.'''
        pass  # all
        end()
"""
WHOLE = """\
4 matches in 1 file
cart.py
 1: TOTAL = 1
--
 5-     def price(self):
 6:         total = 0
 7:         return total
--
 9-     def clear(self):
            '''Empty it,

            for good.'''
            pass  # all
14:         end()"""


async def test_the_functions_around_matches_are_shown_whole(ctx: TestContext) -> None:
    (ctx.workspace.root / "cart.py").write_text(CART)
    assert (await run(ctx, r"total|TOTAL|end\(", block=True)).output == WHOLE


async def test_of_a_function_of_over_forty_lines_its_head_and_what_is_near_are_shown(
    ctx: TestContext,
) -> None:
    body = "".join(f"    value_{n} = {n}\n" for n in range(1, 81))
    (ctx.workspace.root / "sums.py").write_text(f"@cached\ndef sums():\n{body}\nsums()\n")
    near = (await run(ctx, "value_30 =", block=True)).output.splitlines()[2:]
    assert near[0].endswith(" @cached")
    assert [line.split("= ")[-1] for line in near[2:]] == [str(n) for n in range(22, 39)]
    whole = (await run(ctx, "sums", block=True)).output
    assert "value_80 = 80" in whole, "the definition is shown whole"
    assert len((await run(ctx, "value_1 =|value_80 =", block=True)).output.splitlines()) < 30


async def test_searches_of_one_step_show_a_block_once(ctx: TestContext) -> None:
    body = "".join(f"    value_{n} = {n}\n" for n in range(1, 31))
    (ctx.workspace.root / "sums.py").write_text(f"def sums():\n{body}")
    first = (await run(ctx, "value_9 =", block=True)).output
    assert "value_30 = 30" in first
    second = (await run(ctx, "value_12 =", block=True)).output
    assert second.splitlines()[1:] == [
        "sums.py",
        "(1-12 as shown by the search for `value_9 =` of this step)",
        "13:     value_12 = 12",
        "(14-31 as shown by the search for `value_9 =` of this step)",
    ]
    ctx.message_id = "msg_next"
    assert "value_30 = 30" in (await run(ctx, "value_12 =", block=True)).output, (
        "it may have been compacted away"
    )


async def test_what_is_shown_is_shared_between_files(ctx: TestContext) -> None:
    for name in ("a", "b"):
        (ctx.workspace.root / f"{name}.txt").write_text(f"thing {'x' * 990}\n" * 40)
    (ctx.workspace.root / "c.txt").write_text("thing\n")
    result = await run(ctx, "thing")
    assert 20_000 < len(result.output) < 25_000
    blocks = result.output.partition("\n")[2].split("\n\n")
    shown = {block.partition("\n")[0]: block.count("thing") for block in blocks}
    assert shown["c.txt"] == 1
    assert min(shown["a.txt"], shown["b.txt"]) >= 11
    assert result.output.count(" more)\n") + result.output.endswith(" more)") == 2


async def test_a_match_in_a_long_function_or_in_a_comment_above_one_names_the_function(
    ctx: TestContext,
) -> None:
    rows = ["/**", " * Reads.", " *", " * @param goal what is read", " */", "function long(goal) {"]
    rows += [f"  step({number});" for number in range(7, 200)]
    rows[99] = "  use(goal);"
    (ctx.workspace.root / "long.js").write_text("\n".join([*rows, "}", "", "goal();", ""]))
    result = await run(ctx, "goal$|goal what|use.goal|^goal", block=True, path="long.js")
    assert result.output.splitlines()[2:] == [
        *(
            "  2-  * Reads.",
            "      *",
            "  4:  * @param goal what is read",
            "      */",
            "     function long(goal) {",
        ),
        *(
            "--",
            " 98-   step(98);",
            "       step(99);",
            "100:   use(goal);",
            "       step(101);",
            "       step(102);",
        ),
        *("--", "202: goal();"),
    ]
    many = await run(ctx, "step", block=True, path="long.js")
    assert many.output.splitlines()[2:4] == ["  7:   step(7);", "  8:   step(8);"], (
        "many matches stay alone"
    )


@pytest.mark.parametrize("line_end", ["\n", "\r\n", ""])
async def test_a_match_is_in_its_line_however_long_that_is(ctx: TestContext, line_end: str) -> None:
    text = f"first\n{'a' * 700}\u00e4needle{'b' * 700}{line_end}"
    (ctx.workspace.root / "long.txt").write_bytes(text.encode())
    (ctx.workspace.root / "short.txt").write_text(f"needle{'c' * 700}\n{'d' * 490}needle\n")
    found = await run(ctx, "needle", path="long.txt")
    line = found.output.splitlines()[2]
    assert line.startswith("2: [... from byte 603 of the line] aaa")
    assert "\u00e4needlebbb" in line
    assert line.endswith("b [... omitted end of long line]")
    lines = (await run(ctx, "needle", path="short.txt")).output.splitlines()
    assert lines[2].startswith("1: needleccc")
    assert lines[2].endswith("c [... omitted end of long line]")
    assert lines[3] == f"2: {'d' * 490}needle"


async def test_a_match_far_into_a_text_of_another_encoding_is_told_of_without_it(
    ctx: TestContext,
) -> None:
    (ctx.workspace.root / "wide.txt").write_bytes(f"{'a' * 700}needle\n".encode("utf-16"))
    found = await run(ctx, "needle", path="wide.txt")
    assert found.output.splitlines()[2] == f"1: {'a' * 500} [... omitted end of long line]"
