"""Cursors of event streams: the `id:` of an event, which a client sends back to resume after it."""

import re
from collections.abc import Mapping

from codeloop.schema.bounds.server import SERVER_POSITION

# 18 digits: every such number fits into a 64-bit integer, which is what SQLite compares with.
_SEQ_PATTERN = r"[0-9]{1,18}"
# Such as `42@3f9c0a1b`.
_SEQ_AT_PROJECT_PATTERN = r"([0-9]{1,18})@([0-9A-Za-z_][0-9A-Za-z_.-]{0,99})"
START_CURSOR = "0"
"""The cursor of the position before the first event."""

Position = dict[str, int]
"""Project id -> the sequence number of the last event that a client has seen."""


def format_cursor(position: Mapping[str, int]) -> str:
    """Return the position in several projects as text."""
    return ",".join(f"{seq}@{project}" for project, seq in position.items()) or START_CURSOR


def parse_cursor(text: str) -> Position | None:
    """Parse the text that `format_cursor` returns; None: it is not a cursor."""
    if text == START_CURSOR:
        return {}
    # Split no further than the limit: a longer cursor then has a last piece that does not match.
    matches = [
        re.fullmatch(_SEQ_AT_PROJECT_PATTERN, each)
        for each in text.split(",", SERVER_POSITION.value)
    ]
    position = {one[2]: int(one[1]) for one in matches if one}
    return position if len(position) == len(matches) else None


def parse_sequence_number(text: str, project: str) -> Position | None:
    """Parse the position in one project, a sequence number; None: it is not one."""
    return {project: int(text)} if re.fullmatch(_SEQ_PATTERN, text) else None
