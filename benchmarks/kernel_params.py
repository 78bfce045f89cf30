"""The argument block of the attention kernels, for launches that no operand of JAX could make."""

import ctypes


class Strides(ctypes.Structure):
    """Strides of csrc/kernels/params.h."""

    _fields_ = [(name, ctypes.c_longlong) for name in ("batch", "row", "head")]


class WorkGrid(ctypes.Structure):
    """WorkGrid of csrc/kernels/params.h."""

    _fields_ = [
        *((name, ctypes.c_uint) for name in ("slots", "unit_size", "even_ids", "rest")),
        ("divisors", 2 * ctypes.c_uint * 5),
    ]


class Params(ctypes.Structure):
    """AttentionParams of csrc/kernels/params.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("query", "key", "value", "out", "lse")),
        *((name, ctypes.c_void_p) for name in ("partial_out", "partial_lse")),
        ("partial_rows", ctypes.c_longlong),
        *((name, ctypes.c_void_p) for name in ("query_lengths", "key_lengths")),
        *((name, ctypes.c_void_p) for name in ("cu_seqlens_q", "cu_seqlens_k")),
        *((name, ctypes.c_void_p) for name in ("num_sequences", "block_tables")),
        *((f"{name}_stride", Strides) for name in ("query", "key", "out", "lse")),
        *((name, ctypes.c_int) for name in ("batch", "grid_sequences", "seqlen_q", "seqlen_k")),
        *((name, ctypes.c_int) for name in ("num_heads", "num_kv_heads", "group", "head_dim")),
        *((name, ctypes.c_int) for name in ("page_size", "max_pages", "num_pages")),
        *((name, ctypes.c_uint) for name in ("page_magic", "page_shift")),
        ("num_splits", ctypes.c_int),
        ("grid", WorkGrid),
        *((name, ctypes.c_int) for name in ("window_left", "window_right")),
        ("top_left", ctypes.c_int),
        *((name, ctypes.c_float) for name in ("scale", "soft_cap")),
    ]
