"""Reaches the terminal that tmux or GNU screen runs in: passes sequences on to it,
and asks tmux about it.
"""

from collections.abc import Mapping

from codeloop.kit.desktop_programs import make_desktop_launch
from codeloop.kit.program import run_program
from codeloop.schema.bounds.tui import PICTURE_ASK

# GNU screen passes a longer sequence through in pieces only.
_SCREEN_CHUNK_LENGTH = 512


def pass_through(sequence: str, environment: Mapping[str, str]) -> str:
    """Return a sequence wrapped so that tmux or screen passes it to the outer terminal;
    unchanged outside of these.
    """
    if environment.get("TMUX"):
        # Within the wrapper, tmux wants each escape doubled; the outer terminal gets it once.
        return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"
    if environment.get("STY"):
        chunks = (
            sequence[at : at + _SCREEN_CHUNK_LENGTH]
            for at in range(0, len(sequence), _SCREEN_CHUNK_LENGTH)
        )
        return "".join(f"\x1bP{chunk}\x1b\\" for chunk in chunks)
    return sequence


async def query_tmux(format_text: str) -> str:
    """Return a format of tmux, such as `#{client_termtype}`, with its values;
    "": tmux is missing, or silent.
    """
    command = ("tmux", "display-message", "-p", format_text)
    try:
        result = await run_program(make_desktop_launch(command, seconds=PICTURE_ASK.seconds))
    except OSError:
        return ""
    return "" if result.stop_reason else result.stdout.decode("utf-8", "replace")
