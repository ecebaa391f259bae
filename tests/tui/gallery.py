"""Every kind of item in every state, for tests and pictures: `python -m tests.tui.picture --help`."""

from codeloop.schema.errors import APIError, APIErrorData, ErrorText, MessageAbortedError
from codeloop.tui.state.items import Item, NoticeItem, SummaryItem
from tests.tui.parts import answer, done, end, failed, file, pending, prompt, running, text, thought

ITEMS: dict[str, Item] = {
    "prompt": prompt(text("Fix the failing test in `tests/test_cart.py` and tell me why it broke."), file("shot.png")),
    "prompt-queued": prompt(text("And then run the linter."), is_queued=True),
    "prompt-undone": prompt(text("Rewrite it in Rust."), is_undone=True),
    "thought": thought("I look at the test first.\nThen at the code."),
    "thought-open": thought("I look at the test first.\nThen at the code.", is_open=True),
    "thought-live": thought("I look at the test", seconds=None),
    "answer": answer("The total was summed **before** the discount.\n\n- one\n- two"),
    "generic": done("linear_create_issue", {"title": "Totals are wrong", "labels": ["bug"]}, "Created LIN-12"),
    "generic-running": running("linear_create_issue", {"title": "Totals are wrong"}),
    "generic-pending": pending("linear_create_issue", raw='{"title": "Tot'),
    "generic-asking": running("linear_create_issue", {"title": "Totals are wrong"}, is_asking=True),
    "generic-failed": failed("linear_create_issue", {"title": "Totals are wrong"}, "The server answered 500."),
    "generic-denied": failed("bash", {"command": "rm -rf /"}, "Not allowed by a rule.", {"denied": True}),
    "generic-interrupted": failed("bash", {"command": "sleep 9"}, "Interrupted.", {"interrupted": True}),
    "summary": SummaryItem("sum", "The cart was fixed."),
    "summary-open": SummaryItem("sum", "The cart was fixed.", is_open=True),
    "end": end(),
    "end-aborted": end(error=MessageAbortedError(data=ErrorText(message="Aborted"))),
    "end-failed": end(
        error=APIError(data=APIErrorData(message="Overloaded (529)", is_retryable=True, status_code=529))
    ),
    "notice": NoticeItem("note", "The session was shared.", "success"),
    "notice-error": NoticeItem("note", "The server can't be reached.", "error"),
}
