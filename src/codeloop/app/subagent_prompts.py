"""Expands a slash command with which a model begins the prompt of a subagent."""

import re

from codeloop.app.settings import ProjectSettings
from codeloop.extend.commands import build_commands
from codeloop.extend.template import ShellPiece, expand_template

_COMMAND = r"(?s)/(?P<name>\S+)(?:\s+(?P<arguments>.*))?"


def expand_subagent_prompt(settings: ProjectSettings, prompt: str) -> str:
    """Return the text of the command that a prompt calls (`/check src/main.py`);
    else the prompt as it is.

    A shell line of the command is not run: the subagent is told to run it,
    with its own permissions.
    """
    match = re.fullmatch(_COMMAND, prompt.strip())
    if match is None:
        return prompt
    command = build_commands(settings.config, settings.skills).get(match["name"])
    # Skills have no template here, and the subagent can load them by itself.
    if command is None or not command.template:
        return prompt
    pieces = expand_template(command.template, match["arguments"] or "")
    texts = (
        f"(run `{each.line}`)" if isinstance(each, ShellPiece) else each.text for each in pieces
    )
    return "".join(texts).strip()
