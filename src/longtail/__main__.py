"""Run the command line as a process: `longtail …`, `python -m longtail …`, `torchrun -m longtail train …`.

Here is what only a process has: streams that are closed, streams that cannot encode a character, and Ctrl-C while
Python still imports.
"""

import os
import sys


def run() -> int:
    """Run the command of this process and return its exit code."""
    try:
        _open_streams()
        from longtail.cli.main import main

        return main()
    except KeyboardInterrupt:
        sys.stderr.write("longtail: interrupted\n")
        return 130


def _open_streams() -> None:
    """Open streams that are closed: standard input is empty then, standard output refuses whatever is written."""
    for name, flags, mode in (
        ("stdin", os.O_RDONLY, "r"),
        ("stdout", os.O_RDONLY, "w"),
        ("stderr", os.O_WRONLY, "w"),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


if __name__ == "__main__":
    sys.exit(run())
