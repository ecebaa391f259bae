"""Opens the log file of a run, a conversation or the terminal UI, at the level of the options or the environment."""

import logging
import os
from contextlib import AbstractContextManager
from pathlib import Path

from codeloop.cli.options import Options
from codeloop.cli.target.process_log import LEVELS, log_to_file
from codeloop.config.paths import find_paths
from codeloop.schema.errors import UsageProblem

LOG_FILE_NAME = "codeloop.log"
LOG_LEVEL_VARIABLE = "CODELOOP_LOG"


def open_log(options: Options) -> AbstractContextManager[Path]:
    """Return the context in which this process writes its log, as `--log-level`, CODELOOP_LOG and `--print-logs` say.

    Raises UsageProblem for a level that there is not.
    """
    level = (options.log_level or os.environ.get(LOG_LEVEL_VARIABLE) or "INFO").upper()
    if level not in LEVELS:
        raise UsageProblem(f"{LOG_LEVEL_VARIABLE} is {level}; the levels are {', '.join(LEVELS)}.")
    return log_to_file(find_paths(os.environ).log_folder, level, LOG_FILE_NAME, is_printed=options.print_logs)


def apply_configured_level(options: Options, level: str | None) -> None:
    """Log from the level of the configuration on, unless an option or the variable says otherwise."""
    if level and not options.log_level and not os.environ.get(LOG_LEVEL_VARIABLE):
        logging.getLogger("codeloop").setLevel(LEVELS.get(level.upper(), logging.INFO))
