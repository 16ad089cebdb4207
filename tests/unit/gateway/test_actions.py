"""The table of actions on memories, as every door reads it."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import ValidationError

from agents.spec import ToolName
from gateway.actions.memory import ACTIONS, SearchMemory, syntax
from gateway.api.operations import OFFERED, ROUTES
from gateway.pipeline import toolbox

#: The tools of an agent that are no actions on memories.
OTHERS = {"now", "reminders"}


def test_each_tool_of_an_agent_is_an_action_whose_result_can_be_told() -> None:
    tools = {action.tool: name for name, action in ACTIONS.items() if action.tool}
    assert tools.keys() == set(get_args(ToolName)) - OTHERS
    assert set(tools.values()) == toolbox._TOLD.keys()


def test_each_way_of_a_program_leads_to_an_action() -> None:
    """A path that nothing answers, or a tool that nobody tells, would fail for the program alone."""
    assert {route.operation for route in ROUTES} <= OFFERED.keys()
    assert {name for name, action in ACTIONS.items() if action.served} <= OFFERED.keys()


def test_no_argument_names_a_person() -> None:
    """The context says whose memory it is."""
    named = {field for action in ACTIONS.values() for field in action.arguments.model_fields}
    assert not named & {"user", "user_id", "person", "owner", "account", "chat", "session"}


def test_what_loses_or_changes_something_needs_the_permission_to_write() -> None:
    assert [name for name, action in ACTIONS.items() if action.destructive and action.needs != "write"] == []
    assert [name for name, action in ACTIONS.items() if action.reads and action.needs != "read"] == []


def test_a_command_shows_the_arguments_that_have_to_be_typed() -> None:
    """Nobody types the arguments that the command itself gives, or those that may be left out."""
    assert syntax("correct") == "<id> <new text>"
    assert syntax("pin") == "<id> <pinned>" and syntax("pin", pinned=True) == "<id>"
    assert syntax("remember") == "<text>" and syntax("memory_stats") == ""


def test_a_search_needs_words_or_a_filter() -> None:
    """Quotation marks can't end a filter's value early."""
    assert SearchMemory(topic='the "roof" ').filters == 'topic:"the  roof"'
    for empty in ({}, {"query": "  "}, {"topic": ' " '}):
        with pytest.raises(ValidationError, match="Say what to look for"):
            SearchMemory.model_validate(empty)


def test_no_tool_of_an_agent_reads_or_sets_tags() -> None:
    tools = [action.tool_arguments or action.arguments for action in ACTIONS.values() if action.tool]
    assert not {"tag", "tags"} & {field for arguments in tools for field in arguments.model_fields}
    assert SearchMemory(query="tea", topic="roof").filters == 'topic:"roof"'
