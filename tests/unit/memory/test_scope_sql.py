"""Every statement that reads remembered text names whose it may be, or stands below with the reason why it need not.

Invariant: statements are found by reading the source, not by running it, so one that no test reaches counts as well.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.kit.stores import ASKING

MEMORY = Path(__file__).parents[3] / "memory"

#: The tables that hold or mirror people's words.
GUARDED = (
    "memories", "messages", "entities", "entity_aliases", "postings", "indexed_documents", "vectors", "vector_signs",
    "token_bits", "embedding_cache",
)  # fmt: skip
#: Which condition belongs to which table: `owned` on memories would let rows of another agent through.
CONDITION_OF = {"memories": "predicate", "messages": "owned", "entities": "owned"}

#: Statements without a scope's condition: file and function → how many, and why that is safe.
_INDEXER = "the indexer reads every row, and gives what it read to nobody"
_SESSION = "one session's own history, named by its id"
_LEFT = "ids of rows of a chat that is erased, for the eraser"
_THEIRS = "ids of what is this person's own, by the owners and identities of their scope, for the eraser"
_ERASED = "by ids of rows that a person's own choice named; for the eraser"
_HELD = "by ids of one owner's rows inside the write that changes them"
_UNDONE = "ids and figures of rows that a run has made or changed, to take that back"
ALLOWED: dict[str, tuple[int, str]] = {
    "mailbox/inbox.py:told_before": (1, "no words, of the very messages that are sent again by their person"),
    "mailbox/mailbox.py:Mailbox.answer_before": (1,
     "the answer to the very message that is sent again, in the same place"),
    "store/documents.py:after": (1, _INDEXER),
    "store/documents.py:highest": (1, "one number, for the log"),
    "forgetting/forgettable.py:messages_of": (1, _THEIRS),
    "forgetting/forgettable.py:messages_here": (1, _THEIRS),
    "store/filter_rows.py:_spelling": (1, _THEIRS),
    "forgetting/forgettable.py:messages_of_people": (1, "ids of what is a person's own, for the eraser"),
    "forgetting/forgettable.py:memories_of_people": (1, "ids of what is a person's own or about them, for the eraser"),
    "forgetting/forgettable.py:owners_of": (1, _ERASED),
    "forgetting/forgettable.py:sessions_of": (1, "ids of sessions only"),
    "forgetting/forgettable.py:said_again": (1, _ERASED),
    "forgetting/forgettable.py:answers": (1,
     "what the bot said in sessions of the rows being erased, to find copies of them"),
    "forgetting/forgettable.py:with_tools": (1, _ERASED),
    "forgetting/forgettable.py:texts": (1, "what is being erased, to find copies of it"),
    "forgetting/forgettable.py:not_by_people": (1, _ERASED),
    "forgetting/forgettable.py:with_words": (1, _ERASED),
    "forgetting/forgettable.py:gone_by_age": (1, "ids among those of the sources of what is to be forgotten"),
    "forgetting/forgettable.py:told_in": (1, "which turns tell what was erased, for the eraser"),
    "forgetting/forgettable.py:answers_in": (1, _ERASED),
    "forgetting/forgettable.py:tool_traffic": (1, _ERASED),
    "forgetting/expired.py:said_before": (1, "ids of what was said long ago, for the eraser"),
    "forgetting/expired.py:left": (1, _LEFT), "forgetting/expired.py:contents": (1, _LEFT),
    "forgetting/expired.py:_alone_here": (1, "who spoke in a chat that is erased: ids and names, for the eraser"),
    "store/entities.py:of_owner": (1, _LEFT), "store/entities.py:drop": (1, _LEFT),
    "store/entities.py:drop_of": (1, "deletes what some identities own; nothing comes out"),
    "store/memories.py:of_owner": (1, _LEFT),
    "store/memories.py:learned_until": (1, "ids of rows that were erased, in a store put back"),
    "store/memories.py:tellings": (1, "ids and times of the messages that tell rows already read in their scope"),
    "store/memories.py:untell": (1,
     "counts of rows that a message told which says something else now; only numbers change"),
    "store/memories.py:near": (1, "ids of rows of a subject's owners, which are then read within the scope"),
    "store/memories.py:count_all": (1, "a count, for the operator who restores"),
    "chat/stats.py:Stats.rows": (1, "counts, for the operator's figures"),
    "store/attachments.py:summed_up": (1, "ids of this session's own messages, for its own next prompt"),
    "store/history.py:results_summed_up": (1, "results of tools in this session's own window, for its own next prompt"),
    "store/history.py:count_erased": (1, "a count, for the operator who restores"),
    "store/history.py:recorded_until": (1, "ids of rows that were erased, in a store put back"),
    "store/history.py:newest_id": (1, "the newest id"),
    "store/history.py:turns_of": (1, "ids of turns only"),
    "store/history.py:unname": (1, "blanks names by ids; nothing comes out"),
    "store/history.py:unname_authors": (1, "blanks names by ids of identities; nothing comes out"),
    "store/history.py:disown": (1, "blanks rows by their ids; nothing comes out"),
    "store/history.py:move": (1, "moves rows by their ids; nothing comes out"),
    "store/history.py:mark_imported": (1, "marks rows by their ids; nothing comes out"),
    "store/history.py:some_imported": (1, "ids of rows of one import, for its undoing"),
    "store/chats.py:drop_summaries": (2, "blanks summaries of the sessions of erased rows; nothing comes out"),
    "store/chats.py:drop_titles": (1, "blanks titles of conversations with erased rows; nothing comes out"),
    "store/chats.py:branch": (1, "ids of messages of the conversation that a person branches; nothing comes out"),
    "store/chats.py:drop_summaries_of": (1, "blanks summaries of rows whose words go; nothing comes out"),
    "store/chats.py:drop_spent_summaries": (1, "whether a session has words left; nothing comes out"),
    "store/chats.py:close_sessions": (1, _LEFT),
    "store/people.py:unname_silent": (1, "blanks names of those who have said nothing; nothing comes out"),
    "store/history.py:held_by": (1,
     "confined to the owner that an import is for; the operator sees its own lines only"),
    "store/history.py:last_exchange": (1, "the last turn of the one who asks, in this session"),
    "store/history.py:unlearn_unread": (1, "marks a person's own messages; nothing comes out"),
    "store/memories.py:count_closed_by": (1, "a count"),
    "store/memories.py:some_imported": (1, "ids of rows of one import, for its undoing"),
    "store/chats.py:last_private_session": (1, "the id of a session only"),
    "store/people.py:unname_imported": (1,
     "whether anything else was told by or of somebody; blanks names, nothing comes out"),
    "store/chats.py:untitle_imported": (1,
     "whether anything else was told in a group; blanks its title, nothing comes out"),
    "store/entities.py:relink": (1, _UNDONE),
    "store/entities.py:restore_types": (1, _UNDONE),
    "learn/extractions.py:unread_among": (1, "which of these sessions have something left to read, no words"),
    "people/codes.py:Codes.fitting": (1, "hashes of codes, no words"),
    "people/codes.py:Codes.is_locked": (1, "a count of wrong codes"),
    "store/moving.py:count": (1, "a count of a whole table that is carried over"),
    "store/moving.py:page": (1, "rows of a table on their way to another engine, all of them"),
    "store/moving.py:used": (1, "whether anything is in a store"),
    "store/postgres/watching.py:watch": (1, "an empty copy of a table, for its types"),
    "store/job_watch.py:names": (1, "ids and types of names that a job has made or typed"),
    "store/job_watch.py:rows": (1, _UNDONE), "store/memories.py:has_heir": (1, _UNDONE),
    "store/memories.py:short_id": (1, "the id that a write has just made, or not"),
    "store/lineage.py:made_from": (1, _UNDONE), "store/lineage.py:offspring": (1, _UNDONE),
    "store/memories.py:relink": (1, _UNDONE),
    "store/memories.py:mark_enriched": (1, "marks rows that the scope's own read has given; nothing comes out"),
    "jobs/compress.py:_owners": (1, "ids and times of the events of owners an agent works for"),
    "store/memories.py:mark_compared": (1, "marks rows that the scope's own read has given; nothing comes out"),
    "jobs/compare.py:_owners": (1, "ids of owners only, of those that an agent serves"),
    "store/vectors.py:neighbours": (1, "confined to the partition of one owner and the rows of a scope's own read"),
    "jobs/merge.py:_owners": (1, "ids of owners only, of those that an agent serves"),
    "jobs/reflect.py:_owners": (1, "ids of owners only, of those that an agent serves"),
    "jobs/style.py:_owners": (1, "ids of owners only, of those who have told an agent how to answer them"),
    "jobs/compress.py:_unlearned": (1, "ids of memories that a scope's own read has named"),
    "jobs/asking.py:note": (1,
     "numbers of refusals of memories that a scope's own read has named; no words come out"),
    "jobs/enrich.py:_waiting": (1,
     "which rows an agent's night is for, of those it serves; a step reads them by scope"),
    "store/filter_rows.py:within_reach": (1, _THEIRS),
    "forgetting/forgettable.py:memories": (1, _THEIRS),
    "store/postings.py:remove": (2, _INDEXER), "store/documents.py:standing": (1, _INDEXER),
    "store/postings.py:remove_changed": (2, "deletes rows of a copy's index; nothing comes out"),
    "store/postings.py:check": (1, "whether the index agrees with itself; only that comes out"),
    "store/postings.py:frequencies": (1, "confined to `Scope.partitions`; only numbers come out"),
    "store/vectors.py:embed_all": (2, _INDEXER), "store/vectors.py:lacks": (2, _INDEXER),
    "store/vectors.py:cached": (1, "what an embedder gave for the very text that is asked for, by its hash"),
    "store/vectors.py:Vectors.bits": (1, "confined to `Scope.partitions`"),
    "store/vectors.py:Vectors._near": (3, "confined to one of `Scope.partitions`; search fetches by scope"),
    "store/lineage.py:parts_of": (1, _ERASED),
    "store/documents.py:changed_names": (1, "numbers of rows only, for the indexer"),
    "store/attachments.py:keep_late": (1, "ids of the message that its author said under this update; nothing comes out"),
    "store/attachments.py:last_pictured": (1, "ids of messages of the session whose turn it is"),
    "store/attachments.py:quoting": (1, "rows that quote messages of one session that were deleted there"),
    "store/attachments.py:quotes": (1, "quotes in the sessions that an erasure looks through"),
    "store/attachments.py:drop_quotes": (3, "what quotes words that are erased goes with them; nothing comes out"),
    "store/attachments.py:drop_quotes_by": (1, "what quotes a person who is forgotten goes; nothing comes out"),
    "store/attachments.py:fade": (1, "which pictures of one session are its newest; nothing comes out"),
    "store/entities.py:note": (1, "whether a row is this owner's"),
    "store/entities.py:of_memories": (1, _HELD), "store/entities.py:_check": (4, _HELD),
    "store/entities.py:_count": (1, _HELD),
    "store/entities.py:_known": (3, "confined to the owner that writes"),
    "store/entities.py:_spelled": (1, _HELD), "store/entities.py:_move": (1, _HELD),
    "learn/extractions.py:agent_of": (1, "the id of an agent only"),
    "learn/extractions.py:unread": (1, _SESSION),
    "learn/extractions.py:afterwards": (1, "how full a session's own window is, and how much of it is unread"),
    "learn/extractions.py:unread_before": (1, _SESSION),
    "learn/extractions.py:reread": (1, _SESSION), "learn/extractions.py:schedule": (1, _SESSION),
    "learn/extractions.py:readable": (1, _SESSION),
    "learn/extractions.py:lines_before": (1, _SESSION),
    "learn/extractions.py:sessions_with_work": (1, "ids of sessions only"),
    "store/history.py:after": (1, _SESSION), "store/history.py:between": (1, _SESSION),
    "store/history.py:window": (1, _SESSION), "store/history.py:last_id": (1, _SESSION),
    "store/history.py:recorded_at": (1, "a time only, of the messages in which a tool was asked for"),
    "store/history.py:_recorded": (1, _SESSION),
    "store/history.py:last_ids": (1, "ids of the newest messages of sessions that a plan looks through"),
    "store/history.py:end_turn": (1, "whether one of the turn's own messages is gone"),
    "store/history.py:replies_telling": (2, "ids only, of turns that a memory of this scope was told or recalled in"),
    "store/history.py:said_here": (1, "what was deleted on the platform in this session"),
    "store/judgements.py:keep": (1, "writes ids; looks only whether the answer of a turn has been erased"),
    "store/judgements.py:of_person": (1, "lengths of answers that this account has judged in its own private chat"),
    "store/judgements.py:drop_of_answers": (1, "deletes rows by their ids; nothing comes out"),
    "store/history.py:erase": (1, "blanks rows by their ids; nothing comes out"),
    "store/history.py:hide": (1, "marks rows by their ids; nothing comes out"),
    "store/history.py:unlearn": (1, "marks rows by their ids; nothing comes out"),
    "store/history.py:said_by": (1, "what the one who asks said in this session"),
    "store/history.py:messages_of_turn": (1, "a turn's own messages, named by the inbox row that began it"),
    "oversight.py:_people_of": (1, "who has spoken on an admin's channel: ids, names, counts and times"),
    "oversight.py:_serving_person": (1, "ids of agents only, of those that a person has spoken to"),
    "store/memories.py:_join": (1, "sets aside the parts of a row that holds again; nothing comes out but ids"),
    "store/memories.py:outdate": (1, "marks events to be read again that were behind what ends; nothing comes out"),
    "store/lineage.py:merged_into": (1, "an id, of a row that is then read by scope"),
    "store/memories.py:insert": (1, "whether a short id is free; nothing of the row comes out"),
    "mailbox/mailbox.py:_asked_by": (1, "the platform's id of the message that a turn's own row answers"),
    "store/memories.py:retract": (2, "dates and ids of the chain of rows being deleted"),
    "store/memories.py:delete": (2, "ids of the chain of rows being deleted"),
    "store/memories.py:made_of": (1, "ids of what goes with rows that are erased"),
    "store/memories.py:_other_parents": (1, "ids of those rows and of what else they were derived from"),
    "store/memories.py:of_ids": (1, "rows that are erased, for their hashes and the profile; shown to nobody"),
    "store/lineage.py:resting_on": (1, "what is deleted with the messages that alone had taught it; shown to nobody"),
    "browse/why.py:_answered": (1, "the id of a turn of this session only"),
    "store/passages.py:outdated": (1, "ids of messages that a scope's own read has named"),
    "store/chats.py:last_speaker": (1, _SESSION), "store/chats.py:members": (1, _SESSION),
    "store/people.py:_of_both_sides": (1, "ids of what an unlinked person's own rows were made into"),
    "store/word_columns.py:note_said": (2, "names and seconds of messages that are being erased, to be hashed"),
    "people/privacy.py:_said": (2, "counts of what the one who asks has said"),
    "learn/opt_outs.py:_spoke_in": (1, "whether somebody has spoken in a chat; only that comes out"),
    "store/entities.py:withdraw": (1, "whether a name is there; nothing comes out"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One SQL text as the source builds it; what is put in at run time stands there as `{expression}`."""

    place: str
    line: int
    sql: str
    function: ast.AST

    @property
    def tables(self) -> dict[str, str]:
        """The guarded tables it reads from, by the name they go by in it."""
        found = re.findall(r"\b(?:from|join|update) (\w+|\{[^}]*\})(?: (?:as )?(\w+))?", self.sql)
        return {
            alias if alias not in _KEYWORDS else table: table
            for table, alias in found
            # A table whose name is put in at run time may be any.
            if table in GUARDED or table.startswith("{")
        }

    @property
    def reads(self) -> bool:
        return re.search(r"\b(?:select|returning)\b", self.sql) is not None

    @property
    def conditions(self) -> dict[str, str]:
        """The scope's conditions it holds: for which alias, of which kind."""
        named = {name: (alias, kind) for name, alias, kind in _conditions(self.function)}
        used = re.findall(r"\{(\w+)\.sql\}", self.sql)
        return dict(named[name] for name in used if name in named)

    @property
    def is_scoped(self) -> bool:
        tables = self.tables
        return any(
            alias in tables and CONDITION_OF.get(tables[alias]) == kind for alias, kind in self.conditions.items()
        )


_KEYWORDS = {
    "", "where", "set", "order", "group", "join", "left", "on", "limit", "union", "returning", "values", "from",
}  # fmt: skip


def statements(path: Path) -> Iterator[Statement]:
    """The statements of one module: first arguments of the methods of a transaction."""
    tree = ast.parse(path.read_text("utf-8"))
    constants = _constants(tree)
    for name, function in _functions(tree):
        for node in ast.walk(function):
            if _is_query(node):
                assert isinstance(node, ast.Call)
                place = f"{path.relative_to(MEMORY)}:{name}"
                yield Statement(
                    place=place, line=node.lineno, sql=_text(node.args[0], constants, place), function=function
                )


@cache
def everything() -> list[Statement]:
    return [statement for path in sorted(MEMORY.rglob("*.py")) for statement in statements(path)]


def unscoped(found: list[Statement]) -> list[Statement]:
    return [one for one in found if one.reads and one.tables and not one.is_scoped]


def test_every_statement_that_reads_memory_is_scoped_or_excused() -> None:
    """One forgotten condition is a leak; a function may hold no more excused statements than were looked at."""
    counted = Counter(one.place for one in unscoped(everything()))
    wrong = {
        f"{one.place} (line {one.line}): {one.sql}"
        for one in unscoped(everything())
        if counted[one.place] > ALLOWED.get(one.place, (0, ""))[0]
    }
    assert wrong == set(), "put the scope's condition into these, or excuse them here with a reason"


def test_nothing_is_excused_that_is_not_there() -> None:
    """An excuse left behind would cover the next statement of that function."""
    counted = Counter(one.place for one in unscoped(everything()))
    assert {place: count for place, (count, _) in ALLOWED.items()} == dict(counted)


def test_the_condition_of_a_scope_stands_on_the_table_it_is_made_for() -> None:
    """`owned` knows nothing of agents, so on memories it would show what another agent keeps to itself."""
    wrong = [
        f"{one.place} (line {one.line}): {kind} on {one.tables.get(alias, 'no table of that name')}"
        for one in everything()
        for alias, kind in one.conditions.items()
        if CONDITION_OF.get(one.tables.get(alias, ""), kind) != kind or alias not in one.tables
    ]
    assert wrong == []


def test_statements_are_run_by_transactions_only() -> None:
    """Statements executed past them would not be seen here; `health` and `files` look at pages and counts only."""
    executing = {
        str(path.relative_to(MEMORY))
        for path in MEMORY.rglob("*.py")
        if re.search(r"\.execute(?:many|script)?\(", path.read_text("utf-8"))
    }
    assert executing == {
        "store/postgres/connection.py", "store/postgres/transaction.py", "store/postgres/database.py",
        "store/postgres/schema.py", "store/postgres/replica.py", "store/postgres/walls.py", "store/sqlite/tables.py",
        "store/sqlite/database.py", "store/sqlite/health.py", "store/sqlite/migrate.py", "store/files.py",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "scoped"),
    [
        ('reader.all("select value from memories where id = ?", (1,))', False),
        ('reader.one(f"select m.value from memories m where {within.sql}", within.parameters)', True),
        ('reader.one(f"select value from memories where {within.sql}", within.parameters)', False),
        ('reader.one(f"select m.value from messages m where {within.sql}", within.parameters)', False),
        ('reader.all("select text from " "messages", ())', False),
        ('tx.all(f"delete from {table} returning text", ())', False),
        ('tx.run("delete from postings where doc = ?", (1,))', True),
    ],
)
def test_an_unscoped_read_is_noticed(tmp_path: Path, line: str, scoped: bool) -> None:
    """The checker itself can fail: a plain read, a condition for another name, and one of the wrong kind."""
    source = f'def look(reader, tx, scope, table):\n    within = scope.predicate("m")\n    return {line}\n'
    tree = ast.parse(source)
    (name, function), *_ = _functions(tree)
    call = next(node for node in ast.walk(function) if _is_query(node))
    assert isinstance(call, ast.Call)
    found = Statement(place=name, line=1, sql=_text(call.args[0], {}, name), function=function)
    assert (unscoped([found]) == []) is scoped


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every function that is not inside another, with its class before its name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{node.name}", node


def _is_query(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
        return False
    if node.func.attr not in ASKING:
        return False
    on = node.func.value
    return (on.id if isinstance(on, ast.Name) else getattr(on, "attr", "")) in ("reader", "tx", "_tx")


def _conditions(function: ast.AST) -> Iterator[tuple[str, str, str]]:
    """(variable, alias, kind) of each `variable = scope.predicate("alias")` or `….owned("alias")`."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        for name, call in _pairs(target, value):
            if (
                isinstance(name, ast.Name)
                and isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in ("predicate", "owned")
                and call.args
                and isinstance(call.args[0], ast.Constant)
            ):
                yield name.id, str(call.args[0].value), call.func.attr


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _constants(tree: ast.AST) -> dict[str, ast.expr]:
    """The module's own names for pieces of SQL."""
    named: dict[str, ast.expr] = {}
    for node in ast.iter_child_nodes(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(target, ast.Name) and value is not None:
            named[target.id] = value
    return named


def _text(node: ast.expr, constants: dict[str, ast.expr], place: str) -> str:
    """The SQL an expression builds. What can't be read off the source fails: it could not be checked."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, constants, place) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        value = constants.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if isinstance(value, ast.Constant | ast.JoinedStr):
            return _text(value, constants, place)
        return f"{{{ast.unparse(node.value)}}}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, constants, place) + _text(node.right, constants, place)
    if isinstance(node, ast.Name) and node.id in constants:
        return _text(constants[node.id], constants, place)
    raise AssertionError(f"{place}: write the SQL out where it is run, not as {ast.unparse(node)}")
