"""The vendors: how each writes answers and errors, what it refuses, and from which pages that was read.

Invariants: statuses, codes and the names of fields are the vendor's; sentences are shortened to what a client reads in
them. `DATE` is the day on which the pages were looked up.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from bench.vendors import rules
from bench.vendors.rules import Rule
from bench.vendors.wire import JSON, Refusal, Shape

DATE: Final = "2026-11-27"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """A model server. `provider` is Remora's name for it, `key` the variable with its key."""

    name: str
    provider: str
    model: str
    key: str = ""
    form: Literal["openai", "anthropic"] = "openai"
    shape: Shape
    #: Whether its calls come with an opaque text that it wants back.
    proves: bool = False
    rules: tuple[Rule, ...] = ()
    error: Callable[[int, str, Mapping[str, Any]], Any]
    faults: Mapping[str, Mapping[str, Any]]
    pages: str

    def refuse(self, status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any) -> Refusal:
        return Refusal(status, self.error(status, message, more), headers or {})

    def wrapped(self, status: int, message: str) -> Refusal:
        """A refusal of somebody behind this server, as it passes it on."""
        raw = json.dumps({"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}})
        return self.refuse(
            status, "Provider returned error", metadata={"raw": raw, "provider_name": "Google AI Studio"}
        )

    def unknown_field(self, status: int, at: int, name: str) -> Refusal:
        if self.name == "mistral":
            return self.refuse(
                status, "Extra inputs are not permitted", where=["body", "messages", at, "assistant", name]
            )
        return self.refuse(
            status, f"'messages.{at}' : for 'role:assistant' the following must be satisfied[('messages.{at}' : "
            f"property '{name}' is unsupported)]",
        )  # fmt: skip

    def fault(self, name: str, **values: object) -> Refusal:
        """Returns the refusal that its documentation has for this: `key`, `limit`, `quota` and the like."""
        given = {"model": self.model, "limit": 8192, "asked": 9001, **values}
        more = dict(self.faults[name])
        return self.refuse(more.pop("status"), more.pop("message").format(**given), **more)


# How errors are written -----------------------------------------------------------------------------------------------


def _openai(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    kind = more.get("kind") or ("invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": more.get("param"), "code": more.get("code")}}


def _anthropic(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
    kind = more.get("kind") or kinds.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": f"req_{secrets.token_hex(8)}"}


def _gemini(status: int, message: str, more: Mapping[str, Any]) -> list[JSON]:
    kinds = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
    return [{"error": {"code": status, "message": message, "status": more.get("kind") or kinds.get(status, "INTERNAL"),
                       **({"details": more["details"]} if "details" in more else {})}}]  # fmt: skip


def _openrouter(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    metadata = {"metadata": more["metadata"]} if "metadata" in more else {}
    return {"error": {"message": message, "code": status, **metadata}, "user_id": "user_1"}


def _groq(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    named = {name: more[name] for name in ("code", "failed_generation") if name in more}
    return {"error": {"message": message, "type": more.get("kind", "invalid_request_error"), **named}}


def _mistral(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    if status == 401:
        return {"detail": message}
    said: Any = message
    if status == 422:
        where = more.get("where") or ["body", more["param"]]
        said = {"detail": [{"type": "extra_forbidden", "loc": where, "msg": message}]}
        more = {}
    return {"object": "error", "message": said, "type": more.get("kind", "invalid_request_error"),
            "param": more.get("param"), "code": more.get("code"), "raw_status_code": status}  # fmt: skip


def _kimi(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    return {"error": {"message": message, "type": more.get("kind", "invalid_request_error")}}


def _qwen(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    code, kind = more.get("code", "invalid_parameter_error"), more.get("kind", "invalid_request_error")
    error = {"code": code, "message": message, "param": None, "type": kind}
    return {"error": error, "request_id": secrets.token_hex(8)}


def _ollama(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    kind = {400: "invalid_request_error", 404: "not_found_error"}.get(status, "api_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _llamacpp(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    kinds = {
        400: "invalid_request_error",
        401: "authentication_error",
        404: "not_found_error",
        503: "unavailable_error",
    }
    numbers = {name: more[name] for name in ("n_prompt_tokens", "n_ctx") if name in more}
    return {"error": {"code": status, "message": message, "type": more.get("kind") or kinds.get(status, "server_error"),
                      **numbers}}  # fmt: skip


def _vllm(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    kind = {400: "BadRequestError", 404: "NotFoundError"}.get(status, "InternalServerError")
    return {"error": {"message": message, "type": kind, "param": more.get("param"), "code": status}}


def _sglang(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    kind = "BadRequestError" if status == 400 else "InternalServerError"
    return {"object": "error", "message": message, "type": kind, "param": None, "code": status}


def _lmstudio(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    return {"error": message}


def _koboldcpp(status: int, message: str, more: Mapping[str, Any]) -> JSON:
    return {"detail": {"msg": message, "type": more.get("kind", "bad_input")}}


_IDS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def _ids(form: str, size: int = 0) -> Callable[[str], str]:
    """Returns what makes ids: the form, with so many bytes in hexadecimal at its end, and the tool's {name}."""
    return lambda name: form.format(name=name) + secrets.token_hex(size)


def _nine(_name: str) -> str:
    return "".join(secrets.choice(_IDS) for _ in range(9))


_RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "openai": (
        rules.pairs, rules.readable_arguments, rules.openai_ids,
        rules.says_json("'messages' must contain the word 'json' to use 'response_format' of type 'json_object'."),
    ),
    "anthropic": (rules.claude_options(newest=False, most=64_000), rules.claude_messages, rules.claude_thinking),
    "gemini": (rules.pairs, rules.signature_back),
    "openrouter": (rules.pairs, rules.details_back),
    "groq": (
        rules.only_fields("reasoning"), rules.pairs, rules.readable_arguments,
        rules.says_json("json mode cannot be combined with tool/function calling"),
    ),
    "mistral": (rules.only_fields("prefix", status=422), rules.mistral_order, rules.readable_arguments),
    "deepseek": (
        rules.pairs, rules.readable_arguments,
        rules.reasoning_back("The reasoning_content in the thinking mode must be passed back to the API."),
        rules.says_json("Prompt must contain the word 'json' to use 'response_format' of type 'json_object'."),
    ),
    "kimi": (
        rules.pairs,
        rules.reasoning_back("thinking is enabled but reasoning_content is missing in assistant tool call message at "
                             "index {at}"),
    ),
    "qwen": (rules.pairs, rules.readable_arguments),
    "ollama": (rules.readable_arguments,),
    "llamacpp": (rules.pairs, rules.readable_arguments),
    "vllm": (rules.readable_arguments,),
    "lmstudio": (
        rules.string_choice, rules.refuses_json(400, "'response_format.type' must be 'json_schema' or 'text'"),
    ),
    "sglang": (rules.readable_arguments,),
    "koboldcpp": (),
}  # fmt: skip
#: What Anthropic's newest models refuse.
NEWEST: Final = (rules.claude_options(newest=True, most=128_000), *_RULES["anthropic"][1:], rules.claude_prefill)

_SHAPES: Final[Mapping[str, Shape]] = {
    "openai": Shape(new_id=_ids("call_", 12)),
    "anthropic": Shape(new_id=_ids("toolu_", 12)),
    "gemini": Shape(calls="bare", usage="each", streamed_calls="stop", cached="", new_id=_ids("", 4)),
    "openrouter": Shape(thought="details", usage="last", comment="OPENROUTER PROCESSING",
                        new_id=_ids("tool_{name}_", 8)),
    "groq": Shape(thought="reasoning", calls="whole", usage="x_groq", new_id=_ids("fc_", 8)),
    "mistral": Shape(thought="chunks", calls="whole", usage="last", new_id=_nine),
    "deepseek": Shape(thought="reasoning_content", usage="last", cached="hit", comment="keep-alive",
                      new_id=_ids("call_00_", 10)),
    "kimi": Shape(thought="reasoning_content", usage="choice", cached="flat",
                  new_id=lambda name: f"functions.{name}:{secrets.randbelow(9000)}"),
    "qwen": Shape(thought="reasoning_content", new_id=_ids("call_", 8)),
    "ollama": Shape(thought="reasoning", calls="whole", cached="", new_id=_ids("call_", 4)),
    "llamacpp": Shape(thought="reasoning_content", cached="", new_id=_ids("", 16)),
    "vllm": Shape(thought="reasoning", cached="", new_id=_ids("chatcmpl-tool-", 16)),
    "lmstudio": Shape(thought="reasoning_content", cached="", new_id=lambda _name: str(secrets.randbelow(10**9))),
    "sglang": Shape(thought="reasoning_content", cached="", new_id=_ids("call_", 12)),
    "koboldcpp": Shape(thought="tags", calls="whole", usage="last", cached="", new_id=_ids("call_", 3)),
}  # fmt: skip
_ERRORS: Final[Mapping[str, Callable[[int, str, Mapping[str, Any]], Any]]] = {
    "openai": _openai, "anthropic": _anthropic, "gemini": _gemini, "openrouter": _openrouter, "groq": _groq,
    "mistral": _mistral, "deepseek": _openai, "kimi": _kimi, "qwen": _qwen, "ollama": _ollama, "llamacpp": _llamacpp,
    "vllm": _vllm, "lmstudio": _lmstudio, "sglang": _sglang, "koboldcpp": _koboldcpp,
}  # fmt: skip
#: Those that run on the person's own machine.
LOCAL: Final = ("ollama", "llamacpp", "vllm", "lmstudio", "sglang", "koboldcpp")


def _vendors() -> dict[str, Vendor]:
    given = yaml.safe_load(Path(__file__).with_name("vendors.yaml").read_text("utf-8"))
    return {
        name: Vendor(
            name=name, form="anthropic" if name == "anthropic" else "openai", error=_ERRORS[name], shape=_SHAPES[name],
            proves=name in {"anthropic", "gemini", "openrouter"},
            rules=(*map(rules.listed, row.pop("refuses", ())), *_RULES[name]), **row,
        )
        for name, row in given.items()
    }  # fmt: skip


VENDORS: Final[Mapping[str, Vendor]] = _vendors()
HOSTED: Final = tuple(name for name in VENDORS if name not in LOCAL)
