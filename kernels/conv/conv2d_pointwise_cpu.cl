// 1x1 convolution for CPUs, and the gradient of its input, as a matrix product: vectors hold pixels, which are stored where they
// belong. A work-item stages STRIP pixels at a time of all inputs, for `strips` strips, and makes `panels` panels of OUTS outputs
// of them. w is packed by conv2d_pack_cpu: {group, panel, input, output}.
#include "item.clh"
#include "vector.clh"
#include "epilogue.clh"

#define STRIP (COLUMNS * VW)

// `columns` vectors of OUTS outputs, whose inputs are staged from `right` on, to y from `at` on: of the outputs `valid`, of the pixels
// `width`. Loops over columns unroll, and those from `columns` on, a constant, fall away: so it must be inlined early, and Oclgrind
// does not know what is left of `restrict` then.
static __attribute__((always_inline)) inline void make_strip(global STORAGE(y) *y_base, const ulong y_offset, const int columns,
                                                             const local float *right, const global float *weights,
                                                             const float *start, const int ins, const int pixels, const int at,
                                                             const int valid, const int width,
                                                             const int channel EPILOGUE_PARAMETERS) {
  // Sums of a block of inputs, and of the blocks before it.
  VFLOAT sum[OUTS][COLUMNS], total[OUTS][COLUMNS];
  #pragma unroll
  for (int o = 0; o < OUTS; ++o)
    #pragma unroll
    for (int v = 0; v < COLUMNS; ++v) sum[o][v] = (VFLOAT)(start[o]);
  for (int block = 0, end; block < ins; block = end) {
    end = BLOCK_END(block, CLNET_BLOCK, ins);
    if (block > 0) {
      #pragma unroll
      for (int o = 0; o < OUTS; ++o)
        #pragma unroll
        for (int v = 0; v < COLUMNS; ++v)
          if (v < columns) {
            total[o][v] = block > CLNET_BLOCK ? total[o][v] + sum[o][v] : sum[o][v];
            sum[o][v] = (VFLOAT)(0.0f);
          }
    }
    for (int k = block; k < end; ++k) {
      VFLOAT values[COLUMNS];
      #pragma unroll
      for (int v = 0; v < COLUMNS; ++v)
        if (v < columns) values[v] = *(const local any_vector *)(right + k * STRIP + v * VW);
      #pragma unroll
      for (int o = 0; o < OUTS; ++o) {
        const VFLOAT weight = (VFLOAT)(weights[k * OUTS + o]);
        #pragma unroll
        for (int v = 0; v < COLUMNS; ++v)
          if (v < columns) sum[o][v] += weight * values[v];
      }
    }
  }
  if (ins > CLNET_BLOCK) {
    #pragma unroll
    for (int o = 0; o < OUTS; ++o)
      #pragma unroll
      for (int v = 0; v < COLUMNS; ++v)
        if (v < columns) sum[o][v] += total[o][v];
  }
  if (valid == OUTS && width == columns * VW) {
    #pragma unroll
    for (int o = 0; o < OUTS; ++o)
      #pragma unroll
      for (int v = 0; v < COLUMNS; ++v)
        if (v < columns) {
          const int index = at + o * pixels + v * VW;
          VSTORE(y, index, VEPILOGUE(sum[o][v], index, channel + o, 0));
        }
    return;
  }
  VFLOAT edge[OUTS][COLUMNS];
  #pragma unroll
  for (int o = 0; o < OUTS; ++o)
    #pragma unroll
    for (int v = 0; v < COLUMNS; ++v) edge[o][v] = sum[o][v];
  const float *lanes = (const float *)edge;
  SELDOM for (int o = 0; o < valid; ++o)
    SELDOM for (int lane = 0; lane < width; ++lane) {
      const int index = at + o * pixels + lane;
      STORE(y, index, EPILOGUE(lanes[o * STRIP + lane], index, channel + o));
    }
}

#define PARAMETERS                                                                                                  \
  IN(x), IN(w), BIAS_PARAMETER OUT(y), INT(planes), INT(groups), INT(ins), INT(outs), INT(pixels),                  \
  INT(all_panels), INT(strips), INT(panels), LOCAL(float, staged) EPILOGUE_PARAMETERS
WORK_ITEM void conv2d_pointwise_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int first = id0 * strips * STRIP, width = min(strips * STRIP, pixels - first);
  const int panel0 = id1 * panels, panel1 = BLOCK_END(panel0, panels, all_panels);
  const int plane = id2, group = plane % groups;
  const int whole = width / STRIP * STRIP, rest = width - whole;

  // The last strip is filled up with what follows in memory, which nobody looks at, or at the end with nothing.
  for (int k = 0; k < ins; ++k) {
    const int source = (plane * ins + k) * pixels + first;
    const int staging = planes * ins * pixels - source < width + STRIP ? whole : width;
    local float *restrict target = staged + k * STRIP;
    for (int j = 0; j < staging; j += STRIP) {
      #pragma unroll
      for (int v = 0; v < COLUMNS; ++v) *(local any_vector *)(target + j * ins + v * VW) = VLOAD(x, source + j + v * VW);
    }
    SELDOM for (int j = staging; j < width; ++j) target[whole * ins + j - whole] = LOAD(x, source + j);
  }

  for (int panel = panel0; panel < panel1; ++panel) {
    const int out = panel * OUTS, valid = min(OUTS, outs - out);
    const global float *restrict weights = PTR(w) + (group * all_panels + panel) * ins * OUTS;
    float start[OUTS];
    #pragma unroll
    for (int o = 0; o < OUTS; ++o) {
      start[o] = 0;
#ifdef BIAS
      start[o] = LOAD(bias, group * outs + min(out + o, outs - 1));
#endif
    }
    const int at = (plane * outs + out) * pixels + first;
    for (int j = 0; j < whole; j += STRIP)
      make_strip(y_base, y_offset, COLUMNS, staged + j * ins, weights, start, ins, pixels, at + j, valid, STRIP,
                 group * outs + out EPILOGUE_ARGUMENTS);
    for (int j = whole; j < width; j += VW)
      make_strip(y_base, y_offset, 1, staged + whole * ins + j - whole, weights, start, ins, pixels, at + j, valid, min(VW, width - j),
                 group * outs + out EPILOGUE_ARGUMENTS);
  }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_pointwise_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_pointwise_cpu_item(IDS, PARAMETERS);
}
