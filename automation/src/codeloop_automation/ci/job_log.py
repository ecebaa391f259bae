"""Lines for the log of a CI job, in which no text is a command to the runner of the job."""

import re

from codeloop.kit.text.terminal_text import escape_controls

# Runners look for `::error::` and `##[add-mask]`, some of them anywhere in a line,
# and also in what a program quotes.
_COMMAND_SIGN = r"(?<=#)(?=#)|(?<=:)(?=:)"


def make_log_line(text: str) -> str:
    """Return a text as it may stand in the log: its controls are escaped,
    and `::` and `##` are taken apart.
    """
    return re.sub(_COMMAND_SIGN, " ", escape_controls(text))
