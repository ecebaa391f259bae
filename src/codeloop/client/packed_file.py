"""Packs files of this machine into prompts for a server, which may run on another machine."""

import base64
import mimetypes
from pathlib import Path

from codeloop.kit.paths import expand_user_path
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.errors import UsageProblem
from codeloop.schema.limits import CLIENT_FILE


def pack_file(path: Path) -> FilePartInput:
    """Return a file as a part of a prompt, with its content as a `data:` URL. Raises UsageProblem.

    A file that is neither an image nor a PDF is sent as plain text, whatever its type.
    """
    try:
        with expand_user_path(path).open("rb") as file:
            # One byte more than the limit shows that a file is too large,
            # without reading all of it.
            data = file.read(CLIENT_FILE.value + 1)
    except OSError as error:
        raise UsageProblem(
            f"The file {path} can't be read: {error.strerror}. Correct the name."
        ) from None
    if len(data) > CLIENT_FILE.value:
        raise UsageProblem(
            f"The file {path} is larger than {CLIENT_FILE.value} bytes. Choose a smaller one."
        )
    mime = mimetypes.guess_type(path.name)[0] or "text/plain"
    if not mime.startswith("image/") and mime != "application/pdf":
        # No text holds a zero byte; git tells binary files by the same sign.
        if b"\0" in data:
            raise UsageProblem(f"The file {path} is not text, an image or a PDF.")
        mime = "text/plain"
    return FilePartInput(
        mime=mime, url=f"data:{mime};base64,{base64.b64encode(data).decode()}", filename=path.name
    )
