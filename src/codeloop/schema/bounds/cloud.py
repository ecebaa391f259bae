"""Limits of cloud credentials, of the system's keyring,
and of waits for a model service's rate limit.
"""

from codeloop.kit.limit import Limit

CLOUD_TOKEN = Limit(
    "cloud.token", 15_000, "ms", "a token or role is asked for, else the request fails"
)
# Outside of a cloud the address of this service leads nowhere,
# and a request waits for its deadline.
CLOUD_METADATA = Limit(
    "cloud.metadata", 2_000, "ms", "this machine's metadata service answers, else it has none"
)
CLOUD_PROCESS = Limit(
    "cloud.process", 60_000, "ms", "a `credential_process` prints credentials, else it is stopped"
)
CLOUD_FILE = Limit(
    "cloud.file", 1024 * 1024, "bytes", "a larger file of a cloud's credentials is not read"
)
CLOUD_RENEWAL_LEAD = Limit(
    "cloud.renewal_lead", 300_000, "ms", "before they expire, tokens and roles are asked for again"
)
CLOUD_LOCK = Limit(
    "cloud.lock",
    20_000,
    "ms",
    "another process renews the same sign-in, else it is renewed as well",
)
DEVICE_CODE_TIME = Limit(
    "cloud.device_code", 900_000, "ms", "a code is typed on the page of a service, else it runs out"
)
CLOUD_FILE_REREAD = Limit(
    "cloud.file_reread", 60_000, "ms", "temporary keys of a file are used before it is read again"
)
CLOUD_ROLE_CHAIN = Limit(
    "cloud.role_chain",
    8,
    "count",
    "profiles that name each other as source; longer chains are an error",
)
KEYRING_CHECK = Limit(
    "keyring.check", 2_000, "ms", "the system's keyring is found, else there is none"
)
MODEL_RATE_LIMIT_WAIT = Limit(
    "model.rate_limit_wait",
    60_000,
    "ms",
    "waited for a service that has nothing left; a longer wait is not begun",
)
