"""The balancer of compose.postgres.yaml in front of two real processes on one PostgreSQL server."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from channels.telegram import TelegramChannel, Webhook, Wire
from gateway import app
from tests.kit import postgres
from tests.kit.patience import SECONDS, until
from tests.kit.served import ANN, ROOT, TELEGRAM_TOKEN, spawned
from tests.platforms.telegram import serving

pytestmark = pytest.mark.campaign

CONF = (ROOT / "docs" / "balancer.conf").read_text("utf-8")
#: The servers of the balancer, named as the services of compose.
SERVER = re.compile(r"server (\S+):8765 (.*) resolve;")


def test_the_balancer_names_the_services_and_what_they_answer() -> None:
    base, more = (compose(name) for name in ("compose.yaml", "compose.postgres.yaml"))
    names = [name for name, _ in SERVER.findall(CONF)]
    assert set(names) | {"database", "balancer"} == set(base["services"]) | set(more["services"])
    for name in names:
        assert more["services"][name]["environment"]["DATABASE_URL"].endswith("@database/remora")
        assert more["services"][name]["build"]["args"] == {"EXTRA": "postgres"}
    mounted = [one for each in more["services"].values() for one in each.get("volumes", ()) if one.startswith("./")]
    assert mounted and all((ROOT / one.split(":")[0]).is_file() for one in mounted)
    assert all(key in more["services"] or key in base["services"] for key in more["services"]["balancer"]["depends_on"])
    hook = TelegramChannel(
        id="telegram", wire=Wire(TELEGRAM_TOKEN), webhook=Webhook(url="https://b.example", secret="s" * 20), now=app.now
    ).hook()
    assert hook is not None and hook.path.startswith("/telegram/") and "location /telegram/ {" in CONF


def test_the_driver_of_the_image_is_the_one_that_is_tested() -> None:
    tested = (ROOT / "requirements-dev.txt").read_text("utf-8")
    pins = re.findall(r"^(\S+==\S+)", (ROOT / "requirements-postgres.txt").read_text("utf-8"), re.MULTILINE)
    assert {"psycopg", "psycopg-binary"} <= {pin.split("==")[0] for pin in pins}
    assert [pin for pin in pins if f"\n{pin} " not in tested] == []


def compose(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


@asynccontextmanager
async def balancer(folder: Path, port: int, replicas: Sequence[int]) -> AsyncIterator[None]:
    """The nginx of this machine with the balancer's configuration, over loopback."""
    ports = iter(replicas)
    conf = SERVER.sub(lambda match: f"server 127.0.0.1:{next(ports)} {match[2]};", CONF)
    paths = "".join(f"{name}_temp_path {folder};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log; events {{}}\n"
        f"http {{\naccess_log off;\n{paths}{conf.replace('listen 8765', f'listen 127.0.0.1:{port}')}}}\n"
    )
    program = shutil.which("nginx")
    assert program is not None
    running = await asyncio.create_subprocess_exec(program, "-c", str(file), "-e", str(folder / "nginx.log"))
    try:
        yield
    finally:
        running.terminate()
        await running.wait()


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
@pytest.mark.postgres
async def test_a_killed_process_is_noticed_by_nobody(
    tmp_path: Path, unused_tcp_port_factory: Callable[[], int]
) -> None:
    """Webhooks and the page go on through the balancer when one of the two is killed with -9."""
    url = postgres.url(tmp_path / "data" / "remora.db")
    front, *ports = (unused_tcp_port_factory() for _ in range(3))
    async with AsyncExitStack() as stack:
        telegram = await stack.enter_async_context(serving((TELEGRAM_TOKEN,)))
        await telegram.webhook(f"http://127.0.0.1:{front}")
        client = await stack.enter_async_context(httpx.AsyncClient(trust_env=False, timeout=SECONDS))
        hook = "webhook: 'https://bot.example.org'"
        bot = f"{{token: '{TELEGRAM_TOKEN}', base_url: '{telegram.url}', allow: [{ANN}], {hook}}}"
        living = []
        for port in ports:
            folder = tmp_path / str(port)
            folder.mkdir()
            (folder / "config.yaml").write_text(
                f"data_dir: {tmp_path / 'data'}\ndatabase_url: '{url}'\nembedding: {{provider: none}}\n"
                f"limits: {{burst_seconds: 0}}\nhttp: {{port: {port}}}\n"
                f"web: {{enabled: true, url: 'http://localhost:{front}'}}\nchannels: {{telegram: [{bot}]}}\n"
            )
            living.append(await stack.enter_async_context(spawned(folder)))
        await stack.enter_async_context(balancer(tmp_path, front, ports))

        async def status(port: int, path: str = "/readyz", **headers: str) -> int:
            try:
                return (await client.get(f"http://localhost:{port}{path}", headers=headers)).status_code
            except httpx.TransportError:
                return 0

        for port in (*ports, front):

            async def is_ready(port: int = port) -> bool:
                return await status(port) == 200

            await until(is_ready)
        for n in range(3):
            await telegram.say(f"I like tea {n}", user=ANN, name="Ann")
            await telegram.wait(chat=ANN, bot_messages=n + 1)
        assert await status(front, "/in") == 200
        assert [await status(front, path) for path in ("/healthz", "/metrics")] == [404, 404]
        living[0].kill()
        await living[0].wait()
        # Ten visitors, of whom some stayed with the killed one.
        after = [await status(front, "/in", cookie=f"remora={n}") for n in range(10)]
        assert after == [200] * 10
        for n in range(3, 6):
            await telegram.say(f"I like tea {n}", user=ANN, name="Ann")
            await telegram.wait(chat=ANN, bot_messages=n + 1)
