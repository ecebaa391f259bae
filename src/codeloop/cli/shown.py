"""Which view shows a turn."""

from codeloop.cli.jsonview import JsonView
from codeloop.cli.output import Output
from codeloop.cli.textview import TextView
from codeloop.cli.view import View


def view_of(form: str, stdout: Output, stderr: Output, session_id: str, *, thinking: bool = False) -> View:
    """Give the view of a format: `json`, else text."""
    if form == "json":
        return JsonView(stdout, stderr, session_id)
    return TextView(stdout, stderr, thinking=thinking)
