"""Keywords of the methods' constructors, for type checkers and completion; no program imports it.

Made by `tools/make_keywords.py` from the options classes; do not edit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from longtail.labels.buckets import BucketOptions
from longtail.labels.name_matches import NameOptions
from longtail.labels.tree import TreeOptions
from longtail.labels.vectors.base import VectorOptions
from longtail.linear.ranker import RankerOptions, ScoreOptions
from longtail.linear.recall import LinearRecallOptions
from longtail.linear.training import SolverOptions
from longtail.linear.tree import BeamOptions
from longtail.methods.attentionxml import AttentionTraining
from longtail.methods.stack import StackMember
from longtail.neighbours.index import NeighbourSearchOptions
from longtail.neighbours.points import TfidfPointOptions, WordPointOptions
from longtail.neighbours.teacher import TeacherOptions
from longtail.nn.encoders.bag import BagOptions
from longtail.nn.encoders.base import EncoderOptions
from longtail.nn.encoders.bilstm_states import StatesOptions
from longtail.nn.encoders.cnn import CNNOptions
from longtail.nn.encoders.reader import ReaderOptions
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.heads.adaptive import AdaptiveOptions
from longtail.nn.heads.labelwise import LabelwiseOptions
from longtail.nn.heads.shortlist import ShortlistOptions
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.heads.tree import TreeHeadOptions
from longtail.nn.recall import NeuralRecallOptions
from longtail.nn.resolutions import FineTuningOptions
from longtail.nn.training.averaging import AveragingOptions
from longtail.nn.training.options import TrainingOptions
from longtail.nn.training.schedules import ScheduleOptions
from longtail.propensity import Propensity
from longtail.scores.combine import CombineOptions
from longtail.stacking.logistic import LogisticOptions
from longtail.stacking.trees import TreesOptions
from longtail.text.fields import FieldOptions, TfidfOptions
from longtail.text.tokens import TokenOptions
from longtail.text.vectors import WordVectorOptions
from longtail.text.words import WordOptions

class APLCXLNetKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    dropout: float
    training: TrainingKeywords | TrainingOptions
    encoder: TransformerKeywords | TransformerOptions
    buckets: BucketKeywords | BucketOptions
    labels: AdaptiveKeywords | AdaptiveOptions

class AdaptiveKeywords(TypedDict, total=False):
    bottleneck: int | None
    activation: Literal["tanh", "none"]
    dropout: float
    shrink: int
    tails: Literal["normed", "linear"]
    gates: Literal["always", "touched"]
    normaliser: Literal["per_text", "per_batch"]
    prior: bool
    head_in_root: bool

class AttentionTrainingKeywords(TypedDict, total=False):
    epochs: float
    n_steps: int | None
    epochs_left_out: float
    batch_size: int
    micro_batch: int | None
    rate: float
    word_rate: float | None
    bottleneck_rate: float
    head_rate: float
    decay: float
    head_decay: float
    epsilon: float
    clip_norm: float
    clip_recent: float
    schedule: ScheduleKeywords | ScheduleOptions
    averaging: AveragingKeywords | AveragingOptions
    dropout_steps: int | None
    validation: float
    validations: int | None
    patience: int | None
    precision: Literal["auto", "fp32", "bf16", "fp16"]
    compile: Literal["auto", "on", "off"]
    device: Literal["auto", "cpu", "cuda"]
    checkpoint_s: float
    tensorboard: str | None

class AttentionXMLKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    n_seeds: int
    ensemble: CombineKeywords | CombineOptions
    list_length: int
    encoder: StatesKeywords | StatesOptions
    labels: LabelwiseKeywords | LabelwiseOptions
    tree: TreeKeywords | TreeOptions
    first_clusters: int
    n_candidates: int
    features: TfidfKeywords | TfidfOptions
    vectors: VectorKeywords | VectorOptions
    training: AttentionTrainingKeywords | AttentionTraining

class AutoKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    budget: float | None
    leave_out: Sequence[str]
    encoder: str | None
    fields: str | None

class AveragingKeywords(TypedDict, total=False):
    kind: Literal["none", "ema", "swa"]
    decay: float
    start: float
    every: int

class BagKeywords(TypedDict, total=False):
    tokens: TokenKeywords | TokenOptions
    words: WordKeywords | WordOptions
    vectors: WordVectorKeywords | WordVectorOptions
    kind: Literal["bag"]
    n_buckets: int
    divisor: Literal["count", "root"]
    dropout: float

class BeamKeywords(TypedDict, total=False):
    beam: int
    upper_beam: int
    deep_beam: int | None
    cluster_weight: float
    cluster_power: int
    label_power: int

class BucketKeywords(TypedDict, total=False):
    shares: Sequence[float]
    cuts: Sequence[int] | None

class CNNKeywords(TypedDict, total=False):
    tokens: TokenKeywords | TokenOptions
    words: WordKeywords | WordOptions
    vectors: WordVectorKeywords | WordVectorOptions
    kind: Literal["cnn"]
    heights: Sequence[int]
    n_filters: int
    stride: int
    slots: int
    bottleneck: int | None
    dropout_words: float
    dropout: float

class CombineKeywords(TypedDict, total=False):
    vote: Literal["score", "rank", "round_robin"]
    weights: Sequence[float] | None

class EncoderKeywords(TypedDict, total=False):
    tokens: TokenKeywords | TokenOptions

class FastTextKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    dropout: float
    training: TrainingKeywords | TrainingOptions
    loss: Literal["bce", "softmax"]
    labels: LabelTableKeywords | LabelTableOptions
    encoder: BagKeywords | BagOptions

class FieldKeywords(TypedDict, total=False):
    column: str
    otherwise: str | None
    otherwise_words: int | None
    words: Sequence[int] | None
    chars: Sequence[int] | None
    weight: float
    min_df: int | float | Literal["auto"]
    max_df: int | float
    max_features: int | None
    stop_words: Literal["english", "german"] | Sequence[str] | None
    sublinear: bool
    numbers: bool
    max_words: int | None
    lowercase: bool

class FineTuningKeywords(TypedDict, total=False):
    max_clusters: int
    n_candidates: int
    bootstrap: Literal["linear", "inherit", "random"]
    solver: SolverKeywords | SolverOptions
    loss: Literal["squared_hinge", "bce"]
    weighting: Literal["equal", "by_label_count"]
    dropout: float
    clusters: LabelTableKeywords | LabelTableOptions
    training: Sequence[TrainingKeywords | TrainingOptions]

class KNNKeywords(TypedDict, total=False):
    n_neighbours: int
    points: TfidfPointKeywords | TfidfPointOptions | WordPointKeywords | WordPointOptions
    search: NeighbourSearchKeywords | NeighbourSearchOptions
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    power: float

class LabelTableKeywords(TypedDict, total=False):
    optimizer: Literal["adam", "sgd"]
    momentum: float
    storage: Literal["float32", "bfloat16"]
    prior: bool
    reduction: Literal["sum", "mean"]
    chunk: int
    passes: Literal[1, 2]

class LabelwiseKeywords(TypedDict, total=False):
    widths: Sequence[int]
    own_output: bool
    reduction: Literal["sum", "mean"]
    prior: bool
    chunk: int

class LexicalKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    names: NameKeywords | NameOptions
    ranker_texts: int

class LightXMLKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    n_seeds: int
    ensemble: CombineKeywords | CombineOptions
    list_length: int
    encoders: Sequence[TransformerKeywords | TransformerOptions]
    rate_factors: Sequence[float]
    dropout: float
    dense_up_to: int
    labels: LabelTableKeywords | LabelTableOptions
    shortlist: ShortlistKeywords | ShortlistOptions
    negatives: Literal["dynamic", "static", "frozen"]
    features: TfidfKeywords | TfidfOptions
    vectors: VectorKeywords | VectorOptions
    tree: TreeKeywords | TreeOptions
    training: TrainingKeywords | TrainingOptions

class LinearKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    n_seeds: int
    ensemble: CombineKeywords | CombineOptions
    list_length: int
    features: TfidfKeywords | TfidfOptions
    vectors: Sequence[VectorKeywords | VectorOptions]
    tree: TreeKeywords | TreeOptions
    matcher: SolverKeywords | SolverOptions
    ranker: RankerKeywords | RankerOptions
    search: BeamKeywords | BeamOptions

class LinearRecallKeywords(TypedDict, total=False):
    kind: Literal["linear"]
    solver: SolverKeywords | SolverOptions

class LogisticKeywords(TypedDict, total=False):
    kind: Literal["logistic"]
    cost: float

class NameKeywords(TypedDict, total=False):
    columns: Sequence[str]
    title: str | None
    title_words: int
    languages: Sequence[Literal["en", "de", "other"]]
    most_words: int

class NeighbourSearchKeywords(TypedDict, total=False):
    kind: Literal["exact", "faiss"]
    n_lists: int | None
    n_probed: int

class NeuralRecallKeywords(TypedDict, total=False):
    loss: Literal["bce", "squared_hinge", "softmax"]
    dropout: float
    max_targets: int | None
    clusters: LabelTableKeywords | LabelTableOptions
    training: TrainingKeywords | TrainingOptions

class PropensityKeywords(TypedDict, total=False):
    a: float
    b: float

class RankerKeywords(TypedDict, total=False):
    loss: Literal["squared_hinge", "logistic"]
    cost_positive: float
    cost_negative: float
    cost_decay: float | Literal["auto"]
    count_costs: bool
    bias: float
    tolerance: float
    max_passes: int
    threshold: float
    negatives: Literal["cluster", "matcher", "all"]
    n_recalled: int

class ReaderKeywords(TypedDict, total=False):
    tokens: TokenKeywords | TokenOptions
    words: WordKeywords | WordOptions
    vectors: WordVectorKeywords | WordVectorOptions
    kind: Literal["reader"]
    pieces: str | None
    layers: Sequence[Literal["masked", "full"]]
    residual: bool
    n_heads: int
    mask: Literal["causal", "anticausal"]
    norm: bool
    positions: Literal["learned", "waves", "none"]
    scope_words: int
    pooling: Literal["apart", "pool", "flatten"]
    raw: bool
    root_weight: float
    bottleneck: int
    dropout_words: float

class ScheduleKeywords(TypedDict, total=False):
    kind: Literal["linear", "cosine", "constant", "triangular", "plateau"]
    warmup: float
    plateau_factor: float
    plateau_patience: int
    plateau_floor: float

class ScoreKeywords(TypedDict, total=False):
    order: Literal["score", "margin"]
    cluster_weight: float
    label_power: int

class ShortlistKeywords(TypedDict, total=False):
    n_clusters_ranked: int
    bottleneck_width: int
    bottleneck: Literal["linear", "sigmoid"]
    negatives: Literal["dynamic", "static"]
    loss: Literal["mean", "mean_over_slots", "sum"]
    parts: Literal["both", "recall", "rank"]
    compute: Literal["auto", "masked", "gather"]

class SolverKeywords(TypedDict, total=False):
    loss: Literal["squared_hinge", "logistic"]
    cost_positive: float
    cost_negative: float
    cost_decay: float | Literal["auto"]
    count_costs: bool
    bias: float
    tolerance: float
    max_passes: int
    threshold: float

class StackMemberKeywords(TypedDict, total=False):
    method: str
    options: Mapping[str, Any]
    retrain: bool

class StackKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    members: Sequence[StackMemberKeywords | StackMember]
    list_length: int
    n_folds: int
    n_ranked_folds: int
    max_ranked_texts: int
    ranker: TreesKeywords | TreesOptions | LogisticKeywords | LogisticOptions

class StatesKeywords(TypedDict, total=False):
    tokens: TokenKeywords | TokenOptions
    words: WordKeywords | WordOptions
    vectors: WordVectorKeywords | WordVectorOptions
    hidden: int
    n_layers: int
    dropout_words: float
    kind: Literal["bilstm-states"]
    dropout: float

class TReaderXMLKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    dropout: float
    training: TrainingKeywords | TrainingOptions
    encoder: ReaderKeywords | ReaderOptions | TransformerKeywords | TransformerOptions
    teacher: bool
    scope: TeacherKeywords | TeacherOptions
    loss: Literal["bce", "softmax_sigmoid"]
    labels: LabelTableKeywords | LabelTableOptions

class TeacherKeywords(TypedDict, total=False):
    n_neighbours: int
    points: TfidfPointKeywords | TfidfPointOptions | WordPointKeywords | WordPointOptions
    search: NeighbourSearchKeywords | NeighbourSearchOptions
    parents: Literal["auto", "vocabulary", "texts", "none"]
    min_share: float
    parentless: Literal["keep", "drop"]
    max_labels: int
    votes: float
    vote_power: float

class TfidfKeywords(TypedDict, total=False):
    blocks: Sequence[FieldKeywords | FieldOptions]

class TfidfPointKeywords(TypedDict, total=False):
    kind: Literal["tfidf"]
    features: TfidfKeywords | TfidfOptions

class TokenKeywords(TypedDict, total=False):
    columns: Sequence[str]
    max_tokens: int
    lowercase: bool
    max_words: int | None

class TrainingKeywords(TypedDict, total=False):
    epochs: float
    n_steps: int | None
    epochs_left_out: float
    batch_size: int
    micro_batch: int | None
    rate: float
    word_rate: float | None
    bottleneck_rate: float
    head_rate: float
    decay: float
    head_decay: float
    epsilon: float
    clip_norm: float
    clip_recent: float
    schedule: ScheduleKeywords | ScheduleOptions
    averaging: AveragingKeywords | AveragingOptions
    dropout_steps: int | None
    validation: float
    validations: int | None
    patience: int | None
    precision: Literal["auto", "fp32", "bf16", "fp16"]
    compile: Literal["auto", "on", "off"]
    device: Literal["auto", "cpu", "cuda"]
    checkpoint_s: float
    tensorboard: str | None

class TransformerKeywords(TypedDict, total=False):
    tokens: TokenKeywords | TokenOptions
    kind: Literal["transformer"]
    model: str
    pooling: Literal["cls", "first", "last", "mean", "pooler"]
    n_layers: int
    dropout: float | None
    attention_dropout: float | None
    trainable_layers: int | None
    checkpointing: bool
    scope_tokens: int

class TreeHeadKeywords(TypedDict, total=False):
    prior: bool
    beam: int
    exact: bool

class TreeKeywords(TypedDict, total=False):
    n_levels: int
    branching: int | None
    max_children: int | None
    max_leaf: int
    fill: bool
    balanced: bool
    geometry: Literal["spherical", "euclidean"]
    stop: Literal["gain", "scores", "members"]
    tolerance: float
    max_passes: int

class TreesKeywords(TypedDict, total=False):
    kind: Literal["trees"]
    objective: Literal["binary", "lambdarank", "both"]
    n_trees: int
    n_leaves: int
    rate: float
    min_leaf: int
    l2: float

class VectorKeywords(TypedDict, total=False):
    kinds: Sequence[str]
    file: str | None
    unit_length: bool
    geometry: Literal["spherical", "euclidean"] | None
    weighting: Literal["equal", "by_label_count"]
    max_weights: int | None
    n_components: int

class WordKeywords(TypedDict, total=False):
    max_words: int
    min_df: int | Literal["auto"]

class WordPointKeywords(TypedDict, total=False):
    tokens: TokenKeywords | TokenOptions
    kind: Literal["words"]
    words: WordKeywords | WordOptions
    vectors: WordVectorKeywords | WordVectorOptions

class WordVectorKeywords(TypedDict, total=False):
    source: str | None
    width: int | None
    trainable: bool
    spread: float
    window: int
    n_contexts: int

class XBERTKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    n_seeds: int
    ensemble: CombineKeywords | CombineOptions
    list_length: int
    recalls: Sequence[Mapping[str, Any] | EncoderOptions | Mapping[str, Any] | LinearRecallOptions]
    matcher: NeuralRecallKeywords | NeuralRecallOptions
    vectors: Sequence[VectorKeywords | VectorOptions]
    tree: TreeKeywords | TreeOptions
    features: TfidfKeywords | TfidfOptions
    ranking: Literal["trained", "similarity"]
    ranker: RankerKeywords | RankerOptions
    embedding_weight: float
    n_clusters_ranked: int
    score: ScoreKeywords | ScoreOptions
    sentence_model: str

class XMLCNNKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    dropout: float
    training: TrainingKeywords | TrainingOptions
    loss: Literal["bce", "softmax"]
    labels: LabelTableKeywords | LabelTableOptions
    encoder: CNNKeywords | CNNOptions

class XRTransformerKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    n_seeds: int
    ensemble: CombineKeywords | CombineOptions
    list_length: int
    encoders: Sequence[Mapping[str, Any] | EncoderOptions]
    features: TfidfKeywords | TfidfOptions
    vectors: VectorKeywords | VectorOptions
    tree: TreeKeywords | TreeOptions
    first_clusters: int
    fine_tuning: FineTuningKeywords | FineTuningOptions
    embedding_weight: float
    final_tree: TreeKeywords | TreeOptions
    matcher: SolverKeywords | SolverOptions
    ranker: RankerKeywords | RankerOptions
    search: BeamKeywords | BeamOptions

class XTKeywords(TypedDict, total=False):
    seed: int
    tail_weight: float
    propensity: PropensityKeywords | Propensity
    calibrate: bool
    dropout: float
    training: TrainingKeywords | TrainingOptions
    encoder: BagKeywords | BagOptions
    features: TfidfKeywords | TfidfOptions
    vectors: VectorKeywords | VectorOptions
    tree: TreeKeywords | TreeOptions
    nodes: TreeHeadKeywords | TreeHeadOptions
