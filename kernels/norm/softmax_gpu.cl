// inner == 1: `threads` neighbours share a row. ONCE: it fits into their registers, and is loaded once.
#include "group.clh"
#include "softmax.clh"
#include "epilogue.clh"
#include "prologue.clh"

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
  float own = -INFINITY, part = 0, lost = 0;
  for (int left = count - lane; left > 0; left -= CLNET_AT_ONCE * threads) {
#define HAS(k) ((k) * threads < left)
#define AT(k) (first + count - left + (k) * threads)
    JOIN_BLOCK(own, part, lost, HAS, AT);
  }
  const float most = clnet_group_max(scratch, own, threads);
  const float sum = clnet_group_sum(scratch, part * exp(own - FINITE_MOST(most)), threads);
  const float scale = SCALE(sum);
  for (int i = lane; i < count; i += threads)
    STORE(y, first + i, EPILOGUE(RESULT(LOAD(x, first + i), most, scale), first + i, i));
#endif
}
