#define NONTEMPORAL_STORES 1
#define TYPE_x0 f32
#define TYPE_x1 f32
#define TYPE_y0 f32
#define VW 8
#include "nontemporal_stores.clh"

kernel WIDE_KERNEL void add_elementwise(OUT_SHARED(y0), IN_SHARED(x0), IN_SHARED(x1), const int n0, const int n1,
                                        const int n2, const int a1_1, const int rows, const int rows_per_item,
                                        const int piece, const int pieces) {
  const int item = (int)get_global_id(0), from = REMAINDER(item, pieces) * piece, to = from + min(piece, n2 - from);
  const int first = item / pieces * rows_per_item, last = first + min(rows_per_item, rows - first);
  for (int row = first; row < last; ++row) {
    const int i1 = REMAINDER(row, n1);
    const int i0 = row / n1;
    const VALUE(x1) a1 = LOAD(x1, i1 * a1_1);
    for (int block = from; block < to; block += min(NONTEMPORAL_BLOCK, to - block)) {
      const int end = block + min(NONTEMPORAL_BLOCK, to - block), first_of_block = row * n2 + block;
      float y0_block[NONTEMPORAL_BLOCK];
VECTOR_LOOP
      for (int i2 = block; i2 < end; ++i2) {
        const int i = row * n2 + i2;
        const VALUE(x0) a0 = LOAD(x0, i);
        y0_block[i - first_of_block] = a0 + a1;  // add
      }
      NONTEMPORAL_OUT(y0, first_of_block, y0_block, end - block);
    }
  }
  NONTEMPORAL_FENCE();
}
#define NONTEMPORAL_STORES 1
#define TYPE_x0 f32
#define TYPE_y0 f32
#define VW 8
#include "nontemporal_stores.clh"

kernel WIDE_KERNEL void relu_elementwise(OUT_SHARED(y0), IN_SHARED(x0), const int n0, const int piece) {
  const int from = (int)get_global_id(0) * piece, to = from + min(piece, n0 - from);
    for (int block = from; block < to; block += min(NONTEMPORAL_BLOCK, to - block)) {
      const int end = block + min(NONTEMPORAL_BLOCK, to - block), first_of_block = block;
      float y0_block[NONTEMPORAL_BLOCK];
VECTOR_LOOP
      for (int i = block; i < end; ++i) {
        const VALUE(x0) a0 = LOAD(x0, i);
        y0_block[i - first_of_block] = a0 < 0 ? 0 : a0;  // relu
      }
      NONTEMPORAL_OUT(y0, first_of_block, y0_block, end - block);
    }
  NONTEMPORAL_FENCE();
}
