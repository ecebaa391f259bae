"""Handler that writes clients' messages to the log."""

import logging

import msgspec

from codeloop.app.project import Project
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.project import WriteLog
from codeloop.schema.limits import CLIENT_LOG

_LOG = logging.getLogger("codeloop.client")
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}


async def write_log(_project: Project, args: WriteLog) -> bool:
    """Write a client's message to the log as one line, cut to CLIENT_LOG."""
    extra = f" {msgspec.json.encode(args.extra).decode()}" if args.extra else ""
    line = one_line(f"{args.service}: {args.message[: CLIENT_LOG.value]}{extra}", CLIENT_LOG.value)
    _LOG.log(_LEVELS[args.level], "%s", line)
    return True
