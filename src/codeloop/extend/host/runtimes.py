"""The commands that start each language's host."""

import sys
from collections.abc import Mapping
from pathlib import Path

import codeloop
from codeloop.extend.host.extension import Language
from codeloop.schema.installation import check_package_file

_ROOT = Path(str(codeloop.__file__)).parents[1]
_HOST_FILE = Path(__file__).with_name("python") / "main.py"
_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop()); from codeloop.extend.host.python.main import main; main()"
# -I ignores PYTHON* variables and the working directory. -B writes no .pyc, since a new file in a
# project would end its trust. A .pyc with a hash is used only if it matches its source.
_OPTIONS = ("-IB", "--check-hash-based-pycs", "always")


def find_host_command(language: Language, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command of a host, with its program's absolute path.
    Raises CodeloopError: there is no runtime.
    """
    if language == "python":
        check_package_file(_HOST_FILE)
        return (sys.executable, *_OPTIONS, "-c", _PROGRAM, str(_ROOT))
    from codeloop.extend.host.javascript.runtime import find_runtime

    return find_runtime(environment.get("PATH", ""))
