# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

"""What the site needs beside docs/: README.md is its first page, and links out of docs/ lead to the repository."""

import logging
import pathlib
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)#\s]+)")
log = logging.getLogger("mkdocs.hooks.pages")


def on_files(files, config):
    readme = LINK.sub(lambda m: m[1] + from_docs(m[2]), (ROOT / "README.md").read_text())
    files.append(File.generated(config, "index.md", content=readme))
    return files


def from_docs(target):
    """A link of README.md as a page of docs/ would write it."""
    return target.removeprefix("docs/") if target.startswith("docs/") else "../" + target


def on_page_markdown(markdown, page, config, files):
    docs = ROOT / "docs"

    def linked(match):
        target = (docs / page.file.src_path).parent.joinpath(match[2]).resolve()
        if target.is_relative_to(docs) or not target.is_relative_to(ROOT):
            return match[0]  # mkdocs checks it
        if not target.exists():
            log.warning("%s links to %s, which does not exist", page.file.src_path, match[2])
        return f"{match[1]}{config.repo_url}/blob/main/{target.relative_to(ROOT)}"

    return LINK.sub(linked, markdown)
