"""Signs requests to Amazon's services with keys cached until shortly before they expire."""

import asyncio
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from codeloop.model.credentials.aws.discovery import region_of, settings
from codeloop.model.credentials.aws.signature import AwsKeys, sign
from codeloop.model.credentials.aws.sources import fetch_keys
from codeloop.schema.bounds.cloud import CLOUD_EARLY


class AwsSigner:
    """Signs for one service in one region, both taken from its address if possible."""

    def __init__(self, environment: Mapping[str, str], url: str) -> None:
        host = urlsplit(url).hostname or ""
        self._environment = environment
        self._service = "bedrock-mantle" if "bedrock-mantle" in host.split(".") else "bedrock"
        self._region = region_of(host) or settings(environment)["AWS_REGION"]
        self._keys: AwsKeys | None = None
        self._lock = asyncio.Lock()

    async def sign(self, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers that sign the request. Raises `ModelUnavailable`: no credentials, or they are refused."""
        async with self._lock:
            keys = self._keys
            if keys is None or (keys.expires and time.time() + CLOUD_EARLY.seconds >= keys.expires):
                keys = self._keys = await fetch_keys(self._environment, self._region)
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        return sign(keys, url, headers, body, region=self._region, service=self._service, moment=moment)
