"""Shows a notification on the user's desktop."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from codeloop.kit.programs import find_program, make_child_environment, make_safe_environment
from codeloop.schema.bounds.program import SCHEDULE_NOTIFY


def show_notification(title: str, text: str, environment: dict[str, str]) -> None:
    """Show a notification on the user's desktop; do nothing if there is no program for that.

    `environment`: variables that replace those of this process.
    """
    safe_environment = make_safe_environment({**os.environ, **environment})
    if sys.platform == "darwin":
        # Both become strings of AppleScript, which a quote would end and a backslash would change.
        words = [each.replace("\\", "").replace('"', "'") for each in (text, title)]
        command = ["osascript", "-e", f'display notification "{words[0]}" with title "{words[1]}"']
    else:
        # cron starts its jobs without the address of the session bus;
        # systemd's login manager puts the bus here.
        bus = Path(f"/run/user/{os.getuid()}/bus")
        if "DBUS_SESSION_BUS_ADDRESS" not in safe_environment and bus.exists():
            safe_environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={bus}"
        command = ["notify-send", "--app-name=codeloop", "--", title, text]
    if (program := find_program(command[0], safe_environment["PATH"])) is None:
        return
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [program, *command[1:]],
            cwd="/",
            env=make_child_environment(safe_environment, "/"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=SCHEDULE_NOTIFY.seconds,
        )
