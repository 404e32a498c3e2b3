"""Options of the training loop."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from longtail.nn.training.averaging import AveragingOptions
from longtail.nn.training.schedules import ScheduleOptions
from longtail.options import Ablation, Options


class TrainingOptions(Options):
    """How a network is trained."""

    epochs: PositiveFloat = 10.0
    """Number of passes over the training texts."""
    n_steps: PositiveInt | None = None
    """Number of training steps, instead of `epochs`."""
    epochs_left_out: Ablation[float] = Field(0.0, ge=0)
    """Epochs that the schedule counts but that are not run (X-BERT's code leaves out one)."""
    batch_size: PositiveInt = 32
    """Texts per step."""
    micro_batch: PositiveInt | None = None
    """Texts on the device at once; a step adds up the gradients of several. Halved if GPU memory runs out."""
    rate: PositiveFloat = 1e-4
    """Learning rate of the encoder."""
    word_rate: PositiveFloat | None = None
    """Learning rate of word vectors, for encoders that have them; by default the encoder's. A word is in few texts, so
    random vectors need a higher rate."""
    bottleneck_rate: PositiveFloat = 1e-3
    """Learning rate of layers between encoder and labels."""
    head_rate: PositiveFloat = 2e-3
    """Learning rate of the labels' weights."""
    decay: float = Field(0.01, ge=0)
    """Weight decay, except of biases and norms."""
    head_decay: float = Field(0.0, ge=0)
    """Weight decay of the labels' weights."""
    epsilon: Ablation[PositiveFloat] = 1e-8
    """Adam's epsilon, for all weights; gradients not far above it move weights less (LightXML's code: 1e-6)."""
    clip_norm: NonNegativeFloat = 0.0
    """Clip the norm of all gradients, except those of the labels' weights, to this value; 0 does not clip."""
    clip_recent: Ablation[NonNegativeFloat] = 0.0
    """Clip the norm of all gradients to so many times the largest of the last five, none of which counts more than 1
    (AttentionXML's code: 5, for a loss that is a mean over labels); 0 does not clip."""
    schedule: ScheduleOptions = ScheduleOptions()
    """How learning rates change."""
    averaging: AveragingOptions = AveragingOptions()
    """Averages of weights."""
    dropout_steps: Ablation[PositiveInt | None] = None
    """Number of steps at the start of each epoch that use dropout (LightXML's code); by default all do."""
    validation: float = Field(0.0, ge=0, le=0.5)
    """Share of the training texts (at most 4,000) held out for choosing the best weights; 0 trains on all texts and
    keeps the last weights."""
    validations: PositiveInt | None = None
    """Number of validations in the whole training; by default one per epoch."""
    patience: PositiveInt | None = None
    """Number of validations without a better nDCG@5 after which training stops."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Number type of large products; `auto` is bf16 on GPUs that have it, fp16 on others, fp32 on a CPU."""
    compile: Literal["auto", "on", "off"] = "auto"
    """Compile the encoder's layers, and on a GPU launch whole passes at once (CUDA graphs); `auto` is on for GPUs."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; `auto` is a GPU if there is one."""
    checkpoint_s: PositiveFloat = 300.0
    """Seconds between checkpoints in the work folder."""
    tensorboard: str | None = None
    """Folder for TensorBoard logs; by default none are written."""

    def with_rates(self, factor: float) -> Self:
        """Return these options with all learning rates multiplied by `factor`."""
        rates = {name: getattr(self, name) for name in ("rate", "word_rate", "bottleneck_rate", "head_rate")}
        return self.model_copy(update={name: rate * factor for name, rate in rates.items() if rate is not None})

    @property
    def rates(self) -> dict[str, float]:
        """Learning rate of each parameter group."""
        words = self.rate if self.word_rate is None else self.word_rate
        return {"encoder": self.rate, "words": words, "bottleneck": self.bottleneck_rate, "head": self.head_rate}
