"""The directions in which the packages may know each other."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from bench.house import House
from tests.kit.tables import each_row

ROOT = Path(__file__).parents[1]
PACKAGES = ("gateway", "channels", "memory", "agents", "languages")

#: Inside memory a room uses only those on the floors below it; rooms of one floor don't know each other.
FLOORS = (
    ("service",),
    ("setup",),
    ("oversight", "housekeeping"),
    ("chat", "transfer"),
    ("forgetting",),
    ("people", "browse"),
    ("reminders", "jobs"),
    ("learn",),
    ("recall",),
    ("mailbox",),
    ("context", "profile"),
    ("store",),
    ("text", "scope", "score", "typed_filters", "keys", "child", "atomic", "errors", "runtime", "loops"),
)
#: The floors of gateway: doors, then what people may do, then the way of a message, then what these stand on.
GATEWAY_FLOORS = (
    ("__main__",),
    ("cli",),
    ("serve",),
    ("warming",),
    ("app",),
    ("meaning",),
    ("models",),
    ("bots",),
    ("api", "page", "metrics"),
    ("reception",),
    ("commands",),
    ("pipeline",),
    ("internet", "actions"),
    ("ops",),
    ("config", "wording"),
    ("reading", "package_check"),
)
#: The modules of the other grounds that gateway may use outside its composition root, and those of memory it may not:
#: there are transactions.
FACES = {
    "channels.api", "channels.base", "channels.ids", "channels.markdown", "channels.proxies", "channels.slots", "channels.supervision", "channels.web",
    "agents.agent", "agents.budget", "agents.skills", "agents.spec", "agents.toolservers.addresses", "agents.tools", "agents.compact", "agents.llm", "agents.plugins", "agents.prompt", "agents.providers.quirks", "agents.spans",
}  # fmt: skip
ENGINE = {f"memory.store.{name}" for name in ("database", "sqlite", "postgres", "sealing", "erasure", "files")}
#: Files that write tables whose names are put in when they run: their own links, codes, vectors and token bits; whole rows
#: of a store that is moved.
ANY_TABLE = {"memories", "moving", "people", "vectors"}
#: How a statement begins, and which table it writes.
_STATEMENT = re.compile(
    r"\s*(select\s|(insert|replace)\s+(or \w+ )?into\s|update\s+(or \w+ )?\S+\s+(as \w+ )?set\s|delete\s+from\s"
    r"|with\s+(recursive\s+)?\w+\s*(\([^)]*\)\s*)?as\s|pragma\s|(?:create|drop|alter)\s+(?:temp\s+|unique\s+|virtual\s+)?(?:table|index|view|trigger)\b|vacuum\b|attach\s|savepoint\s)"
)
_WRITTEN = re.compile(
    r"\b(?:(?:insert|replace)\s+(?:or \w+ )?into|update(?:\s+or \w+)?(?=\s+\S+\s+(?:as \w+ )?set\b)|delete\s+from)\s+"
    r"(\w+|\{\})"
)
VENDORS = {
    "aiosqlite": {"memory/store/sqlite/database.py"},
    "httpx": {
        "agents/providers/adapter.py", "agents/providers/adapters.py", "agents/providers/errors.py",
        "agents/providers/transcribe.py",
        "gateway/app.py", "gateway/models.py", "gateway/cli/offer.py", "gateway/internet/addresses.py", "gateway/internet/reach.py", "gateway/internet/tools.py",
        "memory/recall/embedders/remote.py", "memory/recall/rerank.py",
    },
    "httpcore": {"gateway/internet/reach.py"},
    "prompt_toolkit": {"channels/console.py", "channels/console_complete.py"},
    "prometheus_client": {"gateway/metrics.py"},
    "selectolax": {"gateway/reading/page.py"},
    "detect_secrets": {"memory/text/secrets/formats.py"},
    "mnemonic": {"memory/text/secrets/formats.py"},
    "opencc": {"memory/text/simplified.py"},
    "snowballstemmer": {"memory/text/words.py"},
    "tenacity": {"agents/failover.py", "agents/providers/transcribe.py", "memory/recall/embedders/remote.py"},
    "yaml": {"agents/offline/speech.py", "gateway/config/strict_yaml.py", "languages/reading.py"},
    "babel": {"agents/offline/provider.py", "gateway/wording/texts.py"},
    "aiogram": {
        "channels/telegram/channel.py", "channels/telegram/contents.py", "channels/telegram/parsing.py",
        "channels/telegram/menu.py", "channels/telegram/postponed.py",
        "channels/telegram/send.py",
        "channels/telegram/updates.py", "channels/telegram/wire.py",
    },
    "discord": {f"channels/discord/{name}.py" for name in ("gateway", "missed", "places", "presence")},
    "pypdf": {"gateway/reading/pdf.py"},
    "aiohttp_socks": {"channels/proxies.py"},
    "python_socks": {"channels/proxies.py", "gateway/internet/reach.py"},
    "aiohttp": {
        "channels/http.py", "channels/proxies.py", "channels/discord/rest.py", "channels/telegram/wire.py", "gateway/ops/connections.py", "gateway/ops/http.py", "gateway/api/doors.py", "gateway/api/tools.py",
        "gateway/page/app_pages.py", "gateway/page/chat_pages.py", "gateway/page/command_forms.py",
        "gateway/page/me_pages.py", "gateway/page/sent_files.py", "gateway/page/site.py", "gateway/page/talk_pages.py",
    },
    "jinja2": {"gateway/page/site.py"},
    "markupsafe": {"gateway/page/plots.py", "gateway/page/markdown.py", "gateway/page/site.py"},
    "markdown_it": {"channels/markdown.py", "channels/markup.py", "gateway/page/markdown.py", "memory/transfer/formats/markdown.py"},
    "latex2mathml": {"gateway/page/markdown.py"},
    "pygments": {"gateway/page/markdown.py"},
    "ruamel": {"gateway/config/setup.py"},
    "wcwidth": {"channels/console_live.py", "channels/markup.py"},
    "dotenv": {"gateway/config/loading.py", "gateway/config/setup.py"},
    "click": {
        "gateway/__main__.py", "gateway/cli/adding.py", "gateway/cli/start.py", "gateway/cli/channels.py", "gateway/cli/backups.py", "gateway/cli/doctor.py",
        "gateway/cli/init.py", "gateway/cli/jobs.py", "gateway/cli/keys.py", "gateway/cli/mcp.py", "gateway/cli/moves.py", "gateway/cli/setting_up.py", "gateway/cli/status.py", "gateway/cli/chat.py",
        "gateway/cli/transfers.py",
    },
    "mcp": {"agents/toolservers/remote.py", "agents/toolservers/session.py", "gateway/api/tools.py"},
    "opentelemetry": {"gateway/ops/telemetry.py"},
    "httpx2": {"agents/toolservers/remote.py"},
    "filelock": {"memory/atomic.py", "memory/store/sqlite/database.py"},
    "psycopg": {
        f"memory/store/postgres/{name}.py" for name in ("__init__", "connection", "transaction", "database", "replica")
    },
    "sqlite_vec": {"memory/store/sqlite/driver.py"},
    "dateutil": {"memory/text/times/calendar.py", "memory/text/times/pieces.py", "memory/text/times/rules.py"},
    "apscheduler": {"gateway/ops/night_clock.py"},
}  # fmt: skip

#: The most that `python -m bench.house` may count. Whoever brings a figure down writes the lower one here; a higher one
#: needs a reason. Lines are rounded up to the next 500, and words to the next 50.
MOST: dict[str, int] = {
    "lines": 95_200,
    "test_lines": 103_400,
    "options": 140,
    "long_functions": 0,
    "two_way_rooms": 0,
    "process_files": 6,
    "longest_file": 1_000,
    "one": 1_790,
    "found": 1_350,
    "said": 890,
    "shown": 450,
    "told": 450,
}


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of a file's syntax tree; each file is parsed once."""
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


@cache
def imports(path: Path) -> frozenset[str]:
    """Every module a file imports, `from a import b` as a and a.b."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def packages(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)}


@pytest.mark.parametrize("package", ["channels", "memory", "agents", "languages"])
def test_the_grounds_know_neither_each_other_nor_the_roof(package: str) -> None:
    """Only gateway composes them."""
    others = set(PACKAGES) - {package, "languages"}
    wrong = {str(p.relative_to(ROOT)): hit for p in (ROOT / package).rglob("*.py") if (hit := packages(p) & others)}
    assert wrong == {}


def test_each_room_of_memory_uses_only_those_below() -> None:
    """A reader who follows a call only ever goes down; on the bottom floor the modules are alone with each other."""
    level = {name: n for n, names in enumerate(FLOORS) for name in names}
    wrong = []
    for path in (ROOT / "memory").rglob("*.py"):
        room = path.relative_to(ROOT / "memory").with_suffix("").parts[0]
        if room == "__init__":
            continue
        for name in imports(path):
            target = name.split(".")
            if target[0] != "memory" or len(target) < 2 or target[1] == room:
                continue
            if level[target[1]] < level[room] or level[target[1]] == level[room] < len(FLOORS) - 1:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_each_room_of_gateway_uses_only_those_below() -> None:
    """The rights of a command do not depend on who serves it, and a turn knows nothing of commands."""
    level = {name: n for n, names in enumerate(GATEWAY_FLOORS) for name in names}
    wrong = []
    for path in (ROOT / "gateway").rglob("*.py"):
        room = path.relative_to(ROOT / "gateway").with_suffix("").parts[0]
        for name in imports(path) if room != "__init__" else ():
            target = name.split(".")
            if target[0] == "gateway" and len(target) > 1 and target[1] != room and level[target[1]] <= level[room]:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_gateway_uses_the_other_packages_by_their_faces() -> None:
    """Concrete classes meet in the composition root and the command line, tables to build early in one place."""
    everywhere = {ROOT / "gateway" / f"{name}.py" for name in ("app", "bots", "meaning", "models", "warming")}
    wrong = []
    for path in (ROOT / "gateway").rglob("*.py"):
        if path in everywhere or path.parent == ROOT / "gateway" / "cli":
            continue
        for name in imports(path):
            known = any(f"{name}.".startswith(f"{face}.") or face.startswith(f"{name}.") for face in FACES)
            if name.split(".")[0] in ("channels", "agents") and "." in name and not known:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
            if any(f"{name}.".startswith(f"{module}.") for module in ENGINE):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


@each_row("vendor", VENDORS)
def test_each_vendor_package_is_imported_in_its_place_only(vendor: str) -> None:
    """Replacing a library touches one file."""
    users = {str(path.relative_to(ROOT)) for path in sources() if vendor in packages(path)}
    assert users == VENDORS[vendor]


def test_no_class_takes_more_than_eight_arguments() -> None:
    """A class that takes more does too much, or takes apart what belongs together. Records may be wide."""
    wrong = [
        f"{path.relative_to(ROOT)}: {owner.name} takes {count}"
        for path in sources()
        for owner in nodes(path)
        if isinstance(owner, ast.ClassDef)
        for made in owner.body
        if isinstance(made, ast.FunctionDef | ast.AsyncFunctionDef) and made.name in ("__init__", "open")
        if (count := len([*made.args.posonlyargs, *made.args.args[1:], *made.args.kwonlyargs])) > 8
    ]
    assert wrong == []


def test_nothing_is_completed_by_who_holds_it() -> None:
    """Whoever reads a constructor sees all that an object works with."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Attribute)
        if isinstance(target.value.value, ast.Name) and target.value.value.id == "self"
    ]
    assert wrong == []


def test_a_public_class_has_a_name_of_its_own() -> None:
    """One word, one meaning: whoever searches for a class finds one."""
    found: dict[str, list[str]] = {}
    for path in sources():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_sql_stands_in_memory_only() -> None:
    """Memory owns every byte on disk."""
    wrong = [
        str(path.relative_to(ROOT))
        for path in sources()
        if path.relative_to(ROOT).parts[0] != "memory" and {"sqlite3", "sqlean", "aiosqlite"} & packages(path)
    ]
    assert wrong == []


def texts(path: Path) -> Iterator[str]:
    """Every string of a file as it is written, with `{}` for what is put in when it runs."""
    parts: set[int] = set()
    for node in nodes(path):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def room_of(path: Path) -> str:
    """Returns the room of a file of memory; in the store each file is a room of its own."""
    parts = path.relative_to(ROOT / "memory").with_suffix("").parts
    return parts[1] if parts[0] == "store" and len(parts) > 1 else parts[0]


def test_statements_stand_in_memory_only() -> None:
    """No other package knows what a table looks like."""
    wrong = {
        f"{path.relative_to(ROOT)}: {text[:60]}"
        for path in sources()
        if ROOT / "memory" not in path.parents
        for text in texts(path)
        if _STATEMENT.match(text)
    }
    assert wrong == set()


def test_what_a_scope_confines_runs_within_it() -> None:
    """Else the second wall would not stand where the first was forgotten."""
    conditions = re.compile(r"\bscope\.(predicate|owned|partitions)\b")
    asks = re.compile(r"\b(reader|tx)\.(all|one|ids|number|run)\(")
    scoped = {
        f"{path.stem}.{function.name}": ast.unparse(function)
        for path in (ROOT / "memory").rglob("*.py")
        for function in nodes(path)
        if isinstance(function, ast.FunctionDef)
        if all(pattern.search(ast.unparse(function)) for pattern in (conditions, asks))
    }
    assert len(scoped) > 40
    wrong = {
        name for name, code in scoped.items() if not re.search(r"^@walled$|\bwith reader\.within\(scope", code, re.M)
    }
    assert wrong == set()


def test_each_table_is_written_by_one_room() -> None:
    """A feature owns its tables: their invariants can be read in one place."""
    writers: dict[str, set[str]] = {}
    for path in (ROOT / "memory").rglob("*.py"):
        # The engine of PostgreSQL says in its own words what others write.
        for text in texts(path) if path.parent.name != "postgres" else ():
            for table in _WRITTEN.findall(text) if _STATEMENT.match(text) else ():
                writers.setdefault(table, set()).add(room_of(path))
    assert writers.pop("{}") == ANY_TABLE
    assert {table: rooms for table, rooms in writers.items() if len(rooms) > 1} == {}
    assert {"memories", "messages", "sessions", "outbox", "postings"} <= writers.keys()


@each_row(
    ("text", "written"),
    [
        ("select id from messages", []),
        ("update or ignore sessions set key = ? where key = ?", ["sessions"]),
        (" insert into inbox (id) select 1", ["inbox"]),
        ("with gone as (select 1) delete from outbox", ["outbox"]),
        ("pragma page_size", []),
        ("update memories as m set pinned = 1", ["memories"]),
    ],
)
def test_a_statement_is_known_by_its_beginning(text: str, written: list[str]) -> None:
    assert _STATEMENT.match(text) and _WRITTEN.findall(text) == written
    assert not _STATEMENT.match(f"Please {text}")


_OF_A_TEST = re.compile(
    r"^[ \t]*(?:from|import) (?:\.|tests\.[\w.]*\btest_|tests[\w.]* import (?:\([^)]*|.*)\btest_)", re.MULTILINE
)


def test_no_test_file_is_imported_by_another() -> None:
    """Shared code stands in tests/kit; else a test that moves takes strangers with it."""
    # By the words: the syntax trees of all tests take longer than all else here.
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for folder in ("tests", "bench")
        for path in (ROOT / folder).rglob("*.py")
        for found in _OF_A_TEST.finditer(path.read_text("utf-8"))
    ]
    assert wrong == []


@each_row("line", ["import tests.unit.test_a", "from tests.unit.test_a import b", "    from tests.unit import test_a", "from . import a",
     "from tests.unit import (\n    kit,\n    test_a,\n)"])  # fmt: skip
def test_an_import_from_a_test_file_is_known_in_any_spelling(line: str) -> None:
    assert _OF_A_TEST.search(f"import re\n{line}\n")
    assert not _OF_A_TEST.search("from tests.kit import (\n    a,\n)\n\n\ndef test_a() -> None: ...\n")


def test_the_terminal_chat_loads_no_other_platform() -> None:
    """A newcomer's first start must not pay for Telegram or Discord, or for what they need."""
    program = "import gateway.app, channels.console, sys; print({'aiogram', 'aiohttp', 'discord'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "set()"


#: What no command needs to print its help. Each takes from 10 to 600 ms of the processor to import.
HEAVY = {
    "aiogram", "aiohttp", "aiosqlite", "apscheduler", "babel", "discord", "dotenv", "filelock", "httpx", "jinja2", "latex2mathml", "markdown_it", "mcp",
    "numpy", "onnxruntime", "opencc", "prometheus_client", "prompt_toolkit", "pydantic", "pygments", "ruamel", "snowballstemmer", "sqlean", "sqlite3",
    "structlog", "tenacity", "tzlocal", "yaml",
}  # fmt: skip
_HELP = """
import sys, click
from gateway.__main__ import main

def texts(command, context):
    yield command.get_help(context)
    for name in getattr(command, "commands", ()):
        yield from texts(command.commands[name], click.Context(command.commands[name], parent=context, info_name=name))

assert len(list(texts(main, click.Context(main, info_name="remora")))) > 25
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
_CHECK = """
import contextlib, io, sys
from gateway.__main__ import main

with contextlib.redirect_stdout(io.StringIO()):
    main(["check", "--config", "config.yaml"], standalone_mode=False)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_the_help_of_every_command_is_printed_without_what_the_commands_need() -> None:
    """Whoever looks a command up waits for Python and for click, not for the bot."""
    done = subprocess.run([sys.executable, "-c", _HELP], capture_output=True, text=True, cwd=ROOT, check=True)
    assert HEAVY & set(done.stdout.split()) == set()


def test_a_configuration_is_checked_without_what_the_bot_is_made_of() -> None:
    """Whoever changes an option and checks it, again and again, waits for the configuration alone."""
    done = subprocess.run([sys.executable, "-c", _CHECK], capture_output=True, text=True, cwd=ROOT, check=True)
    assert HEAVY & set(done.stdout.split()) <= {"dotenv", "pydantic", "tzlocal", "yaml"}


#: Where a day or time may be read with what raises for one that doesn't exist: its own columns and the files of
#: settings, or with the error handled on the spot. Everything else reads days with `clock.day_of`.
READS_DAYS = {
    "memory/text/times/clock.py", "memory/jobs/compress.py", "memory/learn/retract.py", "memory/reminders/reminders.py",
    "memory/transfer/backup_copy.py", "memory/transfer/formats/markdown.py", "memory/transfer/formats/json_values.py",
    "gateway/models.py",
    "gateway/wording/reminder_lines.py", "gateway/ops/night_clock.py", "gateway/page/memory_pages.py",
    "agents/spec.py", "channels/discord/payloads.py",
}  # fmt: skip


def test_days_in_people_s_words_are_read_in_one_place() -> None:
    """One day that doesn't exist once ended everybody's reminders."""
    users = {
        str(path.relative_to(ROOT))
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in ("fromisoformat", "strptime")
    }
    assert users == READS_DAYS


def test_the_figures_of_the_house_do_not_grow() -> None:
    house = House.of(ROOT)
    figures = {
        "lines": house.lines,
        "test_lines": house.test_lines,
        "options": house.options or 0,
        "long_functions": len(house.long_functions),
        "two_way_rooms": len(house.two_way_rooms),
        "process_files": len(house.process_files),
        "longest_file": max(house.longest_files.values()),
        **house.words,
    }
    assert {name: f"{count}, at most {MOST[name]}" for name, count in figures.items() if count > MOST[name]} == {}
