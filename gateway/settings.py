"""config.yaml as models: every option with its type, bounds, default and description.

Invariants: unknown options are mistakes, and so are values of another type; a default stands here alone; secrets are
never printed. What the files together must keep to is checked in `config`.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator

from agents.spec import AGENT_NAME, AGENT_NAME_RULE, Number, Section, Whole, refused, seconds, whole

_OLLAMA = "http://localhost:11434"
#: The number of a bot, a colon, and 35 characters: what @BotFather has given out for years.
TELEGRAM_TOKEN = re.compile(r"[0-9]{5,16}:[A-Za-z0-9_-]{35}")
TELEGRAM_URL = "https://api.telegram.org"
#: The bot's number in base64, when the token was made, a signature. Discord promises nothing of the lengths, which
#: have grown once: these bounds only tell a token from an id, a client secret or half of a token.
DISCORD_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{4,16}\.[A-Za-z0-9_-]{10,128}")
DISCORD_URL = "https://discord.com/api/v10"
_WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")
_URL = re.compile(r"https?://[^\s/?#@]+(?:/[A-Za-z0-9._~/-]*)?")


class LogSettings(Section):
    """What is logged, in which form, and where: `file` is relative to config.yaml, null is the terminal."""

    level: Literal["debug", "info", "warning", "error"] = "warning"
    format: Literal["console", "json"] = "console"
    file: str | None = Field(
        default=None, min_length=1, max_length=1000, description="the path of a file", examples=["remora.log"]
    )


class ConsoleSettings(Section):
    """The chat in the terminal."""

    enabled: bool = True


def _number(pattern: str) -> Callable[[Any], str]:
    """A validator for an id that a platform gave: exact digits, so that no two texts mean the same person."""
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
        description="a person's number on Telegram (a @name can pass to somebody else), such as 123456789",
        examples=["123456789"],
    ),
]
GroupNumber = Annotated[
    str,
    BeforeValidator(_number("-[1-9][0-9]{0,15}")),
    Field(description="a group's number on Telegram, which is below zero", examples=["-1001234567890"]),
]
# Discord's ids count milliseconds from 2015 in their upper bits: fewer than 15 digits were never given out.
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
    """Where a platform delivers updates, instead of being asked for them; `secret` proves that it is the platform.

    `url` is how the HTTP server is reached from outside; the channel puts its own path behind it.
    """

    url: str = Field(
        max_length=1000, description="the address the platform delivers to", examples=["https://bot.example.org"]
    )
    # Checked though it is not written: without it, anybody who finds the address could speak as anybody.
    secret: SecretStr = Field(default=SecretStr(""), validate_default=True)

    @field_validator("url")
    @classmethod
    def _reaches_us(cls, url: str) -> str:
        example = "write for example url: https://bot.example.org"
        if not _URL.fullmatch(url):
            raise refused("is no address with nothing but a path of letters, digits, -, . and _ behind it", example)
        parts = urlsplit(url)
        if parts.scheme != "https" and not _is_loopback(parts.hostname or ""):
            raise refused("is not https: the messages would cross the network for everybody to read", example)
        return url

    @field_validator("secret")
    @classmethod
    def _can_not_be_guessed(cls, secret: SecretStr) -> SecretStr:
        value = secret.get_secret_value()
        make = (
            'python3 -c "import secrets; print(secrets.token_urlsafe(32))" prints one: put it into .env as '
            "TELEGRAM_WEBHOOK_SECRET and write secret: ${TELEGRAM_WEBHOOK_SECRET}"
        )
        if not value:
            raise refused("is missing: without it anybody could speak to the bot in another's name", make)
        if not _WEBHOOK_SECRET.fullmatch(value):
            raise refused("is no secret of 16 to 256 letters A-Z and a-z, digits, _ and -", make)
        return secret


class TelegramSettings(Section):
    """One bot on Telegram, and who may talk to it: people in `allow` and `admins`, in private; groups in `groups`.

    `group_members` says who of such a group is answered; `mention` whether only when called. `stream` tells how an
    answer is shown that grows; without `webhook` Telegram is asked for updates.
    """

    platform: ClassVar[Literal["telegram"]] = "telegram"
    id: str = Field(default="telegram", pattern=AGENT_NAME, description=AGENT_NAME_RULE)
    token: SecretStr = Field(description="the token that @BotFather gave for the bot", examples=["${TELEGRAM_TOKEN}"])
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
    stream: Literal["edit", "draft"] = "edit"
    webhook: WebhookSettings | None = None

    @property
    def number(self) -> str:
        """The bot's number, which its token begins with."""
        return self.token.get_secret_value().partition(":")[0]

    @field_validator("token")
    @classmethod
    def _looks_like_a_token(cls, token: SecretStr) -> SecretStr:
        if not TELEGRAM_TOKEN.fullmatch(token.get_secret_value()):
            raise refused(
                "is no token of a bot: digits, a colon and 35 more characters",
                "copy it whole from @BotFather, who shows it again at /mybots",
            )
        return token


class DiscordSettings(Section):
    """One bot on Discord, and who may talk to it: people in `allow` and `admins`, in private; in all channels of
    `servers`, and in the channels `groups`.

    `group_members` says who is answered there; `mention` whether only when called.
    """

    platform: ClassVar[Literal["discord"]] = "discord"
    id: str = Field(default="discord", pattern=AGENT_NAME, description=AGENT_NAME_RULE)
    token: SecretStr = Field(
        description="the token of the bot, from its Bot page on Discord", examples=["${DISCORD_TOKEN}"]
    )
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

    @property
    def number(self) -> str:
        """The bot's id, which its token begins with; empty where it can't be read."""
        return discord_number(self.token.get_secret_value())

    @field_validator("token")
    @classmethod
    def _looks_like_a_token(cls, token: SecretStr) -> SecretStr:
        if not DISCORD_TOKEN.fullmatch(token.get_secret_value()):
            raise refused(
                "is no token of a bot: three parts of letters, digits, - and _ with dots between them",
                "copy it whole from the Bot page at https://discord.com/developers/applications, where Reset Token "
                "shows a new one",
            )
        return token


#: A bot on any of the platforms.
BotSettings: TypeAlias = TelegramSettings | DiscordSettings


def discord_number(token: str) -> str:
    """The id of the bot that a Discord token belongs to: its first part, in base64. Empty where that is none."""
    head = token.partition(".")[0]
    try:
        number = urlsafe_b64decode(head + "=" * (-len(head) % 4)).decode("ascii")
    except ValueError:
        return ""
    return number if re.fullmatch("[1-9][0-9]{14,19}", number) else ""


class ChannelsSettings(Section):
    """The chat platforms."""

    console: ConsoleSettings = Field(default_factory=ConsoleSettings)
    telegram: tuple[TelegramSettings, ...] = Field(default_factory=tuple, max_length=100)
    discord: tuple[DiscordSettings, ...] = Field(default_factory=tuple, max_length=100)

    @property
    def bots(self) -> tuple[BotSettings, ...]:
        """The bots on all platforms."""
        return (*self.telegram, *self.discord)


class HttpSettings(Section):
    """Where `remora serve` says how it is, and takes webhooks.

    `exit_after_minutes` of bad health end it, for a new start (0: never).
    """

    enabled: bool = True
    host: str = Field(
        default="127.0.0.1", min_length=1, max_length=255, description="an address of this machine to listen at"
    )
    port: Whole = whole(8765, "port", 1, 65_535)
    exit_after_minutes: Number = Field(default=0.0, ge=0, le=1440, description="a number of minutes from 0 to 1440")


class LimitSettings(Section):
    """Bounds on turns and messages.

    `concurrent_turns` is for each agent. `message_chars` is what the model sees of one message (of a longer one, its
    head and tail); `queue` is how many messages of one session may wait. A person may send `person_burst` messages at
    once and `person_messages_per_minute` in the long run. Messages that wait longer than `stale_hours` for the bot to
    start are answered when asked for; an answer that takes longer than `placeholder_seconds` is shown as it grows.
    """

    concurrent_turns: Whole = whole(8, "turns", 1, 1000)
    turn_seconds: Number = seconds(180.0, 3600)
    burst_seconds: Number = seconds(1.0, 60, zero=True)
    message_chars: Whole = whole(32_000, "characters", 200, 1_000_000)
    queue: Whole = whole(50, "messages", 1, 10_000)
    person_messages_per_minute: Whole = whole(30, "messages", 1, 10_000)
    person_burst: Whole = whole(10, "messages", 1, 1000)
    stale_hours: Number = Field(default=2.0, gt=0, le=168, description="a number of hours greater than 0, at most 168")
    placeholder_seconds: Number = seconds(1.5, 60, zero=True)


class AttachmentSettings(Section):
    """What is read of files and pictures.

    `max_bytes` is for each (0: none is read) and `fetch_seconds` for all of a message. `text_tokens` of their text
    stand in a prompt, and the last `pictures` of a session stay in the model's sight.
    """

    # Telegram gives bots no more than 20 MB of a file, and all of them are held in memory while they are read.

    max_bytes: Whole = whole(10_000_000, "bytes", 0, 20_000_000)
    fetch_seconds: Number = seconds(20.0, 600)
    text_tokens: Whole = whole(8000, "tokens", 0, 200_000)
    # They go with each request, up to 5 MB each.
    pictures: Whole = whole(4, "pictures", 0, 10)


class TranscriberSettings(Section):
    """A server that writes down what voice messages say; OpenAI's API (/audio/transcriptions)."""

    base_url: str = Field(
        max_length=1000,
        pattern=r"^https?://[^\s/?#][^\s?#]*$",
        description="the server's address, before /audio/transcriptions",
        examples=["https://api.openai.com/v1"],
    )
    model: str = Field(
        min_length=1, max_length=200, description="the name the server knows the model by", examples=["whisper-1"]
    )
    key: SecretStr | None = Field(default=None, max_length=1000)
    timeout: Number = seconds(60.0, 600)
    language: str | None = Field(
        default=None, pattern=r"^[a-z]{2,3}$", description="a language's code of two or three letters", examples=["de"]
    )


class MemorySettings(Section):
    """When messages are read for memories: after a quiet gap, at a number of tokens or messages, at exit.

    With `admins_read` a channel's admins see what is remembered of its people and groups; else they count and forget.
    What was said more than `transcript_days` ago loses its words (null: never); what was learned from it stays.
    """

    quiet_seconds: Number = seconds(60.0, 86_400, zero=True)
    extract_tokens: Whole = whole(2000, "tokens", 100, 100_000)
    extract_messages: Whole = whole(30, "messages", 1, 1000)
    exit_seconds: Number = seconds(20.0, 600, zero=True)
    admins_read: bool = True
    transcript_days: Whole | None = whole(None, "days", 1, 36_500)


class RecallSettings(Section):
    """How memory is searched: `hybrid` by words and meaning, `classic` by words alone."""

    mode: Literal["hybrid", "classic"] = "hybrid"


class EmbeddingSettings(Section):
    """What finds by meaning.

    `local`: a multilingual model and an English one that knows words apart, inside this process; `small` and
    `english`: one of them alone; else a server with OpenAI's or Ollama's API, or none.
    """

    provider: Literal["local", "small", "english", "openai", "ollama", "none"] = "local"
    base_url: str = Field(default="", max_length=1000, description="the server's address", examples=[_OLLAMA])
    key: SecretStr | None = Field(default=None, max_length=1000)
    model: str = Field(default="", max_length=200, description="the name the server knows the model by")
    dimension: Whole | None = Field(default=None, ge=8, le=8192, description="values of one vector")
    timeout: Number = seconds(30.0, 600)
    batch: Whole = whole(64, "texts", 1, 2048)

    @model_validator(mode="after")
    def _a_server_is_named(self) -> EmbeddingSettings:
        if self.provider in ("openai", "ollama"):
            if not self.base_url:
                raise refused(f"{self.provider} needs a base_url", f"add base_url, such as {_OLLAMA}")
            if not self.model:
                raise refused(f"{self.provider} needs a model", "add the name of an embedding model")
        return self


class RerankSettings(Section):
    """A server that orders the best few findings anew; the API of Jina, Cohere and others."""

    base_url: str = Field(min_length=1, max_length=1000, description="the server's address, before /rerank")
    model: str = Field(min_length=1, max_length=200, description="the name the server knows the model by")
    key: SecretStr | None = Field(default=None, max_length=1000)
    top_n: Whole = whole(8, "findings", 2, 100)
    timeout: Number = seconds(1.5, 60)


class BackupSettings(Section):
    """Where backups are put, for how many days one is kept, and whether one is made each day."""

    folder: str = Field(
        default="backups",
        min_length=1,
        max_length=1000,
        description="the path of a folder, inside data_dir unless it begins with /",
    )
    keep_days: Whole = whole(14, "days", 1, 3650)
    daily: bool = True

    def within(self, data_dir: Path) -> Path:
        """The folder, for data that lies in `data_dir`."""
        return data_dir / self.folder


class Settings(Section):
    """config.yaml as written; paths in it are not resolved yet (see `Config`)."""

    data_dir: str = Field(default="data", min_length=1, max_length=1000, description="the path of a folder")
    agents_dir: str = Field(
        default="agents",
        min_length=1,
        max_length=1000,
        description="the path of the folder with the agents' .yaml files",
    )
    default_agent: str = Field(default="assistant", pattern=AGENT_NAME, description=AGENT_NAME_RULE)
    durability: Literal["process", "power-loss"] = "process"
    log: LogSettings = Field(default_factory=LogSettings)
    channels: ChannelsSettings = Field(default_factory=ChannelsSettings)
    http: HttpSettings = Field(default_factory=HttpSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    attachments: AttachmentSettings = Field(default_factory=AttachmentSettings)
    transcriber: TranscriberSettings | None = None
    memory: MemorySettings = Field(default_factory=MemorySettings)
    recall: RecallSettings = Field(default_factory=RecallSettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    rerank: RerankSettings | None = None
    backup: BackupSettings = Field(default_factory=BackupSettings)


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
