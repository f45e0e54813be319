// The index of the first largest (smallest) element of each chunk of x[outer][reduce][inner] along its middle dimension.
#include "arg_reduce.clh"

// The value and where it is.
kernel void arg_reduce(IN(x), EARLIER_PARAMETER OUT(best), OUT(where), const int outputs, const int reduce, const int inner,
                       const int chunk, const int chunks) {
  const int output = (int)get_global_id(0);
  if (output >= outputs) return;
  const int column = REMAINDER(output, inner), from = REMAINDER(output / inner, chunks) * chunk, outer = output / inner / chunks;
  const int to = BLOCK_END(from, chunk, reduce), first = outer * reduce * inner + column;
  int found = from;
  VALUE(x) value = LOAD(x, first + from * inner);
  for (int i = from + 1; i < to; ++i) {
    // Without a branch, so that neighbours become a vector.
    const VALUE(x) candidate = LOAD(x, first + i * inner);
    const int better = BETTER(candidate, value);
    value = better ? candidate : value;
    found = better ? i : found;
  }
  STORE(best, output, value);
  STORE(where, output, ORIGIN(first + found * inner, found));
}
