"""Bash builtins: the few forms of each whose effect is certain,
and those that may evaluate their words.

To evaluate is to run text as shell: `test -v 'a[$(cmd)]'` runs `cmd`, since bash evaluates
subscripts. The keywords `((...))` and `[[ ... ]]` and expansions are checked here too, by
their text.
"""

import re
from collections.abc import Callable, Sequence

from codeloop.kit.wildcard import ANY_TEXT, ANY_WORDS, MARKS
from codeloop.shell.word import Word

# Operators of `test`, by their operands.
_UNARY_OPERATORS = frozenset(
    ["-n", "-z", "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-b", "-c", "-p", "-S"]
)
_STRING_OPERATORS = frozenset(["=", "==", "!="])
_FILE_OPERATORS = frozenset(["-nt", "-ot", "-ef"])
_NUMBER_OPERATORS = frozenset(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"])
_NUMBER = r"[+-]?[0-9]+"
# `printf '%n' NAME` assigns to a variable.
_ASSIGNING_CONVERSION = r"%[^%a-zA-Z]*[hjlqtzL]*n"


def is_whole_variable(word: Word) -> bool:
    """Return whether a word is one quoted variable and nothing else."""
    return word.value == ANY_TEXT and word.source.startswith('"')


def _are_known(words: Sequence[Word]) -> bool:
    return all(word.is_known for word in words)


def accept_any(_: Sequence[Word]) -> bool:
    """Return true: the check of a builtin all of whose arguments are alike."""
    return True


def is_plain_printf(words: Sequence[Word]) -> bool:
    """Return whether `printf` only prints: with `-v` and with `%n` it sets variables."""
    rest = words[1:] if words and words[0].value == "--" else words
    if not rest or not rest[0].is_known or rest[0].value.startswith("-"):
        return False
    return re.search(_ASSIGNING_CONVERSION, rest[0].value.replace("%%", "")) is None


def is_certain_test(words: Sequence[Word]) -> bool:
    """Return whether the effect of `test` is certain: `-v` and `-o` evaluate,
    so operators have to be known.
    """
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
            return operator in _UNARY_OPERATORS
        case [_, operator, _] if operator in _STRING_OPERATORS | _FILE_OPERATORS:
            return True
        case [first, operator, right] if operator in _NUMBER_OPERATORS:
            return all(re.fullmatch(_NUMBER, side) for side in (first, right))
        case _:
            return False


def is_certain_bracket(words: Sequence[Word]) -> bool:
    """Return whether the effect of `[ ... ]` is certain."""
    return bool(words) and words[-1].value == "]" and is_certain_test(words[:-1])


def is_plain_cd(words: Sequence[Word]) -> bool:
    """Return whether `cd` goes to one known folder, or home."""
    rest = words[1:] if words and words[0].value == "--" else words
    return (
        _are_known(rest) and len(rest) <= 1 and not any(word.value.startswith("-") for word in rest)
    )


def make_pattern_check(pattern: str) -> Callable[[Sequence[Word]], bool]:
    """Return a check that every word is known and matches a pattern; true for no words at all."""
    return lambda words: all(word.is_known and re.fullmatch(pattern, word.value) for word in words)


def has_subscript(words: Sequence[Word]) -> bool:
    """Return whether a word may be a variable with a subscript,
    which bash evaluates: `a[$(cmd)]` runs `cmd`.
    """
    return any("[" in word.value or word.value[:1] in MARKS for word in words)


def may_assign_subscript(words: Sequence[Word]) -> bool:
    """Return whether `printf -v` may assign to a variable with a subscript."""
    first = words[0].value if words else ""
    return (first.startswith("-v") or first[:1] in MARKS) and has_subscript(words[:2])


def test_may_evaluate(words: Sequence[Word]) -> bool:
    """Return whether `test`, given as words, may evaluate: `-v NAME` does,
    and an unknown word may be `-v`.
    """
    values = [word.value for word in words]
    if not {"-v", "-R"}.isdisjoint(values):
        return True
    if not any(value[:1] in MARKS for value in values):
        return False
    if len(values) > 3 or ANY_WORDS in values:
        return True
    # With two words the first is the operator, with three the second.
    # A known one leaves no room for `-v`.
    match values:
        case [operator, _] | [_, operator, _]:
            return not operator.startswith(("-", "=", "!="))
        case _:
            return False


def make_option_check(letters: str) -> Callable[[Sequence[Word]], bool]:
    """Return a check for an option with one of the letters, or a word that may be one."""
    return lambda words: any(
        re.match(rf"-\w*[{letters}]", w.value) or w.value[:1] in MARKS for w in words
    )


def has_words(words: Sequence[Word]) -> bool:
    """Return whether a builtin is given anything."""
    return bool(words)


def has_callback(words: Sequence[Word]) -> bool:
    """Return whether `mapfile` is given a command to run, or a subscript."""
    return make_option_check("C")(words) or has_subscript(words)


def bracket_may_evaluate(words: Sequence[Word]) -> bool:
    """Return whether `[ ... ]`, given as words, may evaluate."""
    return test_may_evaluate(words[:-1])


def let_may_evaluate(words: Sequence[Word]) -> bool:
    """Return whether `let` may evaluate the value of a variable: it is given more than numbers."""
    return not make_pattern_check(r"[0-9+*/ ()-]+")(words)


# `[ ... ]` with at most one operator between plain operands, which cannot be read in two ways.
# Quoted texts have been replaced by `Q`.
_CERTAIN_TEST = r"\[\s+(!\s+)?(-[a-zA-Z]\s+)?Q?[^\s$`]*(\s+(=|==|!=|-\w\w)\s+Q?[^\s$`]*)?\s+\]"
# A comparison of numbers and of `$#` or `$?`, which are always numbers: nothing in it is evaluated.
_NUMERIC_TEST = r"(?<=\s)(?:\$#|\$\?|[+-]?[0-9]+)\s+-[engl][eqt]\s+(?:\$#|\$\?|[+-]?[0-9]+)(?=\s)"
# Arithmetic without names: bash evaluates the value of a variable as an expression,
# `a[$(cmd)]` runs `cmd`.
CONSTANT_ARITHMETIC = r"[0-9\s+*/%<>=!&|^~?:,()-]*"
# `${x@P}` evaluates the value of x as a prompt, `${!x}` expands the variable that x names. A
# backquote or `$(` is left over only where the tree does not show a substitution.
_EVALUATING_EXPANSION = r"@[A-Za-z]\}$|^\$\{!|`|\$\("
# The offset and length of `${x:2:3}` and `${x[0]:2}`, which bash evaluates;
# not `${x:-word}` and its like.
_SUBSTRING = r"(?s)\$\{[\w@*#]+(?:\[[^\]]*\])?:(?![-=?+])(.*)\}"


def may_evaluate_arithmetic(text: str) -> bool:
    """Return whether an arithmetic expression has variables: bash evaluates their values,
    which may run commands.
    """
    for start, end in (("$((", "))"), ("$[", "]"), ("((", "))")):
        if text.startswith(start):
            return not re.fullmatch(CONSTANT_ARITHMETIC, text[len(start) :].removesuffix(end))
    # `for ((i = 0; ...))`: its variable.
    return text.startswith("for")


def may_evaluate_expansion(text: str, plain_text: str) -> bool:
    """Return whether an expansion, `${...}`, may evaluate a variable's value.

    `plain_text`: the text without the substitutions that the tree shows in it, and without escapes.
    """
    substring = re.match(_SUBSTRING, text)
    return re.search(_EVALUATING_EXPANSION, plain_text) is not None or (
        substring is not None and not re.fullmatch(CONSTANT_ARITHMETIC, substring[1])
    )


def may_evaluate_test_text(text: str) -> bool:
    """Return whether `[ ... ]` or `[[ ... ]]`, given as the text of the script,
    may evaluate a variable's value.
    """
    if MARKS.intersection(text):
        return True
    masked = re.sub(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'", "Q", text, flags=re.DOTALL)
    if text.startswith("[["):
        masked = re.sub(_NUMERIC_TEST, "Q", masked)
        return re.search(r"\s-([vR]|eq|ne|l[te]|g[te])\s", masked) is not None
    return re.search(r"\s-[vR]\s", masked) is not None or (
        "$" in text and not re.fullmatch(_CERTAIN_TEST, masked)
    )
