"""What the machine offers for training: device, number types, compiling."""

from __future__ import annotations

import logging

import torch
from torch import nn

from longtail.errors import ConfigError
from longtail.log import LOG


def choose_device(wanted: str) -> torch.device:
    """The device of `auto`, `cpu` or `cuda`."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError("training.device must be cpu or auto here: torch finds no GPU")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def choose_precision(wanted: str, device: torch.device) -> str:
    """The `accelerate` name of a number type."""
    if wanted == "auto":
        if device.type != "cuda":
            return "no"
        return "bf16" if torch.cuda.is_bf16_supported() else "fp16"
    if wanted == "fp16" and device.type != "cuda":
        raise ConfigError("training.precision must be fp32 or bf16 on a CPU, got fp16")
    return "no" if wanted == "fp32" else wanted


class _InOneLine(logging.Filter):
    """Of what cannot be compiled torch writes pages, again and again; a line is enough, once."""

    told = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether torch may write it."""
        text = record.getMessage()
        if "WON'T CONVERT" not in text:
            return True
        self.tell(text)
        return False

    def tell(self, text: str) -> None:
        """Say it in our words."""
        reasons = [line for line in text.splitlines() if line and not line.startswith((" ", "Set TORCH"))]
        if not self.told:
            LOG.warning("what cannot be compiled runs as it is, slower (%s)", reasons[-1] if reasons else text)
        self.told = True


_IN_ONE_LINE = _InOneLine()


def compiling_failed(error: RuntimeError) -> bool:
    """Whether an error comes from the compiler; such of backward passes reach us. Says so, once."""
    if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
        return False
    _IN_ONE_LINE.tell(str(error))
    return True


def may_compile() -> None:
    """From now on, what cannot be compiled runs as it is."""
    import torch._dynamo as dynamo

    logging.getLogger("torch._dynamo.convert_frame").addFilter(_IN_ONE_LINE)
    dynamo.config.suppress_errors = True
    dynamo.config.recompile_limit = max(64, int(dynamo.config.recompile_limit))


def compile_layers(layers: nn.ModuleList) -> None:
    """Compile each layer, once for each shape of a batch: they are alike.

    Hooks of a layer stay outside: compiled code would be cut in pieces around them.
    """
    for layer in layers:
        layer.forward = torch.compile(layer.forward, dynamic=False)


def plain_layers(layers: nn.ModuleList) -> None:
    """Undo `compile_layers`."""
    for layer in layers:
        vars(layer).pop("forward", None)


def gpu_bytes() -> int:
    """Most GPU memory that was used so far; 0 without a GPU."""
    return int(torch.cuda.max_memory_allocated()) if torch.cuda.is_available() else 0


def free_gpu_bytes() -> int | None:
    """GPU memory that is free; None without a GPU."""
    return int(torch.cuda.mem_get_info()[0]) if torch.cuda.is_available() else None


def seed_step(*numbers: int) -> None:
    """Seed everything that torch draws in a step, from the run's seed and the step's number."""
    mixed = 0
    for number in numbers:
        mixed = (mixed * 1_000_003 + number + 0x9E3779B9) & 0xFFFFFFFFFFFF
    # torch.manual_seed would also note, with a stack trace each, what devices that are not there should do one day: for
    # a small network that takes longer than the step.
    torch.default_generator.manual_seed(mixed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(mixed)
