"""Writes the log of a process: a file of bounded size, readable by its owner only,
without keys or URL queries.

`open_log` is for runs, conversations, the terminal UI, editors and `mcp serve`; `codeloop serve`
and `web` call `log_to_file`.
"""

import logging
import os
import re
import sys
import time
import traceback
from asyncio import CancelledError
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from codeloop.cli.option_values import Options
from codeloop.config.paths import find_paths
from codeloop.kit.small_files import create_private_folder
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.installation import InstallationChanged
from codeloop.schema.limits import SERVER_LOG, SERVER_LOG_LINE

LOG_FILE_NAME = "codeloop.log"
SERVER_LOG_NAME = "server.log"
LOG_LEVEL_VARIABLE = "CODELOOP_LOG"
LEVELS = {
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
}
# O_NOFOLLOW, O_NONBLOCK: something else may be at the path,
# such as a link to another file or a named pipe.
_APPEND_FLAGS = (
    os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
)
# The start of uvicorn's error for a WebSocket that was refused with a status,
# which is not an error here.
_REFUSED_HANDSHAKE = "ASGI callable returned without completing handshake"
# Prefixes of the keys of known services, what follows in an `Authorization` header,
# and values with a telling name.
_CREDENTIAL_PATTERN = (
    r"(?i)\b(sk-|ghp_|gho_|github_pat_|xox[abp]-|AKIA|AIza|ya29\.)[\w-]{8,}|(?<=bearer )\S+|(?<=basic )[\w+/=]{8,}"
    r"|((?:api[_-]?key|token|password|secret)[\"']?\s*[:=]\s*[\"']?)[^\s\"',&]{6,}"
)
# A user with a password before the host, and the values of a query.
_URL_CREDENTIAL_PATTERN = r"(?<=://)[^\s/@]+@|(?<=[?&])([\w-]+=)[^\s&#]+"
# Exceptions that end a process without a crash.
_ORDINARY_EXITS = (CodeloopError, CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)


def _hide_secrets(text: str) -> str:
    """Replace what looks like a key, a user in a URL, or the values of a URL's query."""
    try:
        # Loaded with the first entry: most runs log nothing.
        from codeloop.kit.text.secrets import REPLACEMENT, SecretHider
    except InstallationChanged as error:
        # What can't be searched for secrets is not written.
        return str(error)

    text = re.sub(
        _CREDENTIAL_PATTERN,
        lambda match: f"{match[2] or ''}{REPLACEMENT}",
        SecretHider().hide(text),
    )
    return re.sub(
        _URL_CREDENTIAL_PATTERN,
        lambda match: f"{match[1] or ''}[hidden]" + ("" if match[1] else "@"),
        text,
    )


class SafeFormatter(logging.Formatter):
    """Formats entries for stderr, without secrets and control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """Return an entry as a line."""
        return escape_controls(_hide_secrets(super().format(record)))


class FileLog(logging.Handler):
    """Appends entries to a file, which is opened for each so that other processes may share,
    remove or rename it.

    A full or read-only disk loses entries and nothing else.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        formatter = logging.Formatter(
            "%(asctime)s %(levelname)s %(process)d %(message)s", "%Y-%m-%dT%H:%M:%SZ"
        )
        # The format says `Z`: UTC.
        formatter.converter = time.gmtime
        self.setFormatter(formatter)
        self.addFilter(lambda record: not str(record.msg).startswith(_REFUSED_HANDSHAKE))

    def emit(self, record: logging.LogRecord) -> None:
        """Append an entry."""
        # TypeError, ValueError: the arguments of an entry don't fit its format.
        with suppress(OSError, TypeError, ValueError):
            entry = escape_controls(_hide_secrets(self.format(record)))[: SERVER_LOG_LINE.value]
            self._append(entry.encode("utf-8", "replace") + b"\n")

    def _append(self, entry: bytes) -> None:
        create_private_folder(self.path.parent)
        descriptor = os.open(self.path, _APPEND_FLAGS, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            # One write, so that entries of several processes are not mixed.
            os.write(descriptor, entry)
        finally:
            os.close(descriptor)
        # The last file of that name is replaced, so two of this size are kept.
        if size + len(entry) > SERVER_LOG.value:
            self.path.replace(self.path.with_name(self.path.name + ".1"))


@contextmanager
def log_to_file(
    folder: Path, level: str, name: str = SERVER_LOG_NAME, *, is_printed: bool = False
) -> Generator[Path]:
    """Log to a file in `folder`, crashes too, until the end of the block; yields the file's path.

    `level`: a key of LEVELS; any other counts as INFO.
    Of uvicorn and asyncio only warnings and errors are kept.
    `is_printed`: to stderr as well.
    """
    handler = FileLog(folder / name)
    stream_handler = logging.StreamHandler()
    stream_handler.setFormatter(SafeFormatter("%(levelname)s %(message)s"))
    own_logger = logging.getLogger("codeloop")
    loggers = [own_logger, logging.getLogger("uvicorn.error"), logging.getLogger("asyncio")]
    # To restore them at the end.
    old_settings = [(logger, logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        if is_printed:
            logger.addHandler(stream_handler)
        logger.setLevel(logging.WARNING)
        # Handlers of the root logger would write the entry without hiding secrets.
        logger.propagate = False
    own_logger.setLevel(LEVELS.get(level.upper(), logging.INFO))
    try:
        yield handler.path
    finally:
        # A crash is on its way through this block; the loggers write it while they
        # still have the handler.
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, _ORDINARY_EXITS):
            own_logger.critical("crashed: %s", " ".join(traceback.format_exception(error)))
        for logger, old_level, propagates in old_settings:
            logger.removeHandler(handler)
            logger.removeHandler(stream_handler)
            logger.setLevel(old_level)
            logger.propagate = propagates


def open_log(options: Options) -> AbstractContextManager[Path]:
    """Log to LOG_FILE_NAME while the context is open,
    from the level of `--log-level` or CODELOOP_LOG on.

    With `--print-logs` the log goes to stderr as well. Raises UsageProblem for an unknown level.
    """
    level = (options.log_level or os.environ.get(LOG_LEVEL_VARIABLE) or "INFO").upper()
    if level not in LEVELS:
        raise UsageProblem(f"{LOG_LEVEL_VARIABLE} is {level}; the levels are {', '.join(LEVELS)}.")
    return log_to_file(
        find_paths(os.environ).log_folder, level, LOG_FILE_NAME, is_printed=options.print_logs
    )


def apply_configured_level(options: Options, level: str | None) -> None:
    """Set the level to that of the configuration,
    unless `--log-level` or CODELOOP_LOG has set it.
    """
    if level and not options.log_level and not os.environ.get(LOG_LEVEL_VARIABLE):
        logging.getLogger("codeloop").setLevel(LEVELS.get(level.upper(), logging.INFO))
