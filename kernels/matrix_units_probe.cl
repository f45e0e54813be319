// One multiplication by a matrix unit, for each way in which the operands may lie in local memory: lib/cl/matrix_units.cpp compares.
#include "matrix_units.clh"

#define LONGEST_LINE (16 + UNIT_CHUNK)

UNIT_INLINE void bring(local unit_stored *to, global const unit_stored *from, const int along_k) {
  for (int e = (int)get_local_id(0); e < 16 * UNIT_DEPTH; e += UNIT_WAVE) {
    const int line = e / UNIT_DEPTH, k = e % UNIT_DEPTH;
    to[along_k ? line * LONGEST_LINE + k : k * LONGEST_LINE + line] = UNIT_ROUNDED(from[e]);
  }
}

#define MULTIPLY(way, a_along_k, b_along_k)                                                        \
  {                                                                                                \
    bring(tile_a, a, a_along_k);                                                                   \
    bring(tile_b, b, b_along_k);                                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    const unit_operand left = unit_load_a(tile_a, LONGEST_LINE, a_along_k, 0, 0, lane);            \
    const unit_operand right = unit_load_b(tile_b, LONGEST_LINE, b_along_k, 0, 0, lane);           \
    float sum[UNIT_SUMS];                                                                          \
    for (int s = 0; s < UNIT_SUMS; ++s) sum[s] = (float)UNIT_ROW(lane, s);                         \
    unit_multiply(sum, left, right UNIT_ARGUMENTS);                                                \
    for (int s = 0; s < UNIT_SUMS; ++s) c[(way) * 256 + UNIT_ROW(lane, s) * 16 + UNIT_COLUMN(lane, s)] = sum[s]; \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
  }

// a: 16 rows, b: 16 columns, of UNIT_DEPTH elements each; c: the sums, which begin with the row's number, four times.
UNIT_ATTRIBUTES __attribute__((reqd_work_group_size(UNIT_WAVE, 1, 1))) kernel void matrix_units_probe(
    global const unit_stored *a, global const unit_stored *b, global float *c) {
  local unit_stored tile_a[16 * LONGEST_LINE] __attribute__((aligned(16))), tile_b[16 * LONGEST_LINE] __attribute__((aligned(16)));
  UNIT_MEMORY(1)
  const int lane = (int)get_local_id(0);
  MULTIPLY(0, 1, 1)
  MULTIPLY(1, 1, 0)
  MULTIPLY(2, 0, 1)
  MULTIPLY(3, 0, 0)
}
