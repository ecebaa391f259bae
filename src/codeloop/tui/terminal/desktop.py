"""Reaches the user's desktop from the terminal: writes the clipboard, opens links, shows notifications."""

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
_MAX_TITLE, _MAX_TEXT = 60, 200
"""Characters of a notification's title and text."""
PLAIN_TERMINALS = {"linux", "dumb"}
"""Values of `TERM` of terminals that would print unknown sequences as text."""
_MAX_WINDOW_TITLE = 80
"""Characters of a window's title."""
_RXVT_TERMS = ("foot", "rxvt", "contour")
"""Prefixes of `TERM` of terminals that have rxvt's sequence for notifications."""
_SCREEN_CHUNK = 512
"""Characters that GNU screen passes through at a time."""


def pass_through(sequence: str, environment: Environment) -> str:
    """Return a sequence wrapped so that tmux or screen passes it to the outer terminal; unchanged outside of these."""
    if environment.get("TMUX"):
        return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"
    if environment.get("STY"):
        pieces = (sequence[at : at + _SCREEN_CHUNK] for at in range(0, len(sequence), _SCREEN_CHUNK))
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return sequence


def make_clipboard_sequence(text: str, environment: Environment) -> str:
    """Return the sequence that copies a text to the terminal's clipboard, also over ssh."""
    sequence = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
    if environment.get("TMUX"):  # tmux stores it, passes it on, or ignores it, by its settings
        return sequence + pass_through(sequence, environment)
    return pass_through(sequence, environment)


def find_copy_programs(environment: Environment, platform: str = sys.platform) -> list[tuple[str, ...]]:
    """Return the commands that write the desktop's clipboard; on a remote machine, only that of tmux."""
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
    """Write a text to each program that is installed; to `xsel` only if no other program has accepted it.

    `after`: seconds to wait before that.
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
    """Return the command that opens a link on the user's desktop; empty for invalid links, and on remote machines.

    Python's `webbrowser` is not used: it might run a browser in this terminal, and takes a link that begins with a dash
    for an option.
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
    """Return the sequence that shows a desktop notification; "": the terminal has none."""
    title, text = (one_line(each, most).replace(";", ",") for each, most in ((title, _MAX_TITLE), (text, _MAX_TEXT)))
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if environment.get("KITTY_WINDOW_ID") or term == "xterm-kitty":
        sequence = f"\x1b]99;i=codeloop:d=0;{title}\x1b\\\x1b]99;i=codeloop:p=body;{text}\x1b\\"
    elif term.startswith(_RXVT_TERMS) or _is_any(
        environment, "GHOSTTY_RESOURCES_DIR", "WEZTERM_PANE", "KONSOLE_VERSION"
    ):
        sequence = f"\x1b]777;notify;{title};{text}\x1b\\"
    elif _is_any(environment, "ITERM_SESSION_ID") or program in {"iTerm.app", "mintty", "WarpTerminal"}:
        sequence = f"\x1b]9;{title}: {text}\x07"
    else:
        return ""
    return pass_through(sequence, environment)


def _is_any(environment: Environment, *names: str) -> bool:
    return any(environment.get(name) for name in names)


class TerminalWindow:
    """The title of the terminal's window, and its attention requests.

    `write` writes a sequence to the terminal; `bell` rings its bell.
    """

    def __init__(self, write: Callable[[str], None], bell: Callable[[], None]) -> None:
        self._write = write
        self._bell = bell
        self._name = ""
        """The title that was set last."""

    def rename(self, name: str) -> None:
        """Set the title of the window or tab."""
        if name != self._name and os.environ.get("TERM") not in PLAIN_TERMINALS:
            self._name = name
            self._write(f"\x1b]2;{one_line(name, _MAX_WINDOW_TITLE, escape_answer_controls)}\x1b\\")

    def rename_again(self) -> None:
        """Set the title again, after another program had the terminal."""
        name, self._name = self._name, ""
        self.rename(name)

    def alert(self, title: str, text: str, *, has_bell: bool, has_notice: bool) -> None:
        """Alert a user who is looking elsewhere, with the bell and a desktop notification."""
        if has_notice:
            self._write(make_notification(title, text, os.environ))
        if has_bell:
            self._bell()
