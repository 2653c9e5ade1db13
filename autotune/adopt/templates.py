"""The texts of an adopted family: templates next to this file."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from autotune.adopt.host import replace_names


def render(name: str, **given: Any) -> str:
    """The text that a template makes of what is given."""
    return _environment().get_template(name).render(given)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=jinja2.select_autoescape(()),
        trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters |= {
        "quote": quote, "listed": format_list, "mapped": format_mapping, "replace_names": replace_names,
    }  # fmt: skip
    return environment


def quote(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f'"{text}"'


def format_list(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def format_mapping(items: Mapping[str, object]) -> str:
    return f"{{{', '.join(f'{name}: {value}' for name, value in items.items())}}}"
