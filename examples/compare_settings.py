"""Two settings on the same texts: which is better, and is the difference more than chance?"""

import longtail
from longtail.metrics import intervals

data = longtail.load_dataset("debtags-sample").hold_out(0.2)
found = {}
for setting in ("linear/xr-linear", "linear"):
    model = longtail.create_method(setting).fit(data.train)
    found[setting] = longtail.evaluate_model(model, data.dev)
    print(f"{setting:17} nDCG@5 {100 * found[setting].metrics.values['nDCG@5']:.1f}")
first, second = found.values()
measured = second.predicted, first.truth, first.train_counts, first.n_train_texts
apart = intervals(*measured, minus=first.predicted).values["nDCG@5"]
verdict = "more than chance" if apart.excludes_zero else "perhaps chance"
print(f"difference {100 * apart.value:+.1f} ({100 * apart.low:+.1f} to {100 * apart.high:+.1f}): {verdict}")
