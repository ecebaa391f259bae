"""What was typed is not lost when a user goes back to the choices."""

from pathlib import Path

import pytest

from codeloop.client.questions.requester import Requester
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionInfo, QuestionOption, QuestionRequest
from codeloop.tui.widgets.request_panel.permission_form import PermissionForm
from codeloop.tui.widgets.request_panel.question_form import QuestionForm

ASKING = Requester("bash", "")


def test_a_reason_and_an_edited_pattern_stand_there_again() -> None:
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="bash",
        patterns=["git log"],
        metadata={},
        always=["git log *"],
    )
    form = PermissionForm(request, ASKING)
    form.press("r")
    form.close_entry("do it other")
    form.press("e")
    assert form.entry is not None
    assert (form.entry.text, form.entry.enter_verb) == ("git log *", "takes")
    form.accept_text("git *")
    form.press("e")
    assert form.entry is not None
    assert form.entry.text == "git *"
    form.close_entry("git l")
    form.press("r")
    assert form.entry is not None
    assert (form.entry.text, form.entry.enter_verb) == ("do it other", "sends")


def test_words_of_ones_own_and_the_chosen_option_stand_there_again() -> None:
    options = [QuestionOption(label=label, description="") for label in ("Red", "Blue")]
    questions = [QuestionInfo(question=f"{n}?", header=n, options=options) for n in ("One", "Two")]
    form = QuestionForm(
        QuestionRequest(id="que_1", session_id="ses_1", questions=questions), ASKING
    )
    form.press("2")
    assert (form.tab, form.cursor) == (1, 0)
    form.press("t")
    form.close_entry("half")
    form.press("left")
    assert (form.tab, form.cursor) == (0, 1)
    form.press("right")
    form.press("t")
    assert form.entry is not None
    assert form.entry.text == "half"
    form.accept_text("half and more")
    assert form.tabs == (("One", True), ("Two", True), ("Send", False))


def test_a_broad_always_that_no_line_can_show_is_not_said_to_be_editable() -> None:
    broad = ["git *", "printf 'a\nb' *"]
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="bash",
        patterns=["git log"],
        metadata={},
        always=broad,
    )
    form = PermissionForm(request, ASKING)
    form.press("a")
    assert form.notice.endswith("Press a again to allow it from now on.")
    form.press("e")
    assert form.entry is None


def test_a_question_that_takes_no_other_words_asks_for_none() -> None:
    options = [QuestionOption(label="ruff", description="")]
    for custom, notice in (
        (None, "Choose at least one, or answer in your own words."),
        (False, "Choose at least one."),
    ):
        question = QuestionInfo(
            question="Which?", header="Checks", options=options, multiple=True, custom=custom
        )
        form = QuestionForm(
            QuestionRequest(id="que_1", session_id="ses_1", questions=[question]), ASKING
        )
        form.choose(len(form.list_choices()) - 1)
        assert (form.answer, form.notice) == (None, notice)


@pytest.mark.parametrize(
    ("pattern", "is_broad"),
    [
        ("/*", True),
        ("{home}/*", True),
        ("{above}/*", True),
        ("{home}/notes/*", False),
        ("/srv/data/*", False),
    ],
)
def test_an_always_for_the_whole_home_needs_the_key_twice(pattern: str, *, is_broad: bool) -> None:
    home = Path("~").expanduser()
    pattern = pattern.format(home=home, above=home.parent).replace("//", "/")
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="external_directory",
        patterns=[pattern],
        metadata={},
        always=[pattern],
    )
    form = PermissionForm(request, ASKING)
    form.press("a")
    assert (form.answer is None) is is_broad
    form.press("a")
    assert form.answer is not None
    assert form.answer.reply == "always"


def ask_for_files(*patterns: str, permission: str = "edit") -> PermissionForm:
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission=permission,
        patterns=list(patterns),
        metadata={},
        always=["*"],
    )
    return PermissionForm(request, ASKING)


def read_always(form: PermissionForm) -> str:
    return next(
        f"{choice.text}  {choice.detail}" for choice in form.list_choices() if choice.key == "a"
    )


def test_an_always_for_a_file_begins_with_the_file() -> None:
    form = ask_for_files("docs/a.md")
    assert (
        read_always(form)
        == "Allow always: changing `docs/a.md` in this project  w widens it, e edits it"
    )
    form.press("w")
    assert "changing `docs/*`" in read_always(form)
    form.press("w")
    assert "every file change" in read_always(form)
    form.press("w")
    form.press("a")
    assert form.answer is not None
    assert (form.answer.reply, form.answer.always, form.answer.wider) == (
        "always",
        ("docs/a.md",),
        False,
    )


def test_an_always_for_a_file_outside_begins_with_the_file() -> None:
    home = Path("~").expanduser()
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="external_directory",
        patterns=[f"{home}/notes.txt"],
        metadata={},
        always=[f"{home}/*"],
    )
    form = PermissionForm(request, ASKING)
    assert f"every tool on `{home}/notes.txt`" in read_always(form)
    form.press("w")
    assert f"every tool on `{home}/*`" in read_always(form)
    form.press("a")
    assert form.answer is None
    form.press("w")
    form.press("a")
    assert form.answer is not None
    assert (form.answer.always, form.answer.wider) == ((f"{home}/notes.txt",), False)


def test_an_always_for_everything_needs_its_key_twice() -> None:
    form = ask_for_files("docs/a.md")
    for key in ("w", "w", "a"):
        form.press(key)
    assert form.answer is None
    form.press("a")
    assert form.answer is not None
    assert (form.answer.reply, form.answer.always) == ("always", None)


@pytest.mark.parametrize(
    ("patterns", "permission", "widened"),
    [
        (["a.md"], "edit", "every file change"),
        (["a/b.md", "c/d.md"], "edit", "changing `a/*`, `c/*`"),
        (["a/b.md"], "read", "reading `a/*`"),
        (["weird*.md"], "edit", None),
        (["TODO"], "grep", None),
    ],
)
def test_what_an_always_can_be_widened_to(
    patterns: list[str], permission: str, widened: str | None
) -> None:
    form = ask_for_files(*patterns, permission=permission)
    assert form.press("w") is (widened is not None)
    if widened is not None:
        assert widened in read_always(form)


def test_a_narrow_always_can_be_edited() -> None:
    form = ask_for_files("docs/a.md", "docs/b.md")
    form.press("e")
    assert form.entry is not None
    assert form.entry.text == "docs/a.md"
    form.accept_text("docs/a.*")
    assert form.entry is not None
    form.accept_text("")
    form.press("a")
    assert form.answer is not None
    assert (form.answer.always, form.answer.wider) == (("docs/a.*",), False)
