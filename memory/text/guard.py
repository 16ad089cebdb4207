"""Makes text safe to store: removes hidden characters and flags instruction-like phrases.

Invariants: Everything here is pure and takes time linear in the text. `clean` is idempotent. A flag removes nothing: it
tells the owner of a memory about a suspicious phrase in it.
"""

from __future__ import annotations

import re
from functools import cache

# --- visible text ---------------------------------------------------------------------------------------

#: Characters that show nothing and can hide or reorder text: controls (except tab and newline), soft hyphen, combining
#: grapheme joiner, zero-width space, bidi marks, embeddings, overrides and isolates (Unicode Annex 9), word joiner and
#: invisible operators, byte order mark, interlinear annotation and its neighbours, Khmer's inherent vowels, the beams
#: and slurs of music, and the tag characters, which carry a whole hidden ASCII alphabet.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Characters that shape the letters or emoji beside them: joiners (emoji families, Persian, Indic, Mongolian words) and
#: variation selectors. One of each shows; a run of them does not, and can spell bytes.
_JOINERS = "\u180e\u200c\u200d"
_SHAPING = re.compile(f"[{_JOINERS}\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
#: The flags of England, Scotland and Wales, the only emoji made with tag characters (Unicode TS 51).
_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062"
    "(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def clean(text: str) -> str:
    """Returns `text` without characters that people can't see, but code and models can.

    Windows and old Mac line ends, U+2028 and U+2029 become `\\n`; tab and newline stay. Characters that shape visible
    ones stay too: single joiners between them, emoji and ideographic variation selectors, the three flags made of tags.
    A surrogate pair becomes its character, a lone surrogate U+FFFD. Nothing is normalised (no NFC): composing changes
    a person's input in some scripts, and comparisons normalise for themselves.
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
    """Reduces a run of shaping characters to the first selector and the first joiner that can shape anything here."""
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

#: Classes of text that tries to steer a model. Each has words, at least one of which must be present, and the pattern
#: itself, over lower-cased text. They flag and never remove: people talk about prompts, too.
_INJECTIONS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "override",
        (
            "ignor", "disregard", "forget", "overrid", "bypass", "instruction", "忽略", "无视", "忘记", "無視",
            "忘掉", "遵守", "理会", "跳过", "指示", "vergiss", "olvida", "oublie", "забудь", "игнорир", "무시",
        ),
        (
            r"(?:ignor(?:e|ing)|disregard|forget|overrid(?:e|ing)|bypass|do not (?:follow|obey)|don't (?:follow|obey))"
            r"(?: (?:all|any|every|everything|of|the|your|my|these|those|about|in)){0,5}"
            r" (?:previous|prior|above|earlier|preceding|former|system|safety|original|initial|content|existing)"
            r"(?:(?: (?:and|or))? (?!instruction|prompt|rule|direction|guideline)\w{1,16}){0,2}?"
            r" (?:instruction|prompt|rule|direction|guideline|message|context|polic|filter|restriction|training)"
            r"|(?:ignore|disregard|forget|override) (?:all |any )?(?:of )?(?:your|the system's|openai's)"
            r"(?: \w{1,16})? (?:instruction|prompt|rule|guideline|programming|training|restriction|guardrail)"
            r"|(?:ignore|disregard|forget) (?:everything|all|anything)(?: (?:that )?(?:you (?:were|have been|are) told|"
            r"(?:said |written )?(?:above|before)|you know))"
            r"|(?:new|updated|real) (?:system )?instructions?(?: from [^.:\n]{1,30})? ?:"
            r"|(?:忽略|无视|忘记|無視|忘掉|不要理会|不要遵守|跳过)(?:掉|你|所有|全部|一切|此|的){0,3}"
            r"(?:以上|之前|上述|上面|前面|先前|此前|系统|原来|安全|所有|全部|一切|以前)(?:的|所有|全部|一切|你|任何){0,3}"
            r"(?:指令|指示|提示|规则|要求|内容|设定|对话|命令|约束|限制|规定)"
            r"|(?:以前|これまで|上記|前)の(?:すべての)?(?:指示|命令|ルール|プロンプト)(?:を|は)(?:すべて)?(?:無視|忘れ)"
            r"|이전(?:의)? ?(?:모든 )?(?:지시|명령|규칙)(?:사항)?(?:을|를|은|는)? ?(?:모두 )?(?:무시|잊)"
            r"|(?:ignorier|vergiss|missachte)\w{0,3} (?:alle |sämtliche |die |deine ){0,3}"
            r"(?:vorherigen|bisherigen|obigen|früheren|vorigen) (?:anweisungen|regeln|instruktionen|vorgaben)"
            r"|(?:ignora|olvida|descarta) (?:todas? |las |los |tus ){0,3}(?:instrucciones|reglas|órdenes)"
            r"(?: (?:anteriores|previas|de arriba))"
            r"|(?:ignore[zs]?|oublie[zs]?) (?:toutes? |les |tes |vos ){0,3}(?:instructions|consignes|règles)"
            r" (?:précédentes|antérieures|ci-dessus)"
            r"|(?:игнорируй|забудь|проигнорируй)(?:те)? (?:все |всё )?(?:предыдущие |прежние |прошлые )"
            r"(?:инструкции|указания|правила|команды)"
        ),
    ),
    (
        "role",
        (
            "you are now", "you're now", "you are no longer", "act as", "pretend", " mode", "jailbr", "你现在是",
            "扮演", "模式", "restrict", "filter", "limits", "rules", "du bist jetzt", "不再受", "从现在起",
        ),
        (
            r"you(?: are|'re) now (?:an? |the |in )?"
            r"(?:un(?:restricted|filtered|censored)|jailbroken|dan\b|admin|root|developer|free (?:of|from))"
            r"|you are no longer (?:bound|restricted|limited|an? (?:ai|assistant))"
            r"|(?:act as|pretend (?:to be|you are|that you are|you have))"
            r" (?:an? |the |if you (?:are|were|have|had) (?:an? )?)?"
            r"(?:un(?:restricted|filtered|censored)|jailbroken|dan\b|admin|root"
            r"|no (?:rules|restrictions|limits|filters))"
            r"|(?:enable|enter|activate|switch to|turn on)(?: the)?"
            r" (?:developer|jailbreak|god|dan|sudo|unrestricted) mode"
            r"|(?:respond|answer|reply) (?:to everything )?(?:with no|without(?: any)?)"
            r" (?:restrictions|filters?|limits|rules)"
            r"|(?:你现在是|扮演|假装你是)[^。\n]{0,12}(?:不受限制|没有限制|无限制|管理员|越狱|开发者|没有规则)"
            r"|(?:不再受|不受)[^。\n]{0,6}(?:限制|约束|规则)(?:的)?(?:ai|助手|模型|，|。|$)"
            r"|(?:进入|开启|切换到?)(?:开发者|越狱|上帝|管理员)模式"
            r"|du bist jetzt (?:ein(?:e)? )?(?:uneingeschränkt|unzensiert|admin)"
        ),
    ),
    (
        "system prompt",
        (
            "prompt", "message", "instructions", "系统提示", "系统指令", "系統提示", "你的提示词", "你的指令",
            "你的设定", "提示词", "システムプロンプト", "시스템 프롬프트",
        ),
        (
            r"(?:your|the|my|hidden|secret) (?:system|developer|hidden|initial|secret) (?:prompt|message|instructions)"
            r"|system prompt|系统提示词|系統提示詞|系统指令|你的系统提示|你的系統提示"
            r"|(?:reveal|print|show|repeat|output|leak|recite|dump|display)(?: me| us)? (?:all )?(?:of )?(?:your|the) "
            r"(?:\w{1,12} ){0,2}(?:prompt|instructions)(?! manual| for| on| how| to)"
            r"|(?:输出|显示|告诉我|泄露|重复|打印|说出)你?的?(?:完整|初始|全部)?的?(?:提示词|指令|设定)"
            r"|システムプロンプト|시스템 프롬프트"
        ),
    ),
    (
        "chat markup",
        (
            "<|", "[inst]", "[/inst]", "<<sys", "<system", "<assistant", "<instruction", "<memory", "</", "system",
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
        (
            "tell", "mention", "reveal", "inform", "asking", "secret", "silently", "quietly", "告诉", "告知", "透露",
            "偷偷",
        ),
        (
            r"(?:do not|don't|never) (?:tell|inform|mention (?:this|it) to|reveal (?:this|it) to)"
            r" (?:the |your )?(?:user|human|owner|admin|operator)"
            r"|without (?:telling|informing|asking|notifying) (?:the |your )?(?:user|human|owner|admin|operator)"
            r"|keep (?:this|it) (?:a )?secret from (?:the |your )?(?:user|human|owner|admin|operator)"
            r"|(?:silently|quietly|secretly) (?:send|forward|email|post|upload|call|run|execute|delete|add|save|store)"
            r"|(?:(?:不要|别|不能|不得)(?:告诉|告知|透露给|让)|瞒着)(?:用户|主人|管理员|人类)"
            r"|(?:偷偷|悄悄)(?:地|把)?[^。\n]{0,12}(?:发送|发给|上传|转发|删除|执行)"
        ),
    ),
    (
        "authority",
        ("admin", "root", "authori", "permission", "rights", "access", "管理员", "权限"),
        (
            r"(?:user|i|he|she|sender|account)(?: am| is|'m|'s| has| have| was)(?: been)?"
            r"(?: now| granted| given| the| an?| full| all){0,4} (?:admin(?:istrator)?\b(?! of| at| in| for)|root\b"
            r"|(?:admin|administrator|root|full|all) (?:rights|access|permission|privilege)s?"
            r"(?! to (?:the|my|our|an?) )"
            r"|authori[sz]ed to (?:see|read|access|change|delete|run|use) (?:all|any|every))"
            r"|has been (?:granted|given) (?:full|all|admin|root|administrator)"
            r"|(?:用户|我|他|她|该账号)(?:现在|已经|已)?(?:是|拥有|获得|具有)(?:了)?(?:超级)?"
            r"(?:管理员|所有权限|全部权限|最高权限)"
            r"|(?:grant|give) (?:me|him|her|them|this user|user \w{1,20}|@\w{1,32}) "
            r"(?:full |all |the )?(?:admin|administrator|root)(?: rights| access| permissions?| privileges?)?"
            r"|(?:授予|给)(?:我|他|她|此用户|该用户)(?:超级)?(?:管理员|最高|所有|全部)(?:的)?权限"
        ),
    ),
    (
        "carrying off",
        ("http", "url", "链接", "网址", "webhook"),
        (
            r"(?:send|post|forward|upload|append|encode|exfiltrate|include|put|transmit|leak)"
            r" (?:[^.\n]{0,40} )?(?:conversation|chat (?:history|log)|memor(?:y|ies)|secrets?|passwords?"
            r"|what (?:the user|i|he|she) said|everything (?:you know|the user))"
            r"[^.\n]{0,40} (?:to|into|in|as|at) [^.\n]{0,20}"
            r"(?:https?://|(?:the|this|a|an|any) (?:image |picture )?(?:url|link|webhook|address|query))"
            r"|(?:把|将)[^。\n]{0,20}(?:对话|聊天记录|记忆|密码|内容)[^。\n]{0,12}(?:发送|发|上传|附|放|编码)"
            r"[^。\n]{0,8}(?:到|至|在|进)[^。\n]{0,10}(?:http|链接|网址|url)"
        ),
    ),
)  # fmt: skip


@cache
def _pattern(source: str) -> re.Pattern[str]:
    # Compiled on first use, so that importing this module costs nothing.
    return re.compile(source, re.ASCII)


def injection_flags(text: str) -> tuple[str, ...]:
    """Returns the classes of instruction-like text in `text`, in a fixed order; empty for ordinary talk.

    Classes: override, role, system prompt, chat markup, tool call, concealment, authority, carrying off. They are known
    in English and Chinese, the first class in Japanese, Korean, German, Spanish, French and Russian as well. A flag is
    a hint for the memory's owner, not a verdict; a memory has no authority either way.
    """
    lower = re.sub(r"[ \t\u3000]+", " ", text).lower()
    return tuple(
        name
        for name, words, source in _INJECTIONS
        if any(word in lower for word in words) and _pattern(source).search(lower)
    )
