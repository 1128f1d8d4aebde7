"""Evidence: the public API is documented, completely; every link leads somewhere."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
from public_api import (
    MODULES,
    RESULTS,
    is_ours,
    listed_names,
    members,
    names_in_modules,
    public_objects,
)

pytestmark = pytest.mark.once

REPOSITORY = Path(__file__).resolve().parent.parent


@cache
def entries():
    """The names that the page of the API lists, by module."""
    text = (REPOSITORY / "examples" / "api.rst").read_text(encoding="utf-8")
    module, found = "", {}
    for line in text.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   [A-Za-z][\w.]*", line):
            path = f"{module}.{line.strip()}"
            found[path.rpartition(".")[2]] = path
    return found


def test_docs_the_page_has_every_public_name_and_no_other():
    expected = {name: f"{module}.{name}" for module, name, _ in public_objects()}
    expected |= {path.rpartition(".")[2]: path for path in RESULTS}
    assert entries() == expected


def test_docs_every_public_name_has_a_runnable_example():
    """Which the plain tests run."""
    lacking = [name for _, name, value in public_objects() if ">>> " not in inspect.getdoc(value)]
    assert lacking == []


def test_docs_the_page_has_the_names_of_every_all():
    """And those that were public before; commands have their own help."""
    names = {name for name in listed_names() if name.replace(".", "").isidentifier()}
    names |= names_in_modules()
    assert len(names) > 50
    names = {name for name in names if not name.startswith("seraph_cvx.display.formulas.")}
    constants = {"ONE_THREAD", "FLOOR"}  # numbers that tables and pictures are made with
    missing = {name for name in names if name.rpartition(".")[2] not in {*entries(), *constants}}
    assert not {name for name in missing if not name.startswith("seraph_cvx.cli.")}


def test_docs_the_page_has_whatever_public_functions_return():
    for _, name, value in public_objects():
        calls = [value] if inspect.isfunction(value) else []
        if inspect.isclass(value):
            calls = [member.function for member in members(value) if member.function is not None]
        for call in calls:
            for word in re.findall(r"\w+", str(call.__annotations__.get("return", ""))):
                kind = call.__globals__.get(word)
                if inspect.isclass(kind) and is_ours(kind):
                    assert word in entries(), f"{name} returns {word}"


def test_docs_the_page_has_what_the_guide_imports(repository):
    pages = [repository / "README.md", *(repository / "examples" / "guide").glob("*.md")]
    imports = [
        (module, name)
        for page in pages
        for module, names in re.findall(
            r"^from (seraph_cvx[\w.]*) import ([\w, ]+)$", page.read_text(encoding="utf-8"), re.M
        )
        for name in names.split(", ")
    ]
    assert len(imports) > 20
    for module, name in imports:
        assert module not in MODULES or name in entries(), f"{module}.{name}"


def without_code(text):
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


@cache
def anchors_of(page):
    """Of the headings, as GitHub makes them: a repeated one gets a number."""
    found = Counter()
    for heading in re.findall(r"^#+ +(.+)$", without_code(page.read_text(encoding="utf-8")), re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
        found[re.sub(r"[^\w\- ]", "", words).replace(" ", "-")] += 1
    repeated = {f"{anchor}-{k}" for anchor, times in found.items() for k in range(1, times)}
    return set(found) | repeated


def broken_links(page):
    """The relative links of a page to files or headings that are not there."""
    text = re.sub(r"`[^`\n]*`", "", without_code(page.read_text(encoding="utf-8")))
    links = re.findall(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)", text)
    for link in links:
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            yield link


def test_docs_every_link_leads_to_a_file_and_a_heading(repository):
    pages = [repository / "README.md", *(repository / "examples").rglob("*.md")]
    pages += (repository / ".github").glob("*.md")
    assert len(pages) > 25
    broken = {str(page): list(broken_links(page)) for page in pages}
    assert not {page: links for page, links in broken.items() if links}


def test_docs_a_broken_link_would_be_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title\n\n[a](#a-title) [b](#none) [c](none.md) [d](page.md#a-title)\n")
    assert list(broken_links(page)) == ["#none", "none.md"]
