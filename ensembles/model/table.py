"""Tables of the commands: as narrow as their contents, for terminals of 80 columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ensembles.model.wrapped import WIDTH


def table_text(
    headers: Sequence[str], rows: Sequence[Sequence[object]], left: int | Collection[int] = 1
) -> str:
    """Format a table.

    `headers`: may have several lines; those of all columns end in the same line.
    `left`: columns that are aligned to the left: the first ones, or those with these indices. The others are
    aligned to the right.
    """
    columns = range(left) if isinstance(left, int) else left
    heads = [header.split("\n") for header in headers]
    high = max(map(len, heads))
    padded_heads = zip(*([""] * (high - len(head)) + head for head in heads), strict=True)
    cells = [[str(cell).strip() for cell in row] for row in (*padded_heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]

    def line(texts: Sequence[str]) -> str:
        padded = (
            text.ljust(width) if at in columns else text.rjust(width)
            for at, (text, width) in enumerate(zip(texts, widths, strict=True))
        )
        return "  ".join(padded).rstrip()

    return "\n".join(
        [*map(line, cells[:high]), "  ".join("-" * width for width in widths), *map(line, cells[high:])]
    )


def first_that_fits(tables: Iterable[str]) -> str:
    """Return the first text that is as wide as a terminal at most, else the last one.

    `tables`: at least one; the best first. None is made after the one that fits.
    """
    text = ""
    for text in tables:
        if text_width(text) <= WIDTH:
            break
    return text


def columns_text(
    headers: Sequence[str], rows: Sequence[Sequence[object]], left: Collection[int], shown: Sequence[int]
) -> str:
    """Format a table of some of its columns, which are given by their indices, as those to the left are."""
    return table_text(
        [headers[at] for at in shown],
        [[row[at] for at in shown] for row in rows],
        [place for place, at in enumerate(shown) if at in left],
    )


def folded_table_text(
    headers: Sequence[str],
    rows: Sequence[Sequence[object]],
    left: int | Collection[int] = 1,
    together: Sequence[int] = (),
    first: int = 1,
) -> str:
    """Format a table that is as wide as a terminal at most, if need be as several, one below the other.

    `together`: numbers of columns, after the first ones, that are in one table if they fit into it; empty:
    one each.

    A table that has only one further column may be wider.
    """
    left = range(left) if isinstance(left, int) else left
    whole = table_text(headers, rows, left)
    if text_width(whole) <= WIDTH:
        return whole

    def part(columns: Sequence[int]) -> str:
        return columns_text(headers, rows, left, [*range(first), *columns])

    tables: list[list[int]] = []
    at = first
    for count in together or [1] * (len(headers) - first):
        block = list(range(at, at + count))
        at += count
        fits = text_width(part(block)) <= WIDTH
        for columns in [block] if fits else [[column] for column in block]:
            if tables and text_width(part(tables[-1] + columns)) <= WIDTH:
                tables[-1] += columns
            else:
                tables.append(columns)
    return "\n\n".join(part(columns) for columns in tables)


def text_width(text: str) -> int:
    """Return the number of characters of the longest line of a text."""
    return max(map(len, text.split("\n")))
