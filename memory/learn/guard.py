"""Makes text safe to keep: hidden characters out, instruction-like phrases named.

Invariants: everything here is pure and takes time linear in the text; `clean` is idempotent; a flag removes
nothing, it tells the owner of a memory what was noticed in it.
"""

from __future__ import annotations

import re
from functools import cache

# --- what people see ---------------------------------------------------------------------------------------

#: Characters that show nothing and can hide or reorder text: controls (but tab and newline), soft hyphen,
#: combining grapheme joiner, zero-width space, bidi marks, embeddings, overrides and isolates (Unicode
#: Annex 9), word joiner and invisible operators, byte order mark, interlinear annotation, and the tag
#: characters, which carry a whole hidden ASCII alphabet.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
#: These shape the letters or emoji beside them: joiners (emoji families, Persian, Indic, Mongolian words) and
#: variation selectors. One of each is seen, a run of them is not and can spell bytes.
_JOINERS = "\u180e\u200c\u200d"
_SHAPING = re.compile(f"[{_JOINERS}\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
#: The flags of England, Scotland and Wales, the only emoji made with tag characters (Unicode TS 51).
_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062"
    "(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def clean(text: str) -> str:
    """Return `text` without characters that people can't see, but code and models can.

    Windows and old Mac line ends, U+2028 and U+2029 become `\\n`; tab and newline stay. What shapes visible
    characters stays too: single joiners between them, emoji and ideographic variation selectors, the three
    flags made of tags. A surrogate pair becomes its character, a lone one U+FFFD. Nothing is normalised (no
    NFC): composing changes what a person typed in some scripts, and comparing is the business of those who
    compare.
    """
    if text.isascii() and text.isprintable():
        return text
    if _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    parts: list[str] = []
    last = 0
    for flag in _FLAG.finditer(text):
        parts += (_HIDDEN.sub("", text[last : flag.start()]), flag.group())
        last = flag.end()
    parts.append(_HIDDEN.sub("", text[last:]))
    return _SHAPING.sub(_shaped, "".join(parts))


def _shaped(match: re.Match[str]) -> str:
    """Of a run of shaping characters the first selector and the first joiner that can shape anything here."""
    text, start, end = match.string, match.start(), match.end()
    before, after = text[start - 1 : start], text[end : end + 1]
    if not before.strip():
        return ""
    selector = next((char for char in match.group() if char not in _JOINERS), "")
    # Ideographic selectors belong to ideographs; the others also to ASCII (a keycap is a digit with one).
    if selector >= "\U000e0100" and not _IDEOGRAPH.match(before):
        selector = ""
    joiner = next((char for char in match.group() if char in _JOINERS), "")
    joins = after.strip() != "" and not (before + after).isascii()
    return selector + (joiner if joins else "")


# --- instruction-like text ---------------------------------------------------------------------------------

#: Classes of text that tries to steer a model. Each has words of which one must be present, and the pattern
#: itself, over lower-cased text. They flag and never remove: people talk about prompts, too.
_INJECTIONS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "override",
        ("ignor", "disregard", "forget", "override", "忽略", "无视", "忘记", "無視"),
        (
            r"(?:ignor(?:e|ing)|disregard|forget|override)"
            r"(?: (?:all|any|every|of|the|your|my|these|those)){0,4}"
            r" (?:previous|prior|above|earlier|preceding|former|system|safety)(?: \w{1,16}){0,2}?"
            r" (?:instruction|prompt|rule|direction|guideline|message|context)"
            r"|(?:忽略|无视|忘记|無視)(?:掉|你|所有|全部|一切|此){0,3}"
            r"(?:以上|之前|上述|上面|前面|先前|此前|系统|原来)(?:的|所有|全部|一切|你){0,3}"
            r"(?:指令|指示|提示|规则|要求|内容|设定|对话|命令|约束)"
        ),
    ),
    (
        "role",
        ("you are now", "you're now", "act as", "pretend", " mode", "你现在是", "扮演", "模式"),
        (
            r"you(?: are|'re) now (?:an? |the |in )?"
            r"(?:un(?:restricted|filtered)|jailbroken|dan\b|admin|root|developer)"
            r"|(?:act as|pretend (?:to be|you are)) (?:an? |the )?"
            r"(?:un(?:restricted|filtered)|jailbroken|dan\b|admin|root)"
            r"|(?:enable|enter|activate) (?:developer|jailbreak|god|dan) mode"
            r"|(?:你现在是|扮演)[^。\n]{0,12}(?:不受限制|没有限制|无限制|管理员|越狱|开发者)"
            r"|进入(?:开发者|越狱|上帝)模式"
        ),
    ),
    (
        "system prompt",
        (
            "prompt",
            "message",
            "instructions",
            "系统提示",
            "系统指令",
            "系統提示",
            "你的提示词",
            "你的指令",
            "你的设定",
        ),
        (
            r"(?:system|developer|hidden|initial) (?:prompt|message|instructions)|系统提示|系統提示|系统指令"
            r"|(?:reveal|print|show|repeat|output|leak)(?: me)? (?:your|the) (?:\w{1,12} )?"
            r"(?:prompt|instructions)"
            r"|(?:输出|显示|告诉我|泄露|重复|打印)你的(?:提示词|指令|设定)"
        ),
    ),
    (
        "chat markup",
        (
            "<|",
            "[inst]",
            "[/inst]",
            "<<sys",
            "<system",
            "<assistant",
            "<instruction",
            "<memory",
            "</",
            "system",
            "assistant:",
        ),
        (
            r"<\|[a-z_]{2,24}\|>|\[/?inst\]|<</?sys>>|</?(?:system|assistant|instructions?|memory)>"
            r"|(?:\A|\n)[ \t]{0,8}(?:### ?)?\[?(?:system|assistant)\]?"
            r"(?: (?:message|prompt|note|override))? ?:"
        ),
    ),
    (
        "tool call",
        ("tool", "function", "invoke", "arguments", "parameters", "input"),
        (
            r"</?(?:tool_calls?|tool_use|tool_result|function_calls?|invoke)\b"
            r"""|["'](?:tool_calls?|tool_use|function_call)["'] ?:"""
            r"""|\{\s{0,8}["']name["'] ?: ?["'][a-z0-9_.-]{1,64}["'],"""
            r"""\s{0,8}["'](?:arguments|parameters|input)["'] ?:"""
        ),
    ),
    (
        "concealment",
        ("tell", "mention", "reveal", "inform", "asking", "告诉", "告知", "透露"),
        (
            r"(?:do not|don't|never) (?:tell|inform|mention (?:this|it) to|reveal (?:this|it) to)"
            r" (?:the )?(?:user|human|owner|admin)"
            r"|without (?:telling|informing|asking) (?:the )?(?:user|human|owner|admin)"
            r"|(?:不要|别|不能)(?:告诉|告知|透露给)(?:用户|主人|管理员|人类)"
        ),
    ),
    (
        "authority",
        ("admin", "root", "authori", "permission", "管理员", "权限"),
        (
            r"(?:user|i|he|she|sender|account)(?: am| is|'m|'s| has| have| was)(?: been)?"
            r"(?: now| granted| given| the| an?| full| all){0,4} (?:admin(?:istrator)?\b|root\b"
            r"|(?:admin|administrator|root|full|all) (?:rights|access|permission|privilege)|authori[sz]ed to)"
            r"|(?:用户|我|他|她|该账号)(?:现在|已经|已)?(?:是|拥有|获得|具有)(?:了)?(?:超级)?"
            r"(?:管理员|所有权限|全部权限|最高权限)"
        ),
    ),
)


@cache
def _pattern(source: str) -> re.Pattern[str]:
    # Compiled when first needed, so that importing this module costs nothing.
    return re.compile(source, re.ASCII)


def injection_flags(text: str) -> tuple[str, ...]:
    """Return the classes of instruction-like text in `text`, in a fixed order; empty for ordinary talk.

    Classes: override, role, system prompt, chat markup, tool call, concealment, authority. English and
    Chinese. A flag is a hint for the memory's owner, not a verdict; what is remembered has no authority
    either way.
    """
    lower = re.sub(r"[ \t\u3000]+", " ", text).lower()
    return tuple(
        name
        for name, words, source in _INJECTIONS
        if any(word in lower for word in words) and _pattern(source).search(lower)
    )
