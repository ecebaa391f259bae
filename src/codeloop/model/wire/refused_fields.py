"""Finds the optional field of a request that a service refused, and leaves it out of later ones.
Imported only after a refusal, or where one is known.
"""

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from msgspec import Struct

from codeloop.kit.jsonc import is_list, is_object
from codeloop.model.quirks import Quirks
from codeloop.schema.errors import APIError
from codeloop.schema.wire import JSON, decode_json, replace

_STATUSES = frozenset({None, 400, 422, 500, 501})
"""Statuses of a refusal; None: it came inside a stream. Some servers (llama.cpp) answer 500."""
_SEARCHED_CHARS = 4_000
_NEAR_CHARS = 80
"""How far from a field's name the words that refuse it may stand."""
_REQUIRED = frozenset(
    {"model", "messages", "input", "contents", "stream", "tools", "anthropic_version"}
    | {"system", "instructions", "systemInstruction", "system_instruction", "toolConfig"}
)
"""Fields without which a request makes no sense."""
_REFUSAL = re.compile(
    r"\b(?:un(?:known|recogni[sz]ed|supported|expected|available|permitted)|deprecated|extraneous)"
    r"|\b(?:not|n't|no longer) (?:be )?(?:support|permit|allow|recogni[sz]|accept|known|available|valid)"
    r"|extra[_ ](?:inputs|fields|forbidden)|cannot both|additional ?propert|no support for"
    r"|\bonly\b.{0,40}\b(?:allowed|supported|default|valid|permitted|set to)",
    re.IGNORECASE | re.DOTALL,
)
_VALUES = re.compile(
    r"\b(?:unsupported|unknown|invalid) (?:value|variant)"
    r"|\b(?:supported|valid|allowed|accepted|possible|permitted) (?:values?|options?|choices)\b"
    r"|\b(?:must|should|has to|can only) be (?:one of|either)\b",
    re.IGNORECASE,
)
"""What names values: the service knows the field, but not what was sent in it."""
_ONLY_DEFAULT = re.compile(r"\bonly the default\b", re.IGNORECASE)
_NAMED = r"\b(?:param(?:eter)?|argument|field|property|option|key)s?(?: supplied)?\W{1,3}"
_IN_ITEM = re.compile(r"(?:tools|messages|input|contents)(?:\[|\.)\d", re.IGNORECASE)
_ALONE = frozenset({"temperature", "thinking", "effort", "verbosity"})
"""Fields of one word whose name needs no quotes to be told from other words."""


class _Row(Struct, frozen=True):
    """A feature that is no field at the top of a body. `mark`: what a body with it holds;
    `is_lasting`: False: only this conversation is refused.
    """

    feature: str
    pattern: str
    mark: bytes
    is_lasting: bool = True


_ROWS = (
    # Accounts without a verified organization get no summaries.
    _Row("reasoning.summary", r"reasoning[. ]summar(?:y|ies)", b'"summary":'),
    _Row("include", r"encrypted.?content.{0,40}not supported", b'"include":'),
    _Row(
        "earlier thinking",
        (
            r"invalid_encrypted_content|encrypted content.{0,60}(?:could not|cannot|can't|failed)"
            r"|item with id .?rs_\w+.{0,20}not found|item '?rs_\w+'? of type 'reasoning'"
        ),
        b'"type":"reasoning"',
        is_lasting=False,
    ),
    _Row(
        "phase",
        rf"(?:{_REFUSAL.pattern}).{{0,60}}\bphase\b|\bphase['\"`]?.{{0,30}}(?:{_REFUSAL.pattern})",
        b'"phase":',
    ),
    _Row(
        "strict",
        rf"\bstrict['\"`]?.{{0,60}}(?:{_REFUSAL.pattern})|(?:{_REFUSAL.pattern}).{{0,60}}['\"`.]strict\b",
        b'"strict":',
    ),
    _Row("cache_control.ttl", r"cache_?control.{0,30}\bttl\b|['\"`.]ttl['\"`:]", b'"ttl":'),
    _Row(
        "cache_control",
        rf"cache_?control.{{0,80}}(?:{_REFUSAL.pattern})|(?:{_REFUSAL.pattern}).{{0,80}}cache_?control",
        b'"cache_control":',
    ),
    _Row("cache_control", r"cache ?points?", b'"cachePoint":'),
    _Row(
        "developer",
        r"\brole.{0,80}\bdeveloper\b|\bdeveloper\b.{0,80}\brole|['\"`]developer['\"`]|unexpected message role",
        b'"role":"developer"',
    ),
)
"""The first whose pattern matches, and that a body has, is left out."""


class RefusedField(Struct, frozen=True):
    """A field that was refused. `is_lasting`: not for this conversation alone.
    `is_value`: only the value that was sent in it: another may be accepted.
    """

    name: str
    is_lasting: bool = True
    is_value: bool = False


def find_refused_field(body: bytes, error: APIError) -> RefusedField | None:
    """Return the optional field of a request's body that an error refuses; None: it names none."""
    data = error.data
    if data.status_code not in _STATUSES:
        return None
    said = _read_reason(data.response_body or data.message)
    # "Unexpected error during thinking" is a failure, no refusal: the name has to stand as one.
    is_failure = data.status_code is None or data.status_code >= 500
    for row in _ROWS:
        if row.mark in body and re.search(row.pattern, said, re.IGNORECASE | re.DOTALL):
            if is_failure and _REFUSAL.pattern in row.pattern:
                named = _make_pattern(row.feature, is_failure=True)
                if not re.search(named, said, re.IGNORECASE | re.MULTILINE):
                    continue
            is_value = row.feature != "developer" and _refuses_value(said, None)
            return RefusedField(row.feature, row.is_lasting, is_value)
    if _IN_ITEM.search(said):
        return None
    head: Any = decode_json(body)
    matches = [
        (match.start(), -len(path), path, value)
        for path, value in _list_paths({name: head[name] for name in head.keys() - _REQUIRED})
        for match in re.finditer(
            _make_pattern(path, is_failure=is_failure), said, re.IGNORECASE | re.MULTILINE
        )
        if _REFUSAL.search(said, max(match.start() - _NEAR_CHARS, 0), match.end() + _NEAR_CHARS)
    ]
    if not matches:
        return None
    # A list of the fields that are known may follow.
    _, _, path, value = min(matches, key=itemgetter(0, 1))
    # An object without its `type` is refused as well.
    return RefusedField(path.removesuffix(".type"), is_value=_refuses_value(said, value))


def _refuses_value(said: str, value: Any) -> bool:
    """Return whether a refusal of a field is one of the value that was sent in it."""
    # Leaving the field out sends the default.
    if _ONLY_DEFAULT.search(said):
        return False
    quoted = isinstance(value, str) and re.search(rf"['\"`]{re.escape(value)}['\"`]", said)
    return bool(quoted or _VALUES.search(said))


def leave_out(quirks: Quirks, name: str) -> Quirks | None:
    """Return the quirks of a service that refuses a field; None: it was left out before."""
    match name:
        case "developer":
            changed = replace(quirks, system_role="system")
        case "cache_control.ttl":
            changed = replace(quirks, accepts_hour_marks=False)
        case "cache_control":
            changed = replace(quirks, accepts_cache_marks=False, cache_marked_models=())
        case _:
            changed = replace(quirks, omitted=quirks.omitted | {name})
    if changed == quirks:
        return None
    if name not in {"max_tokens", "max_completion_tokens"}:
        return changed
    other = "max_tokens" if name == "max_completion_tokens" else "max_completion_tokens"
    names = {**quirks.option_names, "maxTokens": other, name: other}
    return replace(changed, max_tokens_field=other, option_names=names)


def describe_refusal(refused: RefusedField, host: str, model: str, said: str) -> str:
    """Return the line for the user about a field that is left out from now on, or this once."""
    name = refused.name
    if refused.is_value:
        return f"{said} This request goes to {host} without `{name}`."
    loss = " Token counts may be missing then." if name.startswith("stream_options") else ""
    return f"{said} From now on requests for {model} go to {host} without `{name}`.{loss}"


def _read_reason(text: str) -> str:
    """Return the texts of an error's body, a value a line: its keys are no field of ours."""
    try:
        values = list(_list_texts(decode_json(text)))
    except (ValueError, RecursionError):
        values = []
    return "\n".join(values or [text])[:_SEARCHED_CHARS]


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for member in value.values() if is_object(value) else value if is_list(value) else ():
        yield from _list_texts(member)


def _list_paths(fields: JSON, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the paths and values of a body's fields, those inside of objects too:
    `reasoning.effort`.
    """
    for name, value in fields.items():
        yield prefix + name, value
        if is_object(value) and prefix.count(".") < 2:
            yield from _list_paths(value, f"{prefix}{name}.")


def _make_pattern(path: str, *, is_failure: bool) -> str:
    """Return a pattern of a field's name as services write it: `reasoningEffort`, `tool choice`.
    Of a failure: only in quotes, as "parameter X", or alone on a line.
    """
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", path)
    leaf = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", path.rpartition(".")[2])
    spelled = r"(?<![A-Za-z0-9_])" + r"[\W_]{0,6}".join(words) + r"(?![A-Za-z0-9_])"
    if len(leaf) > 1 or (leaf and leaf[0] in _ALONE):
        spelled = r"(?<![A-Za-z0-9_])" + r"[_ -]?".join(leaf) + rf"(?![A-Za-z0-9_])|{spelled}"
    elif len(words) == 1 and not is_failure:
        # `store` is also a word of sentences.
        return rf"['\"`]{path}['\"`]|{_NAMED}{path}\b|^{path}(?=\s*(?::|$))"
    if not is_failure:
        return spelled
    return rf"['\"`][\w.\[\]]*(?:{spelled})['\"`]|{_NAMED}(?:{spelled})|^(?:{spelled})$"
