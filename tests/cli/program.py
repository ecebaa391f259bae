"""Runs the real program in a home and a directory of its own."""

import os
import subprocess
import sys
from pathlib import Path


def codeloop(
    folder: Path, *arguments: str, stdin: bytes | str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `codeloop` in `folder/work` with its files below `folder/home`; no key of the test's own environment."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    text = stdin.decode("utf-8", "replace") if isinstance(stdin, bytes) else stdin
    return subprocess.run(
        [sys.executable, "-c", "from codeloop.cli.main import main; main()", *arguments],
        cwd=work,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "CODELOOP_HOME": str(folder / "home"), **environment},
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
