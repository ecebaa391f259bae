"""Readers for programs whose files a row can't describe,
since a word's meaning depends on other words.

A reader returns uses: pairs of a role, whose letters are explained in `options.py`, and a path.
"""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from posixpath import basename, dirname, join, splitext

from codeloop.kit.guarded_paths import SECRET_NAMES
from codeloop.kit.wildcard import ANY_TEXT
from codeloop.shell.arguments import Arguments
from codeloop.shell.options import Use
from codeloop.shell.program_row import ProgramRow
from codeloop.shell.unknown_program import read_words_of_unknown_program
from codeloop.shell.word_paths import ANYWHERE

WordReader = Callable[[Sequence[str], ProgramRow], list[Use]]
"""Finds the uses in the words behind a program's name, in place of its row."""
# Letters of tar's options that take a value.
_TAR_VALUE_LETTERS = "fCTXIgbKNVLFH"
# Those with which an attached value certainly begins: `-L` and `-H` of BSD and macOS have none.
_TAR_ATTACHED_VALUE = r"(?s)(?<=[fCTXIgbKNVF]).*"
# An option before the folders of find; the second row: those of BSD and macOS,
# where `-f` stands before a folder.
_FIND_OPTION = (
    r"--?|-[HLP]+|-[DO].*"
    r"|-[EHLPXdfsx]+"
)
_FIND_READING_PREDICATE = r"-(files0-from|newer\w*|samefile|anewer|cnewer)"
_FIND_WRITING_PREDICATE = r"-(fprint0?|fprintf|fls)"
# A URL without its query and fragment.
_URL_NAME = r"(?:[a-z]+://)?[^?#]*"


def read_tar(words: Sequence[str], program: ProgramRow) -> list[Use]:
    """Return the uses of `tar`: the archive, what is packed into it,
    or the folders that it unpacks into.
    """
    arguments = program.read_arguments(_add_dashes(words))
    options = [word for word in _add_dashes(words) if word.startswith("-")]
    # Of `-C/usr` only the `C` is a letter.
    letters = "".join(
        re.sub(_TAR_ATTACHED_VALUE, "", word[1:]) for word in options if not word.startswith("--")
    )
    long_options = " ".join(word.partition("=")[0] for word in options if word.startswith("--"))
    changes = bool(
        re.search(r"[cruA]", letters) or re.search(r"--(cr|app|upd|conc|cat|dele)", long_options)
    )
    extracts = bool("x" in letters or re.search(r"--(ext|get)", long_options)) and not (
        "O" in letters or "--to-std" in long_options
    )
    folders = [path for role, path in arguments.option_uses if role == "C"]
    uses: list[Use] = [("n", folder) for folder in folders]
    for role, path in arguments.option_uses:
        if role == "f" and not re.match(r"[\w.@-]+:", path):
            uses += [("w", path)] if changes else []
            uses += [("r", path)] if not changes or "c" not in letters else []
        elif role != "C":
            uses.append((role, path))
    if changes:
        role = "M" if "--remove" in long_options else "R"
        uses += [
            (role, join(folder, text)) for text in arguments.operands for folder in folders or [""]
        ]
    elif extracts:
        uses += [("X", folder) for folder in folders or ["."]]
    return uses


def _add_dashes(words: Sequence[str]) -> list[str]:
    """Return tar's words with bundled letters as options: `xf a.tar` as `-x -f a.tar`."""
    if not words or words[0].startswith(("-", ANYWHERE)):
        return list(words)
    first, rest = list[str](), list(words[1:])
    # The values of bundled letters follow in the order of the letters: `cfC a.tar folder`.
    for letter in words[0]:
        first.append("-" + letter)
        if letter in _TAR_VALUE_LETTERS and rest:
            first.append(rest.pop(0))
    return first + rest


def read_find(words: Sequence[str], _: ProgramRow) -> list[Use]:
    """Return the uses of `find`: the folders that it walks, and the files of its predicates."""
    start = next(
        (index for index, word in enumerate(words) if not re.fullmatch(_FIND_OPTION, word)),
        len(words),
    )
    end = next(
        (index for index in range(start, len(words)) if re.match(r"[-(!,]", words[index])),
        len(words),
    )
    roots = list(words[start:end]) or ["."]
    uses: list[Use] = [("n", root) for root in roots]
    for option, value in zip(words[end:], words[end + 1 :], strict=False):
        if re.fullmatch(_FIND_WRITING_PREDICATE, option):
            uses.append(("w", value))
        elif re.fullmatch(_FIND_READING_PREDICATE, option):
            uses.append(("r" if option == "-files0-from" else "n", value))
    if "-delete" in words:
        uses += [("D", root) for root in roots]
    if any(word == ANYWHERE for word in words[start:]):
        uses.append(("w", ANYWHERE))
    return uses


def read_dd(words: Sequence[str], _: ProgramRow) -> list[Use]:
    """Return the uses of `dd`: the values of `if=` and `of=`."""
    roles = {"if": "r", "of": "w"}
    uses: list[Use] = []
    for word in words:
        name, equals, path = word.partition("=")
        if equals and name in roles:
            uses.append((roles[name], path))
        elif ANYWHERE in name:
            uses.append(("b", ANYWHERE))
    return uses


def find_copies(arguments: Arguments) -> list[Use]:
    """Return the paths written when the last operand, or the target of an option, is a folder."""
    paths = list(arguments.operands)
    folders = [path for role, path in arguments.option_uses if role == "t"]
    if not folders and len(paths) > 1 and "last" not in arguments.changes:
        folders = [paths.pop()]
    if not folders and "last" in arguments.changes:
        return [("w", path) for path in paths]
    role = "W" if "deep" in arguments.changes or arguments.row.first_role == "M" else "w"
    uses: list[Use] = []
    for path in paths:
        name = basename(path.rstrip("/")) or "."
        uses += [
            (role if name not in {".", ".."} else "W", join(folder, name)) for folder in folders
        ]
        uses += [("W", folder) for folder in folders if role == "W"]
    return uses


def find_link(arguments: Arguments) -> list[Use]:
    """Return the uses of `ln`: the link is written; its target, relative to the link's folder,
    gets another name.
    """
    *targets, link = arguments.operands or [""]
    folders = [path for role, path in arguments.option_uses if role == "t"]
    if folders:
        targets.append(link)
    elif not targets:
        # With one operand the link is made in the current folder.
        return [("w", basename(link.rstrip("/"))), ("l", link)]
    uses = find_copies(arguments)
    for path in targets:
        uses += [(role, join(dirname(link), path)) for role in "nr" if not folders]
        # The target of a hard link is relative to the current folder, and that of another one to
        # the link's, which the last operand may be.
        uses += [("l", join(folder, path)) for folder in folders or ("", dirname(link), link)]
    return uses


def find_archives(arguments: Arguments) -> list[Use]:
    """Return the files that a compressor writes in place of its operands."""
    if "see" in arguments.changes:
        return []
    suffixes = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".lzma", ".Z")
    paths = arguments.operands
    archives = [
        ("w", path + suffix) for path in paths for suffix in suffixes if not path.endswith(suffix)
    ]
    folders_written = (
        [("X", dirname(path) or ".") for path in paths] if "sent" in arguments.changes else []
    )
    return [
        *archives,
        *(("w", splitext(path)[0]) for path in paths if path.endswith(suffixes)),
        *folders_written,
    ]


def find_unpacked_members(arguments: Arguments) -> list[Use]:
    """Return the folder into which `ar` unpacks."""
    # `ar x lib.a`: its options are the first operand.
    return [("X", ".")] if arguments.operands and "x" in arguments.operands[0] else []


def find_zip_archive(arguments: Arguments) -> list[Use]:
    """Return the archive that `zip` writes, under its full name."""
    # `zip` adds the suffix to a name without one, and `unzip` tries it.
    return [("w", f"{text}.zip") for text in arguments.operands[:1] if "." not in basename(text)]


def find_unzip_archive(arguments: Arguments) -> list[Use]:
    """Return the archive that `unzip` reads, under its full name."""
    return [("r", f"{text}.zip") for text in arguments.operands[:1] if "." not in basename(text)]


def find_split_pieces(arguments: Arguments) -> list[Use]:
    """Return the files that `split` writes."""
    # By default it writes `xaa`, `xab` and so on; `csplit` writes `xx00`.
    prefix = arguments.operands[1] if len(arguments.operands) > 1 else "x"
    return [("w", prefix + ANY_TEXT)]


def find_csplit_pieces(arguments: Arguments) -> list[Use]:
    """Return the files that `csplit` writes."""
    prefix = next(
        (value for option, value in arguments.option_values if option in {"-f", "--prefix"}), "xx"
    )
    return [("w", prefix + ANY_TEXT)]


# A name for each pattern of secret files.
_SECRET_SAMPLES = tuple(name.replace("*", "x") for name in SECRET_NAMES)


def find_secret_globs(arguments: Arguments) -> list[Use]:
    """Return the folders in which rg reads hidden files with secrets,
    because a glob matches their names.
    """
    globs = [
        value for option, value in arguments.option_values if option in {"-g", "--glob", "--iglob"}
    ]
    is_wide = any(
        fnmatchcase(name, basename(glob))
        for glob in globs
        if glob[:1] != "!"
        for name in _SECRET_SAMPLES
    )
    return [("R", text) for role, text in arguments.uses if role == "V"] if is_wide else []


def find_jq_modules(arguments: Arguments) -> list[Use]:
    """Return an unknown path if a jq program loads modules: its search path
    decides where these are.
    """
    loads = any(
        re.search(r"(?<![.\w])(?:import|include)\b", text) for text in arguments.operands[:1]
    )
    return [("r", ANYWHERE)] if loads else []


def _list_downloads(arguments: Arguments) -> list[Use]:
    """Return the files that a download writes when each is named after its URL."""
    names = [
        basename(match[0].rstrip("/"))
        for text in arguments.operands
        if (match := re.match(_URL_NAME, text))
    ]
    folders = [path for role, path in arguments.option_uses if role == "W"] or ["."]
    return [("w", join(folder, name)) for folder in folders for name in names if name]


def find_downloads(arguments: Arguments) -> list[Use]:
    """Return the files that `curl` names after their URLs or as the server says."""
    uses = _list_downloads(arguments) if "remote" in arguments.changes else []
    return [*uses, ("X", ".")] if "sent" in arguments.changes else uses


def find_wget_downloads(arguments: Arguments) -> list[Use]:
    """Return the files that `wget` names after their URLs or as the server says."""
    is_named = any(option in {"-O", "--output-document"} for option, _ in arguments.option_values)
    uses = [] if is_named else _list_downloads(arguments)
    folders = [path for role, path in arguments.option_uses if role == "W"] or ["."]
    return [*uses, *(("X", folder) for folder in folders)] if "sent" in arguments.changes else uses


def find_received_folder(arguments: Arguments) -> list[Use]:
    """Return the local folder into which files are copied from another machine."""
    *sources, target = arguments.operands or [""]
    return (
        [("X", target)] if any(re.match(r"[\w.@\[\]-]+:|rsync:", text) for text in sources) else []
    )


def make_archiver_reader(unpacking: str, *, names_folder: bool = False) -> WordReader:
    """Return the reader of a program that unpacks if its words match `unpacking`.

    It unpacks into the folder that its last word (`names_folder`) or an option names,
    or else into the current one.
    """

    def read_words(words: Sequence[str], _: ProgramRow) -> list[Use]:
        uses = list(read_words_of_unknown_program(words))
        if re.match(unpacking, " ".join(words)):
            folders = [word for option, word in pairwise(words) if option in {"-C", "--dir"}]
            uses += [("X", folder) for folder in (words[-1:] if names_folder else folders or ["."])]
        return uses

    return read_words


def make_settings_reader(pattern: str, file: str, output_options: Sequence[str] = ()) -> WordReader:
    """Return the reader of a program that writes a file of settings if its
    words match a pattern.
    """

    def read_words(words: Sequence[str], _: ProgramRow) -> list[Use]:
        plain = " ".join(word for word in words if not re.match(r"--|-g$", word))
        uses: list[Use] = [("w", file)] if re.match(pattern, plain) else []
        return [*uses, *read_words_of_unknown_program(words, output_options)]

    return read_words


def read_cpio(words: Sequence[str], _: ProgramRow) -> list[Use]:
    """Return the uses of `cpio`: files that it names, and the current folder."""
    unpacks = any(re.match(r"-\w*i|--ext", word) for word in words)
    return [
        ("X" if unpacks else "W", "."),
        *(("b", word.rpartition("=")[2]) for word in words if not re.match(r"-\w*$", word)),
    ]


def read_7z(words: Sequence[str], _: ProgramRow) -> list[Use]:
    """Return the uses of `7z`: the archive, and what is packed or the folder
    that it unpacks into.
    """
    out = [word[2:] for word in words if word.startswith("-o")]
    command, *files = [word for word in words if not word.startswith("-")] or [""]
    if command.lower() in {"x", "e"}:
        return [*(("r", file) for file in files[:1]), *(("X", folder) for folder in out or ["."])]
    return [*(("b", file) for file in files[:1]), *(("R", file) for file in files[1:])]
