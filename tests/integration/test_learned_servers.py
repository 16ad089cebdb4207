"""The next run knows from its first request what a model server refuses, over real HTTP."""

from __future__ import annotations

from pathlib import Path

from channels.base import Inbound
from gateway import app
from gateway.config.loading import Config, load
from tests.kit.bench import Screen
from tests.kit.fakes import Clock
from tests.kit.loopback import Answer, Asked, serving
from tests.kit.served import SELDOM


class Toolless:
    """A model served without tools. Keeps whether each request had any."""

    def __init__(self) -> None:
        self.offered: list[bool] = []

    async def __call__(self, asked: Asked) -> Answer:
        self.offered.append("tools" in asked.body)
        if self.offered[-1]:
            return Answer(status=400, body={"error": {"message": "m does not support tools"}})
        message = {"role": "assistant", "content": "Yes."}
        return Answer(body={"choices": [{"message": message, "finish_reason": "stop"}]})


def configured(folder: Path, address: str) -> Config:
    (folder / "agents").mkdir()
    (folder / "agents" / "assistant.yaml").write_text(
        f"name: assistant\nmodels: [{{provider: openai, model: m, base_url: '{address}/v1'}}]\n"
    )
    (folder / "config.yaml").write_text("data_dir: data\nembedding: {provider: none}\n")
    return load(folder / "config.yaml", {}, folder, pace=SELDOM)


async def asked(config: Config, clock: Clock, number: int) -> list[str]:
    screen = Screen()
    async with app.running(config, {screen.id: screen}, now=clock) as router:
        said = Inbound(
            channel=screen.id, platform="console", bot_id="local", update_key=str(number), chat="ada",
            chat_kind="private", author_id="ada", author_name="Ada", message_id=str(number), text="Are you there?",
            sent_at=clock(),
        )  # fmt: skip
        await router.on_inbound(said)
        await router.settled(said.place)
    return screen.texts


async def test_what_a_server_does_not_take_is_known_in_the_next_run(tmp_path: Path, clock: Clock) -> None:
    server = Toolless()
    async with serving(server) as address:
        config = configured(tmp_path, address)
        assert (await asked(config, clock, 1))[0].startswith("Yes.")
        assert server.offered == [True, False]
        assert (await asked(config, clock, 2))[0].startswith("Yes.")
        assert server.offered == [True, False, False]
        clock.move(days=31)
        assert (await asked(config, clock, 3))[0].startswith("Yes.")
        assert server.offered == [True, False, False, True, False]
