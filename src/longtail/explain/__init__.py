"""Why a label: the words of a text that speak for it, how much each level or member says, and the nearest examples.

model.explain(text, label)  ->  Explanation: words with weights and places, nearest training texts
ExampleTexts.of(split)          ->  training texts, among which `explain` looks for the nearest ones with the label
"""

from longtail.explain.examples import ExampleTexts
from longtail.explain.explanation import Example, Explanation, LevelMargin, Share, Span, Word

__all__ = ["Example", "ExampleTexts", "Explanation", "LevelMargin", "Share", "Span", "Word"]
