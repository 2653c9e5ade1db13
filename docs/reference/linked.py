"""MkDocs hook: README.md is the first page, and what a page links to outside docs/ is in the site as well.

Pages are written for readers of the repository, so links are relative to the file they stand in. A Markdown file or
a source file outside docs/ becomes a page under ``source/``, a folder a page that names its files, anything else is
copied; links are turned to where their target went.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {
    ".py": "python",
    ".yaml": "yaml",
    ".json": "json",
    ".cu": "cpp",
    ".cuh": "cpp",
    ".hpp": "cpp",
    "": "text",
}
FIRST = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}


def address(target: str) -> str:
    """Where a file of the repository lies in the site: ``docs/guides/report.md`` -> ``report.md``."""
    if target in FIRST:
        return FIRST[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    path = ROOT / target
    return f"source/{target}" + (".md" if path.is_dir() or path.suffix in LANGUAGES else "")


def targets(text: str, origin: str) -> list[str]:
    """The repository's files and folders that ``text``, which stands in the file ``origin``, links to."""
    links = [match[2] for match in LINK.finditer(FENCE.sub("", text))]
    places = [posixpath.normpath(posixpath.join(posixpath.dirname(origin), link)) for link in links]
    return [place for place in places if not place.startswith("..") and (ROOT / place).exists()]


def text_of(target: str) -> str:
    """The page made of one file or folder."""
    path = ROOT / target
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    if path.is_dir():
        files = sorted(
            one.name + "/" * one.is_dir() for one in path.iterdir() if not one.name.startswith(("_", "."))
        )
        return f"# {target}\n\n" + "".join(f"- `{name}`\n" for name in files)
    return f"# {target}\n\n```{LANGUAGES[path.suffix]}\n{path.read_text(encoding='utf-8')}\n```\n"


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Adds what is linked to, and what that links to."""
    waiting = [*FIRST]
    for page in files.documentation_pages():
        waiting += targets(page.content_string, f"docs/{page.src_uri}")
    done: set[str] = set()
    while waiting:
        target = waiting.pop()
        place = address(target)
        if target in done or files.get_file_from_path(place):
            continue
        done.add(target)
        if place.endswith(".md"):
            text = text_of(target)
            file = File.generated(config, place, content=text)
            if target not in FIRST:
                file.inclusion = file.inclusion.NOT_IN_NAV
            waiting += targets(text, target) if target.endswith(".md") else []
        else:
            file = File.generated(config, place, abs_src_path=str(ROOT / target))
        origins[place] = target
        files.append(file)
    return files


origins: dict[str, str] = {}  # a page's place in the site -> the file it was made of


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turns links to where their targets are in the site. Fenced blocks stay as they are."""
    origin = origins.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    here = posixpath.dirname(page.file.src_uri)

    def turned(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[2]))
        if not (ROOT / target).exists():
            return match[0]  # MkDocs says that it leads nowhere
        return match[1] + posixpath.relpath(address(target), here or ".") + match[3]

    kept = FENCE.findall(markdown)
    parts = [LINK.sub(turned, part) for part in FENCE.split(markdown)]
    return "".join(part + fence for part, fence in zip(parts, [*kept, ""], strict=True))
