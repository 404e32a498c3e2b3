"""Several methods on the same texts: which finds labels best, and what each costs.

runs     trains one method and tags the evaluated texts; what is done is kept, and never done again
figures  lists of all runs beside the truth  ->  metrics with intervals, gain over one run (the anchor)
"""

from longtail.compare.figures import make_comparison
from longtail.compare.runs import Costs, Entry, Found, RunFolder, belongs_to, choose_parts, do_run

__all__ = ["Costs", "Entry", "Found", "RunFolder", "belongs_to", "choose_parts", "do_run", "make_comparison"]
