// Weights as conv2d_cpu reads them: {group, panel, block of CB inputs, tap, input, lane} in f32, zero in lanes that are no
// output. Inputs and outputs are those of the direction: for the gradient of the input, a convolution's outputs come in. Work-items:
// panels, blocks, groups.
#include "clnet.clh"

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_pack_cpu(
    IN(w), OUT(packed), const int in, const int out, const int in_stride, const int out_stride, const int KW, const int taps_h,
    const int taps_w, const int first_h, const int first_w, const int step_h, const int step_w, const int CB) {
  const int panel = (int)get_global_id(0), c0 = (int)get_global_id(1) * CB, group = (int)get_global_id(2);
  const int panels = (int)get_global_size(0), channels = min(CB, in - c0), taps = taps_h * taps_w;
  const int source = group * max(in * in_stride, out * out_stride) + c0 * in_stride + first_h * KW + first_w;
  const int target = ((group * panels + panel) * in + c0) * taps * LANES;
  const int valid = min(LANES, out - panel * LANES), next = channels * LANES;
  for (int lane = 0; lane < valid; ++lane) {
    const int row = source + (panel * LANES + lane) * out_stride;
    for (int c = 0; c < channels; ++c) {
      int to = target + c * LANES + lane;
      for (int s = 0; s < taps_h; ++s)
        for (int t = 0, from = row + c * in_stride + s * step_h * KW; t < taps_w; ++t, from += step_w, to += next)
          STORE(packed, to, LOAD(w, from));
    }
  }
  for (int lane = valid; lane < LANES; ++lane)
    for (int k = 0; k < channels * taps; ++k) STORE(packed, target + k * LANES + lane, 0.0f);
}
