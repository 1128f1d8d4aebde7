"""Sums over all pairs of a few coordinates on a CUDA GPU, each unordered pair visited once.

A program takes a tile of pairs at a time: scores by one product, weights in registers, weighted
sums by two more products; no array of pairs is ever in memory. Programs add to their results
atomically, so that two runs may differ by rounding. Gradients and values are summed in float64,
second derivatives, which only steer, in float32.

The score of a pair is left_i . right_j. The numbers at `numbers_ptr` are those of `LoadedPairs`,
KIND is one of `KINDS`, and POWER what `_power` says, all in `pair_passes.py`.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def reciprocal(v, EXACT: tl.constexpr):  # type: ignore[no-untyped-def]
    """1/v: two Newton steps from the GPU's own approximation to 23 bits."""
    if EXACT:
        r = 1.0 / v
    else:
        r = tl.inline_asm_elementwise(
            "rcp.approx.ftz.f64 $0, $1;", "=d,d", [v], dtype=tl.float64, is_pure=True, pack=1
        )
        r = r + r * (1.0 - v * r)
        r = r + r * (1.0 - v * r)
    return r


@triton.jit  # type: ignore[untyped-decorator]
def _sharper_by(x, t, sharpness, excess, POWER: tl.constexpr):  # type: ignore[no-untyped-def]
    """The difference e^-t - e^(-sharpness t), x = e^-t, excess = sharpness - 1; see `_power`."""
    if POWER == 2:
        less = x - x * x
    elif POWER == 1:
        z = excess * t
        less = x * z * (1.0 - z * (0.5 - z * (0.16666666666666666 - z * 0.041666666666666664)))
    else:
        less = x - tl.exp(-sharpness * t)
    return less


@triton.jit
def _product(a, b):  # type: ignore[no-untyped-def]
    return a * b


@triton.jit(do_not_specialize=["n", "first", "used", "run"])  # type: ignore[untyped-decorator]
def gradients(  # type: ignore[no-untyped-def]
    left_ptr, right_ptr, z_ptr, out_ptr, sums_ptr, numbers_ptr, n, first, used,
    run, KIND: tl.constexpr, K: tl.constexpr, KZ: tl.constexpr,
    TWO_SIDED: tl.constexpr, POWER: tl.constexpr, EXACT: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sum the loss and weight * W Z over the pairs i < j < n of which j is not below `first`."""
    sharpness, excess = tl.load(numbers_ptr), tl.load(numbers_ptr + 1)
    weight = tl.load(numbers_ptr + 2)
    i0 = tl.program_id(0) * ROWS
    begin = tl.maximum(i0 // COLUMNS, tl.program_id(1) * run)
    end = tl.minimum(tl.cdiv(n, COLUMNS), (tl.program_id(1) + 1) * run)
    if begin >= end:
        return
    k, kz = tl.arange(0, K), tl.arange(0, KZ)
    i = i0 + tl.arange(0, ROWS)
    left = tl.load(left_ptr + i[:, None] * K + k[None, :])
    summed = tl.zeros((ROWS, KZ), dtype=tl.float64)
    zero = tl.zeros((COLUMNS,), dtype=tl.float64)
    logs, more_logs, rest = zero, zero, zero
    unit = tl.full((COLUMNS,), 1.0, dtype=tl.float64)
    product, more_product = unit, unit
    if TWO_SIDED:
        z_i = weight * tl.load(z_ptr + i[:, None] * KZ + kz[None, :])
    for tile in range(begin, end):
        j0 = tile * COLUMNS
        j = j0 + tl.arange(0, COLUMNS)
        right = tl.load(right_ptr + j[:, None] * K + k[None, :])
        s = tl.dot(left, tl.trans(right), out_dtype=tl.float64)
        if (j0 < i0 + ROWS) | (j0 + COLUMNS > n) | (j0 < first):
            is_pair = (i[:, None] < j[None, :]) & (j[None, :] < n) & (j[None, :] >= first)
            s = tl.where(is_pair, s, 1000.0)
        t = tl.abs(s)
        x = tl.exp(-t)
        one = 1.0 + x
        if KIND == 0:
            far = x * reciprocal(one, EXACT)
            w = tl.where(s > 0.0, -far, far - 1.0)
            rest += tl.sum(0.5 * (t - s), axis=0)
        elif KIND == 1:
            less = _sharper_by(x, t, sharpness, excess, POWER)
            one_y = one - less
            inverse = reciprocal(one * one_y, EXACT)
            w = less * inverse
            w = tl.where(s > 0.0, -w, w)
            share = one_y * inverse
            rest += tl.sum(t * x * share, axis=0)
            if POWER == 1:  # (1 + y) / (1 + x) = 1 - v, v below 2^-20
                v = less * share
                more_logs += tl.sum(v + 0.5 * v * v, axis=0)
            else:
                more_product *= tl.reduce(one_y, 0, _product)
        else:
            inverse = reciprocal(one, EXACT)
            far = x * inverse
            w = -s * far * inverse
            rest += tl.sum(t * far, axis=0)
        product *= tl.reduce(one, 0, _product)
        if tile % (512 // ROWS) == 0:  # of at most 512 factors below 2: it does not overflow
            logs += tl.log(product)
            more_logs += tl.log(more_product)
            product, more_product = unit, unit
        z_j = right if KZ == K and TWO_SIDED else tl.load(z_ptr + j[:, None] * KZ + kz[None, :])
        summed = tl.dot(w, z_j, summed, out_dtype=tl.float64)
        if TWO_SIDED:
            transposed = tl.dot(tl.trans(w), z_i, out_dtype=tl.float64)
            tl.atomic_add(
                out_ptr + j[:, None] * KZ + kz[None, :], transposed, sem="relaxed",
                mask=(kz[None, :] < used) & (j[:, None] < n),
            )  # fmt: skip
    tl.atomic_add(
        out_ptr + i[:, None] * KZ + kz[None, :], weight * summed, sem="relaxed",
        mask=(kz[None, :] < used) & (i[:, None] < n),
    )  # fmt: skip
    program = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    logs += tl.log(product)
    more_logs += tl.log(more_product)
    tl.store(sums_ptr + 3 * program, tl.sum(logs))
    tl.store(sums_ptr + 3 * program + 1, tl.sum(more_logs))
    tl.store(sums_ptr + 3 * program + 2, tl.sum(rest))


@triton.jit  # type: ignore[untyped-decorator]
def _rough_reciprocal(v, EXACT: tl.constexpr):  # type: ignore[no-untyped-def]
    """1/v in float32, by the GPU's own approximation."""
    if EXACT:
        r = 1.0 / v
    else:
        r = tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1
        )
    return r


@triton.jit  # type: ignore[untyped-decorator]
def _first_two(  # type: ignore[no-untyped-def]
    s, sharpness, excess, KIND: tl.constexpr, POWER: tl.constexpr, EXACT: tl.constexpr
):
    """The first two derivatives of a loss, in float32."""
    t = tl.abs(s)
    x = tl.exp(-t)
    one = 1.0 + x
    if KIND == 1 and POWER != 1:
        less = _sharper_by(x, t, sharpness, excess, POWER)
        y = x - less
        both = _rough_reciprocal(one * (1.0 + y), EXACT)
        first_derivative = less * both
        first_derivative = tl.where(s > 0.0, -first_derivative, first_derivative)
        second = (less * (1.0 - x * y) - excess * y * one * one) * both * both
    else:
        inverse = _rough_reciprocal(one, EXACT)
        far = x * inverse
        second = far * inverse
        if KIND == 0:
            first_derivative = tl.where(s > 0.0, -far, far - 1.0)
        else:
            if KIND == 1:  # to first order in the excess it is that times the entropy
                second *= excess
            first_derivative = -s * second
            second = second * (t * (1.0 - x) * inverse - 1.0)
    return first_derivative, second


@triton.jit(do_not_specialize=["n", "first", "rho", "run"])  # type: ignore[untyped-decorator]
def hessian_products(  # type: ignore[no-untyped-def]
    left_ptr, right_ptr, e_ptr, counts_ptr, W_ptr, T_ptr, numbers_ptr, n, first, rho,
    run, KIND: tl.constexpr, K: tl.constexpr, POWER: tl.constexpr,
    EXACT: tl.constexpr, COUNTED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sum W [E, 1] and T [Y, 1], T = 2 phi'' (y_i - y_j).(e_i - e_j), times a weight.

    The rows of e are [e, -y.e, 0, ..., 1], so that right_i . e_j + e_i . right_j is minus that
    product of differences.
    """
    sharpness = tl.load(numbers_ptr).to(tl.float32)
    excess = tl.load(numbers_ptr + 1).to(tl.float32)
    weight = tl.load(numbers_ptr + 2).to(tl.float32)
    i0 = tl.program_id(0) * ROWS
    begin = tl.maximum(i0 // COLUMNS, tl.program_id(1) * run)
    end = tl.minimum(tl.cdiv(n, COLUMNS), (tl.program_id(1) + 1) * run)
    if begin >= end:
        return
    k = tl.arange(0, K)
    i = i0 + tl.arange(0, ROWS)
    row = i[:, None] * K + k[None, :]
    left, right_i, e_i = tl.load(left_ptr + row), tl.load(right_ptr + row), tl.load(e_ptr + row)
    count_i = weight * tl.load(counts_ptr + i) if COUNTED else weight
    W_summed = tl.zeros((ROWS, K), dtype=tl.float32)
    T_summed = tl.zeros((ROWS, K), dtype=tl.float32)
    is_W_column = ((k < rho) | (k == K - 1))[None, :]
    is_T_column = (k <= rho)[None, :]
    for tile in range(begin, end):
        j0 = tile * COLUMNS
        j = j0 + tl.arange(0, COLUMNS)
        column = j[:, None] * K + k[None, :]
        right, e = tl.load(right_ptr + column), tl.load(e_ptr + column)
        s = tl.dot(left, tl.trans(right), input_precision="tf32x3")
        if (j0 < i0 + ROWS) | (j0 + COLUMNS > n) | (j0 < first):
            is_pair = (i[:, None] < j[None, :]) & (j[None, :] < n) & (j[None, :] >= first)
            s = tl.where(is_pair, s, 1000.0)
        w, second = _first_two(s, sharpness, excess, KIND, POWER, EXACT)
        both = count_i
        if COUNTED:
            both = count_i[:, None] * tl.load(counts_ptr + j)[None, :]
        w *= both
        second *= both
        inner = tl.dot(e_i, tl.trans(right), input_precision="tf32")
        inner = tl.dot(right_i, tl.trans(e), inner, input_precision="tf32")
        T = -2.0 * second * inner
        W_summed = tl.dot(w, e, W_summed, input_precision="tf32")
        T_summed = tl.dot(T, right, T_summed, input_precision="tf32")
        inside = j[:, None] < n
        transposed = tl.dot(tl.trans(w), e_i, input_precision="tf32")
        tl.atomic_add(W_ptr + column, transposed, sem="relaxed", mask=is_W_column & inside)
        transposed = tl.dot(tl.trans(T), right_i, input_precision="tf32")
        tl.atomic_add(T_ptr + column, transposed, sem="relaxed", mask=is_T_column & inside)
    tl.atomic_add(W_ptr + row, W_summed, sem="relaxed", mask=is_W_column & (i[:, None] < n))
    tl.atomic_add(T_ptr + row, T_summed, sem="relaxed", mask=is_T_column & (i[:, None] < n))
