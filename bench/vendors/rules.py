"""What vendors refuse in a request, as small functions: each returns a refusal in its vendor's words, or None.

Invariants: a rule reads the request and what its server has sent before in the same conversation, nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from bench.vendors.wire import JSON, Refusal, Reply

if TYPE_CHECKING:
    from bench.vendors.table import Vendor

Rule: TypeAlias = "Callable[[JSON, Seat], Refusal | None]"


@dataclass(slots=True)
class Seat:
    """A vendor in one conversation: the answers with calls that it has given, by the ids of the calls."""

    vendor: Vendor
    issued: dict[str, Reply] = field(default_factory=dict)


def text_of(content: Any) -> str:
    """Returns the words of a message's content in either form."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text") or text_of(part.get("content")) or "") for part in parts)


def is_own(message: JSON) -> bool:
    """Returns whether a message has a person's words, and no results of tools."""
    content = message.get("content")
    results = isinstance(content, list) and any(part.get("type") == "tool_result" for part in content)
    return bool(message["role"] == "user") and not results


def assistants(body: JSON, *, since_user: bool = False) -> Iterator[tuple[int, JSON]]:
    """Yields the assistant's messages with calls and their positions; with `since_user` those of the current turn."""
    start = 0
    if since_user:
        start = max((at for at, one in enumerate(body["messages"]) if one["role"] == "user"), default=0)
    for at, one in enumerate(body["messages"]):
        if at >= start and one["role"] == "assistant" and one.get("tool_calls"):
            yield at, one


# Rules that most servers share ----------------------------------------------------------------------------------------


def pairs(body: JSON, seat: Seat) -> Refusal | None:
    """Every call is answered at once, and nothing else is."""
    waiting: set[str] = set()
    for at, one in enumerate(body["messages"]):
        if one["role"] == "tool":
            if one.get("tool_call_id") not in waiting:
                return seat.vendor.refuse(
                    400,
                    "messages with role 'tool' must follow a message with 'tool_calls'",
                    param=f"messages.[{at}].role",
                )
            waiting.discard(one["tool_call_id"])
        elif waiting:
            break
        if one["role"] == "assistant":
            waiting = {call["id"] for call in one.get("tool_calls") or ()}
    if waiting:
        missing = ", ".join(sorted(waiting))
        return seat.vendor.refuse(
            400, f"An assistant message with 'tool_calls' must be followed by tool messages; no response to: {missing}",
            param="messages",
        )  # fmt: skip
    return None


def readable_arguments(body: JSON, seat: Seat) -> Refusal | None:
    """Arguments in the history are JSON, and content is there where no call is."""
    for at, one in enumerate(body["messages"]):
        for call in one.get("tool_calls") or ():
            try:
                json.loads(call["function"]["arguments"])
            except (TypeError, ValueError, KeyError):
                return seat.vendor.refuse(400, f"messages[{at}]: tool call arguments are not valid JSON")
        if one.get("content") is None and not one.get("tool_calls"):
            return seat.vendor.refuse(
                400, f"messages[{at}]: content must be a string", param=f"messages.[{at}].content"
            )
    return None


def only_fields(*known: str, status: int = 400) -> Rule:
    """Messages of the assistant have these fields and no others."""

    def rule(body: JSON, seat: Seat) -> Refusal | None:
        for at, one in enumerate(body["messages"]):
            extra = sorted(set(one) - {"role", "content", "tool_calls", "tool_call_id", "name", *known})
            if extra and one["role"] == "assistant":
                return seat.vendor.unknown_field(status, at, extra[0])
        return None

    return rule


def listed(row: Mapping[str, Any]) -> Rule:
    """Fields that are not taken: at all, with another value than `only`, or above `most`."""
    more = {name: row[name] for name in ("code", "kind") if name in row}

    def rule(body: JSON, seat: Seat) -> Refusal | None:
        for name in row["fields"]:
            got = body.get(name)
            right = got == row["only"] if "only" in row else "most" in row and int(got or 0) <= row["most"]
            if name in body and not right:
                message = row["message"].format(name=name, got=got, most=row.get("most"))
                return seat.vendor.refuse(row.get("status", 400), message, param=name, **more)
        return None

    return rule


def refuses_fault(name: str, applies: Callable[[JSON], bool]) -> Rule:
    """What the vendor says to such a request, by its table."""
    return lambda body, seat: seat.vendor.fault(name) if applies(body) else None


def has_picture(body: JSON) -> bool:
    parts = (part for one in body["messages"] if isinstance(one.get("content"), list) for part in one["content"])
    return any(part.get("type") in {"image_url", "image"} for part in parts)


def refuses_json(status: int, message: str, **more: Any) -> Rule:
    def rule(body: JSON, seat: Seat) -> Refusal | None:
        wanted = (body.get("response_format") or {}).get("type")
        return seat.vendor.refuse(status, message, param="response_format", **more) if wanted == "json_object" else None

    return rule


def alternating(status: int, message: str, *, system: bool = True) -> Rule:
    """A template that knows people and answers in turn; without `system` no system role."""

    def rule(body: JSON, seat: Seat) -> Refusal | None:
        roles = [one["role"] for one in body["messages"] if one["role"] != "system" and not one.get("tool_calls")]
        roles = [role for role in roles if role != "tool"]
        if any(role != ("user", "assistant")[at % 2] for at, role in enumerate(roles)):
            return seat.vendor.refuse(status, message)
        if not system and body["messages"][0]["role"] == "system":
            return seat.vendor.refuse(status, "Jinja Exception: System role not supported")
        return None

    return rule


# Opaque fields that have to come back ---------------------------------------------------------------------------------


def reasoning_back(message: str, **more: Any) -> Rule:
    """DeepSeek, Kimi: each message with calls brings its `reasoning_content`, be it empty."""

    def rule(body: JSON, seat: Seat) -> Refusal | None:
        for at, one in assistants(body):
            if not isinstance(one.get("reasoning_content"), str):
                return seat.vendor.refuse(400, message.format(at=at), **more)
        return None

    return rule


def signature_back(body: JSON, seat: Seat) -> Refusal | None:
    """Gemini 3: in the current turn the first call of a step brings its signature; no signature is changed."""
    current = {at for at, _ in assistants(body, since_user=True)}
    known = {*_DUMMIES, *(reply.proof for reply in seat.issued.values())}
    for at, one in assistants(body):
        for place, call in enumerate(one["tool_calls"]):
            signature = ((call.get("extra_content") or {}).get("google") or {}).get("thought_signature")
            if signature is not None and signature not in known:
                return seat.vendor.refuse(400, "Corrupted thought signature.", kind="INVALID_ARGUMENT")
            if signature is None and place == 0 and at in current:
                name = call["function"]["name"]
                return seat.vendor.refuse(
                    400, "Function call is missing a thought_signature in functionCall parts. Additional data, function"
                    f" call `default_api:{name}` , position {at}.", kind="INVALID_ARGUMENT",
                )  # fmt: skip
    return None


#: What Gemini's documentation offers for calls of other models.
_DUMMIES: Final = ("context_engineering_is_the_way_to_go", "skip_thought_signature_validator")


def details_back(body: JSON, seat: Seat) -> Refusal | None:
    """OpenRouter: the messages of the current turn with calls bring their `reasoning_details` unchanged."""
    current = {at for at, _ in assistants(body, since_user=True)}
    known = {reply.proof: reply.thought for reply in seat.issued.values()}
    for at, one in assistants(body):
        entries = one.get("reasoning_details")
        if not entries:
            if at in current:
                return seat.vendor.wrapped(
                    400, "Gemini models require OpenRouter reasoning details to be preserved in each request. Upstream "
                    "error: Function call is missing a thought_signature in functionCall parts.",
                )  # fmt: skip
            continue
        sealed = [entry.get("data") for entry in entries if entry.get("type") == "reasoning.encrypted"]
        thought = "".join(str(entry.get("text") or "") for entry in entries if entry.get("type") == "reasoning.text")
        if len(sealed) != 1 or known.get(str(sealed[0])) != thought:
            return seat.vendor.wrapped(400, "Corrupted thought signature.")
    return None


# Vendors' own rules ---------------------------------------------------------------------------------------------------


def openai_ids(body: JSON, seat: Seat) -> Refusal | None:
    """An id has at most 40 characters."""
    for at, one in assistants(body):
        for place, call in enumerate(one["tool_calls"]):
            if len(call["id"]) > 40:
                name = f"messages[{at}].tool_calls[{place}].id"
                return seat.vendor.refuse(
                    400, f"Invalid '{name}': string too long. Expected a string with maximum length 40.", param=name,
                    code="string_above_max_length",
                )  # fmt: skip
    return None


def effort_none(body: JSON, seat: Seat) -> Refusal | None:
    """GPT-5.6: tools go with chat completions only if `reasoning_effort` is `none`, and said to be."""
    if body.get("tools") and body.get("reasoning_effort") != "none":
        return seat.vendor.refuse(
            400, f"Function tools with reasoning_effort are not supported for {body['model']} in /v1/chat/completions. "
            "To use function tools, use /v1/responses or set reasoning_effort to 'none'.", param="reasoning_effort",
        )  # fmt: skip
    return None


def no_empty_object(body: JSON, seat: Seat) -> Refusal | None:
    """Gemini, by reports up to 2025: the parameters of a tool are left out, or there are some."""
    for place, tool in enumerate(body.get("tools") or ()):
        if not (tool["function"].get("parameters") or {"properties": "left out"}).get("properties", "left out"):
            return seat.vendor.refuse(
                400, f"* GenerateContentRequest.tools[0].function_declarations[{place}].parameters.properties: should "
                "be non-empty for OBJECT type",
            )  # fmt: skip
    return None


def mistral_order(body: JSON, seat: Seat) -> Refusal | None:
    """Ids of nine letters and digits; a tool's result is followed by the assistant; the last word is not its own."""
    order: dict[str, Any] = {"kind": "invalid_request_message_order", "code": "3230"}
    messages = body["messages"]
    for before, one in zip([None, *messages], messages, strict=False):
        for name in [one.get("tool_call_id"), *(call["id"] for call in one.get("tool_calls") or ())]:
            if name is not None and re.fullmatch(r"[A-Za-z0-9]{9}", name) is None:
                return seat.vendor.refuse(
                    400, f"Tool call id was {name} but must be a-z, A-Z, 0-9, with a length of 9.",
                    kind="invalid_function_call", code="3280",
                )  # fmt: skip
        role, last = one["role"], before["role"] if before else ""
        if (last == "tool" and role not in {"tool", "assistant"}) or (role == "tool" and last in {"user", "system"}):
            return seat.vendor.refuse(400, f"Unexpected role '{role}' after role '{last}'", **order)
        if role == "assistant" and not one.get("tool_calls") and not text_of(one.get("content")):
            return seat.vendor.refuse(
                400, "Assistant message must have either content or tool_calls, but not none.", **order
            )
    if messages[-1]["role"] not in {"user", "tool"}:
        return seat.vendor.refuse(400, "Expected last role User or Tool for serving but got assistant", **order)
    calls = sum(len(one.get("tool_calls") or ()) for one in messages)
    if calls != sum(one["role"] == "tool" for one in messages):
        return seat.vendor.refuse(400, "Not the same number of function calls and responses", **order)
    return None


def says_json(message: str) -> Rule:
    """JSON mode goes only with a prompt that names JSON, and with no tools."""

    def rule(body: JSON, seat: Seat) -> Refusal | None:
        if (body.get("response_format") or {}).get("type") != "json_object":
            return None
        named = any("json" in text_of(one.get("content")).lower() for one in body["messages"])
        return None if named and not body.get("tools") else seat.vendor.refuse(400, message, param="response_format")

    return rule


def string_choice(body: JSON, seat: Seat) -> Refusal | None:
    """LM Studio takes `tool_choice` as a word only."""
    if isinstance(body.get("tool_choice"), dict):
        return seat.vendor.refuse(
            400, "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"
        )
    return None


# Anthropic ------------------------------------------------------------------------------------------------------------


def claude_messages(body: JSON, seat: Seat) -> Refusal | None:
    """Texts have words, ids have their letters, results stand first in the message behind their calls."""
    waiting: list[str] = []
    if body["messages"][0]["role"] != "user":
        return seat.vendor.refuse(400, 'messages: first message must use the "user" role')
    for at, one in enumerate(body["messages"]):
        content = one["content"] if isinstance(one["content"], list) else [{"type": "text", "text": one["content"]}]
        if one["role"] not in {"user", "assistant"}:
            return seat.vendor.refuse(400, f"messages.{at}.role: Input should be 'user' or 'assistant'")
        if any(part["type"] == "text" and not str(part["text"]).strip() for part in content) or not content:
            return seat.vendor.refuse(400, f"messages.{at}: text content blocks must be non-empty")
        results = [part["tool_use_id"] for part in content if part["type"] == "tool_result"]
        if waiting and sorted(results) != sorted(waiting):
            return seat.vendor.refuse(
                400, f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                + ", ".join(waiting),
            )  # fmt: skip
        if results and (not waiting or content[0]["type"] != "tool_result"):
            return seat.vendor.refuse(400, f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks")
        waiting = [part["id"] for part in content if part["type"] == "tool_use"]
        if wrong := next((name for name in waiting if not re.fullmatch(r"[a-zA-Z0-9_-]+", name)), None):
            return seat.vendor.refuse(
                400, f"messages.{at}: tool_use.id: '{wrong}' should match pattern '^[a-zA-Z0-9_-]+$'"
            )
    return None


def claude_thinking(body: JSON, seat: Seat) -> Refusal | None:
    """With a budget for thoughts, messages with calls in the last turn begin with them; none is changed.

    Adaptive thinking does not ask for them.
    """
    thinking = (body.get("thinking") or {}).get("type") == "enabled"
    messages = body["messages"]
    own = [at for at, one in enumerate(messages) if is_own(one)]
    for at, one in enumerate(messages):
        content = one["content"] if one["role"] == "assistant" and isinstance(one["content"], list) else []
        uses = [part["id"] for part in content if part["type"] == "tool_use"]
        thoughts = [part for part in content if part["type"] in {"thinking", "redacted_thinking"}]
        given = seat.issued.get(uses[0]) if uses else None
        known = {reply.proof: reply.thought for reply in seat.issued.values()}
        for part in thoughts:
            proof = str(part.get("signature") or part.get("data"))
            if proof not in known or known[proof] != part.get("thinking", ""):
                return seat.vendor.refuse(400, f"messages.{at}.content.0: Invalid `signature` in `thinking` block")
        if thinking and uses and at > max(own, default=-1) and not thoughts and (given is None or given.proof):
            return seat.vendor.refuse(
                400, f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                f"`{content[0]['type']}`. When `thinking` is enabled, a final `assistant` message must start with a "
                "thinking block (preceding the last set of `tool_use` and `tool_result` blocks).",
            )  # fmt: skip
    return None


def claude_options(*, newest: bool, most: int) -> Rule:
    """`max_tokens` is there and within bounds; sampling and thinking as the model takes them."""

    def rule(body: JSON, seat: Seat) -> Refusal | None:
        refuse, thinking = seat.vendor.refuse, body.get("thinking") or {}
        if "max_tokens" not in body:
            return refuse(400, "max_tokens: Field required")
        if int(body["max_tokens"]) > most:
            return refuse(400, f"max_tokens: {body['max_tokens']} > {most}, which is the maximum for {body['model']}")
        if newest and thinking.get("type") == "enabled":
            return refuse(400, '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" '
                          'and "output_config.effort" to control thinking behavior.')  # fmt: skip
        if not newest and thinking.get("type") == "adaptive":
            return refuse(400, "adaptive thinking is not supported on this model")
        if (
            thinking.get("type") == "enabled"
            and not 1024 <= int(thinking.get("budget_tokens") or 0) < body["max_tokens"]
        ):
            return refuse(400, "`max_tokens` must be greater than `thinking.budget_tokens`")
        if "temperature" in body and "top_p" in body:
            return refuse(
                400, "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
            )
        if newest and ("top_p" in body or body.get("temperature", 1) != 1):
            name = "top_p" if "top_p" in body else "temperature"
            return refuse(400, f"`{name}` is deprecated for this model.")
        if thinking.get("type") in {"enabled", "adaptive"} and body.get("temperature", 1) != 1:
            return refuse(400, "`temperature` may only be set to 1 when thinking is enabled.")
        return None

    return rule


def claude_prefill(body: JSON, seat: Seat) -> Refusal | None:
    """The newest models go on with no half answer."""
    if body["messages"][-1]["role"] == "assistant":
        return seat.vendor.refuse(400, "This model does not support assistant message prefill.")
    return None


def size_of(body: Mapping[str, Any]) -> int:
    """Returns the tokens of a request, roughly as vendors count them."""
    counted = [body.get("system"), body.get("messages"), body.get("tools")]
    return sum(len(json.dumps(one, ensure_ascii=False)) for one in counted if one) // 4
