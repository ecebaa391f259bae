"""Vi's registers of yanked and deleted text."""

from msgspec import Struct

from codeloop.tui.editor.buffer import Buffer

CLIPBOARD_NAMES = frozenset({"+", "*"})
"""The registers that stand for the clipboard."""
# Text that is deleted into it is lost, so that it does not replace what was yanked.
_BLACK_HOLE_NAME = "_"


class Register(Struct, frozen=True):
    """The content of a register; `is_lines`: whole lines, without their last line feed."""

    text: str = ""
    is_lines: bool = False


class Registers:
    """The registers by name. As in vi, "" has what was stored last,
    and `0` what was yanked last without a name.

    `clipboard`: a text that was yanked or deleted into the clipboard's register. The caller has to
    copy that text, and to reset `clipboard`.
    """

    def __init__(self) -> None:
        self.clipboard: str | None = None
        self._registers: dict[str, Register] = {}

    def store(
        self, buffer: Buffer, name: str, low: int, high: int, *, is_lines: bool, is_yank: bool
    ) -> None:
        """Store a piece of the text in a register, and as the text that ctrl+y inserts."""
        if name == _BLACK_HOLE_NAME:
            return
        register = Register(buffer.text[low:high], is_lines)
        buffer.killed_text = register.text
        before = self._registers.get(name.lower())
        # As in vi, an upper-case name appends to the register.
        if name.isupper() and before is not None:
            is_lines = before.is_lines or register.is_lines
            register = Register(before.text + ("\n" if is_lines else "") + register.text, is_lines)
        self._registers[""] = register
        if name in CLIPBOARD_NAMES:
            self.clipboard = register.text
        elif name:
            self._registers[name.lower()] = register
        elif is_yank:
            self._registers["0"] = register

    def read(self, name: str) -> Register:
        """Return the content of a register; empty if nothing was stored in it."""
        return self._registers.get("" if name == '"' else name.lower(), Register())
