"""The marks that models and templates leave in the text of an answer, as patterns. Pure.

Patterns of marks are matched against what `even` makes of a mark: lower case, without blanks inside the brackets.
"""

from __future__ import annotations

import re
from typing import Final

THOUGHT = (
    r"(?:antml:|seed:)?"
    r"(?:think|thinking|thought|thoughts|reasoning|reflection|scratch_?pad|inner_monologue|antthinking)"
)
#: The marks of thoughts, after blanks and letter case are evened out (see `even`).
OPENS_THOUGHT = re.compile(
    rf"<{THOUGHT}(?:\s[^<>]*)?>|\[think\]|◁think▷|<\|begin_of_thought\|>|<\|start_thinking\|>|<\|think\|>|<unused94>"
    r"|<\|channel>"
)
CLOSES_THOUGHT = re.compile(
    rf"</{THOUGHT}>|\[/think\]|◁/think▷|<\|end_of_thought\|>|<\|end_thinking\|>|<\|/think\|>|<unused95>"
    r"|<channel\|>"
)
#: Such an end in a text that a model reads, written in any way: it may repeat what it reads.
SPELLS_END = re.compile(
    rf"(?:/|\bslash\b|\bend)(?:[_\W]|of){{0,8}}{THOUGHT}|unused95|channel\W{{0,4}}\|", re.IGNORECASE
)
#: The signs that count inside a thought: marks, and backticks, in which marks mean nothing.
IN_THOUGHT = re.compile(r"`[^`\n]{0,200}`|(?:<|\[|◁)[^<>\[\]\n◁▷`]{1,60}(?:>|\]|▷)")
#: The beginning of one of these at the end of a text.
UNDECIDED_IN_THOUGHT = re.compile(r"(?:`[^`\n]{0,200}|(?:<|\[|◁)[^<>\[\]\n◁▷`]{0,60})\Z")
#: The most characters of such a beginning.
MOST_UNDECIDED: Final = 201
#: A mark of a tool call, and the mark that ends it; None: the end of the JSON after it, or of the answer.
CALLS: Final = (
    (re.compile(r"<\|?(?:tool_calls_section_begin|tool_calls_begin)\|?>"), r"<\|tool_calls(?:_section)?_end\|>"),
    (re.compile(r"<\|?tool_call_begin\|?>"), r"<\|tool_call_end\|>"),
    (re.compile(r"<((?:[a-z]+:)?(?:tool_calls?|function_calls?|tool_use|use_tool|toolcall))(?:\s[^<>]*)?>"), r"</\1>"),
    (re.compile(r"<\|tool_call>"), r"<tool_call\|>"),
    (re.compile(r"<\|tool_call\|>"), r"<\|/tool_call\|>"),
    (re.compile(r"<start_function_call>"), r"<end_function_call>"),
    (re.compile(r"<\|start_action\|>"), r"<\|end_action\|>"),
    (re.compile(r"<function=[\w.-]+>"), r"</function>"),
    (re.compile(r"<(?:[a-z]+:)?invoke\sname=[^<>]*>"), r"</(?:[a-z]+:)?invoke>"),
    (re.compile(r"<\|tool_call_start\|>"), r"<\|tool_call_end\|>"),
    (re.compile(r"<\|action_start\|>"), r"<\|action_end\|>"),
    (re.compile(r"<\|python_tag\|>"), r"<\|eo[mt]_id\|>"),
    (re.compile(r"\[tool_calls\]"), None),
)  # fmt: skip
#: The same for the results of calls, which a model made up.
RESULTS: Final = (
    (re.compile(r"<\|?(?:tool_output|tool_outputs)_begin\|?>"), r"<\|tool_outputs?_end\|>"),
    (re.compile(r"<(tool_re(?:sponse|sults?)|function_re(?:sponse|sults))(?:\s[^<>]*)?>"), r"</\1>"),
    (re.compile(r"\[(tool_results|available_tools)\]"), r"\[/\1\]"),
    (re.compile(r"<\|tool_response>"), r"<tool_response\|>"),
)  # fmt: skip
#: Marks after which a template's turn is over.
ENDS = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|eot|return|endoftext|end_of_text|end_of_sentence|end_of_turn|endofturn|call"
    r"|end_of_turn_token|end_of_msg|separator|eos|fim_pad)\|>|<end_of_turn>|<eos>|<turn\|>|<\|endoftext>|<｜end_of_sentence｜>"
)
#: Marks that begin a turn. The role is inside the mark, or follows it.
BEGINS = re.compile(
    r"<\|im_start\|>|<\|start_header_id\|>|<\|header_start\|>|<\|start\|>|<start_of_turn>|<\|turn>"
    r"|<\|start_of_turn_token\|>|<\|start_of_role\|>"
)
ROLE_MARK = re.compile(
    r"<\|(user|human|system|assistant|bot|model|observation|tool|chatbot_token|user_token|system_token)\|>"
)
OWN_ROLES = frozenset(("assistant", "model", "bot", "ai", "gpt", "chatbot_token"))
#: Other marks that mean nothing to a person.
EMPTY_MARK = re.compile(
    r"<\|/?[a-z0-9_/ ]{1,40}\|>|<(?:bos|pad|unk|eos|mask)>|\[/inst\]|\[(?:bos|eos|sep|cls)\]|<<?/?sys>?>|<\|message\|>"
    r"|<unused\d+>|\[day \d{4}-\d\d-\d\d(?:, [a-z]+)?\]"
    r"|</?(?:tool_calls?|function_calls?|function|invoke|tool_response|answer|final_answer)>"
    r"|<\|[a-z_]{2,40}>|<[a-z_]{2,40}\|>"
)
#: The fences of our own prompts and close copies of them: an id has a digit, or the words after it are ours.
FENCE = re.compile(
    r"\[\s*(?:context|memory)\s+(?:[a-z0-9#-]*\d[a-z0-9#-]*|[a-z0-9#-]{1,32}(?=\s*:\s*(?:added by|data that)))\s*(:|\])"
)
FENCE_END = r"\[\s*(?:/|end\s+(?:of\s+)?)(?:context|memory)\b[^\]\n]{0,80}\]"
FILE_FENCE = re.compile(r"<file ([0-9a-f]{16,64})>")

USER = ("user", "human", "用户", "人类", "ユーザー", "usuario", "utilisateur", "benutzer", "nutzer")
ASSISTANT = ("assistant", "助手", "アシスタント", "asistente", "assistent")
LABEL = re.compile(r"[ \t]*(?:\*\*|#{1,4}[ \t]*)?([^\W\d_][\w .'-]{0,23}?)(?:\*\*)?[ \t]*([:：])")
SECTION = re.compile(r"#{2,4}[ \t]*(?:user|human|instruction|input)\b[ \t]*[:：]?[ \t]*(?=\n|\Z)", re.IGNORECASE)
SENTENCE_END = re.compile(r"[.!?。！？…)”’\"'\U0001F300-\U0001FAFF☀-➿]\s*\Z")
DETACHED = re.compile(r"functions\.[\w.-]{1,64}:\d+\s*(?=[{<])")
#: The head of a call of OpenAI's open models, whose marks a server has taken out, all or some of them.
HARMONY = re.compile(
    r"(?:assistant)?(?:(?:commentary|analysis) )?to=([\w.:-]{1,80})(?:<\|channel\|>(?:commentary|analysis))?"
    r"\s*+(?:<\|constrain\|>)?\s*+(?:json|code)?\s*+(?:<\|message\|>)?\s*+(?=\{)"
)
#: The name of a channel of theirs, before the words of an answer.
CHANNEL = re.compile(r"(?:assistant)?(analysis|commentary|final)(?=[A-Z\"])")
CHANNELS: Final = tuple(role + name for role in ("", "assistant") for name in ("analysis", "commentary", "final"))
#: The beginnings of such a head, and all that may stand in one.
HARMONY_BEGINS: Final = (
    "assistantcommentary to=", "assistantanalysis to=", "commentary to=", "analysis to=", "to=functions.",
)  # fmt: skip
HARMONY_THOUGHT_ENDS: Final = (
    r"assistant(?:commentary)?final|(?=(?:assistant)?(?:commentary|analysis)? ?to=functions\.)"
)
HARMONY_HEAD = re.compile(r"[\w.:=-]*+ ?[\w.:=-]*+[\s\w<|>]*+\Z")
#: A name before its arguments, as Mistral writes it, whose mark a server has taken out.
NAMED = re.compile(r"([A-Za-z_][\w.:-]{0,63})(?:\[ARGS\])?(?=\{)")
NAMED_BEGINS = re.compile(r"[A-Za-z_][\w.:-]{0,63}+(?:\[(?:A(?:R(?:G(?:S\]?)?)?)?)?)?\Z")
TOOL_BLOCK = re.compile(r"(?:tool_code|tool_calls?|function_calls?|tool|tool_use)\s*\Z", re.IGNORECASE)
#: The rest of an answer that consists of a block: blanks and marks only.
NOTHING = re.compile(r"(?:\s|<[|｜/]?[^<>\n]{0,40}>)*\Z")
MAYBE_NOTHING = re.compile(r"(?:\s|<[|｜/]?[^<>\n]{0,40}>)*(?:<[^<>\n]{0,40})?\Z")


def even(mark: str) -> str:
    """Returns a mark without what templates and small models vary: case, blanks, full-width bars, DSML."""
    plain = mark.replace("｜", "|").replace("‖", "|").replace("▁", "_").lower()
    plain = re.sub(r"\A([<\[◁])\s*(/?)\s*(?:\|*\s*dsml[|\s]*)?", r"\1\2", plain)
    return re.sub(r"\s+([>\]▷])\Z", r"\1", plain)


def loose_mark(close: str) -> re.Pattern[str]:
    """Returns the pattern of a closing mark as models vary it."""
    varied = close.replace(r"<\|", "<[|｜]").replace(r"\|>", "[|｜]>").replace("_", "[_▁]")
    varied = varied.replace("</", r"<\s*+/\s*+(?:[|｜‖]{0,4}\s{0,2}DSML[|｜‖\s]{0,4})?")
    return re.compile(varied, re.IGNORECASE)
