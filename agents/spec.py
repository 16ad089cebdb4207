"""The options of an agent's YAML file as frozen values: voice, models, tools, window, memory, night jobs and routing.

Invariants: nothing here opens files or the network, except for the system's timezone and the list of timezones. Every
number has bounds. An unknown option is refused. An empty section or list means its defaults. Where an option's type
does not say enough, its `description` completes the sentence "must be ...", because error messages are built from it.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from math import inf
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import tzlocal
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from agents import plugins
from agents.providers.table import KNOWN, OFFLINE
from agents.tools import vendor_name
from languages import Language

ToolName: TypeAlias = Literal[
    "now",
    "search_memory",
    "remember_fact",
    "correct_fact",
    "confirm_fact",
    "forget_fact",
    "memory_stats",
    "get_entity_info",
    "reminders",
]
#: The tools of an agent whose file names none. People seldom ask for counts, and /status has them.
USUAL_TOOLS: Final[tuple[ToolName, ...]] = (
    "now",
    "search_memory",
    "remember_fact",
    "correct_fact",
    "confirm_fact",
    "forget_fact",
    "get_entity_info",
    "reminders",
)
#: Tools that an agent has only if its file names them: they ask servers elsewhere.
WebToolName: TypeAlias = Literal["fetch_url", "web_search"]
#: The tools of an agent that remembers nothing.
_WITHOUT_MEMORY: Final = frozenset({"now", "reminders", *get_args(WebToolName)})

#: The type of a pydantic error whose context holds Remora's own `message`, `fix` and `at` (see `refused`).
REFUSED = "refused"
AGENT_NAME = r"^[a-z][a-z0-9_-]{0,31}$"
AGENT_NAME_RULE = "a name of at most 32 characters: a letter a-z, then letters a-z, digits, - or _"
#: The most tokens of a window whose size is not configured; such a window takes half of the model's context.
LARGEST_DEFAULT_WINDOW = 32_000
#: The most characters of a persona, and of each file beside the agent's that adds to it.
LONGEST_PERSONA: Final = 20_000
DEFAULT_PERSONA = """\
You are {name}, a warm companion in a chat who remembers the people you talk with.
Be brief: answer in a few plain sentences unless more is asked for.
Be honest: say so when you do not know or do not remember, and never invent a memory.
Be kind without flattery; ask a question back only when it helps.
Answer in the language you are spoken to."""


class Section(BaseModel):
    """A section of a configuration file. It is frozen, refuses unknown options and hides values in error texts."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_means_defaults(cls, data: Any) -> Any:
        # Commenting out all options of a section leaves `section:` behind, which YAML reads as null.
        if not isinstance(data, Mapping):
            return data
        fields = cls.model_fields
        return {
            key: value
            for key, value in data.items()
            if not (value is None and key in fields and fields[key].default_factory is not None)
        }


def whole(default: int | None, unit: str, low: int, high: int) -> Any:
    return Field(default=default, ge=low, le=high, description=f"a whole number of {unit} from {low} to {high}")


def seconds(default: float, high: float, *, zero: bool = False) -> Any:
    """Returns a field for a number of seconds up to `high`. `zero` allows 0."""
    if zero:
        return Field(default=default, ge=0, le=high, description=f"a number of seconds from 0 to {high:g}")
    words = f"a number of seconds greater than 0, at most {high:g}"
    return Field(default=default, gt=0, le=high, description=words)


def refused(message: str, fix: str, *, at: str = "") -> PydanticCustomError:
    """Returns a validator's error with a text of its own. `at` names an option below the validated place."""
    return PydanticCustomError(REFUSED, "{message}", {"message": message, "fix": fix, "at": at})


def _not_bool(value: Any) -> Any:
    # Python treats true as 1, but `turn_seconds: true` is a mistake.
    if isinstance(value, bool):
        raise ValueError("a number is needed")
    return value


Whole = Annotated[int, BeforeValidator(_not_bool)]
Number = Annotated[float, BeforeValidator(_not_bool)]
Line = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=1000),
    Field(description="a text of 1 to 1000 characters"),
]
PersonRule = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}:[^\s:]{1,200}$"),
    Field(description="a person as platform:user_id, such as telegram:12345", examples=["telegram:12345"]),
]
ThreadRule = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s:]{1,100}:[^\s:]{1,200}:[^\s:]{1,200}$"),
    Field(
        description="a session key as channel:chat:thread, such as telegram:-1001:45 (a - for no thread)",
        examples=["telegram:-1001:45"],
    ),
]
ChatRule = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s:]{1,100}:[^\s:]{1,200}$"),
    Field(description="a chat as channel:chat, such as telegram:-1001", examples=["telegram:-1001"]),
]
ChannelRule = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s:]{1,100}$"),
    Field(description="the id of a channel, such as console", examples=["console"]),
]


_Price = Annotated[
    Number, Field(ge=0, le=1_000_000, description="a number from 0 to 1000000 for a million tokens", examples=["0.15"])
]


class PriceSpec(Section):
    """The prices of a million tokens, in any currency. Without `cached`, cached tokens cost as much as others."""

    input: _Price
    cached: _Price | None = None
    output: _Price

    def cost(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        cached = min(cached_tokens, input_tokens)
        at_cached = self.input if self.cached is None else self.cached
        return ((input_tokens - cached) * self.input + cached * at_cached + output_tokens * self.output) / 1_000_000

    @property
    def of_reading(self) -> float:
        """The cost of reading a conversation for memories, which takes in some ten times what it writes."""
        return self.cost(10_000, 0, 1_000)


class ModelSpec(Section):
    """A language model and how to reach it. The provider `openai` with a `base_url` is any server with OpenAI's API.

    The address, the key's environment variable and the context of a known provider are filled in from its name.
    `sees` is true if the model accepts pictures; for other models pictures are only named. With a `price`, the cost of
    calls is shown. `slots` is the number of calls that the server works on at once; None means that it does not matter.
    """

    provider: str = Field(
        description=f"one of {', '.join((*KNOWN, OFFLINE))}, or a provider of an installed package", examples=["openai"]
    )
    model: str = Field(
        default="",
        max_length=200,
        validate_default=True,
        description="the model's name on its server",
        examples=["gpt-4o-mini"],
    )
    base_url: str = Field(
        default="https://api.openai.com/v1",
        max_length=500,
        description="the server's address, beginning with https:// or http://",
    )
    key: SecretStr | None = Field(
        default=None,
        max_length=1000,
        description="the server's key: 1 to 1000 characters without spaces",
        examples=["${OPENAI_API_KEY}"],
    )
    temperature: Number | None = Field(default=None, ge=0, le=2, description="a number from 0 to 2")
    top_p: Number | None = Field(default=None, gt=0, le=1, description="a number greater than 0, at most 1")
    context: Whole = whole(128_000, "tokens", 2048, 10_000_000)
    max_tokens: Whole | None = whole(None, "tokens", 1, 1_000_000)
    thinking: Whole | None = whole(None, "tokens", 1024, 1_000_000)
    timeout: Number = seconds(120.0, 3600)
    sees: bool = False
    slots: Whole | None = whole(None, "calls at once", 1, 1000)
    headers: dict[str, Annotated[str, StringConstraints(max_length=4000)]] = Field(
        default_factory=dict, max_length=20, description="names and values of HTTP headers", repr=False
    )
    extra_body: dict[str, Any] = Field(
        default_factory=dict, max_length=50, description="further fields of the request, as the server calls them"
    )
    price: PriceSpec | None = None

    @property
    def from_outside(self) -> bool:
        """True if another installed package brings the provider."""
        return self.provider not in (*KNOWN, OFFLINE)

    @model_validator(mode="before")
    @classmethod
    def _filled_in_by_name(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        known = KNOWN.get(str(data.get("provider")))
        if data.get("provider") == "openai":  # which stands for many servers
            here = re.match(r"https?://(?:localhost|127\.|\[::1\]|host\.docker\.internal)", str(data.get("base_url")))
            return {"slots": 1, **data} if here else data
        if known is None:  # a provider of another package, which knows its address by itself
            return {"base_url": "", **data}
        if known.variable and not data.get("key") and "base_url" not in data:
            raise refused(
                f"is missing: {known.title} needs a key",
                f"add key: ${{{known.variable}}} and write the key into .env",
                at="key",
            )
        return {"base_url": known.base_url, "context": known.context, "slots": known.slots, **data}

    @field_validator("provider")
    @classmethod
    def _provider_is_known(cls, provider: str) -> str:
        if provider not in (*KNOWN, OFFLINE) and provider not in plugins.installed(plugins.PROVIDERS):
            raise ValueError("unknown")
        return provider

    @field_validator("model")
    @classmethod
    def _model_is_named(cls, model: str, info: ValidationInfo) -> str:
        model = model.strip()
        provider = str(info.data.get("provider"))
        if not model and provider in KNOWN:
            example = KNOWN[provider].model or "qwen3:8b"
            raise refused(f"is missing: the provider {provider} needs to know which model", f"add model: {example}")
        return model

    @field_validator("base_url")
    @classmethod
    def _base_url_is_an_address(cls, base_url: str, info: ValidationInfo) -> str:
        if not base_url and info.data.get("provider") not in KNOWN:
            return ""
        base_url = _address(base_url, secrets="key")
        if urlsplit(base_url).query or urlsplit(base_url).fragment:
            raise refused("has a ? or # part", "end the address with its path, as in https://host/v1")
        return base_url.rstrip("/")

    @field_validator("key")
    @classmethod
    def _key_fits_into_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        if key is None:
            return None
        text = key.get_secret_value()
        if not text or not text.isascii() or not text.isprintable() or " " in text:
            raise refused(
                "is empty, or contains a space, a line break or a character that is not plain ASCII",
                "copy the key again, with nothing around it, or remove the line",
            )
        return key

    @field_validator("headers")
    @classmethod
    def _headers_can_be_sent(cls, headers: dict[str, str]) -> dict[str, str]:
        return _sendable(headers)

    @field_validator("extra_body")
    @classmethod
    def _fields_are_not_ours(cls, extra: dict[str, Any]) -> dict[str, Any]:
        ours = {
            "model": "model",
            "messages": "",
            "stream": "",
            "tools": "tools of the agent",
            "max_tokens": "max_tokens",
        }
        ours |= {"temperature": "temperature", "top_p": "top_p"}
        for name in extra.keys() & ours.keys():
            fix = f"set {ours[name]} instead" if ours[name] else f"remove {name}"
            raise refused(f"sets {name}, which is Remora's own to set", fix, at=name)
        return extra

    @field_validator("thinking")
    @classmethod
    def _only_anthropic_has_a_budget(cls, thinking: int | None, info: ValidationInfo) -> int | None:
        if thinking is not None and info.data.get("provider") != "anthropic":
            raise refused("is known to the provider anthropic only", "use extra_body for what your server calls it")
        if thinking is not None and thinking >= (info.data.get("max_tokens") or thinking + 1):
            raise refused("leaves no tokens for the answer", "raise max_tokens above it, or lower it")
        return thinking

    @field_validator("max_tokens")
    @classmethod
    def _answer_fits_the_context(cls, max_tokens: int | None, info: ValidationInfo) -> int | None:
        context = info.data.get("context")
        if max_tokens is not None and context is not None and max_tokens >= context:
            raise refused(
                f"leaves no room for the question in a context of {context} tokens",
                "allow fewer tokens for the answer, or set the model's true context",
            )
        return max_tokens


WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
OFF = "off"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"
ClockTime = Annotated[
    str,
    StringConstraints(strip_whitespace=True, pattern=rf"^{_CLOCK}$"),
    Field(description="a time of day from 00:00 to 23:59", examples=["04:00"]),
]


class WindowSpec(Section):
    """The size of the window sent to the model. Summary and recall cover older messages."""

    messages: ClassVar[int] = 100

    tokens: Whole | None = whole(None, "tokens", 500, 10_000_000)


class TurnSpec(Section):
    """The limits of one answer: at the cost, or with one of the `steps` left, the model gets no tools and answers."""

    call_seconds: ClassVar[float] = 30.0

    steps: Whole = whole(25, "model calls", 1, 100)
    cost: Number | None = Field(default=None, gt=0, le=1_000_000, description="an amount greater than 0")


OwnToolName = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z](?:_?[a-z0-9-])*$", max_length=48),
    Field(description="a name of at most 48 characters: a letter a-z, then letters a-z, digits, - or single _"),
]
_ToolOfServer = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_./-]{1,128}$"),
    Field(description="a tool's name as the server calls it"),
]


class ServerSpec(Section):
    """A server of the Model Context Protocol: a `command` on this machine, or a `url`. Only its named `tools` are used.

    The command gets nothing of the environment but what programs need to start, and `env`. Tools in `asks` ask the
    person although the server says that they only read.
    """

    name: str = Field(
        pattern=r"^[a-z](?:_?[a-z0-9-])*$",
        max_length=24,
        description="a name of at most 24 characters: a letter a-z, then letters a-z, digits, - or single _",
        examples=["files"],
    )
    command: tuple[Annotated[str, StringConstraints(min_length=1, max_length=4000)], ...] = Field(
        default=(), max_length=100, description="a program and its arguments, as a list"
    )
    env: dict[str, Annotated[str, StringConstraints(max_length=4000)]] = Field(
        default_factory=dict, max_length=50, description="names and values of environment variables", repr=False
    )
    url: str | None = Field(
        default=None, max_length=2000, description="the server's address, beginning with https:// or http://"
    )
    headers: dict[str, Annotated[str, StringConstraints(max_length=4000)]] = Field(
        default_factory=dict, max_length=20, description="names and values of HTTP headers", repr=False
    )
    tools: tuple[_ToolOfServer, ...] = Field(min_length=1, max_length=50, description="a list of one tool or more")
    asks: tuple[_ToolOfServer, ...] = Field(default=(), max_length=50)

    @field_validator("url")
    @classmethod
    def _url_is_an_address(cls, url: str | None) -> str | None:
        return None if url is None else _address(url, secrets="headers")

    @field_validator("headers")
    @classmethod
    def _headers_can_be_sent(cls, headers: dict[str, str]) -> dict[str, str]:
        return _sendable(headers)

    @model_validator(mode="after")
    def _is_reached_one_way(self) -> ServerSpec:
        if bool(self.command) == bool(self.url):
            raise refused("needs either a command or a url", "write one of them", at="name")
        if self.env and self.url:
            raise refused("is for a command on this machine", "put keys of a server elsewhere into headers", at="env")
        if self.headers and self.command:
            raise refused("is for a url", "put keys of a program into env", at="headers")
        if stray := set(self.asks) - set(self.tools):
            raise refused(f"names {min(stray)}, which is not among tools", "list it under tools too", at="asks")
        return self

    @property
    def where(self) -> str:
        return (urlsplit(self.url).hostname or "") if self.url else self.command[0].replace("\\", "/").split("/")[-1]


class SessionSpec(Section):
    """The rule by which a conversation begins anew by itself. The hour is in the person's timezone."""

    idle_hours: Number | None = Field(
        default=None, gt=0, le=8760, description="a number of hours greater than 0, at most 8760"
    )
    at: ClockTime | None = None


class MemorySpec(Section):
    """An agent's memory. What is found and what is always at hand leave small models room to answer."""

    recall_items: ClassVar[int] = 8
    recall_tokens: ClassVar[int] = 1500
    known_facts: ClassVar[int] = 50
    known_tokens: ClassVar[int] = 1500

    enabled: bool = True
    manner: bool = True
    threads: Literal["shared", "own"] = "shared"
    entities: Literal["auto", "spacy", "model", "patterns", "none"] = "auto"


class BackgroundSpec(Section):
    """The models that read conversations for memories, while nobody waits."""

    models: tuple[ModelSpec, ...] = Field(default_factory=tuple, max_length=10)
    #: A slow machine writes a long answer for ten minutes, after it has answered people. A server that is gone is
    #: noticed by its model's own `timeout`.
    timeout: ClassVar[float] = 1800.0

    tokens_per_day: Whole | None = whole(500_000, "tokens", 1_000, 1_000_000_000)


class PortionOfDay(Section):
    """Limits the tokens, and the money by the models' prices, that answers take in a day. Null is no limit."""

    tokens: Whole | None = whole(None, "tokens", 1, 1_000_000_000)
    cost: Number | None = Field(
        default=None, gt=0, le=1_000_000, description="an amount greater than 0, in the currency of the prices"
    )


class AllowanceSpec(Section):
    """Limits what answers take in a day of the agent's timezone. Reading for memories has its own `tokens_per_day`."""

    person: PortionOfDay = Field(default_factory=PortionOfDay)
    chat: PortionOfDay = Field(default_factory=PortionOfDay)
    agent: PortionOfDay = Field(default_factory=PortionOfDay)
    admins: bool = False

    @property
    def portions(self) -> dict[str, PortionOfDay]:
        """The portions that set a limit, by whose they are, the narrowest first."""
        every = {"person": self.person, "chat": self.chat, "agent": self.agent}
        return {whose: own for whose, own in every.items() if own != PortionOfDay()}


DailyTime = Annotated[
    str,
    StringConstraints(strip_whitespace=True, pattern=rf"^({OFF}|{_CLOCK})$"),
    Field(description="a time of day from 00:00 to 23:59, or off", examples=["03:00"]),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTime:
    """The time of a job in the agent's timezone. `weekday` counts from 0 for Monday; None means every day."""

    at: time
    weekday: int | None = None


class JobsSpec(Section):
    """The times of the night jobs in the agent's timezone; `off` leaves out the night's work, or the week's."""

    #: Minutes after the beginning of the night: each job finds the work of those before it done.
    minutes: ClassVar[Mapping[str, int]] = {
        "enrich": 0, "compress": 60, "reflect": 90, "merge": 120, "compare": 135, "decay": 150, "manner": 160,
        "tidy": 180,
    }  # fmt: skip
    weekly: ClassVar[frozenset[str]] = frozenset({"reflect", "merge"})

    night: DailyTime = "02:00"
    week: Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "off"] = "sunday"

    @property
    def times(self) -> dict[str, JobTime]:
        if self.night == OFF:
            return {}
        return {
            name: self._time(minutes, weekly=name in self.weekly)
            for name, minutes in self.minutes.items()
            if name not in self.weekly or self.week != OFF
        }

    def _time(self, minutes: int, *, weekly: bool) -> JobTime:
        begin = time.fromisoformat(self.night)
        days, minute = divmod(begin.hour * 60 + begin.minute + minutes, 24 * 60)
        weekday = (WEEKDAYS.index(self.week) + days) % 7 if weekly else None
        return JobTime(at=time(minute // 60, minute % 60), weekday=weekday)


class RoutingSpec(Section):
    """The places where an agent answers. Precedence, highest first: people, threads, chats, channels."""

    people: tuple[PersonRule, ...] = Field(default_factory=tuple, max_length=10_000)
    threads: tuple[ThreadRule, ...] = Field(default_factory=tuple, max_length=10_000)
    chats: tuple[ChatRule, ...] = Field(default_factory=tuple, max_length=10_000)
    channels: tuple[ChannelRule, ...] = Field(default_factory=tuple, max_length=100)


def machine_timezone() -> str:
    """Returns the name of this machine's timezone, by TZ or its settings; "UTC" if that is none of the IANA list."""
    try:
        name = tzlocal.get_localzone_name()
        ZoneInfo(name or "")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"
    return "UTC" if name == "Etc/UTC" else name


class StandingSpec(Section):
    """A task that the agent does by itself `at` the times of a cron line, told to `person` in their private chat.

    It is a `text`, or without one what stands in HEARTBEAT.md beside the agent's file at that time.
    """

    at: Line = Field(examples=["0 8 * * 1-5"])
    person: PersonRule
    text: Line | None = None


class AgentSpec(Section):
    """An agent. The first of `models` is used and the others are its fallbacks; an empty list means no model."""

    name: str = Field(pattern=AGENT_NAME, description=AGENT_NAME_RULE, examples=["assistant"])
    persona: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(
        default=DEFAULT_PERSONA,
        min_length=1,
        max_length=LONGEST_PERSONA,
        description=f"a text of 1 to {LONGEST_PERSONA} characters",
    )
    rules: tuple[Line, ...] = Field(default_factory=tuple, max_length=100)
    models: tuple[ModelSpec, ...] = Field(default_factory=tuple, max_length=10)
    tools: tuple[Literal[ToolName, WebToolName], ...] = Field(default_factory=lambda: USUAL_TOOLS, max_length=20)
    mcp: tuple[ServerSpec, ...] = Field(default_factory=tuple, max_length=20)
    own_tools: tuple[OwnToolName, ...] = Field(default_factory=tuple, max_length=50)
    skills: tuple[OwnToolName, ...] = Field(default_factory=tuple, max_length=50)
    tasks: tuple[StandingSpec, ...] = Field(default_factory=tuple, max_length=20)
    language: Language = "en"
    timezone: str = Field(
        default="system",
        validate_default=True,
        max_length=64,
        description="an IANA timezone, such as Europe/Lisbon, or system for this machine's",
    )
    turn: TurnSpec = Field(default_factory=TurnSpec)
    window: WindowSpec = Field(default_factory=WindowSpec)
    session: SessionSpec = Field(default_factory=SessionSpec)
    memory: MemorySpec = Field(default_factory=MemorySpec)
    background: BackgroundSpec = Field(default_factory=BackgroundSpec)
    allowance: AllowanceSpec = Field(default_factory=AllowanceSpec)
    jobs: JobsSpec = Field(default_factory=JobsSpec)
    routing: RoutingSpec = Field(default_factory=RoutingSpec)
    # Lower case only: on macOS and Windows `A.db` and `a.db` are the same file, which two stores would then share.
    database: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-z0-9_-]{0,60}\.db$",
        description="a file name (no folder) of letters a-z, digits, - or _, ending in .db",
        examples=["work.db"],
    )

    def voiced(self, soul: str, standing: str) -> AgentSpec:
        """Returns the agent with the texts of SOUL.md and AGENTS.md, of which either may be empty.

        SOUL.md follows the file's own persona and takes the place of the default one, which the shipped agent's file
        spells out. `rules` come after both.
        """
        own = self.persona if self.persona != DEFAULT_PERSONA or not soul else ""
        parts = [own, soul, f"Standing rules:\n{standing}" if standing else ""]
        return self.model_copy(update={"persona": "\n\n".join(filter(None, parts))})

    @property
    def background_models(self) -> tuple[ModelSpec, ...]:
        """The models that read conversations for memories, the first choice first; none of them is "offline".

        If no models are named for it, they are the agent's own, the cheapest first as far as prices can be compared: a
        model without a price comes behind those with one, unless it is the agent's first.
        """
        models = tuple(model for model in self.background.models or self.models if model.provider != "offline")
        if self.background.models or not models or models[0].price is None:
            return models
        return tuple(sorted(models, key=lambda model: inf if model.price is None else model.price.of_reading))

    @property
    def background_reason(self) -> str:
        """The reason why the first of `background_models` reads, for the operator; "" if there is none."""
        models = self.background_models
        if not models:
            return ""
        if self.background.models:
            return "named in background.models"
        if len(self.models) == 1:
            return "the only model"
        if models[0].price is None:
            return "the first; it has no price, so none is known to be cheaper"
        return "the cheapest by its price"

    @property
    def usable_tools(self) -> tuple[Literal[ToolName, WebToolName], ...]:
        return tuple(tool for tool in self.tools if self.memory.enabled or tool in _WITHOUT_MEMORY)

    @field_validator("tools")
    @classmethod
    def _tools_are_listed_once(cls, tools: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(tools)) < len(tools):
            raise refused("names a tool twice", "list each tool once")
        return tools

    @field_validator("mcp")
    @classmethod
    def _servers_are_told_apart(cls, servers: tuple[ServerSpec, ...]) -> tuple[ServerSpec, ...]:
        names = [server.name for server in servers]
        if twice := {name for name in names if names.count(name) > 1}:
            raise refused(f"has two servers called {min(twice)}", "give each server its own name")
        offered = Counter(vendor_name(f"{server.name}__{tool}") for server in servers for tool in server.tools)
        if alike := [name for name, times in offered.items() if times > 1]:
            raise refused(
                f"has two tools that a model would know as {alike[0]}", "shorten the server's name, or name one of them"
            )
        return servers

    @field_validator("own_tools")
    @classmethod
    def _own_tools_have_names_of_their_own(cls, tools: tuple[str, ...]) -> tuple[str, ...]:
        if taken := {*get_args(ToolName), *get_args(WebToolName)} & {*tools}:
            raise refused(f"names {min(taken)}, which is a tool of Remora's", "give your file another name")
        return tools

    @field_validator("timezone")
    @classmethod
    def _timezone_is_known(cls, timezone: str) -> str:
        if timezone == "system":
            return machine_timezone()
        try:
            ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            # ValueError: an absolute path or "..". OSError: a folder of the timezone list, such as "Europe".
            zones = {zone.lower(): zone for zone in available_timezones()}
            close = difflib.get_close_matches(timezone.lower().replace(" ", "_"), zones, n=1)
            example = zones[close[0]] if close else "Europe/Lisbon"
            raise refused("must be an IANA timezone", f"write for example timezone: {example}") from None
        return timezone

    @field_validator("turn")
    @classmethod
    def _cost_can_be_known(cls, turn: TurnSpec, info: ValidationInfo) -> TurnSpec:
        models: tuple[ModelSpec, ...] = info.data.get("models") or ()
        free = [model for model in models if model.price is None and model.provider != "offline"]
        if turn.cost is not None and free:
            raise refused(
                f"can't be held: {free[0].model} has no price", "add price to each model, or remove cost", at="cost"
            )
        return turn

    @field_validator("window")
    @classmethod
    def _window_fits_the_context(cls, window: WindowSpec, info: ValidationInfo) -> WindowSpec:
        models: tuple[ModelSpec, ...] = info.data.get("models") or ()
        if window.tokens is not None and models and window.tokens > models[0].context:
            raise refused(
                f"is more than the first model's context of {models[0].context} tokens",
                "make the window smaller, or set the model's true context",
                at="tokens",
            )
        return window

    @field_validator("allowance")
    @classmethod
    def _money_needs_prices(cls, allowance: AllowanceSpec, info: ValidationInfo) -> AllowanceSpec:
        models: tuple[ModelSpec, ...] = info.data.get("models") or ()
        unpriced = next((m.model for m in models if m.price is None and m.provider != "offline"), None)
        for whose, portion in allowance.portions.items():
            if portion.cost is not None and unpriced is not None:
                raise refused(
                    f"needs the price of every model, and {unpriced} has none",
                    "add a price beside the model, or set tokens instead",
                    at=f"{whose}.cost",
                )
        return allowance

    @property
    def window_tokens(self) -> int:
        """The window in tokens: as configured, else half of the first model's context, capped."""
        if self.window.tokens is not None:
            return self.window.tokens
        if not self.models:
            return LARGEST_DEFAULT_WINDOW
        return min(self.models[0].context // 2, LARGEST_DEFAULT_WINDOW)


def _address(url: str, *, secrets: str) -> str:
    """Returns `url` if it is an http address without a name or password, which belong into the option `secrets`."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.port != 0 and _is_host(parts.hostname or "")
    except ValueError:
        valid = False
    if not valid or re.search(r"\s", url):
        raise ValueError("not an address")
    if "@" in parts.netloc:
        raise refused("contains a name or password", f"remove them from the address and use {secrets}")
    return url


def _sendable(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}", name):
            raise refused(f"has a name that no header can have: {name!r}", "use letters, digits and -")
        if not (value.isascii() and value.isprintable()):
            raise refused("has a value with line breaks or other than plain ASCII letters", "copy it again", at=name)
    return headers


def _is_host(host: str) -> bool:
    if ":" in host:
        ipaddress.IPv6Address(host.partition("%")[0])
        return True
    return re.fullmatch(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})", host) is not None
