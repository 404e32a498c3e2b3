"""Several models, one list: an ensemble inside a model, and one of models that you have."""

import longtail

data = longtail.load_dataset("debtags-sample").hold_out(0.2)
vectors = [{"kinds": ["pifa"]}, {"kinds": ["pifa", "text"]}]
together = longtail.Linear("linear/fast", vectors=vectors).fit(data.train)
print(together.predict(["play chess against the computer"], k=3)[0])

members = [longtail.Linear("linear/fast", seed=seed).fit(data.train) for seed in (1, 2)]
lists = [member.top_k(data.dev, k=20) for member in members]
joined = longtail.combine(lists, 5, longtail.CombineOptions(vote="rank"))
best = members[0].suggestions(joined)[0][0]
print(f"{data.dev.texts['text'][0].as_py()[:60]} … -> {best.name}")
