"""Writes text of models and strangers into comments, pull requests and commits,
where nothing of it has an effect.

Markdown is written anew from the text: paragraphs, headings, lists, quotations, emphasis and code
stay, and each other character that could mean something to a host is escaped. So nothing has to be
recognised: no link, image, HTML, mention, reference, command or hidden text can come out, in
whatever form it was written.
"""

import re

from codeloop.kit.text.terminal_text import escape_answer_controls, one_line
from codeloop_automation.bounds import CI_COMMENT

_TRUNCATION_NOTE = "\n\n... (the rest is in the session)"
# A space without width: hosts read a mention or reference only where its
# characters follow each other.
_BREAK = "\u200b"
# Languages of code blocks that hosts colour and do nothing else with, unlike `mermaid`,
# `math` and `suggestion`.
_LANGUAGES = frozenset(
    (
        *(
            "bash",
            "c",
            "console",
            "cpp",
            "cs",
            "css",
            "diff",
            "go",
            "html",
            "ini",
            "java",
            "javascript",
            "js",
            "json",
        ),
        *(
            "jsx",
            "kotlin",
            "lua",
            "makefile",
            "perl",
            "php",
            "py",
            "python",
            "rb",
            "ruby",
            "rs",
            "rust",
            "scala",
            "sh",
        ),
        *("shell", "sql", "swift", "toml", "ts", "tsx", "typescript", "xml", "yaml", "yml", "zig"),
    )
)
_FENCE = r"( *(?:(?:[-*+]|\d{1,9}[.)]) +)?)(`{3,}|~{3,}) *([\w+-]*)[^`]*"
# Indentation, the mark of a quotation, that of a list item or heading, and the text.
_LINE = r"(?s)( *(?:> ?)?)((?:[-*+]|\d{1,9}[.)]|#{1,6}) +)?(.*)"
_CODE_SPAN = r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)"
# An address, without the punctuation of the sentence around it.
# As code, hosts do not make a link of it.
_ADDRESS = (
    r"(?i)(?:(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]+://|(?<![A-Za-z0-9])(?:www\.|(?:mailto|xmpp):))"
    r"[^\s`<>]*[^\s`<>()\[\].,;:!?'\"*_]"
)
_ESCAPES = {
    **{char: f"\\{char}" for char in "\\`[]|~"},
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    # The sign of formulas, which could hide text. A backslash before it is not an escape on GitHub.
    "$": "<span>$</span>",
}
_SPECIAL_CHARACTER = r"[\\`\[\]|~&<>$]"
# Mentions, references such as `#9`, `!9` and `[issue:9]`, and labels. GH-9 is another form of #9.
_REFERENCE_SIGN = r"(?i)@(?=\S)|[#!~%^&\[](?=[\w\"'])|(?<![^\W_])GH-(?=\d)"
# GitLab reads these in code, too. An issue may be given as `#9`, `o/r#9`, `GH-9`,
# `ABC-9` or as its address.
_CLOSING_WORD = (
    r"(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?)"
    r"(?=:?\s+(?:issues?\s+)?\S*[#/-]\d)"
)
# A line `Key: value` at the end of a commit message is read by git and by hosts, `skip-checks:
# true` for example. The text of a pull request may become a commit message.
_MARKDOWN_KEY = r"^([\w \t-]{1,80}):"
_TRAILER_KEY = r"(?m)^[ \t]*[\w \t-]{1,80}?(?=[ \t]*[:=])"
# Hosts offer a message as the text of a pull request, which is Markdown. `***NO_CI***` is read
# anywhere in a message, and so is what stands in brackets, such as `[skip ci]`.
_MESSAGE_SIGN = r"(?i)<(?=[a-z!/?])|!(?=\[)|\](?=[(\[:])|&(?=#)|\*(?=NO_CI)"


def make_inert_markdown(text: str) -> str:
    """Return a text as Markdown of at most CI_COMMENT characters in which nothing has an effect."""
    kept_text, note = text, ""
    while len(markdown := _write_blocks(kept_text)) + len(note) > CI_COMMENT.value:
        # What is escaped grows, so it may take several cuts.
        kept_text = kept_text[: min(CI_COMMENT.value, len(kept_text)) * 9 // 10].rstrip()
        note = _TRUNCATION_NOTE
    return markdown + note


def make_inert_phrase(text: str) -> str:
    """Return a text as a part of a line of Markdown, in which nothing has an effect;
    line breaks become spaces.
    """
    return _write_phrase(" ".join(escape_answer_controls(text).split()))


def make_code_span(text: str) -> str:
    """Return a text as code within a line of Markdown; line breaks become spaces."""
    code = _break_closing_words(" ".join(escape_answer_controls(text).split()))
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", code)), default=0))
    padding = " " if "`" in code else ""
    return f"{fence}{padding}{code}{padding}{fence}" if code else ""


def make_code_block(text: str, language: str = "") -> str:
    """Return a text as a block of code in Markdown.
    `language`: left out unless hosts only colour it.
    """
    code = _break_closing_words(escape_answer_controls(text))
    # A fence must be longer than any run of backticks within it. Markdown takes the space before it
    # off each line, and programs that look for a command at the start of a line do not.
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
    lines = "\n".join(f" {line}" if line else "" for line in code.split("\n"))
    return f" {fence}{language if language in _LANGUAGES else ''}\n{lines}\n {fence}"


def make_inert_line(text: str, width: int) -> str:
    """Return a text as the plain title of a commit or pull request, cut to `width` characters."""
    return _break_plain_text(one_line(text, width, escape_answer_controls))


def make_inert_message(text: str) -> str:
    """Return a text for the body of a commit message, which is plain text to git and to hosts."""
    lines = [line.rstrip() for line in escape_answer_controls(text).strip().split("\n")]
    return re.sub(_TRAILER_KEY, _add_break, _break_plain_text("\n".join(lines)))


def read_inert_message(text: str) -> str:
    """Return the text that `make_inert_message` was given, as far as it has visible characters."""
    return text.replace(_BREAK, "")


def _write_blocks(text: str) -> str:
    blocks, lines = list[str](), escape_answer_controls(text.strip("\n")).expandtabs(4).split("\n")
    position = 0
    while position < len(lines):
        line = lines[position].rstrip()
        position += 1
        if fence := re.fullmatch(_FENCE, line):
            end = _find_fence_end(lines, position, fence[2])
            # The block stands on the left: the depth of the lists around it does
            # not decide what is code.
            code = [_remove_indent(each, len(fence[1])) for each in lines[position:end]]
            blocks.append(make_code_block("\n".join(code), fence[3].lower()))
            position = end + 1
        # A table splits its cells before code is recognised; as code its columns stay in line.
        elif _is_table_line(line) and position < len(lines) and _is_table_line(lines[position]):
            end = next(
                (at for at in range(position, len(lines)) if not _is_table_line(lines[at])),
                len(lines),
            )
            blocks.append(
                make_code_block("\n".join(each.strip() for each in lines[position - 1 : end]))
            )
            position = end
        else:
            blocks.append(_write_line(line))
    return "\n".join(blocks)


def _find_fence_end(lines: list[str], start: int, fence: str) -> int:
    for at in range(start, len(lines)):
        line = lines[at].strip()
        if len(line) >= len(fence) and not line.strip(fence[0]):
            return at
    return len(lines)


def _remove_indent(line: str, width: int) -> str:
    return line[min(width, len(line) - len(line.lstrip(" "))) :].rstrip()


def _is_table_line(line: str) -> bool:
    return line.lstrip().startswith("|")


def _write_line(line: str) -> str:
    match = re.fullmatch(_LINE, line)
    assert match is not None
    prefix, mark, text = match[1], match[2] or "", match[3]
    phrase = re.sub(_MARKDOWN_KEY, r"\1\:", _write_phrase(text))
    # At the start of a line these are commands of hosts (`/close`), rulers,
    # marks of titles and tables, and inclusions.
    return (
        f"{prefix}{mark}\\{phrase}"
        if phrase.startswith(tuple("/-+=:"))
        else f"{prefix}{mark}{phrase}"
    )


def _write_phrase(text: str) -> str:
    pieces, position = list[str](), 0
    for span in re.finditer(_CODE_SPAN, text):
        pieces += (_write_words(text[position : span.start()]), make_code_span(span[2]))
        position = span.end()
    return "".join((*pieces, _write_words(text[position:])))


def _write_words(text: str) -> str:
    pieces, position = list[str](), 0
    for address in re.finditer(_ADDRESS, text):
        pieces += (_escape_words(text[position : address.start()]), make_code_span(address[0]))
        position = address.end()
    return "".join((*pieces, _escape_words(text[position:])))


def _escape_words(text: str) -> str:
    broken = re.sub(_REFERENCE_SIGN, _add_break, _break_closing_words(text))
    return re.sub(_SPECIAL_CHARACTER, lambda match: _ESCAPES[match[0]], broken)


def _break_plain_text(text: str) -> str:
    broken = re.sub(_REFERENCE_SIGN, _add_break, _break_closing_words(text)).replace(
        "://", f":/{_BREAK}/"
    )
    return re.sub(_MESSAGE_SIGN, _add_break, broken)


def _break_closing_words(text: str) -> str:
    return re.sub(_CLOSING_WORD, _add_break, text)


def _add_break(match: re.Match[str]) -> str:
    return match[0] + _BREAK
