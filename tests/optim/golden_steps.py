#!/usr/bin/env python3
"""Writes what PyTorch's optimisers and schedulers do, for tests/optim/golden_test.cpp.

usage: golden_steps.py FILE.safetensors      (tests/optim/data/steps.safetensors)

The problem: w (3, 2) and b (3) in float64, loss = mean((tanh(x wᵀ + b) - y)²) · 5 over two halves
of a batch of eight. Step k of ten has the learning rate base · (1 - k / 20). For every
configuration the file holds "<name>/w" (10, 3, 2) and "<name>/b" (10, 3): the values after each
step. Those of other types and schedules say below what they hold.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import torch
from make_golden import Writer

STEPS = 10
INFINITE = {2, 6, 7}  # steps of loss scaling in which the loss is multiplied by infinity


def drawn(*shape):
    return (torch.randint(-128, 129, shape, generator=GENERATOR) / 64).to(torch.float64)


GENERATOR = torch.Generator().manual_seed(20)
W, B = drawn(3, 2), drawn(3)
X, Y = drawn(8, 2), drawn(8, 3) / 4


def loss_of(w, b, x=X, y=Y):
    return ((torch.tanh(x @ w.T + b) - y) ** 2).mean() * 5


class Run:
    """Parameters that start at W and B, and the loop of steps."""

    def __init__(self, make):
        self.w = W.clone().requires_grad_()
        self.b = B.clone().requires_grad_()
        self.optimizer = make(self.w, self.b)
        self.base = [group["lr"] for group in self.optimizer.param_groups]
        self.extra = {}

    def backward(self, k):
        loss_of(self.w, self.b).backward()

    def after_backward(self):
        pass

    def after_step(self):
        pass

    def parameters(self):
        return [self.w, self.b]

    def run(self):
        seen = {"w": [], "b": []}
        for k in range(STEPS):
            for group, base in zip(self.optimizer.param_groups, self.base):
                group["lr"] = base * (1 - k / 20)
            self.optimizer.zero_grad()
            self.backward(k)
            self.after_backward()
            self.optimizer.step()
            self.after_step()
            seen["w"].append(self.w.detach().clone())
            seen["b"].append(self.b.detach().clone())
        return {name: torch.stack(values) for name, values in (seen | self.extra).items()}


def plain(kind, **options):
    return lambda: Run(lambda w, b: kind([w, b], **options)).run()


class ClippedNorm(Run):
    def after_backward(self):
        norm = torch.nn.utils.clip_grad_norm_(self.parameters(), 0.5)
        self.extra.setdefault("norm", []).append(norm)


class ClippedValue(Run):
    def after_backward(self):
        torch.nn.utils.clip_grad_value_(self.parameters(), 0.25)


class Accumulated(Run):
    def backward(self, k):
        for half in (slice(0, 4), slice(4, 8)):
            (loss_of(self.w, self.b, X[half], Y[half]) / 2).backward()


class Averaged(Run):
    """torch.optim.swa_utils with its average started before the first step."""

    def __init__(self, make):
        super().__init__(make)
        self.model = torch.nn.ParameterList([self.w, self.b])
        average = torch.optim.swa_utils.get_ema_multi_avg_fn(0.75)
        self.averaged = torch.optim.swa_utils.AveragedModel(self.model, multi_avg_fn=average)
        self.averaged.update_parameters(self.model)

    def after_step(self):
        self.averaged.update_parameters(self.model)
        for name, average in zip(("average_w", "average_b"), self.averaged.module):
            self.extra.setdefault(name, []).append(average.detach().clone())


def adamw(w, b):
    return torch.optim.AdamW([w, b], lr=0.05, weight_decay=0.1)


def momentum(w, b):
    return torch.optim.SGD([w, b], lr=0.1, momentum=0.9)


def groups(kind, **options):
    def make(w, b):
        return kind([{"params": [w]}, {"params": [b], "weight_decay": 0.0, "lr": 0.5 * 0.05}],
                    lr=0.05, weight_decay=0.1, **options)
    return lambda: Run(make).run()


CONFIGURATIONS = {
    "sgd": plain(torch.optim.SGD, lr=0.2),
    "sgd_decay": plain(torch.optim.SGD, lr=0.2, weight_decay=0.1),
    "sgd_momentum": plain(torch.optim.SGD, lr=0.1, momentum=0.9),
    "sgd_dampening": plain(torch.optim.SGD, lr=0.1, momentum=0.8, dampening=0.3,
                           weight_decay=0.05),
    "sgd_nesterov": plain(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.01,
                          nesterov=True),
    "adam": plain(torch.optim.Adam, lr=0.05),
    "adam_decay": plain(torch.optim.Adam, lr=0.05, betas=(0.8, 0.95), eps=1e-6,
                        weight_decay=0.1),
    "adamw": plain(torch.optim.AdamW, lr=0.05),
    "adamw_betas": plain(torch.optim.AdamW, lr=0.05, betas=(0.8, 0.95), eps=1e-6,
                         weight_decay=0.2),
    "rmsprop": plain(torch.optim.RMSprop, lr=0.02),
    "rmsprop_decay": plain(torch.optim.RMSprop, lr=0.02, alpha=0.9, eps=1e-6,
                           weight_decay=0.1),
    "rmsprop_momentum": plain(torch.optim.RMSprop, lr=0.01, momentum=0.9),
    "rmsprop_centered": plain(torch.optim.RMSprop, lr=0.02, centered=True),
    "rmsprop_all": plain(torch.optim.RMSprop, lr=0.01, alpha=0.9, momentum=0.5, centered=True,
                         weight_decay=0.05),
    "groups_sgd": groups(torch.optim.SGD, momentum=0.5),
    "groups_adam": groups(torch.optim.Adam),
    "groups_adamw": groups(torch.optim.AdamW),
    "groups_rmsprop": groups(torch.optim.RMSprop),
    "clipped_norm": lambda: ClippedNorm(adamw).run(),
    "clipped_value": lambda: ClippedValue(momentum).run(),
    "accumulated": lambda: Accumulated(adamw).run(),
    "averaged": lambda: Averaged(adamw).run(),
}


def loss_scaling():
    """GradScaler on float32 with some infinite losses: values, scales and skipped steps."""
    w = W.float().requires_grad_()
    b = B.float().requires_grad_()
    optimizer = torch.optim.AdamW([w, b], lr=0.05, weight_decay=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    x, y = X.float(), Y.float()
    seen = {"w": [], "b": [], "scale": []}
    for k in range(STEPS):
        optimizer.zero_grad()
        factor = float("inf") if k in INFINITE else 1.0
        scaler.scale(loss_of(w, b, x, y) * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        seen["w"].append(w.detach().clone())
        seen["b"].append(b.detach().clone())
        seen["scale"].append(torch.tensor(scaler.get_scale()))
    return {name: torch.stack(values) for name, values in seen.items()}


def masters():
    """bf16 parameters whose f32 masters AdamW moves; "w" and "b" are the masters."""
    master = [W.float().requires_grad_(), B.float().requires_grad_()]
    optimizer = torch.optim.AdamW(master, lr=1e-3, weight_decay=0.1)
    seen = {"w": [], "b": []}
    for _ in range(STEPS):
        half = [p.detach().bfloat16().requires_grad_() for p in master]
        loss_of(half[0].float(), half[1].float(), X.float(), Y.float()).backward()
        for p, h in zip(master, half):
            p.grad = h.grad.float()
        optimizer.step()
        for name, p in zip(seen, master):
            seen[name].append(p.detach().clone())
    return {name: torch.stack(values) for name, values in seen.items()}


# Schedules --------------------------------------------------------------------------------------

SCHEDULE_STEPS = 24
LOSSES = [5, 4, 4.5, 4.2, 4.1, 3.9999, 3, 3, 3, 3, 3, 3, 3.5, 2, 2.1, 2.2, float("nan"), 2.3, 2.4,
          2.5, 1, 1, 1, 1]


def rates(make, lr=0.1, loss=None):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler = make(optimizer)
    seen = []
    for k in range(SCHEDULE_STEPS):
        if loss is None:
            seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step() if loss is None else scheduler.step(loss[k])
        if loss is not None:
            seen.append(optimizer.param_groups[0]["lr"])
    return torch.tensor(seen, dtype=torch.float64)


def warm(optimizer, steps, then):
    first = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / steps, 1.0, steps - 1)
    return torch.optim.lr_scheduler.SequentialLR(optimizer, [first, then], [steps])


def schedules():
    s = torch.optim.lr_scheduler
    return {
        "constant": rates(lambda o: s.ConstantLR(o, 1.0)),
        "linear": rates(lambda o: s.LinearLR(o, 1.0, 0.25, 15)),
        "step": rates(lambda o: s.StepLR(o, 7, 0.5)),
        "exponential": rates(lambda o: s.ExponentialLR(o, 0.9)),
        "cosine": rates(lambda o: s.CosineAnnealingLR(o, SCHEDULE_STEPS, 0.02)),
        "one_cycle": rates(lambda o: s.OneCycleLR(o, 0.1, SCHEDULE_STEPS + 1)),
        "one_cycle_linear": rates(lambda o: s.OneCycleLR(
            o, 0.1, SCHEDULE_STEPS + 1, pct_start=0.5, anneal_strategy="linear", div_factor=10,
            final_div_factor=100)),
        "warm_step": rates(lambda o: warm(o, 6, s.StepLR(o, 7, 0.5))),
        "warm_exponential": rates(lambda o: warm(o, 4, s.ExponentialLR(o, 0.9))),
        "plateau": rates(lambda o: s.ReduceLROnPlateau(o, factor=0.5, patience=2), loss=LOSSES),
        "plateau_cooldown": rates(lambda o: s.ReduceLROnPlateau(
            o, mode="max", factor=0.25, patience=1, threshold=0.01, cooldown=2, min_lr=0.005),
            loss=LOSSES),
    }


def main():
    path = sys.argv[1]
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    torch.set_num_threads(1)
    writer = Writer()
    writer.metadata["torch"] = torch.__version__.split("+")[0]
    for name, tensor in {"w": W, "b": B, "x": X, "y": Y}.items():
        writer.add_result(f"problem/{name}", tensor)
    results = {name: run() for name, run in CONFIGURATIONS.items()}
    results |= {"loss_scaling": loss_scaling(), "masters": masters(), "schedule": schedules()}
    for name, tensors in results.items():
        for part, tensor in tensors.items():
            writer.add_result(f"{name}/{part}", tensor)
    writer.write(path)
    print(f"{path}: {len(results)} configurations, {os.path.getsize(path)} bytes, "
          f"torch {torch.__version__}")


if __name__ == "__main__":
    main()
