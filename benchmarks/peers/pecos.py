"""PECOS XR-Linear: PIFA label vectors, hierarchical k-means, one tree a seed; several trees by mean of scores.

settings: indexer, train, predict (keywords of the library), seeds (default: one tree, seed 0).
"""

from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from peers.contract import Adapter, main


class Pecos(Adapter):
    packages = ("libpecos", "numpy", "scipy", "scikit-learn")

    def train(self, data):
        features, labels = data
        settings, n_threads = self.task.settings, self.task.n_threads
        vectors = LabelEmbeddingFactory.create(labels, features, method="pifa")
        models = []
        for seed in settings.get("seeds", [0]):
            clusters = Indexer.gen(vectors, seed=seed, threads=n_threads, **settings.get("indexer", {}))
            # Matcher-aware negatives are what the beam of prediction meets, so training gets its width too.
            options = settings.get("train", {}) | settings.get("predict", {})
            models.append(XLinearModel.train(features, labels, C=clusters, threads=n_threads, **options))
        return models

    def save(self, model, folder):
        for i, tree in enumerate(model):
            tree.save(str(folder / str(i)))

    def load(self, folder):
        # The README says how this layout compares with the default one.
        fastest = {"is_predict_only": True, "weight_matrix_type": "HASH_CHUNKED"}
        return [XLinearModel.load(str(path), **fastest) for path in sorted(folder.iterdir())]

    def predict(self, model, data, n_threads):
        options = self.task.settings.get("predict", {})
        first, *others = [tree.predict(data, threads=n_threads, **options) for tree in model]
        return sum(others, first) / len(model) if others else first


main(Pecos)
