"""Classifies the errors of services: rows of codes and patterns, and the functions that apply them.
Pure.

Services agree on neither statuses nor codes, so most is recognised by what their messages say.
"""

import re
from collections.abc import Mapping
from typing import Any

OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded",
        "request_too_large",
        "string_above_max_length",
    }
)
OVERFLOW_PATTERN = (
    r"prompt is too long|prompt too long|input is too long|maximum context length|context window"
    r"|context[ _](?:length|size)[ _]exceed|exceeds? (?:the )?(?:available |maximum |max |model.s )?context"
    r"|input token count.{0,40}exceeds|reduce the length of the (?:messages|prompt)|maximum prompt length"
    r"|greater than the context length|exceeded model token limit|too large for model with|request_too_large"
    r"|(?:input|prompt|request) (?:length )?(?:exceeds|is longer than) .{0,40}tokens|tokens? > \d+ maximum"
)
# None: an error inside a stream. 500: some local servers answer so when the context is full.
OVERFLOW_STATUSES = frozenset({None, 400, 413, 422, 500})
CREDIT_CODES = frozenset(
    {"insufficient_quota", "billing_error", "billing_hard_limit_reached", "insufficient_balance"}
)
CREDIT_PATTERN = (
    r"insufficient[_ ](?:quota|balance|credits?|funds)|exceeded your current quota|billing|credit balance is too low"
    r"|out of credits|payment required|quota exhausted|usage limit reached"
)
MISSING_MODEL_CODES = frozenset(
    {"model_not_found", "model_not_available", "invalid_model", "DeploymentNotFound"}
)
MISSING_MODEL_PATTERN = (
    r"model.{0,80}(?:not found|does not exist|not exist|not supported|unknown)|no such model"
)
# OpenAI: "Invalid URL"; LM Studio: "Unexpected endpoint"; servers in Go: "page not found";
# Express: "Cannot POST".
WRONG_PATH_PATTERN = (
    r"invalid url|unexpected endpoint|page not found|no route|cannot post"
    r"|(?:unknown|no such) (?:endpoint|path|route|url)"
)
# An error that comes inside a stream has no HTTP status: its type or code stands for one.
STATUS_BY_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "server_error": 500,
    "internal_server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
    "model_not_found": 404,
    "content_filter": 400,
}
# Scripts and styles are removed with their content, other elements only by their tags.
TAG_PATTERN = r"<(script|style|head)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>"
TITLE_PATTERN = r"<title[^>]*>(.*?)</title"
PATTERN_FLAGS = re.IGNORECASE | re.DOTALL
SEARCHED_CHARACTERS = 4_000
"""How much of the beginning of a body is searched: it says what is wrong;
what follows may repeat the request.
"""
ADDRESS_SEARCHED_CHARACTERS = 2_000
"""The same for what is said about models and paths, which a long web page may name by chance."""

KEY_REFUSAL_PATTERN = r"api[ _]key not valid|API_KEY_INVALID|api key expired|security token included in the request is"
REMEDIES = (
    (
        r"organi[sz]ation must be verified|verify organi[sz]ation",
        "Verify the organization in the account's settings there, or choose another model.",
    ),
    (
        (
            r"unsupported_country|country, region,? or territory|not (?:available|supported) in your (?:country|region)"
            r"|user location is not supported|not available from your location"
        ),
        "The service does not answer from where you are: choose another provider, or a proxy that you may use.",
    ),
    (
        r"content.?filter|content management policy|content_policy|safety system|flagged as potentially",
        "The service's filter stopped it. Ask in other words, or /undo the prompt whose text or file it is about.",
    ),
    (
        (
            r"model.{0,80}(?:has been|is|was) (?:deprecated|retired|decommissioned|shut down|sunset)"
            r"|model.{0,80}(?:end of life|no longer (?:available|supported))"
        ),
        "The model is not served any more: choose another one.",
    ),
    (
        r"not have (?:access|permission).{0,60}model|access to (?:the )?model|model.{0,60}not (?:enabled|allowed) for",
        "The account may not use this model: enable it in the account's settings there, or choose another one.",
    ),
    (
        r"on-demand throughput is|ARN of an inference profile",
        "Choose its id with a region in front (us., eu., global., ...): `codeloop models amazon-bedrock` lists them.",
    ),
    (
        r"SERVICE_DISABLED|has not been used in project",
        "Enable the API for the project, wait a minute, and try again.",
    ),
    (
        r"signature we calculated does not match|signature expired|SignatureDoesNotMatch|RequestTimeTooSkewed",
        "Check the secret access key, and this machine's clock.",
    ),
    (
        r"zero data retention|data retention",
        "The account's data policy excludes this: choose another model, or change the policy.",
    ),
)
"""Patterns of services' messages -> the remedy; the first match counts."""
# The first is common; then Anthropic, Amazon, Azure, and Cloudflare,
# which stands before many services.
REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "cf-ray")
"""Headers with an id by which the service's support finds the request;
the first that is set counts.
"""


def find_remedy(text: str) -> str:
    """Return the remedy for a service's message, a sentence; empty when none is known."""
    searched_text = text[:SEARCHED_CHARACTERS]
    return next(
        (
            remedy
            for pattern, remedy in REMEDIES
            if re.search(pattern, searched_text, PATTERN_FLAGS)
        ),
        "",
    )


def find_request_id(headers: Mapping[str, str], payload: Any) -> str:
    """Return the id that a service has given a request; empty if it names none."""
    match payload:
        case {"request_id": str(name)} | {"error": {"request_id": str(name)}} if name:
            return name[:100]
        case _:
            return next(
                (headers[name][:100] for name in REQUEST_ID_HEADERS if headers.get(name)), ""
            )


def find_status(payload: Any) -> int | None:
    """Return the HTTP status that an error object inside a stream stands for;
    None when it does not say.
    """
    for code in _list_codes(payload):
        if isinstance(code, int) and 400 <= code < 600:
            return code
        if isinstance(code, str):
            if code.isdigit() and 400 <= int(code) < 600:
                return int(code)
            if code in STATUS_BY_TYPE:
                return STATUS_BY_TYPE[code]
    return None


def is_overflow(status: int | None, payload: Any, text: str) -> bool:
    """Return whether the error means that the request exceeds the model's context."""
    # Anthropic's `request_too_large`: by bytes, not by tokens, but less conversation helps as well.
    if status == 413:
        return True
    if status not in OVERFLOW_STATUSES:
        return False
    return any(code in OVERFLOW_CODES for code in _list_codes(payload)) or bool(
        re.search(OVERFLOW_PATTERN, text[:SEARCHED_CHARACTERS], PATTERN_FLAGS)
    )


def is_out_of_credit(status: int | None, payload: Any, text: str) -> bool:
    """Return whether the account has no credit left, so that another try is of no use."""
    if status == 402:
        return True
    if status not in {None, 400, 403, 429} or (status == 429 and '"retryDelay"' in text):
        # Google's message about a rate limit mentions billing,
        # but its `RetryInfo` shows that waiting helps.
        return False
    return any(code in CREDIT_CODES for code in _list_codes(payload)) or bool(
        re.search(CREDIT_PATTERN, text[:SEARCHED_CHARACTERS], PATTERN_FLAGS)
    )


def is_key_refusal(status: int | None, text: str) -> bool:
    """Return whether a 400 or 403 is about the key, as at Google (400: wrong key) and
    Amazon (403: expired token).
    """
    return status in {400, 403} and bool(
        re.search(KEY_REFUSAL_PATTERN, text[:SEARCHED_CHARACTERS], PATTERN_FLAGS)
    )


def is_missing_model(status: int | None, payload: Any, text: str, model: str) -> bool:
    """Return whether the service does not know the model: by code or message,
    or a 404 that names the model.
    """
    if any(code in MISSING_MODEL_CODES for code in _list_codes(payload)):
        return True
    searched_text = text[:ADDRESS_SEARCHED_CHARACTERS]
    if status not in {400, 404} or re.search(WRONG_PATH_PATTERN, searched_text, PATTERN_FLAGS):
        return False
    if re.search(MISSING_MODEL_PATTERN, searched_text, PATTERN_FLAGS):
        return True
    # Many services only repeat the name. Not as a part of a longer one: the path of
    # a request may hold it too.
    return status == 404 and bool(
        re.search(rf"(?<![\w/.-]){re.escape(model)}(?![\w/-])", searched_text)
    )


def is_wrong_path(status: int | None, text: str) -> bool:
    """Return whether the service has nothing at the path of the request,
    so that the base URL is probably wrong.
    """
    return status in {404, 405, 501} or (
        status in {None, 400}
        and bool(re.search(WRONG_PATH_PATTERN, text[:ADDRESS_SEARCHED_CHARACTERS], PATTERN_FLAGS))
    )


def extract_message(text: str, payload: Any = None) -> str:
    """Return the message of an error's body, or the text of its HTML, on one line."""
    if (message := _find_message(payload)) is not None:
        return " ".join(message.split())
    # Not JSON: probably the HTML page of a proxy, whose title says most.
    sample = text[:20_000]
    if "<" in sample and (title := re.search(TITLE_PATTERN, sample, PATTERN_FLAGS)):
        sample = title[1]
    elif sample.lstrip().startswith("<"):
        sample = re.sub(TAG_PATTERN, " ", sample, flags=PATTERN_FLAGS)
    return " ".join(sample.split())[:300] or "no reason given"


def _find_message(payload: Any) -> str | None:
    match payload:
        # OpenRouter's own message is only "Provider returned error";
        # that of the provider is in `raw`.
        case {"error": {"message": str(message), "metadata": {"raw": str(raw)}}} if message and raw:
            return f"{message}: {raw[:300]}"
        case {"error": {"message": str(message)}} | {"error": str(message)} if message:
            return message
        case {"message": str(message)} | {"detail": str(message)} | {"error_msg": str(message)} if (
            message
        ):
            return message
        # The list is FastAPI's form of invalid requests, in which Mistral answers.
        case {"message": {"detail": [{"msg": str(message)}, *_]}} | {
            "detail": [{"msg": str(message)}, *_]
        }:
            return message
        # Google wraps errors of streams in a list.
        case [first, *_]:
            return _find_message(first)
        case str(message) if message:
            return message
        case _:
            return None


def _list_codes(payload: Any) -> list[Any]:
    """Return every code, type and status of an error object, the most specific first;
    values of any type.
    """
    match payload:
        case {"error": {} as inner}:
            return [*_list_codes(inner), payload.get("code"), payload.get("type")]
        case {}:
            return [payload.get("code"), payload.get("type"), payload.get("status")]
        case [first, *_]:
            return _list_codes(first)
        case _:
            return []
