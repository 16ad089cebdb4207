"""An agent without a language model, which says so: it answers from memory and acknowledges what it notes.

Invariants: it never makes anything up: each sentence is either fixed text or a remembered statement with the date it
was told; it needs no network and costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agents.llm import Completion, OnText, Remembered, Request

#: A further memory is worth telling when it matches at least this share of the best one's score.
_NEARLY_AS_GOOD = 0.75
_MOST_TOLD = 3
#: Of everything, so much is told at once; /memory shows the rest.
_MOST_LISTED = 10

_CHINESE = re.compile(r"[\u3400-\u9fff]")
_QUESTION = re.compile(
    r"[?？]|^\s*(?:what|who|whom|whose|where|when|why|which|how|do|does|did|is|are|am|was|were|can|could|will|would"
    r"|should|have|has|tell me|remind me)\b|[吗呢]\s*[。！!~]*\s*$|什么|谁|哪|几|多少|怎么|为什么|是不是|有没有|记得",
    re.IGNORECASE,
)

_EVERYTHING = re.compile(
    r"(?:know|remember|recall|have|got|learn(?:ed|t)?)\s(?:\w{1,12}\s)?(?:of|about|on)\sme\b"
    r"|\btell me about (?:me|myself)\b|\bwho am i\b"
    r"|(?:知道|记得|記得|了解).{0,6}我.{0,4}(?:什么|什麼|哪些)|关于我|關於我|我是谁",
    re.IGNORECASE,
)

_TEXTS = {
    "en": {
        "noted": "Noted: {list}.",
        "told": "You told me on {when}: {said}.",
        "earlier": "Earlier, on {when}, you had told me: {said}.",
        "quoted": "On {when} {said}",
        "unknown": "I have nothing in memory that answers this.",
        "attached": (
            "I got {list}. No language model is configured, so I can't look into it: I only keep what it is called, and"
            " its text where there is any."
        ),
        "kept": "I have kept that in our conversation, but found no fact in it to remember.",
        "kept.off": (
            "I have kept that in our conversation, but learn nothing from it: learning is off here. /memory on switches"
            " it on; in a group an admin can."
        ),
        "kept.out": (
            "I have kept that in our conversation, but learn nothing from it: you have opted out. /privacy in has me"
            " learn from what you say again."
        ),
        "kept.never": "I have kept that in our conversation, but remember nothing beyond it: this agent has no memory.",
        "who": (
            "I am running offline, without a language model: I note what you tell me about yourself, answer from"
            " memory, and can show, correct and forget what I know. Type /help to see how."
        ),
        "and": "; ",
    },
    "zh": {
        "noted": "记下了：{list}。",
        "told": "你在{when}告诉过我：{said}。",
        "earlier": "更早在{when}，你曾告诉我：{said}。",
        "quoted": "{when}，{said}",
        "unknown": "我的记忆里没有能回答这个问题的内容。",
        "attached": (
            "收到了：{list}。没有配置语言模型，所以我无法查看其中的内容：我只保留它的名称，以及其中的文字（如果有）。"
        ),
        "kept": "我已把这句话留在对话里，但没有从中找到需要记住的事实。",
        "kept.off": "我已把这句话留在对话里，但没有从中学习：这里的学习已关闭。/memory on 可打开；在群里由管理员打开。",
        "kept.out": "我已把这句话留在对话里，但没有从中学习：你选择了不让我学习。/privacy in 可让我重新学习。",
        "kept.never": "我已把这句话留在对话里，但此外什么都不会记住：这个助手没有记忆。",
        "who": (
            "我现在离线运行，没有语言模型：我会记下你告诉我的关于你自己的事，根据记忆回答，"
            "也能让你查看、更正和忘掉我记得的内容。输入 /help 了解用法。"
        ),
        "and": "；",
    },
}


class OfflineProvider:
    """Implements `agents.llm.Provider` over the values in a request; its messages are not read for meaning."""

    name = "offline"

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        words = request.said.strip() or " ".join(request.attached)
        texts = _TEXTS["zh" if _CHINESE.search(words) else "en"]
        first = not any(message.role == "assistant" for message in request.messages)
        text = _answer(request, texts)
        if first:
            text = f"{text}\n{texts['who']}"
        if on_text is not None:
            await on_text(text)
        return Completion(text=text, model="offline", provider=self.name)

    async def aclose(self) -> None:
        return None


def _answer(request: Request, texts: dict[str, str]) -> str:
    attached = texts["attached"].format(list=texts["and"].join(request.attached)) if request.attached else ""
    if not attached:
        return _told(request, texts)
    return f"{_told(request, texts)}\n{attached}" if request.said.strip() else attached


def _told(request: Request, texts: dict[str, str]) -> str:
    """What is said to the words."""
    lines = []
    if request.noted:
        lines.append(texts["noted"].format(list=texts["and"].join(request.noted)))
    if _QUESTION.search(request.said):
        if _EVERYTHING.search(request.said):
            facts = [memory for memory in request.remembered if not memory.superseded and not memory.verbatim]
            told = facts[:_MOST_LISTED]
        else:
            told = _worth_telling([memory for memory in request.remembered if memory.score > 0])
        lines += [_sentence(memory, texts) for memory in told]
    if lines:
        return "\n".join(lines)
    if _QUESTION.search(request.said):
        return texts["unknown"]
    return texts["kept" if request.learning == "on" else f"kept.{request.learning}"]


def _worth_telling(remembered: Sequence[Remembered]) -> list[Remembered]:
    if not remembered:
        return []
    bar = remembered[0].score * _NEARLY_AS_GOOD
    return [memory for memory in remembered if memory.score >= bar][:_MOST_TOLD]


def _sentence(memory: Remembered, texts: dict[str, str]) -> str:
    how = "quoted" if memory.verbatim else "earlier" if memory.superseded else "told"
    return texts[how].format(when=memory.when, said=memory.said)
