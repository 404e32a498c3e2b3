"""Texts and labels from a CSV file: train, save, and tag a new text by name."""

import tempfile
from pathlib import Path

import longtail

ROWS = """\
title,subjects
Growing roses in cold climates,gardening;roses
A year in the vegetable garden,gardening;vegetables
Cooking with root vegetables,cookery;vegetables
Bread and soup for winter evenings,cookery
Watching birds of the coast,birds
"""

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "books.csv"
    file.write_text(ROWS)
    data = longtail.load_dataset(file, text_column="title", label_column="subjects", label_separator=";")
    model = longtail.Linear().fit(data.train)
    model.save(Path(folder) / "model")
    opened = longtail.load_model(Path(folder) / "model")
    for suggestion in opened.predict(["Soups from the vegetable garden"], k=3)[0]:
        print(f"{suggestion.score:.2f}  {suggestion.name}")
