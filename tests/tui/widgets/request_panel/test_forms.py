"""What was typed is not lost when a user goes back to the choices."""

from codeloop.client.questions.requester import Requester
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionInfo, QuestionOption, QuestionRequest
from codeloop.tui.widgets.request_panel.permission_form import PermissionForm
from codeloop.tui.widgets.request_panel.question_form import QuestionForm

ASKING = Requester("bash", "")


def test_a_reason_and_an_edited_pattern_stand_there_again() -> None:
    request = PermissionRequest(
        id="per_1", session_id="ses_1", permission="bash", patterns=["git log"], metadata={}, always=["git log *"]
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
    form = QuestionForm(QuestionRequest(id="que_1", session_id="ses_1", questions=questions), ASKING)
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
