"""The weights of layer mixes as tables for the console."""

from typing import List, Optional, Sequence

from rich.console import Console
from rich.table import Table

from elmo_tasks.commands.console_tables import print_tables
from elmo_tasks.commands.mix_weights import MixWeights, grouped, spread


def print_mixes(mixes: List[MixWeights], num_tokens: int, console: Optional[Console] = None) -> None:
    """
    # Parameters

    mixes : `List[MixWeights]`
    num_tokens : `int`
        How many tokens of a token-dependent mix are shown.
    console : `rich.console.Console`, optional
    """
    tables = [_models_table(group) for group in grouped(mixes)]
    tables += [_tokens_table(mix, num_tokens) for mix in mixes if mix.tokens]
    print_tables(*tables, console=console)


def _models_table(group: List[MixWeights]) -> Table:
    """A row for each model, and what they have in common."""
    table = _table(group[0].mix, ["model"], len(group[0].weights), "gamma")
    for mix in group:
        table.add_row(mix.path, *_figures([*mix.weights, mix.gamma]))
    if len(group) > 1:
        table.add_section()
        _, _, mean, standard_deviation = spread(group)
        table.add_row("mean", *_figures(mean))
        table.add_row("standard deviation", *_figures(standard_deviation))
    return table


def _tokens_table(mix: MixWeights, num_tokens: int) -> Table:
    tokens = mix.tokens or []
    title = f"the tokens of {mix.path} that differ most from the mean"
    table = _table(title, ["token", "count"], len(mix.weights), "difference")
    for token, count, weights, difference in tokens[:num_tokens]:
        table.add_row(token, str(count), *_figures([*weights, difference]))
    return table


def _table(title: str, first_columns: List[str], num_layers: int, last_column: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first_columns[0])
    for column in [*first_columns[1:], *(f"layer {layer}" for layer in range(num_layers)), last_column]:
        table.add_column(column, justify="right")
    return table


def _figures(values: Sequence[float]) -> List[str]:
    return [f"{value:.4f}" for value in values]
