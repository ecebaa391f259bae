"""The notation for the operands and options of programs, which the rows in `programs/` use,
and its parser.

Options are text: `-l` is a flag, `-o=w` takes one value, `--arg=--` two, `-i?` one only when it is
attached. The letters are the roles of the values. `-#` is a number (`nice -10`). After `!` stands
how an option changes the operands:

- `all`: the first one has the role of the others;
  `last`: the last one has the role of those before it
- `deep`: everything below a folder counts too, and without an operand that is the current one;
  `edit`: they are written in place
- `see`: they are only read; `none`: they are not paths;
  `link`: they get other names, as by the role `l`
- `sent`: the input decides the names of the files written;
  `remote`: a download is named after its URL
- `script`: the program is given commands that may do anything

Operands: `r` is the role of all; `-:r` the roles of the first one and of the others; `r>w` the
roles of all but the last one, and of the last one. `@R.` is the operand when no other one names a
path. `+W.` is one more operand, unless an option has a value with its role.
`^`: the options end at the first operand.

Roles of a path:

- `r` read, `R` read with all below it, `V` read with all below it but hidden files
- `w` written, `W` a folder below which something may be written, `X` the same,
  where the input decides the names
- `D` changed or removed with all below it, `u` written, with `deep` as `W`,
  `t` a folder that is written into
- `M` read and written with all below it, `b` read and written, `n` only looked up,
  `@` read if it begins with `@`
- `g` a file or a git revision, `f` a URL that may be a file's, `-` not a path
- `l` given another name, by which a later command of the line may write it
- `p` read if there is such a file (no row has it, only readers of words)
- `o` and `c` tracked files that git prints, as they are or where they changed;
  `v` a word that may limit this to a path
"""

import re
from functools import lru_cache

from msgspec import Struct

Use = tuple[str, str]
"""A role and a path."""
# The name of an option, `=` or `?`, the roles, the change: `-o=w`, `-i?!edit`, `-r!deep`.
_OPTION = r"([-+][^=?!]*)(?:([=?])([^!]*))?(?:!(\w+))?"


class Option(Struct, frozen=True):
    """An option. `roles`: one letter for each value; `change`: how it changes the operands.

    `is_attached`: its value, if it has one, is attached: `-i.bak`, or `-i` alone.
    """

    roles: str = ""
    is_attached: bool = False
    change: str = ""

    @property
    def takes_next_word(self) -> bool:
        """Whether the word behind it is its value, unless that is attached."""
        return bool(self.roles) and not self.is_attached


class Operands(Struct, frozen=True):
    """The roles of the first, the other and the last operands.

    `default_use`: the use when no operand names a path; `constant_use`: a use that every call has,
    unless an option's value has the same role; `stops_options`: options end at the first operand.
    """

    first_role: str
    other_roles: str
    last_role: str
    default_use: Use | None = None
    constant_use: Use | None = None
    stops_options: bool = False


@lru_cache(maxsize=512)
def parse_options(*texts: str) -> dict[str, Option]:
    """Parse options by their names. Of an option in several texts the last one counts."""
    options: dict[str, Option] = {}
    for token in " ".join(texts).split():
        if match := re.fullmatch(_OPTION, token):
            name, value_sign, roles, change = match.groups()
            options[name] = Option(
                (roles or "-") if value_sign else "", value_sign == "?", change or ""
            )
    return options


@lru_cache(maxsize=256)
def parse_operands(text: str) -> Operands:
    """Parse the roles of operands."""
    roles, *tokens = text.split()
    first_role, _, other_roles = roles.partition(":")
    other_roles, _, last_role = (other_roles or first_role).partition(">")
    uses = {token[0]: (token[1], token[2:]) for token in tokens if len(token) > 1}
    return Operands(
        first_role=first_role.partition(">")[0],
        other_roles=other_roles,
        last_role=last_role or other_roles,
        default_use=uses.get("@"),
        constant_use=uses.get("+"),
        stops_options="^" in tokens,
    )
