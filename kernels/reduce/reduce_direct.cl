// Reduction of x[outer][reduce][inner] over its middle dimension, in chunks, one output per work-item: the reference solver.
#include "reduce.clh"
#include "epilogue.clh"
#include "prologue.clh"

kernel void reduce_direct(IN(x), OUT(y), const int outputs, const int reduce, const int inner, const int chunk,
                          const int chunks, const float scale PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  const int output = (int)get_global_id(0);
  if (output >= outputs) return;
  const int from = REMAINDER(output / inner, chunks) * chunk, count = min(chunk, reduce - from);
  const int first = (output / inner / chunks * reduce + from) * inner + REMAINDER(output, inner);
  acc_t total = IDENTITY;
#if KIND == KIND_SUM && !ACC_INT
  // Compensated (Kahan): as exact as a sum in double.
  acc_t lost = 0;
  for (int i = 0; i < count; ++i) {
    const acc_t value = LOAD(x, first + i * inner) - lost;
    const acc_t next = total + value;
    lost = isfinite(next) ? (next - total) - value : 0;
    total = next;
  }
#else
  for (int i = 0; i < count; ++i) {
    const acc_t value = LOAD(x, first + i * inner);
    total = COMBINE(total, value);
  }
#endif
  STORE(y, output, FINISHED(total, output));
}
