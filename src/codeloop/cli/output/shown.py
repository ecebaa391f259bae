"""Which view shows a turn."""

from codeloop.cli.output.json_lines import JsonView
from codeloop.cli.output.streams import Output
from codeloop.cli.output.text import TextView
from codeloop.cli.output.view import View


def view_of(
    form: str, stdout: Output, stderr: Output, session_id: str, *, thinking: bool = False, prompt_id: str | None = None
) -> View:
    """Return the view of a format: `json`, else text; `prompt_id`: the message that is to be answered."""
    if form == "json":
        return JsonView(stdout, stderr, session_id)
    return TextView(stdout, stderr, thinking=thinking, prompt_id=prompt_id)
