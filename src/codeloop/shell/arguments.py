"""Reads a command's words by its operands and options: the file that each word names,
and how the program uses it.
"""

import re
from collections.abc import Mapping, Sequence

from codeloop.shell.options import Operands, Option, Use
from codeloop.shell.word_paths import ANYWHERE

# How the changes `deep`, `edit` and `see` of an option turn one role into another.
_RECURSIVE_ROLES = str.maketrans("rVwu", "RRDW")
_EDIT_ROLES = str.maketrans("rR", "bb")
_READ_ONLY_ROLES = str.maketrans("bwuWXDM", "rnnnnnr")


class Arguments:
    """The words behind a command's name, as the roles of its operands (`row`)
    and its options read them.

    `operands`: all of them; `plain_count`: the number of those before `--`. `option_values`: the
    options with a value, and this; `option_uses`: the roles and paths of these values. `changes`:
    how options change the operands.
    `rest_index`: the index of the first word that the row does not describe.
    """

    def __init__(self, row: Operands, options: Mapping[str, Option], words: Sequence[str]) -> None:
        self.row = row
        self.options = options
        self.operands: list[str] = []
        self.plain_count = 0
        self.option_uses: list[Use] = []
        self.option_values: list[tuple[str, str]] = []
        self.changes: list[str] = []
        self.rest_index = len(words)
        self._read(words)

    def _read(self, words: Sequence[str]) -> None:
        index, is_behind_dashes = 0, False
        while index < len(words):
            word = words[index]
            index += 1
            if is_behind_dashes or word in {"", "-"} or not word.startswith(("-", ANYWHERE)):
                self.operands.append(word)
                self.plain_count += not is_behind_dashes
                if self.row.stops_options:
                    self.rest_index = index
                    break
            elif word == "--":
                is_behind_dashes = True
            elif word == ANYWHERE:
                self.operands.append(word)
                self.plain_count += 1
                # It may also be an option, one that writes a file if the program has any.
                if any(set(option.roles) & set("wWXbt") for option in self.options.values()):
                    self.option_uses.append(("w", ANYWHERE))
            else:
                index = self._read_option(word, words, index)

    def _read_option(self, word: str, words: Sequence[str], index: int) -> int:
        """Read an option, and return the index behind the values that it takes."""
        options = self.options
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
            self.changes.append(option.change)
            if equals and option.roles:
                self._add_value(key, option.roles[-1], value)
            elif equals:
                self._add_unlisted(value)
            elif option.takes_next_word:
                value_count = max(value_count, len(option.roles))
                for role, each in zip(option.roles, words[index:], strict=False):
                    self._add_value(key, role, each)
        return index + value_count

    def _read_cluster(self, word: str, words: Sequence[str], index: int) -> int:
        """Read options of one letter behind one dash (`-xvf a.tar`),
        and return the index behind their values.
        """
        for end, letter in enumerate(word[1:], 2):
            option = self.options.get("-" + letter)
            if option is None:
                continue
            self.changes.append(option.change)
            if not option.roles:
                continue
            if value := word[end:]:
                value = value.removeprefix("=") if option.is_attached else value
                self._add_value("-" + letter, option.roles[0], value)
                return index
            if option.is_attached:
                return index
            for role, each in zip(option.roles, words[index:], strict=False):
                self._add_value("-" + letter, role, each)
            return index + len(option.roles)
        self._add_unlisted(word[2:])
        return index

    def _add_unlisted(self, value: str) -> None:
        """Add the value of an option that the row does not list,
        if it is written as a path elsewhere.
        """
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
        if self.row.constant_use and not any(
            role == self.row.constant_use[0] for role, _ in self.option_uses
        ):
            uses.append((self._change_role(self.row.constant_use[0]), self.row.constant_use[1]))
        if "link" in self.changes:
            uses += [("l", path) for role, path in uses if role in "rR"]
        if "see" in self.changes:
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
