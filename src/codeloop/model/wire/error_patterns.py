"""Recognises what a service's error means: rows of patterns, and the functions that apply them. Pure."""

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
OVERFLOW_TEXT = (
    r"prompt is too long|prompt too long|input is too long|maximum context length|context window"
    r"|context[ _](?:length|size)[ _]exceed|exceeds? (?:the )?(?:available |maximum |max |model.s )?context"
    r"|input token count.{0,40}exceeds|reduce the length of the (?:messages|prompt)|maximum prompt length"
    r"|greater than the context length|exceeded model token limit|too large for model with|request_too_large"
    r"|(?:input|prompt|request) (?:length )?(?:exceeds|is longer than) .{0,40}tokens|tokens? > \d+ maximum"
)
OVERFLOW_STATUS = frozenset({None, 400, 413, 422, 500})
CREDIT_CODES = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached", "insufficient_balance"})
CREDIT_TEXT = (
    r"insufficient[_ ](?:quota|balance|credits?|funds)|exceeded your current quota|billing|credit balance is too low"
    r"|out of credits|payment required|quota exhausted|usage limit reached"
)
MODEL_CODES = frozenset({"model_not_found", "model_not_available", "invalid_model", "DeploymentNotFound"})
MODEL_TEXT = r"model.{0,80}(?:not found|does not exist|not exist|not supported|unknown)|no such model"
PATH_TEXT = (
    r"invalid url|unexpected endpoint|page not found|no route|cannot post"
    r"|(?:unknown|no such) (?:endpoint|path|route|url)"
)
STATUS_OF_TYPE = {
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
TAG = r"<(script|style|head)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>"
TITLE = r"<title[^>]*>(.*?)</title"
FLAGS = re.IGNORECASE | re.DOTALL

KEY_TEXT = r"api[ _]key not valid|API_KEY_INVALID|api key expired|security token included in the request is"
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
REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "cf-ray")
"""Headers with an id by which the service's support finds the request, the most specific first."""


def find_remedy(text: str) -> str:
    """Return the remedy for a service's message, a sentence; empty when none is known."""
    remedies = (words for pattern, words in REMEDIES if re.search(pattern, text[:4_000], FLAGS))
    return next(remedies, "")


def find_request_id(headers: Mapping[str, str], payload: Any) -> str:
    """Return the id that a service has given a request; empty if it names none."""
    match payload:
        case {"request_id": str(name)} | {"error": {"request_id": str(name)}} if name:
            return name[:100]
        case _:
            return next((headers[name][:100] for name in REQUEST_IDS if headers.get(name)), "")


def find_status(payload: Any) -> int | None:
    """Return the HTTP status that an error object inside a stream stands for; None when it does not say."""
    for code in _list_codes(payload):
        if isinstance(code, int) and 400 <= code < 600:
            return code
        if isinstance(code, str):
            if code.isdigit() and 400 <= int(code) < 600:
                return int(code)
            if code in STATUS_OF_TYPE:
                return STATUS_OF_TYPE[code]
    return None


def is_overflow(status: int | None, payload: Any, text: str) -> bool:
    """Return whether the error means that the request exceeds the model's context."""
    if status == 413:
        return True
    if status not in OVERFLOW_STATUS:
        return False
    return any(code in OVERFLOW_CODES for code in _list_codes(payload)) or bool(
        re.search(OVERFLOW_TEXT, text[:4_000], FLAGS)
    )


def is_out_of_credit(status: int | None, payload: Any, text: str) -> bool:
    """Return whether the account has no credit left, so that another try is of no use."""
    if status == 402:
        return True
    if status not in {None, 400, 403, 429} or (status == 429 and '"retryDelay"' in text):
        return False  # a service that says when to try again means its rate, whatever it says of billing
    return any(code in CREDIT_CODES for code in _list_codes(payload)) or bool(
        re.search(CREDIT_TEXT, text[:4_000], FLAGS)
    )


def refuses_key(status: int | None, text: str) -> bool:
    """Return whether the error is about the key despite its status, or about an expired token."""
    return status in {400, 403} and bool(re.search(KEY_TEXT, text[:4_000], FLAGS))


def find_retry_after(payload: Any) -> dict[str, str]:
    """Return when to try again as a `retry-after` header, if the body says so (Google's `RetryInfo`)."""
    match payload:
        case {"error": {"details": [*details]}} | [{"error": {"details": [*details]}}, *_]:
            for detail in details:
                match detail:
                    case {"retryDelay": str(delay)} if re.fullmatch(r"[\d.]+s", delay):
                        return {"retry-after": delay[:-1]}
                    case _:
                        continue
        case _:
            pass
    return {}


def is_missing_model(status: int | None, payload: Any, text: str, model: str) -> bool:
    """Return whether the service does not know the model: it says so, or answers 404 and names the model."""
    if any(code in MODEL_CODES for code in _list_codes(payload)):
        return True
    if status not in {400, 404} or re.search(PATH_TEXT, text[:2_000], FLAGS):
        return False
    if re.search(MODEL_TEXT, text[:2_000], FLAGS):
        return True
    return status == 404 and bool(re.search(rf"(?<![\w/.-]){re.escape(model)}(?![\w/-])", text[:2_000]))


def is_wrong_path(status: int | None, text: str) -> bool:
    """Return whether the service has nothing at the path of the request, so that the base URL is wrong."""
    return status in {404, 405, 501} or (status in {None, 400} and bool(re.search(PATH_TEXT, text[:2_000], FLAGS)))


def extract_message(text: str, payload: Any = None) -> str:
    """Return the message of an error's body, or the text of its HTML, on one line."""
    if (message := _message(payload)) is not None:
        return " ".join(message.split())
    sample = text[:20_000]
    if "<" in sample and (title := re.search(TITLE, sample, FLAGS)):
        sample = title[1]
    elif sample.lstrip().startswith("<"):
        sample = re.sub(TAG, " ", sample, flags=FLAGS)
    return " ".join(sample.split())[:300] or "no reason given"


def _message(payload: Any) -> str | None:
    match payload:
        case {"error": {"message": str(message), "metadata": {"raw": str(raw)}}} if message and raw:
            return f"{message}: {raw[:300]}"
        case {"error": {"message": str(message)}} | {"error": str(message)} if message:
            return message
        case {"message": str(message)} | {"detail": str(message)} | {"error_msg": str(message)} if message:
            return message
        case {"message": {"detail": [{"msg": str(message)}, *_]}} | {"detail": [{"msg": str(message)}, *_]}:
            return message
        case [first, *_]:
            return _message(first)
        case str(message) if message:
            return message
        case _:
            return None


def _list_codes(payload: Any) -> list[Any]:
    """Return every code, type and status of an error object, the most specific first; values of any type."""
    match payload:
        case {"error": {} as inner}:
            return [*_list_codes(inner), payload.get("code"), payload.get("type")]
        case {}:
            return [payload.get("code"), payload.get("type"), payload.get("status")]
        case [first, *_]:
            return _list_codes(first)
        case _:
            return []
