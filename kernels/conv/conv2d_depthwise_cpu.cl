// Depthwise convolution of planes {H, W} to {OH, OW} with steps STEP, for CPUs. A work-item makes `block` strips of STRIP rows,
// VECTORS vectors of sums at a time, while each vector of the source is loaded once. What it makes of a plane lies in one piece, so that
// each element is stored once, and only the end by single elements; what a vector has beyond its row is made good by the next.
#include "item.clh"
#include "conv2d_slices.clh"
#include "conv2d_depthwise_cpu.clh"
#include "epilogue.clh"

// Vectors of sums below one another, and rows of the source that they see, VECTORS at a time: also those that are more than DOWN.
#define DOWN ((STRIP + ROWS - 1) / ROWS)
#define SEEN (((DOWN + VECTORS - 1) / VECTORS * VECTORS * ROWS - 1) * STEP + KH)

#ifdef BIAS
#define START(channel) LOAD(bias, channel)
#else
#define START(channel) 0.0f
#endif

// Of a plane, with what vectors may hold around it: where the source of a strip begins and ends.
#define FIRST(row0) (max((row0)*STEP - TOP, 0) * W - BEFORE)
#define LAST(row0) (min((row0)*STEP - TOP + SEEN, H) * W + BEHIND)

#define PARAMETERS                                                                                                  \
  IN(x), IN(w), BIAS_PARAMETER OUT(y), INT(planes), INT(channels), INT(block), LOCAL(float, made)                   \
  SLICES_PARAMETER EPILOGUE_PARAMETERS
WORK_ITEM void conv2d_depthwise_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int strip0 = id0 * block, strip1 = strip0 + min(block, planes * STRIPS - strip0);
  for (int strip = strip0; strip < strip1; ++strip) {
    const int plane = strip / STRIPS, row0 = strip % STRIPS * STRIP, channel = plane % channels, source = plane * (H * W);
    float weights[KH * KW];
    #pragma unroll
    for (int k = 0; k < KH * KW; ++k)
#ifdef FLIP
      weights[k] = LOAD(w, channel * (KH * KW) + KH * KW - 1 - k);
#else
      weights[k] = LOAD(w, channel * (KH * KW) + k);
#endif
    const int first = (Y_PLANE(plane / channels, channel, channels) * OH + row0) * OW, count = min(STRIP, OH - row0) * OW;
    if (source + FIRST(row0) < 0 || planes * (H * W) - source < LAST(row0)) {
      SELDOM for (int i = 0; i < count; ++i) {
        float sum = START(channel);
        SELDOM for (int k = 0; k < KH * KW; ++k) {
          const int row = (row0 + i / OW) * STEP + k / KW - TOP, column = i % OW * STEP + k % KW - LEFT;
          if (row >= 0 && row < H && column >= 0 && column < W) sum = fma(weights[k], LOAD(x, source + row * W + column), sum);
        }
        STORE(y, first + i, EPILOGUE(sum, first + i, channel));
      }
      continue;
    }
    PLANE_LOOP for (int v0 = 0; v0 < DOWN; v0 += VECTORS)
      _Pragma("unroll") for (int kind = 0; kind < KINDS; ++kind) PLANE_LOOP for (int a = KIND_BEGIN(kind); a < KIND_END(kind); ++a) {
        const int column = KIND_COLUMN(kind, a);
        VFLOAT sum[VECTORS];
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) sum[v] = (VFLOAT)(START(channel));
        #pragma unroll
        for (int q = 0; q < (VECTORS - 1) * ROWS * STEP + KH; ++q) {
          const int row = (row0 + v0 * ROWS) * STEP + q - TOP;
          if (row > -ROWS && row < H) {
            VFLOAT pixels[KW];
            load_taps(x_base, x_offset, source + row * W + column * STEP - LEFT, pixels);
            #pragma unroll
            for (int t = 0; t < KW; ++t) {
              const VFLOAT own = SEES_INSIDE(kind) ? pixels[t] : VAS_FLOAT(VAS_INT(pixels[t]) & inside(row, column, t - LEFT));
              #pragma unroll
              for (int v = 0; v < VECTORS; ++v) {
                const int s = q - v * ROWS * STEP;
                if (s >= 0 && s < KH) sum[v] = fma((VFLOAT)(weights[s * KW + t]), own, sum[v]);
              }
            }
          }
        }
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v)
          if (v0 + v < DOWN) *(local any_vector *)(made + (v0 + v) * (ROWS * OW) + column) = sum[v];
      }
    STORE_MADE(first, count, channel);
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_depthwise_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_depthwise_cpu_item(IDS, PARAMETERS);
}
