"""napkinXC: a probabilistic label tree. Training writes its model to disk as it goes, so that is timed with it.

settings: keywords of `PLT`.
"""

import shutil

from napkinxc.models import PLT
from peers.contract import Adapter, K, main, top_of_pairs


class Napkinxc(Adapter):
    packages = ("napkinxc", "numpy", "scipy", "scikit-learn")

    def _model(self, folder):
        return PLT(str(folder), threads=self.task.n_threads, **self.task.settings)

    def train(self, data):
        folder = self.task.work / "trained"
        self._model(folder).fit(*data)
        return folder

    def save(self, model, folder):
        shutil.copytree(model, folder, dirs_exist_ok=True)

    def load(self, folder):
        model = self._model(folder)
        model.load()
        return model

    def predict(self, model, data, n_threads):
        return model.predict_proba(data, top_k=K)

    def top(self, found):
        return top_of_pairs(found)


main(Napkinxc)
