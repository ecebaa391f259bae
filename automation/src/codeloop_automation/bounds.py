"""Limits of unattended runs: schedules, CI jobs, benchmarks, fleets."""

from codeloop.kit.limit import Limit

SCHEDULE_WAIT = Limit(
    "schedule.wait", 10_000, "ms", "for another process that changes what is scheduled"
)
SCHEDULE_TIMER = Limit("schedule.timer", 20_000, "ms", "for an answer of `systemctl` or `crontab`")
SCHEDULE_GRACE = Limit(
    "schedule.grace", 60_000, "ms", "after a scheduled run's time is up; then it is killed"
)
SCHEDULE_RESULTS = Limit(
    "schedule.results", 20, "count", "results kept of a schedule; older ones are dropped"
)
SCHEDULE_TEXT = Limit(
    "schedule.text", 4_000, "characters", "kept of a scheduled run's answer; its session has all"
)
SCHEDULE_TIME = Limit(
    "schedule.time", 1_800_000, "ms", "a scheduled run may take, unless --timeout says otherwise"
)
SCHEDULE_STEPS = Limit(
    "schedule.steps", 100, "count", "requests of a scheduled run, unless --max-steps says otherwise"
)
CI_ANSWER = Limit("ci.answer", 30_000, "ms", "the host answering a request, then it is asked again")
CI_TRIES = Limit(
    "ci.tries", 6, "count", "tries of a request to the host, then the run ends with an error"
)
CI_RETRY = Limit(
    "ci.retry",
    1_000,
    "ms",
    "before the second try, unless the host says when; doubled with each try",
)
CI_RETRY_MOST = Limit(
    "ci.retry_most", 120_000, "ms", "the longest wait before the host is asked again"
)
CI_RESPONSE = Limit(
    "ci.response", 16 * 1024 * 1024, "bytes", "a longer answer of the host is an error"
)
CI_PAGES = Limit("ci.pages", 50, "count", "pages of a host's list; further ones are not read")
CI_COMMENT = Limit(
    "ci.comment",
    50_000,
    "characters",
    "of the model's text in a comment; the rest is in the session",
)
CI_THREAD = Limit(
    "ci.thread",
    40_000,
    "characters",
    "of an issue's or pull request's text that the model is shown",
)
CI_REQUESTS = Limit(
    "ci.requests", 200, "count", "requests of one thread that are remembered as done"
)
CI_GIT = Limit("ci.git", 600_000, "ms", "one command of git, then it is ended and the run fails")
CI_END = Limit(
    "ci.end", 60_000, "ms", "a session ending after its own time limit; then it is killed"
)
CI_STOP = Limit(
    "ci.stop",
    5_000,
    "ms",
    "a session ending when it is told to, also as the job is cancelled; then it is killed",
)
CI_POLL = Limit(
    "ci.poll", 10_000, "ms", "how often a run looks whether another one on the same thread is over"
)
CI_CLAIM_DELAY = Limit(
    "ci.claim_delay",
    3_000,
    "ms",
    "before a run looks whether another one took the thread at that moment",
)
CI_FINDINGS = Limit(
    "ci.findings", 10, "count", "findings that one review posts; further ones are counted"
)
CI_EXPORT = Limit("ci.export", 120_000, "ms", "writing a session's page, then it is left out")
CI_PROOF_TIME = Limit(
    "ci.proof", 120_000, "ms", "one command of a finding running again, then it proves nothing"
)
BENCH_CHECK = Limit("bench.check", 600_000, "ms", "for the check of a benchmark's task")
BENCH_CLONE = Limit(
    "bench.clone", 600_000, "ms", "for the copy of a benchmark's repository, and for its setup"
)
BENCH_KEPT_CHARACTERS = Limit(
    "bench.kept", 64 * 1024, "characters", "kept of a check's output, and of what was changed"
)
BENCH_TIME = Limit(
    "bench.time", 1_800_000, "ms", "a run of a benchmark may take, unless --timeout says otherwise"
)
BENCH_STEPS = Limit(
    "bench.steps", 200, "count", "requests of a benchmark's run, unless --max-steps says otherwise"
)
BENCH_GRACE = Limit(
    "bench.grace", 60_000, "ms", "after a benchmark's run was to end by itself; then it is killed"
)
FLEET_TABLE = Limit("fleet.table", 64 * 1024 * 1024, "bytes", "a larger table of jobs is refused")
FLEET_JOBS = Limit("fleet.jobs", 100_000, "count", "jobs of one table; with more it is refused")
FLEET_BUSY = Limit(
    "fleet.busy", 30_000, "ms", "waiting for another process's change of a fleet, then an error"
)
FLEET_DATABASE_OUTAGE = Limit(
    "fleet.database_outage", 1_200_000, "ms", "PostgreSQL that is gone is waited for; then an error"
)
FLEET_POLL = Limit(
    "fleet.poll",
    200,
    "ms",
    "how often it is looked whether a job has ended, or the fleet is to stop",
)
FLEET_JOB_END_TIME = Limit(
    "fleet.end", 3_000, "ms", "a job's program ending when it is asked to; then it is killed"
)
FLEET_STOP_TIME = Limit(
    "fleet.stop",
    1_000,
    "ms",
    "the agents of a fleet that stops cleaning up; then the rest is killed",
)
FLEET_CLEANUP_TIME = Limit(
    "fleet.cleanup_time",
    1_000,
    "ms",
    "removing the clones of stopped jobs; the rest is left to the next run",
)
FLEET_GIT = Limit(
    "fleet.git", 600_000, "ms", "one command of git for a job, then the job has failed"
)
FLEET_DIFF = Limit(
    "fleet.diff", 200_000, "characters", "kept of a job's diff; its clone has all of it"
)
FLEET_JOB_TIME = Limit(
    "fleet.job_time", 3_600_000, "ms", "a job may take, unless --timeout says otherwise"
)
FLEET_SPENDING = Limit(
    "fleet.spending", 5_000, "ms", "how often the dollars of running jobs are added up for --budget"
)
FLEET_DISK = Limit(
    "fleet.disk", 200 * 1024 * 1024, "bytes", "of free space; with less, no job is started"
)
FLEET_OUTAGE_FAILURES = Limit(
    "fleet.outage_failures",
    3,
    "count",
    "jobs that fail at the models' service, then it is waited for",
)
FLEET_OUTAGE_PAUSE = Limit(
    "fleet.outage_pause", 30_000, "ms", "without new jobs in an outage; doubled each time in a row"
)
FLEET_OUTAGE_PAUSE_MOST = Limit(
    "fleet.outage_pause_most", 900_000, "ms", "the longest of those pauses"
)
FLEET_OUTAGE = Limit(
    "fleet.outage", 14_400_000, "ms", "an outage is waited for; then jobs fail again"
)
FLEET_ORPHANS = Limit(
    "fleet.orphans", 5_000, "ms", "how often it is looked for jobs whose coordinator has ended"
)
FLEET_PUBLISH = Limit(
    "fleet.publish", 4, "count", "pull requests of a fleet that are opened at the same time"
)
FLEET_DRIVER_LOSSES = Limit(
    "fleet.driver_losses",
    3,
    "count",
    "times in a row that a driver is lost which has not worked yet, then it gets no more jobs",
)
FLEET_DRIVER_OUTAGES = Limit(
    "fleet.driver_outages",
    10,
    "count",
    "times in a row that a driver is lost which has worked, then it gets no more jobs",
)
FLEET_DRIVER_WORKED = Limit(
    "fleet.driver_worked", 5_000, "ms", "that a driver holds a job, then it has worked"
)
FLEET_DRIVER_RETRY = Limit(
    "fleet.driver_retry", 500, "ms", "after a driver was lost; doubled each time in a row"
)
FLEET_API_ANSWER = Limit(
    "fleet.api_answer", 30_000, "ms", "the Kubernetes API answering; then it is asked again"
)
FLEET_API_TRIES = Limit(
    "fleet.api_tries", 8, "count", "tries of a request to the Kubernetes API, then it has failed"
)
FLEET_API_RETRY = Limit(
    "fleet.api_retry", 500, "ms", "before the second try; doubled with each try"
)
FLEET_API_RETRY_MOST = Limit(
    "fleet.api_retry_most", 15_000, "ms", "the longest wait between two of those tries"
)
FLEET_API_STOP = Limit(
    "fleet.api_stop", 1_000, "ms", "a request ending as the fleet stops; then it is cancelled"
)
FLEET_API_WATCH = Limit(
    "fleet.api_watch", 300_000, "ms", "Jobs are watched by one request; then by the next one"
)
FLEET_API_RESPONSE = Limit(
    "fleet.api_response", 64 * 1024 * 1024, "bytes", "a longer answer of that API is an error"
)
FLEET_POD_CHECK = Limit(
    "fleet.pod_check", 120_000, "ms", "a Job and its pod are looked at, in case a change was missed"
)
FLEET_POD_START = Limit(
    "fleet.pod_start", 600_000, "ms", "beyond --timeout, for a pod's start, clone and commit"
)
FLEET_POD_TIME = Limit(
    "fleet.pod_time", 86_400_000, "ms", "a Job may take, unless --timeout says otherwise"
)
FLEET_POD_STOP = Limit(
    "fleet.pod_stop", 4_000, "ms", "deleting the Job of a fleet that is stopped; then it stays"
)
FLEET_POD_END = Limit(
    "fleet.pod_end", 5_000, "ms", "a pod ending when it is told to; then it is killed"
)
FLEET_BUNDLE = Limit(
    "fleet.bundle", 4 * 1024 * 1024, "bytes", "of commits in a pod's log; with more the job fails"
)
FLEET_ENVIRONMENT = Limit(
    "fleet.environment", 100_000, "bytes", "of a job as a pod's variable; a longer one fails"
)
FLEET_CONNECT = Limit(
    "fleet.connect", 15_000, "ms", "for a host that `ssh` connects to, then it is lost"
)
FLEET_HEARTBEAT = Limit(
    "fleet.heartbeat", 2_000, "ms", "between the signs of life that a coordinator sends to a worker"
)
FLEET_LEASE = Limit(
    "fleet.lease", 15_000, "ms", "without a sign of its coordinator, then a worker ends its job"
)
FLEET_HOST_END = Limit(
    "fleet.host_end", 4_000, "ms", "a worker on a host ending what it started; then it is killed"
)
FLEET_ORDER = Limit(
    "fleet.order", 4 * 1024 * 1024, "bytes", "a longer description of a job is refused by a worker"
)
FLEET_REPLY = Limit(
    "fleet.reply", 1024 * 1024 * 1024, "bytes", "changes of a job that are taken from a host"
)
