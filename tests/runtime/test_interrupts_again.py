"""Ctrl-C in a program that has run before: no Python of JAX's stands between caller and XLA."""

import json
import subprocess
import sys

import pytest

# `interrupted(work)` runs it and sends SIGINT half a second after it began; calls on `query` take
# over ten seconds but where a single workgroup of them runs, so that all is compiled before.
PRELUDE = """
import ctypes, json, os, signal, sys, threading, time
import jax, jax.numpy as jnp, numpy as np
from jax_fa import emulator, flash_attention

def attend(query):
    return flash_attention(query, query, query, implementation="gfx950")

query = jnp.ones((1, 4096, 128, 64), jnp.bfloat16)
small = query[:, :16, :1]

settings = emulator.configure(checks=True, threads=1)
settings.__enter__()  # for the whole process

def quickly(work):
    with emulator.configure(workgroups=[0]):
        jax.block_until_ready(work(query))

def interrupted(work):
    sent = []
    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(0.5, send)
    timer.start()
    answer = {"raised": ""}
    try:
        work()
    except BaseException as error:
        answer["raised"] = type(error).__name__
    answer["seconds"] = time.monotonic() - sent[0]
    return answer

def action():  # what the C library has for SIGINT
    text = ctypes.create_string_buffer(256)
    ctypes.CDLL(None).sigaction(signal.SIGINT, None, text)
    return text.raw[:16].hex(), text.raw[136:140].hex()  # handler, mask, flags

def next_call(work):
    begin = time.monotonic()
    out = np.asarray(work(small), np.float32)
    return [bool((out == 1).all()), time.monotonic() - begin]
"""

WORKS = {
    "jit": "work = jax.jit(attend)",
    "twice": "work = jax.jit(lambda query: attend(attend(query)))",
    "at once": """
jax.config.update("jax_cpu_enable_async_dispatch", False)
work = jax.jit(lambda query: attend(query * 1) * 1)
""",
}


def run(code):
    result = subprocess.run(
        [sys.executable, "-c", PRELUDE + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    "work",
    [
        "jit",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("twice", "at once")),
    ],
)
def test_a_call_is_cut_short_and_the_next_is_right(work):
    code = """
before = signal.getsignal(signal.SIGINT), action()
quickly(work)
answer = interrupted(lambda: jax.block_until_ready(work(query)))
answer["next"], answer["next_seconds"] = next_call(work)
answer["restored"] = (signal.getsignal(signal.SIGINT), action()) == before
print(json.dumps(answer))
"""
    answer = run(WORKS[work] + code)
    assert answer["raised"] == "KeyboardInterrupt"
    assert answer["seconds"] < 1
    assert answer["next"]
    assert answer["next_seconds"] < 20
    assert answer["restored"]


# What an interrupted call leaves is no number, upon which a loop may go on for long or for ever.
# XLA runs it on the thread that called, on one of its own, or first on the one and then on the
# other; the signal comes during the first call or between many.
@pytest.mark.parametrize("heads", [1, 128])
def test_a_loop_of_calls_ends_as_well(heads):
    code = (
        f"query = query[:, :, :{heads}]"
        + """
work = jax.jit(lambda query: jax.lax.fori_loop(0, 1_000_000, lambda _, x: attend(x), query))
compiled = work.lower(query).compile()
answer = interrupted(lambda: compiled(query))
answer["next"], _ = next_call(jax.jit(attend))
print(json.dumps(answer))
"""
    )
    answer = run(code)
    assert answer["raised"] == "KeyboardInterrupt"
    assert answer["seconds"] < 1.5
    assert answer["next"]
