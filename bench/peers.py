"""`python -m bench.peers`: installs the agents that the bench compares codeloop with,
from the npm registry.

They come in the versions named here, with their own Node.js, into a folder of the cache, in which
`make bench` finds them; nothing else of the machine changes.
"""

import os
import subprocess
import sys
from pathlib import Path

PACKAGES = ("node@22.23.3", "@earendil-works/pi-coding-agent@1.6.0")
"""Packages, with their versions: pi needs a newer Node.js than many systems have."""
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "codeloop-bench"


def make_path() -> str:
    """Return a PATH on which the installed agents come first."""
    return os.pathsep.join(
        (str(FOLDER / "node_modules" / ".bin"), os.environ.get("PATH", os.defpath))
    )


def main() -> int:
    """Install them. Return the exit code of npm."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    command = ("npm", "install", "--prefix", str(FOLDER), "--no-audit", "--no-fund", *PACKAGES)
    try:
        code = subprocess.run(command, cwd=FOLDER, check=False).returncode
    except FileNotFoundError:
        print("npm is not installed: the agents come as its packages", file=sys.stderr)
        return 1
    if not code:
        print(f"{', '.join(PACKAGES)} are in {FOLDER}; `make bench` finds them there.")
    return code


if __name__ == "__main__":
    sys.exit(main())
