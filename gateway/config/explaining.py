"""Says in words what an option must be and how a mistake in it is put right, from the models of the files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agents.spec import AgentSpec
from gateway.config.settings import Settings
from gateway.config.strict_yaml import KeyPath, nearest


def rule_of(model: type[BaseModel], path: KeyPath) -> tuple[Any, str, str]:
    """Returns the rule for the option at `path`: its type, the words that follow "must be", and an example or ''."""
    annotation: Any = model
    field: FieldInfo | None = None
    for step in path:
        annotation = bare(annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            field = annotation.model_fields[str(step)]
            annotation = field.annotation
        else:
            annotation, field = get_args(annotation)[0], None
        if field is None or not field.description:
            arms = (annotation, *get_args(annotation)) if NoneType in get_args(annotation) else (annotation,)
            extras = [extra for arm in arms for extra in getattr(arm, "__metadata__", ())]
            field = next((extra for extra in extras if isinstance(extra, FieldInfo)), field)
    annotation = bare(annotation)
    example: object = None
    if field is not None:
        example = field.examples[0] if field.examples else field.default
    text = example if isinstance(example, str) and "\n" not in example else ""
    if isinstance(example, bool | int | float):
        text = json.dumps(example).removesuffix(".0")
    if field is not None and field.description:
        return annotation, field.description, text
    if annotation is bool:
        return annotation, "true or false", text
    if get_origin(annotation) is Literal:
        return annotation, "one of " + ", ".join(get_args(annotation)), text
    if get_origin(annotation) is tuple:
        return annotation, "a list: one item a line, each beginning with '- '", ""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, "a section: its options below it, one a line, indented", ""
    return annotation, "a text", text


def bare(annotation: Any) -> Any:
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (Union, UnionType):
            annotation = next(arm for arm in get_args(annotation) if arm is not NoneType)
        else:
            return annotation


def fix_of(model: type[BaseModel], path: KeyPath, value: object, kind: str) -> str:
    annotation, _, example = rule_of(model, path)
    name = "-" if isinstance(path[-1], int) else f"{path[-1]}:"
    if get_origin(annotation) is Literal:
        choices = list(get_args(annotation))
        return f"write {name} {nearest(str(value), choices) or example or choices[0]}"
    if kind == "string_type" and isinstance(value, bool | int | float):
        return "put the value in quotes"
    if example:
        return f"write for example {name} {example}"
    if get_origin(annotation) is tuple:
        return "write the items below it, or [] for none"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"write its options below it, such as {next(iter(annotation.model_fields))}"
    return "correct the value, or remove the line"


def instead_of(model: type[BaseModel], path: KeyPath) -> str:
    word = str(path[-1])
    section = rule_of(model, path[:-1])[0] if path[:-1] else model
    here = list(section.model_fields)
    meant = nearest(word, here)
    if meant is not None:
        return f"write {meant} instead"
    elsewhere = [place for place in options(model) if place.endswith(f".{word}")]
    if elsewhere:
        return f"move it to {elsewhere[0]}"
    other, where = (AgentSpec, "an agent's file") if model is Settings else (Settings, "config.yaml")
    if word in other.model_fields:
        return f"move it to {where}, where it belongs"
    return f"remove it; known here: {', '.join(here)}"


def options(model: type[BaseModel], before: str = "") -> Iterable[str]:
    for name, field in model.model_fields.items():
        yield before + name
        annotation, inside = bare(field.annotation), "."
        if get_origin(annotation) is tuple:
            annotation, inside = bare(get_args(annotation)[0]), "[]."
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from options(annotation, before + name + inside)
