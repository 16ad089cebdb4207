"""The models of config.yaml: every option with its type, bounds, default and description.

Invariants: an unknown option or a value of the wrong type is a mistake. Defaults are defined only here. Secrets are
never printed. The `config` package checks the rules that span several files.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, StringConstraints, field_validator, model_validator

from agents import plugins
from agents.spec import AGENT_NAME, AGENT_NAME_RULE, Number, Section, Whole, refused, seconds, whole

_OLLAMA = "http://localhost:11434"
#: The bot's number, a colon and 35 characters: the form of the tokens that @BotFather has issued for years.
TELEGRAM_TOKEN = re.compile(r"[0-9]{5,16}:[A-Za-z0-9_-]{35}")
TELEGRAM_URL = "https://api.telegram.org"
#: The bot's number in base64, the time the token was made, and a signature. Discord does not guarantee the lengths,
#: which have grown once. These bounds only tell a token from an id, a client secret or half of a token.
DISCORD_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{4,16}\.[A-Za-z0-9_-]{10,128}")
DISCORD_URL = "https://discord.com/api/v10"
#: The name under which a browser keeps the page apart from others on this machine, whose ports share cookies otherwise.
OWN_NAME = "remora.localhost"
#: The fewest characters of a secret that a program shows.
_LEAST_SECRET = 24
#: `none`, or the address of a proxy, which may hold a user and a password.
_PROXY = re.compile(
    r"none|(?:https?|socks5h?)://(?:[^\s/?#@]*@)?(?:[^\s/?#@:\[\]]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?/?"
)
_URL = re.compile(r"https?://[^\s/?#@]+(?:/[A-Za-z0-9._~/-]*)?")


class LogSettings(Section):
    """The log. `file` is relative to config.yaml."""

    level: Literal["debug", "info", "warning", "error"] = "warning"
    format: Literal["console", "json"] = "console"
    file: str | None = Field(
        default=None, min_length=1, max_length=1000, description="the path of a file", examples=["remora.log"]
    )


def _digits(pattern: str, description: str, example: str) -> Any:
    """Returns the type of a platform's id: exact digits, so that no two texts mean the same person."""
    canonical = re.compile(pattern)

    def number(value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, int | str) or not canonical.fullmatch(str(value)):
            raise ValueError("a number is needed")
        return str(value)

    return BeforeValidator(number), Field(description=description, examples=[example])


_PERSON = "a person's number on Telegram, such as 123456789 (a @name can be taken over by someone else)"
PersonNumber = Annotated[str, *_digits("[1-9][0-9]{0,15}", _PERSON, "123456789")]
_GROUP = "a group's negative number on Telegram"
GroupNumber = Annotated[str, *_digits("-[1-9][0-9]{0,15}", _GROUP, "-1001234567890")]
# The upper bits of Discord's ids count milliseconds since 2015, so no id ever had fewer than 15 digits.
_SNOWFLAKE = "[1-9][0-9]{14,19}"
_COPIED = "id on Discord, 15 to 20 digits (Developer Mode on, right-click {}, Copy {} ID)"
DiscordPerson = Annotated[
    str, *_digits(_SNOWFLAKE, f"a person's {_COPIED.format('the name', 'User')}", "123456789012345678")
]
DiscordServer = Annotated[
    str, *_digits(_SNOWFLAKE, f"a server's {_COPIED.format('it', 'Server')}", "234567890123456789")
]
DiscordChannelNumber = Annotated[
    str, *_digits(_SNOWFLAKE, f"a channel's {_COPIED.format('it', 'Channel')}", "345678901234567890")
]
_Id = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s]{1,200}$"),
    Field(description="an id as the platform writes it", examples=["ada@example.org"]),
]
_NAME: Any = Field(pattern=AGENT_NAME, description=AGENT_NAME_RULE)
_PEOPLE: Any = Field(default_factory=tuple, max_length=10_000)
_ADMINS: Any = Field(default_factory=tuple, max_length=1000)

_URL_FIELD: Any = Field(
    max_length=1000, pattern=r"^https?://[^\s/?#][^\s?#]*$", description="the address of the platform's API"
)


class AnyBot(Section):
    """A bot on a platform, and who may talk to it.

    People in `allow` and `admins` may talk to it in private, and others in `groups`. `group_members` says who is
    answered there. With `observe: context` it reads the latest lines that were not said to it, and keeps none of them.
    """

    id: Annotated[str, _NAME]
    allow: tuple[_Id, ...] = _PEOPLE
    admins: tuple[_Id, ...] = _ADMINS
    groups: tuple[_Id, ...] = _PEOPLE
    group_members: Literal["everyone", "allowed"] = "everyone"
    observe: Literal["none", "context"] = "none"

    @property
    def number(self) -> str:
        return ""


class KnownBot(AnyBot):
    """A bot whose platform Remora knows. `mention` says whether people in a group must call it."""

    token: SecretStr
    base_url: Annotated[str, _URL_FIELD]
    proxy: SecretStr | None = Field(
        default=None,
        description="the address of a proxy: http://host:port, https://host:port or socks5://host:port; or none",
        examples=["socks5://localhost:1080"],
    )
    mention: bool = True

    @property
    def own_proxy(self) -> str | None:
        return None if self.proxy is None else self.proxy.get_secret_value()

    @field_validator("proxy")
    @classmethod
    def _is_a_proxy(cls, proxy: SecretStr | None) -> SecretStr | None:
        if proxy is not None and not _PROXY.fullmatch(proxy.get_secret_value()):
            raise refused(
                "is no address of a proxy",
                "write http://host:port, https://host:port or socks5://host:port, with user:password@ before the host "
                "if it asks for them, best in .env and here ${PROXY}; or none, to use none",
            )
        return proxy


class TelegramSettings(KnownBot):
    """A bot on Telegram. `stream` says how a growing answer is shown.

    With `webhook`, the address of the HTTP server as seen from outside, Telegram delivers updates there instead of
    being polled; the channel appends its own path.
    """

    platform: ClassVar[Literal["telegram"]] = "telegram"
    id: str = Field(default="telegram", pattern=AGENT_NAME, description=AGENT_NAME_RULE)
    token: SecretStr = Field(description="the bot's token from @BotFather", examples=["${TELEGRAM_TOKEN}"])
    base_url: Annotated[str, _URL_FIELD] = TELEGRAM_URL
    allow: tuple[PersonNumber, ...] = _PEOPLE
    admins: tuple[PersonNumber, ...] = _ADMINS
    groups: tuple[GroupNumber, ...] = _PEOPLE
    stream: Literal["edit", "draft", "mark"] = "edit"
    webhook: str | None = Field(
        default=None,
        max_length=1000,
        description="the address the platform delivers to",
        examples=["https://bot.example.org"],
    )

    @property
    def number(self) -> str:
        return self.token.get_secret_value().partition(":")[0]

    @property
    def webhook_secret(self) -> str:
        """The word by which Telegram's requests are known. Nobody without the token can make it."""
        return hmac.digest(self.token.get_secret_value().encode(), b"webhook", "sha256").hex()

    @field_validator("token")
    @classmethod
    def _looks_like_a_token(cls, token: SecretStr) -> SecretStr:
        if not TELEGRAM_TOKEN.fullmatch(token.get_secret_value()):
            raise refused(
                "is not a bot token, which has digits, a colon and 35 more characters",
                "copy all of it from @BotFather, who shows it again under /mybots",
            )
        return token

    @field_validator("webhook")
    @classmethod
    def _reaches_us(cls, url: str | None) -> str | None:
        example = "write for example webhook: https://bot.example.org"
        if url is not None and not _URL.fullmatch(url):
            raise refused("is not a plain address with at most a path of letters, digits, -, . and _", example)
        parts = urlsplit(url or "")
        if url is not None and parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise refused("is not https, so others on the network could read the messages", example)
        return url


class DiscordSettings(KnownBot):
    """A bot on Discord. People may talk to it in all channels of `servers`, and in the channels `groups`."""

    platform: ClassVar[Literal["discord"]] = "discord"
    id: str = Field(default="discord", pattern=AGENT_NAME, description=AGENT_NAME_RULE)
    token: SecretStr = Field(description="the bot's token from its Bot page on Discord", examples=["${DISCORD_TOKEN}"])
    base_url: Annotated[str, _URL_FIELD] = DISCORD_URL
    allow: tuple[DiscordPerson, ...] = _PEOPLE
    admins: tuple[DiscordPerson, ...] = _ADMINS
    servers: tuple[DiscordServer, ...] = _PEOPLE
    groups: tuple[DiscordChannelNumber, ...] = _PEOPLE
    stream: Literal["edit", "mark"] = "edit"

    @property
    def number(self) -> str:
        return discord_number(self.token.get_secret_value())

    @field_validator("token")
    @classmethod
    def _looks_like_a_token(cls, token: SecretStr) -> SecretStr:
        if not DISCORD_TOKEN.fullmatch(token.get_secret_value()):
            raise refused(
                "is not a bot token, which has three parts of letters, digits, - and _ separated by dots",
                "copy all of it from the Bot page at https://discord.com/developers/applications, where Reset Token "
                "shows a new one",
            )
        return token


class OtherSettings(AnyBot):
    """A bot on a platform whose channel another installed package brings (docs/extending.md)."""

    platform: str = Field(pattern=AGENT_NAME, description="the name under which the package offers its channel")
    options: dict[str, Any] = Field(
        default_factory=dict, max_length=50, description="options of the channel", repr=False
    )

    @field_validator("platform")
    @classmethod
    def _is_offered(cls, platform: str) -> str:
        offered = plugins.installed(plugins.CHANNELS)
        if platform not in offered:
            raise refused(
                f"is offered by no installed package (offered: {', '.join(sorted(offered)) or 'none'})",
                "install the package, or correct the name",
            )
        return platform


#: The settings of a bot on any platform.
BotSettings: TypeAlias = TelegramSettings | DiscordSettings | OtherSettings


def discord_number(token: str) -> str:
    """Returns the bot's id from the first part of its Discord token, which is base64. Empty if it holds no id."""
    head = token.partition(".")[0]
    try:
        number = urlsafe_b64decode(head + "=" * (-len(head) % 4)).decode("ascii")
    except ValueError:
        return ""
    return number if re.fullmatch("[1-9][0-9]{14,19}", number) else ""


class ChannelsSettings(Section):
    """The chat platforms."""

    telegram: tuple[TelegramSettings, ...] = Field(default_factory=tuple, max_length=100)
    discord: tuple[DiscordSettings, ...] = Field(default_factory=tuple, max_length=100)
    other: tuple[OtherSettings, ...] = Field(default_factory=tuple, max_length=100)

    @property
    def bots(self) -> tuple[BotSettings, ...]:
        return (*self.telegram, *self.discord, *self.other)


class HttpSettings(Section):
    """The HTTP server on which `remora serve` reports its health, receives webhooks and serves the page and the API."""

    enabled: bool = True
    host: str = Field(
        default="127.0.0.1", min_length=1, max_length=255, description="an address of this machine to listen at"
    )
    port: Whole = Field(default=8765, ge=1, le=65_535, description="a port from 1 to 65535")
    exit_after_minutes: Number = Field(default=0.0, ge=0, le=1440, description="a number of minutes from 0 to 1440")


class WebSettings(Section):
    """The web page, on which people talk to agents and see what is remembered of them."""

    enabled: bool = False
    url: str = Field(
        default="", max_length=1000, description="the address of the page", examples=["https://remora.example.org"]
    )
    agents: tuple[Annotated[str, Field(pattern=AGENT_NAME, description=AGENT_NAME_RULE)], ...] = Field(
        default_factory=tuple, max_length=100
    )

    @field_validator("url")
    @classmethod
    def _is_an_origin(cls, url: str) -> str:
        example = "write for example url: https://remora.example.org"
        parts = urlsplit(url)
        if url and (not _URL.fullmatch(url) or parts.path.strip("/")):
            raise refused("is not an address without a path", example)
        if url and parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise refused(
                "is not https, so others on the network could read what is shown and sign in as others", example
            )
        return url.rstrip("/")


class FrontEndSettings(Section):
    """A front end for many people, such as Open WebUI, that says in each request who asks, signed (HS256) or not."""

    name: str = Field(pattern=AGENT_NAME, description=AGENT_NAME_RULE, examples=["open-webui"])
    key: SecretStr = Field(description="the key that the front end shows", examples=["${FRONT_END_KEY}"])
    jwt_secret: SecretStr | None = Field(default=None, max_length=1000)
    shared: bool = False

    @field_validator("key", "jwt_secret")
    @classmethod
    def _is_long(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and len(secret.get_secret_value()) < _LEAST_SECRET:
            make = 'python3 -c "import secrets; print(secrets.token_urlsafe(32))" prints one'
            raise refused(f"has fewer than {_LEAST_SECRET} characters, so it could be guessed", make)
        return secret

    @model_validator(mode="after")
    def _people_are_told_apart(self) -> FrontEndSettings:
        if (self.jwt_secret is None) != self.shared:
            raise refused(
                "must say how people are told apart, in one way",
                "add the front end's jwt_secret, or shared: true if whoever has the key may name anybody",
            )
        return self


class ApiSettings(Section):
    """The doors for programs: an OpenAI endpoint, a memory API and a server of tools (MCP), on the HTTP server."""

    body_bytes: ClassVar[int] = 10_000_000

    enabled: bool = False
    url: str | None = Field(
        default=None,
        max_length=1000,
        pattern=r"^https?://[^\s/?#@]+$",
        description="an address without a path",
        examples=["https://bot.example.org"],
    )
    front_ends: tuple[FrontEndSettings, ...] = Field(default_factory=tuple, max_length=20)
    requests_per_minute: Whole = whole(60, "requests", 1, 100_000)
    concurrent: Whole = whole(4, "requests", 1, 100)

    def host(self) -> str:
        return (urlsplit(self.url).hostname or "") if self.url else ""


class LimitSettings(Section):
    """Bounds on turns and messages."""

    message_chars: ClassVar[int] = 32_000

    concurrent_turns: Whole = whole(8, "turns", 1, 1000)
    turn_seconds: Number = seconds(180.0, 3600)
    burst_seconds: Number = seconds(1.0, 60, zero=True)
    person_messages_per_minute: Whole = whole(30, "messages", 1, 10_000)

    @property
    def person_burst(self) -> int:
        return max(1, self.person_messages_per_minute // 3)


class AttachmentSettings(Section):
    """The limits for reading files and pictures.

    `max_bytes` applies to each of them (0: none is read), and `fetch_seconds` to all attachments of a message together.
    A prompt holds at most `text_tokens` tokens of their text, and the model sees the last `pictures` of a session.
    """

    fetch_seconds: ClassVar[float] = 20.0
    text_tokens: ClassVar[int] = 8000
    # Each request carries these pictures, of up to 5 MB each.
    pictures: ClassVar[int] = 4

    # Telegram gives bots files of at most 20 MB, and all files are held in memory while they are read.
    max_bytes: Whole = whole(10_000_000, "bytes", 0, 20_000_000)


class ModelServer(Section):
    """A model on a server: its address, its name there, and the key that the server asks for."""

    base_url: str = Field(min_length=1, max_length=1000, description="the server's address")
    model: str = Field(min_length=1, max_length=200, description="the model's name on its server")
    key: SecretStr | None = Field(default=None, max_length=1000)


class TranscriberSettings(ModelServer):
    """A server that transcribes voice messages through OpenAI's API (/audio/transcriptions) in `timeout` seconds."""

    timeout: ClassVar[float] = 60.0

    base_url: str = Field(
        max_length=1000,
        pattern=r"^https?://[^\s/?#][^\s?#]*$",
        description="the server's address, before /audio/transcriptions",
        examples=["https://api.openai.com/v1"],
    )
    model: str = Field(
        min_length=1, max_length=200, description="the model's name on its server", examples=["whisper-1"]
    )
    language: str | None = Field(
        default=None, pattern=r"^[a-z]{2,3}$", description="a language's code of two or three letters", examples=["de"]
    )


class InternetSettings(Section):
    """The web, for agents whose files name the tools fetch_url and web_search. Other services have other ports."""

    ports: ClassVar[tuple[int, ...]] = (80, 443)

    search: str | None = Field(
        default=None,
        max_length=1000,
        pattern=r"^https?://[^\s/?#@][^\s?#@]*$",
        description="the address of a SearXNG server, before /search",
        examples=["http://localhost:8888"],
    )


class MemorySettings(Section):
    """Settings for the memories of all agents."""

    #: More would not fit beside the prompt of a small model.
    extract_tokens: ClassVar[int] = 2000

    admins_read: bool = True
    transcript_days: Whole | None = whole(None, "days", 1, 36_500)
    left_chat_days: Whole = whole(30, "days", 1, 36_500)
    export_days: Whole | None = whole(None, "days", 1, 36_500)


EMBEDDERS = ("local", "small", "english", "openai", "ollama", "none")


class EmbeddingSettings(ModelServer):
    """The embedding models for search by meaning.

    `local` uses two models on this machine: a multilingual one, and an English one that tells words apart. `small` and
    `english` use one of the two. A server is sent `batch` texts at a time and has `timeout` seconds.
    """

    timeout: ClassVar[float] = 30.0
    batch: ClassVar[int] = 64

    provider: str = Field(
        default="local",
        description=f"one of {', '.join(EMBEDDERS)}, or an embedder of an installed package",
        examples=["local"],
    )
    base_url: str = Field(default="", max_length=1000, description="the server's address", examples=[_OLLAMA])
    model: str = Field(default="", max_length=200, description="the model's name on its server")

    @field_validator("provider")
    @classmethod
    def _is_known(cls, provider: str) -> str:
        if provider not in EMBEDDERS and provider not in plugins.installed(plugins.EMBEDDERS):
            raise ValueError("unknown")
        return provider

    @model_validator(mode="after")
    def _a_server_is_named(self) -> EmbeddingSettings:
        if self.provider in ("openai", "ollama"):
            if not self.base_url:
                raise refused(f"{self.provider} needs a base_url", f"add base_url, such as {_OLLAMA}")
            if not self.model:
                raise refused(f"{self.provider} needs a model", "add the name of an embedding model")
        return self


class RerankSettings(ModelServer):
    """A server that reranks the `top_n` best findings, through the API of Jina, Cohere and others."""

    top_n: ClassVar[int] = 8
    timeout: ClassVar[float] = 1.5

    base_url: str = Field(min_length=1, max_length=1000, description="the server's address, before /rerank")


class BackupSettings(Section):
    """Copies of the databases."""

    folder: str = Field(
        default="backups",
        min_length=1,
        max_length=1000,
        description="the path of a folder, inside data_dir unless it begins with /",
    )
    keep_days: Whole = whole(14, "days", 1, 3650)
    daily: bool = True
    server_days: Whole = whole(0, "days", 0, 3650)

    def within(self, data_dir: Path) -> Path:
        return data_dir / self.folder


def names_database(address: str) -> bool:
    return re.match(r"postgres(?:ql)?://|(?:.* )?dbname=", address) is not None


class Settings(Section):
    """The content of config.yaml as written. Its paths are not resolved yet (see `Config`)."""

    data_dir: str = Field(default="data", min_length=1, max_length=1000, description="the path of a folder")
    default_agent: str = Field(default="assistant", pattern=AGENT_NAME, description=AGENT_NAME_RULE)
    durability: Literal["process", "power-loss"] = "process"
    database_url: SecretStr = Field(
        default=SecretStr(""),
        description="the address of a PostgreSQL database: postgresql://user:password@host/name",
        examples=["${DATABASE_URL}"],
    )
    log: LogSettings = Field(default_factory=LogSettings)
    channels: ChannelsSettings = Field(default_factory=ChannelsSettings)
    http: HttpSettings = Field(default_factory=HttpSettings)
    web: WebSettings = Field(default_factory=WebSettings)
    api: ApiSettings = Field(default_factory=ApiSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    attachments: AttachmentSettings = Field(default_factory=AttachmentSettings)
    transcriber: TranscriberSettings | None = None
    internet: InternetSettings = Field(default_factory=InternetSettings)
    memory: MemorySettings = Field(default_factory=MemorySettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    rerank: RerankSettings | None = None
    backup: BackupSettings = Field(default_factory=BackupSettings)

    @field_validator("database_url")
    @classmethod
    def _names_a_database(cls, url: SecretStr) -> SecretStr:
        value = url.get_secret_value()
        if value and not names_database(value):
            raise refused(
                "is not the address of a PostgreSQL database",
                "write postgresql://user:password@host/name, best in .env as DATABASE_URL, and here ${DATABASE_URL}",
            )
        return url

    @property
    def page_url(self) -> str:
        return self.web.url or f"http://{OWN_NAME}:{self.http.port}"

    @property
    def has_page(self) -> bool:
        """True if `remora serve` serves the web page, as it also does where there is no platform."""
        alone = not (self.channels.bots or self.api.enabled) and (is_loopback(self.http.host) or bool(self.web.url))
        return self.http.enabled and (self.web.enabled or alone)


def is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPace:
    """Times in the units of their names, and numbers of messages."""

    #: An answer that takes longer is shown as it grows; below that, a placeholder would only flicker.
    placeholder_seconds: float = 1.5
    #: Messages of one chat that may wait for their turn. Whoever waits for more has stopped reading.
    queue: int = 50
    #: Messages that waited longer for the bot to start are answered only on request: the moment has passed.
    stale_hours: float = 2.0
    #: Messages are read for memories after a silence this long, so that a burst is read once.
    quiet_seconds: float = 60.0
    #: Or as soon as so many are new, which a model reads at once.
    extract_messages: int = 30
    #: For so long an exit waits for that reading. Service managers kill after 30 to 90 seconds; the next start goes on.
    exit_seconds: float = 20.0


#: The pace outside of tests.
USUAL: Final = WorkPace()
