// Adds parts of the gradient of a convolution's input (conv2d_gpu.cl) in order, of each pixel those that its phase has: a work-item
// per element.
#include "conv2d_phases.clh"
#include "epilogue.clh"

kernel void conv2d_sum_phases_gpu(IN(x), OUT(y), const int total, const int channels, const int H, const int W, const int PT, const int PL,
                                  const int all_k, const int part, const int parts EPILOGUE_PARAMETERS) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int phase = (i / W % H + PT % SH + SH) % SH * SW + (i % W + PL % SW + SW) % SW;
  const int mine = clnet_phase_parts(phase, all_k, 0, part, parts);
  float sum = 0.0f;
  for (int p = 0; p < mine; ++p) sum += LOAD(x, p * total + i);
  STORE(y, i, EPILOGUE(sum, i, i / (W * H) % channels));
}
