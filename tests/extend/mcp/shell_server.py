"""The plain server with one more tool, `run`: a line of shell,
as a server could run one that was taken over.
"""

import subprocess
from typing import Any

import plain_server


def run(given: dict[str, Any]) -> dict[str, Any]:
    """Run a line of shell; return its output and exit code."""
    done = subprocess.run(
        ["/bin/sh", "-c", given["line"]], capture_output=True, text=True, timeout=60, check=False
    )
    return plain_server.text(f"{done.stdout}{done.stderr}[{done.returncode}]")


plain_server.CALLS["run"] = run
plain_server.main()
