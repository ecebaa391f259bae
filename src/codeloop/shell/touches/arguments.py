"""Reads a command's words by its row of `path_rows`: the file that each word names, and how the program uses it."""

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from codeloop.shell.touches.word_paths import ANYWHERE

Use = tuple[str, str]
"""A role (see `path_rows`) and a path."""
# An option of a row: `-o=w`, `-i?!edit`, `-r!deep`; its name, `=` or `?`, the roles, the change.
_OPTION_TOKEN = re.compile(r"(--?[^=?!]+)(?:([=?])([^!]*))?(?:!(\w+))?")
# How the changes `deep`, `edit` and `see` of an option turn one role into another.
_RECURSIVE_ROLES = str.maketrans("rVwu", "RRDW")
_EDIT_ROLES = str.maketrans("rR", "bb")
_READ_ONLY_ROLES = str.maketrans("bwuWXDM", "rnnnnnr")


class CommandOption(Struct, frozen=True):
    """An option of a row. `roles`: one letter for each value; `operand_change`: the word after `!`, see `path_rows`.

    `takes_attached_value`: its value, if it has one, is attached: `-i.bak`, or `-i` alone.
    """

    roles: str = ""
    takes_attached_value: bool = False
    operand_change: str = ""


class CommandRow(Struct, frozen=True):
    """A parsed row: the roles of the first, the other and the last operands, and the options.

    `default_use`: the use when no operand names a path; `constant_use`: a use that every call has, unless
    an option's value has the same role; `stops_at_operand`: options end at the first operand.
    """

    first_role: str
    other_roles: str
    last_role: str
    options: dict[str, CommandOption]
    default_use: Use | None = None
    constant_use: Use | None = None
    stops_at_operand: bool = False


@lru_cache(maxsize=256)
def parse_row(text: str) -> CommandRow:
    """Parse a row of `path_rows`."""
    operand_roles, *tokens = text.split()
    # `r`, `r>w`, `-:r` or `-:r>w`: the first operand, the others, the last one.
    first_role, _, other_roles = operand_roles.partition(":")
    other_roles, _, last_role = (other_roles or first_role).partition(">")
    first_role = first_role.partition(">")[0]
    options: dict[str, CommandOption] = {}
    default_use = constant_use = None
    for token in tokens:
        if token[0] == "@":
            default_use = (token[1], token[2:])
        elif token[0] == "+":
            constant_use = (token[1], token[2:])
        elif match := _OPTION_TOKEN.fullmatch(token):
            name, value_sign, roles, operand_change = match.groups()
            options[name] = CommandOption(
                roles=(roles or "-") if value_sign else "",
                takes_attached_value=value_sign == "?",
                operand_change=operand_change or "",
            )
    return CommandRow(
        first_role=first_role,
        other_roles=other_roles,
        last_role=last_role or other_roles,
        options=options,
        default_use=default_use,
        constant_use=constant_use,
        stops_at_operand="^" in tokens,
    )


class Arguments:
    """The words behind a command's name, as `row` reads them.

    `operands`: all of them; `plain_count`: the number of those before `--`. `option_values`: the options with a value,
    and this; `option_uses`: the roles and paths of these values. `changes`: how options change the operands.
    `rest_index`: the index of the first word that the row does not describe.
    """

    def __init__(self, row: CommandRow, words: Sequence[str]) -> None:
        self.row = row
        self.operands: list[str] = []
        self.plain_count = 0
        self.option_uses: list[Use] = []
        self.option_values: list[tuple[str, str]] = []
        self.changes: list[str] = []
        self.rest_index = len(words)
        self._read(words)

    def _read(self, words: Sequence[str]) -> None:
        row = self.row
        index, is_behind_dashes = 0, False
        while index < len(words):
            word = words[index]
            index += 1
            if is_behind_dashes or word in {"", "-"} or not word.startswith(("-", ANYWHERE)):
                self.operands.append(word)
                self.plain_count += not is_behind_dashes
                if row.stops_at_operand:
                    self.rest_index = index
                    break
            elif word == "--":
                is_behind_dashes = True
            elif word == ANYWHERE:
                self.operands.append(word)
                self.plain_count += 1
                # It may also be an option, one that writes a file if the program has any.
                if any(set(option.roles) & set("wWXbt") for option in row.options.values()):
                    self.option_uses.append(("w", ANYWHERE))
            else:
                index = self._read_option(word, words, index)

    def _read_option(self, word: str, words: Sequence[str], index: int) -> int:
        """Read an option, and return the index behind the values that it takes."""
        options = self.row.options
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            keys = [name] if name in options else []
            # GNU programs accept a shortened long option, so every option that it may mean counts.
            keys = keys or [key for key in options if key.startswith(name) and key.startswith("--")]
        elif word in options and len(word) > 2:
            # An option of several letters behind one dash, such as `-isystem`.
            equals, value, keys = "", "", [word]
        else:
            return self._read_cluster(word, words, index)
        if not keys and equals:
            self._add_unlisted(value)
        value_count = 0
        for key in keys:
            option = options[key]
            self.changes.append(option.operand_change)
            if equals:
                self._add_value(key, option.roles[-1:] or "n", value)
            elif option.roles and not option.takes_attached_value:
                value_count = max(value_count, len(option.roles))
                for role, each in zip(option.roles, words[index:], strict=False):
                    self._add_value(key, role, each)
        return index + value_count

    def _read_cluster(self, word: str, words: Sequence[str], index: int) -> int:
        """Read options of one letter behind one dash (`-xvf a.tar`), and return the index behind their values."""
        for end, letter in enumerate(word[1:], 2):
            option = self.row.options.get("-" + letter)
            if option is None:
                continue
            self.changes.append(option.operand_change)
            if not option.roles:
                continue
            if value := word[end:]:
                self._add_value(
                    "-" + letter, option.roles[0], value.removeprefix("=") if option.takes_attached_value else value
                )
                return index
            if option.takes_attached_value:
                return index
            for role, each in zip(option.roles, words[index:], strict=False):
                self._add_value("-" + letter, role, each)
            return index + len(option.roles)
        self._add_unlisted(word[2:])
        return index

    def _add_unlisted(self, value: str) -> None:
        """Add the value of an option that the row does not list, if it is written as a path elsewhere."""
        if value.startswith(("/", "~", "../", ANYWHERE)):
            self.option_uses.append(("n", value))

    def _add_value(self, option: str, role: str, value: str) -> None:
        self.option_values.append((option, value))
        if role == "@":
            # `-d @file` and `-F name=@file` of curl send a file.
            for part in re.findall(r"(?:^|=)[@<](.*)", value):
                self.option_uses.append(("r", part.split(";")[0]))
            if ANYWHERE in value:
                self.option_uses.append(("r", ANYWHERE))
        elif role != "-":
            self.option_uses.append((role, value))

    @property
    def uses(self) -> list[Use]:
        """The named files in order: those of options first, then the operands."""
        uses = [*self.option_uses, *zip(self.roles, self.operands, strict=True)]
        if not set(self.roles) - {"-"} and (self.row.default_use or "deep" in self.changes):
            role, path = self.row.default_use or (self.row.other_roles, ".")
            uses.append((self._change_role(role), path))
        if self.row.constant_use and not any(role == self.row.constant_use[0] for role, _ in self.option_uses):
            uses.append((self._change_role(self.row.constant_use[0]), self.row.constant_use[1]))
        if any(change == "see" for change in self.changes):
            uses = [(role.translate(_READ_ONLY_ROLES), path) for role, path in uses]
        return uses

    @property
    def roles(self) -> list[str]:
        """The role of each operand."""
        count, row = len(self.operands), self.row
        roles = [row.other_roles] * count
        if count and "all" not in self.changes:
            roles[0] = row.first_role
        if count > 1 and "last" not in self.changes:
            roles[-1] = row.last_role
        roles = [self._change_role(role) for role in roles]
        # Behind `--` stands no revision of git, so the word is a file.
        behind_dashes = ["r" if role == "g" else role for role in roles[self.plain_count :]]
        return [*roles[: self.plain_count], *behind_dashes]

    def _change_role(self, role: str) -> str:
        if "none" in self.changes:
            return "-"
        if "deep" in self.changes:
            role = role.translate(_RECURSIVE_ROLES)
        return role.translate(_EDIT_ROLES) if "edit" in self.changes else role
