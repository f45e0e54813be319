// Weights in the order in which conv2d_gpu's tiles load them: {group, phase (conv2d_phases.clh; forward there is one), panel of TM
// rows, slice of TK, k, row}, with ALONG_K {..., slice of TK, row, k}, a phase's k in the order of the kernel and up to whole slices. Zero
// where there is no such row or channel. A slice more ends all, as the kernel fetches a slice ahead. A work-item per element.
#include "clnet.clh"

kernel void conv2d_pack_gpu(IN(w), OUT(packed), const int groups, const int rows, const int channels, const int row_stride,
                            const int channel_stride, const int KH, const int KW, const int SH, const int SW, const int blocked) {
  const int i = (int)get_global_id(0), panel = (int)get_global_id(1), panels = (rows + TM - 1) / TM;
  const int phases = SH * SW, phase = (int)get_global_id(2) % phases, group = (int)get_global_id(2) / phases;
  int before = 0, length = 0, all = 0, taps = 0, width = 0;
  for (int p = 0; p < phases; ++p) {
    const int its_width = (KW - p % SW + SW - 1) / SW, its_taps = (KH - p / SW + SH - 1) / SH * its_width;
    const int its_length = (blocked ? (channels + TK - 1) / TK * its_taps : (channels * its_taps + TK - 1) / TK) * TK;
    if (p < phase) before += its_length;
    if (p == phase) length = its_length, taps = its_taps, width = its_width;
    all += its_length;
  }
  const bool last = group == groups - 1 && phase == phases - 1 && panel == panels - 1;
#ifdef ALONG_K
  const int k = i / (TM * TK) * TK + i % TK, row = panel * TM + i / TK % TM;
#else
  const int k = i / TM, row = panel * TM + i % TM;
#endif
  if (k >= length + (last ? TK : 0)) return;
  float value = 0.0f;
  if (k < length && row < rows) {
    const int slice = k / TK, channel = blocked ? slice / taps * TK + k % TK : k / taps, tap = blocked ? slice % taps : k % taps;
    const int kh = phase / SW + tap / width * SH, kw = phase % SW + tap % width * SW;
    if (channel < channels)
      value = LOAD(w, group * rows * channels * KH * KW + row * row_stride + channel * channel_stride + kh * KW + kw);
  }
  STORE(packed, ((group * all + before) * panels + panel * length) * TM + i, value);
}
