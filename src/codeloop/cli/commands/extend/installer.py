"""Runs programs that install something (pip, npm, ...),
for `codeloop lsp install` and `codeloop plugin add`.
"""

import os
import shlex
import subprocess
from collections.abc import Sequence

import click

from codeloop.config.files import describe_os_error
from codeloop.kit.limit import Limit
from codeloop.kit.programs import make_child_environment, make_safe_environment
from codeloop.schema.errors import CodeloopError


def run_installer(command: Sequence[str], limit: Limit) -> int:
    """Print a command, run it and return its exit code.

    Raises CodeloopError if it can't be run, or is ended because it takes longer than `limit`.
    """
    click.echo(f"$ {shlex.join(command)}", err=True)
    try:
        # In the project, its files would choose versions and options,
        # and Python would load its modules.
        environment = make_safe_environment(os.environ)
        return subprocess.run(
            command,
            cwd="/",
            env=make_child_environment(environment, "/"),
            check=False,
            timeout=limit.seconds,
        ).returncode
    except subprocess.TimeoutExpired:
        raise CodeloopError(
            f"That took more than {limit.seconds / 60:.0f} minutes, so it was ended."
        ) from None
    except OSError as error:
        raise CodeloopError(f"{command[0]} can't be run: {describe_os_error(error)}.") from error
