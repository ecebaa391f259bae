"""Patches: both formats parse, hunks land, and what is wrong is named by its line."""

import pytest

from codeloop.workspace.edit.edit_errors import EditRefused
from codeloop.workspace.edit.patch_apply import Hunk, apply_hunks
from codeloop.workspace.edit.patch_parser import (
    AddFile,
    BadPatch,
    DeleteFile,
    UpdateFile,
    parse_patch,
)


def envelope(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def update(content: str, *lines: str) -> str:
    (operation,) = parse_patch(envelope("*** Update File: f", *lines))
    assert isinstance(operation, UpdateFile)
    return apply_hunks(content, operation.hunks).content


def unified(content: str, *lines: str) -> str:
    (operation,) = parse_patch("\n".join(["--- a/f", "+++ b/f", *lines, ""]))
    assert isinstance(operation, UpdateFile)
    return apply_hunks(content, operation.hunks).content


def test_the_envelope_holds_all_kinds_of_operations() -> None:
    text = envelope(
        "*** Add File: new.txt", "+one", "+", "+two", "*** Delete File: old.txt", "*** Update File: a/b.py",
        "*** Move to: c/d.py", "@@ class A:", " keep", "-old", "+new",
    )  # fmt: skip
    add, delete, change = parse_patch(text)
    assert add == AddFile("new.txt", "one\n\ntwo\n")
    assert delete == DeleteFile("old.txt")
    assert isinstance(change, UpdateFile)
    assert (change.path, change.move_to) == ("a/b.py", "c/d.py")
    assert change.hunks[0] == Hunk(("keep", "old"), ("keep", "new"), ("class A:",), patch_line=9)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names no file"),
        ("hello", "names no file"),
        ("*** Update File: x\n-a\n+b", "Begin Patch"),
        ("*** Begin Patch\n*** Update File: x\n@@\n-a\n+b", "may be cut off"),
        ("*** Begin Patch\n*** End Patch", "names no file"),
        (envelope("*** Copy File: x"), "line 2"),
        (envelope("*** Add File: x", "no plus"), "line 3: every line of an added file"),
        (envelope("*** Update File: x"), "line 2: the update of x has no hunk"),
        (envelope("*** Update File: x", "@@", " only context"), "line 3: the hunk has no"),
        (envelope("*** Update File: x", "@@", "wrong"), "line 4: lines of a hunk begin"),
        ("--- a/x\n+++ b/x\nno hunk", "line 1: no `@@"),
        ("@@ -1 +1 @@\n-a\n+b", "line 1: a hunk before"),
        ("diff --git a/x b/x\nGIT binary patch\n", "binary"),
    ],
)
def test_what_is_no_patch_is_refused_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(BadPatch, match=reason):
        parse_patch(text)


def test_a_code_fence_around_a_patch_is_ignored() -> None:
    assert parse_patch("```diff\n" + envelope("*** Delete File: x") + "\n```") == [DeleteFile("x")]


def test_a_hunk_replaces_whole_lines() -> None:
    assert update("foobar\nfoo\nbar\n", "@@", "-foo", "+x") == "foobar\nx\nbar\n"


def test_lines_can_be_removed_and_the_rest_is_untouched() -> None:
    assert update("a\r\nb\r\nc\nd", "@@", " a", "-b", " c") == "a\r\nc\nd"
    assert update("a\nb\n", "@@", "-b") == "a\n"


def test_hunks_apply_in_order_each_after_the_one_before() -> None:
    content = "x\n1\ny\n1\n"
    assert update(content, "@@", " x", "-1", "+2", "@@", "-1", "+3") == "x\n2\ny\n3\n"


def test_a_section_line_tells_twins_apart() -> None:
    content = "def a():\n    return 1\n\ndef b():\n    return 1\n"
    assert update(content, "@@ def b():", "-    return 1", "+    return 2") == content[:-2] + "2\n"
    assert (
        update(content, "@@ def b():", " def b():", "-    return 1", "+    return 2")
        == content[:-2] + "2\n"
    )


def test_nested_sections_narrow_down() -> None:
    content = "class A:\n    def f(self):\n        return 1\nclass B:\n    def f(self):\n        return 1\n"
    edited = update(
        content, "@@ class B:", "@@ def f(self):", "-        return 1", "+        return 2"
    )
    assert edited == content[:-2] + "2\n"


def test_twins_without_a_section_are_refused() -> None:
    with pytest.raises(EditRefused, match=r"hunk 1 of 1 \(line 3 of the patch\).*2 times"):
        update("a\nb\na\n", "@@", "-a", "+c")


def test_an_unknown_section_is_refused() -> None:
    with pytest.raises(EditRefused, match="def z"):
        update("def a():\n    1\n", "@@ def z():", "-    1", "+    2")


def test_the_end_of_the_file_tells_twins_apart() -> None:
    assert update("a\nb\na\n", "@@", "-a", "+c", "*** End of File") == "a\nb\nc\n"


def test_context_may_differ_in_blanks() -> None:
    assert (
        update("\tif x {\n\t\ty()\n\t}\n", "@@", " if x {", "-    y()", "+    z()", " }")
        == "\tif x {\n\t\tz()\n\t}\n"
    )


def test_a_refusal_names_no_parameters_of_other_tools() -> None:
    hunk = Hunk(("say(\u201chi\u201d)",), ('say("hi")',))
    with pytest.raises(
        EditRefused, match="the file already has its new lines there; nothing would change"
    ):
        apply_hunks('greet()\nsay("hi")\n', (hunk,))


def test_a_refusal_quotes_the_file_as_it_is() -> None:
    with pytest.raises(EditRefused) as caught:
        update(
            "def edit(oldString, newString):\n    pass\n",
            "@@",
            "-def edit(oldString, newText):",
            "+def edit():",
        )
    assert "1: def edit(oldString, newString):\n" in caught.value.advice
    assert "the hunk has 'def edit(oldString, newText):'" in caught.value.advice


def test_twins_as_near_as_each_other_are_not_told_apart_by_what_patches_lack() -> None:
    with pytest.raises(EditRefused, match="was found 2 times") as caught:
        unified("a\nb\na\n", "@@ -2 +2 @@", "-a", "+c")
    assert caught.value.advice.startswith("Add surrounding lines to make it unique.\n")


def test_lines_are_inserted_after_a_section_or_at_the_end() -> None:
    assert update("a\nb\n", "@@ a", "+x") == "a\nx\nb\n"
    assert update("a\r\nb\r\n", "@@", "+x") == "a\r\nb\r\nx\r\n"
    assert update("a", "@@", "+x") == "a\nx"


def test_empty_lines_of_context_may_lack_their_blank() -> None:
    assert update("a\n\nb\n", "@@", " a", "", "-b", "+c") == "a\n\nc\n"


def test_a_unified_diff_finds_the_twin_nearest_to_its_line() -> None:
    assert unified("a\nb\na\nb\na\n", "@@ -3 +3 @@", "-a", "+c") == "a\nb\nc\nb\na\n"


def test_a_unified_diff_applies_though_its_numbers_are_wrong() -> None:
    content = "".join(f"{n}\n" for n in range(20))
    assert unified(content, "@@ -1,9 +1,2 @@", " 10", "-11", "+eleven", " 12") == content.replace(
        "11\n", "eleven\n"
    )


def test_a_removed_line_that_looks_like_a_header_is_a_line() -> None:
    assert unified("-- x\ny\n", "@@ -1,2 +1,2 @@", "--- x", "+++ z", " y") == "++ z\ny\n"


def test_git_diffs_add_delete_and_rename() -> None:
    text = (
        "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        "diff --git a/o b/o\ndeleted file mode 100644\n--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/p b/q\nsimilarity index 90%\nrename from p\nrename to q\n--- a/p\n+++ b/q\n@@ -1 +1 @@\n-x\n+y\n"
        "diff --git a/r b/s\nsimilarity index 100%\nrename from r\nrename to s\n"
    )
    add, delete, moved, renamed = parse_patch(text)
    assert (add, delete) == (AddFile("n", "a\nb\n"), DeleteFile("o"))
    assert isinstance(moved, UpdateFile)
    assert (moved.path, moved.move_to, len(moved.hunks)) == ("p", "q", 1)
    assert renamed == UpdateFile("r", (), "s")


def test_line_numbers_of_read_are_taken_off_a_hunk() -> None:
    content = "a = 1\nb = 2\nc = 3\n"
    changed = "a = 1\nb = 4\nd = 5\nc = 3\n"
    assert (
        update(content, "@@", " 1: a = 1", "-2: b = 2", "+2: b = 4", "+d = 5", " 3: c = 3")
        == changed
    )
    (operation,) = parse_patch(envelope("*** Update File: f", "@@", "-2: b = 2", "+2: b = 4"))
    assert isinstance(operation, UpdateFile)
    assert (
        apply_hunks(content, operation.hunks).match_note
        == "hunk 1 was matched without its line numbers"
    )
    own = "1: a\n2: b\n"
    assert update(own, "@@", "-2: b", "+2: c") == "1: a\n2: c\n", (
        "a file may have such lines itself"
    )
