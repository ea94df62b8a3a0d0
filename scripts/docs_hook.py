"""The half of the documentation that mkdocs does not have (mkdocs.yml names this file as a hook).

- Documents that stand at the top of the tree (ARCHITECTURE.md ...) are pages, too.
- The navigation may have a place on a page: /PAGE.md#PLACE, with the slash, without which mkdocs refuses it.
- A link to a file of the tree that is no page leads to the repository.
- A row of a table whose first cell is empty goes on with the row above it, so that no line of a document has to be
  long.
- After the build every link and anchor is looked up; one that leads nowhere fails it, and so does a page that the
  navigation does not have.
"""

import os
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from mkdocs.exceptions import Abort
from mkdocs.structure.files import File

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Pages that stand at the top of the tree.
TOP = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
complaints = []


def on_files(files, config):
    """Adds the documents of the top."""
    for name, uri in TOP.items():
        page = File(uri, config["docs_dir"], config["site_dir"], config["use_directory_urls"])
        page.abs_src_path = os.path.join(ROOT, name)
        files.append(page)
    return files


def on_nav(nav, config, files):
    """Every page has its place, and places on pages lead there."""
    lead(nav.items)
    known = {page.file.src_uri for page in nav.pages}
    for page in files.documentation_pages():
        if page.src_uri not in known:
            complaints.append(f"{page.src_uri} is not in the navigation of mkdocs.yml")
    return nav


def lead(items):
    """Makes /PAGE.md#PLACE what a browser needs."""
    for item in items:
        lead(item.children or [])
        if item.is_link and item.url.startswith("/"):
            item.url = item.url[1:].replace(".md#", ".html#")


def on_page_markdown(markdown, page, config, files):
    """Joins rows and leads links to where their files are as pages."""
    here = os.path.relpath(page.file.abs_src_path, ROOT)
    pages = {os.path.relpath(file.abs_src_path, ROOT): file for file in files}
    out, table, in_code = [], [], False
    for line in markdown.split("\n"):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        if in_code:
            out.extend(joined(table))
            table = []
            out.append(line)
            continue
        line = LINK.sub(lambda it: it[1] + target(it[2], here, page.file, pages, config) + it[3], line)
        if line.startswith("|"):
            table.append(line)
            continue
        out.extend(joined(table))
        table = []
        out.append(line)
    out.extend(joined(table))
    return "\n".join(out)


def target(link, here, file, pages, config):
    """Where a link of the document `here` leads as a page."""
    parts = urlsplit(link)
    if parts.scheme or not parts.path:
        return link
    path = os.path.normpath(os.path.join(os.path.dirname(here), unquote(parts.path)))
    if path == "README.md":
        path = "docs/index.md"
    anchor = "#" + parts.fragment if parts.fragment else ""
    folder = os.path.join(path, "README.md")
    if folder in pages:
        path = folder
    if path in pages:
        to = os.path.relpath(pages[path].src_uri, os.path.dirname(file.src_uri) or ".")
        return to + anchor
    if os.path.exists(os.path.join(ROOT, path)):
        kind = "tree" if os.path.isdir(os.path.join(ROOT, path)) else "blob"
        return f"{config['repo_url']}/{kind}/main/{path}{anchor}"
    complaints.append(f"{here} links to {link}, which is not there")
    return link


def cells(row):
    """The cells of a row: a pipe behind a backslash is text."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip())[1:-1]]


def joined(rows):
    """Rows of one table, each in one line."""
    out = []
    for number, row in enumerate(rows):
        these = cells(row)
        if number > 2 and these and not these[0] and any(these):
            for at, cell in enumerate(these):
                out[-1][at] = f"{out[-1][at]} {cell}".strip()
        else:
            out.append(these)
    # Within code a pipe needs no backslash in Python's Markdown, and would show it.
    code = re.compile(r"`[^`]*`")
    return ["| " + " | ".join(code.sub(lambda it: it[0].replace("\\|", "|"), cell) for cell in row) + " |" for row in out]


class Page(HTMLParser):
    """What of a page can be led to, and where it leads."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            if value and ((tag == "a" and name == "href") or (tag in ("img", "script") and name == "src")):
                self.links.append(value)


def on_post_build(config):
    """Resolves every link."""
    site = config["site_dir"]
    pages = {}
    for folder, _, names in os.walk(site):
        for name in names:
            if name.endswith(".html") and name != "404.html":
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    pages[path] = Page(file.read())
    links = 0
    for path, page in sorted(pages.items()):
        here = os.path.relpath(path, site)
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            links += 1
            to = os.path.normpath(os.path.join(os.path.dirname(path), unquote(parts.path))) if parts.path else path
            if os.path.isdir(to):
                to = os.path.join(to, "index.html")
            if not os.path.exists(to):
                complaints.append(f"{here} leads to {link}, which is not there")
            elif parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].ids:
                if parts.fragment != "__codelineno":
                    complaints.append(f"{here} leads to {link}: there is no such place on that page")
    for complaint in dict.fromkeys(complaints):
        print(f"error: {complaint}")
    if complaints:
        raise Abort("there are links that lead nowhere")
    print(f"{len(pages)} pages, {links} links: all lead somewhere")
