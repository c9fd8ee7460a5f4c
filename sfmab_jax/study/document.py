"""A document of texts, tables and pictures, as self-contained HTML and as Markdown."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Heading", "Part", "Picture", "Preformatted", "Table", "Text", "to_html", "to_markdown"]


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Preformatted:
    text: str


@dataclass(frozen=True)
class Table:
    """A table of texts; the first ``labels`` columns are words, the others numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    labels: int
    data: str  # path of the CSV file with all figures


@dataclass(frozen=True)
class Picture:
    """A picture in three files: ``stem`` with .svg, .png and .csv."""

    stem: str
    caption: str
    svg: bytes


Part = Heading | Text | Preformatted | Table | Picture

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 Georgia, serif; color: #111; background: #fff; max-width: 72rem;
       margin: 2rem auto; padding: 0 1rem; }
p, pre { max-width: 62rem; }
h1, h2, th, figcaption, .note { font-family: system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; }
h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #999; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.78rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.12rem 0.4rem; text-align: right; white-space: nowrap; }
th { border-bottom: 2px solid #111; }
td { border-bottom: 1px solid #ddd; }
.label { text-align: left; }
figure { margin: 1.5rem 0; break-inside: avoid; }
img { max-width: 100%; height: auto; }
figcaption, .note { font-size: 0.85rem; color: #333; }
pre { background: #f4f4f4; padding: 0.8rem; overflow-x: auto; font-size: 0.8rem; }
@media print { body { margin: 0; max-width: none; font-size: 10pt; } a { color: #111; }
               .scroll, pre { overflow: visible; } pre { white-space: pre-wrap; }
               table { font-size: 6.5pt; } tr { break-inside: avoid; } }
"""


def to_html(title: str, parts: Sequence[Part]) -> str:
    """Return a page that needs no other file: pictures are embedded, and there are no scripts."""
    body = "\n".join(_part_to_html(part) for part in parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n"
        "</body>\n</html>\n"
    )


def _part_to_html(part: Part) -> str:
    if isinstance(part, Heading):
        return f"<h2>{escape(part.text)}</h2>"
    if isinstance(part, Text):
        return f"<p>{escape(part.text)}</p>"
    if isinstance(part, Preformatted):
        return f"<pre>{escape(part.text)}</pre>"
    if isinstance(part, Table):
        return _table_to_html(part)
    source = base64.b64encode(part.svg).decode()
    links = ", ".join(
        f'<a href="{escape(part.stem)}.{kind}">{kind.upper()}</a>' for kind in ("svg", "png", "csv")
    )
    return (
        f'<figure><img alt="{escape(part.caption)}" src="data:image/svg+xml;base64,{source}">'
        f"<figcaption>{escape(part.caption)} {links}</figcaption></figure>"
    )


def _table_to_html(table: Table) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        words = "".join(f'<{tag} class="label">{escape(c)}</{tag}>' for c in cells[: table.labels])
        numbers = "".join(f"<{tag}>{escape(c)}</{tag}>" for c in cells[table.labels :])
        return f"<tr>{words}{numbers}</tr>"

    rows = "\n".join(row(cells, "td") for cells in table.rows)
    return (
        f'<div class="scroll"><table><thead>{row(table.columns, "th")}</thead>'
        f"<tbody>\n{rows}\n</tbody></table></div>"
        f'<p class="note"><a href="{escape(table.data)}">All figures as CSV</a></p>'
    )


def to_markdown(title: str, parts: Sequence[Part]) -> str:
    """Return the same as Markdown, with links to the pictures."""
    return "\n\n".join([f"# {_escape_markdown(title)}", *map(_part_to_markdown, parts)]) + "\n"


def _part_to_markdown(part: Part) -> str:
    if isinstance(part, Heading):
        return f"## {_escape_markdown(part.text)}"
    if isinstance(part, Text):
        return _escape_markdown(part.text)
    if isinstance(part, Preformatted):
        return "\n".join(f"    {line}" for line in part.text.splitlines())
    if isinstance(part, Table):
        ruler = [":--"] * part.labels + ["--:"] * (len(part.columns) - part.labels)
        lines = [part.columns, ruler, *part.rows]
        table = "\n".join(f"| {' | '.join(map(_escape_markdown, line))} |" for line in lines)
        return f"{table}\n\n[All figures as CSV]({part.data})"
    caption = _escape_markdown(part.caption)
    return f"![{caption}]({part.stem}.svg)\n\n{caption}"


def _escape_markdown(text: str) -> str:
    """Return the text on one line, with Markdown's own characters escaped."""
    line = " ".join(text.split())
    for character in "\\|<>*_`[]":
        line = line.replace(character, f"\\{character}")
    return line
