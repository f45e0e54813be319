// Reduction of x[outer][reduce][inner] over its middle dimension, in chunks: y[outer][chunks][inner].
#include "reduce.clh"
#include "epilogue.clh"
#include "prologue.clh"
#include "group.clh"

#ifdef SUB_GROUP
CLNET_GROUP_FUNCTION(clnet_group_combine, COMBINE)
#endif

// Elements that a work-item loads before it needs the first: one would not keep memory busy.
#define CLNET_AT_ONCE 8

// inner == 1: `threads` (a power of two, at most GROUP) neighbours share one chunk of a row and add up in local memory.
kernel void reduce_rows_gpu(IN(x), OUT(y), const int rows, const int length, const int chunk, const int chunks, const int threads,
                            const float scale PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  local acc_t scratch[GROUP];
  const int item = (int)get_local_id(0), lane = item & (threads - 1);
  const int output = (int)get_group_id(0) * (GROUP / threads) + item / threads;
  const int from = REMAINDER(output, chunks) * chunk, first = output / chunks * length + from;
  const int count = output < rows * chunks ? min(chunk, length - from) : 0;
  acc_t total = IDENTITY;
  for (int left = count - lane; left > 0; left -= CLNET_AT_ONCE * threads) {
    acc_t few[CLNET_AT_ONCE], sum = IDENTITY;
#pragma unroll
    for (int k = 0; k < CLNET_AT_ONCE; ++k) few[k] = k * threads < left ? LOAD(x, first + count - left + k * threads) : IDENTITY;
#pragma unroll
    for (int k = 0; k < CLNET_AT_ONCE; ++k) sum = COMBINE(sum, few[k]);
    total = COMBINE(total, sum);
  }
#ifdef SUB_GROUP
  total = clnet_group_combine(scratch, total, threads);
#else
  scratch[item] = total;
  for (int half_ = threads / 2; half_ > 0; half_ /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < half_) scratch[item] = COMBINE(scratch[item], scratch[item + half_]);
  }
  total = scratch[item];
#endif
  if (lane == 0 && output < rows * chunks) STORE(y, output, FINISHED(total, output));
}

// Neighbours take neighbouring columns.
kernel void reduce_columns_gpu(IN(x), OUT(y), const int outputs, const int reduce, const int inner, const int chunk, const int chunks,
                               const float scale PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  const int output = (int)get_global_id(0);
  if (output >= outputs) return;
  const int column = REMAINDER(output, inner), from = REMAINDER(output / inner, chunks) * chunk, outer = output / inner / chunks;
  const int count = min(chunk, reduce - from), first = (outer * reduce + from) * inner + column;
  acc_t total = IDENTITY;
  for (int block = 0; block < count; block += 32) {
    acc_t sum = IDENTITY;
    for (int i = block; i < min(block + 32, count); i += CLNET_AT_ONCE) {
      acc_t few[CLNET_AT_ONCE];
#pragma unroll
      for (int k = 0; k < CLNET_AT_ONCE; ++k) few[k] = k < count - i ? LOAD(x, first + (i + k) * inner) : IDENTITY;
#pragma unroll
      for (int k = 0; k < CLNET_AT_ONCE; ++k) sum = COMBINE(sum, few[k]);
    }
    total = COMBINE(total, sum);
  }
  STORE(y, output, FINISHED(total, output));
}
