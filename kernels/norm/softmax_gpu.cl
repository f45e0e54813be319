// inner == 1: `threads` neighbours share a row.
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
  float most = -INFINITY, sum = 0;
  for (int i = lane; i < count; i += threads) most = fmax(most, LOAD(x, first + i));
  most = clnet_group_max(scratch, most, threads);
  for (int block = 0; block < count; block = BLOCK_END(block, CLNET_BLOCK * threads, count)) {
    const int end = BLOCK_END(block, CLNET_BLOCK * threads, count);
    float part = 0;
    for (int i = block + lane; i < end; i += threads) part += exp(LOAD(x, first + i) - most);
    sum += part;
  }
  const float scale = SCALE(clnet_group_sum(scratch, sum, threads));
  for (int i = lane; i < count; i += threads)
    STORE(y, first + i, EPILOGUE(RESULT(LOAD(x, first + i), most, scale), first + i, i));
}
