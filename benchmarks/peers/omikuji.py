"""omikuji: Parabel by default, Bonsai and others by settings; three trees.

settings: train (fields of the library's hyper-parameters), predict (keywords).
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import omikuji
from omikuji import ffi, lib
from peers.contract import Adapter, K, main, top_of_pairs


class Omikuji(Adapter):
    packages = ("omikuji", "numpy", "scipy", "scikit-learn")

    def training_data(self):
        """The library's own data set in memory: it reads nothing but files, and their parsing is not timed."""
        features, labels = super().training_data()
        file = self.task.work / "train.txt"
        with open(file, "w") as out:
            out.write(f"{features.shape[0]} {features.shape[1]} {labels.shape[1]}\n")
            for row, (start, end) in enumerate(pairwise(labels.indptr.tolist())):
                pairs = " ".join(f"{feature}:{value:.9g}" for feature, value in _pairs(features, row))
                # A text without any known word must not end its line behind the labels: omikuji rejects the file.
                out.write(f"{','.join(map(str, labels.indices[start:end]))} {pairs or '0:0'}\n")
        self.threads = lib.init_omikuji_thread_pool(self.task.n_threads)
        data = lib.load_omikuji_data_set(str(file).encode(), self.threads)
        file.unlink()
        if data == ffi.NULL:
            raise SystemExit("omikuji could not read its training data")
        return ffi.gc(data, lib.free_omikuji_data_set)

    def train(self, data):
        parameters = omikuji.Model.default_hyper_param()
        for name, value in self.task.settings.get("train", {}).items():
            setattr(parameters, name, value)
        return omikuji.Model(lib.train_omikuji_model(data, parameters, self.threads))

    def save(self, model, folder):
        model.save(str(folder))

    def load(self, folder):
        model = omikuji.Model.load(str(folder))
        model.init_prediction_thread_pool(self.task.n_threads)
        model.densify_weights(0.05)  # what the README's Python example trades memory for speed with
        return model

    def predict(self, model, data, n_threads):
        options = self.task.settings.get("predict", {})
        rows = (_pairs(data, row) for row in range(data.shape[0]))
        if n_threads == 1:
            return [model.predict(row, top_k=K, **options) for row in rows]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(lambda row: model.predict(row, top_k=K, **options), rows))

    def top(self, found):
        return top_of_pairs(found)


def _pairs(matrix, row):
    start, end = matrix.indptr[row], matrix.indptr[row + 1]
    return list(zip(matrix.indices[start:end].tolist(), matrix.data[start:end].tolist(), strict=True))


main(Omikuji)
