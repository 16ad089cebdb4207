"""What refusals teach, in the words of many servers: each is told once, and the next request is one that it takes.

The servers run on loopback and refuse until a request is as they want it. Their bodies have the shape of the real ones;
sentences are put in our own words where only some words of them matter.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import httpx
import pytest
from structlog.testing import capture_logs

from agents.budget import count_tokens
from agents.llm import (
    BadCompletion,
    ChatMessage,
    ContextOverflow,
    ModelAuth,
    ModelError,
    ModelRefused,
    ModelUnpaid,
    Picture,
    Request,
    ToolSpec,
)
from agents.providers.adapter import UNSEEN, Adapter
from agents.providers.adapters import connect
from agents.providers.errors import Refusal
from agents.providers.quirks import Learned
from agents.spec import ModelSpec
from tests.kit import stalls
from tests.kit.loopback import Answer, Asked, serving
from tests.kit.patience import SECONDS
from tests.kit.tables import each_row

Body: TypeAlias = dict[str, Any]

CITY = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}], "description": "Where", "default": None}
SCHEMA = {"type": "object", "properties": {"city": CITY}, "required": ["city"], "additionalProperties": False}
PLAIN = {"type": "object", "properties": {"city": {"type": "string", "description": "Where"}}, "required": ["city"]}
WEATHER = ToolSpec(name="weather", description="The weather in a city", parameters=SCHEMA)
ASKED = Request(
    messages=(ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="Say hello to Ada.")),
    tools=(WEATHER,),
    json_mode=True,
)
ANSWER = {"choices": [{"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}]}
ANTHROPICS = {"type": "message", "content": [{"type": "text", "text": "Hello."}], "stop_reason": "end_turn"}
ONE_TOOL = [
    {"type": "function", "function": {"name": "weather", "description": WEATHER.description, "parameters": PLAIN}}
]
THEIR_TOOL = [
    {
        "name": "weather",
        "description": WEATHER.description,
        "input_schema": PLAIN,
        "cache_control": {"type": "ephemeral"},
    }
]
NO_SYSTEM = [{"role": "user", "content": "Be brief.\n\nSay hello to Ada."}]
#: What is different in the request that is taken; None is a field that is left out.
Different: TypeAlias = Mapping[str, Any]
PLAINLY: Different = {"stream": False, "stream_options": None}


class Strict:
    """A server that refuses until a request differs from its first one as it wants."""

    def __init__(self, status: int, refusal: Any, different: Different) -> None:
        self.bodies: list[Body] = []
        self._answer = Answer(status=status, body=refusal)
        self._different = different

    async def __call__(self, asked: Asked) -> Answer:
        self.bodies.append(asked.body)
        if all(asked.body.get(name) == value for name, value in self._different.items()):
            return Answer(body=ANTHROPICS if asked.path.endswith("/messages") else ANSWER)
        return self._answer


@asynccontextmanager
async def provider_at(address: str, *, learned: Learned | None = None, **options: Any) -> AsyncIterator[Adapter]:
    entry = {
        "provider": "openai", "model": "m-4", "key": "sk-1", "temperature": 0.7, "top_p": 0.9, "max_tokens": 32_000,
        "context": 128_000,
    }  # fmt: skip
    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        spec = ModelSpec.model_validate(entry | options | {"base_url": f"{address}/v1"})
        yield connect(client, spec, count_tokens=count_tokens, learned=learned)


async def taught(status: int, refusal: Any, different: Different, **options: Any) -> None:
    """Asks a strict server twice. Only what it names may differ, and the second call knows."""
    server = Strict(status, refusal, different)
    asked = replace(ASKED, json_mode=options.get("provider") != "anthropic")
    async with serving(server) as address, provider_at(address, **options) as provider:
        assert (await provider.complete(asked)).text == "Hello."
        first, last = server.bodies[0], server.bodies[-1]
        changed = {name: last.get(name) for name in {*first, *last} if first.get(name) != last.get(name)}
        assert changed == dict(different), changed
        assert len(server.bodies) == 2, f"{len(server.bodies)} requests"
        assert (await provider.complete(asked)).text == "Hello."
        assert server.bodies[2:] == [last], "it was not learned"


def _openai(message: str, param: str | None = None, code: str | None = None) -> Body:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def _anthropic(message: str) -> Body:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}, "request_id": "req_1"}


def _google(message: str) -> list[Body]:
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]


def _pydantic(*loc: str | int) -> list[Body]:
    return [{"type": "extra_forbidden", "loc": [*loc], "msg": "Extra inputs are not permitted", "input": {"a": 1}}]


def _relayed(inner: Body | str, status: int = 400) -> Body:
    raw = inner if isinstance(inner, str) else json.dumps(inner, indent=2)
    return {
        "error": {
            "message": "Provider returned error",
            "code": status,
            "metadata": {"raw": raw, "provider_name": "Elsewhere"},
        },
        "user_id": "u",
    }


BOTH = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
WORDINGS: tuple[tuple[str, int, Any, Different], ...] = (
    ("OpenAI", 400, _openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens", "unsupported_parameter"), {"max_tokens": None, "max_completion_tokens": 32_000}),
    ("OpenAI", 400, _openai("Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.", "temperature", "unsupported_value"), {"temperature": None}),
    ("OpenAI", 400, _openai("Unsupported parameter: 'temperature' is not supported with this model.", "temperature", "unsupported_parameter"), {"temperature": None}),
    ("OpenAI", 400, _openai("Unsupported parameter: 'top_p' is not supported with this model.", "top_p", "unsupported_parameter"), {"top_p": None}),
    ("OpenAI", 400, _openai("Your organization must be verified to stream this model. Please verify it in the settings.", "stream", "unsupported_value"), PLAINLY),
    ("OpenAI", 400, _openai("max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.", "max_tokens", "invalid_value"), {"max_tokens": 16_384}),
    ("OpenAI", 400, _openai("Invalid parameter: 'response_format' of type 'json_object' is not supported with this model.", "response_format"), {"response_format": None}),
    ("OpenAI", 400, _openai("'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.", "messages"), {"response_format": None}),
    ("OpenAI", 400, _openai("Unsupported parameter: 'tools' is not supported with this model.", "tools", "unsupported_parameter"), {"tools": None}),
    ("OpenAI", 400, _openai("Unsupported value: 'messages[0].role' does not support 'system' with this model.", "messages[0].role", "unsupported_value"), {"messages": NO_SYSTEM}),
    ("OpenAI", 400, _openai("Invalid schema for function 'weather': In context=('properties', 'city'), 'default' is not permitted.", "tools[0].function.parameters", "invalid_function_parameters"), {"tools": ONE_TOOL}),
    ("OpenAI", 400, _openai("Function tools with reasoning_effort are not supported for m-4 in /v1/chat/completions. Set reasoning_effort to 'none'.", "reasoning_effort"), {"reasoning_effort": "none"}),
    ("Azure", 400, _openai("Unrecognized request argument supplied: stream_options", ""), {"stream_options": None}),
    ("Azure", 400, _openai("Unrecognized request arguments supplied: tool_choice, tools"), {"tools": None}),
    ("Azure", 400, _openai("Unknown parameter: 'stream_options'.", "stream_options", "unknown_parameter"), {"stream_options": None}),
    ("Azure", 403, {"message": "Streaming requests are not yet allowed."}, PLAINLY),
    ("Gemini", 400, _google('Invalid JSON payload received. Unknown name "stream_options": Cannot find field.'), {"stream_options": None}),
    ("Gemini", 400, _google("Invalid JSON payload received. Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters': Cannot find field.\nInvalid JSON payload received. Unknown name \"default\" at 'tools[0].function_declarations[0].parameters.properties[0].value': Cannot find field."), {"tools": ONE_TOOL}),
    ("Gemini", 400, _google("Function calling is not enabled for models/m-4"), {"tools": None}),
    ("Gemini", 400, _google("Developer instruction is not enabled for models/m-4"), {"messages": NO_SYSTEM}),
    ("OpenRouter", 404, {"error": {"message": 'No endpoints found that support tool use. Try disabling "weather".', "code": 404}}, {"tools": None}),
    ("OpenRouter", 400, _relayed(_openai("Unsupported parameter: 'temperature' is not supported with this model.", "temperature")), {"temperature": None}),
    ("OpenRouter", 400, _relayed(_anthropic(BOTH)), {"top_p": None}),
    ("OpenRouter", 400, _relayed("invalid temperature: only 1 is allowed for this model"), {"temperature": None}),
    ("Groq", 400, {"error": {"message": "'response_format' : one of the following must be satisfied[('response_format.type' : value is not one of the allowed values ['text'])]", "type": "invalid_request_error"}}, {"response_format": None}),
    ("Groq", 400, {"error": {"message": "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model", "type": "invalid_request_error"}}, {"max_tokens": 8_192}),
    ("Groq", 400, {"error": {"message": "property 'stream_options' is unsupported, did you mean 'stream'?", "type": "invalid_request_error"}}, {"stream_options": None}),
    ("Groq", 400, {"error": {"message": "`tool calling` is not supported with this model", "type": "invalid_request_error"}}, {"tools": None}),
    ("Mistral", 422, {"object": "error", "message": {"detail": _pydantic("body", "stream_options")}, "type": "invalid_request_error", "param": None, "code": None}, {"stream_options": None}),
    ("Mistral", 422, {"object": "error", "message": json.dumps({"detail": _pydantic("body", "top_p")}), "type": "internal_error_proxy", "code": "1000"}, {"top_p": None}),
    ("Mistral", 422, {"object": "Error", "detail": _pydantic("body", "tools"), "message": _pydantic("body", "tools"), "type": "invalid_request_error", "code": 3001}, {"tools": None}),
    ("DeepSeek", 400, _openai("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", None, "invalid_request_error"), {"max_tokens": 8_192}),
    ("DeepSeek", 400, _openai("m-4 does not support Function Calling"), {"tools": None}),
    ("Kimi", 400, {"error": {"message": "invalid temperature: only 1 is allowed for this model", "type": "invalid_request_error"}}, {"temperature": None}),
    ("Kimi", 400, {"error": {"message": "invalid top_p: only 0.95 is allowed for this model", "type": "invalid_request_error"}}, {"top_p": None}),
    ("xAI", 400, {"code": "Client specified an invalid argument", "error": "Argument not supported on this model: topP"}, {"top_p": None}),
    ("xAI", 400, {"code": "invalid-argument", "error": "Model m-4 does not support parameter responseFormat."}, {"response_format": None}),
    ("Qwen", 400, _openai("<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]", None, "invalid_parameter_error"), {"max_tokens": 8_192}),
    ("Qwen", 400, _openai("Json mode response is not supported when enable_thinking is true"), {"response_format": None}),
    ("Zhipu", 400, {"error": {"code": "1210", "message": "API 调用参数有误：不支持 temperature 参数。"}}, {"temperature": None}),
    ("MiniMax", 400, {"type": "error", "error": {"type": "bad_request_error", "message": "invalid params, response_format is not supported (2013)"}}, {"response_format": None}),
    ("Xiaomi", 400, {"error": {"message": "Param Incorrect", "type": "upstream_error", "param": "max_tokens is too large: 32000. This model supports at most 8192 completion tokens, whereas you provided 32000.", "code": "400"}}, {"max_tokens": 8_192}),
    ("Cerebras", 400, {"message": "Unsupported JSON schema fields: {'minLength', 'default'}", "type": "invalid_request_error", "param": "tools", "code": "wrong_api_format"}, {"tools": ONE_TOOL}),
    ("Fireworks", 400, {"error": {"object": "error", "type": "invalid_request_error", "message": "Extra inputs are not permitted, field: 'stream_options', value: {'include_usage': True}"}}, {"stream_options": None}),
    ("Bedrock", 400, {"message": f"The model returned the following errors: {BOTH}"}, {"top_p": None}),
    ("Cloudflare", 400, {"result": None, "success": False, "errors": [{"message": "top_p is not supported", "code": 5006}]}, {"top_p": None}),
    ("Ollama", 400, _openai("registry.ollama.ai/library/gemma:2b does not support tools"), {"tools": None}),
    ("llama.cpp", 500, {"error": {"code": 500, "message": "tools param requires --jinja flag", "type": "server_error"}}, {"tools": None}),
    ("llama.cpp", 500, {"error": {"code": 500, "message": "Cannot use tools with stream", "type": "server_error"}}, PLAINLY),
    ("llama.cpp", 500, {"error": {"code": 500, "message": "Jinja Exception: System role not supported", "type": "server_error"}}, {"messages": NO_SYSTEM}),
    ("llama.cpp", 400, {"error": {"code": 400, "message": "Failed to parse grammar", "type": "invalid_request_error"}}, {"tools": ONE_TOOL}),
    ("vLLM", 400, {"object": "error", "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', "type": "BadRequestError", "param": None, "code": 400}, {"tools": None}),
    ("vLLM", 400, {"object": "error", "message": "1 validation error for ChatCompletionRequest\nstream_options\n  Extra inputs are not permitted [type=extra_forbidden, input_value={'include_usage': True}, input_type=dict]", "type": "BadRequestError", "param": None, "code": 400}, {"stream_options": None}),
    ("vLLM", 400, {"object": "error", "message": "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...", "type": "BadRequestError", "code": 400}, {"messages": NO_SYSTEM}),
    ("LM Studio", 400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}, {"response_format": None}),
    ("TGI", 422, {"error": "Template error: only user and assistant roles are supported", "error_type": "template_error"}, {"messages": NO_SYSTEM}),
    ("FastAPI", 422, {"detail": _pydantic("body", "response_format")}, {"response_format": None}),
    ("LiteLLM", 400, _openai(f"litellm.BadRequestError: AnthropicException - {json.dumps(_anthropic(BOTH))}. Received Model Group=m-4\nAvailable Model Group Fallbacks=None", None, "400"), {"top_p": None}),
    ("LiteLLM", 400, _openai("litellm.BadRequestError: AnthropicException - b'" + json.dumps(_anthropic("`temperature` is deprecated for this model.")) + "'. Received Model Group=m-4", None, "400"), {"temperature": None}),
    ("LiteLLM", 400, _openai("litellm.UnsupportedParamsError: together_ai does not support parameters: ['response_format'], for model=m-4. To drop these, set `litellm.drop_params=True`"), {"response_format": None}),
    ("LiteLLM", 400, _openai("litellm.UnsupportedParamsError: m-4 models don't support temperature=0.7. Only temperature=1 is supported. To drop it, set `litellm.drop_params = True`"), {"temperature": None}),
    ("a relay", 400, {"error": {"cause": json.dumps(_openai("Unsupported value: 'temperature' does not support 0.7 with this model.", "temperature")), "code": 400, "message": "模型服务调用失败"}, "requestId": "r"}, {"temperature": None}),
    ("a relay", 400, {"error": {"error": {"message": "Unsupported parameter: 'top_p'"}}, "message": "400 Upstream error: 400"}, {"top_p": None}),
    ("a relay", 415, {"error": "Unsupported Media Type", "message": "streaming is not available here"}, PLAINLY),
)  # fmt: skip
THEIRS: tuple[tuple[str, Any, Different, dict[str, Any]], ...] = (
    ("temperature", _anthropic("`temperature` is deprecated for this model."), {"temperature": None}, {}),
    ("both", _anthropic(BOTH), {"top_p": None}, {}),
    ("a limit", _anthropic("max_tokens: 128001 > 64000, which is the maximum allowed number of output tokens for claude-opus-4-5-20251101"), {"max_tokens": 64_000}, {"max_tokens": 100_000}),
    ("a schema", _anthropic("tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"), {"tools": THEIR_TOOL}, {}),
    ("adaptive", _anthropic('"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'), {"thinking": {"type": "adaptive"}}, {"thinking": 2_048}),
    ("no thought", _anthropic("thinking: Extra inputs are not permitted"), {"thinking": None, "temperature": 0.7, "top_p": 0.9}, {"thinking": 2_048}),
)  # fmt: skip


@each_row("server, status, refusal, different", WORDINGS)
def test_a_refusal_teaches_what_it_names_and_nothing_else(
    server: str, status: int, refusal: Any, different: Different
) -> None:
    """Else every message of everybody fails, until somebody finds the field in the server's documentation."""
    stalls.run(taught(status, refusal, different))


@each_row("name, refusal, different, options", THEIRS)
def test_so_does_one_of_anthropic(name: str, refusal: Any, different: Different, options: dict[str, Any]) -> None:
    entry = {"provider": "anthropic", "model": "claude-opus-4-5-20251101", **options}
    stalls.run(taught(400, refusal, different, **entry))


async def test_a_relay_without_a_cache_is_sent_no_marks_for_one() -> None:
    """They stand in the system's text, the tools and the messages."""
    refusal = _anthropic("system.0.cache_control: Extra inputs are not permitted")
    bodies: list[str] = []

    async def answer(asked: Asked) -> Answer:
        bodies.append(json.dumps(asked.body))
        return Answer(status=400, body=refusal) if '"cache_control"' in bodies[-1] else Answer(body=ANTHROPICS)

    async with serving(answer) as address, provider_at(address, provider="anthropic") as provider:
        await provider.complete(replace(ASKED, json_mode=False))
    assert len(bodies) == 2


@each_row(
    "status, refusal, options, words",
    [
        (400, _openai("temperature must be at most 0.5"), {}, "temperature must be at most 0.5"),
        (422, {"detail": [{"type": "less_than_equal", "loc": ["body", "top_p"], "msg": "Input should be less than or equal to 0.8"}]}, {}, "body.top_p: Input should be less than"),
        (400, _openai("Invalid value for 'temperature': range is 0 to 0.5"), {}, "range is 0 to 0.5"),
        (400, {"code": "invalid-argument", "error": "Model m-4 does not support parameter reasoningEffort."}, {"extra_body": {"reasoning_effort": "high"}}, "reasoning_effort, which extra_body sets"),
        (422, {"detail": _pydantic("body", "store")}, {"extra_body": {"store": False}}, "store, which extra_body sets"),
        (400, _openai("tool_choice is not supported with this model"), {"extra_body": {"tool_choice": "auto"}}, "tool_choice, which extra_body sets"),
        (400, _openai("Unknown parameter: 'seed'."), {"extra_body": {"seed": 1}}, "seed, which extra_body sets"),
        (404, _openai("The model `m-4` does not exist or you do not have access to it.", None, "model_not_found"), {}, "does not exist"),
        (400, _openai("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.", "messages.[3].role"), {}, "must be followed"),
        (400, {"object": "error", "message": "Unexpected role 'user' after role 'tool'", "type": "invalid_request_message_order", "code": "3230"}, {}, "after role"),
        (400, _google("Function call is missing a thought_signature in functionCall parts."), {}, "thought_signature"),
        (422, {"detail": _pydantic("body", "messages", 3, "assistant", "tool_calls", 0, "extra_content")}, {}, "extra_content"),
        (400, {"error": {"message": "'messages.3' : for 'role:assistant' the following must be satisfied[('messages.3' : property 'tool_calls' is unsupported)]"}}, {}, "is unsupported"),
        (400, _openai("The prompt was filtered by the content policy.", "prompt", "content_filter"), {}, "content policy"),
        (400, _openai("Invalid 'messages[2].content': expected a string"), {}, "expected a string"),
    ],
)  # fmt: skip
def test_what_is_no_field_to_leave_out_stays_an_error_with_its_cause(
    status: int, refusal: Any, options: dict[str, Any], words: str
) -> None:
    """A wrong value is to be corrected, and a field of the operator's own may keep people's words from being stored."""

    async def tried() -> None:
        server = Strict(status, refusal, {"never": True})
        async with serving(server) as address, provider_at(address, **options) as provider:
            with pytest.raises(ModelRefused) as caught:
                await provider.complete(ASKED)
        assert words in str(caught.value), str(caught.value)
        assert len(server.bodies) == 1

    stalls.run(tried())


async def test_a_refusal_that_goes_on_without_the_field_has_taught_nothing() -> None:
    """It was about something else; else tools were gone for a month because of a bad minute."""
    learned: Learned = {}
    server = Strict(500, {"error": "tools are not available"}, {"never": True})
    async with serving(server) as address, provider_at(address, learned=learned) as provider:
        with pytest.raises(ModelError):
            await provider.complete(ASKED)
    assert ["tools" in body for body in server.bodies] == [True, False]
    assert not any(learned.values())


async def test_a_word_that_the_operator_uses_as_a_field_hides_nothing() -> None:
    """JSON mode beside thinking, and `user` in a sentence about roles."""
    for extra, message, name in (
        (
            {"enable_thinking": True},
            "Json mode response is not supported when enable_thinking is true",
            "response_format",
        ),
        ({"user": "ada"}, "Conversation roles must alternate user/assistant/user", "messages"),
    ):
        different = {"response_format": None} if name == "response_format" else {"messages": NO_SYSTEM}
        await taught(400, _openai(message), different, extra_body=extra)


@pytest.mark.parametrize("kind", ["limits", "tools"])
async def test_a_server_that_goes_on_refusing_is_given_up(kind: str) -> None:
    """One that names another limit, or another tool, each time."""
    bodies: list[Body] = []

    async def answer(asked: Asked) -> Answer:
        bodies.append(asked.body)
        said = f"max_tokens must be at most {asked.body['max_tokens'] - 1}"
        if kind == "tools":
            said = f"Invalid schema for function '{asked.body['tools'][0]['function']['name']}'"
        return Answer(status=400, body=_openai(said))

    many = tuple(replace(WEATHER, name=f"weather_{n}") for n in range(60))
    async with serving(answer) as address, provider_at(address) as provider:
        with pytest.raises(ModelRefused):
            await provider.complete(replace(ASKED, tools=many))
    assert len(bodies) == {"limits": 4, "tools": 18}[kind]


async def test_the_operator_is_told_once_what_a_model_does_not_take() -> None:
    """It changes how the bot answers."""
    refusal = _openai("max_tokens is too large: 32000. At most 16,384 completion tokens are supported.", "max_tokens")
    server = Strict(400, refusal, {"max_tokens": 16_384})
    async with serving(server) as address, provider_at(address) as provider:
        with capture_logs() as lines:
            await provider.complete(ASKED)
            await provider.complete(ASKED)
    assert [(line["event"], line["max_tokens"]) for line in lines] == [("model.writes_less", "16384")]


@each_row(
    "message, tools",
    [
        ("Invalid schema for function 'clock': 'zone' is not of type 'object'", ["weather", "alarm"]),
        ("tools.1.custom.input_schema: JSON schema is invalid", ["weather", "alarm"]),
        ("tools[2].function.parameters: schema is not valid", ["weather", "clock"]),
        ("tools[0].function.parameters schema is bad", ["clock", "alarm"]),
        ("GenerateContentRequest.tools[0].function_declarations[1].parameters.properties: should be non-empty", ["weather", "alarm"]),
    ],
)  # fmt: skip
def test_one_tool_that_is_refused_in_any_form_leaves_the_others(message: str, tools: list[str]) -> None:
    """A server of tools that somebody added may describe one badly; no new conversation would help."""
    bodies: list[list[str]] = []

    async def answer(asked: Asked) -> Answer:
        bodies.append([tool["function"]["name"] for tool in asked.body.get("tools", ())])
        return Answer(body=ANSWER) if bodies[-1] == tools else Answer(status=400, body=_openai(message))

    async def tried() -> list[Any]:
        three = tuple(replace(WEATHER, name=name) for name in ("weather", "clock", "alarm"))
        async with serving(answer) as address, provider_at(address) as provider:
            with capture_logs() as lines:
                assert (await provider.complete(replace(ASKED, tools=three))).text == "Hello."
                assert (await provider.complete(replace(ASKED, tools=three))).text == "Hello."
        return lines

    lines = stalls.run(tried())
    assert bodies[-2:] == [tools, tools] and len(bodies) == 4, "plainly first, then without it"
    (refused,) = {"weather", "clock", "alarm"} - set(tools)
    assert [line.get("tool") for line in lines if line["event"] == "model.takes_no_such_tool"] == [refused]


@pytest.mark.parametrize(
    "message",
    [
        "tools[0].function.parameters schema is bad",
        "Invalid schema for function 'weather': In context=(), 'default' is not permitted.",
    ],
)
async def test_a_tool_that_is_refused_leaves_the_schema_of_the_answer(message: str) -> None:
    wanted = replace(ASKED, json_schema={"type": "object"})
    server = Strict(400, _openai(message), {"tools": ONE_TOOL})
    async with serving(server) as address, provider_at(address) as provider:
        await provider.complete(wanted)
    assert [body["response_format"]["type"] for body in server.bodies] == ["json_schema"] * 2


async def test_one_refusal_after_another_is_learned() -> None:
    """The newest models refuse several fields, each in a refusal of its own."""

    async def answer(asked: Asked) -> Answer:
        for name, message in (
            ("stream_options", "Unknown parameter: 'stream_options'."),
            ("max_tokens", "'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
            ("top_p", "Unsupported parameter: 'top_p'"),
            ("temperature", "Unsupported parameter: 'temperature'"),
        ):
            if name in asked.body:
                return Answer(status=400, body=_openai(message))
        if asked.body["max_completion_tokens"] > 8_192:
            return Answer(status=400, body=_openai("max_completion_tokens is too large: at most 8192 are supported."))
        return Answer(body=ANSWER)

    async with serving(answer) as address, provider_at(address) as provider:
        assert (await provider.complete(ASKED)).text == "Hello."


@each_row(
    "body, words",
    [
        (_relayed(_openai("the inner cause")), "the inner cause"),
        (_relayed("m is rate-limited upstream for a while."), "m is rate-limited upstream for a while."),
        (_openai("Wrapped: " + json.dumps(_openai("the inner cause"))), "the inner cause"),
        ({"error": {"error": {"message": "the inner cause"}}}, "the inner cause"),
        ({"detail": [{"loc": ["body", "n"], "msg": "bad"}, {"loc": ["body", "m"], "msg": "worse"}]}, "body.n: bad; body.m: worse"),
        ({"errors": [{"code": 1, "message": "the inner cause"}]}, "the inner cause"),
        ({"message": {"detail": "the inner cause"}}, "the inner cause"),
        ({"error": "Bad Request", "message": "the inner cause"}, "the inner cause"),
        ({"error": "invalid_request", "detail": "the inner cause"}, "the inner cause"),
        ({"error": {"code": "1113", "message": "余额不足"}}, "余额不足"),
        ({"error": "unauthorized"}, "unauthorized"),
        ({"Response": {"Error": {"Code": "Invalid", "Message": "the inner cause"}}}, "the inner cause"),
        ({"error": {"message": "upstream_error", "innererror": {"message": "the inner cause"}}}, "the inner cause"),
        ({"surprise": 1}, '{"surprise": 1}'),
        ([], "[]"),
        ("not JSON {at all", "not JSON {at all"),
        (_openai('unsupported part: "image_url"; [{"url": "x"}]'), 'unsupported part: "image_url"; [{"url": "x"}]'),
    ],
)  # fmt: skip
def test_the_innermost_words_are_the_cause(body: Any, words: str) -> None:
    """A relay's own words say only that somebody else has refused."""
    raw = body if isinstance(body, str) else json.dumps(body)
    assert Refusal.parse(raw.encode(), "").text == words


def test_a_refusal_of_any_depth_is_read() -> None:
    deep: Any = "end"
    for _ in range(3_000):
        deep = {"error": deep}
    wide = {"errors": [{"message": f"cause {n}"} for n in range(100_000)]}
    assert Refusal.of(deep, "").text == "{…}"
    assert Refusal.of(wide, "").text == "cause 0; cause 1; cause 2; cause 3"


TOO_LONG = (
    "This model's maximum context length is 8192 tokens.", "context size exceeded",
    "You passed 5001 input tokens and requested 256. However, the model's context length is only 4096 tokens",
    "The decoder prompt (length 5012) is longer than the maximum model length of 4096.",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
    "Input validation error: `inputs` must have less than 4095 tokens. Given: 5012",
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
    "Invalid request: Your request exceeded model token limit: 8192",
    "Prompt 超长", "prompt is too long: 214748 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
    "prompt contains 5012 tokens, too large for a model with 4096",
    "the total length of all messages is too long", "Input is too long for requested model.",
    "input length exceeds the context length", "invalid params, context window exceeds limit",
    "Prompt exceeds max length",
    "Trying to keep the first 5012 tokens when context overflows",
    "request (5012 tokens) exceeds the available context size (4096 tokens)",
    "length of prompt_tokens (5000) must be less than max_seq_len (4096).",
    "Total tokens of image and text exceed max message tokens",
    "too many tokens: the prompt cannot exceed 4081",
    "The estimated number of input and maximum output tokens (5012) exceeded this model context window limit (4096).",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "Input length (265330) exceeds model's maximum context length (262144).",
    "The conversation is longer than this model can read; shorten the conversation.",
    "Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576.",
    "输入过长，请缩短后重试", "对话长度超过模型上限", "上下文长度超出限制", "プロンプトが長すぎます",
)  # fmt: skip
NOT_TOO_LONG = (
    "max_tokens is too large: 32000. This model supports at most 16384 completion tokens.",
    "image exceeds 5 MB maximum",
    "Invalid 'tools': array too long. Expected an array with maximum length 128.",
    "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a maximum length of 40.",
    "temperature must be less than 2",
    "Rate limit of tokens per minute exceeded for the input",
    "messages: at least one message is required",
    "The input was filtered.",
)


@each_row("said, long", [*((said, True) for said in TOO_LONG), *((said, False) for said in NOT_TOO_LONG)])
def test_too_long_is_known_by_what_is_and_that_it_is(said: str, long: bool) -> None:
    """No list of sentences is ever complete."""
    assert Refusal.of({"error": {"message": said}}, "").overflow == long


@each_row(
    "body, kind, of_request",
    [
        (_openai("API key not valid. Please pass a valid API key."), ModelAuth, False),
        (_openai("Incorrect API key provided."), ModelAuth, False),
        (_openai("m-4 is not a valid model ID"), ModelRefused, False),
        (_openai("Model Not Exist"), ModelRefused, False),
        (_openai("The model `m-4` was not found."), ModelRefused, False),
        (_openai("Nope."), ModelRefused, True),
        (_openai("Failed to call a function.", code="tool_use_failed"), BadCompletion, False),
    ],
)
def test_a_key_and_a_model_that_are_not_known_are_no_matter_of_the_request(
    body: Body, kind: type[ModelError], of_request: bool
) -> None:
    """Some servers answer 400 for everything; with less of the conversation they would, too."""

    async def tried() -> ModelError:
        async with serving(Strict(400, body, {"never": True})) as address, provider_at(address) as provider:
            with pytest.raises(ModelError) as caught:
                await provider.complete(ASKED)
        return caught.value

    error = stalls.run(tried())
    assert (type(error), error.of_request) == (kind, of_request), repr(error)


@each_row(
    "status, body, unpaid",
    [
        (402, {"error": {"message": "Insufficient Balance"}}, True),
        (402, {"error": {"message": "This request requires more credits, or fewer max_tokens.", "code": 402}}, True),
        (429, _openai("You exceeded your current quota, please check your plan and billing details.", None, "insufficient_quota"), True),
        (400, _anthropic("Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."), True),
        (403, {"error": {"message": "Your account is in arrears. Please recharge."}}, True),
        (429, {"error": {"code": "1113", "message": "余额不足或无可用资源包，请充值。"}}, True),
        (429, _relayed({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}}, 429), True),
        (429, {"error": {"message": "Rate limit reached on tokens per minute (TPM). Please try again in 7.66s. Need more? Upgrade at https://x/settings/billing"}}, False),
        (429, [{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and billing details.", "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "26s"}]}}], False),
        (429, {"error": {"message": "Too many requests"}}, False),
        (400, _openai("temperature must be at most 1"), False),
    ],
)  # fmt: skip
def test_an_empty_account_is_told_from_a_busy_minute(status: int, body: Any, unpaid: bool) -> None:
    """The one is asked again in a while, the other only once somebody has paid."""

    async def tried() -> ModelError:
        server = Strict(status, body, {"never": True})
        async with serving(server) as address, provider_at(address) as provider:
            with pytest.raises(ModelError) as caught:
                await provider.complete(ASKED)
        return caught.value

    error = stalls.run(tried())
    assert isinstance(error, ModelUnpaid) == unpaid, repr(error)
    assert error.retryable != unpaid or status == 400


def test_the_wait_that_stands_in_the_words_is_kept() -> None:
    """Not every server names it in a header."""
    said = {"error": {"message": "Rate limit reached. Please try again in 7.66s."}}
    assert Refusal.of(said, "").wait == 7.66
    assert Refusal.of([{"error": {"details": [{"retryDelay": "26s"}]}}], "").wait == 26.0
    assert Refusal.of({"error": {"message": "Please try again in 250ms"}}, "").wait == 0.25


async def test_a_filter_is_no_wrong_key_and_the_name_of_the_model_no_word_of_a_person() -> None:
    """OpenRouter answers a flagged message as others answer a wrong key. The prompt names the model."""
    model = "google/gemini-3-flash-preview"
    refusal = {"error": {"message": f"{model} requires moderation. Your input was flagged.", "code": 403}}
    server = Strict(403, refusal, {"never": 1})
    asked = Request(messages=(ChatMessage(role="user", content=f"[model: {model}] Say hello to Ada."),))
    async with serving(server) as address, provider_at(address, model=model) as provider:
        with pytest.raises(ModelRefused, match="Your input was flagged"):
            await provider.complete(asked)


async def test_a_refusal_that_repeats_the_conversation_is_read_and_not_quoted() -> None:
    """Some servers append all that was said to their own words."""
    words = "My mother lives in Lisbon and her cat is ill."
    refusal = _openai(f"The prompt is too long: {words}")
    async with serving(Strict(400, refusal, {"never": 1})) as address, provider_at(address) as provider:
        with pytest.raises(ContextOverflow) as caught:
            await provider.complete(Request(messages=(ChatMessage(role="user", content=words),)))
    assert "Lisbon" not in str(caught.value)


def test_a_short_refusal_that_names_a_short_word_of_the_person_repeats_it() -> None:
    for text, asked in (("no, Ada", "Ada"), ("Ada", "Ada"), ("x" * 290 + " Ada", "Ada"), ("I am Ada Lovelace", "Ada")):
        refusal = Refusal(text=text).apart_from([asked], model="m-4")
        assert refusal.repeats and refusal.echoes and refusal.quoted == ""
    late = Refusal(text="x" * 320 + " the sun shone on us all").apart_from(["and the sun shone on us"], model="m-4")
    assert late.echoes and not late.repeats and late.quoted
    assert not Refusal(text="no, Adam").apart_from(["Ada"], model="m-4").echoes


async def test_an_answer_longer_than_the_whole_context_is_made_shorter() -> None:
    """vLLM's words name the context, although no shorter conversation helps."""
    message = "max_tokens=32000 cannot be greater than max_model_len=4096. Please request fewer output tokens."
    await taught(400, _openai(message), {"max_tokens": 4096})


NO_IMAGE = "this model does not support image input, my friend"
SEEN = (Picture(media_type="image/png", data=b"png"),)


@pytest.mark.parametrize(
    ("words", "pictures", "different"),
    [
        ("max_tokens=32000 cannot be greater than max_model_len=4096, please.", (), {"max_tokens": 4096}),
        ("the sun shone on us. " * 18 + "top_p is not supported", (), {"top_p": None}),
        (NO_IMAGE, SEEN, {"messages": [{"role": "user", "content": f"{NO_IMAGE}\n{UNSEEN}"}]}),
    ],
)
async def test_a_refusal_in_the_persons_own_words_teaches_for_that_call_alone(
    words: str, pictures: tuple[Picture, ...], different: Different
) -> None:
    """One person's words must not shorten or blind the answers to everybody."""
    request = Request(messages=(ChatMessage(role="user", content=words, pictures=pictures),))
    learned = Learned()
    async with (
        serving(Strict(400, _openai(words), different)) as address,
        provider_at(address, learned=learned, sees=True) as provider,
    ):
        assert (await provider.complete(request)).text == "Hello."
    assert not any(learned.values())


async def test_a_request_that_is_too_long_teaches_nothing() -> None:
    """It names max_tokens, so a shorter answer is tried once; no field is to blame."""
    said = "This model's maximum context length is 4096 tokens: reduce the prompt or max_completion_tokens."
    server, learned = Strict(400, _openai(said), {"never": True}), Learned()
    async with serving(server) as address, provider_at(address, learned=learned) as provider:
        with pytest.raises(ContextOverflow):
            await provider.complete(ASKED)
    assert [body["max_tokens"] for body in server.bodies] == [32_000, 4_096]
    assert not any(learned.values())
