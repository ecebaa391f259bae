"""What an edit does with backslashes of the new text when the old one
matched without its escapes.
"""

import pytest

from codeloop.workspace.edit.edit import Edit, apply_edit
from codeloop.workspace.edit.edit_errors import EditRefused

FILE = 'alpha\nbeta\n\tgamma = "x"\n'

CLEAR = {
    "a line break": (r"alpha\nbeta", r"one\ntwo", "one\ntwo"),
    "a path without that escape": (
        r"alpha\nbeta",
        r"cd C:\temp\bin\release",
        r"cd C:\temp\bin\release",
    ),
    "no backslash": (r"alpha\nbeta", "one", "one"),
    "a regular expression": (r"alpha\nbeta", r"\d+\s", r"\d+\s"),
    "quotes": (r"gamma = \"x\"", r"gamma = \"y\"", 'gamma = "y"'),
    "breaks and tabs": (r"beta\n\tgamma", r"b\n\tg", "b\n\tg"),
    "an apostrophe on another line": (r"alpha\nbeta", r"x\nit's", "x\nit's"),
}
UNCLEAR = {
    "a path with that escape": (r"alpha\nbeta", r"PATH = r'C:\new\temp'"),
    "TeX": (r"alpha\nbeta", r"\begin{table}\toprule\nu"),
    "an escape in a string": (r"alpha\nbeta", r"print(\"a\n\")"),
    "a string of one kind": (r"alpha\nbeta", r"print('a\n')"),
    "a tab in a string": (r"beta\n\tgamma", r"b\n\tf('\t')"),
    "real line breaks beside": (r"alpha\nbeta", "one\ntwo = 'a'\\n"),
    "doubled": (r"alpha\nbeta", r"C:\\new\n"),
}


@pytest.mark.parametrize(("old", "new", "written"), CLEAR.values(), ids=CLEAR)
def test_only_the_escapes_that_the_old_text_needed_are_resolved(
    old: str, new: str, written: str
) -> None:
    content = apply_edit(FILE, Edit(old, new)).content
    assert written in content
    assert content != FILE


@pytest.mark.parametrize(("old", "new"), UNCLEAR.values(), ids=UNCLEAR)
def test_an_edit_whose_backslashes_may_be_meant_is_refused(old: str, new: str) -> None:
    with pytest.raises(EditRefused, match="not clear which"):
        apply_edit(FILE, Edit(old, new))
