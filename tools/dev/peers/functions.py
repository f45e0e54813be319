"""PyTorch's side of clnet-bench's items function-...: order, counts, running values, selection, sampling and special functions."""
import torch
from torch.nn import functional

SQUARE = 1024, 1024


def uniform(*shape):
    return torch.rand(shape)


def below(count, *shape, dtype=torch.int64):
    return torch.randint(0, count, shape, dtype=dtype)


def boxes(count, side):
    """Corners of boxes up to 10 % of `side` large."""
    corner = torch.rand(count, 2) * (0.9 * side)
    return torch.cat((corner, corner + torch.rand(count, 2) * (0.1 * side)), 1)


def square():
    return [uniform(*SQUARE)]


def squares():
    return [uniform(*SQUARE), uniform(*SQUARE)]


def square_and_indices():
    return [uniform(*SQUARE), below(1024, *SQUARE)]


def with_source():
    return [*square_and_indices(), uniform(*SQUARE)]


def rows():
    return [uniform(*SQUARE), below(1024, 512), uniform(512, 1024)]


def places():
    return [uniform(*SQUARE), below(1024, 1 << 18, 2), uniform(1 << 18)]


def images():
    return [uniform(4, 16, 128, 128), uniform(4, 128, 128, 2) * 2 - 1]


def regions():
    return [uniform(4, 64, 56, 56), torch.cat((below(4, 256, 1).float(), boxes(256, 448)), 1)]


def nms(corners, scores):
    from torchvision.ops import nms
    return nms(corners, scores, 0.5)


def roi_align(x, regions):
    from torchvision.ops import roi_align
    return roi_align(x, regions, 7, spatial_scale=0.125, sampling_ratio=2, aligned=True)


def along(function, values=lambda result: result):
    """{name-dim: (inputs, function)} for both dimensions of a square."""
    return lambda dim: (square, lambda x: values(function(x, dim)))


def first(result):
    return result[0]


BY_DIM = {"sort": along(torch.sort, first), "cumsum": along(torch.cumsum), "cumprod": along(torch.cumprod),
          "cummax": along(torch.cummax, first), "logcumsumexp": along(torch.logcumsumexp), "argmax": along(torch.argmax)}

FUNCTIONS = {
    "sort-whole": (square, lambda x: x.flatten().sort()[0]),
    "topk-10": (square, lambda x: x.topk(10, 1)[0]),
    "median": (square, lambda x: x.median(1)[0]),
    "mode": (square, lambda x: x.mode(1)[0]),
    "quantile": (square, lambda x: x.quantile(0.3, 1)),
    "searchsorted": (lambda: [uniform(65536).sort()[0], *square()], torch.searchsorted),
    "isin": (lambda: [below(65536, *SQUARE, dtype=torch.int32), below(65536, 1024, dtype=torch.int32)], torch.isin),
    "bincount": (lambda: [below(1024, 1 << 20)], torch.bincount),
    "histc": (square, lambda x: x.histc(100, 0, 1)),
    "nonzero": (lambda: [uniform(*SQUARE) > 0.5], torch.nonzero),
    "masked-select": (lambda: [uniform(*SQUARE), uniform(*SQUARE) > 0.5], torch.masked_select),
    "unique-floats": (square, torch.unique),
    "unique-integers": (lambda: [below(1024, 1 << 20)], torch.unique),
    "unique-consecutive": (lambda: [below(65536, 1 << 20).sort()[0]], torch.unique_consecutive),
    "one-hot": (lambda: [below(64, 65536)], lambda x: functional.one_hot(x, 64)),
    "nms": (lambda: [boxes(4096, 1000), uniform(4096)], nms),
    "cumsum-whole": (square, lambda x: x.flatten().cumsum(0)),
    "cummax-whole": (square, lambda x: x.flatten().cummax(0)[0]),
    "logcumsumexp-whole": (square, lambda x: x.flatten().logcumsumexp(0)),
    "take-along-dim": (square_and_indices, lambda x, at: x.take_along_dim(at, 1)),
    "index-fill": (rows, lambda x, at, source: x.index_fill(0, at, 2)),
    "index-copy": (rows, lambda x, at, source: x.index_copy(0, at, source)),
    "index-add": (rows, lambda x, at, source: x.index_add(0, at, source)),
    "scatter": (with_source, lambda x, at, source: x.scatter(1, at, source)),
    "scatter-add": (with_source, lambda x, at, source: x.scatter_add(1, at, source)),
    "scatter-reduce-amax": (with_source, lambda x, at, source: x.scatter_reduce(1, at, source, "amax")),
    "gather-nd": (places, lambda x, at, source: x[at[:, 0], at[:, 1]]),
    "scatter-nd": (places, lambda x, at, source: x.index_put((at[:, 0], at[:, 1]), source)),
    "grid-sample-bilinear": (images, lambda x, grid: functional.grid_sample(x, grid, align_corners=False)),
    "grid-sample-bicubic": (images, lambda x, grid: functional.grid_sample(x, grid, mode="bicubic", align_corners=False)),
    "affine-grid": (lambda: [uniform(64, 2, 3)], lambda theta: functional.affine_grid(theta, (64, 1, 128, 128), align_corners=False)),
    "roi-align": (regions, roi_align),
    "tensordot": (lambda: [uniform(512, 16, 32), uniform(32, 16, 512)], lambda a, b: torch.tensordot(a, b, ([1, 2], [1, 0]))),
    "cdist": (lambda: [uniform(512, 64), uniform(512, 64)], torch.cdist),
    "kron": (lambda: [uniform(32, 32), uniform(32, 32)], torch.kron),
    "cross": (lambda: [uniform(349525, 3), uniform(349525, 3)], lambda a, b: torch.linalg.cross(a, b)),
    "diff": (square, torch.diff),
    "roll": (square, lambda x: x.roll((100, 100), (0, 1))),
    "repeat-interleave": (lambda: [uniform(512, 1024)], lambda x: x.repeat_interleave(2, 1)),
    "tril": (square, torch.tril),
    "erfinv": (square, torch.erfinv),
    "lgamma": (square, torch.lgamma),
    "digamma": (square, torch.digamma),
    "logit": (square, torch.logit),
    "logaddexp": (squares, torch.logaddexp),
    "hypot": (squares, torch.hypot),
    "xlogy": (squares, torch.xlogy),
    "sinc": (square, torch.sinc),
    "bitwise-and": (lambda: [below(1 << 20, *SQUARE, dtype=torch.int32), below(1 << 20, *SQUARE, dtype=torch.int32)], torch.bitwise_and),
} | {f"{name}-dim{dim}": make(dim) for name, make in BY_DIM.items() for dim in (0, 1)}
