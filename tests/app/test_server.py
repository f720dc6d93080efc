"""Who is answered, and what the browser is told."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.app.answers import Cancelled, Pages
from pipeline.app.server import REQUEST_BYTE_LIMIT, allow_hosts, create_app


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    app = create_app(tmp_path_factory.mktemp("results"))
    allow_hosts(app.server, "127.0.0.1", 8050)  # pyright: ignore[reportArgumentType]
    return app.server.test_client()  # pyright: ignore[reportAttributeAccessIssue]


BASE = "http://127.0.0.1:8050"


def test_own_address_is_answered_with_a_strict_policy(client: Any) -> None:
    response = client.get("/", base_url=BASE)
    assert response.status_code == 200
    policy = response.headers["Content-Security-Policy"]
    assert "connect-src 'self'" in policy and "unsafe-eval" not in policy
    assert b"https://" not in response.data


@pytest.mark.parametrize("host", ["http://evil.example:8050", "http://127.0.0.1:9", "http://evil.example"])
def test_other_names_are_refused(client: Any, host: str) -> None:
    response = client.get("/", base_url=host)
    assert response.status_code == 403 and b"refused" in response.data


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8050"])
def test_other_origins_are_refused(client: Any, origin: str) -> None:
    response = client.post("/cancel/x", base_url=BASE, headers={"Origin": origin})
    assert response.status_code == 403
    assert client.post("/cancel/x", base_url=BASE, headers={"Origin": BASE}).status_code == 200


def test_large_requests_are_refused(client: Any) -> None:
    body = b"x" * (REQUEST_BYTE_LIMIT + 1)
    response = client.post("/_dash-update-component", base_url=BASE, data=body, content_type="application/json")
    assert response.status_code == 413


@pytest.mark.parametrize("path", ["/assets/../server.py", "/assets/%2e%2e/server.py", "/assets//etc/passwd"])
def test_assets_cannot_be_left(client: Any, path: str) -> None:
    response = client.get(path, base_url=BASE)
    assert b"def create_app" not in response.data and b"root:" not in response.data


def test_newer_question_and_cancel_end_the_older_of_one_page_alone() -> None:
    pages = Pages()
    pages.begin("a", 1)
    pages.begin("b", 1)
    pages.check("a", 1, 3, 10)
    assert pages.progress("a") == (3, 10) and pages.progress("b") == (0, 1)
    pages.begin("a", 2)
    with pytest.raises(Cancelled):
        pages.check("a", 1, 4, 10)
    pages.begin("a", 1)  # an older question that arrives late ends nothing
    pages.check("a", 2, 1, 10)
    pages.cancel("a")
    with pytest.raises(Cancelled):
        pages.check("a", 2, 1, 10)
    pages.check("b", 1, 1, 10)


def test_results_root_may_be_absent(tmp_path: Path) -> None:
    create_app(tmp_path / "nowhere")
