"""`flopscape app`: serve the page, on 127.0.0.1 unless told otherwise."""

import logging
import sys
from pathlib import Path

from pipeline.arguments import Parser
from pipeline.errors import UserError


def main(argv: list[str]) -> int:
    """Run `flopscape app [--host HOST] [--port PORT] [--results ROOT]`."""
    parser = Parser(prog="flopscape app", description="The interactive simulator, in a browser.")
    parser.add_argument("--host", default="127.0.0.1", help="address to serve on (default: this machine alone)")
    parser.add_argument("--port", type=int, default=8050, help="port; 0 = any free one (default: 8050)")
    parser.add_argument("--results", type=Path, default=Path("outputs"), help="folder of results (default: outputs)")
    options = parser.parse_args(argv)
    from werkzeug.serving import make_server

    from pipeline.app.server import allow_hosts, create_app

    app = create_app(options.results)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    try:
        server = make_server(options.host, options.port, app.server, threaded=True)
    except (OSError, SystemExit) as error:
        raise UserError(
            f"command line: --host {options.host} --port {options.port}: cannot be served on ({error}); "
            "choose another --port, or 0 for any free one"
        ) from error
    allow_hosts(app.server, options.host, server.server_port)
    shown = f"[{options.host}]" if ":" in options.host else options.host
    print(f"Flopscape: http://{shown}:{server.server_port}/ (Ctrl+C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("flopscape: app ended", file=sys.stderr)
    return 0
