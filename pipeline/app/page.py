"""What stands on the page before anything is computed."""

from pathlib import Path
from typing import Any

from dash import dcc, html

from pipeline.app.sandbox import result_names
from pipeline.columns import GLOSSARY
from pipeline.figures import AXES, GRAPH

TABS = {
    "utilisation": "Utilisation",
    "parallelism": "Parallelism",
    "largest": "Largest run",
    "cost": "Cost and energy",
    "bottlenecks": "Bottlenecks",
    "run": "One run",
    "results": "Results",
}
INTRODUCTION = (
    "On each kind of cluster, how well do ever larger three-month training runs still use their chips: where a line "
    "bends down, moving data takes over from computing. Drag or type any number to see what moves that point; add and "
    "copy configurations to compare them."
)
CAVEAT = {
    "epoch2024": "Physics epoch2024: multilayer perceptrons, no attention, no failures: higher than in practice.",
    "calibrated": "Physics calibrated: held against measured training runs.",
}
OVERLAP = {"epoch2024": "Physics epoch2024 lets parts of a step overlap: their shares can add up to more than 1."}
BASES = (
    "total_usd",
    "purchase_usd",
    "amortised_hardware_usd",
    "decayed_hardware_usd",
    "cloud_usd",
    "energy_usd",
    "energy_j",
    "emissions_kg",
    "site_power_w",
)


def _radio(identity: str, options: dict[str, str], value: str) -> dcc.RadioItems:
    return dcc.RadioItems(options=options, value=value, id=identity, inline=True)


def _menu(identity: str, label: str, options: Any, value: Any = None, **more: Any) -> html.Div:
    return html.Div(
        [html.Label(label), dcc.Dropdown(options=options, value=value, id=identity, clearable=False, **more)],
        className="menu",
    )


def _graph(identity: str) -> dcc.Graph:
    return dcc.Graph(id=identity, config=GRAPH, figure={"layout": {"height": 480}})


def _panel(name: str, content: list[Any]) -> html.Div:
    return html.Div(
        content, id={"type": "panel", "name": name}, className="panel", role="tabpanel", hidden=name != "utilisation"
    )


def _results_panel(results: Path) -> list[Any]:
    names = result_names(results)
    return [
        html.P(f"Results under {results}; a sweep's folder or a Parquet file.", className="note"),
        html.Div(
            [
                _menu("results-name", "Results", names, names[-1] if names else None),
                _menu("results-columns", "Columns", [], None, multi=True),
                _menu("results-x", "Plot across", []),
                _menu("results-y", "Plot up", []),
            ],
            className="controls",
        ),
        html.Label("Filter (an SQL condition, such as is_feasible and training_flop > 1e25)"),
        dcc.Input(type="text", id="results-filter", debounce=True, className="wide", maxLength=2000),
        html.Details(
            [
                html.Summary("Write SQL"),
                dcc.Textarea(
                    id="results-sql",
                    className="wide",
                    spellCheck=False,
                    value="select hardware, count(*) as rows\nfrom points group by all",
                ),
                html.Button("Run SQL", id="results-run"),
            ],
            open=True,
        ),
        html.Div(id="results-error", className="error", role="alert"),
        html.Div(
            [html.Button("CSV", id="results-csv"), html.Button("Parquet", id="results-parquet")], className="buttons"
        ),
        _graph("results-graph"),
        html.Div(id="results-table", className="scroll"),
        dcc.Store(id="results-asked"),
    ]


def _panels(results: Path) -> list[Any]:
    share: dict[str, Any] = {"min": 0.3, "max": 0.99, "step": 0.01, "value": 0.8}
    bases = [{"label": f"{each.replace('_', ' ')}: {GLOSSARY[each].meaning}", "value": each} for each in BASES]
    return [
        _panel(
            "utilisation", [html.Div([html.Label("Across"), _radio("x", AXES, "training_flop")]), _graph("utilisation")]
        ),
        _panel(
            "parallelism",
            [_radio("parallelism-kind", {"share": "shares", "degree": "degrees"}, "share"), _graph("parallelism")],
        ),
        _panel(
            "largest",
            [
                html.Label("Utilisation counts as linear from this share of what large matmuls reach"),
                dcc.Slider(id="linear-share", updatemode="drag", marks={0.3: "30%", 0.8: "80%", 0.99: "99%"}, **share),
                html.Div(id="largest", className="scroll"),
            ],
        ),
        _panel(
            "cost",
            [
                html.Div(
                    [
                        _menu("basis", "Basis", bases, "total_usd"),
                        _menu("baseline", "Baseline of the ratios", []),
                        _menu("cost-flop", "Size of the run in the table", []),
                    ],
                    className="controls",
                ),
                _graph("cost"),
                html.Div(id="cost-table", className="scroll"),
            ],
        ),
        _panel("bottlenecks", [_graph("bottlenecks"), html.P(id="overlap", className="note")]),
        _panel(
            "run",
            [
                html.Div(
                    [_menu("run-configuration", "Configuration", []), _menu("run-point", "Run", [])],
                    className="controls",
                ),
                html.Div(id="run", className="scroll"),
            ],
        ),
        _panel("results", _results_panel(results)),
    ]


def layout(results: Path) -> html.Div:
    """Return the page."""
    tabs = [
        html.Button(
            title,
            id={"type": "tab", "name": name},
            role="tab",
            className="view",
            **{"aria-selected": "true" if name == "utilisation" else "false"},  # pyright: ignore[reportArgumentType]
        )
        for name, title in TABS.items()
    ]
    downloads = [
        html.Button("CSV", id="csv", title="every column of every configuration, as text"),
        html.Button("Parquet", id="parquet", title="the same with units and meanings in the file"),
        html.Button("Figure", id="figure", title="the figure on view, as SVG"),
        html.Button("Copy link", id="link", title="the address reproduces this page"),
    ]
    return html.Div(
        [
            dcc.Location(id="url", refresh=False),
            dcc.Store(id="state"),
            dcc.Store(id="touched"),  # counts changes of fields
            dcc.Store(id="answers"),
            dcc.Store(id="marked"),
            dcc.Store(id="tab", data="utilisation"),
            dcc.Store(id="scheme", data="light"),
            dcc.Store(id="sink"),
            dcc.Download(id="download"),
            dcc.Download(id="download-results"),
            html.Header(
                [
                    html.H1("Flopscape"),
                    html.Button("Light or dark", id="scheme-button"),
                    html.P(INTRODUCTION, id="introduction"),
                ]
            ),
            html.Div(
                [
                    html.Div(
                        [
                            html.Div(id="cards"),
                            html.Button("Add a configuration", id="add"),
                            html.Div(id="notice", className="error"),
                        ],
                        className="side",
                    ),
                    html.Main(
                        [
                            html.Div(tabs, role="tablist", className="tabs"),
                            html.Div(downloads, className="buttons downloads"),
                            html.Div(
                                [html.Progress(id="progress", max="100"), html.Button("Cancel", id="cancel")],
                                id="working",
                                role="status",
                                hidden=True,
                            ),
                            *_panels(results),
                            html.P(id="caveat", className="note"),
                        ]
                    ),
                ],
                className="columns",
            ),
        ],
        id="page",
    )
