"""Bash builtins, and the few forms of them whose effect is certain."""

import re
from collections.abc import Callable, Sequence

from codeloop.kit.wildcard import ANY, MARKS, WORDS
from codeloop.permission.shell.words import Word

_ALL = """
. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable
eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd
read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias
unset wait
"""
BUILTINS = frozenset(_ALL.split())

# Operators of `test`, by their operands.
_UNARY = frozenset(["-n", "-z", "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-b", "-c", "-p", "-S"])
_TEXTS = frozenset(["=", "==", "!="])
_FILES = frozenset(["-nt", "-ot", "-ef"])
_NUMBERS = frozenset(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"])
_NUMBER = re.compile(r"[+-]?[0-9]+")
_SETS = re.compile(r"%[^%a-zA-Z]*[hjlqtzL]*n")


def is_whole_variable(word: Word) -> bool:
    """Return whether a word is one quoted variable and nothing else."""
    return word.value == ANY and word.source.startswith('"')


def _are_known(words: Sequence[Word]) -> bool:
    return all(word.is_known for word in words)


def _accept_any(_: Sequence[Word]) -> bool:
    return True


def _is_plain_printf(words: Sequence[Word]) -> bool:
    """`printf` may set variables: with `-v`, and with `%n`."""
    rest = words[1:] if words and words[0].value == "--" else words
    if not rest or not rest[0].is_known or rest[0].value.startswith("-"):
        return False
    return _SETS.search(rest[0].value.replace("%%", "")) is None


def _is_certain_test(words: Sequence[Word]) -> bool:
    """`test` evaluates what `-v` and `-o` name; which word is an operator has to be certain."""
    if words and words[0].value == "!" and len(words) > 1:
        words = words[1:]
    if not all(word.is_known or is_whole_variable(word) for word in words):
        return False
    match [word.value for word in words]:
        case []:
            return True
        case [_]:
            return True
        case [operator, _]:
            return operator in _UNARY
        case [_, operator, _] if operator in _TEXTS | _FILES:
            return True
        case [first, operator, right] if operator in _NUMBERS:
            return all(_NUMBER.fullmatch(side) for side in (first, right))
        case _:
            return False


def _is_certain_bracket(words: Sequence[Word]) -> bool:
    return bool(words) and words[-1].value == "]" and _is_certain_test(words[:-1])


def _is_plain_cd(words: Sequence[Word]) -> bool:
    rest = words[1:] if words and words[0].value == "--" else words
    return _are_known(rest) and len(rest) <= 1 and not any(word.value.startswith("-") for word in rest)


def _require_pattern(pattern: str) -> Callable[[Sequence[Word]], bool]:
    """Return a check that every word is known and matches a pattern."""
    regex = re.compile(pattern)
    return lambda words: all(word.is_known and regex.fullmatch(word.value) for word in words)


HARMLESS_FORMS: dict[str, Callable[[Sequence[Word]], bool]] = {
    ":": _accept_any,
    "[": _is_certain_bracket,
    "cd": _is_plain_cd,
    "echo": _accept_any,
    "exit": _require_pattern(r"[0-9]{1,3}"),
    "false": _accept_any,
    "kill": _require_pattern(r"-[A-Z0-9]+|-[lsn]|[A-Z]+|[0-9]+"),
    "printf": _is_plain_printf,
    "pwd": _require_pattern(r"-[LP]"),
    "test": _is_certain_test,
    "times": _require_pattern(r"(?!)"),
    "true": _accept_any,
    "type": _require_pattern(r"-[aptPf]+|[A-Za-z0-9_.+-]+"),
    "ulimit": _require_pattern(r"-a"),
    "umask": _require_pattern(r"-S|[0-7]{3,4}"),
    "wait": _require_pattern(r"[0-9]+"),
}
"""Builtin -> a check of its arguments: whether their effect is certain."""


def _has_subscript(words: Sequence[Word]) -> bool:
    """Return whether a word may be a variable with a subscript, which bash evaluates: `a[$(cmd)]` runs `cmd`."""
    return any("[" in word.value or word.value[:1] in MARKS for word in words)


def _sets_subscript(words: Sequence[Word]) -> bool:
    first = words[0].value if words else ""
    return (first.startswith("-v") or first[:1] in MARKS) and _has_subscript(words[:2])


def _test_evaluates(words: Sequence[Word]) -> bool:
    """`test -v name` evaluates, and a word that is not known may be `-v`."""
    values = [word.value for word in words]
    if not {"-v", "-R"}.isdisjoint(values):
        return True
    if not any(value[:1] in MARKS for value in values):
        return False
    operator = values[0] if len(values) == 2 else values[1] if len(values) == 3 else "-n"
    return len(values) > 3 or WORDS in values or not operator.startswith(("-", "=", "!="))


def _has_option(letters: str) -> Callable[[Sequence[Word]], bool]:
    """Return a check for an option with one of the letters, or a word that may be one."""
    return lambda words: any(re.match(rf"-\w*[{letters}]", w.value) or w.value[:1] in MARKS for w in words)


def _has_arguments(words: Sequence[Word]) -> bool:
    return bool(words)


def _has_callback(words: Sequence[Word]) -> bool:
    return _has_option("C")(words) or _has_subscript(words)


_EVALUATE: dict[str, Callable[[Sequence[Word]], bool]] = {
    "[": lambda words: _test_evaluates(words[:-1]),
    "bind": _has_arguments,
    "compgen": _has_arguments,
    "complete": _has_arguments,
    "fc": lambda _: True,
    "getopts": _has_subscript,
    "hash": _has_option("p"),
    "jobs": _has_option("x"),
    "let": lambda words: not _require_pattern(r"[0-9+*/ ()-]+")(words),
    "mapfile": _has_callback,
    "printf": _sets_subscript,
    "read": _has_subscript,
    "readarray": _has_callback,
    "test": _test_evaluates,
    "unset": _has_subscript,
    "wait": _has_subscript,
}


def evaluates(words: Sequence[Word]) -> bool:
    """Return whether a builtin may evaluate its words, or the values of variables, so that it may run anything."""
    check = _EVALUATE.get(words[0].value)
    return check is not None and check(words[1:])
