"""Reads the Markdown files of file-based assistants: long-term notes, notes about their human, daily notes.

Headings give category and topic; each list item or paragraph is one statement. "Label: value" becomes that key.
Statements about the person are read by the same patterns as talk, after "the user" was put into the first person.
Everything else is kept as a note, word for word. A date in the file's name, the heading or the first words of a
statement is the date of the statement.

Invariants: pure. No text of the file is lost silently: it is in a statement or named as skipped. Time grows linearly
with the text, which is cut at `MOST_CHARS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from markdown_it import MarkdownIt
from markdown_it.token import Token

from memory import keys
from memory.learn.offline import patterns
from memory.text.times.spans import anchor
from memory.text.words import tokens
from memory.transfer.formats.material import ImportedItem, Mask, Masking, Material, Ownership, Skipped

#: The most characters of one file that are read. Such files are made to fit into a prompt.
MOST_CHARS: Final = 1_000_000
#: Longer blocks, in characters, are taken literally instead of read as Markdown.
_INLINE_CHARS: Final = 8_192
#: The characters shown of a skipped text.
_SHOWN: Final = 60
#: Words of a statement that patterns may leave unread; if more are left, it is also kept whole.
_UNREAD: Final = 4
_LABEL_WORDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A paragraph, list item, table row or lone heading: its text, its line, and the headings above it."""

    text: str
    line: int
    headings: tuple[str, ...]
    #: The list items around it.
    above: tuple[str, ...] = ()
    heading: bool = False


def day_of(name: str) -> str | None:
    """Returns the local date a file name begins with (`2026-05-12.md`, `20260512.md`); None without one."""
    match = _FILE_DAY.match(name)
    return None if match is None else _day(match)


def read(
    text: str, *, where: str, written_at: int, timezone: str, mask: Mask, of: Ownership, day: str | None = None
) -> Material:
    """Returns the statements of one file called `where`, last written at `written_at` (milliseconds UTC).

    With `day`, the file is about that local date. Patterns for people's statements about themselves are used only if
    the owner is a person.
    """
    masking = Masking(mask)
    skipped: list[Skipped] = []
    if len(text) > MOST_CHARS:
        skipped.append(Skipped(where=where, why=f"only the first {MOST_CHARS:,} characters were read"))
        text = text[:MOST_CHARS]
    front, body, offset = _front(text)
    for name in ("date", "created", "updated"):
        if (match := _ANY_DAY.search(front.get(name, ""))) is not None and (found := _day(match)) is not None:
            written_at = _noon(found, timezone)
    reader = _Reader(
        where=where, written_at=written_at, timezone=timezone, masking=masking, of=of, day=day, skipped=skipped
    )
    items: list[ImportedItem] = []
    for key, value in front.items() if _is_profile(where) else ():
        if keys.category_of(_key(key)) is not None:
            items += reader.items(_Block(text=f"{key}: {value}", line=1, headings=()))
    for block in _blocks(body, offset, where, skipped):
        items += reader.items(block)
    return Material(format="markdown", items=tuple(items), skipped=tuple(skipped), masked=masking.count)


@dataclass(slots=True, kw_only=True)
class _Reader:
    where: str
    written_at: int
    timezone: str
    masking: Masking
    of: Ownership
    day: str | None
    skipped: list[Skipped]

    def items(self, block: _Block) -> list[ImportedItem]:
        """Returns the statements of a block. If there is nothing to keep, returns none and notes the reason."""
        where = f"{self.where}:{block.line}"
        text = self.masking(block.text).strip()
        day, tag, text = _dated(text)
        if block.heading and (day is None or len(text.split()) < 3):
            return []  # its text goes with the blocks below it
        box, text = _ticked(text)
        if box is False:
            self._skip(where, text, "not ticked")
            return []
        if box and self._is_form(block):
            text = f"{block.headings[-1]}: {text}"
        if (why := _empty(text)) is not None:
            self._skip(where, block.text, why)
            return []
        day = day or self._day_above(block) or self.day
        category = _CATEGORIES.get(tag or "") or self._category(block)
        base = ImportedItem(
            where=where,
            kind="fact",
            category=category or keys.KEY_CATEGORIES["note"],
            key=_KEYS.get(category or "", "note"),
            value="",
            topic=self._topic(block),
            importance=_IMPORTANCE.get(category or "", 5),
            said_at=self.written_at if day is None else _noon(day, self.timezone),
            day=day,
        )
        whole = ": ".join([*(above.rstrip(":： ") for above in block.above), text])
        pieces = _cut(whole)
        if day is not None and tag is None:
            happened = replace(base, kind="event", category="happening", key="event", importance=4)
            return [replace(happened, value=piece) for piece in pieces]
        found = [] if block.above else self._by_label(text, base, category)
        if not found and self.of == "person":
            found = self._by_patterns(text, base)
        if found and _says_all(found, text):
            return found
        return [*found, *(replace(base, value=piece) for piece in pieces)]

    def _by_label(self, text: str, base: ImportedItem, category: str | None) -> list[ImportedItem]:
        match = _LABEL.match(text)
        if match is None or len(match["label"].split()) > _LABEL_WORDS:
            return []
        key = _key(match["label"])
        known = keys.category_of(key)
        value = text[match.end() :].strip()
        if not key or key in _NO_LABELS or len(value) > keys.VALUE_LIMIT or (known is None and self.of != "person"):
            return []
        return [
            replace(
                base,
                key=key,
                category=known or category or base.category,
                value=value,
                importance=max(base.importance, 8 if known == "identity" else 5),
            )
        ]

    def _by_patterns(self, text: str, base: ImportedItem) -> list[ImportedItem]:
        today = date.fromisoformat(base.day) if base.day else _EPOCH_DAY
        return [
            replace(
                base,
                kind="fact",
                category=found.category,
                key=keys.normalise_key(found.key),
                value=anchor(found.value, today)[: keys.VALUE_LIMIT] if base.day else found.value,
                importance=found.importance,
                confidence=found.confidence,
            )
            for found in patterns.extract(_as_oneself(text), today=today)
        ]

    def _category(self, block: _Block) -> str | None:
        for heading in reversed(block.headings):
            for word in (heading.casefold(), *re.findall(r"\w{1,40}", heading.casefold())):
                if word in _CATEGORIES:
                    return _CATEGORIES[word]
            for part, category in _CATEGORIES_ZH.items():
                if part in heading:
                    return category
        return None

    def _topic(self, block: _Block) -> str:
        """Returns the nearest heading that is more than a category or a date."""
        for heading in reversed(block.headings[1:] or ()):
            bare = _dated(heading)[2]
            if bare and bare.casefold() not in _CATEGORIES and not _CLOCK.fullmatch(bare):
                return keys.normalise_key(self.masking.mask(bare))[:80].rstrip("-")
        return ""

    def _day_above(self, block: _Block) -> str | None:
        for heading in reversed(block.headings):
            if (day := _dated(heading)[0]) is not None:
                return day
        return None

    def _is_form(self, block: _Block) -> bool:
        return bool(block.headings) and self.day is None and self._day_above(block) is None and _is_profile(self.where)

    def _skip(self, where: str, text: str, why: str) -> None:
        shown = " ".join(self.masking.mask(text).split())
        self.skipped.append(Skipped(where=where, why=f"{why}: {shown[:_SHOWN]}{'…' if len(shown) > _SHOWN else ''}"))


def _blocks(  # noqa: PLR0912 - one branch for each kind of token
    text: str, offset: int, where: str, skipped: list[Skipped]
) -> Iterator[_Block]:
    """Yields the blocks of a text in order; the file has `offset` lines before the text."""
    headings: list[tuple[int, str]] = []
    above: list[str | None] = []
    found = _MARKDOWN.parse(text)
    rows: list[str] | None = None
    row_line = 0
    columns: tuple[str, ...] = ()
    for n, token in enumerate(found):
        line = offset + (token.map[0] + 1 if token.map else 1)
        match token.type:
            case "list_item_open":
                above.append(None)
            case "list_item_close":
                above.pop()
            case "tr_open":
                rows, row_line = [], line
            case "tr_close":
                if found[n - 1].type == "th_close":
                    columns = tuple(rows or ())
                elif rows and any(rows):
                    yield _Block(text=_row(columns, rows), line=row_line, headings=tuple(h for _, h in headings))
                rows = None
            case "inline" if rows is not None:
                rows.append(_plain(token.content))
            case "inline" if found[n - 1].type == "heading_open":
                depth = int(found[n - 1].tag[1:])
                plain = _plain(token.content)
                headings = [*((d, h) for d, h in headings if d < depth), (depth, plain)]
                yield _Block(text=plain, line=line, headings=tuple(h for _, h in headings[:-1]), heading=True)
            case "inline":
                around = tuple(item for item in above[:-1] if item is not None)
                for text_, further in _statements(token.content):
                    parent = bool(above) and above[-1] is None and _has_children(found, n)
                    if above and above[-1] is None:
                        above[-1] = text_
                    if parent and text_.endswith((":", "：")):
                        continue
                    yield _Block(text=text_, line=line + further, headings=tuple(h for _, h in headings), above=around)
            case "fence" | "code_block" if token.content.strip():
                count = token.content.count("\n") or 1
                skipped.append(Skipped(where=f"{where}:{line}", why=f"{count} lines of code"))
            case "html_block" if not token.content.lstrip().startswith("<!--"):
                skipped.append(Skipped(where=f"{where}:{line}", why="HTML"))
            case _:
                pass


def _statements(content: str) -> Iterator[tuple[str, int]]:
    """Yields a block's statements, with the number of lines before each: one, or several on lines of their own."""
    parts: list[tuple[int, list[str]]] = [(0, [])]
    for n, line in enumerate(content.split("\n")):
        if _SEPARATOR.match(line):
            parts.append((n + 1, []))
        else:
            parts[-1][1].append(line)
    for n, lines in parts:
        if len(lines) > 1 and all(_stands_alone(line) for line in lines):
            yield from ((plain, n + further) for further, line in enumerate(lines) if (plain := _plain(line)))
        elif plain := _plain("\n".join(lines)):
            yield plain, n


def _stands_alone(line: str) -> bool:
    plain = _plain(line)
    return plain.endswith(_SENTENCE_ENDS) or any(begins.match(plain) for begins in (_LABEL, _DATED_LINE, _THIRD))


def _plain(content: str) -> str:
    if len(content) > _INLINE_CHARS:
        return " ".join(content.split())
    parts: list[str] = []
    for token in _INLINE.parseInline(content)[0].children or ():
        parts.append(_piece(token))
        if token.type == "link_open":
            parts.append("\0" + str(token.attrGet("href") or ""))
        elif token.type == "link_close":
            n = max(i for i, part in enumerate(parts) if part.startswith("\0"))
            href, shown = parts[n][1:], "".join(parts[n + 1 :])
            parts[n:] = [shown if href in (shown, f"mailto:{shown}") or not href else f"{shown} ({href})"]
    return " ".join("".join(parts).split())


def _piece(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return token.content if token.type in ("text", "code_inline", "image", "text_special") else ""


def _has_children(found: Sequence[Token], n: int) -> bool:
    return n + 2 < len(found) and found[n + 2].type in ("bullet_list_open", "ordered_list_open")


def _row(columns: Sequence[str], cells: Sequence[str]) -> str:
    if len(cells) == 2 and all(cells):
        return f"{cells[0]}: {cells[1]}"
    named = [*columns, *[""] * len(cells)]
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in zip(named, cells, strict=False) if cell)


def _front(text: str) -> tuple[dict[str, str], str, int]:
    """Returns the simple values of the front matter, the text behind it, and the number of lines before that text."""
    text = text.removeprefix("\ufeff")
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text, 0
    end = next((n for n, line in enumerate(lines[1:60], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return {}, text, 0
    pairs = (line.partition(":") for line in lines[1:end] if line[:1].isalpha())
    front = {key.strip().casefold(): value.strip().strip("\"'") for key, _, value in pairs}
    return {key: value for key, value in front.items() if value}, "\n".join(lines[end + 1 :]), end + 1


def _dated(text: str) -> tuple[str | None, str | None, str]:
    """Returns the day and tag that begin a text ("[2026-05-12 10:30] …", "2026-05-12 [task] …"), and the rest of it."""
    match = _DATED_LINE.match(text)
    day = None if match is None else _day(match)
    if match is None or day is None:
        return None, None, text
    tag = (match["tag"] or "").casefold()
    return day, tag or None, text[match.end() :].strip()


def _ticked(text: str) -> tuple[bool | None, str]:
    """Returns whether the box before a text is ticked (None without a box), and the text without the box."""
    if text[:1] == "[" and text[2:4] in ("] ", "]") and text[1:2] in (" ", "x", "X"):
        return text[1] != " ", text[3:].strip()
    return None, text


def _empty(text: str) -> str | None:
    """Returns the reason why a text says nothing; None if it says something."""
    label = _LABEL.match(text)
    value = text if label is None else text[label.end() :]
    if _MASKED.fullmatch(value):
        return "only a masked secret"
    if _is_template(text) or _is_template(value):
        return "a text of the template"
    blank = not text or _PLACEHOLDER.fullmatch(value) is not None or _EMPTY_LABEL.fullmatch(text) is not None
    return "a blank that was not filled in" if blank else None


def _is_template(text: str) -> bool:
    """Returns whether every sentence is one of the templates': beside a person's own words they are part of a note."""
    sentences = _SENTENCE_END.split(text.replace("’", "'").strip("()[]_* "))
    return all(_TEMPLATE.fullmatch(sentence) is not None for sentence in sentences)


def _as_oneself(text: str) -> str:
    """Rewrites "The user lives in Lisbon", or "lives in Lisbon", as the user would say it; any other text stays."""
    match = _THIRD.match(text)
    rest = text[match.end() :] if match is not None else text
    if match is not None and match["zh"]:
        return f"我{rest}"
    if match is not None and match["has"]:
        return f"My {rest}"
    verb, _, rest = rest.partition(" ")
    if match is None and verb.casefold() not in _VERBS:
        return text
    return f"I {_VERBS.get(verb.casefold(), verb)} {rest}"


def _key(label: str) -> str:
    key = keys.vocabulary_key(label)
    return _LABELS.get(key, key)


def _says_all(found: Sequence[ImportedItem], text: str) -> bool:
    kept = {token for item in found for token in tokens(f"{item.key} {item.value}")}
    who = _THIRD.match(text)
    rest = text if who is None else text[who.end() :]
    return len({token for token in tokens(rest) if token not in _FRAME} - kept) <= _UNREAD


def _cut(text: str) -> list[str]:
    """Cuts a text into pieces that fit into a memory, at sentence ends if there are any."""
    pieces: list[str] = []
    while len(text) > keys.VALUE_LIMIT:
        room = text[: keys.VALUE_LIMIT]
        end = max((room.rfind(mark) + 1 for mark in (". ", "! ", "? ", "。", "！", "？", "; ")), default=0)
        end = end if end > keys.VALUE_LIMIT // 2 else (room.rfind(" ") + 1 or keys.VALUE_LIMIT)
        pieces.append(text[:end].strip())
        text = text[end:].strip()
    return [*pieces, text] if text else pieces


def _is_profile(where: str) -> bool:
    return where.replace("\\", "/").rsplit("/", 1)[-1].casefold().startswith(("user", "profile"))


def _day(match: re.Match[str]) -> str | None:
    try:
        day = date(int(match["y"]), int(match["m"]), int(match["d"]))
        # Noon of any earlier or later day is no time in every zone.
        return day.isoformat() if 1970 < day.year < 9999 else None
    except ValueError:
        return None


def _noon(day: str, timezone: str) -> int:
    """Returns noon of a local day, which stays on that day despite changes of the clock."""
    moment = datetime.combine(date.fromisoformat(day), time(12), ZoneInfo(timezone))
    return (moment - _EPOCH) // timedelta(milliseconds=1)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = date(1970, 1, 1)
#: A parser of blocks alone. A block's content is parsed separately, so that a hostile block costs no more than itself.
_MARKDOWN: Final = MarkdownIt("commonmark", {"maxNesting": 60}).enable("table").disable("inline")
_INLINE: Final = MarkdownIt("commonmark")
_DAY: Final = r"(?P<y>(?:19|20)\d\d)[-/.]?(?P<m>\d\d)[-/.]?(?P<d>\d\d)"
_FILE_DAY: Final = re.compile(_DAY + r"(?!\d)")
_ANY_DAY: Final = re.compile(_DAY)
_CLOCK: Final = re.compile(r"\d{1,2}[:.]\d\d(?::\d\d)?(?: ?[ap]m)?", re.IGNORECASE)
#: A date at the beginning, perhaps in brackets and with a time, perhaps followed by a tag.
_DATED_LINE: Final = re.compile(
    r"[\[(]?(?P<y>(?:19|20)\d\d)[-/.](?P<m>\d\d)[-/.](?P<d>\d\d)(?:[ T]{1,2}\d{1,2}:\d\d(?::\d\d)?(?: ?UTC|Z)?)?[\])]?"
    r"(?!\d)[ \t]{0,3}(?:\[(?P<tag>[a-zA-Z_-]{1,20})\])?[ \t]{0,3}[-–—:：]{0,2}[ \t]{0,3}"
)
_LABEL: Final = re.compile(
    r"(?P<label>[^\s:：|\[\]()][^:：\n|\[\]()]{0,39}?)[ \t]{0,3}(?::[ \t]{1,9}|：[ \t]{0,9})(?=\S)"
)
#: The sign between the entries of Hermes.
_SEPARATOR: Final = re.compile(r"\s{0,9}§\s{0,9}$")
_SENTENCE_ENDS: Final = (".", "!", "?", "。", "！", "？")
_MASKED: Final = re.compile(r"\[secret: [^\]\n]{0,80}\]")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
_THEM: Final = r"(?:the (?:user|person|people)|your human|them|people|a person)"
#: A sentence by which templates of such files speak to the assistant: it is about nobody.
_TEMPLATE: Final = re.compile(
    rf"(?:learn about {_THEM}(?: you(?:'re| are) helping)?"
    rf"|about your human|edit freely|respect the difference|make it yours|information about {_THEM} goes here"
    r"|the more you know,? the better(?: you can help)?"
    rf"|(?:but remember ?[-–—:,]? ?)?you(?:'re| are) learning about {_THEM}, not building a dossier"
    rf"|build this (?:up )?over time(?: as you learn about {_THEM})?"
    r"|(?:please )?(?:update|edit|fill(?: in)?|replace|delete) (?:this|these)"
    r"(?: (?:file|section|template|line|text)s?)?(?: in)?"
    rf"(?: as you go| (?:as|when) you learn(?: more| something new| about {_THEM})?| before you (?:start|begin)"
    r"| with your (?:own )?(?:details|information|data)| during your first conversation)?"
    r"|as you learn who you are, update it"
    r"|this file is (?:yours to evolve"
    r"|automatically updated by .{1,40} when important information should be remembered)"
    r"|this file (?:contains|stores|describes|holds) (?:important |basic |key |long-term )?"
    rf"(?:information|facts|notes|details|memories)(?: about {_THEM})?"
    r"(?: that (?:should persist|persists?))?(?: across (?:sessions|conversations))?"
    r"|what (?:do they care about|projects are they working on|annoys them|makes them laugh)"
    r"|(?:this is )?your (?:curated|persistent|long-term) memor(?:y|ies)"
    r"(?: ?[-–—,] ?(?:the distilled essence, not raw logs|like a human's long-term memory))?)[.!?:]?",
    re.IGNORECASE,
)
_EMPTY_LABEL: Final = re.compile(r"[^:：\n]{1,60}[:：]\s{0,9}")
_PLACEHOLDER: Final = re.compile(
    r"[_*\s]{0,4}(?:[(\[（<].{0,300}[)\]）>]|tbd|todo|n/?a|none(?: yet)?|unknown|nothing yet|\.{3}|…|-{1,3}|无"
    r"|暂无|未知)[_*\s.]{0,4}",
    re.IGNORECASE | re.DOTALL,
)
_THIRD: Final = re.compile(
    r"(?:(?P<zh>用户|使用者|主人)|(?:the |my )?(?:user|human)(?P<has>(?:'|’)s)? )\s{0,3}", re.IGNORECASE
)
_VERBS: Final = {
    "lives": "live", "works": "work", "likes": "like", "prefers": "prefer", "is": "am", "has": "have", "wants": "want",
    "speaks": "speak", "dislikes": "dislike", "hates": "hate", "loves": "love", "enjoys": "enjoy", "owns": "own",
    "uses": "use", "studies": "study", "plans": "plan", "doesn't": "don't", "does": "do", "goes": "go",
    "moved": "moved", "was": "was",
}  # fmt: skip
#: Words that only name the person a statement is about.
_FRAME: Final = frozenset(
    tokens("the user user's human is are am in at as a an of and with live work i my me has have")
)
#: Names that such files give to the keys of the vocabulary, beside those that `keys` knows.
_LABELS: Final = {
    "what-to-call-them": "called", "what-to-call-me": "called", "call-them": "called", "goes-by": "called",
    "location": "home", "city": "home", "lives-in": "home", "based-in": "home", "from": "hometown",
    "role": "occupation", "works-as": "occupation", "works-at": "employer", "hobbies": "hobby",
    "interests": "interest", "allergies": "allergy", "languages": "speaks", "goals": "goal", "plans": "plan",
    "notes": "note", "remember": "note",
    "姓名": "name", "名字": "name", "称呼": "called", "时区": "timezone", "语言": "language", "城市": "home",
    "住址": "home", "职业": "occupation", "公司": "employer", "生日": "birthday", "年龄": "age", "爱好": "hobby",
    "过敏": "allergy",
}  # fmt: skip
#: Words before a colon in running text that are no labels.
_NO_LABELS: Final = frozenset({"note", "example", "e-g", "i-e", "warning", "important", "to-do", "http", "https"})
_KEYS: Final = {"instruction": "instruction", "boundary": "boundary", "plan": "plan"}
_IMPORTANCE: Final = {"identity": 7, "boundary": 8, "health": 8, "instruction": 7, "relation": 6}
#: Words of headings and tags, and their categories.
_CATEGORIES: Final = {
    **dict.fromkeys(("identity", "profile", "about", "basics", "basic", "permanent", "personal"), "identity"),
    **dict.fromkeys(("people", "family", "friends", "relationships", "relationship", "contacts"), "relation"),
    **dict.fromkeys(("preferences", "preference", "likes", "dislikes", "favorites", "interests"), "preference"),
    **dict.fromkeys(("health", "medical", "diet", "allergies"), "health"),
    **dict.fromkeys(("boundaries", "boundary"), "boundary"),
    **dict.fromkeys(("communication", "style", "instructions", "tone", "formatting"), "instruction"),
    **dict.fromkeys(("work", "job", "career", "company"), "work"),
    **dict.fromkeys(("places", "home", "location", "locations", "travel"), "place"),
    **dict.fromkeys(("projects", "project"), "project"),
    **dict.fromkeys(("decisions", "decision"), "decision"),
    **dict.fromkeys(("lessons", "learned", "learnings", "solutions", "fixes", "insights"), "solution"),
    **dict.fromkeys(("config", "configuration", "setup", "environment", "tools", "infrastructure"), "config"),
    **dict.fromkeys(("plans", "plan", "goals", "goal", "todo", "todos", "tasks", "task", "next"), "plan"),
    **dict.fromkeys(("links", "files", "artifacts", "resources"), "artifact"),
}  # fmt: skip
_CATEGORIES_ZH: Final = {
    "偏好": "preference", "喜好": "preference", "项目": "project", "决定": "decision", "决策": "decision",
    "健康": "health", "家人": "relation", "家庭": "relation", "朋友": "relation", "关系": "relation",
    "工作": "work", "计划": "plan", "目标": "plan", "待办": "plan", "边界": "boundary", "沟通": "instruction",
    "配置": "config", "环境": "config", "经验": "solution", "教训": "solution", "身份": "identity",
    "基本信息": "identity", "用户": "identity",
}  # fmt: skip
