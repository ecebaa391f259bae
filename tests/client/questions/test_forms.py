"""Forms for permission requests: only a choice that the form offers is taken for an answer."""

from codeloop.client.questions.forms import FormReply, build_form, read_permission_form
from codeloop.client.questions.requester import Requester
from codeloop.schema.permission import PermissionRequest


def request(*always: str) -> PermissionRequest:
    return PermissionRequest(
        id="per_1", session_id="ses_1", permission="bash", patterns=["make all"], always=list(always),
        metadata={"command": "make all"},
    )  # fmt: skip


def choices(asked: PermissionRequest) -> list[str]:
    form = build_form(asked, Requester("bash", "subagent explore “Look”"))
    assert form is not None
    return form.schema["properties"]["decision"]["enum"]


def test_each_choice_of_a_form_is_read_as_its_answer() -> None:
    asked = request("make *", f"make {'x' * 300}")
    replies = [read_permission_form(asked, {"decision": choice}) for choice in choices(asked)]
    assert [each.reply for each in replies] == ["once", "always", "always", "reject"]
    assert [each.scope for each in replies] == ["directory", "session", "directory", "directory"]


def test_a_long_choice_is_on_one_line_without_the_marks_of_a_terminal() -> None:
    pattern = f"make {'all ' * 15}*"
    assert (
        choices(request(pattern, "ninja *"))[1]
        == f"Allow for this session: every `{pattern}`, `ninja *`"
    )
    assert (
        choices(request(pattern, "ninja *"))[2]
        == f"Allow always: every `{pattern}`, `ninja *` in this project"
    )


def test_always_is_a_refusal_where_the_form_does_not_offer_it() -> None:
    assert choices(request()) == ["Allow once", "Deny"]
    for asked in (request(), request("make *")):
        for decision in ("Allow always", "Allow always: everything"):
            assert read_permission_form(asked, {"decision": decision}) == FormReply("reject")
