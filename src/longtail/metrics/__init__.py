"""How good predicted labels are, over all labels and by how often a label was seen in training.

With hits_k = |top_k ∩ Y| for a text with the true labels Y:

    P@k         mean hits_k / k                            R@k    mean hits_k / |Y|
    RP@k        mean hits_k / min(k, |Y|)                  F1@k   mean 2 hits_k / (k + |Y|)
    nDCG@k      mean of the sum of 1 / log2(rank + 1) over hits, divided by that sum for min(k, |Y|) hits in front
    PSP@k       sum of 1/p over the hits of all texts, divided by that sum for the k heaviest true labels of each
    PSnDCG@k    the same with each text's nDCG@k in which a hit counts 1/p: a ratio of two sums over texts
    coverage@k  share of the labels with a true text that are hit at least once in a top k
    micro-F1@k  2 hits / (predicted + true) over all pairs of text and label; the predicted set is the top k
    macro-F1@k  mean of the labels' F1, over the labels with a true or a predicted text
    micro-F1, macro-F1   the same for the labels of the list that score at least `threshold`, when one is given
    micro-P, micro-R     hits / predicted and hits / true, the two sides of that micro-F1
    ECE@k       expected calibration error: of the labels in a bin of scores, |mean score − share of right ones|, mean
                over 15 bins of equal width, weighted by their labels; all texts together
    Brier@k     mean (score − 1 if right, score − 0 if wrong)² over the same labels

All are fractions in 0..1. P and F1 divide by k even if a list is shorter. Only in the metrics that count per label,
from micro-F1@k on, an empty place is no prediction. What cannot be measured is absent: ECE and Brier where a score is
outside of 0..1, and micro-P, ECE and Brier where nothing is predicted. Texts without true labels are left out of all
metrics and counted separately. Labels that no training text has stay in Y and count as missed.

Bands are head (labels with more than 100 training texts), torso (11–100), tail (1–10) and unseen (0). A metric of a
band counts only its labels in Y and its hits, at their ranks in the whole list. Means are over the texts with a label
of the band in Y; coverage, micro- and macro-F1, ECE and Brier use the band's predictions on all texts. A band without
true labels is absent.

The truth stays sparse and a hit is a (text, place, label) triple, so no array of size n_texts × n_labels is made.
"""

from longtail.metrics.bootstrap import BootstrapOptions, Interval, Intervals, intervals
from longtail.metrics.names import BANDS, MetricOptions
from longtail.metrics.result import Metrics, evaluate

__all__ = [
    "BANDS",
    "BootstrapOptions",
    "Interval",
    "Intervals",
    "MetricOptions",
    "Metrics",
    "evaluate",
    "intervals",
]
