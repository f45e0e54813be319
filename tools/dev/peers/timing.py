"""How a peer's work is timed, and the numbers that it computes with."""
import statistics
import time


def sample(run, seconds):
    """The median and the best of elapsed times, and the mean CPU time of all of the process's threads, in ms per run."""
    for _ in range(3):
        run()
    samples, begin, cpu = [], time.perf_counter(), time.process_time()
    while len(samples) < 5 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        samples.append(time.perf_counter() - start)
    cpu = time.process_time() - cpu
    return [statistics.median(samples) * 1e3, min(samples) * 1e3, cpu / len(samples) * 1e3]


def best_of(measured):
    """Each of the three numbers' smallest."""
    return [min(column) for column in zip(*measured)]


def random_inputs(shapes):
    """NumPy arrays of f32 from (0, 1], the same in every process."""
    import numpy
    generator = numpy.random.default_rng(1)
    return [1 - generator.random(shape, numpy.float32) for shape in shapes]
