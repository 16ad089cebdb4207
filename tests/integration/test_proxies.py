"""Behind a proxy: platforms, models and pages are reached through it, and nothing else, and a dead one is named."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Literal

import pytest
import trustme

from agents.budget import count_tokens
from agents.llm import ChatMessage, ModelUnavailable, Request
from agents.providers.adapters import connect
from agents.spec import ModelSpec
from channels.base import ChannelUnavailable
from channels.proxies import Proxy, ProxyFailed, proxy_to
from channels.telegram import probe
from gateway.cli import examination
from gateway.config.loading import Config, ConfigError, load
from gateway.internet.addresses import NotFetched
from gateway.internet.reach import PublicWeb
from gateway.models import http_client
from tests.kit import discord_bot, telegram_bot
from tests.kit.loopback import Answer, Asked, serving
from tests.kit.web import PUBLIC, Names, site
from tests.platforms import discord, telegram
from tests.platforms.proxy import proxy

KINDS: tuple[Literal["http", "socks5", "socks5h"], ...] = ("http", "socks5", "socks5h")
TOKEN = "123456789:" + "Aa0_-" * 7


@pytest.fixture(autouse=True)
def _no_proxy_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def configured(folder: Path, channels: str) -> Config:
    (folder / "config.yaml").write_text(f"embedding: {{provider: none}}\nhttp: {{enabled: false}}\n{channels}")
    (folder / "agents").mkdir(exist_ok=True)
    (folder / "agents" / "assistant.yaml").write_text("name: assistant\n")
    return load(folder / "config.yaml", {}, folder)


def elsewhere(url: str) -> str:
    """An address of this machine under a name that only the proxy knows."""
    return url.replace("127.0.0.1", "platform.example")


@pytest.mark.parametrize("kind", KINDS)
async def test_telegram_is_reached_through_the_proxy_of_its_channel(kind: Literal["http", "socks5"]) -> None:
    """The proxy resolves the name, since this machine may not be able to."""
    async with telegram.serving() as platform, proxy(kind, user="ada", password="s3cret") as way:
        channel = telegram_bot.bot(platform, base_url=elsewhere(platform.url), proxy=way.url)
        async with telegram_bot.running(channel, telegram_bot.Host()) as host:
            await platform.say("hello", user=telegram_bot.ADA)
            [said] = await host.hears()
            await channel.send(telegram_bot.row("hello too"))
        assert (said.text, (await telegram_bot.shown(platform))["text"]) == ("hello", "hello too")
    assert way.asked and {host.rpartition(":")[0] for host in way.asked} == {"platform.example"}


@pytest.mark.parametrize("kind", KINDS)
async def test_discord_and_its_gateway_are_reached_through_the_proxy(kind: Literal["http", "socks5"]) -> None:
    async with discord.serving() as platform, proxy(kind, user="ada", password="s3cret") as way:
        channel = discord_bot.bot(platform, proxy=way.url)
        async with discord_bot.running(channel, discord_bot.Host()) as host:
            await platform.say("hello", user=1001)
            [said] = await host.hears()
            await channel.send(discord_bot.row("hello too", said.place))
            assert await platform.texts(int(said.chat)) == ["hello too"]
    assert len(way.asked) >= 2  # one connection for requests, one for the gateway


async def test_the_environment_names_proxies_for_all_but_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel may have its own, or none."""
    monkeypatch.setenv("HTTPS_PROXY", "http://web:1")
    monkeypatch.setenv("all_proxy", "socks5h://ada:pw@all:2")
    monkeypatch.setenv("NO_PROXY", "inner.example, .corp.example,bare.example:8080")
    rows = [
        ("https://api.telegram.org", None, "web:1"),
        ("wss://gateway.discord.gg", None, "web:1"),
        ("http://plain.example", None, "all:2"),
        ("https://inner.example", None, "None"),
        ("https://a.corp.example", None, "None"),
        ("https://bare.example:8080", None, "None"),
        ("http://localhost:11434", None, "None"),
        ("https://127.8.8.8", None, "None"),
        ("http://[::1]:1", None, "None"),
        ("https://api.telegram.org", "socks5://own", "own:1080"),
        ("http://localhost:11434", "http://own", "own:80"),
        ("https://api.telegram.org", "none", "None"),
    ]
    assert [(url, str(proxy_to(url, own))) for url, own, _ in rows] == [(url, wanted) for url, _, wanted in rows]


async def test_a_platform_and_a_model_are_reached_through_the_environments_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answer(asked: Asked) -> Answer:
        return Answer(body={"choices": [{"message": {"content": "It is noon."}, "finish_reason": "stop"}]})

    for kind in KINDS:
        async with telegram.serving() as platform, serving(answer) as model, proxy(kind) as way:
            monkeypatch.setenv("ALL_PROXY", way.url)
            assert (await probe(platform.token, elsewhere(platform.url))).username
            spec = ModelSpec.model_validate(
                {"provider": "openai", "model": "m", "base_url": elsewhere(model), "key": "k"}
            )
            async with http_client() as client:
                told = await connect(client, spec, count_tokens=count_tokens).complete(
                    Request(messages=(ChatMessage(role="user", content="What time is it?"),))
                )
                here = await client.get(model, headers={"content-length": "0"})
        assert told.text == "It is noon." and here.status_code == 200
        assert [one.rpartition(":")[0] for one in way.asked] == ["platform.example"] * 2, kind


async def test_what_is_dead_or_asks_for_a_password_is_named_without_the_password(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the channel, the model and `remora doctor`."""
    async with telegram.serving() as platform, proxy("http", user="ada", password="right") as way:
        wrong = way.url.replace("right", "wr0ng")
        with pytest.raises(ChannelUnavailable) as refused:
            await probe(platform.token, elsewhere(platform.url), proxy=wrong)
    with pytest.raises(ChannelUnavailable) as dead:
        await probe(platform.token, elsewhere(platform.url), proxy=wrong)
    where = str(Proxy.at(wrong))
    assert f"the proxy {where} does not lead there: 407" in str(refused.value)
    assert f"platform.example can't be reached: the proxy {where} can't be reached" in str(dead.value)
    assert dead.value.certain

    monkeypatch.setenv("ALL_PROXY", wrong)
    spec = ModelSpec.model_validate({"provider": "openai", "model": "m", "base_url": "http://m.example", "key": "k"})
    async with http_client() as client:
        with pytest.raises(ModelUnavailable, match=f"The proxy {where}, through which m.example") as model:
            await connect(client, spec, count_tokens=count_tokens).complete(
                Request(messages=(ChatMessage(role="user", content="What time is it?"),))
            )
    channel = f"channels: {{telegram: [{{token: '{TOKEN}', proxy: '{wrong}', base_url: 'http://t.example'}}]}}\n"
    config = configured(tmp_path, channel)
    findings = [one async for one in examination.examine(config, outside=True, now=telegram_bot.milliseconds)]
    told = next(one for one in findings if one.about == "channel telegram")
    assert told.state == "trouble" and f"the proxy {where} can't be reached" in told.text and "proxy" in told.fix
    assert not any("wr0ng" in str(words) for words in (refused.value, dead.value, model.value, told, config))


async def test_an_address_of_no_proxy_is_told_without_being_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as exc:
        configured(tmp_path, f"channels: {{telegram: [{{token: '{TOKEN}', proxy: 'ftp://ada:s3cret@h:1'}}]}}\n")
    assert "no address of a proxy" in str(exc.value) and "s3cret" not in str(exc.value)
    monkeypatch.setenv("ALL_PROXY", "ftp://ada:s3cret@h:1")
    with pytest.raises(ConfigError) as exc:
        http_client()
    assert "ALL_PROXY" in str(exc.value) and "s3cret" not in str(exc.value)
    with pytest.raises(ProxyFailed) as failed:
        proxy_to("https://api.telegram.org")
    assert "ALL_PROXY in the environment is no address" in str(failed.value) and "s3cret" not in str(failed.value)
    assert Proxy.at("http://ada:p4ss%20word%2F%40@h:1").password == "p4ss word/@"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_page_behind_a_proxy_is_looked_up_here(
    kind: Literal["http", "socks5"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy is given the address that was checked, so no name that it knows better leads into a network."""
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("page.example").configure_cert(tls)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with site(tls) as there, proxy(kind, user="ada", password="s3cret", port=there.port) as way:
        monkeypatch.setenv("HTTPS_PROXY", way.url)
        names = Names(inside_example=[["10.0.0.1"]], unknown_example=[[]], turns_example=[[PUBLIC], ["127.0.0.1"]])
        web = PublicWeb(look_up=names, tls=trusting)
        there.page("/", "hello")
        assert (await web.get("https://page.example/")).data == b"hello"
        assert way.asked == [f"{PUBLIC}:443"]
        for address in ("https://inside.example/", "https://10.0.0.1/", "https://localhost/", "https://proxy.local/"):
            with pytest.raises(NotFetched):
                await web.get(address)
        there.moved("/", "https://inside.example/")
        with pytest.raises(NotFetched):
            await web.get("https://page.example/")
        assert way.asked == [f"{PUBLIC}:443"] * 2
        for address in ("https://unknown.example/", "https://inside.example/"):  # one answer for both
            with pytest.raises(
                NotFetched, match="no public address that this machine itself finds, as it must even behind"
            ):
                await web.get(address)
    with pytest.raises(NotFetched, match="proxy"):
        await web.get("https://page.example/")
