"""AITER's v3 forward attention on floats of 8 bits.

The kernel reads results of LDS reads that its waits do not prove there; on the chip they have come
by then. Here its waits are made to wait for all of them, so that what its instructions compute is
compared.
"""

import struct

import aiter
import ml_dtypes
import numpy as np
import peer_aiter

from jax_fa import emulator

pytestmark = aiter.needs_folder

WAIT, LDS_COUNT = 0xBF8C, 0x0F00  # s_waitcnt; lgkmcnt in its immediate
T, S, H = 512, 512, peer_aiter.HEAD_DIM


def _with_full_waits(image: bytes) -> bytes:
    words = np.frombuffer(image[: len(image) // 4 * 4], np.uint32).copy()
    waits = (words >> 16 == WAIT) & (words & LDS_COUNT != 0)
    assert waits.any()
    words[waits] &= ~np.uint32(LDS_COUNT)
    return words.tobytes() + image[len(words) * 4 :]


def test_dense_kernel():
    path = aiter.FOLDER / "fmha_v3_fwd" / "fwd_hd128_fp8.co"
    code = emulator.CodeObject(_with_full_waits(path.read_bytes()))
    (kernel,) = code.kernels
    rng = np.random.default_rng(0)
    query, key, value = (
        rng.standard_normal((rows, H), np.float32).astype(ml_dtypes.float8_e4m3fn)
        for rows in (T, S, S)
    )
    scales = [np.full(1, scale, np.float32) for scale in (0.5, 1.25, 2.0)]
    out, lse = np.zeros((T, H), ml_dtypes.bfloat16), np.zeros(T, np.float32)
    numbers = {"s_seq_len": T, "s_kv_seq_len": S, "s_Seqs": H, "s_Ts": peer_aiter.BLOCK_Q * H}
    numbers |= {"s_Hs": H, "s_Bs": T * H, "s_gqa": 1, "s_k_Seqs": H, "s_k_Hs": H, "s_k_Bs": S * H}
    numbers |= {"s_v_Seqs": H, "s_v_Hs": H, "s_v_Bs": S * H, "s_o_Seqs": 2 * H, "s_o_Hs": 2 * H}
    numbers |= {"s_o_Bs": 2 * T * H, "s_opt": 3, "s_lse": 1, "s_lse_Hs": 4 * T, "s_q_head_num": 1}
    numbers |= {"s_qk_head_dim": H, "s_v_head_dim": H}
    arrays = {"ptr_o": out, "ptr_q": query, "ptr_k": key, "ptr_v": value, "ptr_lse": lse}
    arrays |= {f"ptr_{x}_descale": scale for x, scale in zip("qkv", scales, strict=True)}
    kernarg = bytearray(code.kernels[kernel].kernarg_bytes)
    for name, _, offset, _ in code.kernels[kernel].arguments:
        if name in arrays:
            struct.pack_into("<Q", kernarg, offset, arrays[name].ctypes.data)
        elif name == "scalar":
            struct.pack_into("<f", kernarg, offset, H**-0.5)
        elif name in numbers:
            struct.pack_into("<I", kernarg, offset, numbers[name])
    code.launch(
        kernel,
        peer_aiter.grid(T, 1, 1, False),
        peer_aiter.THREADS,
        kernarg=bytes(kernarg),
        buffers=list(arrays.values()),
        checks=False,
    )
    q, k, v = (
        x.astype(np.float32) * scale for x, scale in zip((query, key, value), scales, strict=True)
    )
    scores = q @ k.T * np.float32(H**-0.5)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(lse, (np.log(total) + top)[:, 0], atol=1e-4, rtol=0)
    # The kernel rounds the weights to 3 bits of mantissa.
    np.testing.assert_allclose(out.astype(np.float32), weights @ v / total, atol=2.5e-2, rtol=0)
