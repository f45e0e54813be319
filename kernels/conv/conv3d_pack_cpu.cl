// Weights as conv3d_cpu reads them: {phase along the depth, group, panel, block of CB terms, phase of rows and columns, tap, term, lane}
// in f32, zero in lanes that are no output. A term is an input channel at a tap along the depth. Work-items: panels, blocks, phases along
// the depth times groups.
#include "conv3d_cpu.clh"

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv3d_pack_cpu(
    IN(w), OUT(packed), const int groups, const int C, const int OG, const int in_stride, const int out_stride, const int YH,
    const int YW, const int KD, const int KH, const int KW, const int SD, const int SH, const int SW, const int PD, const int PH,
    const int PW, const int DD, const int DH, const int DW, const int step_d, const int step_h, const int step_w, const int F,
    const int CB) {
  const int panel = (int)get_global_id(0), first = (int)get_global_id(1) * CB, group = (int)get_global_id(2) % groups;
  const int phase = (int)get_global_id(2) / groups, panels = (int)get_global_size(0);
  const clnet_taps depth = taps_of(phase, KD, SD, PD, DD, step_d);
  const int terms = min(CB, depth.count * C - first), valid = min(LANES, OG - panel * LANES);
  const int source = group * max(C * in_stride, OG * out_stride) + panel * LANES * out_stride;
  int to = ((phase * groups + group) * panels + panel) * F * KH * KW * LANES + first * KH * KW * LANES;
  for (int qh = 0; qh < PHASES(SH, YH); ++qh) {
    const clnet_taps high = taps_of(qh, KH, SH, PH, DH, step_h);
    for (int qw = 0; qw < PHASES(SW, YW); ++qw) {
      const clnet_taps wide = taps_of(qw, KW, SW, PW, DW, step_w);
      for (int s = 0; s < high.count; ++s)
        for (int t = 0; t < wide.count; ++t)
          for (int k = 0; k < terms; ++k, to += LANES) {
            const int z = depth.kernel_first + (first + k) / C * step_d, c = (first + k) % C;
            const int from = source + c * in_stride +
                             (z * KH + high.kernel_first + s * step_h) * KW + wide.kernel_first + t * step_w;
            for (int lane = 0; lane < valid; ++lane) STORE(packed, to + lane, LOAD(w, from + lane * out_stride));
            for (int lane = valid; lane < LANES; ++lane) STORE(packed, to + lane, 0.0f);
          }
    }
  }
}
