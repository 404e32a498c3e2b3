"""How long `longtail predict` takes on a saved model, beside the import of its libraries: python benchmarks/startup.py

Trains on the bundled data set (once), then runs each of these as a process of its own, in turn, and takes medians:

    python                   the interpreter alone
    import longtail          must stay under 0.3 s
    libraries                import of numpy, scipy.sparse, numba, pyarrow, pydantic, typer and rich
    what it loads            import of exactly those modules of other packages that the command loads
    longtail predict         a model is opened and two texts are tagged

`--first-run` measures something else and changes nothing else in the results: what a process compiles when nothing was
compiled before, as `first_run`: seconds of processor time (steadier than wall time where others use the cores), and of
the same training and tagging when kernels are there.

Results: results/startup.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "startup.json"
LIBRARIES = "numpy, scipy.sparse, numba, pyarrow, pydantic, typer, rich"
PREDICT = "from longtail.cli.main import main; main(['predict', {model!r}, {texts!r}])"
# As installed: Python keeps what it compiled of longtail, as pip does for the libraries.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
IMPORTS = """
from importlib import import_module
for name in {names}:
    try:
        import_module(name)
    except ImportError:
        pass  # a name that a package gave to something that is no module
"""
FIRST_RUN = """
import json, time
from numba.core import event
import longtail

class Compiling(event.Listener):
    depth, n, seconds = 0, 0, 0.0
    def on_start(self, happening):
        if self.depth == 0:
            self.began = time.process_time()
        self.depth += 1
    def on_end(self, happening):
        self.depth -= 1
        self.n += 1
        if self.depth == 0:
            self.seconds += time.process_time() - self.began

compiling = Compiling()
event.register("numba:compile", compiling)
data = longtail.load_dataset("debtags-sample")
start = time.process_time()
model = longtail.Linear().fit(data.train, threads=1)
model.predict(data.dev.texts["text"], threads=1)
model.predict(["a text editor"])
print(json.dumps({"compiling_s": compiling.seconds, "n_functions": compiling.n, "all_s": time.process_time() - start}))
"""
OWN = ("longtail", "__main__", "encodings")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--first-run", action="store_true", help="measure only what the first run compiles")
    given = parser.parse_args()
    if given.first_run:
        found = json.loads(RESULTS.read_text()) | {"first_run": first_run()}
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        print(json.dumps(found["first_run"], indent=1))
        return
    rounds = given.rounds
    with tempfile.TemporaryDirectory() as place:
        model, texts = str(Path(place) / "model"), str(Path(place) / "texts.txt")
        longtail = [sys.executable, "-m", "longtail.cli.main"]
        subprocess.run(
            [*longtail, "train", "debtags-sample", "--out", model, "--quiet"], check=True, capture_output=True
        )
        Path(texts).write_text("a text editor for gnome\nplay chess\n")
        modules = Path(place) / "modules.py"
        modules.write_text(IMPORTS.format(names=loaded(model, texts)))
        program = Path(sys.executable).with_name("longtail")
        commands = {
            "python": [sys.executable, "-c", "pass"],
            "import longtail": [sys.executable, "-c", "import longtail"],
            "libraries": [sys.executable, "-c", f"import {LIBRARIES}"],
            "what it loads": [sys.executable, str(modules)],
            "longtail predict": [str(program), "predict", model, texts],
        }
        for command in commands.values():
            seconds(command)  # files are read and kernels compiled before anything counts
        taken = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                taken[name].append(seconds(command))
    median_s = {name: round(statistics.median(times), 4) for name, times in taken.items()}
    found = {
        "ratio": round(median_s["longtail predict"] / median_s["libraries"], 3),
        "ratio_to_what_it_loads": round(median_s["longtail predict"] / median_s["what it loads"], 3),
        "median_s": median_s,
        "all_s": {name: [round(each, 4) for each in times] for name, times in taken.items()},
        "libraries": LIBRARIES,
        "rounds": rounds,
        "machine": f"{platform.platform()}, Python {platform.python_version()}",
        "load_average": Path("/proc/loadavg").read_text().split()[:3] if Path("/proc/loadavg").exists() else None,
    }
    if RESULTS.exists() and "first_run" in (before := json.loads(RESULTS.read_text())):
        found["first_run"] = before["first_run"]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps({key: found[key] for key in ("ratio", "ratio_to_what_it_loads", "median_s")}, indent=1))


def first_run() -> dict[str, object]:
    """Processor time of the same process twice, first with nothing compiled."""
    with tempfile.TemporaryDirectory() as cache:
        where = ENVIRONMENT | {"NUMBA_CACHE_DIR": cache}
        ran = [
            subprocess.run([sys.executable, "-c", FIRST_RUN], check=True, capture_output=True, text=True, env=where)
            for _ in range(2)
        ]
    cold, warm = (json.loads(each.stdout.splitlines()[-1]) for each in ran)
    return {
        "compiling_s": round(cold["compiling_s"], 2),
        "n_functions": cold["n_functions"],
        "all_s": round(cold["all_s"], 2),
        "all_when_compiled_s": round(warm["all_s"], 2),
        "load_average": Path("/proc/loadavg").read_text().split()[:3],
    }


def loaded(model: str, texts: str) -> list[str]:
    """Modules of other packages that the command loads, in the order of loading."""
    code = PREDICT.format(model=model, texts=texts) + "\nimport sys\nprint('\\n', *sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return [name for name in ran.stdout.splitlines()[-1].split() if name.split(".")[0] not in OWN]


def seconds(command: list[str]) -> float:
    """Wall time of a process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
