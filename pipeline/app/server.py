"""The web application: who may talk to it, what the browser may do, and the few addresses beside Dash's own."""

import socket
from pathlib import Path
from typing import Any

import flask
from dash import Dash

from pipeline.app.answers import Pages

REQUEST_BYTE_LIMIT = 1 << 20
EVERY_ADDRESS = ("0.0.0.0", "::")
HOSTS = "FLOPSCAPE_HOSTS"


def create_app(results: Path) -> Dash:
    """Return the application; `results` is the only folder that the results tab can see."""
    from pipeline.app import callbacks, callbacks_results, page

    app = Dash(
        "flopscape",
        assets_folder=str(Path(__file__).parent / "assets"),
        title="Flopscape",
        update_title="",
        serve_locally=True,
        suppress_callback_exceptions=True,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
    )
    pages = Pages()
    app.layout = lambda: page.layout(results)  # anew for each visit: results may have been added
    callbacks.register(app, pages)
    callbacks_results.register(app, results)
    server: flask.Flask = app.server  # pyright: ignore[reportAssignmentType]
    server.config["MAX_CONTENT_LENGTH"] = REQUEST_BYTE_LIMIT
    server.config[HOSTS] = {"localhost", "127.0.0.1"}
    _guard(server, app)
    _progress(server, pages)
    return app


def allow_hosts(server: flask.Flask, host: str, port: int) -> None:
    """Answer only requests that name this address: another site's page cannot reach the app by a name of its own."""
    names = {"localhost", "127.0.0.1", "[::1]", f"[{host}]" if ":" in host else host}
    if host in EVERY_ADDRESS:
        names |= {socket.gethostname(), socket.getfqdn(), *_own_addresses()}
    server.config[HOSTS] = {f"{name}:{port}" for name in names}


def _own_addresses() -> set[str]:
    try:
        return {str(each[4][0]) for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    except OSError:
        return set()


def _guard(server: flask.Flask, app: Dash) -> None:
    @server.before_request
    def refuse_strangers() -> Any:
        allowed = server.config[HOSTS]
        host = flask.request.host
        if host not in allowed:
            return _refusal(f"this address is not served under the name {host[:80]}")
        origin = flask.request.headers.get("Origin")
        if origin is not None and origin != f"http://{host}":
            return _refusal(f"requests from {origin[:80]} are not answered")
        if flask.request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") and flask.request.method != "GET":
            return _refusal("requests from other sites are not answered")
        if (flask.request.content_length or 0) > REQUEST_BYTE_LIMIT:
            return flask.Response(f"larger than {REQUEST_BYTE_LIMIT} bytes\n", 413, mimetype="text/plain")
        return None

    @server.after_request
    def tell_browser(response: flask.Response) -> flask.Response:
        scripts = " ".join(["'self'", *app.csp_hashes()])
        response.headers["Content-Security-Policy"] = (
            f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
            "font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; object-src 'none'; "
            "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
        )
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return response


def _refusal(reason: str) -> flask.Response:
    return flask.Response(f"refused: {reason}\n", 403, mimetype="text/plain")


def _progress(server: flask.Flask, pages: Pages) -> None:
    @server.get("/progress/<page>")
    def progress(page: str) -> Any:
        done, total = pages.progress(page)
        return flask.jsonify(done=done, total=total)

    @server.post("/cancel/<page>")
    def cancel(page: str) -> Any:
        pages.cancel(page)
        return flask.jsonify(cancelled=True)
