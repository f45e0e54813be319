// The gradient {RESULT_H, RESULT_W} of the input of a depthwise convolution with steps of 2, for CPUs, of that of its outputs, which is the
// source {H, W} here. Every second row and column has the same taps: the OW columns are pairs of the result's, whose two vectors are
// put together at last. A work-item makes `block` strips of STRIP rows (an even number); what a vector has beyond its row is
// made good by the next.
#include "conv2d_slices.clh"
#include "conv2d_depthwise_cpu.clh"
#include "epilogue.clh"

static __attribute__((always_inline)) inline void make_strip(IN(x), IN(w), OUT(y), const int row0, const int plane, const int channels,
                                                             const bool is_staged, const local float *restrict staged,
                                                             const int staged_first,
                                                             local float *restrict made SLICES_PARAMETER EPILOGUE_PARAMETERS) {
  const int channel = plane % channels;
  float weights[KH * KW];
  #pragma unroll
  for (int k = 0; k < KH * KW; ++k) weights[k] = LOAD(w, channel * (KH * KW) + k);
  SELDOM for (int row_of_two = 0; row_of_two < STRIP; row_of_two += 2)
    #pragma unroll
    for (int odd = 0; odd < 2; ++odd)
      #pragma unroll
      for (int a = 0; a < ACROSS; ++a) {
        VFLOAT sum[2] = {(VFLOAT)(0.0f), (VFLOAT)(0.0f)};
        #pragma unroll
        for (int s = 0; s < KH; ++s) {
          const int row = (row0 + row_of_two) / 2 + ((odd + TOP - s) >> 1);
          if ((odd + TOP - s) % 2 == 0 && row >= 0 && row < H)
            #pragma unroll
            for (int t = 0; t < KW; ++t) {
              const int column_odd = (LEFT + t) % 2, shift = (column_odd + LEFT - t) >> 1;
              const VFLOAT all = SOURCE((plane * H + row) * W + COLUMN(a) + shift);
              const VFLOAT own = VAS_FLOAT(VAS_INT(all) & inside(row, COLUMN(a), shift));
              sum[column_odd] = fma((VFLOAT)(weights[s * KW + t]), own, sum[column_odd]);
            }
        }
        local float *target = made + (row_of_two + odd) * RESULT_W + 2 * COLUMN(a);
        VFLOAT columns;
        columns.even = sum[0].lo;
        columns.odd = sum[1].lo;
        *(local any_vector *)target = columns;
        columns.even = sum[0].hi;
        columns.odd = sum[1].hi;
        *(local any_vector *)(target + VW) = columns;
      }
  const int first = (Y_PLANE(plane / channels, channel, channels) * RESULT_H + row0) * RESULT_W;
  const int count = min(STRIP, RESULT_H - row0) * RESULT_W;
  int i = 0;
  for (; i + VW <= count; i += VW) VSTORE(y, first + i, VEPILOGUE(*(const local any_vector *)(made + i), first + i, channel, 0));
  SELDOM for (; i < count; ++i) STORE(y, first + i, EPILOGUE(made[i], first + i, channel));
}

// Of a plane, with what vectors may hold around it: where the source of a strip begins and ends.
#define FIRST(row0) (max(((row0) + TOP - KH) / 2, 0) * W - BEFORE)
#define LAST(row0) (min(((row0) + STRIP + TOP) / 2 + 1, H) * W + BEHIND)

#define MAKE_STRIP(is_staged) \
  make_strip(x_base, x_offset, w_base, w_offset, y_base, y_offset, row0, plane, channels, is_staged, staged, first, \
             made SLICES_ARGUMENT EPILOGUE_ARGUMENTS)

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_depthwise_data_cpu(
    IN(x), IN(w), OUT(y), const int planes, const int channels, const int block, local float *restrict staged,
    local float *restrict made SLICES_PARAMETER EPILOGUE_PARAMETERS) {
  const int strip0 = (int)get_global_id(0) * block, strip1 = strip0 + min(block, planes * STRIPS - strip0);
  for (int strip = strip0; strip < strip1; ++strip) {
    const int plane = strip / STRIPS, row0 = strip % STRIPS * STRIP, first = plane * (H * W) + FIRST(row0);
    if (first >= 0 && plane * (H * W) + LAST(row0) <= planes * (H * W)) MAKE_STRIP(false);
  }
  // In a loop of their own, as compilers would make one of both ways.
  SELDOM for (int strip = strip0; strip < strip1; ++strip) {
    const int plane = strip / STRIPS, row0 = strip % STRIPS * STRIP;
    const int first = plane * (H * W) + FIRST(row0), last = plane * (H * W) + LAST(row0);
    if (first < 0 || last > planes * (H * W)) {
      stage(x_base, x_offset, first, last, planes * (H * W), staged);
      MAKE_STRIP(true);
    }
  }
}
