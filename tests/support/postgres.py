"""A PostgreSQL server for one test, on a socket in a temporary folder."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def find_programs() -> Path | None:
    """Return the folder of PostgreSQL's programs: on the PATH, else where Debian installs them;
    None: not installed.
    """
    found = shutil.which("initdb")
    places = (
        [Path(found).resolve().parent]
        if found
        else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    )
    return next((place for place in reversed(places) if (place / "pg_ctl").exists()), None)


@contextmanager
def run_postgres(programs: Path) -> Generator[str]:
    """Serve an empty database and yield its address; as another user if this one is root,
    which PostgreSQL refuses.
    """
    who: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")
            who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = str(folder / "data")

        def run(*command: str) -> None:
            subprocess.run(
                command, **who, cwd="/", check=True, stdout=subprocess.DEVNULL, timeout=120
            )

        run(
            str(programs / "initdb"),
            "-D",
            data,
            "-U",
            "codeloop",
            "-A",
            "trust",
            "--no-sync",
            "-E",
            "UTF8",
        )
        settings = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=20"
        run(
            str(programs / "pg_ctl"),
            "-D",
            data,
            "-w",
            "-l",
            str(folder / "log"),
            "-o",
            settings,
            "start",
        )
        try:
            yield f"postgresql:///postgres?host={folder}&user=codeloop"
        finally:
            run(str(programs / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
