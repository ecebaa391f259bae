"""What instruction files lead to: files that they import (`@docs/style.md`),
and rules in `.claude/rules`.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from codeloop.config.paths import RULES_FOLDER
from codeloop.kit.glob import compile_glob
from codeloop.kit.jsonc import is_list
from codeloop.kit.small_files import read_start
from codeloop.kit.text.frontmatter import FrontmatterError, split_frontmatter
from codeloop.schema.limits import EXTEND_DEPTH, INSTRUCTION_BYTES, INSTRUCTION_FILES

_CODE = r"(?ms)^[ \t]*(```|~~~).*?^[ \t]*\1[ \t]*$|(`+)[^\n]*?\2"
_IMPORT = r"(?m)(?:^|(?<=\s))@((?:\\ |[^\s`])+)"


class Rule(Struct, frozen=True):
    """The text of a rule without its head. `globs`: the files that it is for,
    relative to its folder; (): all.
    """

    text: str
    globs: tuple[str, ...] = ()


def list_imports(text: str) -> list[str]:
    """Return the paths that a text imports with `@`, each once; not those in code."""
    found = re.findall(_IMPORT, re.sub(_CODE, "", text))
    return list(dict.fromkeys(path.replace("\\ ", " ").rstrip(".,;:!?)") for path in found))


def list_rule_files(folder: Path) -> list[Path]:
    """Return the files of a folder's rules, sorted. Never fails.
    Links to folders are not followed.
    """
    files: list[Path] = []
    for top, folders, names in os.walk(folder / RULES_FOLDER):
        files += [Path(top, name) for name in names if name.endswith(".md")]
        if len(files) > INSTRUCTION_FILES.value:
            break
        if len(Path(top).relative_to(folder).parts) > EXTEND_DEPTH.value:
            folders.clear()
    return sorted(files)


def split_rule(text: str) -> Rule:
    """Split the text of a rule. One whose head can't be read holds for all files."""
    try:
        page = split_frontmatter(text)
    except FrontmatterError:
        return Rule(text)
    globs = page.head.get("paths")
    words = globs.split(",") if isinstance(globs, str) else globs if is_list(globs) else []
    return Rule(
        page.body.strip(),
        tuple(word.strip() for word in words if isinstance(word, str) and word.strip()),
    )


def find_rules_for(file: Path, folder: Path) -> Iterator[Path]:
    """Yield the rules of a folder that are for some of its files, among them this one.
    Both paths are resolved.
    """
    for rule_file in list_rule_files(folder):
        try:
            globs = split_rule(
                read_start(rule_file, INSTRUCTION_BYTES.value).decode("utf-8-sig", "replace")
            ).globs
        except OSError:
            continue
        if any(_matches(glob, file.relative_to(folder).as_posix()) for glob in globs):
            yield rule_file


def _matches(glob: str, path: str) -> bool:
    try:
        return compile_glob(glob.removeprefix("./").lstrip("/")).fullmatch(path) is not None
    except ValueError:
        return False
