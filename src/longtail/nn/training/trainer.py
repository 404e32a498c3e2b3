"""The training loop of all networks, on `accelerate`.

    network, tokens, labels  ->  the same network, trained

A step is a whole batch: it is divided among the processes (data parallel), and each process sends its part to the
device in micro-batches, whose gradients add up to those of the batch. Random numbers of a step depend on seed and step
alone. A checkpoint holds weights, optimiser state, averages and counters; a run that is resumed from it ends with the
same weights as one that was never stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longtail.errors import ConfigError, LongtailError
from longtail.nn.batch import Batch
from longtail.nn.heads.base import Step
from longtail.nn.heads.table import LabelTable
from longtail.nn.network import Network
from longtail.nn.training.averaging import Averager
from longtail.nn.training.batches import BatchPlan, ahead
from longtail.nn.training.checkpoint import Kept, Progressed, copy_into, finite, load, save, save_part
from longtail.nn.training.clipping import Clipper
from longtail.nn.training.devices import (
    choose_device,
    choose_precision,
    compile_layers,
    compiling_failed,
    gpu_bytes,
    may_compile,
    plain_layers,
    seed_step,
)
from longtail.nn.training.graphs import Graphs
from longtail.nn.training.options import TrainingOptions
from longtail.nn.training.parallel import Exchange, await_all, of_main, same_everywhere
from longtail.nn.training.schedules import factor
from longtail.nn.training.whole import put_together
from longtail.nn.turns import in_turn
from longtail.run.log import LOG
from longtail.run.progress import SILENT
from longtail.run.run import Run
from longtail.text.tokens import TokenRows
from longtail.types import LabelMatrix

_SHOW_EVERY = 20
_AUTOCAST = {"no": None, "bf16": torch.bfloat16, "fp16": torch.float16}
_WIDTHS = 4
"""Different widths of compiled batches; each is compiled and recorded separately."""
_WIDTH_STEP = 8
"""Widths of batches that are not compiled are multiples of this."""


class Trainer:
    """Trains one network."""

    def __init__(self, network: Network, options: TrainingOptions, seed: int, run: Run) -> None:
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState
        from accelerate.utils import DistributedDataParallelKwargs

        self.options, self.seed, self.run = options, seed, run
        self.device = choose_device(options.device)
        precision = choose_precision(options.precision, self.device)
        AcceleratorState._reset_state(reset_partial_state=True)  # an earlier training here may have had another device
        exchange = DistributedDataParallelKwargs(find_unused_parameters=True, broadcast_buffers=False)
        self.accelerator = Accelerator(
            mixed_precision=precision, cpu=self.device.type == "cpu", kwargs_handlers=[exchange]
        )
        self.n_ranks = self.accelerator.num_processes
        self.compiled = options.compile == "on" or (options.compile == "auto" and self.device.type == "cuda")
        self.autocast = _AUTOCAST[precision]
        self.network = network.to(self.device)
        self.layers = network.encoder.layers() if self.compiled else nn.ModuleList()
        if self.compiled:
            may_compile()
            compile_layers(self.layers)
        for table in network.tables().values():
            table.compiled = self.compiled
            table.exchange = Exchange() if self.n_ranks > 1 else None
        groups = network.groups(options.rates, options.decay)
        self.optimizer = torch.optim.AdamW(groups, eps=options.epsilon, fused=True) if groups else None
        self.model = network
        self.sharded = network.sharded()
        if self.sharded and self.n_ranks == 1:
            raise ConfigError("some labels are in other processes, but this one trains alone; start them with torchrun")
        if groups:
            _leave_to_processes(network, self.sharded)
            self.model, self.optimizer = self.accelerator.prepare(network, self.optimizer)
        self.graphs: Graphs | None = None
        if groups and self.compiled and self.device.type == "cuda" and self.n_ranks == 1:
            self.graphs = Graphs(network.encoder, self.autocast)
        network.encode = self.graphs
        self.clipper = Clipper(options, self.device)
        self.averager = Averager(network.trained(), options.averaging)
        self.at = Progressed(micro_batch=options.micro_batch or options.batch_size)
        self.best_weights: dict[str, Tensor] | None = None
        self.saved_step = 0
        self.reported_step = 0

    def fit(
        self,
        tokens: TokenRows,
        labels: LabelMatrix,
        pad_id: int,
        max_width: int,
        validate: Callable[[], float] | None = None,
    ) -> Progressed:
        """Train on texts and their labels, as places in the head; return how far training came.

        Batches are padded with `pad_id` to at most `max_width` tokens. `validate` returns a score of the network.
        """
        options = self.options
        longest = min(max_width, int(tokens.lengths().max()))
        width = step_width(longest, self.compiled)
        packed = self.network.encoder.packs(self.device, self.autocast)
        plan = BatchPlan(
            tokens,
            labels,
            options.batch_size,
            seed=self.seed,
            pad_id=pad_id,
            step_width=width,
            max_width=max_width,
            packed=packed,
        )
        n_steps = options.n_steps or max(1, math.ceil(options.epochs * len(tokens) / plan.size))
        stop = max(1, n_steps - round(options.epochs_left_out * len(tokens) / plan.size))
        validate_every = math.ceil(stop / (options.validations or max(1, round(options.epochs)))) if validate else 0
        if plan.size < self.n_ranks:
            raise ConfigError(f"a batch must have a text for each of {self.n_ranks} processes, got {plan.size}")
        self._resume()
        rank, main = self.accelerator.process_index, self.accelerator.is_main_process
        writer = _tensorboard(options.tensorboard) if main else None
        saved = time.monotonic()
        self.network.train()
        with (self.run.progress if main else SILENT).step("train", stop * plan.size, "texts") as advance:
            advance(self.at.step * plan.size)
            last = self.at.step if self._is_stale() else stop
            for step, batch in ahead(plan, self.at.step, last, slice(rank, None, self.n_ranks)):
                show = step % _SHOW_EVERY == 0 or step + 1 == stop
                if options.dropout_steps is not None:
                    self.network.train(step % math.ceil(len(tokens) / plan.size) < options.dropout_steps)
                factor_now = factor(options.schedule, step, n_steps, self.at.drops)
                with in_turn(self.run.engine):
                    loss = self._step(step, batch, plan.size, factor_now, show)
                    self.at.step = step + 1
                    self.averager.after(step + 1, n_steps)
                if show:
                    advance(plan.size, self._report(step, loss, factor_now, writer))
                else:
                    advance(plan.size)
                due = validate_every and ((step + 1) % validate_every == 0 or step + 1 == stop)
                if due and self._validated(validate, writer):
                    break
                if self._is_due(time.monotonic() - saved > options.checkpoint_s):
                    self._save()
                    saved = time.monotonic()
        self._save()  # the run may be killed while later networks are trained
        if writer is not None:
            writer.close()
        if self.best_weights is not None:
            copy_into(self.best_weights, self.network.trained())
        elif self.averager.n:
            self.averager.put_in()
        if not finite(self.network):
            raise LongtailError(self._nan_message())
        if self.sharded:
            put_together(self.sharded, self.run.stages.shared_folder, Exchange())
            self.network.cpu()  # all labels may be more than the GPU of one process holds
        self.network.eval()
        self.network.encode = self.graphs = None
        plain_layers(self.layers)
        return self.at

    def _step(self, step: int, batch: Batch, size: int, factor_now: float, show: bool) -> Tensor:
        """Compute gradients in micro-batches, smaller ones if memory runs out; then update weights."""
        while True:
            try:
                loss = self._gradients(step, batch, size, factor_now, show)
                break
            except torch.cuda.OutOfMemoryError as error:
                if min(self.at.micro_batch, len(batch)) <= 1 or self.n_ranks > 1:
                    raise LongtailError(self._memory_message(step)) from error
                self.at.micro_batch = min(self.at.micro_batch, len(batch)) // 2
                LOG.warning(
                    "GPU memory is full: micro-batches of %d texts from step %d on, still %d texts per step",
                    self.at.micro_batch, step, size,
                )  # fmt: skip
            except RuntimeError as error:
                if not (self.compiled and compiling_failed(error)) or self.n_ranks > 1:
                    raise
                self._use_plain_code()
            self.network.forget()
            if self.optimizer is not None:
                self.optimizer.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
        try:
            self._update(step, factor_now)
        except torch.cuda.OutOfMemoryError as error:  # some weights may be updated already, so do not try again
            raise LongtailError(self._memory_message(step)) from error
        return loss

    def _use_plain_code(self) -> None:
        """Stop compiling; the widths of batches stay."""
        self.compiled, self.network.encode, self.graphs = False, None, None
        plain_layers(self.layers)
        for table in self.network.tables().values():
            table.compiled = False

    def _gradients(self, step: int, batch: Batch, size: int, factor_now: float, show: bool) -> Tensor:
        """Compute the gradients of this process's part of a batch of `size` texts; return the loss."""
        seed_step(self.seed, step, self.accelerator.process_index)
        total = torch.zeros((), device=self.device)
        cuts = self._cuts(len(batch), size)
        if self.graphs is not None:
            self.graphs.active = len(cuts) == 1
        if len(cuts) == 1:
            self.network.begin_step(self._step_of(factor_now))
        for start, stop in cuts:
            part = batch if len(cuts) == 1 else batch.part(start, stop)
            share = len(part) * self.n_ranks / size
            with _synced(self, stop == len(batch)):
                with self.accelerator.autocast():  # a model that was not prepared has none of its own
                    loss = self.model(part.to(self.device), share, show)
                if loss.requires_grad:
                    self.accelerator.backward(loss)
            total += loss.detach()
        return total

    def _cuts(self, n_texts: int, size: int) -> list[tuple[int, int]]:
        """Return where the micro-batches of this process begin and end, as many as in the others.

        `n_texts` of a batch of `size` are here. Of several processes, micro-batches may be larger by one text.
        """
        at_once = self.at.micro_batch
        if self.n_ranks == 1:
            return [(start, min(start + at_once, n_texts)) for start in range(0, n_texts, at_once)]
        fewest, most = size // self.n_ranks, -(-size // self.n_ranks)
        edges = np.linspace(0, n_texts, min(fewest, -(-most // at_once)) + 1).astype(int).tolist()
        return list(pairwise(edges))

    def _update(self, step: int, factor_now: float) -> None:
        """Update weights; random numbers are the same in all processes."""
        seed_step(self.seed, step)
        if self.optimizer is not None:
            for group, rate in zip(self.optimizer.param_groups, self._rates(factor_now), strict=True):
                group["lr"] = rate
            self.clipper.clip(self.accelerator, self.network)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        self.network.step(self._step_of(factor_now))

    def _step_of(self, factor_now: float) -> Step:
        """Return what parts that train themselves need to know of a step."""
        options, scaler = self.options, self.accelerator.scaler
        scale = scaler.get_scale() if scaler is not None and self.network.encoder.tables() else 1.0
        rates = {name: rate * factor_now for name, rate in options.rates.items()}
        return Step(rates, options.head_decay, options.decay, options.epsilon, scale)

    def _rates(self, factor_now: float) -> list[float]:
        groups = [] if self.optimizer is None else self.optimizer.param_groups
        return [self.options.rates[group["name"]] * factor_now for group in groups]

    def _report(self, step: int, loss: Tensor, factor_now: float, writer: Any) -> str:
        """Format the loss; raise if it is not finite."""
        value = float(loss)
        if not math.isfinite(value):
            raise LongtailError(self._nan_message())
        self.reported_step = self.at.step
        if writer is not None:
            writer.add_scalar("loss", value, step)
            writer.add_scalar("rate", self.options.rate * factor_now, step)
        memory = gpu_bytes()
        return f"loss {value:.4g}" + (f", {memory / 2**30:.1f} GiB GPU" if memory else "")

    def _nan_message(self) -> str:
        since = f" (last finite at step {self.reported_step})" if self.reported_step else ""
        kept = f"; the checkpoint of step {self.saved_step} is kept" if self.saved_step else ""
        return (
            f"the loss is not finite at step {self.at.step}{since}{kept}; lower training.rate or "
            "training.head_rate, set training.clip_norm, or use training.precision fp32"
        )

    def _memory_message(self, step: int) -> str:
        return (
            f"GPU memory is full at step {step + 1} with micro-batches of {self.at.micro_batch}; use "
            "training.micro_batch, encoder.checkpointing, encoder.tokens.max_tokens or a smaller encoder"
        )

    def _validated(self, validate: Callable[[], float] | None, writer: Any) -> bool:
        """Validate with averaged weights; return whether to stop."""
        at, options = self.at, self.options
        with self.averager.swapped_in(), torch.compiler.set_stance("force_eager"):  # texts to predict have many shapes
            in_use = self.accelerator.is_main_process or self.sharded  # whose labels are in all processes
            score = validate() if validate and in_use else 0.0
            score = of_main(score) if self.n_ranks > 1 else score
            if score > at.best:
                at.best, at.best_step, at.stale = score, at.step, 0
                self.best_weights = {name: value.detach().clone() for name, value in self.network.trained().items()}
            else:
                at.stale += 1
        self.network.train()
        at.history.append({"step": at.step, "score": score})
        if writer is not None:
            writer.add_scalar("nDCG@5", score, at.step)
        patience = options.schedule.plateau_patience
        if options.schedule.kind == "plateau" and at.stale and at.stale % (patience + 1) == 0:
            at.drops += 1
        return self._is_stale()

    def _is_stale(self) -> bool:
        """Return whether validation has not improved for too long."""
        return self.options.patience is not None and self.at.stale >= self.options.patience

    def _save(self) -> None:
        """Write a checkpoint; the one before is kept until this one is complete."""
        if (self.accelerator.is_main_process or self.sharded) and self.at.step > self.saved_step:
            if not finite(self.network):
                raise LongtailError(self._nan_message())
            if self.sharded:
                save_part(self.run.stages, self._kept(), self.accelerator.process_index)
                await_all()
            if self.accelerator.is_main_process:
                save(self.run.stages, self._kept(), self.n_ranks if self.sharded else 0)
            self.saved_step = self.at.step

    def _is_due(self, due: bool) -> bool:
        """Return whether something is due, as the main process says, if others must know."""
        return bool(of_main(due)) if self.sharded else due

    def _resume(self) -> None:
        """Continue from the last checkpoint, if there is one."""
        loaded = load(self.run.stages, self._kept())
        if loaded is not None:
            self.at, self.best_weights = loaded
            self.saved_step = self.at.step
        if self.n_ranks > 1 and not same_everywhere(self.at.step):
            raise LongtailError("all processes must find the same checkpoint; give them one work folder")

    def _kept(self) -> Kept:
        return Kept(
            self.network,
            self.optimizer,
            self.averager,
            scaler=self.accelerator.scaler,
            at=self.at,
            best_weights=self.best_weights,
            recent_norms=self.clipper.recent,
        )


def step_width(longest: int, compiled: bool) -> int:
    """Return the number of which the widths of batches are multiples."""
    return -(-longest // (16 * _WIDTHS)) * 16 if compiled else _WIDTH_STEP


def _synced(trainer: Trainer, last: bool) -> Any:
    """Let processes exchange gradients with the last micro-batch only."""
    from contextlib import nullcontext

    return nullcontext() if last else trainer.accelerator.no_sync(trainer.model)


def _leave_to_processes(network: Network, tables: Mapping[str, LabelTable]) -> None:
    """Keep the process group from giving all processes the rows of the main one."""
    from torch.nn.parallel import DistributedDataParallel

    of_tables = {id(value) for table in tables.values() for value in (*table.parameters(), *table.buffers())}
    named = [*network.named_parameters(), *network.named_buffers()]
    names = [name for name, value in named if id(value) in of_tables]
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(network, names)


def _tensorboard(folder: str | None) -> Any:
    if folder is None:
        return None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        from longtail.errors import MissingExtraError

        raise MissingExtraError("training.tensorboard needs tensorboard; pip install tensorboard") from error
    return SummaryWriter(folder)
