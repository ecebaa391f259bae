"""What the host of each language is run by."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import codeloop
from codeloop.extend.host.extension import Language
from codeloop.kit.lazy import load

_ROOT = Path(str(codeloop.__file__)).parents[1]
_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop()); from codeloop.extend.host.python.main import main; main()"
_OPTIONS = ("-IB", "--check-hash-based-pycs", "always")
"""Compiled code is not written: a new file in a project ends its trust. Nor is it believed: its source counts."""
_JAVASCRIPT = "extend.host.javascript.runtime:find_runtime"


def host_command(language: Language, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command of a host, its program by its whole path. Raises CodeloopError: it says what is needed."""
    if language == "python":
        return (sys.executable, *_OPTIONS, "-c", _PROGRAM, str(_ROOT))
    command: Callable[[str], tuple[str, ...]] = load(_JAVASCRIPT)
    return command(environment.get("PATH", ""))
