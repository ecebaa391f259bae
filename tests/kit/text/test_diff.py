"""Unified diffs: header, hunks, counts, and time."""

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.kit.text.diff import list_edits, make_unified_diff, split_lines, trim_indent
from tests.support.examples import scale_examples


def test_the_header_and_the_hunk_are_as_on_the_wire() -> None:
    diff = make_unified_diff(
        "/project/calc.py",
        "def add(a, b):\n    return a - b\n",
        "def add(a, b):\n    return a + b\n",
    )
    assert diff.patch == (
        "Index: /project/calc.py\n" + "=" * 67 + "\n--- /project/calc.py\n+++ /project/calc.py\n"
        "@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"
    )
    assert (diff.additions, diff.deletions) == (1, 1)


def test_equal_texts_have_no_diff() -> None:
    assert make_unified_diff("x", "a\n", "a\n").patch == ""


def test_a_new_file_counts_all_its_lines() -> None:
    diff = make_unified_diff("x", "", "a\nb\n")
    assert (diff.additions, diff.deletions) == (2, 0)
    assert "@@ -0,0 +1,2 @@\n+a\n+b\n" in diff.patch


def test_the_ranges_name_the_changed_lines_of_the_new_text() -> None:
    before = "".join(f"{n}\n" for n in range(1, 41))
    after = (
        before.replace("3\n", "three\n", 1)
        .replace("20\n21\n", "")
        .replace("30\n31\n", "a\n31\nb\n")
    )
    assert (
        make_unified_diff("x", before, after).changed_lines
        == "lines 3, 28-30; lines removed after 19"
    )
    assert (
        make_unified_diff("x", before, before.removeprefix("1\n")).changed_lines
        == "lines removed at the top"
    )
    assert make_unified_diff("x", "", "a\n").changed_lines == "line 1"
    assert (
        make_unified_diff("x", "a\n" * 30, "a\n").changed_lines
        == "lines removed after 1; 29 lines fewer"
    )
    every = "".join(f"{n}\n" + ("x\n" if n % 4 == 0 else "") for n in range(200))
    numbers = "".join(f"{n}\n" for n in range(200))
    assert make_unified_diff("x", numbers, every).changed_lines.endswith(" and 30 more places")


@given(
    st.lists(st.sampled_from("ab{}\n"), max_size=60),
    st.lists(st.sampled_from("ab{}\n"), max_size=60),
)
def test_every_changed_line_lies_in_a_range(before: list[str], after: list[str]) -> None:
    old, new = "\n".join(before), "\n".join(after)
    diff = make_unified_diff("x", old, new)
    inside = {line for first, last in diff.ranges for line in range(first, last + 1)}
    rest = [line for number, line in enumerate(split_lines(new), 1) if number not in inside]
    theirs = iter(split_lines(old))
    assert all(line in theirs for line in rest), (
        "what no range names stands in the old text, in its order"
    )
    assert bool(diff.ranges) == (old != new)


def test_changes_six_lines_apart_share_a_hunk_and_seven_do_not() -> None:
    for between, hunks in ((6, 1), (7, 2)):
        same = "".join(f"{n}\n" for n in range(between))
        diff = make_unified_diff("x", f"a\n{same}b\n", f"A\n{same}B\n")
        assert diff.patch.count("@@ -") == hunks


def test_a_missing_final_newline_is_marked() -> None:
    assert make_unified_diff("x", "a", "b").patch.endswith(
        "-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
    )


def test_changes_far_apart_are_separate_hunks() -> None:
    before = "".join(f"{n}\n" for n in range(40))
    after = before.replace("5\n", "five\n", 1).replace("35\n", "x\n")
    assert make_unified_diff("x", before, after).patch.count("@@ -") == 2


line = st.sampled_from(["a\n", "b\n", "c\n", "\n", "d\r\n"])


@settings(max_examples=scale_examples(25))
@given(st.lists(line, max_size=30), st.lists(line, max_size=30), st.sampled_from(["", "tail"]))
def test_git_applies_every_diff(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], tail: str
) -> None:
    before, after = "".join(old), "".join(new) + tail
    if before == after or not before or not after:
        return
    folder: Path = tmp_path_factory.mktemp("diff")
    (folder / "f").write_bytes(before.encode())
    patch = make_unified_diff("f", before, after).patch.replace(
        "--- f\n+++ f\n", "--- a/f\n+++ b/f\n"
    )
    subprocess.run(["git", "apply", "-"], cwd=folder, input=patch.encode(), check=True)
    assert (folder / "f").read_bytes() == after.encode()


@given(st.text("ab\n\r\x0c", max_size=40))
def test_lines_join_to_the_text(text: str) -> None:
    assert "".join(split_lines(text)) == text


@given(st.lists(line, max_size=20), st.lists(line, max_size=20))
def test_edits_cover_both_sides(old: list[str], new: list[str]) -> None:
    made: list[str] = []
    at = 0
    for tag, i1, i2, j1, j2 in list_edits(old, new):
        assert i1 == at
        at = i2
        made.extend(old[i1:i2] if tag == "equal" else new[j1:j2])
    assert made == new
    assert at == len(old)


def test_shared_indentation_is_trimmed() -> None:
    diff = make_unified_diff("x", "        a\n            b\n", "        a\n            c\n")
    assert trim_indent(diff.patch).endswith("@@ -1,2 +1,2 @@\n a\n-    b\n+    c\n")
    assert trim_indent("") == ""


def test_huge_and_repetitive_texts_take_bounded_time() -> None:
    before = "".join(f"{n % 97}\n" for n in range(100_000))
    after = "".join(f"{n % 89}\n" for n in range(100_000))
    begun = time.process_time()
    make_unified_diff("x", before, after)
    assert time.process_time() - begun < 20
