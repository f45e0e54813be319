// inner == 1: `threads` neighbours share a row. ONCE: it fits into their registers, and is loaded once.
#include "group.clh"
#include "softmax.clh"
#include "epilogue.clh"
#include "prologue.clh"

// Elements that a work-item has in registers.
#define CLNET_AT_ONCE 8

kernel void softmax_gpu(IN(x), OUT(y), const int rows, const int length, const int threads
                        PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  local float scratch[GROUP];
  const int item = (int)get_local_id(0), lane = item & (threads - 1);
  const int row = (int)get_group_id(0) * (GROUP / threads) + item / threads;
  const int first = row * length, count = row < rows ? length : 0;
#if ONCE
  const int left = count - lane;
  float few[CLNET_AT_ONCE], own = -INFINITY, part = 0;
#pragma unroll
  for (int k = 0; k < CLNET_AT_ONCE; ++k) {
    few[k] = k * threads < left ? LOAD(x, first + lane + k * threads) : -INFINITY;
    own = fmax(own, few[k]);
  }
  const float most = clnet_group_max(scratch, own, threads);
#pragma unroll
  for (int k = 0; k < CLNET_AT_ONCE; ++k) {
    few[k] -= most;
    const float power = exp(few[k]);
    part += power;
#if !LOGARITHM
    few[k] = power;
#endif
  }
  const float scale = SCALE(clnet_group_sum(scratch, part, threads));
#pragma unroll
  for (int k = 0; k < CLNET_AT_ONCE; ++k) {
    const int i = lane + k * threads;
    if (i < count) STORE(y, first + i, EPILOGUE(SCALED(few[k], scale), first + i, i));
  }
#else
  // The largest and the sum in one pass: with each block of a lane, what was summed before is scaled to the largest so far.
  float own = -INFINITY, part = 0, lost = 0;
  for (int left = count - lane; left > 0; left -= CLNET_AT_ONCE * threads) {
    float few[CLNET_AT_ONCE], larger = own, more = 0;
#pragma unroll
    for (int k = 0; k < CLNET_AT_ONCE; ++k) {
      few[k] = k * threads < left ? LOAD(x, first + count - left + k * threads) : -INFINITY;
      larger = fmax(larger, few[k]);
    }
    const float reference = larger == -INFINITY ? 0.0f : larger;
#pragma unroll
    for (int k = 0; k < CLNET_AT_ONCE; ++k) more += exp(few[k] - reference);
    const float shrink = exp(own - reference);
    part *= shrink;
    lost *= shrink;
    ADD_BLOCK(float, part, lost, more);
    own = larger;
  }
  const float most = clnet_group_max(scratch, own, threads);
  const float sum = clnet_group_sum(scratch, part * exp(own - (most == -INFINITY ? 0.0f : most)), threads);
  const float scale = SCALE(sum);
  for (int i = lane; i < count; i += threads)
    STORE(y, first + i, EPILOGUE(RESULT(LOAD(x, first + i), most, scale), first + i, i));
#endif
}
