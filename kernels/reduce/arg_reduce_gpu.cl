// The index of the first largest (smallest) element of each chunk of a row: `threads` (a power of two, at most GROUP) neighbours share one
// and compare in local memory.
#include "arg_reduce.clh"

// Elements that a work-item loads before it needs the first: one would not keep memory busy.
#define AT_ONCE 8

kernel void arg_reduce_gpu(IN(x), EARLIER_PARAMETER OUT(best), OUT(where), const int rows, const int length, const int chunk,
                           const int chunks, const int threads) {
  local VALUE(x) values[GROUP];
  local int places[GROUP];
  const int item = (int)get_local_id(0), lane = item & (threads - 1);
  const int output = (int)get_group_id(0) * (GROUP / threads) + item / threads;
  const int from = REMAINDER(output, chunks) * chunk, first = output / chunks * length + from;
  const int count = output < rows * chunks ? min(chunk, length - from) : 0;
  VALUE(x) value = 0;
  int place = count;  // none
  for (int begin = lane; begin < count; begin += AT_ONCE * threads) {
    VALUE(x) few[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) few[k] = k * threads < count - begin ? LOAD(x, first + begin + k * threads) : 0;
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const bool take = k * threads < count - begin && (place == count || BETTER(few[k], value));
      value = take ? few[k] : value;
      place = take ? begin + k * threads : place;
    }
  }
  values[item] = value, places[item] = place;
  for (int half_ = threads / 2; half_ > 0; half_ /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < half_) {
      const VALUE(x) other = values[item + half_], own = values[item];
      const int its = places[item + half_], mine = places[item];
      if (its < count && (mine == count || BETTER(other, own) || (!BETTER(own, other) && its < mine)))
        values[item] = other, places[item] = its;
    }
  }
  if (lane == 0 && output < rows * chunks) {
    STORE(best, output, values[item]);
    STORE(where, output, ORIGIN(first + places[item], from + places[item]));
  }
}
