"""`codeloop fleet run --pods`: jobs as Jobs of a strict Kubernetes API,
whose pods are real processes.
"""

import asyncio
import base64
import json
import random
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from codeloop.schema.errors import CodeloopError
from codeloop_automation.fleet.jobs import FleetJob
from codeloop_automation.fleet.kubernetes.api import ApiProblem, KubernetesApi
from codeloop_automation.fleet.kubernetes.cluster_access import (
    ClusterAccess,
    find_access,
    read_pod_access,
)
from codeloop_automation.fleet.kubernetes.driver import JobWatcher
from codeloop_automation.fleet.kubernetes.manifest import PodOrder, PodSettings, make_manifest
from tests.automation.fleet.test_fleet import DONE, repository, status, write_table
from tests.cli.program import KEY, Desk, bash, serving, steps
from tests.support.kubernetes_api import MISSING, KubernetesServer

TOKEN = "cluster-token"
LIMITS = {
    "automation.FLEET_POD_CHECK": 1_000,
    "automation.FLEET_POD_START": 1_000,
    # On a busy machine the API may need longer than usual until the Jobs of a stop are deleted.
    "automation.FLEET_POD_STOP": 60_000,
    "automation.FLEET_API_STOP": 30_000,
}
WORK = [sys.executable, "-P", "-c", "from codeloop.cli.main import main; main()", "fleet", "work"]


def write_kubeconfig(
    file: Path, url: str, user: dict[str, Any], cluster: dict[str, Any] | None = None
) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [
            {"name": "test", "context": {"cluster": "c", "user": "u", "namespace": "work"}}
        ],
        "clusters": [{"name": "c", "cluster": {"server": url, **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
    }
    file.write_text(yaml.safe_dump(config))


class Cluster:
    """A desk that runs its fleets in pods: their home is another one,
    and their key comes from the Secret alone.
    """

    def __init__(self, folder: Path, model_url: str) -> None:
        self.desk = Desk(folder, limits=LIMITS)
        pod = Desk(folder / "pod-home")
        pod.folder.mkdir()
        models = {
            "m": {
                "cost": {"input": 1.0, "output": 2.0},
                "limit": {"context": 200_000, "output": 8_000},
            }
        }
        options = {"baseURL": model_url, "apiKey": "{env:POD_KEY}"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
        pod.configure(
            provider={"local": provider},
            model="local/m",
            sandbox="off",
            permission={"bash": "allow"},
        )
        logs = folder / "pods"
        logs.mkdir()
        self.api = KubernetesServer(logs, pod.options()["env"], {"models": {"POD_KEY": KEY}}, TOKEN)
        self.kubeconfig = folder / "kubeconfig"
        write_kubeconfig(self.kubeconfig, self.api.url, {"token": TOKEN})
        self.pods = folder / "pods.json"
        settings = {
            "image": "registry.example/agent:1",
            "command": WORK,
            "secret": "models",
            "cpu": "500m",
        }
        self.settings: dict[str, Any] = {**settings, "memory": "512Mi"}
        self.pods.write_text(json.dumps(self.settings))

    def arguments(self, table: str, *more: str) -> tuple[str, ...]:
        return "fleet", "run", table, "--pods", str(self.pods), *more

    def run(self, table: str, *more: str) -> subprocess.CompletedProcess[str]:
        return self.desk.run(*self.arguments(table, *more), KUBECONFIG=str(self.kubeconfig))

    def start(self, table: str, *more: str) -> subprocess.Popen[str]:
        return self.desk.start(*self.arguments(table, *more), KUBECONFIG=str(self.kubeconfig))


@contextmanager
def cluster(folder: Path, *answers: Any) -> Generator[Cluster]:
    with serving(steps(*answers)) as server:
        made = Cluster(folder, server.url)
        try:
            yield made
        finally:
            made.api.close()


def jobs_of(source: Path, number: int) -> list[dict[str, object]]:
    return [
        {"id": f"j{at}", "repository": source.as_uri(), "prompt": "add"} for at in range(number)
    ]


def messages(desk: Desk) -> dict[str, str]:
    return {row["id"]: row["result"].get("message", "") for row in status(desk)["rows"]}


@contextmanager
def forgetting(api: KubernetesServer) -> Generator[None]:
    """Let the API remove_remains its history all the while."""
    is_over = threading.Event()

    def remove_remains() -> None:
        while not is_over.wait(1.5):
            api.forget_history()

    thread = threading.Thread(target=remove_remains)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.mark.slow
def test_jobs_run_once_through_kills_failures_and_forgotten_history(tmp_path: Path) -> None:
    draw, number = random.Random(3), 6
    with cluster(tmp_path, bash("sleep 1; echo line >> log"), DONE) as made:
        source, api = repository(made.desk), made.api
        table = write_table(made.desk, jobs_of(source, number))
        api.page = 2
        api.failures += [("POST", 500), ("GET", 503), ("DELETE", 500), ("POST", 429)]
        with forgetting(api):
            for _ in range(3):
                coordinator = made.start(table, "--at-once", "3")
                with api.changed:
                    assert api.changed.wait_for(lambda: bool(api.jobs), 60)
                time.sleep(draw.uniform(0.2, 2))
                coordinator.kill()
                coordinator.communicate()
            last = made.run(table, "--at-once", "3", "--timeout", "300")
        assert last.returncode == 0, last.stderr
        assert api.conflicts, "what a coordinator left was found again"
        assert sorted(api.starts.values()) == [1] * number, "no job has run twice"
        assert api.jobs == {}, "each is deleted when its result is stored"
        assert made.run(table).stdout == ""
    found = status(made.desk)
    assert (found["done"], found["failed"], found["waiting"]) == (number, 0, 0)
    assert found["cost"] > 0
    folder = made.desk.home / "data" / "fleet" / "jobs" / "jobs"
    for at in range(number):
        work = folder / f"j{at}" / "work"
        assert (work / "log").read_text() == "start\nline\n"
        commits = subprocess.run(
            ["git", "-C", work, "log", "--oneline"], capture_output=True, text=True, check=True
        )
        assert len(commits.stdout.splitlines()) == 2
    shown = json.loads(made.desk.run("fleet", "show", "jobs", "j0", "--json").stdout)
    assert "+line" in shown[0]["result"]["diff"]


@pytest.mark.slow
def test_a_stop_deletes_all_and_a_push_comes_back(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with cluster(
        tmp_path, bash(f"until [ -e {go} ]; do sleep 0.1; done; echo line >> log"), DONE
    ) as made:
        source, api = repository(made.desk), made.api
        table = write_table(made.desk, jobs_of(source, 3))
        made.pods.write_text(json.dumps({**made.settings, "push": True}))
        coordinator = made.start(table)
        try:
            with api.changed:
                assert api.changed.wait_for(lambda: len(api.jobs) == 3, 60)
            (job, *_) = api.jobs.values()
            began = time.monotonic()
            assert made.desk.run("fleet", "stop", "jobs").returncode == 0
            with api.changed:
                assert api.changed.wait_for(lambda: not api.jobs, 60)
            took = time.monotonic() - began
            assert coordinator.wait(60) == 130
        finally:
            coordinator.kill()
            coordinator.communicate()
        assert took < 60, "5 s on a machine that is not busy"
        assert KEY not in json.dumps(job), "the key is in the Secret alone"
        assert job["spec"]["backoffLimit"] == 0
        assert job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == {
            "memory": "512Mi"
        }
        assert status(made.desk)["waiting"] == 3
        go.touch()
        last = made.run(table)
        assert last.returncode == 0, last.stderr
    assert "j0" in made.desk.git("branch", "--list", "codeloop/*")
    assert made.desk.git("show", "codeloop/j1:log") == "start\nline\n"
    work = made.desk.home / "data" / "fleet" / "jobs" / "jobs" / "j2" / "work"
    assert (work / "log").read_text() == "start\nline\n"


@pytest.mark.slow
def test_what_fails_says_why_and_can_be_done_again(tmp_path: Path) -> None:
    with cluster(tmp_path, DONE) as made:
        source = repository(made.desk)
        jobs = jobs_of(source, 1)
        table = write_table(
            made.desk, [*jobs, {"id": "local", "repository": str(source), "prompt": "add"}]
        )
        made.pods.write_text(
            json.dumps(
                {**made.settings, "command": ["/bin/sh", "-c", "echo no such model; exit 3"]}
            )
        )
        assert made.run(table).returncode == 1
        rows = messages(made.desk)
        assert (
            "ended without a result (BackoffLimitExceeded: failed). It last wrote: no such model"
            in rows["j0"]
        )
        assert "a path of this machine" in rows["local"]
        made.pods.write_text(json.dumps(made.settings))
        assert made.desk.run("fleet", "retry", "jobs", "j0").returncode == 0
        made.api.can_read_logs = False
        assert made.run(table).returncode == 1
        assert "get on pods/log" in messages(made.desk)["j0"]
        made.api.can_read_logs = True
        made.desk.run("fleet", "retry", "jobs", "j0")
        assert made.run(table).returncode == 1, "local has failed"
        assert status(made.desk)["done"] == 1
        made.api.token = "renewed"
        made.desk.run("fleet", "retry", "jobs")
        assert made.run(write_table(made.desk, jobs_of(source, 3))).returncode == 1
        assert "renew it in the kubeconfig" in messages(made.desk)["j2"]
        made.pods.write_text(json.dumps({**made.settings, "image": MISSING}))
        made.api.token = TOKEN
        made.desk.run("fleet", "retry", "jobs", "j1")
        assert made.run(table).returncode == 1
        assert "can't start (ImagePullBackOff: Back-off pulling image" in messages(made.desk)["j1"]
        assert made.api.jobs == {}
        made.pods.write_text(json.dumps({**made.settings, "command": ["sleep", "60"]}))
        made.desk.run("fleet", "retry", "jobs", "j1")
        assert made.run(table, "--timeout", "1").returncode == 1
        assert "The job took too long (DeadlineExceeded" in messages(made.desk)["j1"]
        made.pods.write_text('{"image": "x", "colour": 1}')
        assert "does not describe pods" in made.run(table).stderr


def test_a_client_certificate_and_a_pods_account_open_a_cluster(tmp_path: Path) -> None:
    names = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-keyout",
        "key.pem",
    ]
    command = ["openssl", "req", "-x509", *key, *names, "-out", "ca.crt"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "ca.crt", tmp_path / "key.pem")
    certificate, secret = (
        base64.b64encode((tmp_path / name).read_bytes()).decode() for name in ("ca.crt", "key.pem")
    )
    server = KubernetesServer(tmp_path, {}, {}, TOKEN, tls)
    file, pod = tmp_path / "config", {"KUBERNETES_SERVICE_HOST": "127.0.0.1"}
    shown = {"token": TOKEN, "client-certificate-data": certificate, "client-key-data": secret}
    write_kubeconfig(file, server.url, shown, {"certificate-authority-data": certificate})
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "namespace").write_text("work")
    pod["KUBERNETES_SERVICE_PORT"] = server.url.rpartition(":")[2]

    async def list_jobs(access: ClusterAccess) -> list[Any]:
        api = KubernetesApi(access)
        try:
            return (await api.list_jobs("a=b"))[0]
        finally:
            await api.aclose()

    try:
        assert asyncio.run(list_jobs(read_pod_access(pod, tmp_path))) == []
        tls.verify_mode = ssl.CERT_REQUIRED
        tls.load_verify_locations(tmp_path / "ca.crt")
        assert asyncio.run(list_jobs(find_access({"KUBECONFIG": str(file)}))) == []
    finally:
        server.close()


@pytest.mark.parametrize(
    ("status_code", "words"), [(403, "answered 403: no reason given"), (200, "not an object")]
)
def test_an_answer_of_a_proxy_that_is_not_utf_8_is_a_problem_of_the_api(
    status_code: int, words: str
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"message": "\xfcber"}'
        writer.write(
            b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%s" % (status_code, len(body), body)
        )
        await writer.drain()
        writer.close()

    async def read_job() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1") as proxy:
            url = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
            api = KubernetesApi(ClusterAccess(url, "work", None, str))
            try:
                await api.read_job("a")
            finally:
                await api.aclose()

    with pytest.raises(ApiProblem, match=words):
        asyncio.run(read_job())


def test_a_watch_that_was_refused_is_right_again_when_the_access_is(tmp_path: Path) -> None:
    server = KubernetesServer(tmp_path, {}, {}, TOKEN)
    tokens = [TOKEN]
    watcher = JobWatcher(
        KubernetesApi(ClusterAccess(server.url, "work", None, lambda: tokens[-1])), "f" * 16
    )

    def is_refused() -> bool:
        try:
            watcher.find_job("none")
        except ApiProblem as problem:
            return problem.status == 401
        return False

    def wait_until(is_met: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not is_met():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    try:
        wait_until(lambda: any("watch=true" in path for _, path in server.requests))
        tokens.append("expired")
        server.end_watches()
        wait_until(is_refused)
        tokens.append(TOKEN)
        wait_until(lambda: not is_refused())
    finally:
        watcher.close()
        server.close()


def test_the_server_of_these_tests_refuses_what_the_api_refuses(tmp_path: Path) -> None:
    order = PodOrder(FleetJob("https://host/r.git", "a", "do it"), (), "", push=False)
    good = make_manifest("f" * 16, order, PodSettings("image", ("true",)), 60)
    assert good["spec"]["activeDeadlineSeconds"] == 660

    bad = {
        400: {**good, "spec": {**good["spec"], "backOffLimit": 0}},
        422: {**good, "metadata": {**good["metadata"], "name": "Not_A_Name"}},
    }
    server = KubernetesServer(tmp_path, {}, {})

    async def create() -> None:
        api = KubernetesApi(ClusterAccess(server.url, "work", None, str))
        for status_code, manifest in bad.items():
            with pytest.raises(ApiProblem) as problem:
                await api.create_job(manifest)
            assert problem.value.status == status_code
        assert await api.create_job(good) is not None
        assert await api.create_job(good) is None, "there is one already"
        await api.delete_job(good["metadata"]["name"])
        await api.delete_job(good["metadata"]["name"])
        await api.aclose()

    try:
        asyncio.run(create())
    finally:
        server.close()
    with pytest.raises(CodeloopError, match="a path of this machine"):
        make_manifest(
            "f",
            PodOrder(FleetJob("/here", "a", "do it"), (), "", push=False),
            PodSettings("image"),
            None,
        )


def test_a_cluster_is_reached_as_its_kubeconfig_or_the_pod_says(tmp_path: Path) -> None:
    file = tmp_path / "config"
    (tmp_path / "token").write_text("from a file\n")
    write_kubeconfig(file, "http://127.0.0.1:8001", {"tokenFile": "token"})
    access = find_access({"KUBECONFIG": str(file)}, namespace="other")
    assert (access.url, access.namespace, access.read_token()) == (
        "http://127.0.0.1:8001",
        "other",
        "from a file",
    )
    (tmp_path / "token").write_text("renewed")
    assert access.read_token() == "renewed"
    write_kubeconfig(file, "https://cluster", {"exec": {"command": "aws"}})
    with pytest.raises(CodeloopError, match="kubectl create token"):
        find_access({"KUBECONFIG": str(file)})
    with pytest.raises(CodeloopError, match="has no context 'else'; it has test"):
        find_access({"KUBECONFIG": str(file)}, "else")
    write_kubeconfig(file, "https://cluster", {"client-certificate-data": "AAAA"})
    with pytest.raises(CodeloopError, match="can't be used"):
        find_access({"KUBECONFIG": str(file)})
    with pytest.raises(CodeloopError, match="service account can't be read"):
        read_pod_access({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path / "nothing")
