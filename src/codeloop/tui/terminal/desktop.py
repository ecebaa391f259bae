"""Reaches the user's desktop from the terminal: clipboard, links, notifications."""

import base64
import os
import sys
from asyncio import sleep, timeout
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from contextlib import suppress

from codeloop.kit.processes import start_desktop_program
from codeloop.kit.terminal_text import escape_answer_controls, one_line
from codeloop.schema.bounds.tui import PROMPT_CLIPBOARD

Environment = Mapping[str, str]
_TITLE, _TEXT = 60, 200
"""The most characters of a notification."""
MUTE = {"linux", "dumb"}
"""Terminals that would print these sequences as text."""
_NAME = 80
"""The most characters of a window title."""
_OWN = ("foot", "rxvt", "contour")
"""Prefixes of `TERM` of terminals with rxvt's notifications."""
_SCREEN = 512
"""Bytes that GNU screen passes through at a time."""


def pass_through(sequence: str, environment: Environment) -> str:
    """Wrap a sequence so that a multiplexer passes it to the outer terminal; unchanged if there is none."""
    if environment.get("TMUX"):
        return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"
    if environment.get("STY"):
        pieces = (sequence[at : at + _SCREEN] for at in range(0, len(sequence), _SCREEN))
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return sequence


def make_clipboard_sequence(text: str, environment: Environment) -> str:
    """Return the sequence that copies a text to the terminal's clipboard, also over ssh."""
    sequence = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
    if environment.get("TMUX"):  # tmux stores it, passes it on, or ignores it, by its settings
        return sequence + pass_through(sequence, environment)
    return pass_through(sequence, environment)


def find_copy_programs(environment: Environment, platform: str = sys.platform) -> list[tuple[str, ...]]:
    """Return the programs that write the desktop's clipboard; on a remote machine only tmux does."""
    programs: list[tuple[str, ...]] = []
    if environment.get("TMUX"):
        programs.append(("tmux", "load-buffer", "-w", "-"))
    if environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"):
        return programs
    if platform == "darwin":
        programs.append(("pbcopy",))
    elif environment.get("WAYLAND_DISPLAY"):
        programs.append(("wl-copy",))
    elif environment.get("DISPLAY"):
        programs += [("xclip", "-selection", "clipboard", "-in"), ("xsel", "--clipboard", "--input")]
    if environment.get("WSL_DISTRO_NAME"):
        programs.append(("clip.exe",))
    return programs


async def write_clipboard(text: str, programs: list[tuple[str, ...]], after: float = 0.0) -> None:
    """Write a text to the stdin of each program that is installed; `xsel` only if no other has taken it.

    `after`: seconds that others have first.
    """
    await sleep(after)
    is_written = False
    for program in programs:
        if is_written and program[0] == "xsel":
            continue
        data = text.encode("utf-16") if program[0] == "clip.exe" else text.encode()
        with suppress(OSError, TimeoutError):
            process = await start_desktop_program(program, stdin=PIPE, output=DEVNULL)
            async with timeout(PROMPT_CLIPBOARD.seconds):
                await process.communicate(data)
            is_written = process.returncode == 0


def find_opener(link: str, environment: Environment, platform: str = sys.platform) -> tuple[str, ...]:
    """Return the command that opens a link on the user's desktop; none for invalid links and remote machines.

    The standard library might run a browser in this terminal, and takes words with a dash for options.
    """
    if not link.startswith(("http://", "https://", "mailto:")):
        return ()
    if environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"):
        return ()
    if platform == "darwin":
        return ("open", link)
    if environment.get("WSL_DISTRO_NAME"):
        return ("wslview", link)
    return ("xdg-open", link) if _is_any(environment, "WAYLAND_DISPLAY", "DISPLAY") else ()


async def open_link(program: tuple[str, ...]) -> bool:
    """Run the opener of a link, detached from this terminal; return whether it started."""
    try:
        await start_desktop_program(program, stdin=DEVNULL, output=DEVNULL, is_apart=True)
    except OSError:
        return False
    return True


def make_notification(title: str, text: str, environment: Environment) -> str:
    """Return the sequence of a desktop notification; "" for a terminal without them."""
    title, text = (one_line(each, most).replace(";", ",") for each, most in ((title, _TITLE), (text, _TEXT)))
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if environment.get("KITTY_WINDOW_ID") or term == "xterm-kitty":
        sequence = f"\x1b]99;i=codeloop:d=0;{title}\x1b\\\x1b]99;i=codeloop:p=body;{text}\x1b\\"
    elif _is_any(environment, "GHOSTTY_RESOURCES_DIR", "WEZTERM_PANE", "KONSOLE_VERSION") or term.startswith(_OWN):
        sequence = f"\x1b]777;notify;{title};{text}\x1b\\"
    elif _is_any(environment, "ITERM_SESSION_ID") or program in {"iTerm.app", "mintty", "WarpTerminal"}:
        sequence = f"\x1b]9;{title}: {text}\x07"
    else:
        return ""
    return pass_through(sequence, environment)


def _is_any(environment: Environment, *names: str) -> bool:
    return any(environment.get(name) for name in names)


class TerminalWindow:
    """`tell` writes a sequence to the terminal; `bell` rings."""

    def __init__(self, tell: Callable[[str], None], bell: Callable[[], None]) -> None:
        self._tell = tell
        self._bell = bell
        self._name = ""
        """The last title."""

    def rename(self, name: str) -> None:
        """Set the title of the window or tab."""
        if name != self._name and os.environ.get("TERM") not in MUTE:
            self._name = name
            self._tell(f"\x1b]2;{one_line(name, _NAME, escape_answer_controls)}\x1b\\")

    def rename_again(self) -> None:
        """Set the title again, after another program had the terminal."""
        name, self._name = self._name, ""
        self.rename(name)

    def alert(self, title: str, text: str, *, has_bell: bool, has_notice: bool) -> None:
        """Get the attention of a user who looks elsewhere."""
        if has_notice:
            self._tell(make_notification(title, text, os.environ))
        if has_bell:
            self._bell()
