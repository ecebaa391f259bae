"""A terminal that draws pictures in all three ways, and takes nothing that it does not understand.

Cells hold a text and a tile of a picture; who writes a text takes the tile away.
"""

import base64
import io
import re
import unicodedata
from dataclasses import dataclass, field

from PIL import Image

from codeloop.tui.terminal.pictures.kitty import POSITION_MARKS

PLACEHOLDER = "\U0010eeee"
_TOKEN = re.compile(
    r"\x1b\[(?P<csi>[?<>=]?[\d;:]*)(?P<final>[@-~])|\x1b\[[>=?]?[\d;:$]*[ -/]*[@-~]"
    r"|\x1bP(?P<dcs>[^\x1b]*)\x1b\\|\x1b\](?P<osc>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b_G(?P<apc>[^\x1b]*)\x1b\\|\x1b(?P<esc>[78=>])|(?P<newline>[\r\n])|(?P<bell>\x07)|(?P<text>[^\x00-\x1f\x7f])"
)


@dataclass
class Cell:
    text: str = " "
    colour: tuple[int, int, int] | None = None
    tile: Image.Image | None = None


@dataclass
class Uploaded:
    columns: int
    rows: int
    image: Image.Image


@dataclass
class DrawingTerminal:
    """`taken`: how many pictures of each kind it was given; `images`: those that kitty holds."""

    columns: int = 80
    rows: int = 24
    cell: tuple[int, int] = (10, 20)
    taken: dict[str, int] = field(default_factory=dict[str, int])
    images: dict[int, Uploaded] = field(default_factory=dict[int, Uploaded])

    def __post_init__(self) -> None:
        self._rest = ""
        self._at = self._saved = (0, 0)
        self._region = (0, self.rows)
        self._colour: tuple[int, int, int] | None = None
        self._upload: list[tuple[dict[str, str], str]] = []
        self.grid = [[Cell() for _ in range(self.columns)] for _ in range(self.rows)]

    def feed(self, text: str) -> None:
        self._rest += text
        at = 0
        while (found := _TOKEN.match(self._rest, at)) is not None:
            if found["text"] and found.end() == len(self._rest) and self._rest[-1] == PLACEHOLDER:
                break  # its marks may follow
            at = found.end()
            self._take(found)
        self._rest = self._rest[at:]
        assert not self._rest or self._rest[0] in "\x1b" + PLACEHOLDER, (
            f"not understood: {self._rest[:80]!r}"
        )
        assert len(self._rest) < 2_000_000, f"never ends: {self._rest[:80]!r}"

    def screen(self) -> str:
        return "\n".join("".join(cell.text[:1] for cell in row).rstrip() for row in self.grid)

    def tiles(self) -> dict[tuple[int, int], Image.Image]:
        """Return what of pictures is on the screen, by row and column."""
        found: dict[tuple[int, int], Image.Image] = {}
        for y, row in enumerate(self.grid):
            for x, cell in enumerate(row):
                tile = self._shown(cell) if cell.text[0] == PLACEHOLDER else cell.tile
                if tile is not None:
                    found[y, x] = tile
        return found

    def picture(self) -> Image.Image | None:
        """Return the part of the screen with pictures, which must be one rectangle;
        None: there is none.
        """
        tiles = self.tiles()
        if not tiles:
            return None
        (top, left), (bottom, right) = self.box()
        assert len(tiles) == (bottom - top) * (right - left), "it has holes"
        width, height = self.cell
        whole = Image.new("RGBA", ((right - left) * width, (bottom - top) * height))
        for (y, x), tile in tiles.items():
            whole.paste(tile, ((x - left) * width, (y - top) * height))
        return whole

    def box(self) -> tuple[tuple[int, int], tuple[int, int]]:
        spots = [*self.tiles()]
        ys, xs = [y for y, _ in spots], [x for _, x in spots]
        return (min(ys), min(xs)), (max(ys) + 1, max(xs) + 1)

    def _take(self, found: re.Match[str]) -> None:
        if found["text"]:
            self._write(found["text"])
        elif found["newline"]:
            y, x = self._at
            self._at = (min(y + 1, self.rows - 1), x) if found["newline"] == "\n" else (y, 0)
        elif found["esc"] == "7":
            self._saved = self._at
        elif found["esc"] == "8":
            self._at = self._saved
        elif found["final"] == "H":
            y, _, x = found["csi"].partition(";")
            self._at = (int(y or 1) - 1, int(x or 1) - 1)
        elif found["final"] == "m" and not found["csi"].startswith((">", "?")):
            self._paint(found["csi"])
        elif found["final"] == "h" and found["csi"] == "?1049":
            self.grid = [[Cell() for _ in range(self.columns)] for _ in range(self.rows)]
        elif found["final"] in set("CGXKJrST") and not found["csi"].startswith(
            (">", "?", "=", "<")
        ):
            self._move_or_erase(
                found["final"], [int(each or 0) for each in found["csi"].split(";") if each]
            )
        elif found["dcs"]:
            self._sixel(found["dcs"])
        elif found["osc"] and found["osc"].startswith("1337;"):
            self._file(found["osc"])
        elif found["apc"]:
            self._kitty(found["apc"])

    def _move_or_erase(self, kind: str, numbers: list[int]) -> None:
        (y, x), count = self._at, numbers[0] if numbers else 1
        match kind:
            case "C":
                self._at = (y, x + count)
            case "G":
                self._at = (y, count - 1)
            case "X":
                self.grid[y][x : x + count] = [Cell() for _ in range(count)]
            case "K":
                self.grid[y][x:] = [Cell() for _ in range(self.columns - x)]
            case "J":
                self.grid = [[Cell() for _ in range(self.columns)] for _ in range(self.rows)]
            case "r":
                self._region = (numbers[0] - 1, numbers[1]) if numbers else (0, self.rows)
            case _:
                top, bottom = self._region
                empty = [[Cell() for _ in range(self.columns)] for _ in range(count)]
                rows = self.grid[top:bottom]
                self.grid[top:bottom] = (
                    [*rows[count:], *empty] if kind == "S" else [*empty, *rows[:-count]]
                )

    def _write(self, char: str) -> None:
        y, x = self._at
        if unicodedata.combining(char):
            self.grid[y][x - 1].text += char
            return
        if x < self.columns and y < self.rows:
            self.grid[y][x] = Cell(char, self._colour)
        self._at = (y, x + (2 if unicodedata.east_asian_width(char) in "WF" else 1))

    def _paint(self, given: str) -> None:
        numbers = [int(each or 0) for each in given.split(";")]
        while numbers:
            first = numbers.pop(0)
            if first in {38, 48}:
                kind = numbers.pop(0)
                values = [numbers.pop(0) for _ in range(3 if kind == 2 else 1)]
                if first == 38:
                    self._colour = (values[0], values[1], values[2]) if kind == 2 else None
            elif first in {0, 39} or 30 <= first <= 37:
                self._colour = None

    def _draw(self, image: Image.Image, kind: str) -> None:
        self.taken[kind] = self.taken.get(kind, 0) + 1
        y, x = self._at
        width, height = self.cell
        columns, rows = -(-image.width // width), -(-image.height // height)
        assert x + columns <= self.columns, f"a {kind} reaches over the right edge"
        assert y + rows < self.rows, f"a {kind} would scroll the screen"
        for row in range(rows):
            for column in range(columns):
                place = (column * width, row * height, (column + 1) * width, (row + 1) * height)
                self.grid[y + row][x + column].tile = image.crop(place)

    def _sixel(self, given: str) -> None:
        if given.startswith((">|", "+", "$")):
            return
        head = re.match(r'0;1q"1;1;(\d+);(\d+)', given)
        assert head is not None, given[:40]
        width, height = int(head[1]), int(head[2])
        image = Image.new("RGBA", (width, height))
        pixels = image.load()
        assert pixels is not None
        palette: dict[int, tuple[int, ...]] = {}
        at, x, top, colour = head.end(), 0, 0, -1
        while at < len(given):
            token = re.compile(
                r"#(\d+)(?:;2;(\d+);(\d+);(\d+))?|!(\d+)([?-~])|([?-~])|(\$)|(-)"
            ).match(given, at)
            assert token is not None, given[at : at + 20]
            at = token.end()
            if token[1]:
                colour = int(token[1])
                assert colour < 256
                if token[2]:
                    palette[colour] = tuple(
                        round(int(part) * 255 / 100) for part in token.group(2, 3, 4)
                    )
                else:
                    assert colour in palette, "a colour that is not defined"
            elif token[8] or token[9]:
                x, top = 0, top + (6 if token[9] else 0)
            else:
                bits, count = ord(token[6] or token[7]) - 63, int(token[5] or 1)
                for y in (top + bit for bit in range(6) if bits >> bit & 1):
                    assert x + count <= width, "wider than it says"
                    assert y < height, "higher than it says"
                    for column in range(x, x + count):
                        pixels[column, y] = (*palette[colour], 255)
                x += count
        self._draw(image, "sixel")

    def _file(self, given: str) -> None:
        head, _, encoded = given.partition(":")
        name, _, options = head.partition(";")[2].partition("=")
        keys = dict(option.split("=") for option in options.split(";"))
        data = base64.b64decode(encoded, validate=True)
        assert name == "File"
        assert keys["inline"] == "1"
        assert int(keys["size"]) == len(data)
        image = Image.open(io.BytesIO(data)).convert("RGBA")
        size = (int(keys["width"]) * self.cell[0], int(keys["height"]) * self.cell[1])
        self._draw(image.resize(size) if image.size != size else image, "iterm")

    def _kitty(self, given: str) -> None:
        head, _, encoded = given.partition(";")
        keys = dict(pair.split("=") for pair in head.split(","))
        assert keys.get("q") == "2", "it would be answered"
        if keys.get("a") == "d":
            assert keys["d"] == "I"
            self.images.pop(int(keys["i"]), None)
            return
        assert len(encoded) <= 4096
        assert not self._upload or "a" not in keys, "a picture begins before another ends"
        self._upload.append((keys, encoded))
        if keys["m"] == "1":
            return
        first = self._upload[0][0]
        assert (first["a"], first["U"], first["f"]) == ("T", "1", "100")
        data = base64.b64decode("".join(piece for _, piece in self._upload), validate=True)
        self._upload = []
        image = Image.open(io.BytesIO(data)).convert("RGBA")
        self.images[int(first["i"])] = Uploaded(int(first["c"]), int(first["r"]), image)
        self.taken["kitty"] = self.taken.get("kitty", 0) + 1

    def _shown(self, cell: Cell) -> Image.Image | None:
        red, green, blue = cell.colour or (0, 0, 0)
        uploaded = self.images.get(red << 16 | green << 8 | blue)
        if uploaded is None or len(cell.text) != 3:  # its marks are still on their way
            return None
        row, column = (POSITION_MARKS.index(mark) for mark in cell.text[1:])
        assert row < uploaded.rows
        assert column < uploaded.columns
        image = uploaded.image.resize(
            (uploaded.columns * self.cell[0], uploaded.rows * self.cell[1])
        )
        width, height = self.cell
        return image.crop((column * width, row * height, (column + 1) * width, (row + 1) * height))
