"""Tables in a console that may be narrow."""

import re
from typing import Optional

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_FIGURE = re.compile(r"\(?[+-]?([\d.]+(e[+-]?\d+)?|nan|inf)\)?")


def print_tables(*tables: Table, console: Optional[Console] = None) -> None:
    """
    Prints tables so that no figure is cut: cells are wrapped between words, and other words also within. Where even
    that is too wide, lines are longer than the console. All texts are shown as they are: square brackets are no markup.

    # Parameters

    tables : `rich.table.Table`
    console : `rich.console.Console`, optional
    """
    console = console or Console()
    for table in tables:
        for column in table.columns:
            words = [word for cell in column.cells for word in str(cell).split()]
            column.min_width = max((len(word) for word in words if _FIGURE.fullmatch(word)), default=1)
            column.overflow = "fold"
        # Rich makes all columns equally narrow before it looks at these widths.
        width = max(column.min_width or 0 for column in table.columns) + len("│  ")
        if width * len(table.columns) + len("│") > console.width:
            table.padding = 0
        # Rich takes these two for markup whatever it is told.
        table.title, table.caption = (text and escape(str(text)) for text in (table.title, table.caption))
        console.print(table, crop=False, markup=False)
