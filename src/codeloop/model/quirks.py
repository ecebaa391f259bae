"""Vendors' deviations from their wire protocol, as rows of data that the adapters read.

A request with a field or value that a service does not know is mostly refused as a whole.
"""

import re
from typing import Literal

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.kit.wildcard import matches
from codeloop.model.catalog.services import find_protocol
from codeloop.model.chat import ModelInfo
from codeloop.model.wire.tool_schema import SchemaDialect
from codeloop.schema.wire import JSON, replace

AnswerFormat = Literal[
    "", "response_format", "output_config", "generation_config", "interaction_format"
]
"""Which body fields carry the JSON Schema of an answer; what they look like:
`wire/structured_output.py`.
"""


class Quirks(Struct, frozen=True):
    """One vendor's differences from the common form of its protocol;
    the defaults fit most services.
    """

    max_tokens_field: str = "max_tokens"
    truncates_answers: bool = False
    """The service cuts answers at a few thousand tokens unless a request sets its own maximum."""
    omitted: frozenset[str] = frozenset()
    """Fields that are left out of bodies, by path (`reasoning.summary`), and features of messages
    (`phase`, `strict`, `earlier thinking`).
    """
    accepts_sampling: bool = True
    """The service accepts `temperature` and `top_p`.
    False: it only accepts the defaults, so none is sent.
    """
    system_role: str = "system"
    reasoning_field: str = ""
    """The field of an assistant message that carries earlier thinking.
    The catalog's row of a model overrides it.
    """
    refused_keywords: frozenset[str] = frozenset()
    """JSON Schema keywords that the vendor rejects: they are not sent,
    but calls are still validated with them.
    """
    schema_dialect: SchemaDialect = ""
    parallel_tool_calls: bool | None = None
    """The value of `parallel_tool_calls` in requests with tools; None: the field is not sent."""
    session_field: str = ""
    """The field that routes a session's requests to one prompt cache."""
    accepts_images: bool = True
    """The service accepts images, if the model does."""
    accepts_pdf: bool = True
    """The service accepts PDF files, if the model does."""
    call_id_length: int = 0
    """Call ids must have exactly this many letters and digits; 0: any."""
    accepts_cache_marks: bool = True
    """The service accepts Anthropic's `cache_control`."""
    accepts_hour_marks: bool = False
    """The service accepts `cache_control` with a lifetime of one hour."""
    cache_marked_models: tuple[str, ...] = ()
    """Models, by wildcard, that need `cache_control` in chat completions: without it
    the gateway caches nothing.
    """
    cache_minutes: int = 5
    """The lifetime of the service's prompt cache after the last request that used it."""
    answer_format: AnswerFormat = ""
    """The field that carries the JSON Schema of an answer, also together with tools.
    "": a tool is used instead.
    """
    models_without_answer_format: tuple[str, ...] = ()
    """Models, by wildcard, that do not support `answer_format`."""
    supports_forced_call: bool = True
    """The service supports a forced tool call (`tool_choice`)."""
    reasoning_summary: str = ""
    """How summaries of thinking are requested in the Responses protocol; "": not at all."""
    patch_grammar_models: tuple[str, ...] = ()
    """Models, by wildcard, for which the patch tool is a free-form tool: its argument
    is plain text of a grammar.
    """
    initiator_header: str = ""
    """A header that says who caused the request: "user" (a prompt) or "agent" (the
    requests that follow from it).
    """
    headers: dict[str, str] = struct_field(default_factory=dict[str, str])
    """Headers of every request."""
    option_names: dict[str, str] = struct_field(default_factory=dict[str, str])
    """Spellings of body fields in the configuration -> on the wire."""


ADAPTIVE_MODEL_PATTERN = r"claude-(?:opus|sonnet|haiku|fable|mythos)-(?:4[.-][7-9]|[5-9])"
"""Claude models that accept an effort in place of a thinking budget, and no temperature."""
# The configuration uses the names of the AI SDK; most services those of OpenAI's chat completions.
OPTION_NAMES = {
    "reasoningEffort": "reasoning_effort",
    "textVerbosity": "verbosity",
    "parallelToolCalls": "parallel_tool_calls",
    "serviceTier": "service_tier",
    "topP": "top_p",
    "topK": "top_k",
    "maxTokens": "max_tokens",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
    "promptCacheKey": "prompt_cache_key",
    "toolChoice": "tool_choice",
    "budgetTokens": "budget_tokens",
}

OFTEN_REFUSED_KEYWORDS = frozenset({"additionalProperties", "default"})
"""Schema keywords that some services reject: only services that are known
to support them get them.
"""
CONSTRAINT_KEYWORDS = frozenset(
    {
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "minItems",
        "maxItems",
        "uniqueItems",
        "multipleOf",
    }
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
"""Schema keywords that make requests fail at some of the services that
compile schemas to grammars.
"""
GRAMMAR_REFUSED_KEYWORDS = OFTEN_REFUSED_KEYWORDS | CONSTRAINT_KEYWORDS

COMPATIBLE_QUIRKS = Quirks(refused_keywords=OFTEN_REFUSED_KEYWORDS, option_names=OPTION_NAMES)
OPENAI_QUIRKS = Quirks(
    # Reasoning models refuse `max_tokens`, and know instructions as those of the developer.
    max_tokens_field="max_completion_tokens",
    system_role="developer",
    # Requests of a session go to the machine that has its cache.
    session_field="prompt_cache_key",
    cache_minutes=60,
    refused_keywords=GRAMMAR_REFUSED_KEYWORDS,
    answer_format="response_format",
    reasoning_summary="auto",
    # These were trained to write patches as plain text.
    patch_grammar_models=("gpt-5*", "gpt-6*", "gpt-7*", "gpt-8*", "gpt-9*", "gpt-1?*", "*codex*"),
    # Structured outputs began with `gpt-4o-2024-08-06`.
    models_without_answer_format=(
        "gpt-3.5*",
        "gpt-4",
        "gpt-4-*",
        "gpt-4o-2024-05-13",
        "o1-mini*",
        "o1-preview*",
        "chatgpt-*",
    ),
    option_names=OPTION_NAMES,
)
OPENAI_LIKE_QUIRKS = replace(
    OPENAI_QUIRKS,
    refused_keywords=OFTEN_REFUSED_KEYWORDS,
    answer_format="",
    reasoning_summary="",
    patch_grammar_models=(),
)
"""The row of any other service whose `npm` is that of OpenAI."""
ANTHROPIC_QUIRKS = Quirks(
    accepts_hour_marks=True,
    answer_format="output_config",
    # Models before Opus 4.1 and Sonnet 4.5.
    models_without_answer_format=(
        *(
            "claude-2*",
            "claude-3*",
            "claude-instant*",
            "claude-opus-4",
            "claude-opus-4-0",
            "claude-opus-4-2*",
        ),
        *("claude-sonnet-4", "claude-sonnet-4-0", "claude-sonnet-4-2*"),
    ),
    option_names=OPTION_NAMES,
)
KIMI_QUIRKS = replace(
    COMPATIBLE_QUIRKS,
    reasoning_field="reasoning_content",
    session_field="prompt_cache_key",
    schema_dialect="moonshot",
)
AZURE_QUIRKS = Quirks(
    max_tokens_field="max_completion_tokens",
    system_role="developer",
    refused_keywords=OFTEN_REFUSED_KEYWORDS,
    answer_format="response_format",
    models_without_answer_format=OPENAI_QUIRKS.models_without_answer_format,
    session_field="prompt_cache_key",
    reasoning_summary="auto",
    patch_grammar_models=OPENAI_QUIRKS.patch_grammar_models,
    option_names=OPTION_NAMES,
)
GOOGLE_QUIRKS = Quirks(
    cache_minutes=60,
    answer_format="generation_config",
    models_without_answer_format=("gemini-1*", "gemini-2*", "gemma*"),
    option_names={"budgetTokens": "thinkingBudget", "maxTokens": "maxOutputTokens"},
)
"""`models_without_answer_format` are those before Gemini 3,
which refuse tools together with an answer format.
"""
INTERACTIONS_QUIRKS = Quirks(
    cache_minutes=60,
    answer_format="interaction_format",
    refused_keywords=OFTEN_REFUSED_KEYWORDS,
    models_without_answer_format=GOOGLE_QUIRKS.models_without_answer_format,
    option_names={
        **OPTION_NAMES,
        "maxTokens": "max_output_tokens",
        "thinkingLevel": "thinking_level",
        "stopSequences": "stop_sequences",
        "safetySettings": "safety_settings",
    },
)
BEDROCK_QUIRKS = Quirks(
    refused_keywords=frozenset({"default"}),
    option_names={
        "budgetTokens": "budget_tokens",
        "reasoningEffort": "reasoning_effort",
        "topK": "top_k",
    },
)
QUIRKS_BY_PROTOCOL: dict[str, Quirks] = {
    "anthropic-vertex": ANTHROPIC_QUIRKS,
    "google-generate-content": GOOGLE_QUIRKS,
    "google-interactions": INTERACTIONS_QUIRKS,
    "bedrock-converse": BEDROCK_QUIRKS,
}
"""Quirks by protocol. They replace the provider's row."""

QUIRKS_BY_PROVIDER: dict[str, Quirks] = {
    "openai": OPENAI_QUIRKS,
    "azure": AZURE_QUIRKS,
    "anthropic": ANTHROPIC_QUIRKS,
    "google": GOOGLE_QUIRKS,
    "deepseek": Quirks(
        truncates_answers=True,
        cache_minutes=24 * 60,
        accepts_images=False,
        accepts_pdf=False,
        refused_keywords=OFTEN_REFUSED_KEYWORDS,
        supports_forced_call=False,
        reasoning_field="reasoning_content",
        option_names=OPTION_NAMES,
    ),
    "azure-cognitive-services": AZURE_QUIRKS,
    # It counts the prompts of users, not the requests that follow from them.
    "github-copilot": replace(
        COMPATIBLE_QUIRKS,
        max_tokens_field="max_completion_tokens",
        reasoning_summary="auto",
        initiator_header="x-initiator",
        headers={"openai-intent": "conversation-edits"},
    ),
    **dict.fromkeys(("moonshotai", "moonshotai-cn", "kimi-for-coding"), KIMI_QUIRKS),
    "mistral": Quirks(
        # It counts tokens in any case, and refuses the option.
        omitted=frozenset({"stream_options"}),
        # It refuses ids of other services, which a history has after a change of the model.
        call_id_length=9,
        accepts_pdf=False,
        refused_keywords=GRAMMAR_REFUSED_KEYWORDS,
        option_names=OPTION_NAMES,
    ),
    "groq": Quirks(
        max_tokens_field="max_completion_tokens",
        accepts_pdf=False,
        refused_keywords=GRAMMAR_REFUSED_KEYWORDS,
        option_names=OPTION_NAMES,
    ),
    "cerebras": Quirks(
        max_tokens_field="max_completion_tokens",
        accepts_pdf=False,
        refused_keywords=GRAMMAR_REFUSED_KEYWORDS,
        option_names=OPTION_NAMES,
    ),
    "xai": Quirks(
        accepts_pdf=False,
        session_field="prompt_cache_key",
        refused_keywords=OFTEN_REFUSED_KEYWORDS,
        answer_format="response_format",
        models_without_answer_format=("grok-2*", "grok-3*", "grok-beta"),
        option_names=OPTION_NAMES,
    ),
    "fireworks-ai": replace(COMPATIBLE_QUIRKS, truncates_answers=True),
    "openrouter": replace(COMPATIBLE_QUIRKS, cache_marked_models=("*claude*",)),
    # These compile schemas to grammars with llama.cpp;
    # vLLM and SGLang have engines for more of JSON Schema.
    "ollama": Quirks(
        accepts_pdf=False, refused_keywords=GRAMMAR_REFUSED_KEYWORDS, option_names=OPTION_NAMES
    ),
    "lmstudio": Quirks(
        accepts_pdf=False, refused_keywords=GRAMMAR_REFUSED_KEYWORDS, option_names=OPTION_NAMES
    ),
    "llama.cpp": Quirks(
        accepts_pdf=False, refused_keywords=GRAMMAR_REFUSED_KEYWORDS, option_names=OPTION_NAMES
    ),
    "vllm": Quirks(
        accepts_pdf=False, refused_keywords=OFTEN_REFUSED_KEYWORDS, option_names=OPTION_NAMES
    ),
    "sglang": Quirks(
        accepts_pdf=False, refused_keywords=OFTEN_REFUSED_KEYWORDS, option_names=OPTION_NAMES
    ),
    "docker-model-runner": Quirks(
        accepts_pdf=False, refused_keywords=GRAMMAR_REFUSED_KEYWORDS, option_names=OPTION_NAMES
    ),
}
"""Quirks by provider id; see `find_quirks` for other providers."""
# Providers without a row of their own whose models mostly speak one protocol that has a row.
_PROVIDERS_OF_A_PROTOCOL = {"google-vertex": GOOGLE_QUIRKS}


class FamilyQuirks(Struct, frozen=True):
    """Quirks of a model family with any provider: name wildcards, and the changed fields."""

    models: tuple[str, ...]
    changes: JSON


# Kimi's reasoning models refuse every temperature but their own, at each host.
FAMILY_ROWS = (
    FamilyQuirks(("*kimi-k2*", "*kimi-k3*", "*kimi-for-coding*"), {"accepts_sampling": False}),
)
"""Each row that matches a model overrides its provider's row."""


def find_quirks(info: ModelInfo) -> Quirks:
    """Return the quirks of a model: the row of its protocol, else of its provider,
    with the changes of its families.
    """
    common = OPENAI_LIKE_QUIRKS if info.npm == "@ai-sdk/openai" else COMPATIBLE_QUIRKS
    row = (
        QUIRKS_BY_PROTOCOL.get(find_protocol(info) or "")
        or QUIRKS_BY_PROVIDER.get(info.provider_id)
        or common
    )
    name = (info.api_id or info.id).lower()
    for family in FAMILY_ROWS:
        if any(matches(name, pattern) for pattern in family.models):
            row = replace(row, **family.changes)
    # Adaptive models of Claude refuse a temperature,
    # also behind gateways that speak another protocol.
    return replace(row, accepts_sampling=False) if re.search(ADAPTIVE_MODEL_PATTERN, name) else row


def get_cache_lifetime(provider_id: str) -> int:
    """Return the lifetime (ms) of a provider's prompt cache after the last request that used it.

    By the provider alone: a stored answer, about whose request it is asked,
    does not name its protocol.
    """
    row = _PROVIDERS_OF_A_PROTOCOL.get(provider_id) or QUIRKS_BY_PROVIDER.get(
        provider_id, COMPATIBLE_QUIRKS
    )
    return row.cache_minutes * 60_000


def accepts_attachment(info: ModelInfo, quirks: Quirks, mime: str) -> bool:
    """Return whether the model accepts attachments of a mime type.
    Only images and PDF files can be accepted.
    """
    if mime.startswith("image/"):
        return quirks.accepts_images and ("image" in info.input or info.attachment)
    if mime == "application/pdf":
        return quirks.accepts_pdf and (
            "pdf" in info.input or (info.attachment and "image" in info.input)
        )
    return False
