"""Prepares images for model services: intact, upright, and within the services' size limits."""

import struct
import zlib
from io import BytesIO
from typing import TYPE_CHECKING

from msgspec import Struct

from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import IMAGE_DECODE, READ_IMAGE, READ_PIXELS
from codeloop.workspace.files.media_type import PixelSize, inspect_media

if TYPE_CHECKING:
    from PIL.Image import Image

_ORIENTATION_TAG = 0x0112
# Tried in this order until the picture is small enough.
_QUALITY_STEPS = (85, 70, 50)
# The kinds of pixels that a format can store, by Pillow's names.
_SUPPORTED_MODES = {"JPEG": ("RGB", "L"), "PNG": ("RGB", "RGBA", "L", "LA", "P", "1")}
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Bytes of a PNG chunk without its content: length, kind, checksum.
_CHUNK_OVERHEAD = 12
# A bit in the first letter of a chunk's kind: the picture can be shown without this chunk.
_OPTIONAL_BIT = 0x20
_TRANSPARENCY_CHUNK = b"tRNS"


class ImageRefused(CodeloopError):
    """The picture can't be shown: it is broken or would unpack to too much.
    The text says which, without the name.
    """


class FittedImage(Struct, frozen=True):
    """A picture that can be sent. `size` in pixels;
    `original`: its size before, None when it is unchanged.
    """

    mime: str
    data: bytes
    size: PixelSize
    original: PixelSize | None = None

    @property
    def note(self) -> str:
        """Its size and how it was changed: `800 x 600 pixels, scaled down from 4000 x 3000`."""
        width, height = self.size
        text = f"{width} x {height} pixels"
        if self.original is None:
            return text
        before = f"{self.original[0]} x {self.original[1]}"
        is_same_size = self.size in {self.original, self.original[::-1]}  # turned by its EXIF data
        return f"{text}, re-encoded" if is_same_size else f"{text}, scaled down from {before}"


def fit_image(
    data: bytes, max_side: int = READ_PIXELS.value, max_bytes: int = READ_IMAGE.value
) -> FittedImage:
    """Fit a PNG, JPEG, GIF or WebP into `max_side` pixels a side and `max_bytes`,
    rotated as its EXIF data says.

    An image that fits is returned unchanged. Otherwise the format is kept where possible: a GIF
    becomes a PNG of its first frame, and one that is still too large becomes a JPEG. Takes up to a
    second; raises ImageRefused.
    """
    media = inspect_media(data)
    if media is None or not media.is_image:
        raise ImageRefused("it is not a PNG, JPEG, GIF or WebP image")
    if media.size is None:
        raise ImageRefused(f"it begins like {media.mime}, but is broken")
    _check_size(media.size)
    try:
        image, original = _decode(data, media.mime, max_side)
    except ImageRefused:
        # A broken optional chunk makes Pillow refuse a PNG that viewers show.
        repaired = _drop_optional_chunks(data) if media.mime == "image/png" else None
        if repaired is None or repaired == data:
            raise
        return fit_image(repaired, max_side, max_bytes)
    is_upright = _read_orientation(image) in {0, 1}
    if is_upright and max(original) <= max_side and len(data) <= max_bytes:
        return FittedImage(media.mime, data, original)
    try:
        image = _to_eight_bits(image)
        image.thumbnail((max_side, max_side), reducing_gap=2.0)
        if not is_upright:
            from PIL import ImageOps

            image = ImageOps.exif_transpose(image)
        return _fit_bytes(image, original, media.mime, max_bytes)
    # Pillow can't do every operation with every kind of pixels.
    except (OSError, ValueError, KeyError, MemoryError) as error:
        raise ImageRefused(
            f"its kind of pixels ({image.mode}) can't be scaled: {error}. Convert it first"
        ) from error


def _read_orientation(image: "Image") -> int:
    """Return a picture's EXIF orientation: 1 to 8, or 0, which some programs write for "unknown".

    1 (upright) when the EXIF data is broken, since it is only metadata.
    """
    try:
        return int(image.getexif().get(_ORIENTATION_TAG, 1))
    except (OSError, ValueError, SyntaxError, LookupError, TypeError, OverflowError, struct.error):
        return 1


def _to_eight_bits(image: "Image") -> "Image":
    """Convert a single-channel picture of 16 bits or more to 8-bit grey;
    return any other unchanged.
    """
    if image.mode[:1] not in {"I", "F"}:
        return image
    from PIL import Image

    # Pillow's own conversion cuts values above 255.
    # Here the high byte of each big-endian value is taken.
    high_bytes = image.convert("I").tobytes("raw", "I;16B")[::2]
    return Image.frombytes("L", image.size, high_bytes)


def _check_size(size: PixelSize) -> None:
    if size[0] * size[1] > IMAGE_DECODE.value:
        raise ImageRefused(
            f"it is {size[0]} x {size[1]} pixels, and at most {IMAGE_DECODE.value:,} in all are unpacked. "
            "Scale it down with a command, then use the result"
        )


def _decode(data: bytes, mime: str, min_side: int) -> tuple["Image", PixelSize]:
    """Decode the whole picture, so that a broken one is found here, not by the service.
    Return it with its full size.

    A JPEG is decoded at half, a quarter or an eighth of its size when that is still
    at least `min_side` a side.
    """
    from PIL import Image

    image_format = mime.partition("/")[2].upper()
    try:
        image = Image.open(BytesIO(data), formats=(image_format,))
        _check_size(image.size)
        size = image.size
        image.draft(None, (min_side, min_side))
        image.load()
    except ImageRefused:
        raise
    # Pillow's decoders raise all of these for broken data.
    except (
        OSError,
        ValueError,
        SyntaxError,
        EOFError,
        LookupError,
        TypeError,
        OverflowError,
        MemoryError,
        struct.error,
        Image.DecompressionBombError,
    ) as error:
        raise ImageRefused(
            f"it begins like {mime}, but is broken ({error or type(error).__name__})"
        ) from error
    return image, size


def _fit_bytes(image: "Image", original: PixelSize, mime: str, max_bytes: int) -> FittedImage:
    """Encode a picture in at most `max_bytes`: with less quality, then as JPEG,
    then at half the size, and so on.
    """
    formats = {"image/jpeg": ("JPEG",), "image/webp": ("WEBP", "JPEG")}.get(mime, ("PNG", "JPEG"))
    while True:
        for image_format in formats:
            # PNG loses nothing, so it has no quality.
            for quality in _QUALITY_STEPS if image_format != "PNG" else (0,):
                data = _encode(image, image_format, quality)
                if len(data) <= max_bytes:
                    return FittedImage(f"image/{image_format.lower()}", data, image.size, original)
        if min(image.size) < 2:
            raise ImageRefused(f"it can't be brought below {max_bytes:,} bytes")
        image.thumbnail((max(1, image.width // 2), max(1, image.height // 2)))


def _encode(image: "Image", image_format: str, quality: int) -> bytes:
    has_alpha = "A" in image.getbands() or "transparency" in image.info
    if image_format == "JPEG" and has_alpha:
        image = _paste_on_white(image)
    elif image_format in _SUPPORTED_MODES and image.mode not in _SUPPORTED_MODES[image_format]:
        image = image.convert("RGBA" if has_alpha else "RGB")
    out = BytesIO()
    options = {"quality": quality} if quality else {"optimize": False}
    image.save(out, image_format, exif=b"", **options)
    return out.getvalue()


def _paste_on_white(image: "Image") -> "Image":
    from PIL import Image

    layered = image.convert("RGBA")
    background = Image.new("RGB", image.size, "white")
    background.paste(layered, mask=layered.getchannel("A"))
    return background


def _drop_optional_chunks(data: bytes) -> bytes | None:
    """Return a PNG without its optional chunks; its transparency stays if it is valid.

    None: it is not a PNG, or not made of whole chunks.
    """
    if not data.startswith(_PNG_SIGNATURE):
        return None
    chunks = [_PNG_SIGNATURE]
    start = len(_PNG_SIGNATURE)
    # A chunk: the length of its content, its kind, the content, and a checksum of kind and content.
    while start + _CHUNK_OVERHEAD <= len(data):
        (length,) = struct.unpack_from(">I", data, start)
        end = start + _CHUNK_OVERHEAD + length
        if end > len(data):
            return None
        kind, checked_bytes = data[start + 4 : start + 8], data[start + 4 : end - 4]
        is_sound = struct.unpack_from(">I", data, end - 4)[0] == zlib.crc32(checked_bytes)
        if not kind[0] & _OPTIONAL_BIT or (kind == _TRANSPARENCY_CHUNK and is_sound):
            chunks.append(data[start:end])
        start = end
        if kind == b"IEND":
            return b"".join(chunks)
    return None
