"""What bounds runs that no person follows: programs that send messages, schedules, jobs of hosts, benchmarks."""

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
CI_ANSWER = Limit("ci.answer", 30_000, "ms", "the host answering a request, then it is asked again")
CI_TRIES = Limit("ci.tries", 6, "count", "tries of a request to the host, then the run ends with an error")
CI_RETRY = Limit("ci.retry", 1_000, "ms", "before the second try, unless the host says when; doubled with each try")
CI_RETRY_MOST = Limit("ci.retry_most", 120_000, "ms", "the longest wait before the host is asked again")
CI_RESPONSE = Limit("ci.response", 16 * 1024 * 1024, "bytes", "a longer answer of the host is an error")
CI_PAGES = Limit("ci.pages", 50, "count", "pages of a host's list; further ones are not read")
CI_COMMENT = Limit("ci.comment", 50_000, "characters", "of the model's text in a comment; the rest is in the session")
CI_THREAD = Limit("ci.thread", 40_000, "characters", "of an issue's or pull request's text that the model is shown")
CI_REQUESTS = Limit("ci.requests", 200, "count", "requests of one thread that are remembered as done")
CI_GIT = Limit("ci.git", 600_000, "ms", "one command of git, then it is ended and the run fails")
CI_END = Limit("ci.end", 60_000, "ms", "a session ending after its own time limit; then it is killed")
CI_POLL = Limit("ci.poll", 10_000, "ms", "how often a run looks whether another one on the same thread is over")
CI_FINDINGS = Limit("ci.findings", 10, "count", "findings that one review posts; further ones are counted")
CI_EXPORT = Limit("ci.export", 120_000, "ms", "writing a session's page, then it is left out")
CI_PROOF = Limit("ci.proof", 120_000, "ms", "one command of a finding running again, then it proves nothing")
