"""Estimates tokens, allots a model's context among the parts of a request, and learns how a server counts.

Invariants: an estimate is a sum over characters, so it never falls when text is added; it costs one pass in C. It leans
high, because a prompt cut too early still gets an answer, and one that overflows does not. Parts never come to more
than the room they share. A part keeps its floor before a part behind it gets any more than its own. All sizes are in
estimated tokens: a `Gauge` turns a context into so many of them.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, TypeAlias

import structlog

from agents.llm import ChatMessage, Completion, Request, ToolSpec

#: Hundredths of a token per character. Their source: counts made with three public vocabularies
#: (OpenAI's o200k_base and cl100k_base, and DeepSeek's) over translated interface texts in some thirty
#: languages, English and Chinese chats, source code and tables, fitted by hand to o200k and rounded;
#: the counting itself is not kept.
#: Against o200k the estimate came out at 1.02-1.13 of the true count for English, 0.92-1.14 for other
#: languages in Latin letters, 0.97-1.26 for Chinese, Japanese and Korean, 0.97-1.57 for the rest. Older
#: vocabularies spend far more on scripts they hardly know: against cl100k it is 0.8 for Chinese, half for
#: Greek and Hebrew, a third for Georgian.
_LETTER = 25  # ASCII letters: four to a token; the space before a word is counted apart
_SPACE = 20
_DIGIT = 60  # between three digits to a token (OpenAI) and one (Qwen, Llama 2)
_PUNCTUATION = 50
_ACCENTED = 80  # a letter with an accent tends to break its word in two
_ALPHABETIC = 42  # Greek, Cyrillic, Armenian, Hebrew, Arabic
_SYLLABIC = 60  # Indic scripts, Thai, Georgian, Khmer and others of three UTF-8 bytes
_SYMBOL = 90  # dashes, quotes, arrows, mathematics
_IDEOGRAPH = 100  # Chinese, Japanese, Korean, full-width forms: about one token to a character
_EMOJI = 200  # and every other character of four UTF-8 bytes


def count_tokens(text: str) -> int:
    """Returns the estimated tokens of any `str`; 0 only for "". About 10 ms for a megabyte of ASCII."""
    weights = text.encode("utf-8", "surrogatepass").translate(_WEIGHT_OF_BYTE)
    return -(-sum(weights) // 100)


def _weight(byte: int) -> int:
    if byte < 0x80:
        letter = chr(byte)
        if letter.isalpha():
            return _LETTER
        if letter.isdigit():
            return _DIGIT
        return _SPACE if letter.isspace() else _PUNCTUATION
    first_bytes = (
        (0xC0, 0),  # a continuation byte: its character is already counted
        (0xCC, _ACCENTED),
        (0xE0, _ALPHABETIC),
        (0xE2, _SYLLABIC),
        (0xE3, _SYMBOL),
        (0xF0, _IDEOGRAPH),
        (0x100, _EMOJI),
    )
    return next(weight for end, weight in first_bytes if byte < end)


_WEIGHT_OF_BYTE = bytes(_weight(byte) for byte in range(256))


log = structlog.get_logger(__name__)

Count: TypeAlias = Callable[[str], int]
#: A model's place in the chain and its name, as completions tell them.
_Model: TypeAlias = tuple[int, str]
_UNKNOWN: Final[_Model] = (-1, "")

#: The context of a model that names none.
USUAL_CONTEXT: Final = 128_000
#: The most characters of a person's words that are read without a model: in a longer text a question stands first or
#: last.
READ_OFFLINE: Final = 4_000
#: The tokens of an answer that are kept free if its model sets no limit, and the fewest that are kept at all.
USUAL_ANSWER: Final = 4_096
LEAST_ANSWER: Final = 256
#: The tokens of a message beyond its text, of a picture, and of a tool beyond its JSON.
PER_MESSAGE: Final = 4
PER_PICTURE: Final = 800
PER_TOOL: Final = 12
#: The tokens that a tool's result keeps when it is shortened.
_LEAST_RESULT: Final = 48
#: The tokens of the lines that a turn's facts and a snapshot's fence take.
_HEAD: Final = 200
#: The bounds of the true tokens per estimated one, the step in which this ratio moves, and the reports it rests on.
#: Few servers count less than the estimate, and some report only what their cache did not hold.
_LEAST_RATIO: Final = 0.9
_MOST_RATIO: Final = 3.0
_STEP: Final = 0.1
_REPORTS: Final = 8
#: A shorter request says nothing about the ratio: a server's own template weighs too much in it.
_TELLING: Final = 200
#: The part of a context that is used; the rest is for tokens that nobody reports.
_USED: Final = 0.98
#: The factor by which a request shrinks after it was refused.
_SHRINK: Final = 0.75
#: A report of less than this part of the estimate is no count of the whole request. If requests then grow by a factor
#: while reports don't grow by another, the server cuts requests without a word, as Ollama does.
_CUT: Final = 0.85
_GROWTH: Final = ((1.05, 1.01), (1.3, 1.1))
_ALIKE: Final = 0.1
#: The bounds of a count that may leave out what a cache held: parts of what no cache can hold, and tokens beyond.
_FRESH: Final = (0.7, 1.3)
_BESIDE_FRESH: Final = 200
#: The smallest context that is guessed after refusals, and the factor by which a guess grows with each answer: a
#: refusal may have been about a picture or a passing limit.
_LEAST_CONTEXT: Final = 1_024
_REGROWN: Final = 1.05
#: A smaller number is no context.
_LEAST_TOLD: Final = 256
#: A server's words for the size of its context ("maximum context length is 4096 tokens", "context size (2048").
_TOLD: Final = re.compile(
    r"(?:context[ _](?:length|size|window)|n_ctx)(?: is| of|:| =)?[ (]{1,2}(\d{1,3}(?:,\d{3})+|\d{3,8})(?![\d,])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """A part of a request: the tokens it would take, those it keeps at least, and the share of the room it may take."""

    name: str
    wanted: int
    floor: int = 0
    share: float = 1.0


def allot(room: int, parts: Sequence[Portion]) -> dict[str, int]:
    """Returns the tokens of each part, by name: first every floor, then what else is wanted, in order of priority."""
    left = max(0, room)
    given: dict[str, int] = {}
    for part in parts:
        given[part.name] = min(part.floor, part.wanted, left)
        left -= given[part.name]
    for part in parts:
        more = min(part.wanted, int(part.share * room)) - given[part.name]
        taken = max(0, min(more, left))
        given[part.name] += taken
        left -= taken
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """The tokens of the parts of a chat's request. `window` holds the newest message and what was said before it."""

    answer: int
    tools: int
    snapshot: int
    newer: int
    recall: int
    window: int


def shares(room: int, wanted: Allotment, *, system: int) -> Allotment:
    """Returns each part's tokens, at most the `wanted`; the same each turn, so the beginning of a prompt stays."""
    given = allot(
        room,
        (
            Portion(name="system", wanted=system, floor=system),
            Portion(name="answer", wanted=wanted.answer, floor=LEAST_ANSWER, share=0.2),
            Portion(name="newest", wanted=wanted.window, floor=room // 10, share=0.1),
            Portion(name="head", wanted=_HEAD, floor=_HEAD),
            Portion(name="snapshot", wanted=wanted.snapshot, floor=room // 32, share=0.12),
            Portion(name="recall", wanted=wanted.recall, floor=room // 32, share=0.1),
            Portion(name="tools", wanted=wanted.tools, share=0.22),
            Portion(name="newer", wanted=wanted.newer, share=0.03),
            Portion(name="window", wanted=wanted.window),
        ),
    )
    return Allotment(
        answer=given["answer"],
        tools=given["tools"],
        snapshot=given["snapshot"],
        newer=given["newer"],
        recall=given["recall"],
        window=min(wanted.window, given["newest"] + given["window"]),
    )


def background(room: int, *, instructions: int, answer: int) -> int:
    """Returns the tokens for the material of a background request, whose answer may take a quarter of the room."""
    given = allot(
        room,
        (
            Portion(name="instructions", wanted=instructions + 2 * PER_MESSAGE, floor=instructions + 2 * PER_MESSAGE),
            Portion(name="answer", wanted=answer, floor=LEAST_ANSWER, share=0.25),
            Portion(name="material", wanted=room),
        ),
    )
    return given["material"]


class Gauge:
    """The tokens that the models of a chain can read, corrected by what their servers report.

    `contexts` are those of the chain's models in order of preference. The corrections last as long as the process, each
    for one model at its place in the chain.
    """

    def __init__(self, contexts: Sequence[int] = (USUAL_CONTEXT,), *, count: Count = count_tokens) -> None:
        self.count = count
        self._contexts = list(contexts)
        self._known = list(contexts)  # as configured or told by a server; a guess is smaller
        self._reported: defaultdict[_Model, deque[float]] = defaultdict(lambda: deque(maxlen=_REPORTS))
        self._short: defaultdict[_Model, deque[tuple[int, int]]] = defaultdict(lambda: deque(maxlen=_REPORTS))
        self._sent: defaultdict[_Model, deque[tuple[int, ...]]] = defaultdict(lambda: deque(maxlen=_REPORTS))
        self._most: defaultdict[_Model, int] = defaultdict(int)  # the most tokens counted in a request
        self._partial: set[_Model] = set()  # models whose servers count a part of each request
        self._cutting: set[_Model] = set()  # models whose servers read a part of it
        self._answered = _UNKNOWN

    @property
    def ratio(self) -> float:
        """The true tokens per estimated one for the model that answered last: the highest of its latest reports."""
        most = max(self._reported[self._answered], default=1.0)
        return min(_MOST_RATIO, max(_LEAST_RATIO, math.ceil(most / _STEP - 1e-6) * _STEP))

    def room(self, *, refused: bool = False) -> int:
        """Returns the estimated tokens for a request and its answer; after a refusal those of the smallest context."""
        context = min(self._contexts) if refused else self._contexts[0]
        return int(context * _USED / self.ratio)

    def counted(self, request: Request, completion: Completion) -> None:
        self._answered = completion.place, f"{completion.provider}/{completion.model}"
        if self._answered not in self._reported:
            # The ratios shown by refusals before the first answer.
            self._reported[self._answered].extend(self._reported.pop(_UNKNOWN, ()))
        self._contexts = [min(n, int(m * _REGROWN)) for n, m in zip(self._known, self._contexts, strict=True)]
        read = completion.usage.input_tokens
        if not read or completion.usage.estimated:
            return
        estimated, fresh = size(request, self.count), self._fresh(request)
        if estimated < _TELLING:
            return
        if any(message.pictures for message in request.messages):
            return  # what a picture takes is only guessed
        least, most = (share * fresh for share in _FRESH)
        self._most[self._answered] = max(read, self._most[self._answered])
        if read + completion.usage.cached_tokens >= _CUT * estimated:
            self._short[self._answered].clear()
        elif least <= read <= most + _BESIDE_FRESH:
            return  # it may be a count of what its cache did not hold
        elif self._reads_alike(estimated, read):
            return  # it tells nothing of the ratio
        self._reported[self._answered].append(read / estimated)

    def _fresh(self, request: Request) -> int:
        """Returns the estimated tokens of a request's messages that its model was not sent before in their place."""
        before = self._sent[self._answered]
        marks = tuple(hash((message.role, message.content)) for message in request.messages)
        same = (takewhile(lambda pair: pair[0] == pair[1], zip(marks, other, strict=False)) for other in before)
        shared = max((len(tuple(pairs)) for pairs in same), default=0)
        before.append(marks)
        return sum(message_size(message, self.count) for message in request.messages[shared:])

    def _reads_alike(self, estimated: int, read: int) -> bool:
        """Notes that a server read less than was sent; it may cut requests, or leave out what its cache held.

        Returns whether it has read about as much of a request before. Numbers that fall are no sign of a cut.
        """
        short, model = self._short[self._answered], self._answered
        short.append((estimated, read))
        if model in self._cutting or model in self._partial:
            return model in self._cutting
        if read < min(_LEAST_CONTEXT, estimated // 2):
            self._partial.add(model)
            return False
        alike = tuple(takewhile(lambda report: abs(report[1] - read) <= read * _ALIKE, reversed(short)))
        sent, counted = ([report[place] for report in alike] for place in (0, 1))
        steady = read >= counted[-1] and max(counted) * (1 + _ALIKE) >= self._most[model]
        if steady and any(
            max(sent) >= more * min(sent) and max(counted) <= same * min(counted) for more, same in _GROWTH
        ):
            self._cutting.add(model)
            self._cut(model, max(counted), estimated)
        return len(alike) > 1

    def _cut(self, model: _Model, most: int, sent: int) -> None:
        place, name = model
        self._known[place] = min(self._known[place], most)
        self._contexts[place] = min(self._contexts[place], most)
        log.warning(
            "model.cuts_requests",
            model=name,
            reads=most,
            sent=sent,
            fix=f"The server reads about {most} tokens of a request and drops the rest without a word, the beginning "
            "first. Raise what it reads (for Ollama OLLAMA_CONTEXT_LENGTH, or num_ctx of the model), or set the "
            f"model's context to {most}. Until then requests are kept that short.",
        )

    def overflowed(self, request: Request, room: int, error: str) -> None:
        """Notes that a request of `room` tokens was refused as too long: the context, or the estimate, is too large."""
        if room > self.room(refused=True):
            return  # a smaller model of the chain may have refused, which the next try suits
        estimated = size(request, self.count) + (request.max_tokens or 0)
        smallest = min(self._contexts)
        named = (int(number.replace(",", "")) for number in _TOLD.findall(error))
        told = min((number for number in named if number >= _LEAST_TOLD), default=smallest)
        if told < smallest:
            self._known = self._lowered(self._known, told)
            self._contexts = self._lowered(self._contexts, told)
        elif estimated >= room * _SHRINK and self.ratio < _MOST_RATIO:
            self._reported[self._answered].append(self.ratio / _SHRINK)
        else:
            guessed = max(_LEAST_CONTEXT, int(estimated * self.ratio * _SHRINK))
            self._contexts = self._lowered(self._contexts, guessed)

    def _lowered(self, contexts: Sequence[int], context: int) -> list[int]:
        """Returns `contexts` with those of the models that read least lowered to `context`."""
        smallest = min(self._contexts)
        return [min(n, context) if m == smallest else n for n, m in zip(contexts, self._contexts, strict=True)]


def size(request: Request, count: Count) -> int:
    return sum(message_size(message, count) for message in request.messages) + tools_size(request.tools, count)


def message_size(message: ChatMessage, count: Count) -> int:
    calls = sum(count(call.name + call.arguments) for call in message.tool_calls)
    calls += 0 if message.opaque is None else count(message.opaque.text)
    return PER_MESSAGE + count(message.content) + calls + PER_PICTURE * len(message.pictures)


def tools_size(tools: Sequence[ToolSpec], count: Count) -> int:
    """Returns the estimated tokens of tools, as they are offered in JSON."""
    return sum(PER_TOOL + count(tool.text) for tool in tools)


def lighter(traffic: Sequence[ChatMessage], tokens: int, count: Count) -> tuple[ChatMessage, ...]:
    """Returns a turn's calls and results of tools with results shortened, the oldest first, until all of it fits."""
    shown = list(traffic)
    over = sum(message_size(message, count) for message in shown) - tokens
    for n, message in enumerate(shown):
        if over <= 0:
            break
        if message.role == "tool":
            words = count(message.content)
            shown[n] = replace(message, content=shortened(message.content, max(_LEAST_RESULT, words - over), count))
            over -= words - count(shown[n].content)
    return tuple(shown)


def affordable(tools: Sequence[ToolSpec], tokens: int, count: Count) -> tuple[ToolSpec, ...]:
    fitting: list[ToolSpec] = []
    for tool in tools:
        cost = tools_size([tool], count)
        if cost <= tokens:
            fitting.append(tool)
            tokens -= cost
    return tuple(fitting)


def shortened(text: str, tokens: int, count: Count) -> str:
    """Returns the beginning and end of `text` with a line about the cut between, in `tokens` tokens; "" if too few."""
    if count(text) <= tokens:
        return text

    def cut(kept: int) -> str:
        # The beginning of a text mostly says what it is about, its end how it came out.
        tail = kept // 3
        gap = f"\n[… {len(text) - kept} characters left out …]\n"
        return f"{text[: kept - tail].rstrip()}{gap}{text[len(text) - tail :].lstrip()}"

    least, most = 0, len(text)
    while most - least > 1:
        middle = (least + most) // 2
        if count(cut(middle)) <= tokens:
            least = middle
        else:
            most = middle
    return cut(least) if least else ""
