"""Decodes files and encodes them again without losing a byte: encodings, byte-order marks,
line ends.
"""

import codecs
import re

from msgspec import Struct

from codeloop.schema.errors import CodeloopError

# The four-byte marks come first, since that of UTF-32 LE begins like that of UTF-16 LE.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NON_ASCII = rb"[\x80-\xff]+"
_SURROGATE = "[\ud800-\udfff]"
_SAMPLE_BYTES = 65536
# Fewer bytes are too little to tell UTF-16 from binary data.
_MIN_UTF16_BYTES = 16
# Control characters that texts hold: tab, line ends, form feed, backspace, escape.
_USUAL_CONTROLS = b"\t\n\r\f\b\x1b"
# A file with a greater share of control characters is binary.
_BINARY_CONTROL_SHARE = 0.3
# The share of NUL among the high bytes that UTF-16 must have: English text has nearly 1.
_UTF16_NUL_SHARE = 0.4
# In GBK, so much of the bytes beyond ASCII is in runs of even length.
_GBK_PAIRED_SHARE = 0.8
# With this many valid characters beyond ASCII, a file is UTF-8, whatever else is in it.
_CONVINCING_UTF8_CHARACTERS = 20

# What an error advises the model to do with a file that can't be edited as text.
CHANGE_BY_COMMAND = "Change it with a command instead."


class NotText(CodeloopError):
    """The bytes can't be decoded and written back unchanged,
    or the file's encoding can't represent the text.

    `advice` is for the model alone.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class Encoding(Struct, frozen=True):
    """The encoding of a file.

    `codec`: its name in Python; `mark`: the byte-order mark, b"" for none; `keeps_stray_bytes`:
    invalid bytes are kept as surrogates.
    """

    codec: str = "utf-8"
    mark: bytes = b""
    keeps_stray_bytes: bool = False

    @property
    def errors(self) -> str:
        """The name of Python's error handler for this encoding."""
        return "surrogateescape" if self.keeps_stray_bytes else "strict"


UTF8 = Encoding()


class DecodedText(Struct, frozen=True):
    """A file's text with its own line ends, and the encoding that restores its bytes."""

    content: str
    encoding: Encoding = UTF8


def decode_text(data: bytes) -> DecodedText:
    """Decode a whole file so that `encode_text` restores the same bytes.

    Raises NotText for a file that can't be restored byte for byte: binary data, broken UTF-16.
    """
    encoding = detect_encoding(data)
    try:
        content = data[len(encoding.mark) :].decode(encoding.codec, encoding.errors)
        if encoding.mark + content.encode(encoding.codec, encoding.errors) == data:
            return DecodedText(content, encoding)
    except UnicodeError as error:
        raise NotText(f"it is not valid {encoding.codec} ({error}).", CHANGE_BY_COMMAND) from error
    raise NotText(f"decoding it as {encoding.codec} would lose bytes.", CHANGE_BY_COMMAND)


def encode_text(content: str, encoding: Encoding) -> bytes:
    """Encode a text with the encoding that `decode_text` found.

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


def check_surrogates(text: str) -> None:
    """Raise NotText when a text that a model wrote holds half a surrogate pair,
    which no file can.
    """
    match = re.search(_SURROGATE, text)
    if match:
        raise NotText(
            f"the new text contains U+{ord(match.group()):04X}, half of a character; write the whole character"
        )


def detect_encoding(data: bytes) -> Encoding:
    """Return the encoding of a file by its byte-order mark, else by all its bytes.
    Raises NotText for binary data.
    """
    for mark, codec in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return Encoding(codec, mark, keeps_stray_bytes=codec == "utf-8")
    if b"\0" in data:
        utf16 = _detect_utf16(data)
        if utf16 is None:
            raise NotText("it is a binary file (it contains NUL bytes)")
        return utf16
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _detect_legacy(data)
    return UTF8


def is_binary(sample: bytes) -> bool:
    """Return whether the first bytes of a file are binary: NUL bytes,
    or many control characters.
    """
    if not sample or any(sample.startswith(mark) for mark, _ in _BYTE_ORDER_MARKS):
        return False
    if b"\0" in sample:
        # Cut to whole characters, which take two or four bytes in UTF-16.
        return _detect_utf16(sample[: len(sample) // 4 * 4]) is None
    controls = sum(sample.count(byte) for byte in range(32) if byte not in _USUAL_CONTROLS)
    return controls > len(sample) * _BINARY_CONTROL_SHARE


def _detect_utf16(data: bytes) -> Encoding | None:
    """Return UTF-16 without a mark, or None. In Latin text every second byte is NUL: the first one,
    or the other.
    """
    sample = data[:_SAMPLE_BYTES]
    even_nuls, odd_nuls = sample[::2].count(0), sample[1::2].count(0)
    enough_nuls = len(sample) // 2 * _UTF16_NUL_SHARE
    codec = None
    if odd_nuls > enough_nuls and not even_nuls:
        codec = "utf-16-le"
    elif even_nuls > enough_nuls and not odd_nuls:
        codec = "utf-16-be"
    if codec is None or len(data) % 2 or len(data) < _MIN_UTF16_BYTES:
        return None
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return None
    return Encoding(codec)


def _detect_legacy(data: bytes) -> Encoding:
    """Return the encoding of a file that is not UTF-8 as a whole: UTF-8 with stray bytes, GBK,
    or Latin.

    Whichever it is, `encode_text` restores every byte.
    """
    has_sample = len(data) > _SAMPLE_BYTES and re.search(_NON_ASCII, data[:_SAMPLE_BYTES])
    sample = data[:_SAMPLE_BYTES] if has_sample else data
    text = sample.decode("utf-8", "surrogateescape")
    stray = sum(1 for char in text if "\udc80" <= char <= "\udcff")
    valid = sum(1 for char in text if char > "\x7f") - stray
    if valid >= stray or valid > _CONVINCING_UTF8_CHARACTERS:
        return Encoding("utf-8", keeps_stray_bytes=True)
    # GBK writes its characters in pairs of such bytes; in Latin text they mostly stand alone.
    runs = [len(run) for run in re.findall(_NON_ASCII, sample)]
    paired = sum(size for size in runs if size % 2 == 0)
    if paired > _GBK_PAIRED_SHARE * sum(runs) and _survives_round_trip(data, "gb18030"):
        return Encoding("gb18030")
    return Encoding("cp1252" if _survives_round_trip(data, "cp1252") else "latin-1")


def _survives_round_trip(data: bytes, codec: str) -> bool:
    try:
        return data.decode(codec).encode(codec) == data
    except UnicodeError:
        return False


def find_main_line_end(content: str) -> str:
    r"""Return the line end that most lines of a text have: `\r\n` or `\n`."""
    pairs = content.count("\r\n")
    return "\r\n" if pairs > content.count("\n") - pairs else "\n"
