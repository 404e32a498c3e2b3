"""Tag texts with the right few labels out of thousands to millions.

    import longtail

    data = longtail.load_dataset("debtags-sample")
    model = longtail.Linear().fit(data.train)
    model.predict(["a text editor for gnome"], k=5)

Texts and labels of your own go in as lists, data frames or tables:

    model = longtail.Linear().fit(["a red apple", "a grey stone"], [["fruit", "red"], ["rock"]])
    model.predict(["an apple"]).to_pandas()

Every method has a class with the same interface, which is also that of scikit-learn: `Linear`, `KNN` and `Lexical` need
no more than this package, `Stack` needs `pip install 'longtail[stack]'`, and the others are neural and need
`pip install 'longtail[neural]'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longtail.data.dataset import Dataset as Dataset
    from longtail.data.dataset import Split as Split
    from longtail.data.doctor import examine as examine
    from longtail.data.load import bundled_datasets as bundled_datasets
    from longtail.data.load import load_dataset as load_dataset
    from longtail.data.load import load_vocabulary as load_vocabulary
    from longtail.data.vocabulary import Vocabulary as Vocabulary
    from longtail.data.write import write_dataset as write_dataset
    from longtail.distilling import Distilled as Distilled
    from longtail.distilling import distil as distil
    from longtail.errors import ConfigError as ConfigError
    from longtail.errors import DataError as DataError
    from longtail.errors import LongtailError as LongtailError
    from longtail.errors import MissingExtraError as MissingExtraError
    from longtail.errors import ModelFormatError as ModelFormatError
    from longtail.errors import NotFittedError as NotFittedError
    from longtail.evaluation import Evaluation as Evaluation
    from longtail.evaluation import evaluate_model as evaluate_model
    from longtail.explain.examples import ExampleTexts as ExampleTexts
    from longtail.explain.explanation import Explanation as Explanation
    from longtail.export.hub import pull as pull
    from longtail.export.hub import push as push
    from longtail.export.onnx import OnnxExport as OnnxExport
    from longtail.export.onnx import export_onnx as export_onnx
    from longtail.label_editor import LabelEditor as LabelEditor
    from longtail.labels.edits import LabelEdit as LabelEdit
    from longtail.methods import create_method as create_method
    from longtail.methods import load_model as load_model
    from longtail.methods.aplc_xlnet import APLCXLNet as APLCXLNet
    from longtail.methods.attentionxml import AttentionXML as AttentionXML
    from longtail.methods.auto import Auto as Auto
    from longtail.methods.base import Method as Method
    from longtail.methods.fasttext import FastText as FastText
    from longtail.methods.knn import KNN as KNN
    from longtail.methods.lexical import Lexical as Lexical
    from longtail.methods.lightxml import LightXML as LightXML
    from longtail.methods.linear import Linear as Linear
    from longtail.methods.stack import Stack as Stack
    from longtail.methods.treaderxml import TReaderXML as TReaderXML
    from longtail.methods.xbert import XBERT as XBERT
    from longtail.methods.xml_cnn import XMLCNN as XMLCNN
    from longtail.methods.xr_transformer import XRTransformer as XRTransformer
    from longtail.methods.xt import XT as XT
    from longtail.metrics import evaluate as evaluate
    from longtail.model_selection import KFold as KFold
    from longtail.model_selection import scorer as scorer
    from longtail.predictions import Predictions as Predictions
    from longtail.predictions import Suggestion as Suggestion
    from longtail.report import write_report as write_report
    from longtail.scores.combine import CombineOptions as CombineOptions
    from longtail.scores.combine import combine as combine
    from longtail.types import LabelMatrix as LabelMatrix
    from longtail.types import TopK as TopK

    __version__: str

_HOMES = {
    "APLCXLNet": "methods.aplc_xlnet",
    "AttentionXML": "methods.attentionxml",
    "Auto": "methods.auto",
    "CombineOptions": "scores.combine",
    "ConfigError": "errors",
    "DataError": "errors",
    "Dataset": "data.dataset",
    "Distilled": "distilling",
    "Evaluation": "evaluation",
    "ExampleTexts": "explain.examples",
    "Explanation": "explain.explanation",
    "FastText": "methods.fasttext",
    "KFold": "model_selection",
    "KNN": "methods.knn",
    "LabelEdit": "labels.edits",
    "LabelEditor": "label_editor",
    "LabelMatrix": "types",
    "Lexical": "methods.lexical",
    "LightXML": "methods.lightxml",
    "Linear": "methods.linear",
    "LongtailError": "errors",
    "Method": "methods.base",
    "MissingExtraError": "errors",
    "ModelFormatError": "errors",
    "NotFittedError": "errors",
    "OnnxExport": "export.onnx",
    "Predictions": "predictions",
    "Split": "data.dataset",
    "Stack": "methods.stack",
    "Suggestion": "predictions",
    "TopK": "types",
    "TReaderXML": "methods.treaderxml",
    "Vocabulary": "data.vocabulary",
    "XBERT": "methods.xbert",
    "XMLCNN": "methods.xml_cnn",
    "XRTransformer": "methods.xr_transformer",
    "XT": "methods.xt",
    "bundled_datasets": "data.load",
    "combine": "scores.combine",
    "create_method": "methods",
    "distil": "distilling",
    "evaluate": "metrics",
    "evaluate_model": "evaluation",
    "examine": "data.doctor",
    "export_onnx": "export.onnx",
    "load_dataset": "data.load",
    "load_model": "methods",
    "load_vocabulary": "data.load",
    "pull": "export.hub",
    "push": "export.hub",
    "scorer": "model_selection",
    "write_dataset": "data.write",
    "write_report": "report",
}
"""Names and the modules that hold them. They are looked up on first use, so that `import longtail` loads no library."""
_NEURAL = ("APLCXLNet", "AttentionXML", "FastText", "LightXML", "TReaderXML", "XBERT", "XMLCNN", "XRTransformer", "XT")
"""Names that are listed only where torch is installed: `help(longtail)` loads whatever is listed."""

if not TYPE_CHECKING:  # type checkers see the imports above, and refuse other names

    def __getattr__(name: str) -> Any:
        from importlib import import_module
        from importlib.metadata import version

        if name == "__version__":
            return version("longtail")
        if name == "__all__":
            return [listed for listed in __dir__() if listed != "__version__"]
        if name not in _HOMES:
            raise AttributeError(f"module 'longtail' has no attribute '{name}'")
        return getattr(import_module(f"longtail.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    from importlib.util import find_spec

    hidden = () if find_spec("torch") else _NEURAL
    return sorted({*_HOMES, "__version__"}.difference(hidden))
