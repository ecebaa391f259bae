"""What is written of a frame makes a terminal show all of it, whatever it showed before."""

import random
import re
from typing import NamedTuple

import pytest
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from codeloop.tui.render.graphemes import split_graphemes
from codeloop.tui.terminal.screen_updates import ChangedPart
from codeloop.tui.terminal.shown_screen import ShownScreen, erases_in_colour

CONSOLE = Console(color_system="truecolor", force_terminal=True, width=40)
WIDTH, HEIGHT = 40, 12
PANEL = Style(bgcolor="#101820")
STYLES = (
    PANEL,
    Style(color="#d0d0d0", bgcolor="#101820"),
    Style(color="#ff0000", bgcolor="#101820", bold=True),
    Style(bgcolor="#101820", underline=True),
    Style(reverse=True),
    Style(color="#00ff00", bgcolor="#303030", strike=True),
    Style(color="#0000ff", bgcolor="#101820", link="https://example.org"),
)
WORDS = ("word", "é", "漢字", "a", "👍🏽", " ", "      ", "              ", "code()", "🇩🇪")


class Cell(NamedTuple):
    """What a terminal shows in a cell: its text, and what of its style is seen."""

    text: str
    look: tuple[str, ...]


class Emulator:
    """A terminal that knows the sequences that are written;
    it erases in the current background if `erases`.
    """

    def __init__(self, *, erases: bool) -> None:
        self.erases = erases
        self.cells = [[Cell("?", ())] * WIDTH for _ in range(HEIGHT)]
        self.codes: list[str] = []
        self.link = ""
        self.row = self.column = 0
        self.region = (0, HEIGHT - 1)

    def feed(self, output: str) -> None:
        tokens = r"\x1b\[([\d;]*)([A-Za-z])|\x1b\]8;[^;]*;([^\x1b]*)\x1b\\|([^\x1b]+)"
        at = 0
        while at < len(output):
            match = re.compile(tokens).match(output, at)
            assert match is not None, output[at : at + 20]
            at = match.end()
            if match[4] is not None:
                self.write(match[4])
            elif match[2]:
                self.control(match[2], match[1])
            else:
                self.link = match[3]

    def write(self, text: str) -> None:
        for start, end, width in split_graphemes(text):
            look = self.look(text[start:end])
            self.cells[self.row][self.column : self.column + width] = [
                Cell(text[start:end], look),
                *[Cell("", look)] * (width - 1),
            ]
            self.column += width
            assert self.column <= WIDTH

    def look(self, text: str) -> tuple[str, ...]:
        return seen(text, self.codes, self.link)

    def erased(self) -> Cell:
        background = [code for code in self.codes if code.startswith("48")] if self.erases else []
        return Cell(" ", seen(" ", background, ""))

    def control(self, kind: str, given: str) -> None:
        numbers = [int(each) for each in given.split(";") if each]
        count = numbers[0] if numbers else 1
        match kind:
            case "H":
                self.row, self.column = numbers[0] - 1, numbers[1] - 1
            case "C":
                self.column += count
            case "G":
                self.column = count - 1
            case "X":
                self.cells[self.row][self.column : self.column + count] = [self.erased()] * count
            case "K":
                self.cells[self.row][self.column :] = [self.erased()] * (WIDTH - self.column)
            case "J":
                self.cells = [[self.erased()] * WIDTH for _ in range(HEIGHT)]
            case "r":
                self.region = (numbers[0] - 1, numbers[1] - 1) if numbers else (0, HEIGHT - 1)
            case "S" | "T":
                top, bottom = self.region
                rows = self.cells[top : bottom + 1]
                empty = [[self.erased()] * WIDTH for _ in range(count)]
                rows = [*rows[count:], *empty] if kind == "S" else [*empty, *rows[:-count]]
                self.cells[top : bottom + 1] = rows
            case "m":
                self.codes = _apply(self.codes, given)
            case _:
                raise AssertionError(kind)


def _apply(codes: list[str], given: str) -> list[str]:
    for found in re.finditer(r"[34]8;2;\d+;\d+;\d+|\d+", given):
        code = found[0]
        if code == "0":
            codes = []
            continue
        kind: str = {"39": "38", "49": "48"}.get(code, code[:2] if len(code) > 2 else code)
        codes = [
            each
            for each in codes
            if each != code and not (len(kind) == 2 and each.startswith(kind))
        ]
        codes += [] if code in {"39", "49"} else [code]
    return codes


def seen(text: str, codes: list[str], link: str) -> tuple[str, ...]:
    """Return what is seen of a style: of a blank, colour and weight of the text are not."""
    if text == " " and not link and not {"4", "7", "9"} & set(codes):
        return tuple(code for code in codes if code.startswith("48"))
    return (*sorted(codes), link)


def strip(text: str, style: Style) -> Strip:
    return Strip([Segment(text, style)]).adjust_cell_length(WIDTH, PANEL)


def draw_strip(chance: random.Random) -> Strip:
    segments = [
        Segment(chance.choice(WORDS), chance.choice(STYLES)) for _ in range(chance.randrange(12))
    ]
    return Strip(segments).adjust_cell_length(WIDTH, PANEL)


def show_all(strips: list[Strip], *, erases: bool) -> list[list[Cell]]:
    """Return what a terminal shows when all of the rows are written to it at once, as they are."""
    emulator = Emulator(erases=erases)
    for row, each in enumerate(strips):
        emulator.feed(f"\x1b[{row + 1};1H\x1b[0m{each.render(CONSOLE)}")
    return emulator.cells


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("erases", [True, False])
def test_a_terminal_shows_each_frame(seed: int, erases: bool) -> None:
    chance = random.Random(seed)
    screen, emulator = ShownScreen(erases=erases), Emulator(erases=erases)
    screen.resize(WIDTH, HEIGHT)
    rows = [draw_strip(chance) for _ in range(HEIGHT)]
    screen.change([ChangedPart(line, 0, WIDTH, each) for line, each in enumerate(rows)], CONSOLE)
    emulator.feed(screen.write_changes())
    for _ in range(25):
        match chance.randrange(4):
            case 0:
                # Some rows within the screen move up or down, and new ones come.
                top, bottom = sorted(chance.sample(range(HEIGHT + 1), 2))
                new = [draw_strip(chance) for _ in range(chance.randrange(1, 3))]
                inner = (
                    [*rows[top:bottom], *new]
                    if chance.random() < 0.5
                    else [*new, *rows[top:bottom]]
                )
                inner = inner[-(bottom - top) :] if chance.random() < 0.5 else inner[: bottom - top]
                rows[top:bottom] = inner
            case 1:
                rows[chance.randrange(HEIGHT)] = draw_strip(chance)
            case 2:
                line = chance.randrange(HEIGHT)
                changed = f"{rows[line].text[: chance.randrange(WIDTH)]}x"
                rows[line] = strip(changed, chance.choice(STYLES))
            case _:
                screen.forget()
                emulator.cells = [[Cell("!", ())] * WIDTH for _ in range(HEIGHT)]
        parts = [ChangedPart(line, 0, WIDTH, each) for line, each in enumerate(rows)]
        screen.change(parts, CONSOLE)
        # A frame that is not written is made up for by the next one.
        if chance.random() < 0.2:
            continue
        emulator.feed(screen.write_changes())
        assert not screen.has_changes
        assert emulator.cells == show_all(rows, erases=erases)


def test_text_that_grows_costs_its_own_bytes() -> None:
    screen = ShownScreen(erases=True)
    screen.resize(WIDTH, HEIGHT)
    style = STYLES[1]
    rows = [strip(f"row number {number}", style) for number in range(HEIGHT)]
    screen.change([ChangedPart(line, 0, WIDTH, each) for line, each in enumerate(rows)], CONSOLE)
    assert "row number 3" in screen.write_changes()
    screen.change([ChangedPart(3, 0, WIDTH, strip("row number 3 and more", style))], CONSOLE)
    assert screen.write_changes() == "\x1b[4;14H\x1b[38;2;208;208;208;48;2;16;24;32mand more\x1b[0m"
    screen.change([ChangedPart(3, 0, WIDTH, strip("row number 3 and more", style))], CONSOLE)
    assert not screen.has_changes


def test_rows_that_move_are_moved_by_the_terminal() -> None:
    screen = ShownScreen(erases=True)
    screen.resize(WIDTH, HEIGHT)
    rows = [strip(chr(ord("a") + number) * 30, STYLES[1]) for number in range(HEIGHT + 1)]
    screen.change(
        [ChangedPart(line, 0, WIDTH, each) for line, each in enumerate(rows[:HEIGHT])], CONSOLE
    )
    screen.write_changes()
    screen.change(
        [ChangedPart(line, 0, WIDTH, each) for line, each in enumerate(rows[1:])], CONSOLE
    )
    output = screen.write_changes()
    assert output.startswith("\x1b[1;12r\x1b[1S\x1b[r\x1b[12;1H")
    assert len(output) < 150


def test_only_terminals_that_do_so_erase_in_colour() -> None:
    assert erases_in_colour({"TERM": "xterm-256color"})
    assert erases_in_colour({"TERM": "screen-256color", "TMUX": "/tmp/tmux-0/default,1,0"})
    assert not erases_in_colour({"TERM": "screen-256color"})
    assert not erases_in_colour(
        {"TERM": "screen", "TMUX": "/tmp/tmux-0/default,1,0", "STY": "1.pts-0.here"}
    )
