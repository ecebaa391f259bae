"""The program that extracts the text of a PDF, in a process of its own; started by `pdf.py`.

A hostile PDF can take any time and memory: the caller kills the process at its deadline, the system
at its memory limit. The file is run as a script and imports nothing of the package.
Arguments: the pages, characters and bytes of memory that it may use. Standard input: the PDF.
Standard output: a line `{"pages": n}` or `{"error": "encrypted"}`,
then a line `{"text": ...}` for each page.
"""

import io
import json
import logging
import sys
from contextlib import suppress


def main(pages: int, characters: int, memory: int) -> None:
    """Write the text of at most `pages` pages and `characters` characters.
    `memory`: the process's limit, in bytes.
    """
    import resource

    for kind, limit in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit, limit))
    # pypdf logs a warning for each irregularity of a file.
    logging.disable()
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(sys.stdin.buffer.read()))
    # Many PDFs are encrypted with an empty password, only to declare usage rights.
    if reader.is_encrypted and not reader.decrypt(""):
        _write_line({"error": "encrypted"})
        return
    _write_line({"pages": len(reader.pages)})
    for page in reader.pages[:pages]:
        text = page.extract_text().encode("utf-8", "replace").decode()
        _write_line({"text": text[:characters]})
        characters -= len(text)
        if characters <= 0:
            return


def _write_line(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
