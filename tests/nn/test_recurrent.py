"""An LSTM as a GPU has it in mixed precision: filled-up inputs and scaled gradients change nothing but their range."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from longtail.nn.encoders.recurrent import scaled_states, states_of

N_TEXTS, N_WORDS = 5, 7


def an_lstm(width: int, hidden: int = 4) -> nn.LSTM:
    torch.manual_seed(0)
    return nn.LSTM(width, hidden, batch_first=True)


def inputs_of(width: int) -> Tensor:
    return torch.randn(N_TEXTS, N_WORDS, width, generator=torch.Generator().manual_seed(1)).requires_grad_()


def gradients(made: Tensor, lstm: nn.LSTM, inputs: Tensor, upper: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(made, [inputs, *lstm.parameters()], upper))


@pytest.mark.parametrize("width", [3, 128, 130])
def test_states_and_gradients_are_those_of_the_plain_lstm(width: int) -> None:
    lstm, inputs = an_lstm(width), inputs_of(width)
    plain, scaled = lstm(inputs)[0], scaled_states(lstm, inputs)
    torch.testing.assert_close(scaled, plain)
    upper = torch.randn(plain.shape) * 1e-3
    for mine, theirs in zip(gradients(scaled, lstm, inputs, upper), gradients(plain, lstm, inputs, upper), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("size", [1e-25, 1e-12, 1.0, 1e12])
def test_the_lstm_meets_gradients_of_one_size_whatever_size_they_have_outside(
    size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    lstm, inputs, met = an_lstm(3), inputs_of(3), []
    plain = torch.lstm

    def watched(*given: object) -> tuple[Tensor, ...]:
        states, *others = plain(*given)
        states.register_hook(lambda gradient: met.append(float(gradient.abs().max())))
        return states, *others

    monkeypatch.setattr(torch, "lstm", watched)
    upper = torch.linspace(-1, 1, N_TEXTS * N_WORDS * 4).view(N_TEXTS, N_WORDS, 4)
    small = gradients(scaled_states(lstm, inputs), lstm, inputs, upper * size)
    usual = gradients(scaled_states(lstm, inputs), lstm, inputs, upper)
    assert all(0.06 < value <= 0.125 for value in met)
    for mine, theirs in zip(small, usual, strict=True):
        torch.testing.assert_close(mine / size, theirs, rtol=1e-4, atol=1e-6)


def test_no_gradient_at_all_stays_none() -> None:
    lstm, inputs = an_lstm(3), inputs_of(3)
    found = gradients(scaled_states(lstm, inputs), lstm, inputs, torch.zeros(N_TEXTS, N_WORDS, 4))
    assert all(torch.equal(gradient, torch.zeros_like(gradient)) for gradient in found)


def test_a_cpu_computes_in_float32_and_answers_in_the_type_it_was_asked_in() -> None:
    lstm, inputs = an_lstm(3), inputs_of(3).detach()
    plain = lstm(inputs)[0]
    assert torch.equal(states_of(lstm, inputs), plain)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(states_of(lstm, inputs), plain.bfloat16())
    halved = states_of(lstm.bfloat16(), inputs.bfloat16())
    assert halved.dtype == torch.bfloat16
    torch.testing.assert_close(halved.float(), plain, rtol=0.05, atol=0.02)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("size", [1.0, 1e-9])
def test_a_gpu_in_mixed_precision_gives_nearly_the_same_however_small_gradients_are(size: float) -> None:
    lstm, inputs = an_lstm(100, 128), torch.randn(16, 50, 100)
    upper = torch.randn(16, 50, 128) * size
    given = inputs.clone().requires_grad_()
    plain = lstm(given)[0]
    expected = gradients(plain, lstm, given, upper)
    lstm, given = lstm.cuda(), inputs.cuda().requires_grad_()
    with torch.autocast("cuda", torch.bfloat16):
        states = states_of(lstm, given)
    assert states.dtype == torch.bfloat16
    torch.testing.assert_close(states.float().cpu(), plain, rtol=0.02, atol=0.02)
    for mine, theirs in zip(gradients(states, lstm, given, upper.cuda().bfloat16()), expected, strict=True):
        assert torch.cosine_similarity(mine.cpu().flatten() / size, theirs.flatten() / size, 0) > 0.99
