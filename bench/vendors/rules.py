"""Refuses requests as vendors do, in small functions: each yields refusals in its vendor's words, the first counts.

Invariants: a rule reads the request and what its server has sent before in the same conversation, nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from bench.vendors.wire import JSON, Refusal, Reply

if TYPE_CHECKING:
    from bench.vendors.table import Vendor

Rule: TypeAlias = "Callable[[JSON, Seat], Iterable[Refusal]]"


@dataclass(slots=True)
class Seat:
    """A vendor in one conversation: the answers with calls that it has given, by the ids of the calls."""

    vendor: Vendor
    issued: dict[str, Reply] = field(default_factory=dict)

    def no(self, message: str, status: int = 400, **more: Any) -> Refusal:
        return self.vendor.refuse(status, message, **more)

    @property
    def thoughts(self) -> dict[str, str]:
        """The thoughts of the answers, by their proofs."""
        return {reply.proof: reply.thought for reply in self.issued.values()}


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text") or text_of(part.get("content")) or "") for part in parts)


def is_own(message: JSON) -> bool:
    """Returns whether a message has a person's words, and no results of tools."""
    content = message.get("content")
    results = isinstance(content, list) and any(part.get("type") == "tool_result" for part in content)
    return bool(message["role"] == "user") and not results


def assistants(body: JSON) -> Iterator[tuple[int, JSON, bool]]:
    """Yields the assistant's messages with calls, their positions, and whether they are of the current turn."""
    start = max((at for at, each in enumerate(body["messages"]) if each["role"] == "user"), default=0)
    for at, each in enumerate(body["messages"]):
        if each["role"] == "assistant" and each.get("tool_calls"):
            yield at, each, at >= start


def pairs(body: JSON, seat: Seat) -> Iterator[Refusal]:
    """Every call is answered at once, and nothing else is."""
    waiting: set[str] = set()
    for at, each in enumerate(body["messages"]):
        if each["role"] == "tool":
            if each.get("tool_call_id") not in waiting:
                must = "messages with role 'tool' must follow a message with 'tool_calls'"
                yield seat.no(must, param=f"messages.[{at}].role")
            waiting.discard(each["tool_call_id"])
        elif waiting:
            break
        if each["role"] == "assistant":
            waiting = {call["id"] for call in each.get("tool_calls") or ()}
    if waiting:
        must = "An assistant message with 'tool_calls' must be followed by tool messages; no response to: "
        yield seat.no(must + ", ".join(sorted(waiting)), param="messages")


def readable_arguments(body: JSON, seat: Seat) -> Iterator[Refusal]:
    """Arguments in the history are JSON, and content is there where no call is."""
    for at, each in enumerate(body["messages"]):
        for call in each.get("tool_calls") or ():
            try:
                json.loads(call["function"]["arguments"])
            except (TypeError, ValueError, KeyError):
                yield seat.no(f"messages[{at}]: tool call arguments are not valid JSON")
        if each.get("content") is None and not each.get("tool_calls"):
            yield seat.no(f"messages[{at}]: content must be a string", param=f"messages.[{at}].content")


def only_fields(body: JSON, seat: Seat, known: str, status: int = 400) -> Iterator[Refusal]:
    """Messages of the assistant have the usual fields, the one that is `known`, and no others."""
    for at, each in enumerate(body["messages"]):
        extra = sorted(set(each) - {"role", "content", "tool_calls", "tool_call_id", "name", known})
        if extra and each["role"] == "assistant":
            must = f"'messages.{at}' : for 'role:assistant' the following must be satisfied[('messages.{at}' : "
            must += f"property '{extra[0]}' is unsupported)]"
            where = ["body", "messages", at, "assistant", extra[0]]
            yield seat.no("Extra inputs are not permitted" if status == 422 else must, status, where=where)


def listed(body: JSON, seat: Seat, row: Mapping[str, Any]) -> Iterator[Refusal]:
    """Fields that are not taken: at all, with another value than `only`, or above `most`."""
    more = {name: row[name] for name in ("status", "code", "kind") if name in row}
    for name in row["fields"]:
        got = body.get(name)
        right = got == row["only"] if "only" in row else "most" in row and int(got or 0) <= row["most"]
        if name in body and not right:
            yield seat.no(row["message"].format(name=name, got=got, most=row.get("most")), param=name, **more)


def _when(test: Callable[[JSON], bool], message: str = "", *, fault: str = "", **more: Any) -> Rule:
    """Returns the rule that refuses a request by a message, or by a fault of the vendor, if the test holds."""

    def rule(body: JSON, seat: Seat) -> Iterator[Refusal]:
        if test(body):
            yield seat.vendor.fault(fault) if fault else seat.no(message.format(**body), **more)

    return rule


def _has_role(body: JSON, role: str, *, last: bool = False) -> bool:
    return any(each["role"] == role for each in body["messages"][-1 if last else 0 :])


def _has_picture(body: JSON) -> bool:
    parts = (part for each in body["messages"] if isinstance(each.get("content"), list) for part in each["content"])
    return any(part.get("type") in {"image_url", "image"} for part in parts)


no_tools: Final = _when(lambda body: bool(body.get("tools")), fault="tools")
no_pictures: Final = _when(_has_picture, fault="picture")
no_tool_role: Final = _when(lambda body: _has_role(body, "tool"), "Role 'tool' is not supported.")
#: LM Studio takes `tool_choice` as a word only.
string_choice: Final = _when(
    lambda body: isinstance(body.get("tool_choice"), dict),
    "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
)
#: GPT-5.6: tools go with chat completions only if `reasoning_effort` is `none`, and said to be.
effort_none: Final = _when(
    lambda body: bool(body.get("tools")) and body.get("reasoning_effort") != "none",
    "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. "
    "To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
    param="reasoning_effort",
)
#: Anthropic's newest models go on with no half answer.
claude_prefill: Final = _when(
    lambda body: _has_role(body, "assistant", last=True), "This model does not support assistant message prefill."
)


def no_json(body: JSON, seat: Seat, message: str) -> Iterator[Refusal]:
    if (body.get("response_format") or {}).get("type") == "json_object":
        yield seat.no(message, param="response_format")


def says_json(body: JSON, seat: Seat, message: str) -> Iterator[Refusal]:
    """JSON mode goes only with a prompt that names JSON, and with no tools."""
    named = any("json" in text_of(each.get("content")).lower() for each in body["messages"])
    if body.get("tools") or not named:
        yield from no_json(body, seat, message)


def alternating(body: JSON, seat: Seat, status: int, message: str, *, system: bool = True) -> Iterator[Refusal]:
    """A template that knows people and answers in turn; without `system` no system role."""
    spoken = [each["role"] for each in body["messages"] if not each.get("tool_calls")]
    roles = [role for role in spoken if role not in {"system", "tool"}]
    if any(role != ("user", "assistant")[at % 2] for at, role in enumerate(roles)):
        yield seat.no(message, status)
    if not system and body["messages"][0]["role"] == "system":
        yield seat.no("Jinja Exception: System role not supported", status)


_UNSIGNED: Final = "Function call is missing a thought_signature in functionCall parts."
_CORRUPTED: Final = "Corrupted thought signature."
#: What Gemini's documentation offers for calls of other models.
_DUMMIES: Final = ("context_engineering_is_the_way_to_go", "skip_thought_signature_validator")


def reasoning_back(body: JSON, seat: Seat, message: str) -> Iterator[Refusal]:
    """DeepSeek, Kimi: each message with calls brings its `reasoning_content`, be it empty."""
    for at, each, _ in assistants(body):
        if not isinstance(each.get("reasoning_content"), str):
            yield seat.no(message.format(at=at))


def signature_back(body: JSON, seat: Seat) -> Iterator[Refusal]:
    """Gemini 3: in the current turn the first call of a step brings its signature; no signature is changed."""
    for at, each, is_current in assistants(body):
        for place, call in enumerate(each["tool_calls"]):
            signature = ((call.get("extra_content") or {}).get("google") or {}).get("thought_signature")
            if signature is not None and signature not in {*_DUMMIES, *seat.thoughts}:
                yield seat.no(_CORRUPTED, kind="INVALID_ARGUMENT")
            if signature is None and place == 0 and is_current:
                named = f"function call `default_api:{call['function']['name']}` , position {at}."
                yield seat.no(f"{_UNSIGNED} Additional data, {named}", kind="INVALID_ARGUMENT")


def details_back(body: JSON, seat: Seat) -> Iterator[Refusal]:
    """OpenRouter: the messages of the current turn with calls bring their `reasoning_details` unchanged."""
    for _, each, is_current in assistants(body):
        entries = each.get("reasoning_details") or ()
        if not entries and is_current:
            must = (
                "Gemini models require OpenRouter reasoning details to be preserved in each request. Upstream error: "
            )
            yield seat.vendor.wrapped(400, must + _UNSIGNED)
        sealed = [entry.get("data") for entry in entries if entry.get("type") == "reasoning.encrypted"]
        thought = "".join(str(entry.get("text") or "") for entry in entries if entry.get("type") == "reasoning.text")
        if entries and (len(sealed) != 1 or seat.thoughts.get(str(sealed[0])) != thought):
            yield seat.vendor.wrapped(400, _CORRUPTED)


def openai_ids(body: JSON, seat: Seat) -> Iterator[Refusal]:
    """An id has at most 40 characters."""
    for at, each, _ in assistants(body):
        for place, call in enumerate(each["tool_calls"]):
            if len(call["id"]) > 40:
                name = f"messages[{at}].tool_calls[{place}].id"
                must = f"Invalid '{name}': string too long. Expected a string with maximum length 40."
                yield seat.no(must, param=name, code="string_above_max_length")


def no_empty_object(body: JSON, seat: Seat) -> Iterator[Refusal]:
    """Gemini, by reports up to 2025: the parameters of a tool are left out, or there are some."""
    for place, tool in enumerate(body.get("tools") or ()):
        if not (tool["function"].get("parameters") or {"properties": "left out"}).get("properties", "left out"):
            name = f"GenerateContentRequest.tools[0].function_declarations[{place}].parameters.properties"
            yield seat.no(f"* {name}: should be non-empty for OBJECT type")


def mistral_order(body: JSON, seat: Seat) -> Iterator[Refusal]:
    """Ids of nine letters and digits; a tool's result is followed by the assistant; the last word is not its own."""
    order: dict[str, Any] = {"kind": "invalid_request_message_order", "code": "3230"}
    messages = body["messages"]
    for before, each in zip([None, *messages], messages, strict=False):
        for name in [each.get("tool_call_id"), *(call["id"] for call in each.get("tool_calls") or ())]:
            if name is not None and re.fullmatch(r"[A-Za-z0-9]{9}", name) is None:
                must = f"Tool call id was {name} but must be a-z, A-Z, 0-9, with a length of 9."
                yield seat.no(must, kind="invalid_function_call", code="3280")
        role, last = each["role"], before["role"] if before else ""
        if (last == "tool" and role not in {"tool", "assistant"}) or (role == "tool" and last in {"user", "system"}):
            yield seat.no(f"Unexpected role '{role}' after role '{last}'", **order)
        if role == "assistant" and not each.get("tool_calls") and not text_of(each.get("content")):
            yield seat.no("Assistant message must have either content or tool_calls, but not none.", **order)
    if messages[-1]["role"] not in {"user", "tool"}:
        yield seat.no("Expected last role User or Tool for serving but got assistant", **order)
    calls = sum(len(each.get("tool_calls") or ()) for each in messages)
    if calls != sum(each["role"] == "tool" for each in messages):
        yield seat.no("Not the same number of function calls and responses", **order)


def claude_messages(body: JSON, seat: Seat) -> Iterator[Refusal]:
    """Texts have words, ids have their letters, results stand first in the message behind their calls."""
    waiting: list[str] = []
    if body["messages"][0]["role"] != "user":
        yield seat.no('messages: first message must use the "user" role')
    for at, each in enumerate(body["messages"]):
        here = f"messages.{at}"
        content = each["content"] if isinstance(each["content"], list) else [{"type": "text", "text": each["content"]}]
        if each["role"] not in {"user", "assistant"}:
            yield seat.no(f"{here}.role: Input should be 'user' or 'assistant'")
        if any(part["type"] == "text" and not str(part["text"]).strip() for part in content) or not content:
            yield seat.no(f"{here}: text content blocks must be non-empty")
        results = [part["tool_use_id"] for part in content if part["type"] == "tool_result"]
        if waiting and sorted(results) != sorted(waiting):
            must = f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            yield seat.no(must + ", ".join(waiting))
        if results and (not waiting or content[0]["type"] != "tool_result"):
            yield seat.no(f"{here}: unexpected `tool_use_id` found in `tool_result` blocks")
        waiting = [part["id"] for part in content if part["type"] == "tool_use"]
        for wrong in (name for name in waiting if not re.fullmatch(r"[a-zA-Z0-9_-]+", name)):
            yield seat.no(f"{here}: tool_use.id: '{wrong}' should match pattern '^[a-zA-Z0-9_-]+$'")


def claude_thinking(body: JSON, seat: Seat) -> Iterator[Refusal]:
    """With a budget for thoughts, messages with calls in the last turn begin with them; none is changed.

    Adaptive thinking does not ask for them.
    """
    thinking = (body.get("thinking") or {}).get("type") == "enabled"
    own = max((at for at, each in enumerate(body["messages"]) if is_own(each)), default=-1)
    for at, each in enumerate(body["messages"]):
        content = each["content"] if each["role"] == "assistant" and isinstance(each["content"], list) else []
        uses = [part["id"] for part in content if part["type"] == "tool_use"]
        thoughts = [part for part in content if part["type"] in {"thinking", "redacted_thinking"}]
        given = seat.issued.get(uses[0]) if uses else None
        for part in thoughts:
            if seat.thoughts.get(str(part.get("signature") or part.get("data"))) != part.get("thinking", ""):
                yield seat.no(f"messages.{at}.content.0: Invalid `signature` in `thinking` block")
        if thinking and uses and at > own and not thoughts and (given is None or given.proof):
            yield seat.no(
                f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                f"`{content[0]['type']}`. When `thinking` is enabled, a final `assistant` message must start with a "
                "thinking block (preceding the last set of `tool_use` and `tool_result` blocks)."
            )


_ENABLED: Final = '"thinking.type.enabled"'
_ADAPTIVE: Final = '"thinking.type.adaptive" and "output_config.effort" to control thinking behavior'


def claude_options(body: JSON, seat: Seat, *, newest: bool, most: int) -> Iterator[Refusal]:
    """`max_tokens` is there and within bounds; sampling and thinking as the model takes them."""
    thinking = body.get("thinking") or {}
    kind, budget, asked = thinking.get("type"), int(thinking.get("budget_tokens") or 0), body.get("max_tokens", 0)
    is_warm, name = body.get("temperature", 1) != 1, "top_p" if "top_p" in body else "temperature"
    checks = (
        ("max_tokens" not in body, "max_tokens: Field required"),
        (asked > most, f"max_tokens: {asked} > {most}, which is the maximum for {body['model']}"),
        (newest and kind == "enabled", f"{_ENABLED} is not supported for this model. Use {_ADAPTIVE}."),
        (not newest and kind == "adaptive", "adaptive thinking is not supported on this model"),
        (kind == "enabled" and not 1024 <= budget < asked,
         "`max_tokens` must be greater than `thinking.budget_tokens`"),
        ({"temperature", "top_p"} <= {*body},
         "`temperature` and `top_p` cannot both be specified for this model. Please use only one."),
        (newest and ("top_p" in body or is_warm), f"`{name}` is deprecated for this model."),
        (kind in {"enabled", "adaptive"} and is_warm,
         "`temperature` may only be set to 1 when thinking is enabled."),
    )  # fmt: skip
    yield from (seat.no(message) for is_wrong, message in checks if is_wrong)


def size_of(body: Mapping[str, Any]) -> int:
    """Returns the tokens of a request, roughly as vendors count them."""
    counted = [body.get("system"), body.get("messages"), body.get("tools")]
    return sum(len(json.dumps(part, ensure_ascii=False)) for part in counted if part) // 4
