"""The program that reads a PDF: the file on standard input, JSON lines on standard output.

It is a separate process because a hostile PDF can take any time and memory: the caller kills it at its deadline, the
system at its memory limit. It imports nothing of ours and runs as a file, with the pages, characters and bytes of
memory that it may use as its arguments.
Lines: `{"pages": n}` or `{"error": "encrypted"}` first, then `{"text": ...}` a page.
"""

import io
import json
import logging
import sys
from contextlib import suppress


def main(pages: int, characters: int, memory: int) -> None:
    """Read and write; `characters` and `pages` end the work, `memory` (bytes) the process."""
    import resource

    for limit, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))
    logging.disable()
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(sys.stdin.buffer.read()))
    # Many PDFs are encrypted with an empty password, only to declare usage rights.
    if reader.is_encrypted and not reader.decrypt(""):
        _say({"error": "encrypted"})
        return
    _say({"pages": len(reader.pages)})
    for page in reader.pages[:pages]:
        text = page.extract_text().encode("utf-8", "replace").decode()
        _say({"text": text[:characters]})
        characters -= len(text)
        if characters <= 0:
            return


def _say(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
