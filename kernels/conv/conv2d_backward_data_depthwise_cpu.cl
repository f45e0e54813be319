// The gradient {RESULT_H, RESULT_W} of the input of a depthwise convolution with steps of 2, for CPUs, of that of its outputs, which is the
// source {H, W} here. Every second row and column has the same taps: the OW columns are pairs of the result's, whose two vectors are
// put together at last. A work-item makes `block` strips of STRIP rows (an even number); what a vector has beyond its row is
// made good by the next.
#include "item.clh"
#include "conv2d_slices.clh"
#include "conv2d_depthwise_cpu.clh"
#include "epilogue.clh"

// Of a plane, with what vectors may hold around it: where the source of a strip begins and ends.
#define FIRST(row0) (max(((row0) + TOP - KH) / 2, 0) * W - BEFORE)
#define LAST(row0) (min(((row0) + STRIP + TOP) / 2 + 1, H) * W + BEHIND)

#define PARAMETERS                                                                                                  \
  IN(x), IN(w), OUT(y), INT(planes), INT(channels), INT(block), LOCAL(float, made) SLICES_PARAMETER                 \
  EPILOGUE_PARAMETERS
WORK_ITEM void conv2d_backward_data_depthwise_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int strip0 = id0 * block, strip1 = strip0 + min(block, planes * STRIPS - strip0);
  for (int strip = strip0; strip < strip1; ++strip) {
    const int plane = strip / STRIPS, row0 = strip % STRIPS * STRIP, channel = plane % channels, source = plane * (H * W);
    float weights[KH * KW];
    #pragma unroll
    for (int k = 0; k < KH * KW; ++k) weights[k] = LOAD(w, channel * (KH * KW) + k);
    const int first = (Y_PLANE(plane / channels, channel, channels) * RESULT_H + row0) * RESULT_W;
    const int count = min(STRIP, RESULT_H - row0) * RESULT_W;
    if (source + FIRST(row0) < 0 || planes * (H * W) - source < LAST(row0)) {
      SELDOM for (int i = 0; i < count; ++i) {
        float sum = 0;
        SELDOM for (int k = 0; k < KH * KW; ++k) {
          const int row = row0 + i / RESULT_W + TOP - k / KW, column = i % RESULT_W + LEFT - k % KW;
          if (row % 2 == 0 && column % 2 == 0 && row >= 0 && row < 2 * H && column >= 0 && column < 2 * W)
            sum = fma(weights[k], LOAD(x, source + row / 2 * W + column / 2), sum);
        }
        STORE(y, first + i, EPILOGUE(sum, first + i, channel));
      }
      continue;
    }
    SELDOM for (int row_of_two = 0; row_of_two < STRIP; row_of_two += 2)
      #pragma unroll
      for (int odd = 0; odd < 2; ++odd)
        SELDOM for (int a = 0; a < ACROSS; ++a) {
          VFLOAT sum[2] = {(VFLOAT)(0.0f), (VFLOAT)(0.0f)};
          #pragma unroll
          for (int s = 0; s < KH; ++s) {
            const int row = (row0 + row_of_two) / 2 + ((odd + TOP - s) >> 1);
            if ((odd + TOP - s) % 2 == 0 && row >= 0 && row < H)
              #pragma unroll
              for (int t = 0; t < KW; ++t) {
                const int column_odd = (LEFT + t) % 2, shift = (column_odd + LEFT - t) >> 1;
                const VFLOAT all = VLOAD(x, source + row * W + COLUMN(a) + shift);
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
    STORE_MADE(first, count, channel);
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_backward_data_depthwise_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_backward_data_depthwise_cpu_item(IDS, PARAMETERS);
}
