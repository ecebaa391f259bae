"""Readers for programs whose files a row of `path_rows` can't describe, since a word's meaning depends on other words.

A reader returns uses: pairs of a role, whose letters are explained in `path_rows`, and a path.
"""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from posixpath import basename, dirname, join, splitext

from codeloop.kit.guarded_paths import SECRET_NAMES
from codeloop.kit.wildcard import ANY_TEXT
from codeloop.shell.touches.arguments import Arguments, Use, parse_row
from codeloop.shell.touches.git_reader import read_git
from codeloop.shell.touches.unknown_program import read_words_of_unknown_program
from codeloop.shell.touches.word_paths import ANYWHERE

# `A` (members) and `C` (the folder) are no roles of `path_rows`, and `f` is the archive here: `_read_tar` reads them.
_TAR_ROW = """A -f=f --file=f -C=C --directory=C -T=r --files-from=r -X=r --exclude-from=r -I=- -g=b
--listed-incremental=b --use-compress-program=-
--index-file=w -b=- -K=- -N=- -V=- -L=- -F=- -H=- --exclude=- --transform=- --xform=-
--strip-components=-
--owner=- --group=- --mode=- --mtime=- --newer=- --format=- --volno-file=b --one-top-level?X --to-command=- --sort=-
--checkpoint-action=- --rsh-command=- --suffix=- --starting-file=- --label=- --record-size=- --remove-files!deep"""
# Letters of tar's options that take a value.
_TAR_VALUE_LETTERS = "fCTXIgbKNVLFH"
# Those with which an attached value certainly begins: `-L` and `-H` of BSD and macOS have none.
_TAR_ATTACHED_VALUE = re.compile(r"(?s)(?<=[fCTXIgbKNVF]).*")
# An option before the folders of find; the second row: those of BSD and macOS, where `-f` stands before a folder.
_FIND_OPTION = re.compile(
    r"--?|-[HLP]+|-[DO].*"
    r"|-[EHLPXdfsx]+"
)
_FIND_READING_PREDICATE = re.compile(r"-(files0-from|newer\w*|samefile|anewer|cnewer)")
_FIND_WRITING_PREDICATE = re.compile(r"-(fprint0?|fprintf|fls)")
# A file that a sed script reads or writes: one of `rRwW`, and the path. Before it stands the start of a command, the
# end of an address (`/text/I`, `\|text|`) or a whole `s` command; any character but a backslash may be a delimiter.
# DELIMITERS stands for those of `_SED_DELIMITERS` that the script uses: `/name: w/p` writes no file.
_SED_FILE = (
    r"(?:^|[;{}\n\d$/!,DELIMITERS][IM]*"
    r"|\\([^\s\\])(?:\\.|(?!\1)[^\\])*\1[IM]*"
    r"|\bs([^\s\\])(?:\\.|(?!\2)[^\\])*\2(?:\\.|(?!\2)[^\\])*\2[gpiIemM\d]*"
    r")\s*([rRwW])\s*([^\s;}][^\n]*)"
)
_SED_DELIMITERS = "|#@%:"
# A longer script counts as one that may read and write any file.
_MAX_SCRIPT_CHARS = 2_000
# Without one of these, the first operand of awk is its script.
_AWK_SCRIPT_OPTIONS = frozenset({"-e", "--source", "-f", "--file", "-E", "--exec"})
# A part of an awk statement; a string may have any character.
_AWK_EXPRESSION = r'(?:"(?:\\.|[^"\\\n])*"|[^;}\n"])*?'
# A regular expression with a quote, which begins no string. A slash behind an operand divides.
_AWK_QUOTING_PATTERN = re.compile(r"(?:(?<=[(,~!&|?])|(?<=print))\s*+/(?:\\.|[^/\\\n])*+/")
# The file that an awk script prints into: `print x > FILE`, a string or an expression.
_AWK_OUTPUT = re.compile(rf"print(?:f)?\b{_AWK_EXPRESSION}>{{1,2}}\s*(\"[^\"]*\"|[^;}}\n]+)")
# The file that an awk script reads: `getline x < FILE`.
_AWK_INPUT = re.compile(rf"getline\b{_AWK_EXPRESSION}<\s*(\"[^\"]*\"|[^;}}\n)]+)")
# A URL without its query and fragment.
_URL_NAME = re.compile(r"(?:[a-z]+://)?[^?#]*")


def _read_tar(words: Sequence[str]) -> list[Use]:
    arguments = Arguments(parse_row(_TAR_ROW), _add_dashes(words))
    options = [word for word in _add_dashes(words) if word.startswith("-")]
    # Of `-C/usr` only the `C` is a letter.
    letters = "".join(_TAR_ATTACHED_VALUE.sub("", word[1:]) for word in options if not word.startswith("--"))
    long_options = " ".join(word.partition("=")[0] for word in options if word.startswith("--"))
    changes = bool(re.search(r"[cruA]", letters) or re.search(r"--(cr|app|upd|conc|cat|dele)", long_options))
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
        uses += [(role, join(folder, text)) for text in arguments.operands for folder in folders or [""]]
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


def _read_find(words: Sequence[str]) -> list[Use]:
    start = next((index for index, word in enumerate(words) if not _FIND_OPTION.fullmatch(word)), len(words))
    end = next((index for index in range(start, len(words)) if re.match(r"[-(!,]", words[index])), len(words))
    roots = list(words[start:end]) or ["."]
    uses: list[Use] = [("n", root) for root in roots]
    for option, value in zip(words[end:], words[end + 1 :], strict=False):
        if _FIND_WRITING_PREDICATE.fullmatch(option):
            uses.append(("w", value))
        elif _FIND_READING_PREDICATE.fullmatch(option):
            uses.append(("r" if option == "-files0-from" else "n", value))
    if "-delete" in words:
        uses += [("D", root) for root in roots]
    if any(word == ANYWHERE for word in words[start:]):
        uses.append(("w", ANYWHERE))
    return uses


def _read_dd(words: Sequence[str]) -> list[Use]:
    roles = {"if": "r", "of": "w"}
    uses: list[Use] = []
    for word in words:
        name, equals, path = word.partition("=")
        if equals and name in roles:
            uses.append((roles[name], path))
        elif ANYWHERE in name:
            uses.append(("b", ANYWHERE))
    return uses


def _read_copy(arguments: Arguments) -> list[Use]:
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
        uses += [(role if name not in {".", ".."} else "W", join(folder, name)) for folder in folders]
        uses += [("W", folder) for folder in folders if role == "W"]
    return uses


def _read_ln(arguments: Arguments) -> list[Use]:
    """Return the uses of `ln`: the link is written; its target, relative to the link's folder, may be read later."""
    uses = _read_copy(arguments)
    paths = arguments.operands
    # With one operand the link is made in the current folder.
    if len(paths) == 1:
        return [("w", basename(paths[0].rstrip("/")))]
    uses += [("n", join(dirname(paths[-1]), path)) for path in paths[:-1]]
    uses += [("r", join(dirname(paths[-1]), path)) for path in paths[:-1]]
    return uses


def _read_gzip(arguments: Arguments) -> list[Use]:
    if "see" in arguments.changes:
        return []
    suffixes = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".lzma", ".Z")
    paths = arguments.operands
    archives = [("w", path + suffix) for path in paths for suffix in suffixes if not path.endswith(suffix)]
    folders_written = [("X", dirname(path) or ".") for path in paths] if "sent" in arguments.changes else []
    return [*archives, *(("w", splitext(path)[0]) for path in paths if path.endswith(suffixes)), *folders_written]


def _read_ar(arguments: Arguments) -> list[Use]:
    # `ar x lib.a`: its options are the first operand.
    return [("X", ".")] if arguments.operands and "x" in arguments.operands[0] else []


def _read_zip(arguments: Arguments) -> list[Use]:
    # `zip` adds the suffix to a name without one, and `unzip` tries it.
    return [("w", f"{text}.zip") for text in arguments.operands[:1] if "." not in basename(text)]


def _read_unzip(arguments: Arguments) -> list[Use]:
    return [("r", f"{text}.zip") for text in arguments.operands[:1] if "." not in basename(text)]


def _read_split(arguments: Arguments) -> list[Use]:
    # By default it writes `xaa`, `xab` and so on; `csplit` writes `xx00`.
    prefix = arguments.operands[1] if len(arguments.operands) > 1 else "x"
    return [("w", prefix + ANY_TEXT)]


def _read_csplit(arguments: Arguments) -> list[Use]:
    prefix = next((value for option, value in arguments.option_values if option in {"-f", "--prefix"}), "xx")
    return [("w", prefix + ANY_TEXT)]


def _read_scripts(arguments: Arguments, options: Sequence[str], read_script: Callable[[str], list[Use]]) -> list[Use]:
    """Return the uses of the scripts that options give, or of the first operand, as `read_script` finds them."""
    scripts = [value for option, value in arguments.option_values if option in options]
    scripts = scripts or arguments.operands[:1]
    anything: list[Use] = [("b", ANYWHERE)]
    return [use for script in scripts for use in (anything if len(script) > _MAX_SCRIPT_CHARS else read_script(script))]


def _read_sed(arguments: Arguments) -> list[Use]:
    return _read_scripts(arguments, ("-e", "--expression"), _read_sed_script) + _list_backups(arguments)


def _read_sed_script(script: str) -> list[Use]:
    delimiters = "".join(each for each in _SED_DELIMITERS if f"s{each}" in script or f"\\{each}" in script)
    files = re.findall(_SED_FILE.replace("DELIMITERS", delimiters), script)
    uses: list[Use] = [("r" if letter in "rR" else "w", path) for *_, letter, path in files]
    return [*uses, ("w", ANYWHERE)] if ANYWHERE in script else uses


# A name for each pattern of secret files.
_SECRET_SAMPLES = tuple(name.replace("*", "x") for name in SECRET_NAMES)


def _read_rg(arguments: Arguments) -> list[Use]:
    """Return the folders in which rg reads hidden files with secrets, because a glob matches their names."""
    globs = [value for option, value in arguments.option_values if option in {"-g", "--glob", "--iglob"}]
    is_wide = any(fnmatchcase(name, basename(glob)) for glob in globs if glob[:1] != "!" for name in _SECRET_SAMPLES)
    return [("R", text) for role, text in arguments.uses if role == "V"] if is_wide else []


def _read_jq(arguments: Arguments) -> list[Use]:
    """Return an unknown path if a jq program loads modules: its search path decides where these are."""
    loads = any(re.search(r"(?<![.\w])(?:import|include)\b", text) for text in arguments.operands[:1])
    return [("r", ANYWHERE)] if loads else []


def _list_backups(arguments: Arguments) -> list[Use]:
    """Return the backup files that `-i.bak` writes."""
    endings = [value for option, value in arguments.option_values if option in {"-i", "--in-place"} and value]
    return [("w", text + ending) for ending in endings for text in arguments.operands]


def _read_awk(arguments: Arguments) -> list[Use]:
    uses = _read_scripts(arguments, ("-e", "--source"), _read_awk_script)
    if any(option in {"-i", "--include"} and value == "inplace" for option, value in arguments.option_values):
        has_script = not any(option in _AWK_SCRIPT_OPTIONS for option, _ in arguments.option_values)
        uses += [("b", text) for text in arguments.operands[has_script:]]
    return uses


def _read_awk_script(script: str) -> list[Use]:
    uses: list[Use] = [
        (role, target[1:-1] if target[0] == '"' else ANYWHERE)
        for role, pattern in (("w", _AWK_OUTPUT), ("r", _AWK_INPUT))
        # Both ways: what looks like a regular expression may stand in a string.
        for text in dict.fromkeys((script, _AWK_QUOTING_PATTERN.sub("", script)))
        for target in pattern.findall(text)
    ]
    return [*uses, ("b", ANYWHERE)] if ANYWHERE in script else uses


def _list_downloads(arguments: Arguments) -> list[Use]:
    """Return the files that a download writes when each is named after its URL."""
    names = [basename(match[0].rstrip("/")) for text in arguments.operands if (match := _URL_NAME.match(text))]
    folders = [path for role, path in arguments.option_uses if role == "W"] or ["."]
    return [("w", join(folder, name)) for folder in folders for name in names if name]


def _read_curl(arguments: Arguments) -> list[Use]:
    uses = _list_downloads(arguments) if "remote" in arguments.changes else []
    return [*uses, ("X", ".")] if "sent" in arguments.changes else uses


def _read_wget(arguments: Arguments) -> list[Use]:
    is_named = any(option in {"-O", "--output-document"} for option, _ in arguments.option_values)
    uses = [] if is_named else _list_downloads(arguments)
    folders = [path for role, path in arguments.option_uses if role == "W"] or ["."]
    return [*uses, *(("X", folder) for folder in folders)] if "sent" in arguments.changes else uses


def _read_remote_copy(arguments: Arguments) -> list[Use]:
    """Return the local folder into which files are copied from another machine."""
    *sources, target = arguments.operands or [""]
    return [("X", target)] if any(re.match(r"[\w.@\[\]-]+:|rsync:", text) for text in sources) else []


def _make_archiver_reader(unpacking: str, *, names_folder: bool = False) -> Callable[[Sequence[str]], list[Use]]:
    """Return the reader of a program that unpacks if its words match `unpacking`.

    It unpacks into the folder that its last word (`names_folder`) or an option names, or else into the current one.
    """

    def read_words(words: Sequence[str]) -> list[Use]:
        uses = list(read_words_of_unknown_program(words))
        if re.match(unpacking, " ".join(words)):
            folders = [word for option, word in pairwise(words) if option in {"-C", "--dir"}]
            uses += [("X", folder) for folder in (words[-1:] if names_folder else folders or ["."])]
        return uses

    return read_words


# By program: a pattern of the commands that write its configuration, and that file.
_CONFIGURATION_FILES = {
    "go": (r"env -(w|u)\b", "~/.config/go/env"),
    "npm": (r"(config|c) (set|delete|rm|edit)\b|set\b", "~/.npmrc"),
    "pip": (r"config (set|unset|edit)\b", "~/.config/pip/pip.conf"),
    "pnpm": (r"(config|c) (set|delete|rm)\b|set\b", "~/.config/pnpm/rc"),
    "poetry": (r"config \S+ \S", "~/.config/pypoetry/config.toml"),
    "yarn": (r"config (set|delete|unset)\b", "~/.yarnrc"),
}


def _make_settings_reader(name: str) -> Callable[[Sequence[str]], list[Use]]:
    pattern, file = _CONFIGURATION_FILES[name]

    def read_words(words: Sequence[str]) -> list[Use]:
        plain = " ".join(word for word in words if not re.match(r"--|-g$", word))
        uses: list[Use] = [("w", file)] if re.match(pattern, plain) else []
        return [*uses, *read_words_of_unknown_program(words)]

    return read_words


def _read_cpio(words: Sequence[str]) -> list[Use]:
    unpacks = any(re.match(r"-\w*i|--ext", word) for word in words)
    return [
        ("X" if unpacks else "W", "."),
        *(("b", word.rpartition("=")[2]) for word in words if not re.match(r"-\w*$", word)),
    ]


def _read_7z(words: Sequence[str]) -> list[Use]:
    out = [word[2:] for word in words if word.startswith("-o")]
    command, *files = [word for word in words if not word.startswith("-")] or [""]
    if command.lower() in {"x", "e"}:
        return [*(("r", file) for file in files[:1]), *(("X", folder) for folder in out or ["."])]
    return [*(("b", file) for file in files[:1]), *(("R", file) for file in files[1:])]


WORD_READERS: dict[str, Callable[[Sequence[str]], list[Use]]] = {
    **dict.fromkeys(("tar", "gtar", "bsdtar"), _read_tar),
    **dict.fromkeys(("7z", "7za", "7zr"), _read_7z),
    **{name: _make_settings_reader(name) for name in _CONFIGURATION_FILES},
    "pip3": _make_settings_reader("pip"),
    "bsdcpio": _read_cpio,
    "cpio": _read_cpio,
    "dpkg": _make_archiver_reader(r".*(-[xX]\b|--extract|--vextract|-R\b|--raw-extract)", names_folder=True),
    "dpkg-deb": _make_archiver_reader(r".*(-[xXR]\b|--extract|--vextract|--raw-extract)", names_folder=True),
    "jar": _make_archiver_reader(r"-?\w*x|.*--extract"),
    "pax": _make_archiver_reader(r"(.* )?-\w*r"),
    "dd": _read_dd,
    "find": _read_find,
    "git": read_git,
}
"""By program: the reader of all its words, in place of a row."""
ARGUMENT_READERS: dict[str, Callable[[Arguments], list[Use]]] = {
    **dict.fromkeys(("cp", "gcp", "install", "mv"), _read_copy),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _read_awk),
    **dict.fromkeys(("sed", "gsed"), _read_sed),
    **dict.fromkeys(("perl", "ruby"), _list_backups),
    **dict.fromkeys(
        ("bunzip2", "bzip2", "compress", "gunzip", "gzip", "lz4", "lzma", "pigz", "uncompress"), _read_gzip
    ),
    **dict.fromkeys(("unlzma", "unxz", "unzstd", "xz", "zstd"), _read_gzip),
    "ar": _read_ar,
    "csplit": _read_csplit,
    "curl": _read_curl,
    "jq": _read_jq,
    "ln": _read_ln,
    "rg": _read_rg,
    **dict.fromkeys(("rsync", "scp"), _read_remote_copy),
    "split": _read_split,
    "unzip": _read_unzip,
    "wget": _read_wget,
    "zip": _read_zip,
}
"""By program: the reader of further uses in its arguments, besides those that its row describes."""
