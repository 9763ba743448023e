"""Small measurements that run.py has no place for. Each prints what it measured and in which unit.

    python benchmarks/micro.py                  all of them
    python benchmarks/micro.py chain loops      some

chain     50 operations (sin, *) on 10 doubles: value and pullback over NumPy's forward, interleaved, median of ratios
loops     time per element of a loop over x[i], and of one over y[i] = v, for several lengths
memory    peak of value_and_grad of the elementwise workload with 1e7 doubles, in arrays (tracemalloc)
copies    peak of the shared right-hand side of a batched product beyond inputs and results
flat      growth of the process over 100,000 gradients
import    milliseconds that `import cgrad` takes beyond `import numpy`
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import statistics
import subprocess
import sys
import time
import tracemalloc

import numpy as np

import cgrad
import cgrad.numpy as cnp


def seconds(call, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def interleaved(calls, repeats, rounds=41):
    """Median seconds of each call, and the median of its ratio to the first in the same round."""
    for call in calls.values():
        call()
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call, repeats))
    base = next(iter(times.values()))
    return {name: (statistics.median(t), statistics.median(a / b for a, b in zip(t, base))) for name, t in times.items()}


def chain():
    x, seed = np.linspace(0.1, 1, 10), np.ones(10)

    def program(xp):
        def f(x):
            y = x
            for _ in range(25):
                y = xp.sin(y)
                y = y * x
            return y
        return f

    def with_gradient(f):
        def run():
            _, pullback = cgrad.vjp(f, x)
            return pullback(seed)
        return run
    plain, direct = program(np), program(cnp)
    rows = interleaved({"NumPy, forward": lambda: plain(x), "cgrad.numpy, forward and backward": with_gradient(direct),
                        "numpy, forward and backward": with_gradient(plain)}, 60)
    for name, (t, ratio) in rows.items():
        print(f"chain    {name:36s} {t / 50 * 1e9:6.0f} ns per operation   ratio {ratio:.2f}")


def loops():
    def read(x):
        total = 0.0
        for i in range(len(x)):
            total = total + x[i] * x[i]
        return total

    def write(x):
        y = np.zeros_like(x)
        for i in range(len(x)):
            y[i] = 2 * x[i]
        return (y * y).sum()
    for name, f in (("x[i]", read), ("y[i] = v", write)):
        for n in (100, 1000, 10000, 30000):
            x = np.linspace(0, 1, n)
            gradient = cgrad.grad(f)
            gradient(x)
            best = min(seconds(lambda: gradient(x), max(1, 3000 // n)) for _ in range(15))
            print(f"loops    {name:9s} n = {n:6d}   {best / n * 1e9:6.0f} ns per element")


def elementwise(x):
    return np.sum(np.exp(-x**2) * np.sin(x) + np.log1p(x * x))


def memory():
    x = np.random.default_rng(0).standard_normal(10**7)
    gradient = cgrad.value_and_grad(elementwise)
    gradient(x[:10])
    for name, call in (("NumPy, forward", lambda: elementwise(x)), ("value_and_grad", lambda: gradient(x))):
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"memory   {name:36s} peak {peak / x.nbytes:.2f} arrays of 1e7 doubles")


def copies():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, 128, 64)), rng.standard_normal((64, 32))
    r = rng.standard_normal((64, 128, 32))
    _, pullback = cgrad.vjp(np.matmul, a, b)
    pullback(r)
    tracemalloc.start()
    pullback(r)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"copies   adjoints of (64,128,64) @ (64,32): peak {peak / (a.nbytes + b.nbytes):.3f} of the two results")


def flat():
    import resource
    x = np.linspace(0, 1, 100)
    gradient = cgrad.grad(lambda x: np.sum(np.sin(x) * x[::-1]) * x[3])

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 2**20
    for _ in range(10000):
        gradient(x)
    before = resident()
    for _ in range(100000):
        gradient(x)
    print(f"flat     100,000 gradients: {resident() - before:+.2f} MB")


def imports():
    def fresh(statement):
        # compiled modules are cached, as in an installed package
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
        return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                                    env=env).stdout)
    fresh("import cgrad")
    both = [(fresh("import numpy"), fresh("import cgrad")) for _ in range(15)]
    print(f"import   numpy {statistics.median(a for a, _ in both) * 1e3:.0f} ms, cgrad beyond it "
          f"{statistics.median(b - a for a, b in both) * 1e3:.0f} ms")


ALL = dict(chain=chain, loops=loops, memory=memory, copies=copies, flat=flat)
ALL["import"] = imports

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()
