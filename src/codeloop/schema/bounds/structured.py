"""Limits of answers as JSON of a given schema."""

from codeloop.kit.limit import Limit

STRUCTURED_RETRIES = Limit(
    "structured.retries", 2, "count", "corrections that are asked for when a prompt does not say"
)
STRUCTURED_MAX_RETRIES = Limit(
    "structured.max_retries",
    20,
    "count",
    "corrections that a prompt may ask for, else it is refused",
)
STRUCTURED_BYTES = Limit(
    "structured.bytes", 8 * 1024 * 1024, "bytes", "a longer structured answer is refused"
)
STRUCTURED_REPORTED_MISTAKES = Limit(
    "structured.reported_mistakes",
    10,
    "count",
    "mistakes that the model is told at once; others are counted",
)
SCHEMA_BYTES = Limit("structured.schema", 256 * 1024, "bytes", "a longer schema is refused")
SCHEMA_DEPTH = Limit("structured.depth", 64, "count", "a schema nested deeper is refused")
SCHEMA_TIME = Limit(
    "structured.check",
    10_000,
    "ms",
    "processor time of an answer's check against its schema, then it counts as wrong",
)
