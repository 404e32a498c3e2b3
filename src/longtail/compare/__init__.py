"""Several methods on the same texts: which finds labels best, and what each costs.

methods  trains and measures all of them, each in a process of its own (worker)
costs    measures what a training takes
runs     trains one method and tags the evaluated texts; what is done is kept, and never done again
figures  lists of all runs beside the truth  ->  metrics with intervals, gain over one run (the anchor)
"""

from longtail.compare.costs import Costs
from longtail.compare.figures import make_comparison
from longtail.compare.methods import compare_methods
from longtail.compare.runs import ComparedData, Entry, RunFolder, RunResult, choose_parts, claim_folder, do_run

__all__ = [
    "ComparedData",
    "Costs",
    "Entry",
    "RunFolder",
    "RunResult",
    "choose_parts",
    "claim_folder",
    "compare_methods",
    "do_run",
    "make_comparison",
]
