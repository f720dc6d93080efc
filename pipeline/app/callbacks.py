"""What happens when something on the page changes: the state is collected in the browser, answered, then drawn."""

import re
import uuid
from typing import Any
from urllib.parse import parse_qs

from dash import ALL, MATCH, ClientsideFunction, Dash, Input, Output, Patch, State, ctx, no_update

from pipeline.app import cards
from pipeline.app.answers import Cancelled, Pages, answer
from pipeline.app.configurations import (
    CONFIGURATION_LIMIT,
    DEFAULTS,
    FIRST_VISIT,
    Configuration,
    read_configuration,
)
from pipeline.app.fields import all_fields
from pipeline.errors import UserError

ADDRESS_LIMIT = 32_000
CHOICES = tuple(DEFAULTS)


def register(app: Dash, pages: Pages) -> None:
    """Attach every callback but those of the results tab."""
    from pipeline.app import callbacks_downloads, callbacks_draw

    _clientside(app)
    _structure(app)
    _sections(app)
    _answers(app, pages)
    callbacks_draw.register(app)
    callbacks_downloads.register(app)


def _clientside(app: Dash) -> None:
    def browser(function: str, *places: Any, **more: Any) -> None:
        app.clientside_callback(ClientsideFunction("flopscape", function), *places, **more)

    browser(
        "collect",
        Output("state", "data"),
        Input({"type": "name", "configuration": ALL}, "value"),
        Input({"type": "choice", "configuration": ALL, "group": ALL}, "value"),
        Input("touched", "data"),
    )
    browser("address", Output("sink", "data"), Input("state", "data"), Input("tab", "data"))
    browser("mark", Output("marked", "data"), Input("answers", "data"))
    browser(
        "showTab",
        Output("tab", "data", allow_duplicate=True),
        Output({"type": "tab", "name": ALL}, "aria-selected"),
        Output({"type": "panel", "name": ALL}, "hidden"),
        Input({"type": "tab", "name": ALL}, "n_clicks"),
        Input("tab", "data"),
        State({"type": "tab", "name": ALL}, "id"),
        prevent_initial_call=True,
    )
    browser("scheme", Output("scheme", "data"), Input("scheme-button", "n_clicks"))
    for button, says in (("figure", "title"), ("link", "children"), ("cancel", "title")):
        browser(button, Output(button, says), Input(button, "n_clicks"), prevent_initial_call=True)


def read_address(search: str | None) -> tuple[list[dict[str, Any]], str | None, str]:
    """Return (configurations, tab, what is wrong) of an address; the first visit's pair where it names none."""
    import json

    query = parse_qs((search or "").lstrip("?")[: ADDRESS_LIMIT + 1], max_num_fields=8) if search else {}
    text = (query.get("c") or [""])[0]
    tab = (query.get("tab") or [None])[0]
    first = [dict(each) for each in FIRST_VISIT]
    if not text:
        return first, tab, ""
    try:
        given = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return first, tab, "The address holds no configurations that can be read: the first visit's are shown."
    if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
        return first, tab, "The address holds no configurations: the first visit's are shown."
    over = f"Only the first {CONFIGURATION_LIMIT} configurations are shown." if len(given) > CONFIGURATION_LIMIT else ""
    return given[:CONFIGURATION_LIMIT], tab, over


def new_card(raw: dict[str, Any], position: int) -> Any:
    """Return the card of what an address or another card holds, under an id of its own."""
    configuration = read_configuration({**raw, "id": f"c{uuid.uuid4().hex[:8]}"}, position)
    numbers = raw.get("numbers")
    typed = {str(k): str(v)[:41] for k, v in numbers.items()} if isinstance(numbers, dict) else {}
    known = all_fields(configuration.choices)
    name = str(raw.get("name") or configuration.name)[:61]
    return cards.card(configuration, {k: v for k, v in typed.items() if k in known and v}, name)


def _structure(app: Dash) -> None:
    @app.callback(
        Output("cards", "children"), Output("tab", "data"), Output("notice", "children"), Input("url", "search")
    )
    def begin(search: str | None) -> tuple[list[Any], str, str]:
        from pipeline.app.page import TABS

        given, tab, notice = read_address(search)
        found = [new_card(raw, position) for position, raw in enumerate(given)]
        return found, tab if tab in TABS else "utilisation", notice

    @app.callback(
        Output("cards", "children", allow_duplicate=True),
        Output("notice", "children", allow_duplicate=True),
        Input("add", "n_clicks"),
        Input({"type": "copy", "configuration": ALL}, "n_clicks"),
        Input({"type": "remove", "configuration": ALL}, "n_clicks"),
        State("state", "data"),
        prevent_initial_call=True,
    )
    def change(_add: Any, _copy: Any, _remove: Any, state: Any) -> Any:
        if not ctx.triggered or not ctx.triggered[0]["value"]:
            return no_update, no_update
        present = [each for each in (state or {}).get("configurations") or [] if isinstance(each, dict)]
        trigger = ctx.triggered_id
        children = Patch()
        if isinstance(trigger, dict) and trigger["type"] == "remove":
            place = next((i for i, each in enumerate(present) if each.get("id") == trigger["configuration"]), None)
            if place is None:
                return no_update, no_update
            del children[place]
            return children, ""
        if len(present) >= CONFIGURATION_LIMIT:
            return no_update, f"At most {CONFIGURATION_LIMIT} configurations fit on a page: remove one first."
        raw: dict[str, Any] = {"name": f"Configuration {len(present) + 1}"}
        if isinstance(trigger, dict):
            raw = dict(next((each for each in present if each.get("id") == trigger["configuration"]), raw))
            raw["name"] = re.sub(r"( copy)*$", " copy", str(raw.get("name") or ""))[:60]
        children.append(new_card(raw, len(present)))
        return children, ""


def _sections(app: Dash) -> None:
    depends = {"hardware": ("hardware", "precision"), "topology": ("hardware", "topology")}

    def attach(group: str) -> None:
        names = depends.get(group, (group,))

        @app.callback(
            Output({"type": "section", "configuration": MATCH, "group": group}, "children"),
            *(Input({"type": "choice", "configuration": MATCH, "group": name}, "value") for name in names),
            prevent_initial_call=True,
        )
        def renew(*chosen: str) -> Any:
            choices = read_configuration(dict(zip(names, chosen, strict=True))).choices
            identity = ctx.triggered_id["configuration"] if isinstance(ctx.triggered_id, dict) else ""
            return cards.section(str(identity), group, choices, {})

    for group in ("hardware", "topology", "model", "physics", "economics"):
        attach(group)


def blame(configuration: Configuration, error: UserError) -> tuple[str, str]:
    """Return (field name, reason) of an error that was found after the fields were read: "" = the whole."""
    text = str(error)
    for name in all_fields(configuration.choices):
        key = name.rsplit(".", 1)[1]
        if re.search(rf"(^|[\s.:]){re.escape(key)} = ", text) and name in configuration.numbers:
            return name, text
    return "", text


def _item(raw: Any, position: int, pages: Pages, page: str, revision: int) -> dict[str, Any]:
    configuration = read_configuration(raw, position)
    errors = dict(configuration.errors)
    item: dict[str, Any] = {"id": configuration.id, "raw": raw, "errors": errors, "is_ready": False, "note": ""}
    if any(name != "name" for name in errors):
        item["note"] = "not drawn until the marked values are corrected"
        return item
    try:
        found = answer(configuration, lambda done, total: pages.check(page, revision, done, total))
    except UserError as error:
        name, reason = blame(configuration, error)
        errors[name] = reason
        return item
    item["is_ready"] = True
    if not len(found.feasible["training_flop"]):
        reasons = sorted(set(found.table["infeasible_reason"].tolist()))
        item["note"] = f"no run of this configuration is feasible ({', '.join(map(str, reasons))})"
    return item


def _answers(app: Dash, pages: Pages) -> None:
    @app.callback(Output("answers", "data"), Input("state", "data"), prevent_initial_call=True)
    def respond(state: Any) -> Any:
        if not isinstance(state, dict):
            return no_update
        page, revision = str(state.get("page") or "")[:64], int(state.get("revision") or 0)
        pages.begin(page, revision)
        items = []
        given = [each for each in state.get("configurations") or [] if isinstance(each, dict)][:CONFIGURATION_LIMIT]
        for position, raw in enumerate(given):
            try:
                items.append(_item(raw, position, pages, page, revision))
            except Cancelled:
                if not pages.is_current(page, revision):
                    return no_update
                item = {"id": raw.get("id"), "raw": raw, "errors": {}, "is_ready": False}
                items.append(item | {"note": "cancelled: change a number to run it again"})
        return {"revision": revision, "items": items}
