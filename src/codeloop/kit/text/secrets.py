"""Finds keys, tokens and passwords in texts, by their form or the name before them,
and hides them.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from codeloop.kit.jsonc import is_list, is_object

REPLACEMENT = "[hidden]"
"""The replacement of a secret."""
MIN_KNOWN_SECRET_LENGTH = 12
"""Characters; a shorter known value may occur elsewhere by chance."""

_HAS_CAPITAL_OR_DIGIT = "(?=[a-z_-]*[A-Z0-9])"
"""A random text soon has a capital letter or a digit, which names in programs often lack."""
_KEY_FORMS = (
    # Model services
    r"sk-(?:proj-|svcacct-|admin-|ant-|or-|lf-)?[A-Za-z0-9_-]{20,}",
    (
        rf"(?:gsk|xai|hf|r8|fw|csk|tvly|pplx|nvapi|pcsk|lsv2_pt|lsv2_sk|jina|tgp_v1"
        rf"|pa)[_-]{_HAS_CAPITAL_OR_DIGIT}[A-Za-z0-9_-]{{20,}}"
    ),
    r"AIza[A-Za-z0-9_-]{30,}|dapi[0-9a-f]{32}",
    # Repositories and registries
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}",
    r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|oas|ffct|wt)-[A-Za-z0-9_.-]{16,}",
    r"AT(?:ATT|BB|CTT)[A-Za-z0-9_=.-]{16,}",
    r"npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{40,}|rubygems_[0-9a-f]{40,}|dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}",
    r"cio[A-Za-z0-9]{32}|oy2[a-z0-9]{43}",
    # Clouds
    r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AIPA|ANPA)[A-Z0-9]{16}|ABSK[A-Za-z0-9+/]{60,}={0,2}",
    r"ya29\.[A-Za-z0-9_.-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{30,}",
    r"(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/=%&.-]{20,}|[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}",
    r"do[opr]_v1_[0-9a-f]{40,}|HRKU-[A-Za-z0-9_-]{30,}|FlyV1 fm\d[A-Za-z0-9+/=_,-]{20,}|fo1_[A-Za-z0-9_-]{20,}",
    r"nfp_[A-Za-z0-9]{30,}|sbp_[0-9a-f]{30,}|sb_secret_[A-Za-z0-9_-]{20,}|napi_[a-z0-9]{40,}",
    r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{20,}|hv[sbr]\.[A-Za-z0-9_-]{20,}|pul-[0-9a-f]{40}",
    r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}|dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{30,}",
    r"LTAI[A-Za-z0-9]{12,}|AKID[A-Za-z0-9]{13,}",
    # Monitoring
    r"gls?[ac]_[A-Za-z0-9+/=_]{20,}|NR(?:AK|II|JS|SP)-[A-Za-z0-9_-]{19,}",
    r"sntry[su]_[A-Za-z0-9+/=_-]{30,}|ph[cx]_[A-Za-z0-9]{30,}",
    # Messages
    r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}",
    r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/-]{20,}",
    r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}",
    r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}|\d{8,10}:AA[A-Za-z0-9_-]{32,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|key-[0-9a-f]{32}|[0-9a-f]{32}-us\d{1,2}|(?:AC|SK)[0-9a-f]{32}",
    r"xkeysib-[0-9a-f]{40,}[A-Za-z0-9-]*|re_[A-Za-z0-9]{8,}_[A-Za-z0-9]{16,}",
    # Office and shop services
    r"(?:secret|ntn)_[A-Za-z0-9]{40,}|lin_(?:api|oauth)_[A-Za-z0-9]{30,}|pat[A-Za-z0-9]{14}\.[0-9a-f]{60,}",
    r"fig[dour]_[A-Za-z0-9_-]{20,}|PMAK-[0-9a-f]{24}-[0-9a-f]{30,}|sl\.[A-Za-z0-9_-]{60,}",
    r"shp(?:at|ss|ca|pa|tka)_[0-9A-Fa-f]{30,}|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",
    r"whsec_[A-Za-z0-9+/=]{24,}|EAAA[A-Za-z0-9_-]{40,}|sq0[a-z]{3}-[A-Za-z0-9_-]{22,}",
    r"access_token\$\w+\$[0-9a-z]{16}\$[0-9a-f]{32}|EZ[AT]K[A-Za-z0-9]{40,}",
    r"ops_eyJ[A-Za-z0-9_=-]{40,}|AGE-SECRET-KEY-1[A-Z0-9]{50,}",
    # Made by anyone
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)+",
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
)
"""Forms of keys that are recognised without a name before them."""
_KEY_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-F][0-9A-F]))"
"""A form may not follow a letter or digit, except those of an escape sequence
such as `\\n` or `%20`.
"""

_KEY_KINDS = (
    "api|access|account|admin|auth|client|deploy|encryption|license|master|private|secret"
    "|service|session|shared|signing"
    "|storage|subscription|write"
)
_NAME_AND_VALUE = (
    rf"(?P<name>(?i:(?:{_KEY_KINDS})[ _.-]?key(?:[_-]?id)?|secret|token|passw(?:or)?d|passphrase|pwd|credentials?|dsn)"
    r"(?:[_-]?(?i:prod|dev|test|staging|live|value|\d+))?)"
    r"(?P<sign>\\?[\"'`]?\]?\s{0,4}(?:=>|:=|[=:])\s{0,4})(?P<quote>\\?[\"'`])?"
    r"(?P<value>[^\s\"'`,;<>(){}\[\]\\|]{6,})"
)
"""A name such as `api_key` or `DB_PASSWORD`, and the value that follows it."""

# `Authorization: Bearer abc...`
_HEADER_PATTERN = (
    r"(?i)(?<=bearer )[\w+/=.~-]{8,}|(?<=basic )[\w+/=]{8,}|(?<=token )[A-Za-z0-9_=.-]{20,}"
    r"|(?<=cookie: )[^\r\n\"']{8,}"
)
# `https://user:password@host`, `https://token@host`
_URL_CREDENTIAL = r"(?<=://)[^\s/@:\"'`<>]*:[^\s/@\"'`<>]+(?=@)|(?<=://)[^\s/@:\"'`<>]{16,}(?=@)"
# `?access_token=abc...`
_QUERY_PATTERN = (
    r"(?i)(?<=[?&])([\w-]{0,40}(?:key|token|secret|sig|signature|password|auth|credential|code)[\w-]{0,40}=)"
    r"[^\s&#\"'<>`]{6,}"
)
# `curl -u name:password`, `--api-key abc...`
_OPTION_PATTERN = (
    r"(?<=\s)((?:-u|--user)[ =][\"']?[^\s:\"']+:)[^\s\"']{4,}"
    r"|(?<=\s)(--(?:[\w-]{0,40}-)?(?:password|token|secret|api-key|passphrase)[ =][\"']?)[^\s\"'-][^\s\"']{5,}"
)
# Docker's `"auth": "..."`, a line of .netrc, `mysql -pPASSWORD`
_PROGRAM_PATTERN = (
    r"(\"auth\"\s{0,4}:\s{0,4}\")(?=[a-z+/]*[A-Z0-9])[A-Za-z0-9+/]{12,}={0,2}(?=\")"
    r"|(\blogin\s{1,4}[^\s\"']{1,80}\s{1,4}password\s{1,4})[^\s\"']{4,}"
    r"|(\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;&]{0,80}?\s-p)[^\s\"'-][^\s\"']{3,}"
)
_TERMINAL_COLOUR = r"\x1b\[[0-?]*[ -/]*[@-~]"
# A value that is not a secret itself: `$TOKEN`, `os.environ[...]`, `config.token`, or `****`.
_CODE_REFERENCE = r"(?i)(?:\$\{?|%\(|os\.|process\.|self\.|this\.|[*x.…_-]+$|[a-z_]+\.[a-z_.0-9]+$)"
_PASSWORDS_NAME = r"(?i)passw|passphrase|pwd"


class _SecretPatterns(NamedTuple):
    """The ways in which a secret is recognised: by its form, its surroundings, what is before it,
    or its name.
    """

    key: re.Pattern[str]
    """Matches a secret of a known form."""
    surrounded: re.Pattern[str]
    """Matches a secret by what is around it, such as `://` and `@`."""
    after_prefix: re.Pattern[str]
    """Matches a prefix, such as `--token `, as its only group, and the secret after it."""
    named: re.Pattern[str]
    """Matches a name and a value that may be a secret (see `_is_secret_value`)."""


@cache
def _compile_patterns() -> _SecretPatterns:
    forms = "|".join(_KEY_FORMS)
    return _SecretPatterns(
        key=re.compile(f"{_KEY_START}(?:{forms})", re.DOTALL),
        surrounded=re.compile(f"{_HEADER_PATTERN}|{_URL_CREDENTIAL}"),
        after_prefix=re.compile(f"{_QUERY_PATTERN}|{_OPTION_PATTERN}|{_PROGRAM_PATTERN}"),
        named=re.compile(_NAME_AND_VALUE),
    )


def has_key_or_password(text: str) -> bool:
    """Return whether a text has a key of a known form, or a URL or header with a password."""
    patterns = _compile_patterns()
    return any(
        pattern.search(text)
        for pattern in (patterns.key, patterns.surrounded, patterns.after_prefix)
    )


class SecretHider:
    """Hides secrets in texts, and counts them. `values`: secrets that are known themselves,
    such as stored keys.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self.count = 0
        secrets = sorted(
            {value for value in values if len(value) >= MIN_KNOWN_SECRET_LENGTH},
            key=len,
            reverse=True,
        )
        self._values = (
            re.compile("|".join(re.escape(value) for value in secrets)) if secrets else None
        )

    def hide(self, text: str) -> str:
        """Return a text with each secret replaced by `[hidden]`,
        and without terminal colours: they may split one.
        """
        # Shorter than what any pattern matches.
        if len(text) < 6:
            return text
        text = re.sub(_TERMINAL_COLOUR, "", text) if "\x1b" in text else text
        if self._values is not None:
            text = self._values.sub(self._replace, text)
        patterns = _compile_patterns()
        text = patterns.key.sub(self._replace, text)
        text = patterns.surrounded.sub(self._replace, text)
        text = patterns.after_prefix.sub(self._replace_after_prefix, text)
        return patterns.named.sub(self._replace_value, text)

    def hide_in_json(self, value: Any) -> Any:
        """Return a JSON value with the secrets in its texts hidden,
        even those that only their key gives away.
        """
        if isinstance(value, str):
            return self.hide(value)
        if is_object(value):
            return {self.hide(key): self._hide_member(key, inner) for key, inner in value.items()}
        return [self.hide_in_json(inner) for inner in value] if is_list(value) else value

    def _hide_member(self, key: str, value: Any) -> Any:
        # Written as an assignment, so that the pattern for names and values decides.
        start = f"{key}='"
        if isinstance(value, str) and value and "\n" not in value:
            return self.hide(start + value).removeprefix(start)
        return self.hide_in_json(value)

    def _replace(self, match: re.Match[str]) -> str:
        self.count += match[0] != REPLACEMENT
        return REPLACEMENT

    def _replace_after_prefix(self, match: re.Match[str]) -> str:
        prefix = next(group for group in match.groups() if group)
        self.count += match[0] != prefix + REPLACEMENT
        return prefix + REPLACEMENT

    def _replace_value(self, match: re.Match[str]) -> str:
        if not _is_secret_value(match):
            return match[0]
        self.count += 1
        return f"{match['name']}{match['sign']}{match['quote'] or ''}{REPLACEMENT}"


def _is_secret_value(match: re.Match[str]) -> bool:
    """Return whether the value after a name is a secret itself,
    and not an expression that refers to one.
    """
    name, value, is_quoted = match["name"], match["value"], bool(match["quote"])
    if re.match(_CODE_REFERENCE, value):
        return False
    if re.search(_PASSWORDS_NAME, name) and (is_quoted or name.isupper()):
        return True
    has_letter = any(char.isalpha() for char in value)
    if has_letter and any(char.isdigit() for char in value):
        return len(value) >= 8
    return (is_quoted or name.isupper()) and has_letter and len(value) >= 12 and "/" not in value
