"""Programs whose options decide whether they change something remote: HTTP clients,
remote shells and copies.
"""

import re
from collections.abc import Collection, Sequence

from codeloop.net.hosts import is_loopback
from codeloop.shell.program_row import ProgramRow

_WRITE_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND"})
_METHOD_NAME = r"[A-Z]+"
# `name=value`, `name:=json`, `name=@file` or `name@file` of HTTPie;
# `name==value` is a part of the URL.
_HTTPIE_BODY_ITEM = r"[^=:@\s/]+(:=@?|=@?(?!=)|@)"
# The host of a URL, also without a scheme or with a user: group 1.
_URL_HOST = r"(?:\w+://)?(?:[^/@\s]*@)?(\[[^\]]*\]|[^/:?#\s]+)"
# `host:path` of scp and rsync, or a URL of theirs.
# A single letter before the colon is a drive of Windows.
_REMOTE_TARGET = r"(rsync|scp|sftp)://|(\[[^\]]+\]|[^/\[\]:]{2,}):"
# Letters of curl's options that take a value; the second row: those that send it,
# or a file that it names.
_CURL_VALUE_LETTERS = "AbcCDeEhHKmoPrtuUwxXyYz"
_CURL_SENDING_LETTERS = "dFTQ"
_CURL_SENDING_OPTIONS = frozenset(
    {
        "--data",
        "--data-ascii",
        "--data-binary",
        "--data-raw",
        "--data-urlencode",
        "--form",
        "--form-string",
        "--json",
    }
    | {"--mail-from", "--mail-rcpt", "--quote", "--upload-file"}
)
_CURL_VALUE_OPTION_NAMES = """
--cacert --cert --config --connect-timeout --cookie --cookie-jar --dump-header --header --interface --key --limit-rate
--max-redirs --max-time --noproxy --oauth2-bearer --output --output-dir --range --referer --retry
--retry-delay --retry-max-time --unix-socket --user --user-agent --write-out
"""
_CURL_VALUE_OPTIONS = frozenset(_CURL_VALUE_OPTION_NAMES.split())
_WGET_VALUE_LETTERS = "OoPtTUeiaARDIXQwB"
_HTTPIE_VALUE_LETTERS = "aAops"
_HTTPIE_VALUE_OPTION_NAMES = """
--auth --auth-type --cert --cert-key --ciphers --format-options --max-redirects --output --pretty --print --proxy --raw
--session --session-read-only --ssl --style --timeout --verify
"""
_HTTPIE_VALUE_OPTIONS = frozenset(_HTTPIE_VALUE_OPTION_NAMES.split())
_SSH_VALUE_LETTERS = "BbcDEeFIiJLlmOoPpQRSWw"
# Options by which `localhost` is that of another machine, or only passed through: a host to jump
# over or to forward the input to, a proxy, another name of the host, an open connection to any
# host. Before the letter stand flags.
_SSH_OTHER_HOST = r"-[46AaCfGgKkMNnqsTtVvXxYy]*[FJSW]|(?i:(-o)?\s*(proxy|hostname|controlpath))"
_GH_METHOD = r"(?:-i*X|--method(?==|$))=?((?s:.*))"
_GH_FIELD = r"-i*[fF]|--(?:raw-)?field(?:=|$)|--input(?:=|$)"
# The field of a GraphQL query: group 1 is its text.
_GH_QUERY = r"(?:-i*[fF]=?|--(?:raw-)?field=)?query=((?s:.*))"


def _find_operands(
    words: Sequence[str], value_letters: str, value_options: Collection[str] = ()
) -> list[int]:
    """Return the indexes of the words that are neither options nor their values.

    `value_options`: the long options with a value.
    """
    indexes: list[int] = []
    rest = iter(enumerate(words))
    for index, word in rest:
        if word == "--":
            indexes += [behind for behind, _ in rest]
        elif not word.startswith("-") or word == "-":
            indexes.append(index)
        elif word in value_options or _takes_next_word(word, value_letters):
            next(rest, None)
    return indexes


def _takes_next_word(word: str, value_letters: str) -> bool:
    """Return whether the letters behind one dash end with the first that takes a value: `-qO`,
    but not `-qOfile`.
    """
    if word.startswith("--"):
        return False
    return (
        next((index for index, letter in enumerate(word) if letter in value_letters), -1)
        == len(word) - 1
    )


def curl_sends(words: Sequence[str], _: ProgramRow) -> bool:
    """Return whether a method that writes, a body or a file is sent, and not to this machine."""
    method, sends, is_get, urls = "", False, False, list[str]()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, has_value, value = word.partition("=")
        # curl accepts a shortened option.
        name = next(
            (each for each in _CURL_SENDING_OPTIONS if len(name) > 3 and each.startswith(name)),
            name,
        )
        if not word.startswith("-") or word == "-":
            urls.append(word)
        elif name in {"--request", "--url", "--proxy"}:
            if not has_value:
                value = rest.pop(0) if rest else ""
            if name == "--request":
                method = value
            else:
                # What goes through a proxy is not sent to this machine alone.
                urls.append(value)
        elif name in {"--connect-to", "--resolve"}:
            # The host of a URL stands for another one then: the value is not a
            # host of this machine.
            urls.append("")
            rest = rest if has_value else rest[1:]
        elif name in _CURL_SENDING_OPTIONS or name in _CURL_VALUE_OPTIONS:
            sends = sends or name in _CURL_SENDING_OPTIONS
            rest = rest if has_value else rest[1:]
        elif word.startswith("--"):
            is_get = is_get or word in {"--get", "--head"}
        else:
            # Letters behind one dash: the first that takes a value takes the rest of the word,
            # or the next word.
            letters = word[1:]
            taking_letters = _CURL_VALUE_LETTERS + _CURL_SENDING_LETTERS
            index = next(
                (index for index, letter in enumerate(letters) if letter in taking_letters),
                len(letters),
            )
            is_get = is_get or bool({"G", "I"} & set(letters[:index]))
            if index < len(letters):
                value = letters[index + 1 :] or (rest.pop(0) if rest else "")
                method = value if letters[index] == "X" else method
                urls += [value] if letters[index] == "x" else []
                sends = sends or letters[index] in _CURL_SENDING_LETTERS
    writes = method.upper() not in _READ_METHODS if method else sends and not is_get
    return writes and not _is_local(urls)


def wget_sends(words: Sequence[str], _: ProgramRow) -> bool:
    """Return whether a method that writes, or a body, is sent, and not to this machine."""
    sends, urls, skip = False, list[str](), False
    for index, word in enumerate(words):
        name, has_value, value = word.partition("=")
        if skip:
            skip = False
        # It accepts shortened options.
        elif name.startswith(("--post-", "--body-")):
            sends, skip = True, not has_value
        elif name.startswith("--meth"):
            method = value if has_value else "".join(words[index + 1 : index + 2])
            sends, skip = sends or method.upper() not in _READ_METHODS, not has_value
        elif word.startswith("-"):
            skip = _takes_next_word(word, _WGET_VALUE_LETTERS)
        else:
            urls.append(word)
    return sends and not _is_local(urls)


def httpie_sends(words: Sequence[str], _: ProgramRow) -> bool:
    """Return whether there is a method that writes, or a body, which means POST."""
    operands = [
        words[index]
        for index in _find_operands(words, _HTTPIE_VALUE_LETTERS, _HTTPIE_VALUE_OPTIONS)
    ]
    # In small letters, too: `http delete x.y`; but `http localhost` has no method.
    has_method = bool(operands) and (
        re.fullmatch(_METHOD_NAME, operands[0]) is not None
        or operands[0].upper() in _READ_METHODS | _WRITE_METHODS
    )
    method, *rest = operands if has_method else ["", *operands]
    names = {word.partition("=")[0] for word in words}
    # What goes through a proxy is not sent to this machine alone.
    is_local = "--proxy" not in names and (
        _is_local(rest[:1]) or (rest and rest[0].startswith((":", "/")))
    )
    if not operands or is_local:
        return False
    if method:
        return method.upper() not in _READ_METHODS
    return "--raw" in names or any(re.match(_HTTPIE_BODY_ITEM, word) for word in rest[1:])


def api_changes(words: Sequence[str], _: ProgramRow) -> bool:
    """Judge `gh api`: GET unless a field or another method is given;
    GraphQL acts unless its text is a query.
    """
    index = next((index for index, word in enumerate(words) if word == "api"), None)
    if index is None or "--help" in words:
        return False
    rest = words[index + 1 :]
    if "graphql" in rest:
        queries = [
            match[1] for match in map(re.compile(_GH_QUERY).match, rest) if match is not None
        ]
        only_reads = all(
            re.match(r"\s*(query\b|\{)", query) and "mutation" not in query for query in queries
        )
        return not (queries and only_reads)
    method = ""
    for index, word in enumerate(rest):
        if match := re.fullmatch(_GH_METHOD, word):
            method = match[1] or "".join(rest[index + 1 : index + 2])
    return (
        method.upper() not in _READ_METHODS
        if method
        else any(map(re.compile(_GH_FIELD).match, rest))
    )


def ssh_connects(words: Sequence[str], _: ProgramRow) -> bool:
    """Return whether it connects to another machine."""
    return _connects(words, _SSH_VALUE_LETTERS)


def autossh_connects(words: Sequence[str], _: ProgramRow) -> bool:
    """Return whether it connects to another machine."""
    # Its own `-M PORT`.
    return _connects(words, _SSH_VALUE_LETTERS + "M")


def _connects(words: Sequence[str], value_letters: str) -> bool:
    indexes = _find_operands(words, value_letters)
    # Some of these programs have a flag where others have an option with a value:
    # `ssh-copy-id -i HOST`.
    indexes = indexes or [index for index, word in enumerate(words) if not word.startswith("-")]
    if not indexes:
        return False
    # Options may also stand behind the host; what stands behind the next operand
    # is the remote command.
    host, *command = indexes
    options = [*words[:host], *words[host + 1 : command[0] if command else len(words)]]
    is_elsewhere = any(map(re.compile(_SSH_OTHER_HOST).match, options))
    return not {"-V", "-G", "-Q"} & set(options) and (is_elsewhere or not _is_local([words[host]]))


def rsync_copies_out(words: Sequence[str], program: ProgramRow) -> bool:
    """Return whether it copies to another machine, and does not only show what it would copy."""
    is_dry_run = any(
        word == "--dry-run" or re.fullmatch(r"-[a-zA-Z]*n[a-zA-Z]*", word) for word in words
    )
    return not is_dry_run and copies_out(words, program)


def copies_out(words: Sequence[str], program: ProgramRow) -> bool:
    """Return whether it copies to another machine; copying from one changes nothing there."""
    targets = program.read_arguments(words).operands[-1:]
    return any(map(re.compile(_REMOTE_TARGET).match, targets)) and not _is_local(targets)


def _is_local(urls: Sequence[str]) -> bool:
    """Return whether all of the addresses are of this machine, and there is one."""
    return bool(urls) and all(_is_this_machine(url) for url in urls)


def _is_this_machine(url: str) -> bool:
    match = re.match(_URL_HOST, url)
    # 0.0.0.0 is this machine, too; so are its short forms.
    return match is not None and (is_loopback(match[1]) or match[1].strip("0.") == "")
