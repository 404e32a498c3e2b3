"""The registry of methods. Importing it imports none of them, so that they can be listed at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.registry import Registry

if TYPE_CHECKING:
    from longtail.methods.base import Method

METHODS: Registry[type[Method]] = Registry(
    "method",
    {
        "aplc-xlnet": "longtail.methods.aplc_xlnet",
        "attentionxml": "longtail.methods.attentionxml",
        "auto": "longtail.methods.auto",
        "fasttext": "longtail.methods.fasttext",
        "knn": "longtail.methods.knn",
        "lexical": "longtail.methods.lexical",
        "lightxml": "longtail.methods.lightxml",
        "linear": "longtail.methods.linear",
        "stack": "longtail.methods.stack",
        "treaderxml": "longtail.methods.treaderxml",
        "xbert": "longtail.methods.xbert",
        "xml-cnn": "longtail.methods.xml_cnn",
        "xr-transformer": "longtail.methods.xr_transformer",
        "xt": "longtail.methods.xt",
    },
    command="longtail methods",
)
