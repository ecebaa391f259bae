"""Cursors of event streams: the `id:` of events, which a client sends to resume."""

import re
from collections.abc import Mapping

from codeloop.schema.bounds.server import SERVER_POSITION

_SEQ = re.compile(r"[0-9]{1,18}")
_ONE = re.compile(r"([0-9]{1,18})@([0-9A-Za-z_][0-9A-Za-z_.-]{0,99})")
START = "0"
"""The position before every event."""

Position = dict[str, int]
"""By project id the sequence number of the last event that was seen."""


def format_cursor(position: Mapping[str, int]) -> str:
    """Return the position in several projects as text."""
    return ",".join(f"{seq}@{project}" for project, seq in position.items()) or START


def parse_cursor(text: str) -> Position | None:
    """Parse what `format_cursor` wrote; None: it is something else."""
    if text == START:
        return {}
    matches = [_ONE.fullmatch(each) for each in text.split(",", SERVER_POSITION.value)]
    position = {one[2]: int(one[1]) for one in matches if one}
    return position if len(position) == len(matches) else None


def parse_sequence_number(text: str, project: str) -> Position | None:
    """Parse the position in one project, a sequence number; None: it is something else."""
    return {project: int(text)} if _SEQ.fullmatch(text) else None
