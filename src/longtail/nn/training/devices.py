"""What the machine offers for training: device, number types, compiling."""

from __future__ import annotations

import logging

import torch
from torch import nn

from longtail.errors import ConfigError
from longtail.run.log import LOG


def choose_device(wanted: str) -> torch.device:
    """Return the device of `auto`, `cpu` or `cuda`."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError("training.device must be cpu or auto, got cuda, but torch finds no GPU")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def choose_precision(wanted: str, device: torch.device) -> str:
    """Return the `accelerate` name of a number type."""
    if wanted == "auto":
        if device.type != "cuda":
            return "no"
        return "bf16" if torch.cuda.is_bf16_supported() else "fp16"
    if wanted == "fp16" and device.type != "cuda":
        raise ConfigError("training.precision must be fp32 or bf16 on a CPU, got fp16")
    return "no" if wanted == "fp32" else wanted


class CompilerWarnings(logging.Filter):
    """Replaces the pages that torch writes about code that cannot be compiled by one line, once."""

    warned = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether torch may log the record."""
        text = record.getMessage()
        if "WON'T CONVERT" not in text:
            return True
        self.warn(text)
        return False

    def warn(self, text: str) -> None:
        """Log the reason in one line, the first time."""
        reasons = [line for line in text.splitlines() if line and not line.startswith((" ", "Set TORCH"))]
        if not self.warned:
            LOG.warning("some code cannot be compiled and runs slower (%s)", reasons[-1] if reasons else text)
        self.warned = True


COMPILER_WARNINGS = CompilerWarnings()


def compiling_failed(error: RuntimeError) -> bool:
    """Return whether an error comes from the compiler, as those of backward passes do; log it once."""
    if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
        return False
    COMPILER_WARNINGS.warn(str(error))
    return True


def may_compile() -> None:
    """Let code that cannot be compiled run without compiling, from now on."""
    import torch._dynamo as dynamo

    logging.getLogger("torch._dynamo.convert_frame").addFilter(COMPILER_WARNINGS)
    dynamo.config.suppress_errors = True
    dynamo.config.recompile_limit = max(64, int(dynamo.config.recompile_limit))


def compile_layers(layers: nn.ModuleList) -> None:
    """Compile each layer, once per shape of a batch, which all layers share.

    Hooks of a layer stay outside: compiled code would be cut in pieces around them.
    """
    for layer in layers:
        layer.forward = torch.compile(layer.forward, dynamic=False)


def plain_layers(layers: nn.ModuleList) -> None:
    """Undo `compile_layers`."""
    for layer in layers:
        vars(layer).pop("forward", None)


def gpu_bytes() -> int:
    """Return the peak of GPU memory so far; 0 without a GPU."""
    return int(torch.cuda.max_memory_allocated()) if torch.cuda.is_available() else 0


def free_gpu_bytes() -> int | None:
    """Return the free GPU memory; None without a GPU."""
    return int(torch.cuda.mem_get_info()[0]) if torch.cuda.is_available() else None


def seed_step(*numbers: int) -> None:
    """Seed all random numbers of a step, from the seed of the run and the number of the step."""
    mixed = 0
    for number in numbers:
        mixed = (mixed * 1_000_003 + number + 0x9E3779B9) & 0xFFFFFFFFFFFF
    # torch.manual_seed would also queue a call, with a stack trace, for each device that is not initialised: for a
    # small network that takes longer than the step.
    torch.default_generator.manual_seed(mixed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(mixed)
