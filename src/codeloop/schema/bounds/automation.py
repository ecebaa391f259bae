"""What bounds runs that no person follows: programs that send messages, schedules, benchmarks."""

from codeloop.kit.limit import Limit

STREAM_WAITING = Limit(
    "stream.waiting", 1_000, "count", "messages of stream-json that wait for their turn; then stdin is not read on"
)
SCHEDULE_WAIT = Limit("schedule.wait", 10_000, "ms", "for another process that changes what is scheduled")
SCHEDULE_TIMER = Limit("schedule.timer", 20_000, "ms", "for an answer of `systemctl` or `crontab`")
SCHEDULE_GRACE = Limit("schedule.grace", 60_000, "ms", "after a scheduled run's time is up; then it is killed")
SCHEDULE_NOTIFY = Limit("schedule.notify", 5_000, "ms", "for the program that shows a notification")
SCHEDULE_RESULTS = Limit("schedule.results", 20, "count", "results kept of a schedule; older ones are dropped")
SCHEDULE_TEXT = Limit("schedule.text", 4_000, "characters", "kept of a scheduled run's answer; its session has all")
SCHEDULE_TIME = Limit("schedule.time", 1_800_000, "ms", "a scheduled run may take, unless --timeout says otherwise")
SCHEDULE_STEPS = Limit("schedule.steps", 100, "count", "requests of a scheduled run, unless --max-steps says otherwise")
