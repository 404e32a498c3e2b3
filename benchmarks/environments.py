"""One virtual environment for each adapter, made from peers/<adapter>.txt; made anew when that file changes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PEERS = Path(__file__).parent / "peers"


def python_of(adapter: str, folder: Path) -> Path:
    """The interpreter that runs `adapter`: this one, where the adapter has no list of requirements."""
    requirements = PEERS / f"{adapter}.txt"
    if not requirements.is_file():
        return Path(sys.executable)
    environment = folder / adapter
    python, stamp = environment / "bin" / "python", environment / "installed.txt"
    if not stamp.is_file() or stamp.read_text() != requirements.read_text():
        print(f"making the environment of {adapter}", flush=True)
        shutil.rmtree(environment, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "-r", str(requirements)], check=True)
        shutil.copyfile(requirements, stamp)
    return python
