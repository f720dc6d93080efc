"""Figures and tables of the configurations."""

from typing import Any

from dash import Dash, Input, Output, State, no_update

from pipeline.app import tabs
from pipeline.app.page import BASES, CAVEAT, OVERLAP
from pipeline.columns import GLOSSARY
from pipeline.figures import (
    AXES,
    Series,
    bottleneck_figure,
    finish,
    line_figure,
    parallelism_figure,
    utilisation_figure,
)


def _empty(is_dark: bool) -> Any:
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.add_annotation(text="no feasible run to draw", showarrow=False, x=0.5, y=0.5, xref="paper", yref="paper")
    return finish(figure, is_dark=is_dark)


def register(app: Dash) -> None:
    """Attach the callbacks of all tabs but the results'."""
    _figures(app)
    _tables(app)
    _one_run(app)


def _figures(app: Dash) -> None:
    def attach(tab: str, draw: Any, *controls: Input) -> None:
        @app.callback(
            Output(tab, "figure"),
            Input("answers", "data"),
            Input("tab", "data"),
            Input("scheme", "data"),
            *controls,
            prevent_initial_call=True,
        )
        def renew(answers: Any, shown: str, scheme: str, *values: Any) -> Any:
            if shown != tab or not answers:
                return no_update
            found = tabs.series(answers)
            return draw(found, scheme == "dark", *values) if found else _empty(scheme == "dark")

    def axis(x: Any) -> str:
        return x if x in AXES else "training_flop"

    def main_axis(found: list[Series]) -> str:
        """Return accelerators where no configuration has more than one size of run."""
        alone = all(len(set(each.values("training_flop").tolist())) == 1 for each in found)
        return "accelerator_count" if alone else "training_flop"

    attach(
        "utilisation",
        lambda found, dark, x: utilisation_figure(
            found, main_axis(found) if x == "training_flop" else axis(x), is_dark=dark
        ),
        Input("x", "value"),
    )
    attach(
        "parallelism",
        lambda found, dark, kind: parallelism_figure(found, kind, main_axis(found), is_dark=dark),
        Input("parallelism-kind", "value"),
    )
    attach("bottlenecks", lambda found, dark: bottleneck_figure(found, main_axis(found), is_dark=dark))

    def cost(found: list[Series], dark: bool, basis: str) -> Any:
        basis = basis if basis in BASES else BASES[0]
        column = GLOSSARY[basis]
        return line_figure(found, main_axis(found), basis, f"{basis.replace('_', ' ')}, {column.unit}", is_dark=dark)

    attach("cost", cost, Input("basis", "value"))


def _tables(app: Dash) -> None:
    @app.callback(
        Output("largest", "children"),
        Input("answers", "data"),
        Input("tab", "data"),
        Input("linear-share", "value"),
        prevent_initial_call=True,
    )
    def largest(answers: Any, tab: str, share: Any) -> Any:
        if tab != "largest" or not answers:
            return no_update
        return tabs.largest_table(answers, min(max(float(share or 0.8), 0.01), 1.0))

    @app.callback(
        Output("baseline", "options"),
        Output("baseline", "value"),
        Output("cost-flop", "options"),
        Output("cost-flop", "value"),
        Input("answers", "data"),
        State("baseline", "value"),
        State("cost-flop", "value"),
        prevent_initial_call=True,
    )
    def menus(answers: Any, baseline: Any, flop: Any) -> Any:
        found = [{"label": each.name, "value": each.id} for each, _, _ in tabs.shown(answers)]
        ids = [each["value"] for each in found]
        sizes = [f"{size:.4g}" for size in tabs.sizes(answers)]
        near = min(sizes, key=lambda size: abs(float(size) - 2.1e25), default=None)
        chosen = baseline if baseline in ids else (ids[-1] if ids else None)
        return found, chosen, sizes, flop if flop in sizes else near

    @app.callback(
        Output("cost-table", "children"),
        Input("answers", "data"),
        Input("tab", "data"),
        Input("baseline", "value"),
        Input("cost-flop", "value"),
        prevent_initial_call=True,
    )
    def costs(answers: Any, tab: str, baseline: Any, flop: Any) -> Any:
        if tab != "cost" or not answers or not flop:
            return no_update
        return tabs.cost_table(answers, float(flop) * (1 - 5e-4), str(baseline), BASES)

    @app.callback(
        Output("caveat", "children"),
        Output("overlap", "children"),
        Input("answers", "data"),
        prevent_initial_call=True,
    )
    def caveats(answers: Any) -> tuple[str, ...]:
        kinds = sorted({each.choices["physics"] for each, _, _ in tabs.shown(answers)})
        return tuple(" ".join(texts[kind] for kind in kinds if kind in texts) for texts in (CAVEAT, OVERLAP))


def _one_run(app: Dash) -> None:
    @app.callback(
        Output("run-configuration", "options"),
        Output("run-configuration", "value"),
        Input("answers", "data"),
        State("run-configuration", "value"),
        prevent_initial_call=True,
    )
    def configurations(answers: Any, chosen: Any) -> Any:
        found = [{"label": each.name, "value": each.id} for each, _, _ in tabs.shown(answers)]
        ids = [each["value"] for each in found]
        return found, chosen if chosen in ids else (ids[0] if ids else None)

    @app.callback(
        Output("run-point", "options"),
        Output("run-point", "value"),
        Input("answers", "data"),
        Input("run-configuration", "value"),
        State("run-point", "value"),
        prevent_initial_call=True,
    )
    def runs(answers: Any, identity: Any, chosen: Any) -> Any:
        found = tabs.points(answers, identity)
        ids = [each["value"] for each in found]
        return found, chosen if chosen in ids else (ids[len(ids) // 2] if ids else None)

    @app.callback(
        Output("run-configuration", "value", allow_duplicate=True),
        Output("run-point", "value", allow_duplicate=True),
        Output("tab", "data", allow_duplicate=True),
        Input("utilisation", "clickData"),
        State("answers", "data"),
        prevent_initial_call=True,
    )
    def click(clicked: Any, answers: Any) -> Any:
        try:
            point = clicked["points"][0]
            curve, scenario = int(point["curveNumber"]), int(point["customdata"][0])
            position = tabs.series(answers)[curve].position
            identity = answers["items"][position]["id"]
        except (KeyError, IndexError, TypeError, ValueError):
            return no_update, no_update, no_update
        return identity, scenario, "run"

    @app.callback(
        Output("run", "children"),
        Input("answers", "data"),
        Input("tab", "data"),
        Input("run-configuration", "value"),
        Input("run-point", "value"),
        prevent_initial_call=True,
    )
    def run(answers: Any, tab: str, identity: Any, scenario: Any) -> Any:
        known = {each["value"] for each in tabs.points(answers, identity)} if tab == "run" else set()
        if tab != "run" or not answers:
            return no_update
        return tabs.run_page(answers, identity, scenario if scenario in known else None)
