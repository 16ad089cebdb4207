"""The models of config.yaml: every option with its type, bounds, default and description.

Invariants: an unknown option or a value of the wrong type is a mistake. Defaults are defined only here. Secrets are
never printed. The `config` package checks the rules that span several files.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias
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
_WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")
#: The fewest characters of a secret that a program shows.
_LEAST_SECRET = 24
_URL = re.compile(r"https?://[^\s/?#@]+(?:/[A-Za-z0-9._~/-]*)?")


class LogSettings(Section):
    """The log's content, format and destination. `file` is relative to config.yaml; null means the terminal."""

    level: Literal["debug", "info", "warning", "error"] = "warning"
    format: Literal["console", "json"] = "console"
    file: str | None = Field(
        default=None, min_length=1, max_length=1000, description="the path of a file", examples=["remora.log"]
    )


def _number(pattern: str) -> Callable[[Any], str]:
    """Returns a validator for a platform's id: exact digits, so that no two texts mean the same person."""
    canonical = re.compile(pattern)

    def number(value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, int | str) or not canonical.fullmatch(str(value)):
            raise ValueError("a number is needed")
        return str(value)

    return number


PersonNumber = Annotated[
    str,
    BeforeValidator(_number("[1-9][0-9]{0,15}")),
    Field(
        description="a person's number on Telegram, such as 123456789 (a @name can be taken over by someone else)",
        examples=["123456789"],
    ),
]
GroupNumber = Annotated[
    str,
    BeforeValidator(_number("-[1-9][0-9]{0,15}")),
    Field(description="a group's negative number on Telegram", examples=["-1001234567890"]),
]
# The upper bits of Discord's ids count milliseconds since 2015, so no id ever had fewer than 15 digits.
_snowflake = _number("[1-9][0-9]{14,19}")
DiscordPerson = Annotated[
    str,
    BeforeValidator(_snowflake),
    Field(
        description="a person's id on Discord, 15 to 20 digits (Developer Mode on, right-click the name, Copy User ID)",
        examples=["123456789012345678"],
    ),
]
DiscordServer = Annotated[
    str,
    BeforeValidator(_snowflake),
    Field(
        description="a server's id on Discord, 15 to 20 digits (Developer Mode on, right-click it, Copy Server ID)",
        examples=["234567890123456789"],
    ),
]
DiscordChannelNumber = Annotated[
    str,
    BeforeValidator(_snowflake),
    Field(
        description="a channel's id on Discord, 15 to 20 digits (Developer Mode on, right-click it, Copy Channel ID)",
        examples=["345678901234567890"],
    ),
]


class WebhookSettings(Section):
    """A webhook, to which a platform delivers updates instead of being polled.

    `secret` proves that a request comes from the platform. `url` is the address of the HTTP server as seen from
    outside; the channel appends its own path.
    """

    url: str = Field(
        max_length=1000, description="the address the platform delivers to", examples=["https://bot.example.org"]
    )
    # The default is validated too: without a secret, anyone who finds the address could impersonate anyone.
    secret: SecretStr = Field(default=SecretStr(""), validate_default=True)

    @field_validator("url")
    @classmethod
    def _reaches_us(cls, url: str) -> str:
        example = "write for example url: https://bot.example.org"
        if not _URL.fullmatch(url):
            raise refused("is not a plain address with at most a path of letters, digits, -, . and _", example)
        parts = urlsplit(url)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise refused("is not https, so others on the network could read the messages", example)
        return url

    @field_validator("secret")
    @classmethod
    def _can_not_be_guessed(cls, secret: SecretStr) -> SecretStr:
        value = secret.get_secret_value()
        make = (
            'python3 -c "import secrets; print(secrets.token_urlsafe(32))" prints one. Add it to .env as '
            "TELEGRAM_WEBHOOK_SECRET and write secret: ${TELEGRAM_WEBHOOK_SECRET}"
        )
        if not value:
            raise refused("is missing; without it, anyone could write to the bot in someone else's name", make)
        if not _WEBHOOK_SECRET.fullmatch(value):
            raise refused("is not a secret of 16 to 256 letters A-Z and a-z, digits, _ and -", make)
        return secret


class TelegramSettings(Section):
    """A bot on Telegram, and who may talk to it: people in `allow` and `admins` in private, and groups in `groups`.

    `group_members` says which members of such a group are answered, and `mention` whether they must call the bot. With
    `observe: context` it reads the latest lines that were not said to it, and keeps none of them. `stream` says how a
    growing answer is shown. Without `webhook`, Telegram is polled for updates.
    """

    platform: ClassVar[Literal["telegram"]] = "telegram"
    id: str = Field(default="telegram", pattern=AGENT_NAME, description=AGENT_NAME_RULE)
    token: SecretStr = Field(description="the bot's token from @BotFather", examples=["${TELEGRAM_TOKEN}"])
    base_url: str = Field(
        default=TELEGRAM_URL,
        max_length=1000,
        pattern=r"^https?://[^\s/?#][^\s?#]*$",
        description="the address of a Bot API server",
    )
    allow: tuple[PersonNumber, ...] = Field(default_factory=tuple, max_length=10_000)
    admins: tuple[PersonNumber, ...] = Field(default_factory=tuple, max_length=1000)
    groups: tuple[GroupNumber, ...] = Field(default_factory=tuple, max_length=10_000)
    group_members: Literal["everyone", "allowed"] = "everyone"
    mention: bool = True
    observe: Literal["none", "context"] = "none"
    stream: Literal["edit", "draft"] = "edit"
    webhook: WebhookSettings | None = None

    @property
    def number(self) -> str:
        """The bot's number, with which its token begins."""
        return self.token.get_secret_value().partition(":")[0]

    @field_validator("token")
    @classmethod
    def _looks_like_a_token(cls, token: SecretStr) -> SecretStr:
        if not TELEGRAM_TOKEN.fullmatch(token.get_secret_value()):
            raise refused(
                "is not a bot token, which has digits, a colon and 35 more characters",
                "copy all of it from @BotFather, who shows it again under /mybots",
            )
        return token


class DiscordSettings(Section):
    """A bot on Discord, and who may talk to it.

    People in `allow` and `admins` may talk to it in private, and others in all channels of `servers` and in the
    channels `groups`. `group_members` says who is answered there, and `mention` whether they must call the bot. With
    `observe: context` it reads the latest lines that were not said to it, and keeps none of them.
    """

    platform: ClassVar[Literal["discord"]] = "discord"
    id: str = Field(default="discord", pattern=AGENT_NAME, description=AGENT_NAME_RULE)
    token: SecretStr = Field(description="the bot's token from its Bot page on Discord", examples=["${DISCORD_TOKEN}"])
    base_url: str = Field(
        default=DISCORD_URL,
        max_length=1000,
        pattern=r"^https?://[^\s/?#][^\s?#]*$",
        description="the address of Discord's API",
    )
    allow: tuple[DiscordPerson, ...] = Field(default_factory=tuple, max_length=10_000)
    admins: tuple[DiscordPerson, ...] = Field(default_factory=tuple, max_length=1000)
    servers: tuple[DiscordServer, ...] = Field(default_factory=tuple, max_length=10_000)
    groups: tuple[DiscordChannelNumber, ...] = Field(default_factory=tuple, max_length=10_000)
    group_members: Literal["everyone", "allowed"] = "everyone"
    mention: bool = True
    observe: Literal["none", "context"] = "none"

    @property
    def number(self) -> str:
        """The bot's id, with which its token begins. Empty if it can't be read."""
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


_Id = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s]{1,200}$"),
    Field(description="an id as the platform writes it", examples=["ada@example.org"]),
]


class OtherSettings(Section):
    """A bot on a platform whose channel another installed package brings (docs/extending.md), and who may talk to it.

    `options` are the channel's own.
    """

    platform: str = Field(pattern=AGENT_NAME, description="the name under which the package offers its channel")
    id: str = Field(pattern=AGENT_NAME, description=AGENT_NAME_RULE)
    options: dict[str, Any] = Field(
        default_factory=dict, max_length=50, description="options of the channel", repr=False
    )
    allow: tuple[_Id, ...] = Field(default_factory=tuple, max_length=10_000)
    admins: tuple[_Id, ...] = Field(default_factory=tuple, max_length=1000)
    groups: tuple[_Id, ...] = Field(default_factory=tuple, max_length=10_000)
    group_members: Literal["everyone", "allowed"] = "everyone"
    observe: Literal["none", "context"] = "none"

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

    @property
    def number(self) -> str:
        """The bot's number on its platform, which only the channel may know."""
        return ""


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
        """The bots on all platforms."""
        return (*self.telegram, *self.discord, *self.other)


class HttpSettings(Section):
    """The HTTP server on which `remora serve` reports its health and receives webhooks.

    After `exit_after_minutes` of bad health the process exits, so that it can be restarted (0: never).
    """

    enabled: bool = True
    host: str = Field(
        default="127.0.0.1", min_length=1, max_length=255, description="an address of this machine to listen at"
    )
    port: Whole = Field(default=8765, ge=1, le=65_535, description="a port from 1 to 65535")
    exit_after_minutes: Number = Field(default=0.0, ge=0, le=1440, description="a number of minutes from 0 to 1440")


class WebSettings(Section):
    """The web page, on which people talk to agents and see what is remembered of them.

    `url` is the page's address as seen from outside; without it the page answers on this machine alone. `agents` are
    those that have a page; the default agent if none are named.
    """

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
    """A front end for many people, such as Open WebUI, that says in each request who asks.

    With `jwt_secret` it signs that (HS256, as open-webui). With `shared` whatever name it gives is believed.
    """

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
    """The doors for programs: an OpenAI endpoint, a memory API and a server of tools (MCP), on the HTTP server.

    `url` is the address at which others reach that server. A key may make `requests_per_minute` requests, `concurrent`
    of them at the same time, with bodies of at most `body_bytes` bytes.
    """

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
        """Returns the host in `url`, without its port; "" without a `url`."""
        return (urlsplit(self.url).hostname or "") if self.url else ""


class LimitSettings(Section):
    """Bounds on turns and messages.

    `concurrent_turns` applies to each agent. `queue` is the number of messages of one session that may wait. A person
    may send `person_messages_per_minute` in the long run, and a third of them at once. Of a message longer than
    `message_chars` characters, its head and tail are kept and shown to the model.
    Messages that waited longer than `stale_hours` for the bot to start are answered only on request. An answer that
    takes longer than `placeholder_seconds` is shown as it grows.
    """

    message_chars: ClassVar[int] = 32_000

    concurrent_turns: Whole = whole(8, "turns", 1, 1000)
    turn_seconds: Number = seconds(180.0, 3600)
    burst_seconds: Number = seconds(1.0, 60, zero=True)
    queue: Whole = whole(50, "messages", 1, 10_000)
    person_messages_per_minute: Whole = whole(30, "messages", 1, 10_000)
    stale_hours: Number = Field(default=2.0, gt=0, le=168, description="a number of hours greater than 0, at most 168")
    placeholder_seconds: Number = seconds(1.5, 60, zero=True)

    @property
    def person_burst(self) -> int:
        """The messages that one person may send at once."""
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


class TranscriberSettings(Section):
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
    key: SecretStr | None = Field(default=None, max_length=1000)
    language: str | None = Field(
        default=None, pattern=r"^[a-z]{2,3}$", description="a language's code of two or three letters", examples=["de"]
    )


class InternetSettings(Section):
    """The way to the web of agents whose files name the tools fetch_url and web_search.

    `search` is the address of a SearXNG server, which may be on this machine or its network. Pages are fetched on
    these `ports` alone, because other services listen on others.
    """

    ports: ClassVar[tuple[int, ...]] = (80, 443)

    search: str | None = Field(
        default=None,
        max_length=1000,
        pattern=r"^https?://[^\s/?#@][^\s?#@]*$",
        description="the address of a SearXNG server, before /search",
        examples=["http://localhost:8888"],
    )


class MemorySettings(Section):
    """The moments when messages are read for memories: after a quiet gap, at a number of messages or tokens, at exit.

    With `admins_read`, a channel's admins see what is remembered about its people and groups; without it they can only
    count and forget memories. Messages older than `transcript_days` lose their text (null: never), but what was learned
    from them stays. What was said and learned in a chat is erased `left_chat_days` after the bot has left it: time
    enough to notice that it was removed by mistake. Exports beside the databases are removed after `export_days` (null:
    never).
    """

    #: More would not fit beside the prompt of a small model.
    extract_tokens: ClassVar[int] = 2000

    quiet_seconds: Number = seconds(60.0, 86_400, zero=True)
    extract_messages: Whole = whole(30, "messages", 1, 1000)
    exit_seconds: Number = seconds(20.0, 600, zero=True)
    admins_read: bool = True
    transcript_days: Whole | None = whole(None, "days", 1, 36_500)
    left_chat_days: Whole = whole(30, "days", 1, 36_500)
    export_days: Whole | None = whole(None, "days", 1, 36_500)


class RecallSettings(Section):
    """The search mode of memory: `hybrid` searches by words and meaning, `classic` by words alone."""

    mode: Literal["hybrid", "classic"] = "hybrid"


_EMBEDDERS = ("local", "small", "english", "openai", "ollama", "none")


class EmbeddingSettings(Section):
    """The embedding models for search by meaning.

    `local` uses two models on this machine: a multilingual one, and an English one that tells words apart. `small`
    and `english` use only one of the two. The other choices are a server with OpenAI's or Ollama's API, or none. A
    server is sent `batch` texts at a time and has `timeout` seconds.
    """

    timeout: ClassVar[float] = 30.0
    batch: ClassVar[int] = 64

    provider: str = Field(
        default="local",
        description=f"one of {', '.join(_EMBEDDERS)}, or an embedder of an installed package",
        examples=["local"],
    )
    base_url: str = Field(default="", max_length=1000, description="the server's address", examples=[_OLLAMA])
    key: SecretStr | None = Field(default=None, max_length=1000)
    model: str = Field(default="", max_length=200, description="the model's name on its server")

    @field_validator("provider")
    @classmethod
    def _is_known(cls, provider: str) -> str:
        if provider not in _EMBEDDERS and provider not in plugins.installed(plugins.EMBEDDERS):
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


class RerankSettings(Section):
    """A server that reranks the `top_n` best findings, through the API of Jina, Cohere and others.

    After `timeout` seconds the order stays as it is, so that nobody waits for it.
    """

    top_n: ClassVar[int] = 8
    timeout: ClassVar[float] = 1.5

    base_url: str = Field(min_length=1, max_length=1000, description="the server's address, before /rerank")
    model: str = Field(min_length=1, max_length=200, description="the model's name on its server")
    key: SecretStr | None = Field(default=None, max_length=1000)


class BackupSettings(Section):
    """The backup settings: the folder, the days for which a backup is kept, and whether a backup is made each day."""

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
        """Returns the backup folder for data in `data_dir`."""
        return data_dir / self.folder


def names_database(address: str) -> bool:
    """Returns whether this is the form of an address of a PostgreSQL database."""
    return re.match(r"postgres(?:ql)?://|(?:.* )?dbname=", address) is not None


class Settings(Section):
    """The content of config.yaml as written. Its paths are not resolved yet (see `Config`)."""

    data_dir: str = Field(default="data", min_length=1, max_length=1000, description="the path of a folder")
    agents_dir: str = Field(
        default="agents",
        min_length=1,
        max_length=1000,
        description="the path of the folder with the agents' .yaml files",
    )
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
    recall: RecallSettings = Field(default_factory=RecallSettings)
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
        """The address of the web page, for a person."""
        return self.web.url or f"http://{OWN_NAME}:{self.http.port}"

    @property
    def has_page(self) -> bool:
        """True if `remora serve` serves the web page, as it also does where there is no platform."""
        alone = not (self.channels.bots or self.api.enabled) and (is_loopback(self.http.host) or bool(self.web.url))
        return self.http.enabled and (self.web.enabled or alone)


def is_loopback(name: str) -> bool:
    """Returns whether a host's name or address means this machine."""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
