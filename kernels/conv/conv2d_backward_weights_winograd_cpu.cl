// The weight's gradient y {O, C, 3, 3} from the products of transformed gradients and inputs, summed over tiles: x {part, product, o,
// lane}, `pitch` from one product to the next, `size` from one part to the next and `lanes` channels to a row. Work-items: `rows` outputs.
#include "item.clh"
#include "conv2d_winograd_cpu.clh"

#define PARAMETERS                                                                                                  \
  IN(x), OUT(y), INT(O), INT(C), INT(lanes), INT(pitch), INT(parts), INT(size), INT(rows)
WORK_ITEM void conv2d_backward_weights_winograd_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int o0 = id0 * rows, o1 = BLOCK_END(o0, rows, O);
  for (int o = o0; o < o1; ++o)
    for (int c = 0; c < C; c += VW) {
      VFLOAT t[3][TILE_IN];
      #pragma unroll
      for (int s = 0; s < TILE_IN; ++s) {
        VFLOAT m[TILE_IN];
        #pragma unroll
        for (int r = 0; r < TILE_IN; ++r) m[r] = VLOAD(x, (r * TILE_IN + s) * pitch + o * lanes + c);
        for (int part = 1; part < parts; ++part) {
          #pragma unroll
          for (int r = 0; r < TILE_IN; ++r) m[r] += VLOAD(x, part * size + (r * TILE_IN + s) * pitch + o * lanes + c);
        }
        VFLOAT back[3];
        TRANSFORM_BACK(back, m[0], m[1], m[2], m[3], m[4], m[5]);
        #pragma unroll
        for (int i = 0; i < 3; ++i) t[i][s] = back[i];
      }
      float w[9][VW];
      #pragma unroll
      for (int i = 0; i < 3; ++i) {
        VFLOAT back[3];
        TRANSFORM_BACK(back, t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5]);
        #pragma unroll
        for (int j = 0; j < 3; ++j) *(any_vector *)w[3 * i + j] = back[j];
      }
      const int count = min(VW, C - c), to = (o * C + c) * 9;
      SELDOM for (int lane = 0; lane < count; ++lane) {
        #pragma unroll
        for (int k = 0; k < 9; ++k) STORE(y, to + lane * 9 + k, w[k][lane]);
      }
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_backward_weights_winograd_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_backward_weights_winograd_cpu_item(IDS, PARAMETERS);
}
