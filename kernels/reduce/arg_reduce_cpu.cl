// The index of the first largest (smallest) element of each chunk of a row of floats, in explicit vectors: of each lane the best so far and
// where it was. arg_reduce.cl takes the best of the chunks.
#include "vector.clh"
#include "arg_reduce.clh"

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void arg_reduce_cpu(IN(x), OUT(best), OUT(where), const int outputs, const int reduce,
                                                                          const int chunk, const int chunks, const int outputs_per_item) {
  const int output0 = (int)get_global_id(0) * outputs_per_item, output1 = BLOCK_END(output0, outputs_per_item, outputs);
  int lanes[VW];
  for (int i = 0; i < VW; ++i) lanes[i] = i;
  const VINT lane = CLNET_CAT(vload, VW)(0, lanes);
  for (int output = output0; output < output1; ++output) {
    const int from = REMAINDER(output, chunks) * chunk, to = BLOCK_END(from, chunk, reduce), first = output / chunks * reduce;
    int found = from, i = from;
    float value = LOAD(x, first + from);
    if (to - from >= VW) {
      VFLOAT values = VLOAD(x, first + from);
      VINT places = from + lane;
      for (i += VW; i + VW <= to; i += VW) {
        const VFLOAT candidates = VLOAD(x, first + i);
        const VINT better = BETTER(candidates, values);
        values = select(values, candidates, better);
        places = select(places, i + lane, better);
      }
      float value_of[VW];
      int place_of[VW];
      CLNET_CAT(vstore, VW)(values, 0, value_of);
      CLNET_CAT(vstore, VW)(places, 0, place_of);
      value = value_of[0], found = place_of[0];
      for (int k = 1; k < VW; ++k)
        if (BETTER(value_of[k], value) || (!BETTER(value, value_of[k]) && place_of[k] < found)) {
          value = value_of[k];
          found = place_of[k];
        }
    }
    SELDOM for (; i < to; ++i) {
      const float candidate = LOAD(x, first + i);
      if (BETTER(candidate, value)) {
        value = candidate;
        found = i;
      }
    }
    STORE(best, output, value);
    STORE(where, output, found);
  }
}
