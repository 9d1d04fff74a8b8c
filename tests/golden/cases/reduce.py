"""Reductions, running totals and order."""

import torch

from .registry import apart, away, case, coarse, constant, given, real

INF = float("inf")

case("sum", [real(2, 3, 4)], torch.sum)
case("sum_first", [real(2, 3, 4)], lambda x: torch.sum(x, 0))
case("sum_last", [real(2, 3, 4)], lambda x: torch.sum(x, -1))
case("sum_middle_keepdims", [real(2, 3, 4)], lambda x: torch.sum(x, 1, keepdim=True))
case("sum_two_axes", [real(2, 3, 4)], lambda x: torch.sum(x, (0, 2)))
case("sum_two_axes_keepdims", [real(2, 3, 4)], lambda x: torch.sum(x, (-1, 0), keepdim=True))
case("mean", [real(2, 3, 4)], torch.mean)
case("mean_last", [real(2, 3, 4)], lambda x: torch.mean(x, -1))
case("mean_two_axes_keepdims", [real(2, 3, 4)], lambda x: torch.mean(x, (0, 1), keepdim=True))
case("prod", [away(2, 3, low=0.5)], torch.prod)
case("prod_first", [away(3, 4, low=0.5)], lambda x: torch.prod(x, 0))
case("prod_keepdims", [away(2, 3, 4, low=0.5)], lambda x: torch.prod(x, 1, keepdim=True))
case("prod_two_axes", [away(2, 3, 2, low=0.5)], lambda x: torch.prod(torch.prod(x, 2), 0))
case("prod_one_zero", [given([1.5, 0.0, -2.0, 0.75, 1.25, 3.0], shape=(2, 3))],
     lambda x: torch.prod(x, 1))
case("prod_two_zeros", [given([1.5, 0.0, -2.0, 0.0])], torch.prod)
case("max", [apart(2, 3, 4)], lambda x: torch.amax(x, (0, 1, 2)))
case("max_first", [apart(2, 3, 4)], lambda x: torch.amax(x, 0))
case("max_two_axes_keepdims", [apart(2, 3, 4)], lambda x: torch.amax(x, (0, 2), keepdim=True))
case("max_ties", [coarse(4, 6)], lambda x: torch.amax(x, 1))
case("min", [apart(2, 3, 4)], lambda x: torch.amin(x, (0, 1, 2)))
case("min_last_keepdims", [apart(2, 3, 4)], lambda x: torch.amin(x, -1, keepdim=True))
case("min_two_axes", [apart(2, 3, 4)], lambda x: torch.amin(x, (1, 2)))
case("min_ties", [coarse(4, 6)], lambda x: torch.amin(x, 0))
case("var", [real(3, 4)], torch.var)
case("var_last", [real(3, 4)], lambda x: torch.var(x, -1))
case("var_population", [real(3, 4)], lambda x: torch.var(x, 0, correction=0, keepdim=True))
case("var_two_axes", [real(2, 3, 4)], lambda x: torch.var(x, (0, 2)))
case("var_offset", [real(3, 4, low=14, high=18)], lambda x: torch.var(x, -1))
case("std", [real(3, 4)], torch.std)
case("std_last", [real(3, 4)], lambda x: torch.std(x, -1, keepdim=True))
case("std_population", [real(3, 4)], lambda x: torch.std(x, 0, correction=0))


def norm(x, p, **options):
    return torch.linalg.vector_norm(x, p, **options)


case("norm", [real(3, 4)], lambda x: norm(x, 2))
case("norm_last", [real(3, 4)], lambda x: norm(x, 2, dim=-1, keepdim=True))
case("norm_one", [away(3, 4)], lambda x: norm(x, 1, dim=0))
case("norm_three", [away(3, 4)], lambda x: norm(x, 3, dim=1))
case("norm_half", [away(3, 4, low=0.5)], lambda x: norm(x, 0.5, dim=1))
case("norm_inf", [apart(3, 4)], lambda x: norm(x, INF, dim=1))
case("norm_zero", [coarse(3, 4)], lambda x: norm(x, 0, dim=1))
case("norm_two_axes", [real(2, 3, 4)], lambda x: norm(x, 2, dim=(0, 2)))
case("norm_of_zeros", [given([0.0] * 4)], lambda x: norm(x, 2))
case("logsumexp", [real(3, 4, low=-4, high=4)], lambda x: torch.logsumexp(x, (0, 1)))
case("logsumexp_last", [real(3, 4, low=-4, high=4)],
     lambda x: torch.logsumexp(x, -1, keepdim=True))
case("logsumexp_two_axes", [real(2, 3, 4, low=-4, high=4)], lambda x: torch.logsumexp(x, (0, 2)))
case("logsumexp_large", [real(3, 4, low=960, high=1020)], lambda x: torch.logsumexp(x, 1))
case("logsumexp_ends", [constant(given([-INF, -INF, INF, 1.0], shape=(2, 2)))],
     lambda x: torch.logsumexp(x, 1))
case("argmax", [constant(apart(3, 4))], lambda x: torch.argmax(x, -1))
case("argmax_first_keepdims", [constant(apart(3, 4))],
     lambda x: torch.argmax(x, 0, keepdim=True))
case("argmin", [constant(apart(3, 4))], lambda x: torch.argmin(x, -1))
case("argmin_middle", [constant(apart(2, 3, 4))], lambda x: torch.argmin(x, 1))
case("any", [constant(coarse(5, 2))],
     lambda x: [torch.any(x), torch.any(x, 1), torch.any(x, 0, keepdim=True)])
case("all", [constant(coarse(5, 2))],
     lambda x: [torch.all(x), torch.all(x, 1), torch.all(x, 0, keepdim=True)])

case("cumsum", [real(3, 5)], lambda x: torch.cumsum(x, -1))
case("cumsum_first", [real(3, 5)], lambda x: torch.cumsum(x, 0))
case("cumsum_middle", [real(2, 4, 3)], lambda x: torch.cumsum(x, 1))
case("cumprod", [away(3, 5, low=0.5)], lambda x: torch.cumprod(x, -1))
case("cumprod_first", [away(4, 3, low=0.5)], lambda x: torch.cumprod(x, 0))
case("cumprod_zero", [given([1.5, -0.5, 0.0, 2.0, 0.75, 1.25, 3.0, 0.0, 0.0, 1.0], shape=(2, 5))],
     lambda x: torch.cumprod(x, 1))

case("sort", [apart(3, 6)], lambda x: torch.sort(x, -1))
case("sort_descending", [apart(3, 6)], lambda x: torch.sort(x, -1, descending=True))
case("sort_first", [apart(5, 4)], lambda x: torch.sort(x, 0))
case("sort_ties", [constant(coarse(3, 9))],
     lambda x: [*torch.sort(x, dim=1, stable=True),
                *torch.sort(x, dim=1, stable=True, descending=True)])
case("argsort", [constant(apart(3, 6))], lambda x: torch.argsort(x, 1))
case("argsort_descending_first", [constant(apart(5, 4))],
     lambda x: torch.argsort(x, 0, descending=True))
case("topk", [apart(3, 7)], lambda x: torch.topk(x, 3))
case("topk_smallest", [apart(3, 7)], lambda x: torch.topk(x, 2, largest=False))
case("topk_first", [apart(6, 4)], lambda x: torch.topk(x, 4, 0))


def unique_counts(x):
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    return values, counts, inverse


case("unique_counts", [constant(coarse(4, 5))], unique_counts)
