"""Run the command line as `python -m longtail`, which `torchrun -m longtail train …` needs."""

import sys

from longtail.cli.main import main

sys.exit(main())
