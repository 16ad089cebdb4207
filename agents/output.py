"""Separates what a model says to a person from what it writes beside it. Pure.

Models and the servers' templates put into the text of an answer what nobody should read: thoughts, tool calls in text,
marks of the template, the prompt's own fences, and further turns that nobody spoke.

Invariants: the result depends on the whole text only and not on where it is cut into pieces. A piece is shown as soon
as nothing that can follow would hide it, with one exception: a thought whose opening mark was lost shows only by its
end, so `text` begins anew there. Code blocks and text in backticks stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal, TypeAlias

from agents import calls as written_calls
from agents import output_marks
from agents.calls import Written, as_json, tool_named

_State: TypeAlias = Literal["text", "verbatim", "thought", "until", "label", "ended"]

#: The longest mark, in characters.
_LONGEST = 160
#: The most characters of an answer that are read at once.
_PIECE: Final = 1_000
#: The most characters held back for a label or a pair of backticks to be decided.
_MOST_HELD = 4_000
_LONGEST_SPAN = 400
_CLOSING = re.compile(r"[}\]]")
#: A sign that may begin something, or the beginning of one of the words that may, at the end of a text.
_CANDIDATE = re.compile(
    r"[<\[`◁\n]|(?<![\w.])f(?=\Z|u)|"
    + "|".join(
        rf"{re.escape(word)}|(?:{'|'.join(re.escape(word[:end]) for end in range(1, len(word)))})\Z"
        for word in output_marks.HARMONY_BEGINS
    )
)


class Output:
    """One answer of a model, read piece by piece.

    `offered` names the tools that the model may call in text, `agent` is a name that it may put before its words.
    `bare` is for answers that are data: only thoughts and marks around the data are taken away. With `thinking`, the
    answer is taken to begin inside a thought.
    """

    def __init__(
        self, *, offered: Collection[str] = (), agent: str = "", bare: bool = False, thinking: bool = False
    ) -> None:
        self.calls: list[Written] = []
        #: True if the answer began inside a thought whose opening mark did not come.
        self.began_inside = False
        self.offered = frozenset(offered)
        self._own = (*output_marks.ASSISTANT, *filter(None, (agent.casefold(),)))
        self._bare = bare
        self._rest = ""
        self._state: _State = "text"
        self._final = False
        self._shown: list[str] = []
        self._fresh: list[str] = []
        self._any = False
        self._gap = ""
        self._before = "\n"
        self._line = ""
        self._last_line = ""
        self._blank_before = True
        self._hidden = False
        self._depth = 0
        self._after_close: list[str] | None = None
        self._thought = ""
        self._fence = ""
        self._close: re.Pattern[str] | None = None
        self._searched = 0
        self._tried = 0
        self._take = False
        self._soft = False
        self._struck = False
        self._dialogue = False
        self._harmony = False
        if thinking:
            self._hold_until(output_marks.CLOSES_THOUGHT.pattern, soft=True)

    @property
    def text(self) -> str:
        return "".join(self._shown)

    def feed(self, piece: str) -> str:
        """Takes a piece of the answer. Returns the text that can be shown now."""
        # A step costs what is left of the rest, so a long piece is read in short ones.
        for at in range(0, len(piece), _PIECE):
            self._rest += piece[at : at + _PIECE]
            while self._rest and self._step():
                pass
        fresh, self._fresh = "".join(self._fresh), []
        return fresh

    def finish(self) -> str:
        """Ends the answer. Returns the last text that can be shown."""
        self._final = True
        while self._step():
            pass
        if self._gap and not self._hidden:
            self._show(self._gap)
        self._gap = ""
        if self._bare:
            self._bare_end()
        fresh, self._fresh = "".join(self._fresh), []
        return fresh

    # Each step takes something off the rest and returns True, or returns False until more has come.

    def _step(self) -> bool:
        if not self._rest and not (self._final and self._state in ("thought", "label", "until")):
            return False
        return {
            "text": self._in_text,
            "verbatim": self._in_verbatim,
            "thought": self._in_thought,
            "until": self._in_until,
            "label": self._in_label,
            "ended": self._in_ended,
        }[self._state]()

    def _in_text(self) -> bool:  # noqa: PLR0911 - one way out for each kind
        if not self._line.strip() and (decided := self._at_line_start()) is not None:
            return decided
        if self._bare and self._any:
            return self._say(len(self._rest))
        found = _CANDIDATE.search(self._rest)
        if found is not None and found.start() == 0 and found[0] == "f" and re.match(r"[\w.]", self._before):
            found = _CANDIDATE.search(self._rest, 1)
        if found is None:
            return self._say(len(self._rest))
        if found.start() > 0:
            # White space alone does not leave the line's start.
            return self._say(found.start())
        match self._rest[0]:
            case "\n":
                return self._say(1)
            case "`":
                return self._backticks()
            case "f":
                return self._detached_call()
            case "a" | "c" | "t":
                return self._harmony_call()
        return self._mark()

    def _at_line_start(self) -> bool | None:  # noqa: PLR0911 - one way out for each kind
        """Decides on a special beginning of a line. Returns None if it is an ordinary one."""
        blank = len(self._rest) - len(self._rest.lstrip(" \t"))
        if blank:
            return self._say(blank) if blank < len(self._rest) or self._final else False
        rest, first = self._rest, self._rest[0]
        if first in "`~":
            run = len(rest) - len(rest.lstrip(first))
            if run == len(rest) and run < 3 and not self._final:
                return False
            return self._code_block() if run >= 3 else None
        if first in "{[" and not self._bare and (self.offered or not self._any):
            held = self._bare_call()
            if held is not None:
                return held
        if not self._any and not self._bare and (decided := self._channel_name()) is not None:
            return decided
        if self.offered and not self._bare and (named := self._named_call()) is not None:
            return named
        return None if self._bare or self._dialogue else self._label()

    def _channel_name(self) -> bool | None:  # noqa: PLR0911 - one way out for each kind
        """Decides whether an answer begins with the name of a channel whose mark a server has taken out."""
        rest = self._rest
        if any(word.startswith(rest) for word in output_marks.CHANNELS) and not self._final:
            return False
        if match := output_marks.CHANNEL.match(rest):  # OpenAI's open models
            if match[1] != "analysis":
                return self._dropped(match.end())
            self._hold_until(output_marks.HARMONY_THOUGHT_ENDS)
            return True
        if "Action: ```json".startswith(rest[:15]):  # Command R
            if len(rest) < 15 and not self._final:
                return False
            if len(rest) >= 15:
                return self._dropped(8)
        if "thought\n".startswith(rest[:8]):  # Gemma's empty thought
            if len(rest) < 8 and not self._final:
                return False
            if len(rest) >= 8:
                return self._dropped(8)
        return None

    def _named_call(self) -> bool | None:
        """Decides whether a line begins with an offered tool's name and its arguments."""
        if output_marks.NAMED_BEGINS.match(self._rest):
            return None if self._final else False
        match = output_marks.NAMED.match(self._rest)
        if match is None or tool_named(match[1], self.offered) is None:
            return None
        value = written_calls.json_at(self._rest, match.end())
        if value is None:
            return False if not self._final and len(self._rest) < 4 * _MOST_HELD else None
        return self._taken(written_calls.calls_in(self._rest[: value[1]]), value[1])

    def _label(self) -> bool | None:  # noqa: PLR0911 - one way out for each kind
        if self._rest[0] == "#" and self._any:
            end = self._rest.find("\n")
            if end < 0 and len(self._rest) < 40 and not self._final:
                return False
            if output_marks.SECTION.match(self._rest):
                return self._end()
            return None
        names = (*output_marks.USER, *self._own)
        bold = self._rest.startswith("**")
        if self._rest == "*" and not self._final:
            return False
        start = self._rest[2 if bold else 0 :].casefold()
        if not any(start.startswith(name) or name.startswith(start) for name in names):
            return None
        match = output_marks.LABEL.match(self._rest)
        if match is None or match.end() == len(self._rest):
            short = "\n" not in self._rest and len(self._rest) < 40 and (match is not None or ":" not in self._rest)
            if short and not self._final:
                return False
        name = "" if match is None else match[1].strip().casefold()
        if match is None or name not in names:
            return None
        if not self._any:
            if name in self._own:
                after = self._rest[match.end() :].lstrip(" *")
                if not after and not self._final:
                    return False
                return self._dropped(len(self._rest) - len(after))
            self._dialogue = True
            return None
        before = self._last_line.strip()
        if name in self._own or before.endswith((":", "：")) or output_marks.LABEL.match(before):
            self._dialogue = True
            return None
        self._state = "label"
        return True

    def _in_label(self) -> bool:
        first, *others = self._rest.split("\n")
        for line in others:
            match = output_marks.LABEL.match(line)
            if match is None or (match.end() >= len(line) and not self._final):
                continue
            name = match[1].strip().casefold()
            if name in self._own:
                return self._end()
            if name not in output_marks.USER:
                break
        else:
            if len(self._rest) < _MOST_HELD and not self._final:
                return False
            words = first.partition(":")[2] or first.partition("：")[2]
            asks = len(words.split()) >= 3 or len(words.encode()) - len(words) >= 8
            if self._final and self._blank_before and asks and output_marks.SENTENCE_END.search(self._last_line):
                return self._end()
        self._state, self._dialogue = "text", True
        return True

    def _code_block(self) -> bool:
        end = self._rest.find("\n")
        if end < 0 and not self._final:
            return False
        opening = self._rest if end < 0 else self._rest[:end]
        run = len(opening) - len(opening.lstrip(opening[0]))
        info = opening[run:].strip()
        if opening[0] == "`" and "`" in info:
            self._fence = ""
            return self._backticks()
        if not self._bare and end >= 0:
            if output_marks.TOOL_BLOCK.match(info):
                self._drop(end + 1)
                self._hold_until(r"(?:\A|\n)[ \t]*" + re.escape(opening[0] * run), take=True)
                return True
            if info.lower() in ("", "json") and (self.offered or not self._any):
                held = self._call_block(opening, end)
                if held is not None:
                    return held
        if self._bare:
            return self._say(len(self._rest))
        self._fence = opening[:run]
        self._state = "verbatim"
        return self._say(len(opening))

    def _call_block(self, opening: str, end: int) -> bool | None:
        """Decides whether a block of JSON is a tool call. Returns None if it is not."""
        inside = self._rest[end + 1 :]
        if not _may_begin_call(inside, final=self._final):
            return None
        close = re.search(r"\n[ \t]*" + re.escape(opening[: len(opening) - len(opening.lstrip("`~"))]), inside)
        if close is None:
            return False if not self._final and len(inside) < 4 * _MOST_HELD else None
        inside = inside[: close.start()].strip()
        value = written_calls.json_at(inside, 0) or written_calls.json_at(as_json(inside), 0)
        return self._whole_call(value, end + 1 + close.end())

    def _bare_call(self) -> bool | None:
        """Decides whether JSON at the beginning of a line is a tool call. Returns None if it is not."""
        if self._rest[0] == "[" and not re.match(r"\[\s*(?:[\[{\"']|\Z)", self._rest):
            return self._python_call()
        if not _may_begin_call(self._rest, final=self._final):
            return None
        value = written_calls.json_at(self._rest, 0)
        if value is not None:
            return self._whole_call(value, value[1])
        if not self._final:
            return False if len(self._rest) < 4 * _MOST_HELD else None
        plain = as_json(self._rest[: 4 * _MOST_HELD])
        value = written_calls.json_at(plain, 0)
        if value is None or value[1] != len(plain.rstrip()):
            return None
        return self._whole_call(value, len(self._rest))

    def _python_call(self) -> bool | None:
        """Decides whether a line is a list of calls written as in Python, as Llama's newer models do."""
        name = re.match(r"\[\s*([A-Za-z_][\w.]*)?", self._rest)
        assert name is not None
        if name.end() == len(self._rest) and not self._final and name.end() <= _LONGEST:
            return False
        if tool_named(name[1] or "", self.offered) is None:
            return None
        end = re.search(r"\)\s*\]", self._rest)
        if end is None:
            return False if not self._final and len(self._rest) < _MOST_HELD else None
        return self._taken(written_calls.pythonic(self._rest[: end.end()], self.offered), end.end())

    def _whole_call(self, value: tuple[object, int] | None, end: int) -> bool | None:
        """Takes JSON up to `end` for a call if it names an offered tool, or is the whole answer."""
        calls = None if value is None else written_calls.as_calls(value[0])
        if calls is None:
            return None
        if any(tool_named(name, self.offered) for name, _ in calls):
            return self._taken(calls, end)
        after = self._rest[end:]
        if self._any or not output_marks.MAYBE_NOTHING.match(after):
            return None
        if not self._final:
            return False
        return self._taken(calls, end) if output_marks.NOTHING.match(after) else None

    def _taken(self, calls: list[Written], end: int) -> bool:
        self._drop(end)
        self._add_calls(calls)
        return True

    def _add_calls(self, calls: list[Written]) -> None:
        for name, arguments in calls if self.offered else ():
            tool = tool_named(name, self.offered)
            if tool is not None or arguments != "{}":
                self.calls.append((tool or name, arguments))

    def _backticks(self) -> bool:
        run = len(self._rest) - len(self._rest.lstrip("`"))
        if run == len(self._rest) and not self._final:
            return False
        line_end = self._rest.find("\n", run)
        line = self._rest if line_end < 0 else self._rest[:line_end]
        close = re.search(rf"(?<!`){'`' * run}(?!`)", line[run:])
        if close is not None and (run + close.end() < len(line) or line_end >= 0 or self._final):
            return self._say(run + close.end())
        if close is None and (line_end >= 0 or len(line) > _LONGEST_SPAN or self._final):
            return self._say(run)
        return False

    def _detached_call(self) -> bool:
        """Decides on Kimi's calls without their marks: functions.name:0{…}"""
        match = output_marks.DETACHED.match(self._rest)
        if match is not None:
            return self._json_call(len(match[0]), match[0])
        head = re.match(r"[\w.:-]*\s*", self._rest)
        assert head is not None
        begins = "functions.".startswith(self._rest[:10]) or self._rest.startswith("functions.")
        if begins and head.end() == len(self._rest) and not self._final and len(self._rest) < _LONGEST:
            return False
        return self._say(1)

    def _harmony_call(self) -> bool:
        """Decides on a call of OpenAI's open models without its marks: commentary to=functions.name json{…}"""
        rest = self._rest
        match = None if self._bare else output_marks.HARMONY.match(rest)
        if match is not None:
            return self._json_call(match.end(), tool_named(match[1], self.offered) or match[1])
        begun = any(rest.startswith(word[: len(rest)]) for word in output_marks.HARMONY_BEGINS)
        undecided = begun and len(rest) < _LONGEST and output_marks.HARMONY_HEAD.match(rest)
        return False if undecided and not self._bare and not self._final else self._say(1)

    def _json_call(self, start: int, name: str = "") -> bool:
        """Takes a call whose JSON begins after `start` and ends with itself."""
        tried, self._tried = self._tried, len(self._rest)
        if not self._final and not _CLOSING.search(self._rest, tried):
            return False  # each try reads all of it
        begin = written_calls.JSON_BEGINS.search(self._rest, start)
        value = None if begin is None else written_calls.json_at(self._rest, begin.start())
        if value is None and not self._final:
            return False
        self._tried = 0
        if value is None:
            return self._dropped(len(self._rest))
        written = name + self._rest[start : value[1]]
        return self._taken(written_calls.calls_in(written), value[1])

    def _mark(self) -> bool:  # noqa: PLR0911 - one way out for each kind
        rest = self._rest
        if rest[0] == "<" and not re.match(r"<\s{0,2}(?:[A-Za-z/|｜‖<]|\Z)|<\s?\Z", rest):
            return self._say(1)
        closing = {"<": ">", "[": "]", "◁": "▷"}[rest[0]]
        if rest.startswith("<<"):
            closing = ">>"
        end = rest.find(closing, 1)
        stop = min((at for at in (rest.find("\n"), rest.find(rest[0], 2)) if at >= 0), default=len(rest))
        if end < 0 or end > stop or end > _LONGEST:
            if end < 0 and stop == len(rest) and len(rest) <= _LONGEST and not self._final:
                return False
            if self._final and rest[0] == "<" and re.match(r"<[|｜‖][\w▁|｜‖]*\Z|</?(?:think|tool_call)[\w_]*\Z", rest):
                self._drop(len(rest))  # the answer was cut in the middle of a mark
                return True
            return self._say(1)
        mark = rest[: end + len(closing)]
        if self._before in "\"'“‘«" and self._before:
            if len(mark) == len(rest) and not self._final:
                return False
            if rest[len(mark) : len(mark) + 1] in tuple("\"'”’»"):
                return self._say(len(mark))
        if self._bare and not (
            output_marks.OPENS_THOUGHT.fullmatch(output_marks.even(mark))
            or output_marks.CLOSES_THOUGHT.fullmatch(output_marks.even(mark))
        ):
            return (
                self._say(1)
                if mark[0] != "<" or not output_marks.EMPTY_MARK.fullmatch(output_marks.even(mark))
                else self._dropped(len(mark))
            )
        return self._known(mark, output_marks.even(mark))

    def _known(self, mark: str, even: str) -> bool:  # noqa: PLR0911 - one way out for each kind of mark
        size = len(mark)
        if output_marks.OPENS_THOUGHT.fullmatch(even):
            return self._begin_thought(size)
        if output_marks.CLOSES_THOUGHT.fullmatch(even):
            return self._begin_anew(size)
        for opening, close in output_marks.CALLS:
            if match := opening.fullmatch(even):
                if close is None:
                    return self._json_call(size)
                named = "" if even.startswith(("<tool", "<|tool", "[")) else mark
                self._drop(size)
                self._hold_until(close.replace(r"\1", re.escape(match[1])) if match.groups() else close, take=True)
                self._thought = named
                return True
        if "dsml" in mark.lower():
            return self._dropped(size)
        for opening, close in output_marks.RESULTS:
            if match := opening.fullmatch(even):
                return self._hide(size, close.replace(r"\1", re.escape(match[1])) if match.groups() else close)
        return self._turn_mark(mark, even)

    def _turn_mark(self, mark: str, even: str) -> bool:  # noqa: PLR0911 - one way out for each kind of mark
        """Decides on a mark of a template or of our own prompts."""
        size = len(mark)
        if even == "<s>":
            if size == len(self._rest) and not self._final:
                return False
            self._struck = self._struck or self._any or not (self._rest[size:] or " ")[0].isspace()
            return self._say(size) if self._any else self._dropped(size)
        if even == "</s>":
            if self._struck:
                self._struck = False
                return self._say(size) if "<s>" in self._line.lower() else self._dropped(size)
            return self._end()
        if even == "[inst]":
            return self._end() if self._any else self._hide(size, r"\[/INST\]")
        if even == "<<sys>>":
            return self._hide(size, r"<</SYS>>")
        if output_marks.ENDS.fullmatch(even):
            self._harmony = even == "<|end|>"
            return self._end()
        if output_marks.BEGINS.fullmatch(even) or output_marks.ROLE_MARK.fullmatch(even) or even == "<|channel|>":
            return self._header(mark, even)
        if output_marks.FILE_FENCE.fullmatch(even):
            return self._hide(size, r"</file [0-9a-f]+>")
        if match := output_marks.FENCE.match(even):
            self._drop(size)
            self._hold_until(output_marks.FENCE_END, soft=match[1] == "]")
            return True
        if output_marks.EMPTY_MARK.fullmatch(even) or re.fullmatch(output_marks.FENCE_END, even):
            return self._dropped(size)
        return self._say(1)

    def _header(self, mark: str, even: str) -> bool:
        """Reads the beginning of a turn: whose it is, and in OpenAI's open models, whether it is thought or said."""
        own = output_marks.ROLE_MARK.fullmatch(even)
        size = len(mark)
        role = own[1] if own else ""
        if not own and even != "<|channel|>":
            match = re.compile(r"\s*(assistant(?=analysis|commentary|final)|[A-Za-z_]*)").match(self._rest, size)
            assert match is not None
            if match.end() == len(self._rest) and not self._final:
                return False
            role, size = match[1].lower(), match.end()
            if even == "<|start_of_turn_token|>":
                role, size = "assistant", len(mark)  # the role's own mark follows
        if even in ("<|channel|>", "<|start|>"):
            return self._channel(size, role)
        tail = re.compile(r"(?:<\|(?:end_header_id|header_end|end_of_role|im_sep)\|>)?\s{0,2}").match(self._rest, size)
        partial = self._rest[size:]
        if not self._final and len(partial) < 22 and (not partial.strip() or re.fullmatch(r"<[|\w]*\|?", partial)):
            return False
        assert tail is not None
        if role in output_marks.OWN_ROLES or (not role and not self._any):
            if self._any:
                return self._end()
            return self._dropped(tail.end())
        self._drop(tail.end())
        self._state = "ended"
        return True

    def _channel(self, size: int, role: str) -> bool:
        if role and role not in output_marks.OWN_ROLES:
            self._drop(size)
            return self._end()
        match = re.compile(r"[^\n]{0,200}?<\|message\|>").match(self._rest, size)
        if match is None:
            if not self._final and len(self._rest) - size < 220 and "\n" not in self._rest[size:]:
                return False
            return self._dropped(size)
        head = self._rest[: match.end()]
        self._state = "text"
        self._drop(match.end())
        to = re.search(r"to=(?:functions\.)?([\w.-]+)", head)
        if to is not None:
            self._hold_until(r"<\|(?:call|end|return|start)\|>", take=True)
            self._thought = to[1]
        elif "analysis" in head:
            self._hold_until(r"<\|(?:end|return|call)\|>|(?=<\|start\|>|<\|channel\|>)")
        elif self._any:
            self._gap = "\n\n"
        return True

    def _begin_thought(self, size: int) -> bool:
        self._drop(size)
        self._state, self._depth, self._after_close = "thought", 1, None
        return True

    def _in_thought(self) -> bool:
        """Reads a thought up to the next mark in it. A mark in backticks is only spoken of."""
        found = output_marks.IN_THOUGHT.search(self._rest)
        # Only an end can be undecided: a search of the whole rest at each mark would cost its length squared.
        last = max(0, len(self._rest) - output_marks.MOST_UNDECIDED)
        begun = None if self._final else output_marks.UNDECIDED_IN_THOUGHT.search(self._rest, last)
        if begun is not None and (found is None or begun.start() < found.start()):
            self._think(begun.start())
            return False
        if found is None:
            self._think(len(self._rest))
            return self._final and self._thought_out()
        even = output_marks.even(found[0])
        self._think(found.end())
        if output_marks.OPENS_THOUGHT.fullmatch(even):
            self._depth += 1
        elif output_marks.CLOSES_THOUGHT.fullmatch(even):
            self._depth -= 1
            self._after_close = []
        if self._depth == 0:
            self._state = "text"
        return True

    def _think(self, size: int) -> None:
        """Takes a part of a thought off the rest. What follows an inner end is kept: it may prove to be the last."""
        if self._after_close is not None:
            self._after_close.append(self._rest[:size])
        self._drop(size)

    def _thought_out(self) -> bool:
        """Ends a thought that lacks an end: if there was an inner one, the answer began after it."""
        self._state = "text"
        self._rest, self._after_close = "".join(self._after_close or ()), None
        return bool(self._rest)

    def _in_until(self) -> bool:
        assert self._close is not None
        match = self._close.search(self._rest, self._searched)
        if match is None and not self._final:
            self._searched = max(0, len(self._rest) - _LONGEST)
            return False
        if match is None and self._soft:
            self._state = "text"
            return True
        inside = self._rest if match is None else self._rest[: match.start()]
        if self._take:
            self._add_calls(written_calls.calls_in(self._thought + inside))
        self._state, self._thought = "text", ""
        self._drop(len(self._rest) if match is None else match.end())
        return True

    def _in_verbatim(self) -> bool:
        end = self._rest.find("\n")
        line = self._rest if end < 0 else self._rest[:end]
        if not self._line.strip():
            bare = line.lstrip()
            run = len(bare) - len(bare.lstrip(self._fence[0]))
            if end < 0 and run == len(bare) and not self._final:
                return False
            if run >= len(self._fence) and not re.match(r"\w", bare[run : run + 1]):
                self._state = "text"
                self._say(len(line) - len(bare) + run)
                return True
        return self._say(len(line) if end < 0 else end + 1)

    def _in_ended(self) -> bool:
        """Drops what comes after the end of the turn, unless the answer itself begins only there."""
        match = re.search(r"<", self._rest)
        if match is None:
            self._rest = ""
            return True
        self._rest = self._rest[match.start() :]
        end = self._rest.find(">")
        if end < 0:
            if not self._final and len(self._rest) <= _LONGEST:
                return False
            self._rest = self._rest[1:]
            return True
        even = output_marks.even(self._rest[: end + 1])
        begins = output_marks.BEGINS.fullmatch(even) or output_marks.ROLE_MARK.fullmatch(even) or even == "<|channel|>"
        if begins and (not self._any or (self._harmony and even in ("<|start|>", "<|channel|>"))):
            self._state = "text"
            return self._header(self._rest[: end + 1], even) or self._back_to_ended()
        if even == "<|end|>":
            self._harmony = True
        self._rest = self._rest[1:]
        return True

    def _back_to_ended(self) -> bool:
        self._state = "ended"
        return False

    # The parts of the steps.

    def _say(self, size: int) -> bool:
        """Shows the beginning of the rest; white space only once something follows it."""
        text, self._rest = self._rest[:size], self._rest[size:]
        if not text:
            return False
        lines = (self._line + text).split("\n")
        for line in lines[:-1]:
            if line.strip():
                self._last_line, self._blank_before = line, False
            else:
                self._blank_before = True
        self._line, self._before = lines[-1], text[-1]
        body = text.rstrip()
        gap = text[len(body) :]
        if body:
            self._show(self._gap + body)
            self._gap = gap
        elif self._any or not self._hidden:
            self._gap += gap
        return True

    def _show(self, text: str) -> None:
        if self._hidden and not self._any:
            text = text.lstrip()
        self._any = self._any or bool(text.strip())
        self._shown.append(text)
        self._fresh.append(text)

    def _drop(self, size: int) -> None:
        self._rest, self._hidden = self._rest[size:], True
        if not self._any:
            self._gap = ""

    def _dropped(self, size: int) -> bool:
        self._drop(size)
        return True

    def _hide(self, size: int, close: str) -> bool:
        self._drop(size)
        self._hold_until(close)
        return True

    def _hold_until(self, close: str, *, take: bool = False, soft: bool = False) -> None:
        """Hides all up to `close`. `take` reads calls in it; `soft` shows it after all if the end never comes."""
        self._state, self._close, self._take, self._soft = "until", output_marks.loose_mark(close), take, soft
        self._searched = 0

    def _end(self) -> bool:
        self._state, self._hidden = "ended", True
        return True

    def _begin_anew(self, size: int) -> bool:
        """Takes all so far for a thought whose opening mark was lost."""
        self.began_inside, self.calls = True, []
        self._shown, self._any, self._gap, self._line, self._last_line = [], False, "", "", ""
        self._dialogue = self._struck = False
        self._drop(size)
        return True

    def _bare_end(self) -> None:
        """Looks once more at data: a thought's end in it means that all before was a thought."""
        whole = self.text
        *_, last = re.split(output_marks.CLOSES_THOUGHT.pattern, whole, flags=re.IGNORECASE)
        if last != whole and not whole.lstrip().startswith(("{", "[")) and last.strip():
            self._shown, self.began_inside = [last.strip()], True
        ends = re.compile(r"(?:\s*(?:<\|[\w▁]{1,30}\|>|</s>|<end_of_turn>))+\s*\Z")
        self._shown = [ends.sub("", self.text)]


def _may_begin_call(text: str, *, final: bool) -> bool:
    """Returns whether JSON that begins like this can be a call."""
    if written_calls.BEGINNING.match(text):
        return True
    head = text[:60]
    return not final and re.fullmatch(r"[\[{\s]*(?:[\"'][a-z_]{0,14}(?:[\"']\s*)?)?", head) is not None
