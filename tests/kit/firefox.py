"""Stands between playwright and Debian's Firefox: run as `python -m tests.kit.firefox`, it is the browser that is launched.

Playwright drives an unpatched Firefox by WebDriver BiDi, but asks it for more than the one of a stable Debian knows. This passes
every message on, and answers what Firefox has no command for, as nothing but the look depends on it.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
from typing import Final

from aiohttp import ClientSession, WSMsgType, web

EXECUTABLE: Final = shutil.which("firefox-esr")
#: Commands that Firefox 153 does not know: the colour scheme that a test asks for.
_UNKNOWN: Final = ("emulation.setMediaFeaturesOverride",)
_ADDRESS: Final = re.compile(r"WebDriver BiDi listening on (ws://\S+)")


async def _passed_on(request: web.Request, address: str) -> web.WebSocketResponse:
    near = web.WebSocketResponse(max_msg_size=0)
    await near.prepare(request)
    async with ClientSession() as session, session.ws_connect(f"{address}{request.path}", max_msg_size=0) as far:

        async def back() -> None:
            async for message in far:
                await near.send_str(message.data)
            await near.close()

        answers = asyncio.create_task(back())
        async for message in near:
            if message.type is not WSMsgType.TEXT:
                continue
            asked = json.loads(message.data)
            if asked.get("method") in _UNKNOWN:
                await near.send_json({"type": "success", "id": asked["id"], "result": {}})
            else:
                await far.send_str(message.data)
        await far.close()
        await answers
    return near


async def main() -> int:
    assert EXECUTABLE is not None
    firefox = await asyncio.create_subprocess_exec(EXECUTABLE, *sys.argv[1:], stderr=asyncio.subprocess.PIPE)
    assert firefox.stderr is not None
    address = None
    while address is None and (line := await firefox.stderr.readline()):
        address = _ADDRESS.search(line.decode())
    if address is None:
        return 1
    relay = web.Server(lambda request: _passed_on(request, address[1]))  # type: ignore[arg-type]
    runner = web.ServerRunner(relay)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    sys.stderr.write(f"WebDriver BiDi listening on ws://127.0.0.1:{port}\n")
    sys.stderr.flush()
    while await firefox.stderr.readline():
        pass
    return await firefox.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
