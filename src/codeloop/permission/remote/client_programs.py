"""Programs whose options decide whether they change something remote: HTTP clients, remote shells and copies."""

import re
from collections.abc import Callable, Sequence

from codeloop.net.hosts import is_loopback

_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND"})
_METHOD_NAME = re.compile(r"[A-Z]+")
# `name=value`, `name:=json`, `name=@file` or `name@file` of HTTPie; `name==value` is a part of the URL.
_HTTPIE_BODY_ITEM = re.compile(r"[^=:@\s/]+(:=@?|=@?(?!=)|@)")
# The host of a URL, also without a scheme or with a user: group 1.
_URL_HOST = re.compile(r"(?:\w+://)?(?:[^/@\s]*@)?(\[[^\]]*\]|[^/:?#\s]+)")
# `host:path` of scp and rsync, or a URL of theirs. A single letter before the colon is a drive of Windows.
_REMOTE_TARGET = re.compile(r"(rsync|scp|sftp)://|(\[[^\]]+\]|[^/\[\]:]{2,}):")
# Letters of curl's options that take a value; the second row: those that send it, or a file that it names.
_CURL_VALUE_LETTERS = "AbcCDeEhHKmoPrtuUwxXyYz"
_CURL_SENDING_LETTERS = "dFTQ"
_CURL_SENDING_OPTIONS = frozenset(
    {"--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode", "--form", "--form-string", "--json"}
    | {"--mail-from", "--mail-rcpt", "--quote", "--upload-file"}
)
_CURL_VALUE_OPTION_NAMES = """
--cacert --cert --config --connect-timeout --cookie --cookie-jar --dump-header --header --interface --key --limit-rate
--max-redirs --max-time --noproxy --oauth2-bearer --output --output-dir --proxy --range --referer --resolve --retry
--retry-delay --retry-max-time --unix-socket --user --user-agent --write-out
"""
_CURL_VALUE_OPTIONS = frozenset(_CURL_VALUE_OPTION_NAMES.split())
_WGET_VALUE_LETTERS = "OoPtTUeiaARDIXQwB"


def _curl_sends(words: Sequence[str]) -> bool:
    """Return whether a method that writes, a body or a file is sent, and not to this machine."""
    method, sends, is_get, urls = "", False, False, list[str]()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, has_value, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            urls.append(word)
        elif name in {"--request", "--url"}:
            if not has_value:
                value = rest.pop(0) if rest else ""
            if name == "--url":
                urls.append(value)
            else:
                method = value
        elif name in _CURL_SENDING_OPTIONS or name in _CURL_VALUE_OPTIONS:
            sends = sends or name in _CURL_SENDING_OPTIONS
            rest = rest if has_value else rest[1:]
        elif word.startswith("--"):
            is_get = is_get or word in {"--get", "--head"}
        else:
            # Letters behind one dash: the first that takes a value takes the rest of the word, or the next word.
            letters = word[1:]
            taking_letters = _CURL_VALUE_LETTERS + _CURL_SENDING_LETTERS
            index = next((index for index, letter in enumerate(letters) if letter in taking_letters), len(letters))
            is_get = is_get or bool({"G", "I"} & set(letters[:index]))
            if index < len(letters):
                value = letters[index + 1 :] or (rest.pop(0) if rest else "")
                method = value if letters[index] == "X" else method
                sends = sends or letters[index] in _CURL_SENDING_LETTERS
    writes = method.upper() not in _READ_METHODS if method else sends and not is_get
    return writes and not _is_local(urls)


def _wget_sends(words: Sequence[str]) -> bool:
    sends, urls, skip = False, list[str](), False
    for index, word in enumerate(words):
        name, has_value, value = word.partition("=")
        if skip:
            skip = False
        elif name in {"--post-data", "--post-file", "--body-data", "--body-file"}:
            sends, skip = True, not has_value
        elif name == "--method":
            method = value if has_value else "".join(words[index + 1 : index + 2])
            sends, skip = sends or method.upper() not in _READ_METHODS, not has_value
        elif word.startswith("-"):
            skip = not word.startswith("--") and word[-1] in _WGET_VALUE_LETTERS
        else:
            urls.append(word)
    return sends and not _is_local(urls)


def _httpie_sends(words: Sequence[str]) -> bool:
    """Return whether there is a method that writes, or items of a body, which mean POST."""
    operands = [word for word in words if not word.startswith("-")]
    urls = [word for word in operands[:2] if not _METHOD_NAME.fullmatch(word)][:1]
    if not operands or _is_local(urls) or (urls and urls[0].startswith((":", "/"))):
        return False
    if _METHOD_NAME.fullmatch(operands[0]):
        return operands[0] not in _READ_METHODS
    return any(_HTTPIE_BODY_ITEM.match(word) for word in operands[1:])


def _api_changes(words: Sequence[str]) -> bool:
    """Judge `gh api`: GET unless a field or another method is given; GraphQL acts unless its text is a query."""
    index = next((index for index, word in enumerate(words) if word == "api"), None)
    if index is None or "--help" in words:
        return False
    rest = words[index + 1 :]
    method, has_fields = "", False
    for index, word in enumerate(rest):
        name, has_value, value = word.partition("=")
        if name in {"-X", "--method"}:
            method = value if has_value else "".join(rest[index + 1 : index + 2])
        elif word.startswith("-X"):
            method = word[2:]
        has_fields = has_fields or name in {"--field", "--raw-field", "--input"} or word.startswith(("-f", "-F"))
    if "graphql" in rest:
        query = next((word for word in rest if re.match(r"query=\s*(query\b|\{)", word)), "")
        return not query or "mutation" in query
    return method.upper() not in _READ_METHODS if method else has_fields


def _ssh_connects(words: Sequence[str]) -> bool:
    hosts = [word for word in words if not word.startswith("-")]
    return bool(hosts) and not {"-V", "-G", "-Q"} & set(words) and not _is_local(hosts[:1])


def _copies_out(words: Sequence[str]) -> bool:
    """Return whether it copies to another machine; copying from one changes nothing there."""
    operands = [word for word in words if not word.startswith("-")]
    is_dry_run = any(word == "--dry-run" or re.fullmatch(r"-[a-zA-Z]*n[a-zA-Z]*", word) for word in words)
    return (
        bool(operands)
        and not is_dry_run
        and _REMOTE_TARGET.match(operands[-1]) is not None
        and not _is_local(operands[-1:])
    )


def _scp_copies_out(words: Sequence[str]) -> bool:
    # Without the options: none of them is a dry run, as `-n` of rsync is.
    return _copies_out([word for word in words if not word.startswith("-")])


def _is_local(urls: Sequence[str]) -> bool:
    """Return whether all of the addresses are of this machine, and there is one."""
    return bool(urls) and all(_is_this_machine(url) for url in urls)


def _is_this_machine(url: str) -> bool:
    match = _URL_HOST.match(url)
    # 0.0.0.0 is this machine, too; so are its short forms.
    return match is not None and (is_loopback(match[1]) or match[1].strip("0.") == "")


CHANGE_CHECKS: dict[str, Callable[[Sequence[str]], bool]] = {
    "curl": _curl_sends,
    "curlie": _curl_sends,
    "wget": _wget_sends,
    **dict.fromkeys(("http", "https", "xh", "xhs"), _httpie_sends),
    **dict.fromkeys(("gh", "glab"), _api_changes),
    **dict.fromkeys(("ssh", "slogin", "mosh", "sftp", "ssh-copy-id", "autossh"), _ssh_connects),
    "scp": _scp_copies_out,
    "rsync": _copies_out,
}
"""Program -> a check of its arguments: whether they change something remote."""
