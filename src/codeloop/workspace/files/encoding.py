"""Bytes of a file as text and back, without losing one: encodings, byte-order marks, line ends."""

import codecs
import re
from bisect import bisect_left

from msgspec import Struct

from codeloop.schema.errors import CodeloopError

_MARKS = (  # the four-byte marks first: UTF-32 LE begins like UTF-16 LE
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HIGH = re.compile(rb"[\x80-\xff]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SAMPLE = 65536
_WIDE = 16  # bytes; less is too little to tell UTF-16 from binary data


CHANGE_BY_COMMAND = "Change it with a command instead."


class NotText(CodeloopError):
    """The bytes can't be decoded and written back unchanged, or the file's encoding can't represent the text.

    `advice` is for the model alone.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class Encoding(Struct, frozen=True):
    """How a file holds text. `codec`: Python's name. `mark`: its byte-order mark. `lax`: stray bytes survive."""

    codec: str = "utf-8"
    mark: bytes = b""
    lax: bool = False

    @property
    def errors(self) -> str:
        """The error handler that keeps bytes."""
        return "surrogateescape" if self.lax else "strict"


UTF8 = Encoding()


class DecodedText(Struct, frozen=True):
    """A file's text with its own line ends, and the encoding that restores its bytes."""

    content: str
    encoding: Encoding = UTF8


def decode(data: bytes) -> DecodedText:
    """Decode a whole file so that encoding restores the same bytes.

    Raises NotText for what can't be restored byte for byte: NUL bytes, broken UTF-16.
    """
    encoding = detect(data)
    try:
        content = data[len(encoding.mark) :].decode(encoding.codec, encoding.errors)
        if encoding.mark + content.encode(encoding.codec, encoding.errors) == data:
            return DecodedText(content, encoding)
    except UnicodeError as error:
        raise NotText(f"it is not valid {encoding.codec} ({error}).", CHANGE_BY_COMMAND) from error
    raise NotText(f"decoding it as {encoding.codec} would lose bytes.", CHANGE_BY_COMMAND)


def encode(content: str, encoding: Encoding) -> bytes:
    """Return the bytes of a text that `decode` gave, perhaps edited.

    Raises NotText for characters that the encoding lacks.
    """
    try:
        return encoding.mark + content.encode(encoding.codec, encoding.errors)
    except UnicodeEncodeError as error:
        char = content[error.start]
        raise NotText(
            f"the file is {encoding.codec}, which has no {char!r} (U+{ord(char):04X}); "
            "write the text without it, or convert the file first"
        ) from error


def check_new(text: str) -> None:
    """Raise NotText when a text that a model wrote holds half a surrogate pair, which no file can."""
    match = _SURROGATE.search(text)
    if match:
        raise NotText(
            f"the new text contains U+{ord(match.group()):04X}, half of a character; write the whole character"
        )


def detect(data: bytes) -> Encoding:
    """Return the encoding of bytes, from the mark, else from all of them. Raises NotText for NUL bytes."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return Encoding(codec, mark, lax=codec == "utf-8")
    if b"\0" in data:
        wide = _detect_utf16(data)
        if wide is None:
            raise NotText("it is a binary file (it contains NUL bytes)")
        return wide
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _detect_legacy(data)
    return UTF8


def is_binary(sample: bytes) -> bool:
    """Return whether the first bytes of a file are binary: NUL bytes, or mostly control characters."""
    if not sample or any(sample.startswith(mark) for mark, _ in _MARKS):
        return False
    if b"\0" in sample:
        return _detect_utf16(sample[: len(sample) // 4 * 4]) is None
    odd = sum(sample.count(byte) for byte in range(32) if byte not in b"\t\n\r\f\b\x1b")
    return odd > len(sample) * 0.3


def _detect_utf16(data: bytes) -> Encoding | None:
    """UTF-16 without a mark: in Latin text every second byte is NUL."""
    sample = data[:_SAMPLE]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    codec = "utf-16-le" if odd > half * 0.4 and not even else "utf-16-be" if even > half * 0.4 and not odd else None
    if codec is None or len(data) % 2 or len(data) < _WIDE:
        return None
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return None
    return Encoding(codec)


def _detect_legacy(data: bytes) -> Encoding:
    """Not UTF-8 as a whole: UTF-8 with stray bytes, GBK, or Latin. Every choice keeps every byte."""
    guess = data[:_SAMPLE] if len(data) > _SAMPLE and _HIGH.search(data[:_SAMPLE]) else data
    loose = guess.decode("utf-8", "surrogateescape")
    stray = sum(1 for char in loose if "\udc80" <= char <= "\udcff")
    wide = sum(1 for char in loose if char > "\x7f") - stray
    if wide >= stray or wide > 20:
        return Encoding("utf-8", lax=True)
    runs = [len(run) for run in _HIGH.findall(guess)]
    paired = sum(size for size in runs if size % 2 == 0)
    for codec in ("gb18030",) if paired > 0.8 * sum(runs) else ():
        if _keeps(data, codec):
            return Encoding(codec)
    return Encoding("cp1252" if _keeps(data, "cp1252") else "latin-1")


def _keeps(data: bytes, codec: str) -> bool:
    try:
        return data.decode(codec).encode(codec) == data
    except UnicodeError:
        return False


class NormalizedText:
    r"""A text with `\n` for every `\r\n`, and the way back to positions in the original.

    `text` is what is searched; `spot(offset)` is the offset in the original, before the `\r` of a line end.
    """

    __slots__ = ("_returns", "original", "text")

    def __init__(self, original: str) -> None:
        self.original = original
        self._returns: list[int] = []
        self.text = original
        if "\r\n" in original:
            self._returns = [match.start() - index for index, match in enumerate(re.finditer("\r\n", original))]
            self.text = original.replace("\r\n", "\n")

    def to_original(self, offset: int) -> int:
        """Return the position in the original text of an offset in `text`."""
        return offset + bisect_left(self._returns, offset)

    def slice(self, start: int, end: int) -> str:
        """Return the original text between two offsets in `text`."""
        return self.original[self.to_original(start) : self.to_original(end)]

    def line_end(self, start: int, end: int) -> str:
        r"""Return the line end in use at a place: within it, else of its line, else of the line before."""
        inside = self.text.find("\n", start, end)
        at = inside if inside >= 0 else self.text.find("\n", end)
        at = at if at >= 0 else self.text.rfind("\n", 0, start)
        if at < 0:
            return "\n"
        return "\r\n" if self.original[self.to_original(at)] == "\r" else "\n"


def find_main_line_end(content: str) -> str:
    r"""Return the line end that most lines of a text have: `\r\n` or `\n`."""
    pairs = content.count("\r\n")
    return "\r\n" if pairs > content.count("\n") - pairs else "\n"
