"""LibMultiLabel: one-vs-rest or tree, both on LIBLINEAR. It uses one thread for each physical core.

settings: technique (1vsrest or tree), options (LIBLINEAR's).
"""

import numpy as np
import scipy.sparse as sp
from libmultilabel import linear
from peers.contract import Adapter, K, main

CHUNK = 1000
"""Texts at once: the library scores every label of every text in one dense matrix."""


class LibMultiLabel(Adapter):
    packages = ("libmultilabel", "liblinear-multicore", "sparsekmeans", "numpy", "scipy", "scikit-learn")

    def train(self, data):
        features, labels = data
        np.random.seed(0)  # noqa: NPY002 - the tree draws its seeds from here
        train = {"1vsrest": linear.train_1vsrest, "tree": linear.train_tree}[self.task.settings["technique"]]
        return train(labels, features, options=self.task.settings["options"], verbose=False)

    def save(self, model, folder):
        linear.save_pipeline(str(folder), None, model)

    def load(self, folder):
        return linear.load_pipeline(str(folder / "linear_pipeline.pickle"))[1]

    def predict(self, model, data, n_threads):
        chunks = [data[start : start + CHUNK] for start in range(0, data.shape[0], CHUNK)]
        found = [self._top(linear.predict_values(model, chunk)) for chunk in chunks]
        return sp.vstack(found, "csr")

    def _top(self, scores):
        best, values = linear.get_topk_labels(scores, np.arange(scores.shape[1]), K)
        indptr = np.arange(0, best.size + 1, K)
        return sp.csr_matrix((values.ravel(), best.ravel(), indptr), shape=scores.shape)


main(LibMultiLabel)
