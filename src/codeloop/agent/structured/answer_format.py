"""The output format of a prompt, as a client sends it: `{"type": "json_schema", "schema",
"retryCount"?}`.
"""

from collections.abc import Mapping

from codeloop.agent.structured.validation import find_schema_problems
from codeloop.schema.bounds.structured import STRUCTURED_MAX_RETRIES, STRUCTURED_RETRIES
from codeloop.schema.errors import OperationError
from codeloop.schema.wire import JSON

FORMAT_TYPES = "text or json_schema"


async def check_format(answer_format: JSON, environment: Mapping[str, str]) -> JSON:
    """Return a format with its number of retries.
    Raises OperationError (BadRequest) when it is wrong.
    """
    format_type, schema = answer_format.get("type"), answer_format.get("schema")
    if format_type == "text":
        return {"type": "text"}
    if format_type != "json_schema":
        raise OperationError(
            "BadRequest", f"format.type must be {FORMAT_TYPES}, not {format_type!r}."
        )
    retries = answer_format.get("retryCount", STRUCTURED_RETRIES.value)
    if (
        not isinstance(retries, int)
        or isinstance(retries, bool)
        or not 0 <= retries <= STRUCTURED_MAX_RETRIES.value
    ):
        raise OperationError(
            "BadRequest",
            f"format.retryCount must be a number from 0 to {STRUCTURED_MAX_RETRIES.value}.",
        )
    if schema is None:
        raise OperationError(
            "BadRequest", "format.schema is missing: give the JSON Schema of the answer."
        )
    problems = await find_schema_problems(schema, environment)
    if problems:
        raise OperationError(
            "BadRequest", f"format.schema is not a valid JSON Schema: {problems[0]}"
        )
    return {"type": "json_schema", "schema": schema, "retryCount": retries}
