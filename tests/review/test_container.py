"""The steps of Dockerfile and compose.yaml, run without Docker: what is copied, installed, started and checked."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
pytest.importorskip("uvicorn", reason="pip install 'longtail[serve]'")

from longtail.data.dataset import Dataset  # noqa: E402
from longtail.methods import create_method  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="containers are Linux")]
ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
TOKEN = "0123456789abcdef0123"
SIGNS_OF_NO_NETWORK = ("No matching distribution", "NewConnectionError", "name resolution", "Connection refused")


def instructions() -> list[tuple[str, str]]:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines if line and not line.startswith("#")]


def only(name: str) -> str:
    [arguments] = [arguments for instruction, arguments in instructions() if instruction == name]
    return arguments


@pytest.fixture
def data(tiny: Callable[..., Dataset], tmp_path: Path) -> Path:
    """The folder that the container works in: a model and tokens."""
    create_method("linear").fit(tiny().train).save(tmp_path / "data" / "model")
    (tmp_path / "data" / "tokens.txt").write_text(f"review anna {TOKEN}\n")
    return tmp_path / "data"


def test_what_is_copied_is_all_that_the_installation_needs(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.mkdir()
    for _, arguments in [one for one in instructions() if one[0] == "COPY"]:
        *sources, target = arguments.split()
        for source in sources:
            assert f"!{source}" in (ROOT / ".dockerignore").read_text().split()
            if (ROOT / source).is_dir():
                shutil.copytree(
                    ROOT / source, image / target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
                )
            else:
                shutil.copy(ROOT / source, image / target)
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    site = next((environment / "lib").glob("python*/site-packages"))
    (site / "installed.pth").write_text(sysconfig.get_path("purelib"))  # what is installed here need not be fetched
    install = shlex.split(next(arguments for name, arguments in instructions() if arguments.startswith("pip install")))
    command = [str(environment / "bin" / "python"), "-m", *install]
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    ran = subprocess.run(command, cwd=image, env=environ, capture_output=True, text=True, check=False)
    if ran.returncode and any(sign in ran.stderr for sign in SIGNS_OF_NO_NETWORK):
        pytest.skip("packages cannot be fetched: no network")
    assert ran.returncode == 0, ran.stderr
    program = environment / "bin" / only("ENTRYPOINT").strip('[]"')
    said = subprocess.run([str(program), "serve", "--help"], capture_output=True, text=True, env=environ, check=True)
    assert "--tokens" in said.stdout


def test_the_command_of_the_image_serves_and_its_check_sees_it(data: Path) -> None:
    command = json.loads(only("CMD"))
    check = json.loads(only("HEALTHCHECK").partition("CMD ")[2])
    with started(command, data) as port:
        wait_until_healthy(check, port)
    assert check_code(check, port) != 0


def test_the_desk_of_the_compose_file_works_with_postgresql(data: Path, postgresql: str) -> None:
    import httpx2

    psycopg = pytest.importorskip("psycopg", reason="needs pip install 'longtail[review]'")
    pytest.importorskip("longtail.review.page")

    with psycopg.connect(postgresql.format("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE container")
    services = COMPOSE["services"]
    name = services["database"]["environment"]
    address = f"postgresql://{name['POSTGRES_USER']}:${{POSTGRES_PASSWORD}}@database/{name['POSTGRES_DB']}"
    command = [word.replace(address, postgresql.format("container")) for word in services["longtail"]["command"]]
    assert any("container" in word for word in command)
    check = json.loads(only("HEALTHCHECK").partition("CMD ")[2])
    with started(command, data) as port:
        wait_until_healthy(check, port)
        url, headers = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {TOKEN}"}
        assert httpx2.post(f"{url}/v1/tag", json={"texts": ["a"]}).status_code == 401
        assert httpx2.post(f"{url}/v1/tag", json={"texts": ["a"]}, headers=headers).status_code == 200


def test_mounted_files_lie_where_the_command_looks_for_them() -> None:
    folder = [arguments for name, arguments in instructions() if name == "WORKDIR"][-1]
    service = COMPOSE["services"]["longtail"]
    mounted = {volume.split(":")[1] for volume in service["volumes"]}
    assert mounted == {f"{folder}/model", f"{folder}/tokens.txt"}
    assert {"model", "--tokens=tokens.txt"} <= set(service["command"])
    assert service["ports"] == [f"127.0.0.1:{only('EXPOSE')}:{only('EXPOSE')}"]
    assert COMPOSE["services"]["database"]["healthcheck"]["test"][1] == "pg_isready"


@contextmanager
def started(command: list[str], folder: Path) -> Iterator[int]:
    """Run `longtail` with the words of a command in a folder, at a free port; yield the port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    words = [re.sub(r"\b8000\b", str(port), word) for word in command]
    process = subprocess.Popen([sys.executable, "-m", "longtail", *words], cwd=folder)
    try:
        yield port
    finally:
        process.terminate()
        assert process.wait(60) == 0


def check_code(check: list[str], port: int) -> int:
    assert check[0] == "python"
    words = [sys.executable, *(word.replace("8000", str(port)) for word in check[1:])]
    return subprocess.run(words, capture_output=True, check=False).returncode


def wait_until_healthy(check: list[str], port: int) -> None:
    end = time.monotonic() + 120
    while check_code(check, port):
        assert time.monotonic() < end
        time.sleep(0.2)
