"""Vendors' deviations from their wire protocol, as rows of data."""

import re
from typing import Literal

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.kit.wildcard import matches
from codeloop.model.catalog.services import protocol_of
from codeloop.model.chat import ModelInfo
from codeloop.model.wire.tool_schema import SchemaDialect
from codeloop.schema.wire import JSON, replace

AnswerFormat = Literal["", "response_format", "output_config", "generation_config", "interaction_format"]


class Quirks(Struct, frozen=True):
    """One vendor's differences from the common form of its protocol; the defaults fit most services."""

    max_tokens_field: str = "max_tokens"
    short_answers: bool = False
    """The service cuts answers at a few thousand tokens unless a request sets its own maximum."""
    usage_option: bool = True
    """The service accepts `stream_options.include_usage`."""
    sampling: bool = True
    """The service accepts `temperature` and `top_p`. False: it only accepts the defaults, so none is sent."""
    system_role: str = "system"
    reasoning_field: str = ""
    """The field of an assistant message that carries earlier thinking. The catalog's row of a model overrides it."""
    refused_keywords: frozenset[str] = frozenset()
    """JSON Schema keywords that the vendor rejects: they are not sent, but calls are still validated with them."""
    schema_dialect: SchemaDialect = ""
    parallel_tool_calls: bool | None = None
    """The value of `parallel_tool_calls` in requests with tools; None: the field is not sent."""
    session_field: str = ""
    """The field that routes a session's requests to one prompt cache."""
    images: bool = True
    """The service accepts images, if the model does."""
    pdf: bool = True
    """The service accepts PDF files, if the model does."""
    call_id_length: int = 0
    """Call ids must have exactly this many letters and digits; 0: any."""
    cache_marks: bool = True
    """The service accepts Anthropic's `cache_control`."""
    hour_marks: bool = False
    """The service accepts `cache_control` with a lifetime of one hour."""
    marked_models: tuple[str, ...] = ()
    """Models, by wildcard, that need `cache_control` in chat completions: without it the gateway caches nothing."""
    cache_minutes: int = 5
    """The lifetime of the service's prompt cache after the last request that used it."""
    answer_format: AnswerFormat = ""
    """The field that carries the JSON Schema of an answer, also beside tools. "": unsupported; a tool is used."""
    no_answer_format: tuple[str, ...] = ()
    """Models, by wildcard, that do not support `answer_format`."""
    forced_call: bool = True
    """The service supports a forced tool call (`tool_choice`)."""
    reasoning_summary: str = ""
    """How summaries of thinking are requested in the Responses protocol; "": not at all."""
    patch_grammar: tuple[str, ...] = ()
    """Models, by wildcard, for which the patch tool is a free-form tool: its argument is plain text of a grammar."""
    initiator_header: str = ""
    """A header that says who caused the request: "user" (a prompt) or "agent" (the requests that follow from it)."""
    headers: dict[str, str] = struct_field(default_factory=dict[str, str])
    names: dict[str, str] = struct_field(default_factory=dict[str, str])
    """Configuration's spelling of a body field -> the wire's."""


COMMON_NAMES = {
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

UNCERTAIN = frozenset({"additionalProperties", "default"})
"""Schema keywords that some services reject: only services that are known to support them get them."""
BOUNDS = frozenset(
    {"minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "multipleOf"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
"""Schema keywords that services which compile schemas into grammars support in part; others fail the request."""
GRAMMAR = UNCERTAIN | BOUNDS

COMPATIBLE = Quirks(refused_keywords=UNCERTAIN, names=COMMON_NAMES)
OPENAI = Quirks(
    max_tokens_field="max_completion_tokens",
    session_field="prompt_cache_key",
    cache_minutes=60,
    system_role="developer",
    refused_keywords=GRAMMAR,
    answer_format="response_format",
    reasoning_summary="auto",
    patch_grammar=("gpt-5*", "gpt-6*", "*codex*"),
    no_answer_format=("gpt-3.5*", "gpt-4", "gpt-4-*", "gpt-4o-2024-05-13", "o1-mini*", "o1-preview*", "chatgpt-*"),
    names=COMMON_NAMES,
)
OPENAI_LIKE = replace(OPENAI, refused_keywords=UNCERTAIN, answer_format="", reasoning_summary="", patch_grammar=())
"""The row of any other service with OpenAI's protocol."""
ANTHROPIC = Quirks(
    hour_marks=True,
    answer_format="output_config",
    no_answer_format=(
        *("claude-2*", "claude-3*", "claude-instant*", "claude-opus-4", "claude-opus-4-0", "claude-opus-4-2*"),
        *("claude-sonnet-4", "claude-sonnet-4-0", "claude-sonnet-4-2*"),
    ),
    names=COMMON_NAMES,
)
KIMI = replace(
    COMPATIBLE,
    reasoning_field="reasoning_content",
    session_field="prompt_cache_key",
    schema_dialect="moonshot",
)
AZURE = Quirks(
    max_tokens_field="max_completion_tokens",
    system_role="developer",
    refused_keywords=UNCERTAIN,
    answer_format="response_format",
    no_answer_format=OPENAI.no_answer_format,
    session_field="prompt_cache_key",
    reasoning_summary="auto",
    patch_grammar=OPENAI.patch_grammar,
    names=COMMON_NAMES,
)
ADAPTIVE_MODELS = re.compile(r"claude-(?:opus|sonnet|haiku|fable|mythos)-(?:4[.-][7-9]|[5-9])")
"""Claude models that take an effort instead of a thinking budget, and no temperature."""
GOOGLE = Quirks(
    cache_minutes=60,
    answer_format="generation_config",
    no_answer_format=("gemini-1*", "gemini-2*", "gemma*"),
    names={"budgetTokens": "thinkingBudget", "maxTokens": "maxOutputTokens"},
)
"""`no_answer_format` lists the models before Gemini 3: they reject requests with both tools and an answer format."""
INTERACTIONS = Quirks(
    cache_minutes=60,
    answer_format="interaction_format",
    refused_keywords=UNCERTAIN,
    no_answer_format=GOOGLE.no_answer_format,
    names={
        **COMMON_NAMES,
        "maxTokens": "max_output_tokens",
        "thinkingLevel": "thinking_level",
        "stopSequences": "stop_sequences",
        "safetySettings": "safety_settings",
    },
)
BEDROCK = Quirks(
    refused_keywords=frozenset({"default"}),
    names={"budgetTokens": "budget_tokens", "reasoningEffort": "reasoning_effort", "topK": "top_k"},
)
BY_PROTOCOL: dict[str, Quirks] = {
    "anthropic-vertex": ANTHROPIC,
    "google-generate-content": GOOGLE,
    "google-interactions": INTERACTIONS,
    "bedrock-converse": BEDROCK,
}
"""Quirks by protocol. They replace the provider's row."""

ROWS: dict[str, Quirks] = {
    "openai": OPENAI,
    "azure": AZURE,
    "anthropic": ANTHROPIC,
    "google": GOOGLE,
    "deepseek": Quirks(
        short_answers=True,
        cache_minutes=24 * 60,
        images=False,
        pdf=False,
        refused_keywords=UNCERTAIN,
        forced_call=False,
        reasoning_field="reasoning_content",
        names=COMMON_NAMES,
    ),
    "azure-cognitive-services": AZURE,
    "github-copilot": replace(
        COMPATIBLE,
        max_tokens_field="max_completion_tokens",
        reasoning_summary="auto",
        initiator_header="x-initiator",
        headers={"openai-intent": "conversation-edits"},
    ),
    **dict.fromkeys(("moonshotai", "moonshotai-cn", "kimi-for-coding"), KIMI),
    "mistral": Quirks(usage_option=False, call_id_length=9, pdf=False, refused_keywords=GRAMMAR, names=COMMON_NAMES),
    "groq": Quirks(max_tokens_field="max_completion_tokens", pdf=False, refused_keywords=GRAMMAR, names=COMMON_NAMES),
    "cerebras": Quirks(
        max_tokens_field="max_completion_tokens", pdf=False, refused_keywords=GRAMMAR, names=COMMON_NAMES
    ),
    "xai": Quirks(
        pdf=False,
        session_field="prompt_cache_key",
        refused_keywords=UNCERTAIN,
        answer_format="response_format",
        no_answer_format=("grok-2*", "grok-3*", "grok-beta"),
        names=COMMON_NAMES,
    ),
    "fireworks-ai": replace(COMPATIBLE, short_answers=True),
    "openrouter": replace(COMPATIBLE, marked_models=("*claude*",)),
    "ollama": Quirks(pdf=False, refused_keywords=GRAMMAR, names=COMMON_NAMES),
    "lmstudio": Quirks(pdf=False, refused_keywords=GRAMMAR, names=COMMON_NAMES),
    "llama.cpp": Quirks(pdf=False, refused_keywords=GRAMMAR, names=COMMON_NAMES),
    "vllm": Quirks(pdf=False, refused_keywords=UNCERTAIN, names=COMMON_NAMES),
    "sglang": Quirks(pdf=False, refused_keywords=UNCERTAIN, names=COMMON_NAMES),
    "docker-model-runner": Quirks(pdf=False, refused_keywords=GRAMMAR, names=COMMON_NAMES),
}
"""Quirks by provider id; all other providers have COMPATIBLE."""


class Family(Struct, frozen=True):
    """Quirks of a model family with any provider: name wildcards, and the changed fields."""

    models: tuple[str, ...]
    changes: JSON


FAMILIES = (Family(("*kimi-k2*", "*kimi-k3*", "*kimi-for-coding*"), {"sampling": False}),)
"""Each row that matches a model overrides its provider's row."""


def quirks_of(info: ModelInfo) -> Quirks:
    """Return the quirks of a model: the row of its protocol or provider, with the changes of its families."""
    common = OPENAI_LIKE if info.npm == "@ai-sdk/openai" else COMPATIBLE
    row = BY_PROTOCOL.get(protocol_of(info) or "") or ROWS.get(info.provider_id) or common
    name = (info.api_id or info.id).lower()
    for family in FAMILIES:
        if any(matches(name, pattern) for pattern in family.models):
            row = replace(row, **family.changes)
    return replace(row, sampling=False) if ADAPTIVE_MODELS.search(name) else row


def cache_life(provider_id: str) -> int:
    """Return the lifetime (ms) of a provider's prompt cache after the last request that used it."""
    return ROWS.get(provider_id, COMPATIBLE).cache_minutes * 60_000


def reads(info: ModelInfo, quirks: Quirks, mime: str) -> bool:
    """Return whether the model accepts attachments of a mime type. Only images and PDF files can be accepted."""
    if mime.startswith("image/"):
        return quirks.images and ("image" in info.input or info.attachment)
    if mime == "application/pdf":
        return quirks.pdf and ("pdf" in info.input or (info.attachment and "image" in info.input))
    return False
