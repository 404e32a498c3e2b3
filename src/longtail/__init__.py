"""Tag texts with the right few labels out of thousands to millions.

    import longtail

    data = longtail.load_dataset("debtags")
    model = longtail.Linear().fit(data.train)
    model.predict(["a text editor for gnome"], k=5)

Names are looked up on first use, so that `import longtail` loads no library.
"""

from __future__ import annotations

from importlib import import_module
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
    from longtail.ensemble import EnsembleOptions as EnsembleOptions
    from longtail.ensemble import combine as combine
    from longtail.errors import ConfigError as ConfigError
    from longtail.errors import DataError as DataError
    from longtail.errors import LongtailError as LongtailError
    from longtail.errors import MissingExtraError as MissingExtraError
    from longtail.errors import ModelFormatError as ModelFormatError
    from longtail.errors import NotFittedError as NotFittedError
    from longtail.evaluation import Evaluation as Evaluation
    from longtail.evaluation import evaluate_model as evaluate_model
    from longtail.methods import create_method as create_method
    from longtail.methods import load_model as load_model
    from longtail.methods.aplc_xlnet import APLCXLNet as APLCXLNet
    from longtail.methods.base import Method as Method
    from longtail.methods.base import Suggestion as Suggestion
    from longtail.methods.lightxml import LightXML as LightXML
    from longtail.methods.linear import Linear as Linear
    from longtail.methods.xbert import XBERT as XBERT
    from longtail.metrics import evaluate as evaluate
    from longtail.report import write_report as write_report
    from longtail.types import LabelMatrix as LabelMatrix
    from longtail.types import TopK as TopK

    __version__: str

_HOMES = {
    "APLCXLNet": "methods.aplc_xlnet",
    "ConfigError": "errors",
    "DataError": "errors",
    "Dataset": "data.dataset",
    "EnsembleOptions": "ensemble",
    "Evaluation": "evaluation",
    "LabelMatrix": "types",
    "LightXML": "methods.lightxml",
    "Linear": "methods.linear",
    "LongtailError": "errors",
    "Method": "methods.base",
    "MissingExtraError": "errors",
    "ModelFormatError": "errors",
    "NotFittedError": "errors",
    "Split": "data.dataset",
    "Suggestion": "methods.base",
    "TopK": "types",
    "Vocabulary": "data.vocabulary",
    "XBERT": "methods.xbert",
    "bundled_datasets": "data.load",
    "combine": "ensemble",
    "create_method": "methods",
    "evaluate": "metrics",
    "evaluate_model": "evaluation",
    "examine": "data.doctor",
    "load_dataset": "data.load",
    "load_model": "methods",
    "load_vocabulary": "data.load",
    "write_dataset": "data.write",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("longtail")
    if name not in _HOMES:
        raise AttributeError(f"module 'longtail' has no attribute '{name}'")
    return getattr(import_module(f"longtail.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, "__version__"])
