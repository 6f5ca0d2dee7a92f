import io

import pytest
from rich.console import Console
from rich.table import Table

from elmo_tasks.commands.console_tables import print_tables

NAME = "data_efficiency_1_percent"
FIGURES = ["0.7631 ± 0.0021", "0.7605 to 0.7657", "+0.0123 (-0.0010 to +0.0256)"]


def printed(width):
    """Two metrics of a comparison, as lines; and the lines without those of the table, as a column each."""
    table = Table(title="5 seeds")
    table.add_column("name")
    for column in ["test_accuracy", "95 % interval", "difference", "test_f1", "95 % interval", "difference"]:
        table.add_column(column, justify="right")
    table.add_row(NAME, *FIGURES, *FIGURES)
    output = io.StringIO()
    print_tables(table, console=Console(file=output, width=width))
    lines = output.getvalue().splitlines()
    rows = [line.strip("│").split("│") for line in lines if line.startswith("│")]
    return lines, [[cell.strip() for cell in column] for column in zip(*rows)]


@pytest.mark.parametrize("width", [30, 60, 80, 100, 200])
def test_no_figure_is_cut_and_no_part_of_a_name_is_lost(width):
    _, (name, *figures) = printed(width)
    assert "".join(name) == NAME
    assert [" ".join(cells).split() for cells in figures] == [figure.split() for figure in [*FIGURES, *FIGURES]]


@pytest.mark.parametrize("figure", ["3.162e-05", "-1.5e+10", "(+1e-07)", "nan", "+nan", "-inf"])
def test_no_figure_is_cut_however_it_is_written(figure):
    table = Table(*["a long name"] * 8)
    table.add_row(*[figure] * 8)
    output = io.StringIO()
    print_tables(table, console=Console(file=output, width=30))
    assert output.getvalue().count(figure) == 8


@pytest.mark.parametrize("width", [80, 200])
def test_two_metrics_fit_into_eighty_columns(width):
    lines, _ = printed(width)
    assert max(map(len, lines)) <= width


def test_square_brackets_are_text_everywhere():
    table = Table(title="[red]title", caption="caption [a]")
    table.add_column("column [b]")
    table.add_row("[c]")
    table.add_row("\\[d]")
    output = io.StringIO()
    print_tables(table, console=Console(file=output, width=80))
    for text in ("[red]title", "caption [a]", "column [b]", "[c]", "\\[d]"):
        assert text in output.getvalue()


def test_names_of_columns_are_wrapped_too():
    text = "".join(line for line in printed(80)[0] if line.startswith("┃"))
    assert "…" not in text
    assert text.count("interval") == 2
