"""Media types of answers that are not JSON."""

from codeloop.schema.api.server_operations import VCS_DIFF_RAW

MEDIA_TYPES = {
    "v2.fs.read": "application/octet-stream",
    "v2.session.log": "text/event-stream",
    VCS_DIFF_RAW.id: "text/x-diff; charset=utf-8",
}
"""Operation id -> the media type of its answer, where that is not JSON."""
