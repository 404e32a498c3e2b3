"""Options of the training loop."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from longtail.nn.averaging import AveragingOptions
from longtail.nn.schedules import ScheduleOptions
from longtail.options import Options


class TrainingOptions(Options):
    """How a network is trained."""

    epochs: PositiveFloat = 10.0
    """How often every text is read."""
    n_steps: PositiveInt | None = None
    """Steps of training, instead of `epochs`."""
    epochs_left_out: float = Field(0.0, ge=0)
    """Epochs that rates are planned for but that are not run (X-BERT's code leaves out one)."""
    batch_size: PositiveInt = 32
    """Texts of a step."""
    micro_batch: PositiveInt | None = None
    """Texts that are on the device at once; a step adds up as many of these as it needs. Halved when memory ends."""
    rate: PositiveFloat = 1e-4
    """Learning rate of the encoder."""
    word_rate: PositiveFloat | None = None
    """Learning rate of word vectors, where an encoder has some of its own; by default the encoder's. A word is in few
    texts, so that vectors that begin at random want a higher one."""
    bottleneck_rate: PositiveFloat = 1e-3
    """Learning rate of layers between encoder and labels."""
    head_rate: PositiveFloat = 2e-3
    """Learning rate of the labels' weights."""
    decay: float = Field(0.01, ge=0)
    """Weight decay, of all but biases and norms."""
    head_decay: float = Field(0.0, ge=0)
    """Weight decay of the labels' weights."""
    clip_norm: NonNegativeFloat = 0.0
    """Largest norm of all gradients together, those of the labels' weights left out; 0 leaves them as they are."""
    schedule: ScheduleOptions = ScheduleOptions()
    """How rates change."""
    averaging: AveragingOptions = AveragingOptions()
    """Averages of weights."""
    dropout_steps: PositiveInt | None = None
    """Dropout only in so many steps at the start of each epoch (LightXML's code); by default always."""
    validation: float = Field(0.0, ge=0, le=0.5)
    """Share of the training texts (4,000 at most) held out for choosing the best weights; 0 trains on all of them and
    keeps the last."""
    validations: PositiveInt | None = None
    """How often to look at them in the whole training; by default once an epoch."""
    patience: PositiveInt | None = None
    """Stop after so many of these without a better nDCG@5."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Number type of large products; `auto` is bf16 on a GPU that has it, fp16 on others, fp32 on a CPU."""
    compile: Literal["auto", "on", "off"] = "auto"
    """Compile the encoder's layers, and on a GPU start whole passes at once (CUDA graphs); `auto` on a GPU only."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; `auto` is a GPU where there is one."""
    checkpoint_s: PositiveFloat = 300.0
    """Seconds between two checkpoints of the work folder."""
    tensorboard: str | None = None
    """A folder for TensorBoard; by default nothing is written."""

    @property
    def rates(self) -> dict[str, float]:
        """Learning rate of each parameter group."""
        words = self.rate if self.word_rate is None else self.word_rate
        return {"encoder": self.rate, "words": words, "bottleneck": self.bottleneck_rate, "head": self.head_rate}
