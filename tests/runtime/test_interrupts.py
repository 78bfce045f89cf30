"""Ctrl-C during emulated custom calls, in processes of their own."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

# What a user sees within a second, measured from the signal on. Uninterrupted, the call on `long`
# takes over ten times that, and the one on `short` two seconds, on a machine of whatever speed.
LIMIT = 1.0

PRELUDE = """
import ctypes, json, os, signal, sys, threading, time
import jax, jax.numpy as jnp, numpy as np
from jax_fa import emulator, flash_attention

settings = emulator.configure(threads=2)
settings.__enter__()  # for the whole process

def attend(q):
    return flash_attention(q, q, q, implementation="gfx950")

@jax.jit
def called(q):  # a program that XLA takes for cheap, and runs on the thread that calls
    return attend(q)

@jax.jit
def queued(q):  # one that it runs on a thread of its own
    return attend(q + (weight @ weight)[0, 0].astype(q.dtype))

weight = jnp.zeros((512, 512))
tiny, one = (jnp.ones((1, t, 8, 64), jnp.bfloat16) for t in (8, 2048))
for run in (called, queued, attend):  # compiled before
    jax.block_until_ready(run(tiny))
jax.block_until_ready(called(one))
begin = time.monotonic()
jax.block_until_ready(called(one))
count = 1 + int(2 / (time.monotonic() - begin))
short, long = (jnp.ones((n, 2048, 8, 64), jnp.bfloat16) for n in (count, 8 * count))
compiled = {run: run.lower(long).compile() for run in (called, queued)}
sent = []

def send(after, number=signal.SIGINT):
    def kill():
        sent.append(time.monotonic())
        os.kill(os.getpid(), number)
    timer = threading.Timer(after, kill)
    timer.start()
    return timer

def interrupted(work, number=signal.SIGINT):
    "The exception's name, the seconds from the signal to it, and those of a right call after it."
    timer = send(0.5, number)
    try:
        work()
        name, seconds = "", 0
    except BaseException as error:
        name, seconds = type(error).__name__, time.monotonic() - sent[-1]
    timer.join()
    begin = time.monotonic()
    np.testing.assert_array_equal(called(tiny), 1)
    return name, seconds, time.monotonic() - begin

def handler():
    "What the process does at SIGINT: address, mask and flags in glibc's struct sigaction."
    action = ctypes.create_string_buffer(256)
    assert ctypes.CDLL(None).sigaction(signal.SIGINT, None, action) == 0
    return action.raw[:16] + action.raw[136:140]

def answer(value):
    print(json.dumps(value))
"""


def run(code, expected=0) -> Any:
    result = subprocess.run(
        [sys.executable, "-c", PRELUDE + code],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == expected, result.stderr
    return json.loads(result.stdout) if result.stdout else None


def test_a_keyboard_interrupt_comes_at_once_and_the_next_call_is_right():
    code = """
before = handler()
kept = []
def block_queued():
    kept.append(compiled[queued](long))
    kept[0].block_until_ready()
def sleep():
    kept.append(compiled[queued](long))
    time.sleep(60)
seen = {
    "jit": interrupted(lambda: compiled[called](long)),
    "eager": interrupted(lambda: attend(long)),
    "to NumPy": interrupted(lambda: np.asarray(called(long))),
    "queued": interrupted(block_queued),
    "asleep": interrupted(sleep),
}
def expire(*_):
    raise TimeoutError
signal.signal(signal.SIGALRM, expire)
expired = interrupted(lambda: compiled[called](long), number=signal.SIGALRM)
errors = []
for result in kept:
    try:
        jax.block_until_ready(result)
    except jax.errors.JaxRuntimeError as error:
        errors.append(str(error))
answer([seen, expired, errors, handler() == before])
"""
    seen, (name, seconds, _), errors, same_handler = run(code)
    assert name == "TimeoutError"
    assert seconds < LIMIT
    for name, seconds, next_seconds in seen.values():
        assert name == "KeyboardInterrupt", seen
        assert seconds < LIMIT, seen
        assert next_seconds < 3 * LIMIT, seen
    # The results of calls that had been queued exist, and say what became of them.
    assert len(errors) == 2
    assert all("the emulated launch was interrupted" in error for error in errors)
    assert same_handler


def test_a_signal_that_raises_nothing_lets_the_call_go_on():
    code = """
heard = []
signal.signal(signal.SIGINT, lambda *_: heard.append(time.monotonic()))
before = handler()
correct = []
for program in (called, queued):
    timer = send(0.3)
    out = jax.block_until_ready(program(short))
    end = time.monotonic()
    timer.join()
    correct.append(bool((out == 1).all()))
    correct.append(end > sent[-1])
same = handler() == before
signal.signal(signal.SIGINT, signal.SIG_IGN)
timer = send(0.3)
for program in (called, queued):
    correct.append(bool((program(short) == 1).all()))
timer.join()
answer([correct, [h - s for h, s in zip(heard, sent)], same])
"""
    correct, heard_after, same_handler = run(code)
    assert all(correct)  # the results, and that the signal came before the call's end
    assert len(heard_after) == 2
    assert max(heard_after) < LIMIT
    assert same_handler


# As Python has it: a signal is the main thread's, and other threads go on.
def test_calls_of_other_threads_go_on():
    code = """
before = handler()
results = [None] * 2
def work(place):
    results[place] = bool((called(short) == 1).all())
threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
def wait():
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
seen = interrupted(wait)
wait_again = [thread.join() for thread in threads]
answer([seen, results, handler() == before])
"""
    (name, seconds, _), results, same_handler = run(code)
    assert name == "KeyboardInterrupt"
    assert seconds < LIMIT
    assert results == [True, True]
    assert same_handler


def test_a_handler_that_is_installed_meanwhile_stays():
    code = """
out = queued(short)
time.sleep(0.3)
during = handler()
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGINT)
right = bool((out == 1).all())
ignored = handler()
signal.signal(signal.SIGINT, signal.default_int_handler)
idle = handler()
answer([right, ignored != during, idle != during, signal.getsignal(signal.SIGINT) is
        signal.default_int_handler, interrupted(lambda: jax.block_until_ready(queued(long)))])
"""
    right, ignored, watched, default, (name, seconds, _) = run(code)
    assert right
    assert ignored
    assert watched  # else this test has seen nothing
    assert default
    assert name == "KeyboardInterrupt"
    assert seconds < LIMIT


def test_a_signal_that_ends_the_process_does():
    code = """
signal.signal(signal.SIGINT, signal.SIG_DFL)
timer = send(0.3)
jax.block_until_ready(queued(long))
"""
    run(code, expected=-signal.SIGINT)
