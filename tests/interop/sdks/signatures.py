"""Requests with the signatures that botocore makes of them, as JSON:
`tests/model/credentials/aws/signatures.json`.
"""

import datetime as dt
import json
import sys
from importlib import import_module
from typing import Any
from urllib.parse import quote

auth: Any = import_module("botocore.auth")  # only in the environment of this script
AWSRequest: Any = import_module("botocore.awsrequest").AWSRequest
Credentials: Any = import_module("botocore.credentials").Credentials

MOMENT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NAMES = (
    "us.anthropic.claude-sonnet-4-5-v1:0",
    "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc def",
    "größe~漢/..//x",
    "a+b c%20d",
    "a*b'(c)!;y=z,$&@",
)
BASE = "https://bedrock-runtime.us-east-1.amazonaws.com"
PLAIN = {"content-type": "application/json"}
URLS = (
    "https://gateway.example:443/v1/model/m/converse-stream",
    "http://gateway.example:80/model/m/converse",
    "https://Gateway.Example:8443/model/m/converse",
    "https://user:pw@gateway.example/model/m/converse",
    "https://[::1]:8080/model/m/converse",
    *(BASE, f"{BASE}/", f"{BASE}/a/", f"{BASE}/..", f"{BASE}/a%20b/%7Ec"),
    *(
        f"{BASE}/model/m/converse?{query}"
        for query in ("b=2&a=1", "a=1&a=0", "a", "x=a%20b&y=%2F", "a=&a=b")
    ),
)
ODD = {
    "X-Title": "  a   b  ",
    "x-amz-target": "T",
    "User-Agent": "codeloop",
    "TE": "trailers",
    "traceparent": "00-1",
}


def sign(url: str, headers: dict[str, str], **given: str) -> dict[str, Any]:
    """Return a request and what botocore says in its header."""
    row = {
        "token": "",
        "service": "bedrock",
        "region": "us-east-1",
        "body": '{"messages":[]}',
        **given,
    }
    request = AWSRequest(method="POST", url=url, headers=headers, data=row["body"].encode())
    keys = Credentials("AKIAEXAMPLE", "se/cr+et=", row["token"] or None)
    auth.SigV4Auth(keys, row["service"], row["region"]).add_auth(request)
    return {
        "url": url,
        "headers": headers,
        **row,
        "authorization": request.headers["Authorization"],
    }


def rows() -> list[dict[str, Any]]:
    """Return all of them."""
    form = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    role = "Action=AssumeRole&Version=2011-06-15"
    return [
        *(
            sign(f"{BASE}/model/{quote(n, safe='')}/converse-stream", PLAIN, token="IQoJ/to+ken==")
            for n in NAMES
        ),
        *(
            sign(f"{BASE}/proxy//v1/../v2/./model/{quote(n, safe='')}/converse-stream", PLAIN)
            for n in NAMES
        ),
        *(sign(url, PLAIN) for url in URLS),
        sign(f"{BASE}/model/m/converse", {**PLAIN, **ODD}),
        sign(f"{BASE}/model/m/converse", {"Host": "other.example", "content-type": "a"}),
        sign(
            "https://sts.eu-central-1.amazonaws.com/",
            form,
            service="sts",
            region="eu-central-1",
            body=role,
        ),
        sign(f"{BASE}/model/m/converse", PLAIN, body=""),
        sign(f"{BASE}/model/m/converse", PLAIN, body='{"größe":"漢字 🎉"}'),
    ]


def moment(*, remove_tzinfo: bool = True) -> dt.datetime:
    """Return the time that all of them are signed at."""
    return MOMENT.replace(tzinfo=None) if remove_tzinfo else MOMENT


auth.get_current_datetime = moment
json.dump(rows(), sys.stdout, ensure_ascii=False, indent=1)
