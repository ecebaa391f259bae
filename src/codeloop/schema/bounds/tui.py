"""Limits of the terminal UI: prompts, providers that are tried, pictures."""

from codeloop.kit.limit import Limit

PROVIDER_TRY = Limit(
    "tui.provider_try", 30_000, "ms", "a provider whose key is tried answers, else it is given up"
)
SERVER_MODELS = Limit(
    "tui.server_models",
    10_000,
    "ms",
    "a server that is added lists its models, else it is an error",
)
PROMPT_HISTORY = Limit(
    "tui.prompt_history", 1_000, "count", "prompts of a project that the arrow keys bring back"
)
PROMPT_STASH = Limit(
    "tui.prompt_stash", 50, "count", "prompts put aside; with more the oldest is forgotten"
)
PROMPT_MENTIONS = Limit(
    "tui.prompt_mentions", 1_000, "count", "names whose use is counted; the rarest is forgotten"
)
PROMPT_LOCK = Limit(
    "tui.prompt_lock",
    2_000,
    "ms",
    "waiting for another process that writes the history, then go on",
)
PROMPT_BLOB = Limit(
    "tui.prompt_blob",
    64 * 1024 * 1024,
    "bytes",
    "a larger draft is not read; of a larger history only the end is",
)
PROMPT_BLOB_AGE = Limit(
    "tui.prompt_blob_age", 30 * 86_400_000, "ms", "pasted texts and images are kept unused"
)
PROMPT_DRAFT = Limit(
    "tui.prompt_draft", 400, "ms", "a draft is written this long after a key, at the latest"
)
PROMPT_DEBOUNCE = Limit(
    "tui.prompt_debounce", 60, "ms", "typing pauses this long before names of files are looked for"
)
PROMPT_CLIPBOARD = Limit(
    "tui.prompt_clipboard", 3_000, "ms", "a program that reads the clipboard, then it is left"
)
PROMPT_FOUND = Limit("tui.prompt_found", 50, "count", "names of files that one completion asks for")
PICTURE_ASK = Limit(
    "tui.picture_ask",
    3_000,
    "ms",
    "tmux says which terminal is around it, else it gets no pictures",
)
PICTURE_PIXELS = Limit(
    "tui.picture_pixels", 16_000_000, "count", "a larger picture stays a line of text"
)
PICTURES_KEPT = Limit(
    "tui.pictures_kept", 32, "count", "pictures kept as they are drawn; others are made again"
)
