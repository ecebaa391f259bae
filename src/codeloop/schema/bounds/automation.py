"""What bounds runs that no person follows: programs that send messages, schedules, benchmarks."""

from codeloop.kit.limit import Limit

STREAM_WAITING = Limit(
    "stream.waiting", 1_000, "count", "messages of stream-json that wait for their turn; then stdin is not read on"
)
