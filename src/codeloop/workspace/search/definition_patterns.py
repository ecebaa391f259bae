"""Patterns of the lines that define functions, types and tests, by the language of a file."""

_WORD = r"[A-Za-z_$][\w$]*"
_MODIFIERS = (
    r"(?:(?:export|default|declare|pub(?:\([^)]*\))?|public|private|protected|internal|static|final|abstract|async"
    r"|unsafe|extern(?: \"C\")?|const|open|sealed|data|override|virtual|inline|partial|readonly|suspend|local"
    r"|typedef|template<[^>]*>)\s+)*"
)
_TYPE_DEFINITION = (
    r"(?:class|interface|enum(?: class)?|struct|union|trait|record|object|protocol|extension|namespace|module|mod"
    rf"|impl(?:<[^>]*>)?|type|defmodule|contract)\s+(?P<name>{_WORD}(?:(?:::|\.){_WORD})*)"
)
_FUNCTION_DEFINITION = (
    rf"(?:def|defp|fn|func|fun|function\*?|sub|proc"
    rf"|macro_rules!)\s+(?P<name>(?:(?:self|{_WORD})[.:])?{_WORD}[?!]?)"
)
_NOT_KEYWORD = (
    r"(?!(?:if|for|while|switch|catch|return|function|with|do|else|new|await|throw"
    r"|sizeof|defined|typedef)\b)"
)
_PARAMETERS = r"(?:<[^()]*>\s*)?\([^()]*(?:\([^()]*\)[^()]*)*\)"
# `(a, b) =>`, `async x =>`
_ARROW = rf"(?:async\s*)?(?:{_PARAMETERS}\s*(?::[^=]+)?|\b{_WORD}\s*)=>"
# A call that returns the function it is given, such as React's `memo`.
_WRAPPER = r"(?:(?:\w+\.)?(?:memo|forwardRef|observer|useCallback|debounce|throttle|asyncHandler)(?:<[^()]*>)?\(\s*)?"
_VALUE = rf"{_WRAPPER}(?:(?:async\s+)?function\b|class\b|{_ARROW})"
# `const load = async (url) => {`, `X.prototype.run = function () {`
_ASSIGNED_FUNCTION = (
    rf"(?:(?:const|let|var)\s+)?(?P<name>(?:{_WORD}\.)*#?{_WORD})\s*(?::(?:[^=]|=>)+)?=\s*{_VALUE}"
)
# `onClick: () => {`
_FUNCTION_PROPERTY = rf"(?P<name>{_WORD}|'[^'\\]+'|\"[^\"\\]+\")\s*:\s*{_VALUE}.*\{{$"
# `module.exports = class Rule {`
_NAMED_EXPORT = (
    rf"(?:module\.exports\s*=|export\s+default)\s+{_WRAPPER}(?:async\s+)?(?:function\*?|class)\s+"
    rf"(?!extends\b)(?P<name>{_WORD})"
)
# `export default () => {`
_DEFAULT_EXPORT = (
    rf"export\s+(?P<name>default)\s+(?:(?:async\s+)?function\s*\*?\s*\("
    rf"|class\s*(?:extends\b|\{{)|{_ARROW})"
)
# `get size() {`, `#load(url): Promise<void> {`
_METHOD = (
    rf"(?:(?:get|set)\s+|\*\s*)?{_NOT_KEYWORD}(?P<name>#?{_WORD})\s*(?:<[^>]*>)?"
    r"\((?![^;]*\bfunction\b)[^;]*\)\s*(?::[^;{]+)?\{$"
)
# `describe("a rule", () => {`, `it.each([1, 2])("adds %i",`
_TEST_CASE = (
    r"(?:describe|context|it|test)(?:\.\w+)*(?:\([^()]*\)|`[^`]*`)?"
    r"\(\s*(?P<quote>['\"`])(?P<name>(?:\\.|(?!(?P=quote))[^\\]){1,200})(?P=quote)"
)
# `static int main(int argc, char **argv)`, `void Rule::apply(`
_TYPED_FUNCTION = (
    rf"{_NOT_KEYWORD}(?:[\w<>\[\],.?:]+[*&]*\s+(?:[*&]+\s*)?)+"
    rf"(?P<name>{_WORD}(?:::~?{_WORD})*)\s*\([^;]*$"
)
# `func (r *Rule) Match(`
_GO_METHOD = rf"func\s+\(\w*\s*\*?(?P<owner>{_WORD})[^)]*\)\s*(?P<name>{_WORD})"
SCRIPT_SUFFIXES = ("js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte")
# Languages in which a function may begin with its type: `int main(`.
_TYPED_SUFFIXES = (
    *(
        "c",
        "h",
        "cc",
        "cpp",
        "cxx",
        "hpp",
        "hh",
        "java",
        "cs",
        "kt",
        "kts",
        "scala",
        "swift",
        "dart",
        "php",
        "groovy",
    ),
)
# Languages in which a keyword begins each definition.
_KEYWORD_SUFFIXES = (
    *(
        "py",
        "pyi",
        "rb",
        "rs",
        "lua",
        "ex",
        "exs",
        "pl",
        "pm",
        "jl",
        "nim",
        "zig",
        "tcl",
        "go",
        "ml",
        "r",
    ),
)


def _list_patterns(*patterns: str) -> tuple[str, ...]:
    return tuple(rf"(?a)\s*{_MODIFIERS}{pattern}" for pattern in patterns)


# Patterns of a line that defines something, by the end of a file's name.
DEFINITION_PATTERNS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        _KEYWORD_SUFFIXES, _list_patterns(_GO_METHOD, _FUNCTION_DEFINITION, _TYPE_DEFINITION)
    ),
    **dict.fromkeys(
        SCRIPT_SUFFIXES,
        _list_patterns(
            _NAMED_EXPORT,
            _DEFAULT_EXPORT,
            _FUNCTION_DEFINITION,
            _TYPE_DEFINITION,
            _ASSIGNED_FUNCTION,
            _METHOD,
            _FUNCTION_PROPERTY,
            _TEST_CASE,
        ),
    ),
    **dict.fromkeys(
        _TYPED_SUFFIXES, _list_patterns(_FUNCTION_DEFINITION, _TYPE_DEFINITION, _TYPED_FUNCTION)
    ),
    **dict.fromkeys(
        ("sh", "bash", "zsh"),
        _list_patterns(rf"(?:function\s+)?(?P<name>{_WORD})\s*\(\)", _FUNCTION_DEFINITION),
    ),
}
