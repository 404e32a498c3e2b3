"""A number to defend: figures on texts that the model has not seen, with 95 % intervals, and a report to look at."""

import tempfile

import longtail
from longtail.metrics import BootstrapOptions
from longtail.report import make_report

data = longtail.load_dataset("debtags-sample")
model = longtail.Linear().fit(data.train)
found = longtail.evaluate_model(model, data.test, bootstrap=BootstrapOptions())
for name in ("P@1", "P@5", "nDCG@5", "PSP@5"):
    interval = found.intervals.values[name]
    print(f"{name:7} {100 * found.metrics.values[name]:.1f}  ({100 * interval.low:.1f} to {100 * interval.high:.1f})")
for band, values in found.metrics.bands.items():
    print(f"{band:7} nDCG@5 {100 * values['nDCG@5']:.1f}")
with tempfile.TemporaryDirectory() as folder:
    files = longtail.write_report(make_report(model, found, "debtags-sample", "test"), folder)
    print(", ".join(sorted(files)))
