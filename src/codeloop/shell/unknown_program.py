"""Reads the words of an unknown program, which has no row: each of them may name a file."""

import re
from collections.abc import Iterator, Sequence

from codeloop.shell.options import Use
from codeloop.shell.word_paths import ANYWHERE

_OUTPUT_OPTIONS = frozenset(
    {
        *(
            "-o",
            "--out",
            "--outfile",
            "--out-file",
            "--output",
            "--output-file",
            "--output-dir",
            "--outdir",
        ),
        *(
            "--out-dir",
            "--outDir",
            "--output-directory",
            "--target",
            "--target-dir",
            "--pack-destination",
            "--dest",
        ),
        *("--destination", "--prefix", "--root", "--artifact-dir", "--install-dir"),
    }
)


def read_words_of_unknown_program(
    words: Sequence[str], output_options: Sequence[str] = ()
) -> Iterator[Use]:
    """Yield a use for each word that may name a file: one to read,
    or after `-o` and its like one to write.

    `output_options`: further ones of this program.
    """
    outputs = _OUTPUT_OPTIONS.union(output_options)
    before = ""
    for word in words:
        option, equals, value = word.partition("=")
        if word.startswith("-") and ANYWHERE not in word:
            if equals:
                yield "p", value.removeprefix("@")
            elif not word.startswith("--") and len(word) > 2:
                yield "p", word[2:]
        else:
            yield "p", word
            parts = re.split("[:=,]", word)
            yield from (
                ("p", part) for part in parts if len(parts) > 1 and is_written_outside(part)
            )
            if word.startswith("@"):
                yield "p", word[1:]
        target = ""
        if equals and option in outputs:
            target = value
        elif before in outputs:
            target = word
        if "/" in target or "." in target or ANYWHERE in target:
            yield "w", target
        before = word


def is_written_outside(text: str) -> bool:
    """Return whether a possible path is written as one outside the current directory."""
    return text in {"..", "~"} or text.startswith(("/", "~/", "../"))
